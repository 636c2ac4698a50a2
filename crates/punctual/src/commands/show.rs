//! `punctual show`: a bundle in the terminal.

use super::answer;
use super::bundle::{open, open_checked, or_newest, show_options, show_options_of};
use super::documents;
use crate::exit::{Ending, Exit, Failure};
use crate::output;
use punctual_bundle::Bundle;
use punctual_report::terminal;
use punctual_session::playback;
use std::path::PathBuf;

/// Show a bundle, a lab, a tuning or a comparison in the terminal
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  punctual show punctual-quickstart-20261103-141500\n  \
                        punctual show --json BUNDLE | jq '.phases[].series[].max'")]
pub struct ShowArgs {
    /// Bundles, directories of labs or tunings, comparisons as JSON [default: the newest
    /// bundle in the current directory]
    #[arg(value_name = "BUNDLE")]
    bundles: Vec<PathBuf>,
    /// Print JSON in the format of summary.json (docs/reference/json.md), one document per bundle
    #[arg(long)]
    json: bool,
    /// Print only the published figures next to the measured ones
    #[arg(long, conflicts_with = "json")]
    published: bool,
    /// Print only the five-minute lines of a --forever run, one per series
    #[arg(long, conflicts_with_all = ["json", "published"])]
    lines: bool,
}

/// Shows the bundles one after the other.
pub fn run(args: ShowArgs) -> Ending {
    let args = ShowArgs { bundles: or_newest(args.bundles)?, ..args };
    if args.published {
        return published(&args.bundles);
    }
    if args.lines {
        return lines(&args.bundles);
    }
    let mut unreadable = None;
    for path in &args.bundles {
        if let Some(document) = documents::at(path)? {
            document.print(args.json)?;
            continue;
        }
        let bundle = open_checked(path)?;
        let mut summary = answer::summarize(&bundle);
        if args.json {
            summary.recording = playback::open(&bundle).map(|opened| opened.summary());
            output::print_json(&summary)?;
        } else {
            output::print(&terminal::show(
                &summary,
                &punctual_stats::views(&bundle),
                &show_options(),
            ))?;
            output::print(&recording(&bundle))?;
            output::print(&super::explain::brief(&bundle))?;
        }
        unreadable = unreadable.or(playback::readable(&bundle).err());
    }
    unreadable.map_or(Ok(Exit::Done), Err)
}

fn published(paths: &[PathBuf]) -> Ending {
    let mut summaries = Vec::new();
    for path in paths {
        let summary = punctual_stats::summarize(&open(path)?);
        if summary.published.is_none() {
            return Err(Failure::refused(format!(
                "{}: its experiment has no section `[published]`",
                path.display()
            )));
        }
        summaries.push(summary);
    }
    output::print(&terminal::published(&summaries, &show_options()))?;
    Ok(Exit::Done)
}

fn lines(paths: &[PathBuf]) -> Ending {
    for path in paths {
        let bundle = open(path)?;
        let mut plots = Vec::new();
        for (phase, series) in bundle.series() {
            let lines = series.lines().map_err(Failure::failed)?;
            plots.push((format!("{phase}/{}", series.meta.name), lines));
        }
        if plots.iter().all(|(_, lines)| lines.is_empty()) {
            return Err(Failure::refused(format!(
                "{}: it has no long plot yet: that of `punctual run --forever` has a line each \
                 5 min",
                path.display()
            )));
        }
        output::print(&terminal::long_plot(&plots, &show_options_of(&bundle)))?;
    }
    Ok(Exit::Done)
}

/// A summary of a bundle's recording, if it has one.
pub fn recording(bundle: &Bundle) -> String {
    let Some(opened) = playback::open(bundle) else { return String::new() };
    let (tally, occupancy) = opened.counted();
    terminal::recording(
        &opened.recorded,
        &tally,
        occupancy.contradictions,
        &show_options_of(bundle),
    )
}
