//! OpenMetrics text, read back by a strict reader.

pub mod check;

use punctual_bundle::openmetrics::Exposition;
use punctual_core::{ClockNs, Nanos, Sample, SeriesData, SeriesShape};

fn data(latencies: &[i64]) -> SeriesData {
    let shape =
        SeriesShape { range: Nanos::MILLI, resolution: Nanos::MICRO, period: Some(Nanos::MILLI) };
    let mut data = SeriesData::new(shape);
    for (seq, latency) in latencies.iter().enumerate() {
        let due = seq as i64 * 1_000_000;
        let woke = ClockNs(due + latency);
        data.record_sample(&Sample { seq: seq as u64, due: ClockNs(due), woke, cpu: 0 }, 0);
    }
    data
}

const STRANGE: &str = "a \"name\" with \\ and\nlines, {=}";

fn text() -> String {
    let labels = |name: &str| vec![("thread", name.to_owned()), ("tid", "7".to_owned())];
    let (few, none) = (data(&[500, 1_500, 1_500, 3_000_000, 20_000_000_000]), data(&[]));
    let mut all = Exposition::default();
    let histograms = [(labels(STRANGE), &few), (labels("idle"), &none)];
    all.add_histograms("x_response_time_seconds", "Response times.", &histograms);
    all.add_counters("x_cycles", "Cycles: \\ and\nmore.", &[(labels(STRANGE), 5)]);
    all.time_counters("x_cause_seconds", "Time.", &[(labels("idle"), Nanos(1_234_567_890))]);
    all.time_gauges("x_worst_seconds", "The longest.", &[(Vec::new(), Nanos(20_000_000_000))]);
    all.add_counters("x_nothing", "Nobody has any.", &[]);
    all.finish()
}

#[test]
fn written_metrics_are_accepted_by_a_strict_reader() {
    let text = text();
    let samples = check::read(&text).unwrap_or_else(|why| panic!("{why}\n{text}"));
    assert!(!text.contains("x_nothing"));
    let one = |name: &str, thread: &str, edge: Option<&str>| {
        let all = samples[name].iter();
        let found = all.filter(|one| {
            one.labels.get("thread").map(String::as_str) == Some(thread)
                && one.labels.get("le").map(String::as_str) == edge
        });
        let found: Vec<f64> = found.map(|one| one.value).collect();
        assert_eq!(found.len(), 1, "{name} {thread} {edge:?}");
        found[0]
    };
    assert_eq!(one("x_cycles_total", STRANGE, None), 5.0);
    assert_eq!(one("x_cause_seconds_total", "idle", None), 1.23456789);
    assert_eq!(samples["x_worst_seconds"][0].value, 20.0);
    let bucket = |edge| one("x_response_time_seconds_bucket", STRANGE, Some(edge));
    let edges = ["0.000001", "0.000002", "0.002", "0.005", "1.0", "10.0", "+Inf"];
    assert_eq!(edges.map(bucket), [1.0, 3.0, 3.0, 4.0, 4.0, 4.0, 5.0]);
    assert_eq!(one("x_response_time_seconds_count", STRANGE, None), 5.0);
    assert_eq!(one("x_response_time_seconds_sum", STRANGE, None), 20.0030035);
    assert_eq!(one("x_response_time_seconds_count", "idle", None), 0.0);
}

#[test]
fn malformed_metrics_are_refused_by_the_strict_reader() {
    let text = text();
    let refused = |from: &str, to: &str| {
        let changed = text.replacen(from, to, 1);
        assert_ne!(changed, text, "{from}");
        assert!(check::read(&changed).is_err(), "`{from}` as `{to}`:\n{changed}");
    };
    refused("# EOF\n", "");
    refused("x_cycles_total", "x_cycles");
    refused("# HELP x_cycles ", "# HELP x_cycle ");
    refused("le=\"+Inf\"", "le=\"11.0\"");
    refused("le=\"1.0\"", "le=\"1\"");
    refused("le=\"0.000002\"", "le=\"0.000001\"");
    refused("_count{", "_counts{");
    refused("# TYPE x_cycles counter\n", "");
    refused(" 20.0\n", " 20,0\n");
    refused("\\n", "\\t");
    refused("tid=\"7\"", "tid=\"7\",tid=\"7\"");
    let negative = data(&[-5, 10]);
    let mut all = Exposition::default();
    all.add_histograms("x_seconds", "Some are negative.", &[(Vec::new(), &negative)]);
    let text = all.finish();
    let samples = check::read(&text).unwrap_or_else(|why| panic!("{why}\n{text}"));
    assert!(!samples.contains_key("x_seconds_sum") && samples.contains_key("x_seconds_count"));
}
