//! Coverage of programs with points at every function or step, by source file.

use super::paint::TextPage;
use super::{ShowOptions, table};
use crate::format;
use crate::tables::{Cell, Column, Table};
use punctual_bundle::steps::{FileSteps, LineSteps, StepCounts};

/// How many of these ran.
fn ran_of(counts: impl Iterator<Item = u64>) -> Cell {
    let (mut ran, mut all) = (0_u64, 0_u64);
    counts.for_each(|count| (ran, all) = (ran + u64::from(count > 0), all + 1));
    match all {
        0 => Cell::text("–"),
        _ => Cell::text(format!("{} of {}", format::count_text(ran), format::count_text(all))),
    }
}

/// Lines with code that did not run: `34, 51-58`.
fn not_run(file: &FileSteps) -> String {
    let lines: Vec<(u64, u64)> =
        file.lines.iter().map(|(at, line)| (*at, line.run_count())).collect();
    let runs = lines.chunk_by(|a, b| (a.1 == 0) == (b.1 == 0)).filter(|run| run[0].1 == 0);
    let runs = runs.map(|run| match run {
        [(line, _)] => line.to_string(),
        _ => format!("{}-{}", run[0].0, run[run.len() - 1].0),
    });
    runs.collect::<Vec<_>>().join(", ")
}

/// The source files.
pub fn show_steps(counts: &StepCounts, options: &ShowOptions) -> String {
    let mut out = TextPage::new(options);
    let columns = vec![
        Column::text("file", 0).with_verbatim_heading(),
        Column::text("functions", 0),
        Column::text("lines", 0).with_explanation("at which a step begins"),
        Column::text("further lines", 1)
            .with_explanation("by the line table, from the step before"),
        Column::text("steps", 0),
        Column::text("lines not run", 0).with_listing(),
    ];
    let rows = counts.files.iter().map(|(path, file)| {
        let lines = |derived| {
            let lines = file.lines.values().filter(move |line| line.is_derived() == derived);
            ran_of(lines.map(LineSteps::run_count))
        };
        vec![
            Cell::name(path),
            ran_of(file.functions.values().copied()),
            lines(false),
            lines(true),
            ran_of(file.lines.values().flat_map(|line| line.steps.iter().copied())),
            Cell::text(not_run(file)),
        ]
    });
    let table =
        Table::new("what ran", columns).with_row_limit(usize::MAX, usize::MAX).with_rows(rows);
    table::write_section(&mut out, &table);
    if !counts.findings.is_empty() {
        super::findings::write(&mut out, &counts.findings);
    }
    out.finish()
}
