//! Text for the terminal: the summary of a run, the results of checks, the plain lines of a run on
//! a pipe.

mod answer;
mod brief;
mod checks;
mod counts;
mod document;
mod exact;
mod explain;
mod figures;
mod findings;
mod live;
mod long_plot;
mod markdown;
mod notes;
mod occupancy;
mod paint;
mod pairs;
mod recording;
mod rights;
mod sections;
mod shape;
mod steps;
mod table;
mod title;
mod watched;
mod worst_explained;

pub use crate::tables::checks::CheckRow as CheckRule;
pub use answer::{show_answer, show_closing};
pub use brief::show_brief;
pub use checks::show_checks;
pub use counts::{LiveCount, live_counts_header, live_counts_line, show_counts};
pub use exact::{call_path, show_exact_samples};
pub use explain::show_explanations;
pub use live::{LiveFigures, live_header, live_line};
pub use long_plot::long_plot;
pub use occupancy::{show_allocator, show_occupancy};
pub use paint::wrap_text;
pub use pairs::{call_header, call_line, show_pairs};
pub use recording::{show_busiest, show_recording};
pub use rights::{RightsRow, show_rights};
pub use sections::show_sections;
pub use steps::show_steps;
pub use watched::{RunState, show_watched};
pub use worst_explained::worst_explained;

use crate::tables;
use crate::tables::figures::named_series;
use punctual_bundle::summary::{PublishedSummary, Summary};
use punctual_bundle::{Calibration, Timebase};
use punctual_core::Fact;
use punctual_stats::PhaseView;

/// How to show a summary.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ShowOptions {
    /// Columns of the terminal; without one, the columns at which sentences wrap.
    pub width: usize,
    /// Whether it goes to a pipe or a file: these have no width, so no column is hidden and no text
    /// is cut.
    pub whole: bool,
    /// Whether to use colour (the caller honours NO_COLOR and output that is not a terminal).
    pub color: bool,
    /// Whether only ASCII can be shown.
    pub ascii: bool,
    pub unit: Unit,
    /// The timebase of the figures: unless it is the system's own, the unit names it, and so does a
    /// line below each section.
    pub timebase: Timebase,
}

impl ShowOptions {
    /// The same options for figures in this timebase.
    pub fn in_time(self, timebase: Timebase) -> ShowOptions {
        ShowOptions { timebase, ..self }
    }
}

/// The unit in which latencies are shown, stated once in each table.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Unit {
    /// µs, with significant digits.
    #[default]
    Micros,
    /// ns.
    Nanos,
}

impl Default for ShowOptions {
    fn default() -> ShowOptions {
        ShowOptions {
            width: 100,
            whole: false,
            color: false,
            ascii: false,
            unit: Unit::Micros,
            timebase: Timebase::Own,
        }
    }
}

/// The whole summary: how the run ended, figures by phase, shapes of the distributions, verdicts,
/// findings with their remedies, and the worst samples. `phases` are those of the summary
/// (`punctual_stats::views`); without them, shapes are omitted.
pub fn show_summary(summary: &Summary, phases: &[PhaseView], options: &ShowOptions) -> String {
    let options = &options.in_time(Timebase::from_target(summary.target.as_ref()));
    let mut out = paint::TextPage::new(options);
    title::write(&mut out, summary);
    for phase in &summary.phases {
        figures::write(&mut out, phase);
    }
    summary.phases.iter().for_each(|phase| notes::write(&mut out, phase));
    shape::write(&mut out, phases);
    write_account(&mut out, summary);
    write_calibration(&mut out, &summary.calibration);
    figures::write_worst(&mut out, summary);
    summary.published.iter().for_each(|results| write_published(&mut out, results));
    write_requirements(&mut out, summary);
    findings::write(&mut out, &summary.findings);
    title::write_digest(&mut out, summary);
    out.finish()
}

/// The source lines of the program at which its threads were delayed; empty if no stacks were kept.
pub fn show_places(summary: &Summary, options: &ShowOptions) -> String {
    let mut out = paint::TextPage::new(options);
    summary.phases.iter().for_each(|phase| notes::write_places(&mut out, phase));
    out.finish()
}

fn write_account(out: &mut paint::TextPage, summary: &Summary) {
    let series = named_series(summary).map(|(name, series)| (name, &series.account));
    if let Some(table) = crate::tables::account::account_table(series) {
        table::write_section(out, &table);
    }
}

fn write_calibration(out: &mut paint::TextPage, calibration: &Fact<Calibration>) {
    if let Some(table) = crate::tables::calibration::calibration_table(calibration) {
        table::write_section(out, &table);
    }
    if let Some(sentence) = crate::tables::calibration::left_out(calibration) {
        out.push_gap();
        out.push_paragraph("", "  ", paint::Tone::Faint, &crate::format::escape_unsafe(&sentence));
    }
}

/// The effect of recording on the measurement; empty if nothing was recorded.
pub fn show_calibration(calibration: &Fact<Calibration>, options: &ShowOptions) -> String {
    let mut out = paint::TextPage::new(options);
    write_calibration(&mut out, calibration);
    out.finish()
}

fn write_requirements(out: &mut paint::TextPage, summary: &Summary) {
    if let Some(all) = tables::requirements::requirements_of_run(summary).unless_empty() {
        table::write_section(out, &all);
    }
}

fn write_published(out: &mut paint::TextPage, results: &PublishedSummary) {
    table::write_section(out, &crate::tables::published::published_table(results));
}

/// Only published results, beside those of these runs.
pub fn show_published(summaries: &[Summary], options: &ShowOptions) -> String {
    let mut out = paint::TextPage::new(options);
    for summary in summaries {
        if let Some(results) = &summary.published {
            out.push_gap();
            title::write_name(&mut out, summary);
            write_published(&mut out, results);
        }
    }
    out.finish()
}

#[cfg(test)]
mod tests;
