//! Files written by the tools (testdata/README.md), one of the newer layout made from its
//! description, and damaged ones.

mod kinds;
mod stated;
mod tools;

use super::*;
use crate::{Outcome, Series, Verdict};
use proptest::prelude::*;
use punctual_core::{Nanos, SeriesData};

const TWO_TEXT: &str = include_str!("testdata/two.txt");
const TWO_JSON: &str = include_str!("testdata/two.json");
const SUM_TEXT: &str = include_str!("testdata/sum.txt");
const NEW_LAYOUT: &str = include_str!("testdata/new-layout.txt");

/// The figures are not tested here.
fn no_figures(bundle: &Bundle) -> Summary {
    Summary {
        answer: None,
        schema: crate::summary::SCHEMA.into(),
        experiment: bundle.manifest.experiment.clone(),
        created: bundle.manifest.created,
        target: None,
        digest: None,
        ending: bundle.manifest.ending.clone(),
        phases: Vec::new(),
        mechanisms: Vec::new(),
        findings: bundle.findings.clone(),
        verdict: Verdict::default(),
        validity: None,
        baseline: None,
        published: None,
        calibration: punctual_core::Fact::NotAsked,
        gaps: Vec::new(),
        recording: None,
    }
}

fn imported_as(text: &str, options: &ImportOptions) -> Bundle {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("b");
    import_results(&mut text.as_bytes(), &directory, options, no_figures).unwrap();
    let bundle = Bundle::open(&directory).unwrap();
    assert_eq!(bundle.damage, Vec::<String>::new());
    bundle
}

fn imported(text: &str) -> Bundle {
    imported_as(text, &ImportOptions::default())
}

fn series(bundle: &Bundle) -> Vec<&Series> {
    bundle.all_series().map(|(_, series)| series).collect()
}

fn finding_ids(bundle: &Bundle) -> Vec<&str> {
    bundle.findings.iter().map(|f| f.id.as_str()).collect()
}

/// The rows of a text by column, read independently of the importer.
fn rows(text: &str) -> Vec<Vec<u64>> {
    let is_row = |line: &&str| line.starts_with(|c: char| c.is_ascii_digit());
    text.lines()
        .filter(is_row)
        .map(|l| l.split_whitespace().map(|n| n.parse().unwrap()).collect())
        .collect()
}

/// The numbers of a line of the footer.
fn footer(text: &str, name: &str) -> Vec<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("# {name}:"))).unwrap();
    line.split_whitespace().map(|n| n.parse().unwrap()).collect()
}

fn check_against_text(data: &SeriesData, text: &str, thread: usize) {
    let rows = rows(text);
    let last = rows.last().unwrap()[0];
    assert_eq!(data.exact.bins.len() as u64, last + 1);
    for row in &rows {
        assert_eq!(data.exact.bins[row[0] as usize], row[thread + 1], "bin {}", row[0]);
    }
    assert_eq!(data.exact.above, footer(text, "Histogram Overflows")[thread]);
    assert_eq!(data.min, Some(Nanos::from_micros(footer(text, "Min Latencies")[thread] as i64)));
    assert_eq!(data.max, Some(Nanos::from_micros(footer(text, "Max Latencies")[thread] as i64)));
    let mean = footer(text, "Avg Latencies")[thread];
    assert!(
        (mean * 1_000..(mean + 1) * 1_000).contains(&(data.mean().unwrap() as u64)),
        "{:?} for {mean}",
        data.mean()
    );
    assert_eq!(
        (data.sample_count(), data.exact.total_count(), data.whole.len()),
        (data.sample_count(), data.sample_count(), data.sample_count())
    );
    assert_eq!(data.sum_squares, None);
}

#[test]
fn a_text_histogram_is_imported_exactly() {
    let bundle = imported(TWO_TEXT);
    let series = series(&bundle);
    assert_eq!(series.len(), 2);
    series.iter().enumerate().for_each(|(k, s)| check_against_text(&s.state.data, TWO_TEXT, k));
    assert_eq!(
        (series[0].meta.scheduling.as_str(), series[0].meta.real_time),
        ("SCHED_FIFO", true)
    );
    assert_eq!(series[1].meta.period, Some(Nanos::MILLI));
    assert!(series[1].meta.tid.is_some());
    assert_eq!(bundle.manifest.origin, "import: cyclictest histogram text");
}

#[test]
fn json_and_text_of_one_run_agree() {
    let (text, json) = (imported(TWO_TEXT), imported(TWO_JSON));
    for (a, b) in series(&text).into_iter().zip(series(&json)) {
        assert_eq!(a.state.data.exact, b.state.data.exact);
        assert_eq!(a.state.data.whole, b.state.data.whole);
        assert_eq!((a.state.data.min, a.state.data.max), (b.state.data.min, b.state.data.max));
        assert_eq!(b.meta.scheduling, "SCHED_FIFO");
    }
    assert_eq!(series(&json)[1].meta.cpus.to_string(), "1");
    assert_eq!(series(&json)[0].meta.details["system_release"], "6.18.0");
    assert_eq!(json.phases[0].meta.started.to_string(), "2026-11-21T09:25:59Z");
    assert_eq!(json.phases[0].meta.duration, Some(Nanos::SECOND));
}

#[test]
fn the_sum_column_is_checked_but_not_imported() {
    let bundle = imported(SUM_TEXT);
    let series = series(&bundle);
    assert_eq!(series.len(), 2);
    series.iter().enumerate().for_each(|(k, s)| check_against_text(&s.state.data, SUM_TEXT, k));
    let wrong =
        SUM_TEXT.replacen("000024 000000\t000000\t000000", "000024 000000\t000000\t000009", 1);
    assert_ne!(wrong, SUM_TEXT);
    assert!(refused(&wrong).contains("not the sum"));
}

#[test]
fn the_newer_layout_without_zeros_and_totals_is_read() {
    let bundle = imported(NEW_LAYOUT);
    let series = series(&bundle);
    series.iter().enumerate().for_each(|(k, s)| check_against_text(&s.state.data, NEW_LAYOUT, k));
    assert_eq!(series[0].state.data.sample_count(), 1_000);
}

#[test]
fn overflows_of_a_histogram_are_counted_at_the_maximum() {
    let bundle = imported(NEW_LAYOUT);
    let data = &series(&bundle)[1].state.data;
    assert_eq!((data.exact.above, data.whole.count_between(500_000, 530_000)), (6, 6));
    let of_threads: Vec<&str> =
        finding_ids(&bundle).into_iter().filter(|id| *id == "overflow-values-unknown").collect();
    assert_eq!(of_threads.len(), 2);
}

#[test]
fn without_a_histogram_there_is_no_distribution() {
    let bundle = imported(include_str!("testdata/none.json"));
    let data = &series(&bundle)[0].state.data;
    assert_eq!((data.sample_count(), data.whole.len(), data.exact.total_count()), (300, 0, 0));
    assert!(data.min.is_some() && data.max.is_some() && data.mean().is_some());
}

#[test]
fn a_command_line_that_is_not_escaped_does_no_harm() {
    let text = include_str!("testdata/unescaped.json");
    assert!(
        serde_json::from_str::<serde_json::Value>(text).is_err(),
        "the file is to be broken JSON"
    );
    let bundle = imported(text);
    let line = &series(&bundle)[0].meta.details["command_line"];
    assert_eq!(line, r#"cyclictest -t1 -p80 -i1000 -l300 -h 40 -q --json=quo"te\d.json"#);
}

#[test]
fn nanoseconds_are_taken_as_such() {
    let bundle = imported(include_str!("testdata/nanoseconds.json"));
    let data = &series(&bundle)[0].state.data;
    assert_eq!((data.exact.resolution, data.exact.bins.len()), (Nanos(1), 60_000));
    let options = ImportOptions { nanoseconds: true, ..ImportOptions::default() };
    let bundle = imported_as(NEW_LAYOUT, &options);
    assert_eq!(series(&bundle)[0].state.data.max, Some(Nanos(71)));
}

#[test]
fn a_run_ended_by_a_latency_is_imported_as_stopped() {
    let bundle = imported(include_str!("testdata/break.txt"));
    let outcome = bundle.manifest.ending.unwrap().outcome;
    assert_eq!(outcome, stopped_above("thread 0", 1_473_000));
}

fn stopped_above(series: &str, latency: i64) -> Outcome {
    let series = format!("imported/{series}");
    Outcome::StoppedAbove { series, latency, limit: None, seq: None }
}

fn refused(text: &str) -> String {
    check_input(text.as_bytes(), &ImportOptions::default()).unwrap_err().to_string()
}

#[test]
fn a_malformed_import_is_refused_with_its_line_number() {
    let head = "# Histogram\n000001 000005\t000007\n";
    let foot = "# Min Latencies: 1 1\n# Avg Latencies: 1 1\n# Max Latencies: 1 1\n# Histogram \
                Overflows: 0 0\n";
    assert!(check_input(format!("{head}{foot}").as_bytes(), &ImportOptions::default()).is_ok());
    let cases = [
        (String::new(), "not the output of a tool that can be imported (cyclictest, "),
        ("hello\nworld\n".to_owned(), "not the output of a tool that can be imported"),
        (head.to_owned(), "line 2: it ends without a line `# Min Latencies:`"),
        (format!("{head}000001 1\t1\n{foot}"), "line 3: the latency 1 comes twice"),
        (format!("{head}000002 1\n{foot}"), "line 3: 1 counts in this row, 2 in the first"),
        (format!("{head}000002 1\tx\n{foot}"), "line 3: \"x\" is not a number"),
        (
            format!("{head}000002 1\t99999999999999999999999\n{foot}"),
            "line 3: 99999999999999999999999 is too large",
        ),
        (format!("{head}99999999 1\t1\n{foot}"), "line 3: the latency 99999999 is implausible"),
        (
            format!("{head}# Total: 000000005 000000008\n{foot}"),
            "line 3: thread 1 has 7 cycles in its rows, not 8",
        ),
        (format!("{head}{foot}# Max Latencies: 1 1\n"), "line 7: a second line `# Max Latencies:`"),
        (
            format!("{head}{foot}# Histogram\n"),
            "line 7: a second histogram; the first begins in line 1",
        ),
        (format!("{head}{foot}rubbish\n"), "line 7: the histogram is followed by something"),
        (
            format!("{head}{}", foot.replace("Avg Latencies: 1 1", "Avg Latencies: 1")),
            "line 4: 1 numbers for 2 threads",
        ),
        (
            format!("{head}{}", foot.replace("# Min Latencies: 1 1", "# Min Latencies:")),
            "line 1: no thread has a minimum",
        ),
        ("{".to_owned(), "line 1: column 1: EOF"),
        ("{\n\"file_version\": 2, \"thread\": {}}".to_owned(), "line 1: its file_version is 2"),
        ("{\"file_version\": 1}".to_owned(), "there is no `thread` in it"),
        ("{\"file_version\": 1, \"thread\": {}}".to_owned(), "there is no thread in it"),
        (
            TWO_JSON.replace("\"cycles\": 1000", "\"cycles\": 10"),
            "cycles in its histogram, but only 10 in all",
        ),
        (TWO_JSON.replace("\"cycles\": 1000", "\"cycles\": -1"), "invalid value"),
        (TWO_JSON.replace("\"1\": {", "\"0\": {"), "thread 0 comes twice"),
        (TWO_JSON.replace("\"1\": {", "\"one\": {"), "thread one: it has no index"),
    ];
    for (text, expected) in cases {
        let said = refused(&text);
        assert!(said.contains(expected), "{said:?} for {expected:?}");
    }
    let said =
        check_input(b"# Histogram\n\xff", &ImportOptions::default()).unwrap_err().to_string();
    assert!(said.starts_with("line 2: it is not UTF-8"), "{said}");
}

#[test]
fn oversized_imports_are_refused() {
    let many: String = (0..9_000)
        .map(|k| {
            format!(
                "\"{k}\": {{\"histogram\": {{\"16777215\": 1}}, \"cycles\": 1, \"min\": 1, \
                 \"max\": 2, \"avg\": 1.0}},"
            )
        })
        .collect();
    let json = format!("{{\"file_version\": 1, \"thread\": {{{}}}}}", many.trim_end_matches(','));
    assert!(
        refused(&json).contains("it has no index"),
        "more threads than CPUs: {}",
        refused(&json)
    );
    let some: String = many.split_inclusive("},").take(20).collect();
    let json = format!("{{\"file_version\": 1, \"thread\": {{{}}}}}", some.trim_end_matches(','));
    assert!(refused(&json).contains("more than fit"), "{}", refused(&json));
    let endless = &mut io::repeat(b'#');
    let place = tempfile::tempdir().unwrap();
    let error =
        import_results(endless, &place.path().join("b"), &ImportOptions::default(), no_figures)
            .unwrap_err();
    assert!(matches!(error, ImportError::TooLarge) && error.to_string().contains("the bound of"));
    assert!(!place.path().join("b").exists(), "nothing is written before everything is read");
}

proptest! {
    #[test]
    fn no_text_panics(text in "\\PC{0,300}") {
        let _ = check_input(text.as_bytes(), &ImportOptions::default());
    }
    #[test]
    fn no_damage_panics(at in 0usize..20_000, with in "[ -~\n\t]{0,6}", json in any::<bool>()) {
        let mut text = if json { TWO_JSON } else { NEW_LAYOUT }.to_owned();
        let at = at % text.len();
        text.replace_range(at..(at + with.len()).min(text.len()), &with);
        let _ = check_input(text.as_bytes(), &ImportOptions::default());
    }
}
