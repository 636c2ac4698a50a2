//! A lab: each series with its cells, the effect of each axis, the requirements, the failures.

use super::ShowOptions;
use super::paint::{Page, Tone};
use super::table;
use crate::format;
use crate::sentence::lab as words;
use crate::tables::lab::{effects, judgements, worst};
use crate::tables::lab_figures;
use punctual_bundle::lab::{CellDocument, LabDocument};
use punctual_bundle::summary::VerdictWord;

const NAME_WIDTH: usize = 48;
/// Problems listed; the rest are counted.
const LISTED: usize = 12;
/// The number of worst cells whose calls are listed.
const CALLS: usize = 4;
/// The width of the labels before the answer, as for a run.
const LEFT: usize = 12;

/// The whole lab; `directory` is inserted into the commands.
pub fn lab(lab: &LabDocument, directory: &str, options: &ShowOptions) -> String {
    let options = &options.in_time(lab.timebase());
    let mut out = Page::new(options);
    let name = out.paint(Tone::Strong, &format::clipped(&lab.name, NAME_WIDTH, options.ascii));
    out.line(&format!("lab {name}: {}", words::extent(lab)));
    answer(&mut out, lab, directory);
    explained(&mut out, lab);
    for (phase, series) in lab.series() {
        of_series(&mut out, lab, &phase, &series);
    }
    if let Some(effects) = effects(lab).unless_empty() {
        table::section(&mut out, &effects);
    }
    if let Some(judgements) = judgements(lab).unless_empty() {
        table::section(&mut out, &judgements);
    }
    verdicts(&mut out, lab);
    troubles(&mut out, lab);
    if !lab.limits.is_empty() {
        out.heading("limits of these figures");
        lab.limits.iter().for_each(|limit| out.paragraph("  ", "    ", Tone::Faint, limit));
    }
    out.finish()
}

/// The verdict, the worst sample of all, and how to examine it.
fn answer(out: &mut Page, lab: &LabDocument, directory: &str) {
    let tone = match lab.verdict {
        Some(VerdictWord::Met) => Tone::Good,
        Some(VerdictWord::NotMet | VerdictWord::Invalid) => Tone::Bad,
        _ => Tone::Plain,
    };
    let verdict = words::verdict(lab).map(|text| ("verdict", tone, text));
    let figure = words::figure(lab).map(|text| ("figure", Tone::Plain, text));
    let to_do = words::to_do(lab, directory).map(|text| ("to do", Tone::Plain, text));
    for (word, tone, text) in verdict.into_iter().chain(figure).chain(to_do) {
        let word = out.paint(Tone::Faint, &format!("{word:<LEFT$}"));
        out.paragraph(&word, &" ".repeat(LEFT), tone, &text);
    }
}

/// The causes of the worst sample of each cell, and the call stacks of the worst of them.
fn explained(out: &mut Page, lab: &LabDocument) {
    let Some(table) = worst(lab, usize::MAX).unless_empty() else { return };
    table::section(out, &table);
    let known = lab.cells.iter().filter_map(|cell| Some((cell, cell.worst.as_ref()?)));
    let mut called: Vec<_> = known.filter(|(_, worst)| !worst.calls.is_empty()).collect();
    called.sort_by_key(|(_, worst)| std::cmp::Reverse(worst.latency));
    for (cell, worst) in called.iter().take(CALLS) {
        let name = format::clipped(&cell.name, NAME_WIDTH, out.options.ascii);
        let text = format!("calls in {name}: {}", words::calls(worst));
        out.paragraph("  ", "    ", Tone::Faint, &text);
    }
    let unexplained = lab
        .cells
        .iter()
        .filter_map(|cell| Some((cell, cell.worst.as_ref()?.unexplained.as_deref()?)));
    for (cell, why) in unexplained.take(LISTED) {
        let text =
            format!("{} is not explained: {}", format::plain(&cell.name), format::plain(why));
        out.paragraph("  ", "    ", Tone::Uncertain, &text);
    }
}

fn of_series(out: &mut Page, lab: &LabDocument, phase: &str, series: &str) {
    let title = format::clipped(&format!("{phase}/{series}"), NAME_WIDTH, out.options.ascii);
    out.heading(&format!("{title} ({})", out.unit()));
    table::body(out, &lab_figures::of_series(lab, phase, series));
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
