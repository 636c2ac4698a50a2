//! `punctual show`: a bundle in the terminal.

use super::answer;
use super::bundle::{open_bundle, open_checked, or_newest, show_options, show_options_of};
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
        return print_published(&args.bundles);
    }
    if args.lines {
        return print_long_plots(&args.bundles);
    }
    let mut unreadable = None;
    for path in &args.bundles {
        if let Some(document) = documents::read_document(path)? {
            document.print_placed(args.json)?;
            continue;
        }
        let bundle = open_checked(path)?;
        let mut summary = answer::summarize_with_answer(&bundle);
        if args.json {
            summary.recording = playback::open_recording(&bundle).map(|opened| opened.to_summary());
            output::print_json(&summary)?;
        } else {
            output::print_stdout(&terminal::show_summary(
                &summary,
                &punctual_stats::phase_views(&bundle),
                &show_options(),
            ))?;
            output::print_stdout(&format_recording(&bundle))?;
            output::print_stdout(&super::explain::brief_explanation(&bundle))?;
        }
        unreadable = unreadable.or(playback::check_readable(&bundle).err());
    }
    unreadable.map_or(Ok(Exit::Done), Err)
}

fn print_published(paths: &[PathBuf]) -> Ending {
    let mut summaries = Vec::new();
    for path in paths {
        let summary = punctual_stats::summarize_bundle(&open_bundle(path)?);
        if summary.published.is_none() {
            return Err(Failure::refused(format!(
                "{}: its experiment has no section `[published]`",
                path.display()
            )));
        }
        summaries.push(summary);
    }
    output::print_stdout(&terminal::show_published(&summaries, &show_options()))?;
    Ok(Exit::Done)
}

fn print_long_plots(paths: &[PathBuf]) -> Ending {
    for path in paths {
        let bundle = open_bundle(path)?;
        let mut plots = Vec::new();
        for (phase, series) in bundle.all_series() {
            let lines = series.load_lines().map_err(Failure::failed)?;
            plots.push((format!("{phase}/{}", series.meta.name), lines));
        }
        if plots.iter().all(|(_, lines)| lines.is_empty()) {
            return Err(Failure::refused(format!(
                "{}: it has no long plot yet: that of `punctual run --forever` has a line each \
                 5 min",
                path.display()
            )));
        }
        output::print_stdout(&terminal::long_plot(&plots, &show_options_of(&bundle)))?;
    }
    Ok(Exit::Done)
}

/// A summary of a bundle's recording, if it has one.
pub fn format_recording(bundle: &Bundle) -> String {
    let Some(opened) = playback::open_recording(bundle) else { return String::new() };
    let (tally, occupancy) = opened.count_events();
    terminal::show_recording(
        &opened.recorded,
        &tally,
        occupancy.contradictions,
        &show_options_of(bundle),
    )
}
