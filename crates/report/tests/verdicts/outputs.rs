//! The outputs that show an answer, each read back as a person or a program reads it.

use punctual_analyze::{summarize, views};
use punctual_bundle::Bundle;
use punctual_report::export::{Format, KcidbOptions, export, write_kcidb};
use punctual_report::html::{ReportInput, report};
use punctual_report::terminal::{self, ShowOptions};
use scraper::{Html, Selector};

/// What an output says.
pub struct Shown {
    /// Whether it looks as if all were well.
    pub is_well: bool,
    /// The word of the verdict, where it has one: `Some(None)` where nothing was asked.
    pub word: Option<Option<&'static str>>,
    /// All of it, or the part that counts.
    pub text: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Output {
    Terminal,
    Page,
    Format(Format),
}

/// Whether a format shows an answer. Without a wildcard: a new one is looked at here.
const fn answers(format: Format) -> bool {
    match format {
        Format::Junit | Format::Lava | Format::Kcidb | Format::Json | Format::CyclictestJson => {
            true
        }
        // Figures, which are no answer; the tables have the words of the JSON.
        Format::Systress
        | Format::SystressCsv
        | Format::CyclictestHistogram
        | Format::Gnuplot
        | Format::Csv
        | Format::CsvSummary
        | Format::Hdr
        | Format::Parquet
        | Format::ParquetTables
        | Format::TablesJson
        | Format::TablesCsv
        | Format::Perfetto
        | Format::Chrome => false,
    }
}

impl Output {
    pub const ALL: [Output; 7] = [
        Output::Terminal,
        Output::Page,
        Output::Format(Format::Junit),
        Output::Format(Format::Lava),
        Output::Format(Format::Kcidb),
        Output::Format(Format::Json),
        Output::Format(Format::CyclictestJson),
    ];
}

#[test]
fn every_format_that_answers_is_in_the_table() {
    for format in Format::ALL {
        assert_eq!(answers(format), Output::ALL.contains(&Output::Format(format)), "{format:?}");
    }
}

pub fn shown(output: Output, bundle: &Bundle) -> Shown {
    match output {
        Output::Terminal => terminal(bundle),
        Output::Page => {
            let (is_well, text) = page(&[bundle]);
            Shown { is_well, word: None, text }
        }
        Output::Format(format) => of_format(format, bundle),
    }
}

/// What a title says where something is not well.
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
    let summary = summarize(bundle);
    let text = terminal::show(&summary, &views(bundle), &ShowOptions::default());
    // The title ends where the first table begins.
    let title = text.split("\n\n").next().unwrap_or_default().to_owned();
    let is_well = !ALARMS.iter().any(|alarm| title.contains(alarm));
    Shown { is_well, word: None, text: title }
}

/// The banner of a page about these bundles.
pub fn page(bundles: &[&Bundle]) -> (bool, String) {
    let summaries: Vec<_> = bundles.iter().map(|bundle| summarize(bundle)).collect();
    let inputs: Vec<ReportInput<'_>> = bundles
        .iter()
        .zip(&summaries)
        .map(|(bundle, summary)| ReportInput::of(bundle, summary))
        .collect();
    let page = Html::parse_document(&report(&inputs).unwrap());
    let banners = Selector::parse(".banner").unwrap();
    let Some(banner) = page.select(&banners).next() else {
        return (true, "no banner".to_owned());
    };
    let is_well = !banner.value().classes().any(|class| ["bad", "warn"].contains(&class));
    (is_well, banner.text().collect::<Vec<_>>().join(" "))
}

fn of_format(format: Format, bundle: &Bundle) -> Shown {
    let mut bytes = Vec::new();
    match format {
        Format::Kcidb => write_kcidb(bundle, &KcidbOptions::default(), &mut bytes).unwrap(),
        _ => export(bundle, format, &mut bytes).unwrap(),
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
            let ok =
                |test: &serde_json::Value| matches!(test["status"].as_str(), Some("PASS" | "DONE"));
            (tests.iter().all(ok), None)
        }
        // The code that the tool returned.
        Format::CyclictestJson => (json()["return_code"] == 0, None),
        _ => {
            let summary: punctual_bundle::summary::Summary = serde_json::from_str(&text).unwrap();
            let word = summary.verdict.word.map(|word| word.word());
            (summary.verdict.exit() as u8 == 0, Some(word))
        }
    };
    Shown { is_well, word, text }
}
