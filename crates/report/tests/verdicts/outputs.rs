//! The outputs with an answer, each read back as a person or a program reads it.

use crate::openmetrics::check::read;
use punctual_bundle::Bundle;
use punctual_bundle::openmetrics::Exposition;
use punctual_bundle::summary::VerdictWord;
use punctual_report::export::{Format, KcidbOptions, export_bundle, write_kcidb};
use punctual_report::html::{ReportInput, render_report};
use punctual_report::terminal::{self, ShowOptions};
use punctual_stats::{phase_views, summarize_bundle};
use scraper::{Html, Selector};

/// The answer in an output.
pub struct Shown {
    /// Whether it looks like a success.
    pub is_well: bool,
    /// The word of the verdict, if it has one: `Some(None)` if nothing was required.
    pub word: Option<Option<&'static str>>,
    /// The whole text, or its relevant part.
    pub text: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Output {
    Terminal,
    Page,
    Metrics,
    Format(Format),
}

impl Output {
    pub const ALL: [Output; 8] = [
        Output::Terminal,
        Output::Page,
        Output::Metrics,
        Output::Format(Format::Junit),
        Output::Format(Format::Lava),
        Output::Format(Format::Kcidb),
        Output::Format(Format::Json),
        Output::Format(Format::CyclictestJson),
    ];
}

#[test]
fn every_export_format_with_a_verdict_is_tested() {
    for format in Format::ALL {
        assert_eq!(
            format.has_verdict(),
            Output::ALL.contains(&Output::Format(format)),
            "{format:?}"
        );
    }
}

pub fn shown(output: Output, bundle: &Bundle) -> Shown {
    match output {
        Output::Terminal => terminal(bundle),
        Output::Page => {
            let (is_well, text) = page(&[bundle]);
            Shown { is_well, word: None, text }
        }
        Output::Metrics => metrics(bundle),
        Output::Format(format) => of_format(format, bundle),
    }
}

/// Words in a title that report a problem.
const ALARMS: [&str; 9] = [
    "NOT MET",
    "UNDECIDED",
    "stopped at",
    "INVALID",
    "CUT OFF",
    "failed: ",
    "FAILED: ",
    "could not be written",
    "events were lost",
];

fn terminal(bundle: &Bundle) -> Shown {
    let summary = summarize_bundle(bundle);
    let text = terminal::show_summary(&summary, &phase_views(bundle), &ShowOptions::default());
    // The title ends where the first table begins.
    let title = text.split("\n\n").next().unwrap_or_default().to_owned();
    let is_well = !ALARMS.iter().any(|alarm| title.contains(alarm));
    Shown { is_well, word: None, text: title }
}

/// The data that a collector stores.
fn metrics(bundle: &Bundle) -> Shown {
    let mut exposition = Exposition::default();
    let labels = [("experiment", "ways".to_owned())];
    exposition.add_verdict(&labels, &summarize_bundle(bundle).verdict);
    let text = exposition.finish();
    let samples = read(&text).unwrap();
    let held = samples["punctual_verdict"].iter().filter(|sample| sample.value == 1.0);
    let held: Vec<&str> = held.map(|sample| sample.labels["verdict"].as_str()).collect();
    assert_eq!(held.len(), 1, "{text}");
    let word =
        VerdictWord::ALL.into_iter().map(VerdictWord::json_word).find(|word| held == [*word]);
    Shown { is_well: samples["punctual_exit_code"][0].value == 0.0, word: Some(word), text }
}

/// The banner of a page about these bundles.
pub fn page(bundles: &[&Bundle]) -> (bool, String) {
    let summaries: Vec<_> = bundles.iter().map(|bundle| summarize_bundle(bundle)).collect();
    let inputs: Vec<ReportInput<'_>> = bundles
        .iter()
        .zip(&summaries)
        .map(|(bundle, summary)| ReportInput::from_bundle(bundle, summary))
        .collect();
    is_well(&render_report(&inputs).unwrap())
}

/// Whether no banner of a page alarms; the text of the banners.
pub fn is_well(page: &str) -> (bool, String) {
    let page = Html::parse_document(page);
    let banners = Selector::parse(".banner").unwrap();
    let (mut is_well, mut said) = (true, Vec::new());
    for banner in page.select(&banners) {
        is_well &= !banner.value().classes().any(|class| ["bad", "warn"].contains(&class));
        said.extend(banner.text());
    }
    (is_well, said.join(" "))
}

fn of_format(format: Format, bundle: &Bundle) -> Shown {
    let mut bytes = Vec::new();
    match format {
        Format::Kcidb => write_kcidb(bundle, &KcidbOptions::default(), &mut bytes).unwrap(),
        _ => export_bundle(bundle, format, &mut bytes).unwrap(),
    }
    let text = String::from_utf8(bytes).unwrap();
    let json = || serde_json::from_str::<serde_json::Value>(&text).unwrap();
    let (is_well, word) = match format {
        Format::Junit => (!text.contains("<failure") && !text.contains("<error"), None),
        Format::Lava => {
            let fails = |line: &str| line.contains(" fail") || line.contains(" unknown");
            (!text.lines().filter(|line| !line.starts_with('#')).any(fails), None)
        }
        Format::Kcidb => {
            let tests = json()["tests"].as_array().unwrap().clone();
            let ok = |test: &serde_json::Value| {
                matches!(test["status"].as_str(), Some("PASS" | "DONE" | "SKIP"))
            };
            (tests.iter().all(ok), None)
        }
        // The return code of the tool.
        Format::CyclictestJson => (json()["return_code"] == 0, None),
        _ => {
            let summary: punctual_bundle::summary::Summary = serde_json::from_str(&text).unwrap();
            let word = summary.verdict.word.map(|word| word.json_word());
            (summary.verdict.to_exit() as u8 == 0, Some(word))
        }
    };
    Shown { is_well, word, text }
}
