//! The tables of a lab's report.

use crate::format::{count, micros_f64, span};
use crate::html::table::{Cell, Column, Table};
use crate::html::text::{clip, name};
use crate::sentence::lab as words;
use punctual_bundle::lab::{CellDocument, CellSeries, CellState, LabDocument, PublishedRow};
use punctual_bundle::summary::VerdictWord;
use punctual_core::Nanos;

/// Rows of a table; the rest is in lab.json, with a note.
const ROWS: usize = 2_000;
/// Digits of a digest: enough to see that two differ.
const DIGITS: usize = 16;

fn time(ns: Option<f64>) -> Cell {
    ns.map_or(Cell::missing("–"), |ns| Cell {
        exact: Some(format!("{ns} ns")),
        ..Cell::figure(micros_f64(ns), ns)
    })
}

fn whole(ns: Option<i64>) -> Cell {
    time(ns.map(|ns| ns as f64))
}

/// A phase is named only where it is not called like the series' own measure, or like the only
/// phase of an experiment.
fn title(series: &CellSeries) -> String {
    let figures = &series.figures;
    match figures.phase == "main" || figures.phase == figures.measure {
        true => name(&figures.series),
        false => name(&format!("{}/{}", figures.phase, figures.series)),
    }
}

fn bounded(caption: String, rows: &mut Vec<Vec<Cell>>) -> String {
    let more = rows.len().saturating_sub(ROWS);
    rows.truncate(ROWS);
    if more > 0 { format!("{caption} {more} more rows are in lab.json.") } else { caption }
}

/// Where the figures of a series of a cell stand, by their numbers; `None` where the table has no
/// room for them.
pub fn figures_place(lab: &LabDocument, cell: usize, series: usize) -> Option<String> {
    let row = lab.cells[..cell].iter().map(|before| before.series.len()).sum::<usize>() + series;
    (row < ROWS).then(|| format!("figures-{row}"))
}

/// Where verdict and bundle of a cell stand.
fn cell_place(number: usize) -> Option<String> {
    (number < ROWS).then(|| format!("cell-{number}"))
}

/// Every figure of every cell.
pub fn figures(lab: &LabDocument) -> Table {
    let columns = [
        "Samples", "Min", "Mean", "Median", "Mode", "Std dev", "p99", "p99.9", "p99.99", "Max",
        "Overruns", "Lost",
    ];
    let mut all = vec![Column::text("Cell"), Column::text("Series")];
    all.extend(columns.map(Column::figures));
    let each = lab.cells.iter().enumerate();
    let each =
        each.flat_map(|(k, cell)| (0..cell.series.len()).map(move |series| (k, cell, series)));
    let row = |(number, cell, series): (usize, &CellDocument, usize)| {
        let places = (figures_place(lab, number, series), cell_place(number));
        let series = &cell.series[series];
        let f = &series.figures;
        let percentile = |key: &str| whole(f.percentiles.get(key).copied());
        let losses = |n: Option<u64>| n.map_or(Cell::missing("unknown"), Cell::count);
        vec![
            Cell::text(name(&cell.name)).at(places.0).to(places.1),
            Cell::text(title(series)),
            Cell::count(f.count),
            whole(f.min),
            time(f.mean),
            whole(f.median),
            whole(series.modes.first().copied()),
            time(f.stddev),
            percentile("99"),
            percentile("99.9"),
            percentile("99.99"),
            whole(f.max),
            losses(f.overruns),
            losses(f.lost),
        ]
    };
    let mut rows: Vec<Vec<Cell>> = each.map(row).collect();
    let caption = "Latency in µs, all seeds of a cell together. The mode is the lower edge of the \
                   fullest bin."
        .to_owned();
    Table { caption: bounded(caption, &mut rows), columns: all, rows, sortable: true }
}

/// Each published table with its setup.
pub fn published(lab: &LabDocument) -> Vec<(String, Table)> {
    let columns = || {
        vec![
            Column::text("Published"),
            Column::figures("Min"),
            Column::figures("Mean"),
            Column::figures("Max"),
            Column::text("Here"),
            Column::figures("Min"),
            Column::figures("Mean"),
            Column::figures("Max"),
        ]
    };
    let table = |published: &punctual_bundle::lab::PublishedDocument| Table {
        caption: format!("{}, in µs", name(&published.title)),
        columns: columns(),
        rows: published.rows.iter().flat_map(|row| beside(lab, row)).collect(),
        sortable: false,
    };
    let known = lab.published.iter().filter(|published| !published.rows.is_empty());
    known
        .map(|published| (clip(&crate::format::plain(&published.setup), 1_000), table(published)))
        .collect()
}

/// A published row, and a row for each series here that is its counterpart.
fn beside(lab: &LabDocument, row: &PublishedRow) -> Vec<Vec<Cell>> {
    let cells = lab.cells.iter().filter(|cell| row.is_of(cell));
    let here: Vec<(&CellDocument, &CellSeries)> = cells
        .flat_map(|cell| {
            cell.series.iter().filter(|s| row.covers(&s.figures.series)).map(move |s| (cell, s))
        })
        .collect();
    let own = |first: bool| {
        if !first {
            return vec![Cell::default(), Cell::default(), Cell::default(), Cell::default()];
        }
        let label = Cell::text(name(&row.label));
        let label = if row.note.is_empty() { label } else { label.sub(name(&row.note)) };
        vec![label, whole(row.min), whole(row.mean), whole(row.max)]
    };
    if here.is_empty() {
        let nothing =
            [Cell::missing("no such cell"), Cell::default(), Cell::default(), Cell::default()];
        return vec![own(true).into_iter().chain(nothing).collect()];
    }
    let row_of = |(k, (cell, series)): (usize, &(&CellDocument, &CellSeries))| {
        let f = &series.figures;
        let here = [
            Cell::text(name(&cell.name)).sub(title(series)),
            whole(f.min),
            time(f.mean),
            whole(f.max),
        ];
        own(k == 0).into_iter().chain(here).collect()
    };
    here.iter().enumerate().map(row_of).collect()
}

/// How far the seeds of each cell lie apart.
pub fn seeds(lab: &LabDocument, directory: &str) -> Option<Table> {
    let several = lab.cells.iter().filter(|cell| cell.seeds.len() > 1);
    let each = several.flat_map(|cell| cell.series.iter().map(move |series| (cell, series)));
    let row = |(cell, series): (&CellDocument, &CellSeries)| {
        let same = |one: &&punctual_bundle::lab::SeriesFigures| {
            (&one.phase, &one.series) == (&series.figures.phase, &series.figures.series)
        };
        let mut maxima: Vec<i64> =
            cell.seeds.iter().filter_map(|seed| seed.series.iter().find(same)?.max).collect();
        maxima.sort_unstable();
        let replay =
            Cell { code: true, ..Cell::text(words::replay(directory, cell, series.worst_seed)) };
        vec![
            Cell::text(name(&cell.name)),
            Cell::text(title(series)),
            Cell::count(maxima.len() as u64),
            whole(maxima.first().copied()),
            whole(maxima.get(maxima.len() / 2).copied()),
            whole(maxima.last().copied()),
            series
                .worst_seed
                .map_or(Cell::missing("–"), |seed| Cell::figure(seed.to_string(), seed as f64)),
            replay,
        ]
    };
    let mut rows: Vec<Vec<Cell>> = each.map(row).collect();
    let columns = vec![
        Column::text("Cell"),
        Column::text("Series"),
        Column::figures("Seeds"),
        Column::figures("Best max"),
        Column::figures("Median max"),
        Column::figures("Worst max"),
        Column::figures("Worst seed"),
        Column::text("Replay with the recorder (--plain: exactly)"),
    ];
    let caption = bounded("The largest latency of each seed, in µs.".to_owned(), &mut rows);
    (!rows.is_empty()).then_some(Table { caption, columns, rows, sortable: true })
}

/// Verdict, digest and time of each cell.
pub fn cells(lab: &LabDocument, directory: &str) -> Table {
    let row = |(number, cell): (usize, &CellDocument)| {
        let took: Vec<i64> =
            cell.seeds.iter().flat_map(|seed| &seed.runs).filter_map(|run| run.took).collect();
        let mean = took.iter().sum::<i64>().checked_div(took.len() as i64);
        let bundle = cell.bundle.as_ref().map_or(Cell::missing("none"), |bundle| Cell {
            code: true,
            ..Cell::text(name(&format!("{directory}/{bundle}")))
        });
        vec![
            Cell::text(name(&cell.name)).at(cell_place(number)),
            verdict(cell),
            equality(cell),
            cell.digest.as_ref().map_or(Cell::missing("none"), |digest| Cell {
                exact: Some(name(digest)),
                code: true,
                ..Cell::text(clip(&name(digest), DIGITS))
            }),
            Cell::figure(count(took.len() as u64), took.len() as f64),
            mean.map_or(Cell::missing("–"), |ns| Cell::figure(span(Nanos(ns)), ns as f64)),
            Cell::text(name(&cell.target)),
            bundle,
        ]
    };
    let mut rows: Vec<Vec<Cell>> = lab.cells.iter().enumerate().map(row).collect();
    let columns = vec![
        Column::text("Cell"),
        Column::text("Verdict"),
        Column::text("Repetitions"),
        Column::text("Digest").meaning("hash of all samples: equal if every sample is equal"),
        Column::figures("Runs"),
        Column::figures("Time of a run").meaning("on the clock of the host"),
        Column::text("Where"),
        Column::text("Bundle of the worst seed"),
    ];
    Table {
        caption: bounded("State of each cell.".to_owned(), &mut rows),
        columns,
        rows,
        sortable: true,
    }
}

fn verdict(cell: &CellDocument) -> Cell {
    let made = match cell.state {
        CellState::Failed => {
            Cell::default().badge("failed", "bad").sub(clip(&cell.trouble.join("; "), 300))
        }
        CellState::Waiting => Cell::default().badge("not run to completion", "warn"),
        CellState::Done => Cell::default(),
    };
    match cell.verdict {
        Some(VerdictWord::Met) => made.badge("met", "good"),
        Some(VerdictWord::NotMet) => made.badge("not met", "bad"),
        Some(VerdictWord::Invalid) => made.badge("invalid", "bad"),
        Some(VerdictWord::Undecided) => made.badge("undecided", "warn"),
        None => made,
    }
}

fn equality(cell: &CellDocument) -> Cell {
    match cell.equal {
        Some(true) => Cell::default()
            .badge("equal", "good")
            .sub(format!("{} runs a seed", cell.repeats.len())),
        Some(false) => Cell::default().badge("DIFFER", "bad"),
        None if cell.repeats.len() < 2 => Cell::missing("one run"),
        None => Cell::missing("not deterministic"),
    }
}
