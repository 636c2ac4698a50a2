//! The figures of a lab: of each cell, of its seeds, and beside published ones.

use super::{Cell, Column, Face, Table, Tone, Value};
use crate::sentence::lab as words;
use punctual_bundle::lab::{
    AxisDocument, CellDocument, CellSeries, CellState, LabDocument, PublishedDocument,
    PublishedRow, SeriesFigures,
};
use punctual_bundle::summary::VerdictWord;
use punctual_stats::lab::{METRICS, figure_value};

/// Rows of a table on a page; lab.json has the rest, which a note says.
pub const ROWS: usize = 2_000;
/// Digits of a digest, enough to see that two differ.
const DIGITS: usize = 16;
/// Only a page has room for all figures; a terminal identifies a cell by its values on the axes.
const PAGE: Face = Face::Page;
const TERMINAL: Face = Face::Terminal;

/// The address of the figures of a series of a cell, by index; `None` if the table has no room for
/// them.
pub(crate) fn figures_place(lab: &LabDocument, cell: usize, series: usize) -> Option<String> {
    let row = lab.cells[..cell].iter().map(|before| before.series.len()).sum::<usize>() + series;
    (row < ROWS).then(|| format!("#figures-{row}"))
}

/// The address of a cell's verdict and bundle.
pub(crate) fn cell_place(number: usize) -> Option<String> {
    (number < ROWS).then(|| format!("#cell-{number}"))
}

/// The title of a series. The phase is named unless it equals the name of the series' own measure,
/// or that of the only phase of an experiment.
pub(crate) fn series_title(series: &CellSeries) -> String {
    let figures = &series.figures;
    match figures.phase == "main" || figures.phase == figures.measure {
        true => figures.series.clone(),
        false => format!("{}/{}", figures.phase, figures.series),
    }
}

/// Every cell with its figures of one series, by its value on each axis.
pub fn of_series(lab: &LabDocument, phase: &str, series: &str) -> Table {
    let row = |cell: &CellDocument| {
        let is_it =
            |one: &&CellSeries| (&*one.figures.phase, &*one.figures.series) == (phase, series);
        figure_row(lab, cell, cell.series.iter().find(is_it))
    };
    Table::new(format!("{phase}/{series}"), figure_columns(lab))
        .with_rows(lab.cells.iter().map(row))
        .with_row_limit(usize::MAX, usize::MAX)
}

/// Every series of every cell.
pub(crate) fn figure_table(lab: &LabDocument) -> Table {
    let title = "latency, all seeds of a cell together";
    let all_cells = lab.cells.iter().enumerate();
    let all_series = all_cells.flat_map(|of| of.1.series.iter().map(move |series| (of, series)));
    let rows = all_series.enumerate().map(|(number, ((place, cell), series))| {
        let mut row = figure_row(lab, cell, Some(series));
        row[0].place = Some(format!("figures-{number}"));
        row[0].link = cell_place(place);
        row
    });
    let mut table = Table::new(title, figure_columns(lab))
        .with_rows(rows)
        .with_sorting()
        .with_row_limit(ROWS, ROWS);
    table.add_remark(Tone::Plain, "the mode is the lower edge of the fullest bin");
    table
}

fn figure_columns(lab: &LabDocument) -> Vec<Column> {
    let axis =
        |axis: &AxisDocument| Column::text(&axis.name, 0).at_most(24).with_verbatim_heading();
    let mut columns = vec![
        Column::text("cell", 0).with_only_face(PAGE),
        Column::text("series", 0).with_only_face(PAGE),
    ];
    columns.extend(lab.axes.iter().map(|one| axis(one).with_only_face(TERMINAL)));
    columns.push(Column::figures("samples", 3));
    columns.extend(["min", "mean"].map(|name| Column::figures(name, 0).with_only_face(PAGE)));
    let metric = |name: &str| Column::figures(name, if name == "p99" { 2 } else { 0 });
    columns.push(metric(METRICS[0]));
    columns.extend(["mode", "std dev"].map(|name| Column::figures(name, 0).with_only_face(PAGE)));
    columns.extend([metric(METRICS[1]), metric(METRICS[2])]);
    columns.push(Column::figures("p99.99", 0).with_only_face(PAGE));
    columns.push(metric(METRICS[3]));
    columns.extend(["overruns", "lost"].map(|name| Column::figures(name, 0).with_only_face(PAGE)));
    let best = Column::figures("best max", 4).with_explanation("the smallest maximum of a seed");
    columns.extend([
        Column::figures("worst seed", 5).with_only_face(TERMINAL),
        best.with_only_face(TERMINAL),
    ]);
    columns.push(Column::text("verdict", 0).with_only_face(TERMINAL));
    columns
}

fn time_cell(ns: Option<f64>) -> Cell {
    Cell::time_or(ns, "–")
}

fn whole_time_cell(ns: Option<i64>) -> Cell {
    time_cell(ns.map(|ns| ns as f64))
}

fn figure_row(lab: &LabDocument, cell: &CellDocument, found: Option<&CellSeries>) -> Vec<Cell> {
    let figures = found.map(|one| &one.figures);
    let metric_cell =
        |metric: &str| whole_time_cell(figures.and_then(|figures| figure_value(figures, metric)));
    let losses = |n: fn(&SeriesFigures) -> Option<u64>| {
        figures.map_or_else(Cell::default, |figures| Cell::loss_count(n(figures)))
    };
    let spread = found.filter(|_| cell.seeds.len() > 1);
    let seed = spread.and_then(|one| one.worst_seed);
    let mut row = vec![
        Cell::name(&cell.name),
        found.map_or_else(Cell::default, |one| Cell::name(series_title(one))),
    ];
    row.extend(
        lab.axes
            .iter()
            .map(|axis| cell.axes.get(&axis.name).map_or_else(Cell::default, Cell::text)),
    );
    row.extend([
        figures.map_or_else(|| Cell::absent("–"), |figures| Cell::count(figures.count)),
        metric_cell("min"),
        time_cell(figures.and_then(|figures| figures.mean)),
        metric_cell(METRICS[0]),
        whole_time_cell(found.and_then(|one| one.modes.first().copied())),
        time_cell(figures.and_then(|figures| figures.stddev)),
        metric_cell(METRICS[1]),
        metric_cell(METRICS[2]),
        metric_cell("p99.99"),
        metric_cell(METRICS[3]),
        losses(|figures| figures.overruns),
        losses(|figures| figures.lost),
        seed.map_or_else(Cell::default, |seed| Cell::figure(seed as f64, seed.to_string())),
        spread.map_or_else(Cell::default, |one| whole_time_cell(one.best_max)),
        verdict_of(cell, found),
    ]);
    row
}

fn verdict_of(cell: &CellDocument, series: Option<&CellSeries>) -> Cell {
    if let Some((word, tone)) = state_label(cell) {
        return Cell::verdict("", word, tone);
    }
    if cell.equal == Some(false) {
        return Cell::verdict("", "repetitions differ", Tone::Bad);
    }
    let series_verdict = |series: &CellSeries| {
        VerdictWord::gravest_verdict(series.requirements.iter().map(|r| r.verdict))
    };
    // Reasons without a requirement, such as the sample that ended the run, apply to every series.
    let gravest_shown = VerdictWord::gravest_verdict(cell.series.iter().filter_map(series_verdict));
    let is_graver =
        |word: &VerdictWord| gravest_shown.is_none_or(|of| word.gravity_rank() > of.gravity_rank());
    let graver_verdict = cell.verdict.filter(is_graver);
    let all = [series.and_then(series_verdict), graver_verdict];
    VerdictWord::gravest_verdict(all.into_iter().flatten()).map_or_else(Cell::default, Cell::from)
}

/// Why a cell has no figures.
fn state_label(cell: &CellDocument) -> Option<(&'static str, Tone)> {
    match cell.state {
        CellState::Failed => Some(("failed", Tone::Bad)),
        CellState::Waiting => Some(("not run to completion", Tone::Uncertain)),
        CellState::Done => None,
    }
}

/// A published table: each row, and a row for each local series that is its counterpart.
pub(crate) fn published_table(lab: &LabDocument, published: &PublishedDocument) -> Table {
    let figures = || ["min", "mean", "max"].map(|name| Column::figures(name, 0));
    let mut columns = vec![Column::text("published", 0)];
    columns.extend(figures());
    columns.push(Column::text("here", 0));
    columns.extend(figures());
    let rows = published.rows.iter().flat_map(|row| published_rows(lab, row));
    Table::new(&published.title, columns).with_rows(rows).with_row_limit(usize::MAX, usize::MAX)
}

fn published_rows(lab: &LabDocument, row: &PublishedRow) -> Vec<Vec<Cell>> {
    let cells = lab.cells.iter().filter(|cell| row.is_of(cell));
    let local_series = cells.flat_map(|cell| {
        cell.series
            .iter()
            .filter(|s| row.is_about_series(&s.figures.series))
            .map(move |s| (cell, s))
    });
    let mut local_cells: Vec<Vec<Cell>> = local_series
        .map(|(cell, series)| {
            let f = &series.figures;
            vec![
                Cell::name(&cell.name).sub(series_title(series)),
                whole_time_cell(f.min),
                time_cell(f.mean),
                whole_time_cell(f.max),
            ]
        })
        .collect();
    if local_cells.is_empty() {
        local_cells.push(vec![
            Cell::absent("no such cell"),
            Cell::default(),
            Cell::default(),
            Cell::default(),
        ]);
    }
    let label = Cell::name(&row.label);
    let label = if row.note.is_empty() { label } else { label.sub(&row.note) };
    let published_cells =
        vec![label, whole_time_cell(row.min), whole_time_cell(row.mean), whole_time_cell(row.max)];
    let nothing = vec![Cell::default(); 4];
    let begin = std::iter::once(published_cells).chain(std::iter::repeat(nothing));
    begin.zip(local_cells).map(|(own, here)| own.into_iter().chain(here).collect()).collect()
}

/// The spread between the seeds of each cell.
pub(crate) fn seed_table(lab: &LabDocument, directory: &str) -> Table {
    let several = lab.cells.iter().filter(|cell| cell.seeds.len() > 1);
    let several_series =
        several.flat_map(|cell| cell.series.iter().map(move |series| (cell, series)));
    let row = |(cell, series): (&CellDocument, &CellSeries)| {
        let same = |one: &&SeriesFigures| {
            (&one.phase, &one.series) == (&series.figures.phase, &series.figures.series)
        };
        let mut maxima: Vec<i64> =
            cell.seeds.iter().filter_map(|seed| seed.series.iter().find(same)?.max).collect();
        maxima.sort_unstable();
        let seed = series.worst_seed;
        vec![
            Cell::name(&cell.name),
            Cell::name(series_title(series)),
            Cell::count(maxima.len() as u64),
            whole_time_cell(maxima.first().copied()),
            whole_time_cell(maxima.get(maxima.len() / 2).copied()),
            whole_time_cell(maxima.last().copied()),
            seed.map_or_else(
                || Cell::absent("–"),
                |seed| Cell::figure(seed as f64, seed.to_string()),
            ),
            Value::Command(words::replay_command(directory, cell, seed)).into(),
        ]
    };
    let figures = ["seeds", "best max", "median max", "worst max", "worst seed"];
    let mut columns = vec![Column::text("cell", 0), Column::text("series", 0)];
    columns.extend(figures.map(|name| Column::figures(name, 0)));
    columns.push(Column::text("what delayed it", 0));
    let rows = several_series.map(row);
    Table::new("the largest latency of each seed", columns)
        .with_rows(rows)
        .with_sorting()
        .with_row_limit(ROWS, ROWS)
}

/// Verdict, digest and time of each cell; `pages` are the links to their pages.
pub(crate) fn cell_table(lab: &LabDocument, directory: &str, pages: &[Option<String>]) -> Table {
    let row = |(number, cell): (usize, &CellDocument)| {
        let took: Vec<i64> =
            cell.seeds.iter().flat_map(|seed| &seed.runs).filter_map(|run| run.took).collect();
        let mean = took.iter().sum::<i64>().checked_div(took.len() as i64);
        let command = |text: String| Cell::from(Value::Command(text));
        let place = cell_place(number).map(|place| place.replace('#', ""));
        vec![
            Cell { place, link: page_of(pages, number), ..Cell::name(&cell.name) },
            verdict_cell(cell),
            equality_cell(cell),
            cell.digest.as_ref().map_or_else(
                || Cell::absent("none"),
                |digest| {
                    let begin = digest.chars().take(DIGITS).collect();
                    command(begin).with_exact(digest)
                },
            ),
            Cell::count(took.len() as u64),
            mean.map_or_else(|| Cell::absent("–"), |ns| Value::Span(ns).into()),
            Cell::name(&cell.target),
            cell.bundle.as_ref().map_or_else(
                || Cell::absent("none"),
                |bundle| command(format!("{directory}/{bundle}")),
            ),
        ]
    };
    let columns = vec![
        Column::text("cell", 0),
        Column::text("verdict", 0),
        Column::text("repetitions", 0),
        Column::text("digest", 0)
            .with_meaning("hash of all samples: equal if every sample is equal"),
        Column::figures("runs", 0),
        Column::figures("time of a run", 0).with_meaning("on the clock of the host"),
        Column::text("where", 0),
        Column::text("bundle of the worst seed", 0),
    ];
    let rows = lab.cells.iter().enumerate().map(row);
    Table::new("state of each cell", columns)
        .with_rows(rows)
        .with_sorting()
        .with_row_limit(ROWS, ROWS)
        .without_timebase()
}

/// The path of a cell's page as a link: no part of it is parsed as a scheme, a query or a fragment.
pub fn page_of(pages: &[Option<String>], cell: usize) -> Option<String> {
    let mut text = String::new();
    for byte in pages.get(cell)?.as_ref()?.bytes() {
        match byte {
            b'/' | b'.' | b'-' | b'_' | b'~' => text.push(char::from(byte)),
            byte if byte.is_ascii_alphanumeric() => text.push(char::from(byte)),
            byte => text += &format!("%{byte:02X}"),
        }
    }
    Some(text)
}

fn verdict_cell(cell: &CellDocument) -> Cell {
    let mut made_cell = cell.verdict.map_or_else(Cell::default, Cell::from);
    if let Some((word, tone)) = state_label(cell) {
        made_cell.labels.insert(0, (word.to_owned(), tone));
    }
    if cell.state == CellState::Failed {
        made_cell = made_cell.sub(cell.trouble.join("; "));
    }
    made_cell
}

fn equality_cell(cell: &CellDocument) -> Cell {
    match cell.equal {
        Some(true) => Cell::verdict("", "equal", Tone::Good)
            .sub(format!("{} runs a seed", cell.repeats.len())),
        Some(false) => Cell::verdict("", "DIFFER", Tone::Bad),
        None if cell.repeats.len() < 2 => Cell::absent("one run"),
        None => Cell::absent("not deterministic"),
    }
}

/// The index of a series among those of a cell.
pub(crate) fn place_of(cell: &CellDocument, series: &(String, String)) -> Option<usize> {
    cell.series
        .iter()
        .position(|one| (&one.figures.phase, &one.figures.series) == (&series.0, &series.1))
}

/// A figure of a series of a cell, in ns.
pub(crate) fn cell_figure(
    cell: &CellDocument,
    series: &(String, String),
    metric: &str,
) -> Option<i64> {
    place_of(cell, series).and_then(|place| figure_value(&cell.series[place].figures, metric))
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_bundle::summary::RequirementSummary;

    fn cell(verdict: VerdictWord) -> CellDocument {
        let figures = serde_json::json!({
            "phase": "main", "series": "t", "measure": "t", "count": 1, "lost": 0, "overruns": 0,
            "min": 1, "mean": 1.0, "median": 1, "max": 1, "stddev": 0.0, "percentiles": {},
        });
        let figures = serde_json::from_value(figures).expect("figures");
        let requirements = vec![RequirementSummary {
            requirement: "max < 1ms".to_owned(),
            verdict: VerdictWord::Met,
            figure: Some(1.0),
            beyond: None,
            reason: None,
        }];
        let series = CellSeries { figures, requirements, ..CellSeries::default() };
        CellDocument {
            name: "a".to_owned(),
            state: CellState::Done,
            verdict: Some(verdict),
            series: vec![series],
            ..CellDocument::default()
        }
    }

    /// A run that `stop_above` ended is not met, whatever its requirements are.
    #[test]
    fn the_verdict_of_a_lab_series_includes_violations_of_stop_above() {
        let met = cell(VerdictWord::Met);
        assert_eq!(verdict_of(&met, met.series.first()), Cell::from(VerdictWord::Met));
        let stopped = cell(VerdictWord::NotMet);
        assert_eq!(verdict_of(&stopped, stopped.series.first()), Cell::from(VerdictWord::NotMet));
        assert_eq!(verdict_of(&met, None), Cell::default());
    }
}
