//! This program under the name systress: its options, and its configuration run unchanged.

use super::{BUNDLE, carry_out};
use crate::commands::run::systress as files;
use crate::exit::{Failure, Outputs};
use crate::live::{self, TextFrames};
use crate::output;
use punctual_plan::Plan;
use punctual_report::export::systress;
use punctual_session::options::RunOptions;
use punctual_session::request::{ExperimentRequest, online_cpus};
use punctual_session::run::watcher::{RunWatcher, Snapshot};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const HELP: &str = "systress (punctual)
Usage: systress -c FILE [-d LEVEL] [-h] [-V]

-c FILE   the configuration
-d LEVEL  0: the figures alone (default); above: also the messages of punctual
-h        print this text
-V        print the version
";

/// The request of the options.
#[derive(PartialEq, Eq, Debug)]
enum Asked<'w> {
    Help,
    Version,
    Run { file: &'w Path, level: u32 },
}

/// Values may be attached to their letter, as getopt(3) takes them.
fn read(words: &[String]) -> Result<Asked<'_>, String> {
    let (mut file, mut level) = (None, 0);
    let mut words = words.iter().map(String::as_str);
    while let Some(word) = words.next() {
        let mut letters = word.strip_prefix('-').unwrap_or_default().chars();
        let letter = letters.next().ok_or_else(|| format!("`{word}` is not an option"))?;
        let attached = Some(letters.as_str()).filter(|text| !text.is_empty());
        let mut value = || {
            let value = attached.or_else(|| words.next());
            value.ok_or_else(|| format!("option requires an argument -- '{letter}'"))
        };
        match letter {
            'c' => file = Some(Path::new(value()?)),
            'd' => {
                let value = value()?;
                level = value.parse().map_err(|_| format!("`{value}` is not a level"))?;
            }
            'h' => return Ok(Asked::Help),
            'V' => return Ok(Asked::Version),
            _ => return Err(format!("invalid option -- '{letter}'")),
        }
    }
    let file = file.ok_or("no configuration: -c FILE")?;
    Ok(Asked::Run { file, level })
}

/// Runs the configuration, and prints the figures of its threads.
pub fn run_as_systress(words: &[String]) -> ExitCode {
    let ended = match read(words) {
        Ok(Asked::Help) => output::print_stdout(HELP),
        Ok(Asked::Version) => {
            output::print_stdout(&format!("systress (punctual {})\n", env!("CARGO_PKG_VERSION")))
        }
        Ok(Asked::Run { file, level }) => measure_configuration(file, level),
        Err(why) => Err(Failure::refused(format!("{why}\n\n{HELP}"))),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            output::print_error(&failure.render(false));
            ExitCode::FAILURE
        }
    }
}

fn measure_configuration(file: &Path, level: u32) -> Result<(), Failure> {
    // Without the variable, the bundle is removed with its directory.
    let directory = tempfile::tempdir()
        .map_err(|why| Failure::failed(format!("cannot make a temporary directory: {why}")))?;
    let wanted_directory =
        std::env::var_os(BUNDLE).filter(|path| !path.is_empty()).map(PathBuf::from);
    let kept = wanted_directory.unwrap_or_else(|| directory.path().join("bundle"));
    let run = RunOptions { output: Some(kept), quiet: true, repeat: 1, ..RunOptions::default() };
    let experiment_request = ExperimentRequest::of_file(file, false, &run)?;
    let messages = output::stderr_messages(level == 0);
    let online = online_cpus()?;
    let (plan, exit, bundle) = carry_out(&experiment_request, &run, &online, messages, |plan| {
        Ok(Box::new(Blocks::new(plan)))
    })?;
    let mut outputs = Outputs::default();
    let closing = files::write(&plan, &bundle, &mut outputs).unwrap_or_default();
    outputs.add(output::print_stdout(&closing));
    outputs.into_ending(exit).map(|_| ())
}

/// The index of each thread in its configuration, in the order of the series.
fn thread_indices(plan: &Plan) -> Vec<usize> {
    let measures = plan.phases.iter().flat_map(|phase| &phase.measures);
    measures.filter_map(|one| Some(one.systress.as_ref()?.index as usize)).collect()
}

/// Prints a block at each refresh.
struct Blocks {
    indices: Vec<usize>,
    frames: TextFrames,
}

impl Blocks {
    fn new(plan: &Plan) -> Blocks {
        // The run continues after the reader closed the pipe.
        Blocks {
            indices: thread_indices(plan),
            frames: TextFrames::new(|text| drop(output::print_stdout(text))),
        }
    }
}

impl RunWatcher for Blocks {
    fn show_snapshot(&mut self, snapshot: &Snapshot) {
        let mut figures = live::live_figures(snapshot);
        for (figures, index) in figures.iter_mut().zip(&self.indices) {
            figures.index = *index;
        }
        self.frames.show_text(systress::format_block(&figures, snapshot.cpu_load) + "\n");
    }

    fn on_run_end(&mut self) {
        self.frames.finish();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_systress_are_taken_joined_or_apart() {
        let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        for line in ["-c a.cfg -d 2", "-ca.cfg -d2", "-d 2 -c a.cfg"] {
            let right = Asked::Run { file: Path::new("a.cfg"), level: 2 };
            assert_eq!(read(&words(line)), Ok(right), "{line}");
        }
        assert_eq!(read(&words("-h")), Ok(Asked::Help));
        assert_eq!(read(&words("-c a.cfg -V")), Ok(Asked::Version));
        for line in ["-d 1", "-c", "-x", "a.cfg", "-c a -d many", "-"] {
            assert!(read(&words(line)).is_err(), "{line}");
        }
    }
}
