//! A lab: each series with its cells, the effect of each axis, what was required, what failed.

use super::ShowOptions;
use super::paint::{Page, Tone};
use super::table::{self, Cell, Column};
use crate::format;
use crate::sentence::lab as words;
use punctual_analyze::lab::{Effect, METRICS, effects, value};
use punctual_bundle::lab::{CellDocument, CellSeries, CellState, LabDocument};
use punctual_bundle::summary::VerdictWord;

const NAME_WIDTH: usize = 48;
/// Troubles that are listed; the rest is counted.
const LISTED: usize = 12;
/// Effects that are listed: the report has all.
const EFFECTS: usize = 24;

/// The whole lab; `directory` stands in the commands that it names.
pub fn lab(lab: &LabDocument, directory: &str, options: &ShowOptions) -> String {
    let options = &options.in_time(lab.timebase());
    let mut out = Page::new(options);
    let name = out.paint(Tone::Strong, &format::clipped(&lab.name, NAME_WIDTH, options.ascii));
    out.line(&format!("lab {name}: {}", words::extent(lab)));
    for (phase, series) in lab.series() {
        of_series(&mut out, lab, &phase, &series);
    }
    of_effects(&mut out, &effects(lab));
    verdicts(&mut out, lab);
    troubles(&mut out, lab);
    if let Some(command) = words::worst_command(lab, directory) {
        out.heading("worst");
        out.paragraph("  ", "    ", Tone::Plain, &command);
    }
    if !lab.limits.is_empty() {
        out.heading("limits of these figures");
        lab.limits.iter().for_each(|limit| out.paragraph("  ", "    ", Tone::Faint, limit));
    }
    out.finish()
}

fn of_series(out: &mut Page, lab: &LabDocument, phase: &str, series: &str) {
    let title = format::clipped(&format!("{phase}/{series}"), NAME_WIDTH, out.options.ascii);
    out.heading(&format!("{title} ({})", out.unit()));
    let mut columns: Vec<Column> = lab
        .axes
        .iter()
        .map(|axis| Column::left(&format::clipped(&axis.name, 24, out.options.ascii), 0))
        .collect();
    columns.push(Column::right("samples", 3));
    columns.extend(
        METRICS.iter().map(|metric| Column::right(metric, if *metric == "p99" { 2 } else { 0 })),
    );
    columns.push(Column::right("worst of the seeds", 4));
    columns.push(Column::left("", 0));
    let rows = lab.cells.iter().map(|cell| row(out, lab, cell, phase, series)).collect();
    table::write(out, columns, rows);
}

fn row(out: &Page, lab: &LabDocument, cell: &CellDocument, phase: &str, series: &str) -> Vec<Cell> {
    let found =
        cell.series.iter().find(|one| one.figures.phase == phase && one.figures.series == series);
    let axis = |name: &String| {
        cell.axes.get(name).map_or(String::new(), |v| format::clipped(v, 24, out.options.ascii))
    };
    let mut row: Vec<Cell> = lab.axes.iter().map(|axis_| Cell::plain(axis(&axis_.name))).collect();
    row.push(Cell::plain(found.map_or("–".to_owned(), |one| format::count(one.figures.count))));
    let figure = |metric: &&str| found.and_then(|one| value(&one.figures, metric));
    row.extend(METRICS.iter().map(|metric| match figure(metric) {
        Some(ns) => Cell::plain(out.latency(ns as f64)),
        None => Cell("–".to_owned(), Tone::Faint),
    }));
    let spread = found
        .filter(|_| cell.seeds.len() > 1)
        .and_then(|one| Some((one.worst_seed?, one.best_max?)));
    row.push(Cell::plain(spread.map_or(String::new(), |(seed, best)| {
        format!("seed {seed} (best {})", out.latency(best as f64))
    })));
    row.push(verdict(cell, found));
    row
}

fn verdict(cell: &CellDocument, series: Option<&CellSeries>) -> Cell {
    if cell.state == CellState::Failed {
        return Cell("failed".to_owned(), Tone::Bad);
    }
    if cell.state == CellState::Waiting {
        return Cell("not run to completion".to_owned(), Tone::Uncertain);
    }
    if cell.equal == Some(false) {
        return Cell("repetitions differ".to_owned(), Tone::Bad);
    }
    let worst =
        VerdictWord::gravest(series.iter().flat_map(|one| &one.requirements).map(|r| r.verdict));
    match worst {
        Some(VerdictWord::Met) => Cell("met".to_owned(), Tone::Good),
        Some(VerdictWord::NotMet) => Cell("NOT MET".to_owned(), Tone::Bad),
        Some(VerdictWord::Invalid) => Cell("INVALID".to_owned(), Tone::Bad),
        Some(VerdictWord::Undecided) => Cell("undecided".to_owned(), Tone::Uncertain),
        None => Cell::plain(""),
    }
}

fn of_effects(out: &mut Page, effects: &[Effect]) {
    if effects.is_empty() {
        return;
    }
    out.heading("effect of each axis on the maximum");
    let columns = vec![
        Column::left("value", 0),
        Column::left("against", 0),
        Column::left("series", 1),
        Column::right("max", 0),
        Column::right("95 % interval", 0),
        Column::right("single pairs", 2),
        Column::left("", 0),
    ];
    let clipped = |text: &str| format::clipped(text, 24, out.options.ascii);
    let row = |effect: &Effect| {
        let contrast = effect.contrasts.last().copied().flatten()?;
        let (from, to) = contrast.range;
        Some(vec![
            Cell::plain(format!("{} {}", clipped(&effect.axis), clipped(&effect.value))),
            Cell::plain(clipped(&effect.against)),
            Cell::plain(format::clipped(&effect.series.1, 32, out.options.ascii)),
            Cell::plain(words::times(contrast.ratio)),
            Cell::plain(words::interval(&contrast)),
            Cell::plain(format!("{} to {}", words::times(from), words::times(to))),
            Cell(words::describe_significance(&contrast).to_owned(), Tone::Faint),
        ])
    };
    let rows: Vec<Vec<Cell>> = effects.iter().filter_map(row).collect();
    let more = rows.len().saturating_sub(EFFECTS);
    table::write(out, columns, rows.into_iter().take(EFFECTS).collect());
    if more > 0 {
        out.line(&format!("  and {more} more: the report has all, and those of the percentiles"));
    }
}

fn verdicts(out: &mut Page, lab: &LabDocument) {
    let mut bad: Vec<String> = Vec::new();
    let mut met = 0;
    for (cell, series) in
        lab.cells.iter().flat_map(|cell| cell.series.iter().map(move |series| (cell, series)))
    {
        for requirement in &series.requirements {
            if requirement.verdict == VerdictWord::Met {
                met += 1;
            } else {
                bad.push(words::requirement(cell, series, requirement));
            }
        }
    }
    if bad.is_empty() && met == 0 {
        return;
    }
    out.heading("requirements");
    bad.iter().take(LISTED).for_each(|text| out.paragraph("  ", "    ", Tone::Bad, text));
    if bad.len() > LISTED {
        out.line(&format!("  and {} more", bad.len() - LISTED));
    }
    if met > 0 {
        out.line(&format!(
            "  met: {} of a requirement and a series of a cell",
            format::counted(met, "combination")
        ));
    }
}

fn troubles(out: &mut Page, lab: &LabDocument) {
    let troubles: Vec<(&CellDocument, &String)> = lab
        .cells
        .iter()
        .flat_map(|cell| cell.trouble.iter().map(move |text| (cell, text)))
        .collect();
    if troubles.is_empty() {
        return;
    }
    out.heading("trouble");
    for (cell, text) in troubles.iter().take(LISTED) {
        out.paragraph("  ", "    ", Tone::Bad, &format!("{}: {text}", cell.name));
    }
    if troubles.len() > LISTED {
        out.line(&format!("  and {} more in lab.json", troubles.len() - LISTED));
    }
}
