//! What hwlatdetect prints: its parameters, the windows in which the kernel's hwlat tracer found a
//! gap above the threshold, and the largest.

use super::numbers::{number, second_run};
use super::recorded::{self, MAX_LATENCY, Recorded, Thread};
use super::{Malformed, Tool};
use punctual_core::{Finding, Nanos, Severity};

/// The tracer's two figures of a window: the longest gap within a pair of clock reads, and between
/// two pairs.
const PARTS: [&str; 2] = ["inner", "outer"];

/// Whether the text is hwlatdetect's, or its report (`--report`).
pub fn recognize(text: &str) -> bool {
    let own = |line: &str| line.starts_with("hwlatdetect:") || named_sample(line).is_some();
    text.lines().any(|line| own(line.trim()))
}

/// A window: inner and outer gap in µs.
fn sample(line: &str) -> Option<[u64; 2]> {
    named_sample(line).or_else(|| bare_sample(line))
}

/// `ts: 0000000012.345678901, inner:12, outer:15`, from rt-tests 2.6 on followed by `, cpu:1`.
fn named_sample(line: &str) -> Option<[u64; 2]> {
    let (_, rest) = line.strip_prefix("ts: ")?.split_once(", inner:")?;
    let (inner, rest) = rest.split_once(", outer:")?;
    let outer = rest.split(',').next()?;
    Some([inner.parse().ok()?, outer.trim().parse().ok()?])
}

/// `1408928107.0286324723 18 17`, with tabs: what the kernel's file held before rt-tests 1.4 named
/// its fields (Documentation/trace/hwlat_detector.rst, before Linux 4.9: debugfs, `sample`).
fn bare_sample(line: &str) -> Option<[u64; 2]> {
    let mut words = line.split_ascii_whitespace();
    let (seconds, fraction) = words.next()?.split_once('.')?;
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let gaps = [words.next()?.parse().ok()?, words.next()?.parse().ok()?];
    (digits(seconds) && digits(fraction) && words.next().is_none()).then_some(gaps)
}

pub fn parse(text: &str) -> Result<Recorded, Malformed> {
    let mut recorded = Recorded::of(Tool::Hwlatdetect, "hwlatdetect text");
    let mut values: [Vec<u64>; 2] = Default::default();
    let (mut max, mut finished, mut parameters, mut lines) = (None, false, false, 0);
    let (mut windows, mut stated, mut report) = (0, None, None);
    for (k, line) in text.lines().enumerate() {
        lines = k + 1;
        let line = line.trim();
        if let Some(gaps) = sample(line) {
            windows += 1;
            for (values, gap) in values.iter_mut().zip(gaps) {
                // 0: the other of the two was above the threshold.
                if recorded::bounded(gap, MAX_LATENCY, "the gap", lines)? > 0 {
                    values.push(gap);
                }
            }
            continue;
        }
        if let Some(duration) = line.strip_prefix("hwlatdetect:  test duration ") {
            if parameters {
                return Err(second_run(lines));
            }
            let seconds = number(duration.trim_end_matches(" seconds"), lines)?;
            let seconds = recorded::bounded(seconds, MAX_LATENCY, "the duration", lines)?;
            recorded.duration = Some(Nanos::SECOND * seconds as i64);
            parameters = true;
        }
        let Some((name, value)) = line.split_once(':') else { continue };
        let value = value.trim();
        match name {
            "CPU list" | "Latency threshold" | "Sample window" | "Sample width" => {
                recorded.details.insert(name.to_lowercase().replace(' ', "_"), value.to_owned());
            }
            "Output File" => report = Some(value).filter(|value| *value != "None"),
            "Samples recorded" => stated = Some(number(value, lines)?),
            "Max Latency" => {
                if std::mem::replace(&mut finished, true) {
                    return Err(second_run(lines));
                }
                if value != "Below threshold" {
                    max = Some(recorded::bounded(
                        number(value.trim_end_matches("us"), lines)?,
                        MAX_LATENCY,
                        name,
                        lines,
                    )?);
                }
            }
            _ => {}
        }
    }
    if !parameters && !finished && windows == 0 {
        return Err(Malformed::at(lines.max(1), "there is neither a run nor a sample in it"));
    }
    if parameters && !finished {
        return Err(Malformed::at(
            lines.max(1),
            "it ends without `Max Latency:`: the run was cut off, or failed",
        ));
    }
    if let Some(stated) = stated.filter(|stated| *stated != windows) {
        return Err(elsewhere(lines.max(1), stated, windows, report));
    }
    let found = values.iter().flatten().max().copied();
    for (index, (part, values)) in PARTS.into_iter().zip(values).enumerate() {
        recorded
            .threads
            .push(Thread { name: Some(part.to_owned()), ..Thread::of_values(index, values) });
    }
    recorded.findings.push(only_above(recorded.details.get("latency_threshold")));
    if max.is_some() && max != found {
        recorded.findings.push(other_maximum(max, found));
    }
    Ok(recorded)
}

/// Samples that the text states and does not hold.
fn elsewhere(line: usize, stated: u64, windows: u64, report: Option<&str>) -> Malformed {
    let place = match report {
        Some(file) => format!("import the report {file:?}, which has all"),
        None => "give the whole output, or the file of --report".to_owned(),
    };
    Malformed::at(line, format!("{stated} samples were recorded, {windows} are in it: {place}"))
}

fn only_above(threshold: Option<&String>) -> Finding {
    let threshold = threshold.map_or("not stated", String::as_str);
    let message = "hwlatdetect keeps only windows with a gap above its threshold: counts, means \
                   and percentiles are of those alone";
    Finding::new("only-above-threshold", Severity::Note, "", message)
        .evidence(format!("latency threshold: {threshold}"))
        .remedy(
            "compare maxima; for a distribution of all gaps use oslat or `punctual measure spin`",
        )
}

fn other_maximum(stated: Option<u64>, found: Option<u64>) -> Finding {
    let shown =
        |us: Option<u64>| us.map_or("none".to_owned(), |us| (Nanos::MICRO * us as i64).readable());
    let message = "the stated largest latency is not among the samples";
    Finding::new("source-inconsistent", Severity::Warning, "", message)
        .evidence(format!("stated {}, largest sample {}", shown(stated), shown(found)))
        .remedy(
            "import the whole output: samples are lost where it was cut, or where --watch went \
             elsewhere",
        )
}
