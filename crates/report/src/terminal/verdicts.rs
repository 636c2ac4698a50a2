//! What became of each requirement.

use super::paint::{Page, Tone};
use super::table::{self, Cell, Column};
use crate::format;
use punctual_bundle::summary::{RequirementSummary, Summary, VerdictWord};
use punctual_core::Requirement;

const NAME_WIDTH: usize = 40;

pub fn write(out: &mut Page, summary: &Summary) {
    let all = summary.phases.iter().flat_map(|phase| {
        phase.series.iter().flat_map(move |series| {
            series.requirements.iter().map(move |requirement| (format!("{}/{}", phase.name, series.name), requirement))
        })
    });
    let all: Vec<(String, &RequirementSummary)> = all.collect();
    if all.is_empty() {
        return;
    }
    out.heading("requirements");
    let rows = all.iter().map(|(name, requirement)| row(out, name, requirement)).collect();
    let columns = ["", "series", "requirement", "measured"].map(|heading| Column::left(heading, 0));
    table::write(out, columns.into(), rows);
    for (name, requirement) in &all {
        if let Some(reason) = &requirement.reason {
            let name = format::clipped(name, NAME_WIDTH, out.options.ascii);
            let text = format!("{name}, {}: {}", format::plain(&requirement.requirement), format::plain(reason));
            out.paragraph("  ", "    ", Tone::Faint, &text);
        }
    }
}

fn row(out: &Page, name: &str, requirement: &RequirementSummary) -> Vec<Cell> {
    let (tone, word) = match requirement.verdict {
        VerdictWord::Met => (Tone::Good, out.either("✓ met", "met")),
        VerdictWord::NotMet => (Tone::Bad, out.either("✗ NOT MET", "NOT MET")),
        VerdictWord::Undecided => (Tone::Doubtful, out.either("? undecided", "undecided")),
    };
    vec![
        Cell(word.to_owned(), tone),
        Cell::plain(format::clipped(name, NAME_WIDTH, out.options.ascii)),
        Cell::plain(format::clipped(&requirement.requirement, NAME_WIDTH, out.options.ascii)),
        Cell::plain(figure(out, requirement)),
    ]
}

fn figure(out: &Page, requirement: &RequirementSummary) -> String {
    let Some(figure) = requirement.figure else { return String::new() };
    match requirement.requirement.parse::<Requirement>() {
        Ok(r) if r.metric.is_time() => format!("{} {}", out.latency(figure), out.unit()),
        _ => format::count(figure.max(0.0) as u64),
    }
}
