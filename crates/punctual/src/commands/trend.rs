//! `punctual trend`: the development of the runs kept by `--baseline`.

use super::beside::check_report;
use super::bundle::show_options;
use crate::exit::{Ending, Exit, Failure, Outputs};
use crate::output;
use punctual_bundle::baseline::{TrendDocument, TrendHistory};
use punctual_core::format::count_with_noun;
use punctual_core::{Nanos, SeriesRequirement};
use punctual_plan::{LoadOptions, overrides};
use punctual_report::{document, openmetrics};
use punctual_session::messages::display_path;
use punctual_session::request;
use punctual_stats::baseline::ProposedRate;
use punctual_study::baseline::{Baseline, read_trend};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Show where figures changed over the runs that --baseline keeps
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  punctual run gate.toml --baseline history\n  punctual trend \
                        history --since 30d --report trend.html\n  punctual trend history --json | \
                        jq '.histories[].figures[] | {name, levels}'")]
pub struct TrendArgs {
    /// The directory that was given to --baseline
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// Only runs of the last DURATION, as 30d
    #[arg(long, value_name = "DURATION")]
    since: Option<Nanos>,
    /// Accept the newest run of each history as it is: later runs are compared with it and those
    /// after it alone
    #[arg(long, conflicts_with_all = ["since", "json", "report", "metrics"])]
    accept: bool,
    /// Propose a bound for each figure, as a `require` line, with its rate of false alarms
    #[arg(long)]
    propose: bool,
    /// The rate of false alarms of each bound, as 1/1000 [default: the rarest that the runs bear]
    #[arg(long, value_name = "RATE", value_parser = parse_rate, requires = "propose")]
    false_alarms: Option<f64>,
    /// Put the proposed bounds into this experiment file
    #[arg(long, value_name = "EXPERIMENT", requires = "propose")]
    write: Option<PathBuf>,
    /// Write a page: each figure over the runs, with its changes
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Write the newest run of each history as OpenMetrics text (docs/trend.md)
    #[arg(long, value_name = "FILE")]
    metrics: Option<PathBuf>,
    /// Print JSON in the format punctual-trend/1 (docs/trend.md)
    #[arg(long)]
    json: bool,
}

/// Reads the records, and prints the trend.
pub fn run(args: TrendArgs) -> Ending {
    if !args.directory.is_dir() {
        return Err(Failure::refused(format!(
            "{} is not a directory: name the one that was given to --baseline",
            display_path(&args.directory)
        )));
    }
    let baseline = Baseline { directory: args.directory.clone(), commit: None, required: false };
    if args.accept {
        let accepted = baseline.accept_newest()?;
        let which = if accepted == 1 { "history begins" } else { "histories begin" };
        output::print_stdout(&format!("{accepted} {which} with the newest run\n"))?;
        return Ok(Exit::Done);
    }
    check_report(args.report.as_deref())?;
    let propose = args.propose.then_some(ProposedRate(args.false_alarms));
    let found = read_trend(&baseline, args.since, propose)?;
    let written = args.write.as_deref().map(|file| write_bounds(file, &found)).transpose()?;
    let document = document::build_trend_document(&found, &display_path(&args.directory));
    let mut outputs = Outputs::default();
    if let Some(file) = &args.report {
        let page = document.render_page().map_err(Failure::failed);
        outputs.add(page.and_then(|page| output::write_to(Some(file), page.as_bytes())));
    }
    if let Some(file) = &args.metrics {
        outputs.add(output::write_to(Some(file), openmetrics::format_trend(&found).as_bytes()));
    }
    outputs.add(if args.json {
        output::print_json(&found)
    } else if found.histories.is_empty() && found.left_out.is_empty() {
        output::print_stdout(&format!("no runs are kept in {}\n", display_path(&args.directory)))
    } else {
        output::print_stdout(&document.to_terminal_text(&show_options()))
    });
    outputs.add(written.filter(|_| !args.json).map_or(Ok(()), |text| output::print_stdout(&text)));
    outputs.into_ending(Exit::Done)
}

/// A share, as `1/1000` or `0.001`.
fn parse_rate(text: &str) -> Result<f64, String> {
    let (one, of) = text.split_once('/').unwrap_or((text, "1"));
    let number = |text: &str| text.trim().parse::<f64>().ok();
    let rate = number(one).zip(number(of)).map(|(one, of)| one / of);
    let is_share = |rate: &f64| *rate > 0.0 && *rate < 1.0;
    rate.filter(is_share).ok_or_else(|| "write a share below 1, as 1/1000".to_owned())
}

/// Puts the bounds of the only history into an experiment, and says so.
fn write_bounds(file: &Path, found: &TrendDocument) -> Result<String, Failure> {
    let with_bounds: Vec<&TrendHistory> =
        found.histories.iter().filter(|one| !one.proposed.is_empty()).collect();
    let [history] = with_bounds.as_slice() else {
        return Err(Failure::refused(match with_bounds.len() {
            0 => "--write: no history has two runs, and one run bears no bound".to_owned(),
            number => format!(
                "--write: there are {number} histories: name the directory of one experiment alone"
            ),
        }));
    };
    let bytes = request::read(file)?;
    let measure = |place: &str| place.split_once('/').map_or(place, |(_, own)| own).to_owned();
    // A requirement holds in all phases of a measure: the highest bound is one that all bear.
    let mut highest: BTreeMap<(String, String), (i64, String)> = BTreeMap::new();
    for one in &history.proposed {
        let Ok(of) = one.require.parse::<SeriesRequirement>() else { continue };
        let (figure, bound) = (one.require.rsplit_once('<'), of.requirement.bound);
        let figure = figure.map_or(one.require.as_str(), |(figure, _)| figure).to_owned();
        let kept = highest.entry((measure(&one.place), figure)).or_insert((bound, String::new()));
        if kept.1.is_empty() || bound > kept.0 {
            *kept = (bound, one.require.clone());
        }
    }
    let bounds: Vec<_> =
        highest.into_iter().map(|((measure, _), (_, require))| (measure, require)).collect();
    let text = overrides::add_requirements(file, &bytes, &bounds).map_err(Failure::refused)?;
    punctual_plan::load_experiment(file, &text, &LoadOptions::default())
        .map_err(Failure::refused)?;
    output::replace_file(file, &text)?;
    let number = count_with_noun(bounds.len() as u64, "bound");
    Ok(format!("\n{number} put into {}: its next run begins a new history\n", display_path(file)))
}
