//! A lab: the answer, the causes, each series with its cells, the effect of each axis, the
//! requirements, the failures.

use super::{Document, Item, Section, Title};
use crate::format::{clip_name, count_with_noun};
use crate::html::lab::{heat, work};
use crate::html::plot::Plot;
use crate::html::text::format_instant;
use crate::html::{self, HtmlError};
use crate::sentence::lab as words;
use crate::tables::lab::{effect_table, judgement_table, worst_table};
use crate::tables::{Face, Tone, lab_figures, lab_work};
use punctual_bundle::Bundle;
use punctual_bundle::lab::{AxisDocument, CellDocument, LabDocument};
use punctual_bundle::summary::VerdictWord;
use std::cmp::Reverse;

const NAME_WIDTH: usize = 48;
/// Problems that a terminal lists.
const LISTED_PROBLEMS: usize = 12;
/// The number of worst cells whose calls a terminal lists.
const CALLS: usize = 4;
/// Targets that are named.
const TARGETS: usize = 6;

/// `directory` is inserted into the commands; `pages` are the links to the page of each cell.
pub fn build_lab_document(
    lab: &LabDocument,
    directory: &str,
    pages: &[Option<String>],
) -> Document {
    let mut document = Document::new("lab", &lab.name, lab.timebase());
    document.add_for_face(Face::Terminal, |document| {
        let name = clip_name(&lab.name, NAME_WIDTH, false);
        document.add_paragraph(
            Tone::Plain,
            format!("lab {name}: {}", words::format_extent(lab)),
            [0, 2],
        );
    });
    add_answer(&mut document, lab, directory);
    document.add_for_face(Face::Page, |document| {
        document.add(Section::About(about_lines(lab)));
        document.add_texts(Tone::Faint, lab.limits.iter().map(|of| format!("{LIMITS}: {of}")));
    });
    add_worst_samples(&mut document, lab, pages);
    document.add_for_face(Face::Terminal, |document| {
        for (phase, series) in lab.all_series() {
            document.add_heading(clip_name(&format!("{phase}/{series}"), NAME_WIDTH, false));
            document.add_table(Title::Above, lab_figures::of_series(lab, &phase, &series));
        }
    });
    document.add_for_face(Face::Page, |document| add_figures(document, lab));
    document.add_table(Title::Heading, effect_table(lab));
    document.add_for_face(Face::Page, |document| {
        document.add_text(
            Tone::Faint,
            "Pairs of cells that differ in this axis alone, seed by seed; the mean of their ratios \
             with Student's 95 % interval, each pair an observation (fewer than three pairs: each \
             seed). Where the single pairs lie far apart, the effect depends on the other axes.",
        );
    });
    add_work_costs(&mut document, lab);
    add_judgements(&mut document, lab);
    document.add_for_face(Face::Page, |document| {
        document.add_table(Title::Heading, lab_figures::seed_table(lab, directory));
        document.add_table(Title::Heading, lab_figures::cell_table(lab, directory, pages));
    });
    add_problems(&mut document, lab);
    if !lab.limits.is_empty() {
        document.add_for_face(Face::Terminal, |document| {
            document.add_heading(LIMITS);
            let limits = lab.limits.iter();
            document.add_list(usize::MAX, limits.map(|of| Item::new(Tone::Faint, of)));
        });
    }
    document
}

/// The page, with the curves of `pooled`: the bundles of the cells in order, all seeds combined
/// (`None` for a cell without one).
///
/// # Errors
/// This build makes no pages, or a template does not fit its data.
pub fn lab_page(
    lab: &LabDocument,
    pooled: &[Option<Bundle>],
    pages: &[Option<String>],
    directory: &str,
) -> Result<String, HtmlError> {
    let document = self::build_lab_document(lab, directory, pages);
    html::lab::fit_lab_page(lab, pooled, |scripted| document.page_with(Some(scripted)))
}

const LIMITS: &str = "limits of these figures";

/// The verdict, the worst sample of all, and how to examine it.
fn add_answer(document: &mut Document, lab: &LabDocument, directory: &str) {
    let is_invalid = lab.cells.iter().any(CellDocument::has_failed);
    document.add_for_face(Face::Page, |document| match lab.finished {
        _ if is_invalid => document.add_text(Tone::Bad, "Not every cell is valid."),
        false => document.add_text(Tone::Uncertain, "Not every cell ran to completion."),
        true => {}
    });
    let tone = lab.verdict.map_or(Tone::Plain, Tone::from);
    let verdict = words::format_verdict(lab).map(|text| ("verdict", tone, text));
    let figure = words::format_worst(lab).map(|text| ("figure", Tone::Plain, text));
    let to_do = words::to_do(lab, directory).map(|text| ("to do", Tone::Plain, text));
    let lines: Vec<_> = verdict.into_iter().chain(figure).chain(to_do).collect();
    if !lines.is_empty() {
        document.add(Section::Answer(lines));
    }
}

fn about_lines(lab: &LabDocument) -> Vec<(String, String)> {
    let axis = |axis: &AxisDocument| format!("{}: {}", axis.name, axis.values.join(", "));
    let axes: Vec<String> = lab.axes.iter().map(axis).collect();
    let mut targets: Vec<&str> = lab.cells.iter().map(|cell| cell.target.as_str()).collect();
    targets.dedup();
    targets.truncate(TARGETS);
    let lines = [
        ("Extent", words::format_extent(lab)),
        ("Axes", if axes.is_empty() { "none".to_owned() } else { axes.join("; ") }),
        ("Run on", targets.join(", ")),
        ("First run", format_instant(lab.created)),
        ("Made with", format!("punctual {}", lab.punctual)),
    ];
    lines.map(|(word, text)| (word.to_owned(), text)).into()
}

/// The causes of the worst sample of each cell. The page's table has the calls and reasons, too.
fn add_worst_samples(document: &mut Document, lab: &LabDocument, pages: &[Option<String>]) {
    let table = worst_table(lab, pages);
    if table.rows.is_empty() {
        return;
    }
    document.add_table(Title::Heading, table);
    document.add_for_face(Face::Terminal, |document| {
        let worst_samples = lab.cells.iter().filter_map(|cell| Some((cell, cell.worst.as_ref()?)));
        let mut called: Vec<_> =
            worst_samples.clone().filter(|(_, worst)| !worst.calls.is_empty()).collect();
        called.sort_by_key(|(_, worst)| Reverse(worst.latency));
        let called = called.into_iter().take(CALLS).map(|(cell, worst)| {
            let name = clip_name(&cell.name, NAME_WIDTH, false);
            let text = format!("calls in {name}: {}", words::format_calls(worst));
            Item::new(Tone::Faint, text)
        });
        let unexplained =
            worst_samples.filter_map(|(cell, worst)| Some((cell, worst.unexplained.as_deref()?)));
        let unexplained_items = unexplained.take(LISTED_PROBLEMS).map(|(cell, why)| {
            let text = format!("{} is not explained: {why}", cell.name);
            Item::new(Tone::Uncertain, text)
        });
        document.add_list(usize::MAX, called.chain(unexplained_items));
    });
}

/// Heat maps, curves and figures of all cells, and published ones.
fn add_figures(document: &mut Document, lab: &LabDocument) {
    let heat = heat::heat_tables(lab);
    if !heat.is_empty() {
        document.add_heading("heat map");
        document.add_plots(heat.into_iter().map(Plot::Heat));
        document.add_heading("all curves");
        document.add(Section::Curves);
        document.add_table(Title::Heading, lab_figures::figure_table(lab));
    }
    let published: Vec<_> = lab.published.iter().filter(|of| !of.rows.is_empty()).collect();
    if !published.is_empty() {
        document.add_heading("published figures and those of this lab");
        for one in published {
            document.add_text(Tone::Plain, &one.setup);
            document.add_table(Title::Above, lab_figures::published_table(lab, one));
        }
        document.add_text(
            Tone::Faint,
            "Absolute figures depend on the machine (in virtual time, they do not): compare the \
             trend, that is, which figure is larger and by what factor.",
        );
    }
}

/// The work of the loads, and the part of it that each value of an axis costs.
fn add_work_costs(document: &mut Document, lab: &LabDocument) {
    document.add_table(Title::Heading, lab_work::work_table(lab));
    document.add_for_face(Face::Page, |document| document.add_plots(work::work_plots(lab)));
    document.add_table(Title::Heading, lab_work::price_table(lab));
    document.add_texts(Tone::Plain, lab_work::knee_sentences(lab));
}

/// The claims of publications, and the margins of equivalence.
fn add_judgements(document: &mut Document, lab: &LabDocument) {
    let judgements = judgement_table(lab);
    if judgements.rows.is_empty() {
        return;
    }
    document.add_table(Title::Heading, judgements);
    document.add_for_face(Face::Page, |document| {
        document.add_text(
            Tone::Faint,
            "Reproduced: as large as published or larger; weaker: smaller; absent: nothing, where \
             as much as was published would have shown; reversed: the opposite. Equivalent: the \
             90 % interval of the difference is within the margin that the plan states.",
        );
    });
}

/// Requirements, those that are not met by name; and what failed.
fn add_problems(document: &mut Document, lab: &LabDocument) {
    let mut open: Vec<Item> = Vec::new();
    let mut met = 0;
    for (cell, series) in
        lab.cells.iter().flat_map(|cell| cell.series.iter().map(move |series| (cell, series)))
    {
        for one in &series.requirements {
            match one.verdict {
                VerdictWord::Met => met += 1,
                _ => {
                    let text = words::format_requirement(cell, series, one);
                    open.push(Item::new(Tone::Bad, text));
                }
            }
        }
    }
    if !open.is_empty() || met > 0 {
        document.add_heading("requirements");
        document.add_list(LISTED_PROBLEMS, open);
    }
    if met > 0 {
        let met_count = count_with_noun(met, "combination");
        document.add_text(
            Tone::Plain,
            format!("met: {met_count} of a requirement and a series of a cell"),
        );
    }
    let troubles = lab.cells.iter().flat_map(|cell| {
        let item = |text| Item::new(Tone::Bad, format!("{}: {text}", cell.name));
        cell.trouble.iter().map(item)
    });
    let troubles: Vec<Item> = troubles.collect();
    if !troubles.is_empty() {
        document.add_heading("trouble");
        document.add_list(LISTED_PROBLEMS, troubles);
    }
}
