//! `punctual demo`: a first answer about this machine, without other programs.

pub mod load;

use super::run::{self, CommonArgs};
use crate::exit::{Ending, Failure};
use crate::output;
use punctual_report::html;
use punctual_session::messages::display_path;
use punctual_session::programs::find_program;
use punctual_session::request::ExperimentRequest;
use std::path::{Path, PathBuf};

const EXPERIMENT: &str = include_str!("../../../../examples/quickstart.toml");
/// The substitute for each load of the experiment if stress-ng is missing.
const OWN_LOADS: [(&str, &str); 5] = [
    ("stress-ng --cpu 2 --quiet", "compute"),
    ("stress-ng --vm 1 --vm-bytes 64M --quiet", "memory"),
    ("stress-ng --fork 1 --quiet", "processes"),
    ("stress-ng --pipe 1 --quiet", "messages"),
    ("stress-ng --timer 1 --timer-freq 10000 --quiet", "timers"),
];

/// Measure this machine for 20 s, idle and under load, and write a report
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  punctual demo\n  punctual demo --report machine.html\n  \
                        punctual demo --explain\n\nRuns examples/quickstart.toml, which is built \
                        into the program. The loads are those of stress-ng or, if it is not \
                        installed, simpler built-in ones.\n\nExit codes: see punctual run.")]
pub struct DemoArgs {
    #[command(flatten)]
    common: CommonArgs,
}

/// Runs the experiment, writes the page, suggests next steps.
pub fn run(args: DemoArgs) -> Ending {
    let mut common = args.common;
    // A target has its own programs.
    let own_loads = common.target.is_none() && find_program("stress-ng").is_err();
    let text = if own_loads { with_own_loads()? } else { EXPERIMENT.to_owned() };
    if own_loads {
        output::print_stderr("stress-ng is not installed: using simpler built-in loads\n");
    }
    let demo_request = ExperimentRequest::of_text(
        Path::new("quickstart.toml"),
        text.into_bytes(),
        &common.run_options(),
    );
    let bundle = common
        .output
        .get_or_insert_with(|| PathBuf::from(format!("punctual-demo-{}", demo_request.stamp)));
    let page = page_beside(bundle);
    if common.beside.report.is_none() && html::BUILT {
        common.beside.report = Some(page);
    }
    let exit = run::run_experiment(&common, &demo_request, None)?;
    if !common.plan && !common.json && !common.exclusion.dry_run {
        if let Some(page) = &common.beside.report {
            output::print_stdout(&format!("page    {}\n", display_path(page)))?;
        }
        output::print_stdout(
            "\nnext: `punctual new` writes an experiment of your own; `punctual \
             check` checks the configuration of this system\n",
        )?;
    }
    Ok(exit)
}

/// The path `DIR.html` beside `DIR`.
fn page_beside(bundle: &Path) -> PathBuf {
    let mut name = bundle.file_name().unwrap_or_default().to_owned();
    name.push(".html");
    bundle.with_file_name(name)
}

/// The experiment with this program in place of stress-ng.
fn with_own_loads() -> Result<String, Failure> {
    let program = std::env::current_exe()
        .map_err(|why| Failure::failed(format!("cannot find the path of this program: {why}")))?;
    let program = shell_words::quote(&program.to_string_lossy()).into_owned();
    Ok(OWN_LOADS.iter().fold(EXPERIMENT.to_owned(), |text, (command, own)| {
        let load_command = format!("{program} {} {own}", load::ARGUMENT);
        text.replace(
            &punctual_plan::text::quote_toml(command),
            &punctual_plan::text::quote_toml(&load_command),
        )
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_load_of_the_demo_has_a_built_in_replacement() {
        let text = with_own_loads().unwrap();
        assert!(!text.contains("\"stress-ng"), "{text}");
        for (_, own) in OWN_LOADS {
            assert!(text.contains(&format!(" {} {own}\"", load::ARGUMENT)), "{own}: {text}");
        }
    }

    #[test]
    fn the_page_is_written_beside_the_bundle() {
        assert_eq!(page_beside(Path::new("results/one")), Path::new("results/one.html"));
        assert_eq!(page_beside(Path::new("results/v1.2/")), Path::new("results/v1.2.html"));
    }
}
