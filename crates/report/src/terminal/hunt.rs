//! What a search found.

use super::ShowOptions;
use super::paint::{Page, Tone};
use super::table::{self, Cell, Column};
use crate::format;
use crate::sentence::hunt as words;
use punctual_bundle::hunt::{Against, Changed, HuntCause, HuntDocument, TrialState};
use punctual_bundle::summary::VerdictWord;

/// Rows that are shown.
const CAUSES: usize = 12;
const LEAST: usize = 6;
const CHANGES: usize = 10;
const FAILED: usize = 6;

/// The whole page. `directory` stands in the commands that it names.
pub fn hunt(document: &HuntDocument, directory: &str, options: &ShowOptions) -> String {
    let mut out = Page::new(options);
    out.heading(&format!("search on kernel {}", format::plain(&document.kernel)));
    out.paragraph("  ", "  ", Tone::Plain, &words::extent(document));
    write_required(&mut out, document);
    out.heading("causes, the longest first");
    write_causes(&mut out, document);
    out.heading("the smallest loads that show them");
    write_least(&mut out, document, directory);
    write_failed(&mut out, document);
    document.against.iter().for_each(|against| write_against(&mut out, document, against));
    out.heading("what this does not prove");
    out.paragraph("  ", "  ", Tone::Faint, words::NO_BOUND);
    out.finish()
}

fn write_required(out: &mut Page, document: &HuntDocument) {
    for required in &document.required {
        let tone = match required.verdict {
            VerdictWord::Met => Tone::Plain,
            _ => Tone::Bad,
        };
        out.paragraph("  ", "    ", tone, &words::required(required));
    }
}

fn write_causes(out: &mut Page, document: &HuntDocument) {
    let columns = vec![
        Column::right("", 0),
        Column::right("instructions", 0),
        Column::right("virtual µs", 0),
        Column::left("cause", 0),
        Column::shrinking("function"),
        Column::right("trials", 1),
    ];
    let row = |number: String, cause: &HuntCause| {
        vec![
            Cell::plain(number),
            Cell(format::count(cause.longest), Tone::Strong),
            Cell::plain(words::micros(document, cause.longest)),
            Cell::plain(words::kind(&cause.kind)),
            Cell::plain(format::plain(&cause.function)),
            Cell::plain(format::count(cause.trials)),
        ]
    };
    let causes = document.causes.iter().take(CAUSES).enumerate();
    let mut rows: Vec<_> =
        causes.map(|(place, cause)| row((place + 1).to_string(), cause)).collect();
    rows.extend(document.worst.iter().map(|worst| row("0".to_owned(), worst)));
    table::write(out, columns, rows);
    let more = document.causes.len().saturating_sub(CAUSES) as u64 + document.more_causes;
    if more > 0 {
        out.line(&format!("  … and {} in hunt.json", format::counted(more, "more cause")));
    }
}

fn write_least(out: &mut Page, document: &HuntDocument, directory: &str) {
    let causes = document.causes.iter().take(LEAST).enumerate();
    let causes = causes.map(|(place, cause)| (place + 1, cause));
    for (number, cause) in causes.chain(document.worst.iter().map(|worst| (0, worst))) {
        let text = words::least(cause);
        out.paragraph(&format!("  {number}  "), "     ", Tone::Plain, &text);
        if let Some(file) = &cause.least.file {
            let command = format!("punctual run {directory}/{file} --exact");
            out.line(&format!("     {}", format::plain(&command)));
        }
    }
}

fn write_failed(out: &mut Page, document: &HuntDocument) {
    let failed = document.trials.iter().filter(|trial| trial.state == TrialState::Failed);
    let failed: Vec<_> = failed.collect();
    if failed.is_empty() {
        return;
    }
    out.heading("failed trials");
    for trial in failed.iter().take(FAILED) {
        let why = format::plain(trial.why.as_deref().unwrap_or("it is not known why"));
        let text = format!("{}: {why}", format::plain(&trial.loads.join("; ")));
        out.paragraph(&format!("  {}  ", trial.number), "     ", Tone::Plain, &text);
        if let Some(console) = &trial.console {
            out.line(&format!("     {}", format::plain(console)));
        }
    }
    if failed.len() > FAILED {
        let more = (failed.len() - FAILED) as u64;
        out.line(&format!("  … and {} in hunt.json", format::counted(more, "more trial")));
    }
}

fn write_against(out: &mut Page, document: &HuntDocument, against: &Against) {
    let (here, there) = (format::plain(&document.kernel), format::plain(&against.kernel));
    out.heading(&format!("{here} against {there}"));
    out.paragraph("  ", "  ", Tone::Plain, &words::against(against));
    let columns = vec![
        Column::left("change", 0),
        Column::right(&format!("{here}, instructions"), 0),
        Column::right(&there, 0),
        Column::left("cause", 1),
        Column::shrinking("function"),
    ];
    let changed = against.changes.iter().filter(|change| change.change != Changed::Same);
    let rows: Vec<_> = changed
        .take(CHANGES)
        .map(|change| {
            let length = |length: u64| match length {
                0 => "–".to_owned(),
                length => format::count(length),
            };
            vec![
                Cell(words::changed(change.change).to_owned(), Tone::Strong),
                Cell::plain(length(change.here)),
                Cell::plain(length(change.there)),
                Cell::plain(words::kind(&change.kind)),
                Cell::plain(format::plain(&change.function)),
            ]
        })
        .collect();
    table::write(out, columns, rows);
}
