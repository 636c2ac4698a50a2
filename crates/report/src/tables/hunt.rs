//! The findings of a search.

use super::{Cell, Column, Table, Tone};
use crate::format::{counted, micros, plain};
use crate::sentence::hunt as words;
use punctual_bundle::hunt::{Against, CauseChange, Changed, HuntCause, HuntDocument};
use punctual_core::Nanos;

/// Causes in a terminal, besides the worst sample.
const CAUSES: usize = 12;
const CHANGES: usize = 10;

/// The worst sample (0), then causes, the longest first.
pub fn causes(document: &HuntDocument) -> Table {
    let columns = vec![
        // Numbers of the list of loads below it.
        Column::figures("no.", 0),
        Column::text("function", 0).shrinking().meaning("with the calls around it, where known"),
        Column::figures("instructions", 0),
        Column::figures("virtual µs", 0),
        Column::text("cause", 0),
        Column::figures("trials", 1).meaning("that met it with at least a tenth of its longest"),
    ];
    let worst = document.worst.iter().map(|worst| (0, worst));
    let causes = document.causes.iter().enumerate().map(|(k, cause)| (k + 1, cause));
    let rows = worst.chain(causes).map(|(number, cause)| row(document, number, cause));
    let title = "the worst sample, then causes, the longest first";
    let mut table = Table::new(title, columns).rows(rows).shown(1 + CAUSES, 1_000);
    if document.more_causes > 0 {
        let more = counted(document.more_causes, "more cause");
        table.remark(Tone::Plain, format!("{more} are only counted"));
    }
    table
}

fn row(document: &HuntDocument, number: usize, cause: &HuntCause) -> Vec<Cell> {
    let stack = cause.stack.iter().map(|call| plain(call)).collect::<Vec<_>>().join(" › ");
    vec![
        Cell::figure(number as f64, number.to_string()),
        function(&cause.function).sub(stack),
        Cell::count(cause.longest).strong(),
        Cell::figure(cause.longest as f64, words::micros(document, cause.longest)),
        Cell::text(words::kind(&cause.kind)),
        Cell::count(cause.trials),
    ]
}

fn function(name: &str) -> Cell {
    if name.is_empty() { Cell::absent("–") } else { Cell::name(name) }
}

/// The causes of two kernels: those that changed, then the others, which a terminal omits.
pub fn against(document: &HuntDocument, against: &Against) -> Table {
    let (here, there) = (&document.kernel, &against.kernel);
    let columns = vec![
        Column::text("change", 0),
        Column::figures(format!("{here}, instructions"), 0).verbatim(),
        Column::figures(format!("{there}, instructions"), 0).verbatim(),
        Column::text("cause", 1),
        Column::text("function", 0).shrinking(),
    ];
    let length = |length: u64| match length {
        0 => Cell::absent("not seen"),
        length => Cell::count(length),
    };
    let (same, changed): (Vec<&CauseChange>, Vec<&CauseChange>) =
        against.changes.iter().partition(|change| change.change == Changed::Same);
    let shown = changed.len().min(CHANGES);
    let rows = changed.into_iter().chain(same).map(|change| {
        vec![
            Cell::text(words::changed(change.change)).strong(),
            length(change.here),
            length(change.there),
            Cell::text(words::kind(&change.kind)),
            function(&change.function),
        ]
    });
    Table::new(format!("{here} against {there}"), columns).rows(rows).shown(shown, 1_000)
}

/// Each trial that showed a longer cause than all before.
pub fn coverage(document: &HuntDocument) -> Table {
    let columns = vec![
        Column::figures("trial", 0),
        Column::text("stage", 0),
        Column::figures("longest with interrupts disabled, instructions", 0),
        Column::figures("worst sample, virtual µs", 0),
    ];
    let mut rows = Vec::new();
    let (mut longest, mut worst) = (0, 0);
    for trial in &document.trials {
        let before = (longest, worst);
        longest = longest.max(trial.irqs_disabled.unwrap_or(0));
        worst = worst.max(trial.worst_ns.unwrap_or(0));
        if (longest, worst) != before {
            rows.push(vec![
                Cell::count(trial.number),
                Cell::text(trial.stage.clone()),
                Cell::count(longest),
                Cell::figure(worst as f64, micros(Nanos(worst))),
            ]);
        }
    }
    Table::new("the longest so far, by trial", columns).rows(rows)
}

/// Every trial.
pub fn trials(document: &HuntDocument) -> Table {
    let columns = vec![
        Column::figures("trial", 0),
        Column::text("stage", 0),
        Column::text("loads", 0),
        Column::figures("worst sample, virtual µs", 0),
        Column::figures("longest with interrupts disabled, instructions", 0),
        Column::text("remark", 0),
    ];
    let rows = document.trials.iter().map(|trial| {
        let worst = trial
            .worst_ns
            .map_or_else(|| Cell::absent("none"), |ns| Cell::figure(ns as f64, micros(Nanos(ns))));
        vec![
            Cell::count(trial.number),
            Cell::text(&trial.stage),
            Cell::text(trial.loads.join("; ")),
            worst,
            trial.irqs_disabled.map_or_else(|| Cell::absent("none"), Cell::count),
            Cell::text(trial.why.as_deref().unwrap_or_default()),
        ]
    });
    Table::new("all trials", columns).rows(rows).shown(0, 2_000)
}
