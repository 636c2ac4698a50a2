//! The breakdown of samples in the page: paragraphs, bands, timelines, culprits; nothing hostile
//! becomes markup.

use crate::browser::open;
use crate::recording;
use crate::recording::{CONTROL, HOG, us};
use crate::support::hostile_names;
use crate::support::synthetic::{Recipe, write};
use punctual_bundle::explanation::EventSource;
use punctual_core::CpuSet;
use punctual_explain::explain::{LatencyInterval, StartKind, explain_sample};
use punctual_explain::gaps::Gaps;
use punctual_explain::threads::Coverage;
use punctual_explain::{Explained, Explanations};
use punctual_report::html::breakdown::Breakdown;
use punctual_report::html::{ReportInput, render_report};
use punctual_testing::events;
use scraper::{Html, Selector};

/// A thread that a hog's system call kept from running; `hog` is the hog's name.
fn explanations(hog: &str) -> Explanations {
    let mut names = recording::names();
    names.tasks.entry(HOG).or_default().comm = hog.to_owned();
    names.syscalls.insert(56, "clone".to_owned());
    let recorded = punctual_core::event::Recorded::without_events("none", us(0));
    let events = events!(
        "5000s cpu0 2000 sys_enter 56
        +1030us vector_entry 0xec; +2us waking 1000/19; +1us wakeup 1000/19; +5us vector_exit 0xec
        +1462us switch R -> 1000/19"
    );
    let late = LatencyInterval {
        tid: CONTROL,
        cpu: 0,
        due: us(1_000),
        woke: us(2_545),
        kind: StartKind::Timer,
    };
    let explanation =
        explain_sample(late, &events, &Coverage::from_span(us(0), us(3_000)), &Gaps::default());
    let (phase, series) = ("main".to_owned(), hog.to_owned());
    Explanations {
        source: EventSource::Windows,
        rule: None,
        recorded,
        names,
        series: Vec::new(),
        samples: vec![Explained { phase, series, explanation, events, left_out: CpuSet::new() }],
        coincidences: None,
        findings: Vec::new(),
    }
}

fn page(hog: &str, directory: &std::path::Path) -> String {
    let bundle = write(&directory.join("b"), &Recipe::default());
    let summary = punctual_stats::summarize_bundle(&bundle);
    let breakdown = Breakdown::from_explanations(&explanations(hog), None).expect("a late sample");
    render_report(&[ReportInput {
        breakdown: Some(&breakdown),
        ..ReportInput::from_bundle(&bundle, &summary)
    }])
    .unwrap()
}

fn texts(page: &Html, selector: &str) -> Vec<String> {
    let selector = Selector::parse(selector).unwrap();
    page.select(&selector)
        .map(|element| element.text().collect::<String>().trim().to_owned())
        .collect()
}

#[test]
fn an_explained_sample_is_shown_with_text_band_and_remedy() {
    let directory = tempfile::tempdir().unwrap();
    let page = Html::parse_document(&page("hog", directory.path()));
    let sentence = texts(&page, "#breakdown details p").join(" ");
    assert!(sentence.contains("Latency 1,545 µs on CPU 0."), "{sentence}");
    assert!(
        sentence
            .contains("hog (SCHED_OTHER) was not preempted in clone(): preemption was disabled"),
        "{sentence}"
    );
    let band = Selector::parse("#breakdown svg.band rect").unwrap();
    let widths: f64 =
        page.select(&band).filter_map(|part| part.value().attr("width")?.parse::<f64>().ok()).sum();
    assert!((99.9..100.1).contains(&widths), "the band is whole: {widths}");
    assert!(texts(&page, "#breakdown tbody th")[0].contains("running task not preempted"));
    assert!(texts(&page, "#breakdown .advice li")[0].contains("preemption-model"));
}

#[test]
fn the_timeline_of_a_sample_shows_its_parts() {
    let directory = tempfile::tempdir().unwrap();
    let page = page("hog", directory.path());
    let Some(seen) = open(&page, directory.path()) else { return };
    assert!(seen.document.contains("breakdown: causes"), "the lane of the parts");
    assert!(seen.document.contains("data-picture=\"0\""), "a button leads there");
}

#[test]
fn hostile_names_stay_texts() {
    let directory = tempfile::tempdir().unwrap();
    for (k, name) in hostile_names("http://127.0.0.1:1").iter().enumerate() {
        let place = directory.path().join(k.to_string());
        std::fs::create_dir(&place).unwrap();
        let page = Html::parse_document(&page(name, &place));
        for tag in [
            "#breakdown script",
            "#breakdown img",
            "#breakdown iframe",
            "#breakdown a",
            "#breakdown link",
            "#breakdown image",
        ] {
            assert_eq!(
                page.select(&Selector::parse(tag).unwrap()).count(),
                0,
                "{tag} out of {name:?}"
            );
        }
    }
}
