//! The work of loads in the cells of a lab beside the latencies: the price of each value of an
//! axis.

use super::lab_figures::{ROWS, cell_figure, cell_place};
use super::{Cell, Column, Table};
use crate::format::{count_text, escape_unsafe};
use crate::sentence::lab as words;
use punctual_bundle::lab::LabDocument;
use punctual_stats::lab::{Throughput, estimate_prices, find_knees, list_throughputs, of_cell};

/// Series whose worst latencies are beside the work.
pub(crate) const SERIES: usize = 3;

/// The load with its stressor, or the counter.
pub(crate) fn work_name(lab: &LabDocument, of: &Throughput) -> String {
    let phases = list_throughputs(lab).iter().any(|other| other.phase != of.phase);
    let name = match of.load.is_empty() || of.load == of.what {
        true => of.what.clone(),
        false => format!("{} ({})", of.what, of.load),
    };
    escape_unsafe(&if phases { format!("{name}, {}", of.phase) } else { name })
}

/// Units a second.
pub(crate) fn format_rate(per_second: f64) -> String {
    match per_second {
        small if small < 1_000.0 => format!("{small:.1}"),
        large => count_text(large.round() as u64),
    }
}

/// The work of each cell, with the maxima of its first series.
pub(crate) fn work_table(lab: &LabDocument) -> Table {
    let shown_series: Vec<(String, String)> = lab.all_series().into_iter().take(SERIES).collect();
    let mut columns = vec![
        Column::text("cell", 0).at_most(28),
        Column::text("work", 0).at_most(32),
        Column::figures("a second", 0),
        Column::figures("of first", 1).with_meaning("relative to the first cell that has it"),
        Column::figures("runs", 4).with_meaning("of the load, that ended by themselves"),
    ];
    columns
        .extend(shown_series.iter().map(|(_, series)| Column::figures(format!("max {series}"), 2)));
    let mut rows = Vec::new();
    for of in list_throughputs(lab) {
        let (name, mut first) = (work_name(lab, &of), None);
        for (number, cell) in lab.cells.iter().enumerate() {
            let work = of_cell(cell, &of).and_then(|work| Some((work.per_second()?, work.runs)));
            let Some((own, runs)) = work else { continue };
            let first = *first.get_or_insert(own);
            let mut row = vec![
                Cell { link: cell_place(number), ..Cell::name(&cell.name) },
                Cell::name(&name),
                Cell::figure(own, format_rate(own)),
                Cell::figure(own / first, words::format_ratio(own / first)),
                Cell::count(runs),
            ];
            row.extend(shown_series.iter().map(|series| {
                let max = cell_figure(cell, series, "max");
                max.map_or_else(|| Cell::absent("–"), Cell::time)
            }));
            rows.push(row);
        }
    }
    Table::new("what the loads did in each cell", columns)
        .with_rows(rows)
        .with_sorting()
        .with_row_limit(40, ROWS)
}

/// The work with each value of each axis, over that with its first value.
pub(crate) fn price_table(lab: &LabDocument) -> Table {
    let columns = vec![
        Column::text("value", 0).at_most(32),
        Column::text("against", 0).at_most(24),
        Column::text("work", 0).at_most(32),
        Column::figures("ratio", 0),
        Column::figures("95 % interval", 0),
        Column::figures("pairs", 3).with_meaning("pairs of cells × seeds"),
        Column::text("work a second", 0),
    ];
    let rows = estimate_prices(lab).into_iter().map(|price| {
        let c = &price.contrast;
        let pairs = format!("{} × {}", c.pairs, c.seeds / c.pairs.max(1));
        vec![
            Cell::name(format!("{} {}", price.axis, price.value)),
            Cell::name(&price.against),
            Cell::name(work_name(lab, &price.of)),
            Cell::figure(c.ratio, words::format_ratio(c.ratio)),
            Cell::text(words::format_interval(c)),
            Cell::figure(c.seeds as f64, pairs),
            Cell::text(words::describe_significance(c)),
        ]
    });
    Table::new("price of each axis: work with it, over that with its first value", columns)
        .with_rows(rows)
        .with_sorting()
        .with_row_limit(24, ROWS)
}

/// A sentence for each axis of numbers and each load.
pub(crate) fn knee_sentences(lab: &LabDocument) -> Vec<String> {
    let sentence = |(axis, of, knee): (String, Throughput, Option<String>)| {
        let (axis, what) = (escape_unsafe(&axis), work_name(lab, &of));
        match knee {
            Some(value) => {
                format!("{what} grows until {axis} is {}, and not beyond", escape_unsafe(&value))
            }
            None => format!("{what} has no knee along {axis} that these cells show"),
        }
    };
    find_knees(lab).into_iter().map(sentence).collect()
}
