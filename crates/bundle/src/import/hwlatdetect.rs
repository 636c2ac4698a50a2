//! What hwlatdetect prints: its parameters, the windows in which the kernel's hwlat tracer found a
//! gap above the threshold, and the largest.

use super::numbers::number;
use super::recorded::{self, MAX_LATENCY, Recorded, Thread};
use super::{Malformed, Tool};
use punctual_core::{Finding, Nanos, Severity};

/// The tracer's two figures of a window: the longest gap within a pair of clock reads, and between
/// two pairs.
const PARTS: [&str; 2] = ["inner", "outer"];

/// Whether the text is hwlatdetect's, or its report (`--report`).
pub fn recognize(text: &str) -> bool {
    text.lines().any(|line| line.starts_with("hwlatdetect:") || sample(line).is_some())
}

/// `ts: 0000000012.345678901, inner:12, outer:15`, from rt-tests 2.6 on followed by `, cpu:1`.
fn sample(line: &str) -> Option<[u64; 2]> {
    let (_, rest) = line.strip_prefix("ts: ")?.split_once(", inner:")?;
    let (inner, rest) = rest.split_once(", outer:")?;
    let outer = rest.split(',').next()?;
    Some([inner.parse().ok()?, outer.trim().parse().ok()?])
}

/// Reads the text.
pub fn parse(text: &str) -> Result<Recorded, Malformed> {
    let mut recorded = Recorded::of(Tool::Hwlatdetect, "hwlatdetect text");
    let mut values: [Vec<u64>; 2] = Default::default();
    let (mut max, mut finished, mut parameters, mut lines) = (None, false, false, 0);
    for (k, line) in text.lines().enumerate() {
        lines = k + 1;
        let line = line.trim();
        if let Some(gaps) = sample(line) {
            for (values, gap) in values.iter_mut().zip(gaps) {
                // 0: the other of the two was above the threshold.
                if recorded::bounded(gap, MAX_LATENCY, "the gap", lines)? > 0 {
                    values.push(gap);
                }
            }
            continue;
        }
        if let Some(duration) = line.strip_prefix("hwlatdetect:  test duration ") {
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
            "Max Latency" => {
                finished = true;
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
    if parameters && !finished {
        return Err(Malformed::at(
            lines.max(1),
            "it ends without `Max Latency:`: the run was cut off, or failed",
        ));
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
