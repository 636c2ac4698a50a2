//! The page of a lab in a headless browser: every curve is drawn, the legend toggles curves, the
//! heat map links to the figures, a server sees no request, and hostile names stay text.

use crate::browser::{Bait, assert_drawn, driven, open};
use crate::support::hostile_names;
use crate::support::synthetic::{Load, Recipe, write};
use punctual_bundle::Bundle;
use punctual_bundle::answer::AnsweredDelay;
use punctual_bundle::lab::{
    AxisDocument, CellDocument, CellSeries, CellState, LabDocument, RunDocument, SCHEMA,
    SeedDocument, SeriesFigures, WorstCellSample,
};
use punctual_bundle::summary::SeriesSummary;
use punctual_report::{document, terminal};
use scraper::{Html, Selector};
use std::path::Path;

/// A lab with one axis of these values, two series each, and its bundles.
fn lab(
    directory: &Path,
    name: &str,
    axis: &str,
    values: &[String],
    target: &str,
) -> (LabDocument, Vec<Option<Bundle>>) {
    std::fs::create_dir_all(directory).unwrap();
    let bundles: Vec<Bundle> = (0..values.len())
        .map(|k| {
            let phases = vec![("main".into(), if k % 2 == 0 { Load::Idle } else { Load::Loaded })];
            let recipe =
                Recipe { cpus: 2, samples: 2_000, phases, seed: 1 + k as u64, ..Recipe::default() };
            write(&directory.join(format!("b{k}")), &recipe)
        })
        .collect();
    let cells = values
        .iter()
        .zip(&bundles)
        .map(|(value, bundle)| cell(axis, value, bundle, target))
        .collect();
    let document = LabDocument {
        schema: SCHEMA.into(),
        punctual: "0".into(),
        name: name.into(),
        created: jiff::Timestamp::UNIX_EPOCH,
        finished: true,
        axes: vec![AxisDocument { name: axis.into(), values: values.into() }],
        repeat: 1,
        cells,
        ..LabDocument::default()
    };
    (document, bundles.into_iter().map(Some).collect())
}

fn cell(axis: &str, value: &str, bundle: &Bundle, target: &str) -> CellDocument {
    let summary = punctual_stats::summarize_bundle(bundle);
    let figures: Vec<SeriesFigures> = summary.phases[0].series.iter().map(figures).collect();
    let run =
        RunDocument { bundle: Some(value.into()), exit_code: Some(0), ..RunDocument::default() };
    let seed = SeedDocument {
        experiment: value.into(),
        runs: vec![run],
        series: figures.clone(),
        ..SeedDocument::default()
    };
    let series = figures.into_iter().map(|figures| CellSeries { figures, ..CellSeries::default() });
    CellDocument {
        name: value.into(),
        axes: [(axis.to_owned(), value.to_owned())].into(),
        target: target.into(),
        state: CellState::Done,
        bundle: Some(value.into()),
        series: series.collect(),
        seeds: vec![seed],
        ..CellDocument::default()
    }
}

fn figures(series: &SeriesSummary) -> SeriesFigures {
    SeriesFigures {
        phase: "main".into(),
        series: series.name.clone(),
        measure: "timer".into(),
        count: series.count,
        lost: series.lost,
        overruns: series.overruns,
        min: series.min,
        mean: series.mean,
        median: series.percentiles.get("50").copied(),
        max: series.max,
        stddev: series.stddev,
        percentiles: series.percentiles.clone(),
    }
}

const VALUES: [&str; 3] = ["6.1", "6.1-rt", "6.12"];

fn page(directory: &Path, target: &str) -> String {
    let (document, bundles) = lab(directory, "quick", "kernel", &VALUES.map(String::from), target);
    document::lab_page(&document, &bundles, &[], "quick").unwrap()
}

#[test]
fn every_curve_of_a_lab_page_is_drawn() {
    let directory = tempfile::tempdir().unwrap();
    let Some(seen) = open(&page(directory.path(), "this machine"), directory.path()) else {
        return;
    };
    assert_drawn(&seen, 2);
    let document = Html::parse_document(&seen.document);
    let count = |selector: &str| document.select(&Selector::parse(selector).unwrap()).count();
    // Two series: the first is selected, so its three cells are on in two legends, and those of the
    // other are off.
    for legend in ["#histogram-legend", "#percentiles-legend"] {
        let pressed = |state: &str| count(&format!("{legend} [aria-pressed={state}]"));
        assert_eq!((pressed("true"), pressed("false")), (3, 3), "{legend}");
    }
    assert_eq!(count("#histogram-controls label:first-child option"), 2, "a choice of the series");
    assert_eq!(
        count("#histogram-still svg path.h0"),
        2,
        "the drawing for browsers without script: a curve and its legend"
    );
}

#[test]
fn the_legend_toggles_curves_and_the_heat_map_links_to_figures() {
    let directory = tempfile::tempdir().unwrap();
    let script = "
        const said = document.documentElement.dataset;
        const ink = () => {
            const canvas = document.querySelector('#histogram-plot canvas');
            return canvas.getContext('2d').getImageData(0, 0, canvas.width, \
                  canvas.height).data.reduce((sum, byte) => sum + byte, 0);
        };
        const pressed = () => document.querySelectorAll('#histogram-legend \
                  [aria-pressed=true]').length;
        const later = (act) => setTimeout(act, 300);
        later(() => {
            const before = [pressed(), ink()];
            document.querySelector('#histogram-legend [aria-pressed=true]').click();
            later(() => {
                const off = [pressed(), ink()];
                document.querySelector('#histogram-legend [aria-pressed=false]').click();
                later(() => {
                    const on = [pressed(), ink()];
                    said.pressed = [before[0], off[0], on[0]];
                    said.drawn = [before[1] !== off[1], before[1] === on[1]];
                    const cells = [...document.querySelectorAll('.heat td a')];
                    said.heat = cells.length;
                    said.astray = cells.filter((a) => \
                  !document.getElementById(a.hash.slice(1))).length;
                    const worst = cells[0];
                    worst.click();
                    const row = document.querySelector(':target').closest('tr');
                    said.led = location.hash + ' ' + row.innerText.includes(worst.textContent);
                    row.querySelector('a').click();
                    said.bundle = \
                  document.querySelector(':target').closest('tr').innerText.includes('quick/6.1');
                });
            });
        });";
    let Some(seen) =
        open(&driven(&page(directory.path(), "this machine"), script), directory.path())
    else {
        return;
    };
    assert_drawn(&seen, 2);
    let root = seen.document.split("<body").next().unwrap();
    let root = &root[..root.find('>').map_or(root.len(), |_| root.len().min(1_200))];
    let sentence = |what: &str| assert!(root.contains(what), "{what}: {root}");
    sentence("data-pressed=\"3,2,3\"");
    sentence("data-drawn=\"true,true\"");
    // Maximum, p99, median and minimum of three cells and two series.
    sentence("data-heat=\"24\"");
    sentence("data-astray=\"0\"");
    sentence("data-led=\"#figures-0 true\"");
    sentence("data-bundle=\"true\"");
}

#[test]
fn nothing_hostile_runs_and_nothing_is_asked_for() {
    let directory = tempfile::tempdir().unwrap();
    let bait = Bait::laid();
    let names = hostile_names(&bait.url);
    let (mut document, bundles) = lab(directory.path(), &names[0], &names[1], &names, &names[2]);
    document.limits = names.clone();
    document.cells.iter_mut().for_each(|cell| cell.trouble = names[..4].to_vec());
    let page = document::lab_page(&document, &bundles, &[], &names[4]).unwrap();
    bait.assert_in(&page);
    let Some(seen) = open(&page, directory.path()) else { return };
    assert_drawn(&seen, 2);
    bait.assert_untouched(&seen);
}

/// A table or plot copied out of the page still shows its timebase, in two words.
#[test]
fn virtual_time_is_marked_at_every_table_and_plot() {
    let directory = tempfile::tempdir().unwrap();
    let mark = punctual_bundle::Timebase::Virtual.clock_note().unwrap();
    let count = |page: &str, selector: &str| {
        let has_mark =
            |element: &scraper::ElementRef| element.text().collect::<String>().contains(mark);
        let document = Html::parse_document(page);
        let selector = Selector::parse(selector).unwrap();
        (document.select(&selector).filter(has_mark).count(), document.select(&selector).count())
    };
    let own = page(&directory.path().join("own"), "this machine");
    assert_eq!(count(&own, ".timebase"), (0, 0));
    let page = page(&directory.path().join("virtual"), "virtual machine, virtual time");
    assert_eq!(count(&page, "figcaption"), (2, 2));
    // Two heat maps, figures and effects; the table of cells holds no latency, and has no caption.
    assert_eq!(count(&page, "caption"), (4, 4));
    assert!(page.contains(">latency (virtual)</text>"), "the drawing's axis");
    let sentence = punctual_bundle::Timebase::Virtual.short_meaning().unwrap();
    assert!(page.matches(sentence).count() < 2, "what that means is stated once");
    let Some(seen) = open(&page, directory.path()) else { return };
    assert_drawn(&seen, 2);
}

#[test]
fn each_lab_cell_shows_the_cause_of_its_worst_sample() {
    let directory = tempfile::tempdir().unwrap();
    let names = VALUES.map(String::from);
    let (mut document, bundles) = lab(directory.path(), "quick", "kernel", &names, "this machine");
    let worst = |latency: i64| WorstCellSample {
        series: "main/timer/cpu0".into(),
        latency,
        bundle: "b".into(),
        ..WorstCellSample::default()
    };
    let who = Some("__free_<b>one_page".into());
    let cause = AnsweredDelay::new("irqs-disabled", "interrupts disabled", who, 0.998);
    let calls = ["__mmdrop", "free_unref_page", "__free_one_page"].map(String::from).to_vec();
    document.cells[0].worst =
        Some(WorstCellSample { cause: Some(cause), exact: true, calls, ..worst(27_158_544) });
    let gone = Some("its bundle is gone".into());
    document.cells[1].worst = Some(WorstCellSample { unexplained: gone, ..worst(46_700) });
    let pages = [Some("cells/6.1/r1/report.html".to_owned()), None, None];
    let page =
        document::lab_page(&document, &bundles, &pages, "quick").unwrap().replace("&#x2f;", "/");
    let causes = page
        .split("<h2>What delayed the worst sample")
        .nth(1)
        .unwrap()
        .split("</section>")
        .next()
        .unwrap();
    assert!(causes.contains("href=\"cells/6.1/r1/report.html\"") && causes.contains("99.8 %"));
    assert!(causes.contains("__mmdrop › free_unref_page › __free_one_page"), "{causes}");
    assert!(!causes.contains("<b>one") && causes.contains("href=\"#cell-1\""), "{causes}");
    let options = terminal::ShowOptions { width: 80, ..Default::default() };
    let text = document::build_lab_document(&document, "quick", &[]).to_terminal_text(&options);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    for words in [
        "figure      max 27,159 µs in 6.1 (main/timer/cpu0): 99.8 % interrupts disabled,",
        "calls in 6.1: __mmdrop › free_unref_page › __free_one_page",
        "6.1-rt is not explained: its bundle is gone",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
}
