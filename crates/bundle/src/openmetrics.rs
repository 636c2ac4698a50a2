//! Figures as OpenMetrics text: <https://prometheus.io/docs/specs/om/open_metrics_spec/>.
//!
//! Times are in seconds, as the specification requires. Buckets are cumulative; their edges are as
//! exact as the histogram, within 0.1 %.

use crate::Verdict;
use crate::summary::VerdictWord;
use punctual_core::{Nanos, SeriesData};
use std::fmt::Write;

/// A label and its value.
pub type Label<'a> = (&'a str, String);

/// A text under construction.
#[derive(Default)]
pub struct Exposition {
    text: String,
}

/// The type of a family of metrics.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum MetricType {
    Counter,
    Gauge,
    Histogram,
}

impl MetricType {
    fn type_word(self) -> &'static str {
        match self {
            MetricType::Counter => "counter",
            MetricType::Gauge => "gauge",
            MetricType::Histogram => "histogram",
        }
    }
}

/// Upper edges of the buckets in ns: 1, 2 and 5 of each decade from 1 µs to 10 s.
const EDGES: [i64; 22] = [
    1_000,
    2_000,
    5_000,
    10_000,
    20_000,
    50_000,
    100_000,
    200_000,
    500_000,
    1_000_000,
    2_000_000,
    5_000_000,
    10_000_000,
    20_000_000,
    50_000_000,
    100_000_000,
    200_000_000,
    500_000_000,
    1_000_000_000,
    2_000_000_000,
    5_000_000_000,
    10_000_000_000,
];

impl Exposition {
    /// Counters; `name` without `_total`.
    pub fn add_counters(&mut self, name: &str, help: &str, all: &[(Vec<Label<'_>>, u64)]) {
        self.write_family(name, MetricType::Counter, help, all, |text, name, labels, value| {
            write_sample(text, name, "_total", labels, &value.to_string());
        });
    }

    /// Cumulative times, in seconds: `name` ends in `_seconds`.
    pub fn time_counters(&mut self, name: &str, help: &str, all: &[(Vec<Label<'_>>, Nanos)]) {
        self.write_family(name, MetricType::Counter, help, all, |text, name, labels, value| {
            write_sample(text, name, "_total", labels, &format_seconds(value.ns().into()));
        });
    }

    /// Times, in seconds: `name` ends in `_seconds`.
    pub fn time_gauges(&mut self, name: &str, help: &str, all: &[(Vec<Label<'_>>, Nanos)]) {
        self.write_family(name, MetricType::Gauge, help, all, |text, name, labels, value| {
            write_sample(text, name, "", labels, &format_seconds(value.ns().into()));
        });
    }

    /// The verdict, if known: the metric of the word that holds is 1, the others are 0. The exit
    /// code adds information: it shows a failure even if nothing was required.
    pub fn add_verdict(&mut self, labels: &[Label<'_>], verdict: &Verdict) {
        let words = VerdictWord::ALL.map(Some).into_iter().chain([None]);
        let is_it = words.map(|word| {
            let text = word.map_or("none-asked", VerdictWord::json_word).to_owned();
            let labels = labels.iter().cloned().chain([("verdict", text)]).collect();
            (labels, u64::from(verdict.word == word))
        });
        let help = "Of all requirements and limits together, once the measurement has ended.";
        self.add_gauges("punctual_verdict", help, &is_it.collect::<Vec<_>>());
        let code = [(labels.to_vec(), u64::from(verdict.to_exit() as u8))];
        self.add_gauges(
            "punctual_exit_code",
            "That follows from the verdict: 0 where all is met.",
            &code,
        );
    }

    pub fn add_gauges(&mut self, name: &str, help: &str, all: &[(Vec<Label<'_>>, u64)]) {
        self.write_family(name, MetricType::Gauge, help, all, |text, name, labels, value| {
            write_sample(text, name, "", labels, &value.to_string());
        });
    }

    /// Histograms of latencies, in seconds: `name` ends in `_seconds`.
    pub fn add_histograms(
        &mut self,
        name: &str,
        help: &str,
        all: &[(Vec<Label<'_>>, &SeriesData)],
    ) {
        self.write_family(name, MetricType::Histogram, help, all, |text, name, labels, data| {
            write_histogram(text, name, labels, data);
        });
    }

    /// Writes a family; one without samples is omitted.
    fn write_family<V>(
        &mut self,
        name: &str,
        kind: MetricType,
        help: &str,
        all: &[(Vec<Label<'_>>, V)],
        write: impl Fn(&mut String, &str, &[Label<'_>], &V),
    ) {
        if all.is_empty() {
            return;
        }
        let _ = writeln!(self.text, "# TYPE {name} {}", kind.type_word());
        if name.ends_with("_seconds") {
            let _ = writeln!(self.text, "# UNIT {name} seconds");
        }
        let _ = writeln!(self.text, "# HELP {name} {}", escape_value(help));
        all.iter().for_each(|(labels, value)| write(&mut self.text, name, labels, value));
    }

    pub fn finish(mut self) -> String {
        self.text += "# EOF\n";
        self.text
    }
}

fn write_histogram(text: &mut String, name: &str, labels: &[Label<'_>], data: &SeriesData) {
    let bucket = |text: &mut String, edge: String, count: u64| {
        let labels: Vec<Label<'_>> = labels.iter().cloned().chain([("le", edge)]).collect();
        write_sample(text, name, "_bucket", &labels, &count.to_string());
    };
    // The count comes from the histogram: while it is being filled, other counters may differ.
    let total_count = data.whole.len();
    for edge in EDGES {
        bucket(text, format_seconds(edge.into()), data.whole.count_between(0, edge as u64));
    }
    bucket(text, "+Inf".to_owned(), total_count);
    write_sample(text, name, "_count", labels, &total_count.to_string());
    // OpenMetrics allows no `_sum` that can decrease.
    if data.min.is_none_or(|min| min.ns() >= 0) {
        write_sample(text, name, "_sum", labels, &format_seconds(data.sum));
    }
}

fn write_sample(text: &mut String, name: &str, suffix: &str, labels: &[Label<'_>], value: &str) {
    let labels: Vec<String> =
        labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escape_value(value))).collect();
    let labels =
        if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
    let _ = writeln!(text, "{name}{suffix}{labels} {value}");
}

/// ns as seconds, exactly, and always with a point: `0.00012`, `1.0`.
fn format_seconds(ns: i128) -> String {
    const SECOND: u128 = 1_000_000_000;
    let (sign, ns) = (if ns < 0 { "-" } else { "" }, ns.unsigned_abs());
    let fraction = format!("{:09}", ns % SECOND);
    let fraction = fraction.trim_end_matches('0');
    let fraction = if fraction.is_empty() { "0" } else { fraction };
    format!("{sign}{}.{fraction}", ns / SECOND)
}

/// Escaped for the format and for terminals.
fn escape_value(value: &str) -> String {
    let line = |line: &str| {
        punctual_core::format::escape_unsafe(line).replace('\\', "\\\\").replace('"', "\\\"")
    };
    value.split('\n').map(line).collect::<Vec<_>>().join("\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_in_metric_labels_are_escaped() {
        let mut text = String::new();
        write_sample(
            &mut text,
            "x",
            "_total",
            &[("thread", "a\u{1b}]0;b\u{7}\"\n".to_owned())],
            "1",
        );
        assert_eq!(text, "x_total{thread=\"a\\\\u{1b}]0;b\\\\u{7}\\\"\\n\"} 1\n");
    }

    #[test]
    fn seconds_in_metrics_are_exact() {
        let cases = [
            (0, "0.0"),
            (1, "0.000000001"),
            (1_000, "0.000001"),
            (120_000, "0.00012"),
            (1_000_000_000, "1.0"),
            (-1_500_000_000, "-1.5"),
            (i128::from(i64::MAX) * 1_000, "9223372036854.775807"),
        ];
        for (ns, text) in cases {
            assert_eq!(format_seconds(ns), text);
        }
        assert_eq!(format_seconds(i128::from(i64::MAX) * 1_000), "9223372036854.775807");
    }
}
