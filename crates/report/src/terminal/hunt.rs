//! What a search found.

use super::ShowOptions;
use super::paint::{Page, Tone};
use super::table::{self, Cell, Column};
use crate::format;
use punctual_bundle::hunt::{HuntDocument, Trial, TrialState};
use punctual_core::Nanos;

/// Causes and trials that are shown.
const CAUSES: usize = 12;
const TRIALS: usize = 10;

/// The whole page.
pub fn hunt(document: &HuntDocument, options: &ShowOptions) -> String {
    let mut out = Page::new(options);
    let count = |state| document.trials.iter().filter(|trial| trial.state == state).count() as u64;
    out.heading(&format!("search on kernel {}", format::plain(&document.kernel)));
    let text = format!(
        "{} of {} measured, {} without a working load, {} failed, {} not tried",
        format::count(count(TrialState::Measured)),
        format::counted(document.trials.len() as u64, "stressor"),
        format::count(count(TrialState::NoLoad)),
        format::count(count(TrialState::Failed)),
        format::count(count(TrialState::NotTried)),
    );
    out.paragraph("  ", "  ", Tone::Plain, &text);
    out.heading("causes, the longest first");
    write_causes(&mut out, document);
    out.heading("worst samples");
    write_trials(&mut out, document);
    let text = "No bound is proven: other loads, several loads at once and other CPUs may show \
                more. Virtual time has one CPU, no caches and no hardware.";
    out.paragraph("  ", "  ", Tone::Faint, text);
    out.finish()
}

fn micros(document: &HuntDocument, instructions: u64) -> String {
    let ns = instructions.saturating_mul(document.ns_per_instruction.into());
    format::micros(Nanos(i64::try_from(ns).unwrap_or(i64::MAX)))
}

fn write_causes(out: &mut Page, document: &HuntDocument) {
    let columns = vec![
        Column::right("instructions", 0),
        Column::right("virtual µs", 0),
        Column::left("cause", 0),
        Column::left("function", 0),
        Column::left("stressor", 0),
        Column::right("trials", 1),
    ];
    let rows = document
        .causes
        .iter()
        .take(CAUSES)
        .map(|cause| {
            let kind = match cause.kind.as_str() {
                "irqs-disabled" => "interrupts disabled",
                _ => "not preempted",
            };
            vec![
                Cell(format::count(cause.longest), Tone::Strong),
                Cell::plain(micros(document, cause.longest)),
                Cell::plain(kind),
                Cell::plain(format::plain(&cause.function)),
                Cell::plain(format::plain(&cause.stressor)),
                Cell::plain(format::count(cause.trials)),
            ]
        })
        .collect();
    table::write(out, columns, rows);
    if document.causes.len() > CAUSES {
        let more = (document.causes.len() - CAUSES) as u64;
        out.line(&format!("  … and {} in hunt.json", format::counted(more, "more cause")));
    }
}

fn write_trials(out: &mut Page, document: &HuntDocument) {
    let mut trials: Vec<&Trial> = document.trials.iter().collect();
    trials.retain(|trial| trial.worst_ns.is_some());
    trials.sort_by_key(|trial| std::cmp::Reverse(trial.worst_ns));
    let columns = vec![
        Column::left("stressor", 0),
        Column::right("worst sample, virtual µs", 0),
        Column::right("longest with interrupts disabled, instructions", 1),
        Column::shrinking("remark"),
    ];
    let rows = trials
        .into_iter()
        .take(TRIALS)
        .map(|trial| {
            vec![
                Cell::plain(format::plain(&trial.stressor)),
                Cell(format::micros(Nanos(trial.worst_ns.unwrap_or(0))), Tone::Strong),
                Cell::plain(trial.irqs_disabled.map_or(String::new(), format::count)),
                Cell(format::plain(trial.why.as_deref().unwrap_or("")), Tone::Uncertain),
            ]
        })
        .collect();
    table::write(out, columns, rows);
}
