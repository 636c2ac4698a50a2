//! The output of hwlatdetect: its parameters, the windows in which the kernel's hwlat tracer found
//! a gap above the threshold, and the largest gap.

use super::recorded::{ImportedFile, Thread, file_note, file_warning, make_table};
use super::scan::{
    MAX_LATENCY, check_bound, clip_text, read_bounded, read_count, read_number, refuse_second_run,
    scan_lines,
};
use super::{Malformed, TextReader, Tool};
use punctual_core::notes::{Cell, Figure, Table};
use punctual_core::{CpuSet, Finding, Nanos};
use std::collections::BTreeMap;
use std::mem::replace;

pub(super) const READER: TextReader = TextReader {
    what: "text of hwlatdetect",
    recognize: |text| is_hwlatdetect_text(text).then_some(Tool::Hwlatdetect),
    parse: |text, _, _| parse(text),
    may_lack_unit: false,
};

/// The maximum number of windows listed; all are in the figures.
const MAX_LISTED: usize = 1_000;

/// The tracer's two figures of a window: the longest gap within a pair of clock reads, and between
/// two pairs.
const PARTS: [&str; 2] = ["inner", "outer"];

/// Whether the text is from hwlatdetect, or its report (`--report`).
fn is_hwlatdetect_text(text: &str) -> bool {
    let is_own_line = |line: &str| line.starts_with("hwlatdetect:") || named_sample(line).is_some();
    text.lines().any(|line| is_own_line(line.trim()))
}

/// A window: inner and outer gap in µs, time and CPU.
struct HwlatWindow<'t> {
    gaps: [u64; 2],
    time: &'t str,
    cpu: Option<u32>,
}

fn read_sample(line: &str) -> Option<HwlatWindow<'_>> {
    named_sample(line).or_else(|| bare_sample(line)).or_else(|| tracer_sample(line))
}

/// `ts: 0000000012.345678901, inner:12, outer:15`, from rt-tests 2.6 on followed by `, cpu:1`.
fn named_sample(line: &str) -> Option<HwlatWindow<'_>> {
    let (time, rest) = line.strip_prefix("ts: ")?.split_once(", inner:")?;
    let (inner, rest) = rest.split_once(", outer:")?;
    let mut rest = rest.split(',').map(str::trim);
    let gaps = [inner.parse().ok()?, rest.next()?.parse().ok()?];
    let cpu = rest.find_map(|part| part.strip_prefix("cpu:")?.trim().parse().ok());
    Some(HwlatWindow { gaps, time, cpu })
}

/// `1408928107.0286324723 18 17`, with tabs: the format before rt-tests 1.4 named the fields
/// (Documentation/trace/hwlat_detector.rst, before Linux 4.9: debugfs, `sample`).
fn bare_sample(line: &str) -> Option<HwlatWindow<'_>> {
    let mut words = line.split_ascii_whitespace();
    let time = words.next()?;
    let (seconds, fraction) = time.split_once('.')?;
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let gaps = [words.next()?.parse().ok()?, words.next()?.parse().ok()?];
    let is_one = digits(seconds) && digits(fraction) && words.next().is_none();
    is_one.then_some(HwlatWindow { gaps, time, cpu: None })
}

/// The text before the gaps in the hwlat tracer's own table (kernel/trace/trace_output.c).
pub(crate) const TRACER: &str = "inner/outer(us):";

/// `… [001] d...  123.4: #1     inner/outer(us):   12/14    ts:1499801089.066141940 count:3`.
fn tracer_sample(line: &str) -> Option<HwlatWindow<'_>> {
    let (head, rest) = line.split_once(TRACER)?;
    let (gaps, rest) = rest.split_once(" ts:")?;
    let (inner, outer) = gaps.split_once('/')?;
    let gaps = [inner.trim().parse().ok()?, outer.trim().parse().ok()?];
    let cpu = head.rsplit_once('[').and_then(|(_, cpu)| cpu.split_once(']')?.0.parse().ok());
    Some(HwlatWindow { gaps, time: rest.split_ascii_whitespace().next()?, cpu })
}

fn parse(text: &str) -> Result<ImportedFile, Malformed> {
    let mut recorded = ImportedFile::new(Tool::Hwlatdetect, "hwlatdetect text");
    let mut values: [Vec<u64>; 2] = Default::default();
    let (mut max, mut finished, mut parameters) = (None, false, false);
    let (mut windows, mut stated, mut report) = (0, None, None);
    let (mut listed, mut smis) = (Vec::new(), Smis::default());
    let lines = scan_lines(text, |line| {
        let line = line.trim();
        if let Some(window) = read_sample(line) {
            windows += 1;
            if listed.len() < MAX_LISTED {
                listed.push(format_row(&window));
            }
            for (values, gap) in values.iter_mut().zip(window.gaps) {
                // 0: only the other one was above the threshold.
                if check_bound(gap, MAX_LATENCY, "the gap")? > 0 {
                    values.push(gap);
                }
            }
            return Ok(());
        }
        if let Some(duration) = line.strip_prefix("hwlatdetect:  test duration ") {
            refuse_second_run(replace(&mut parameters, true))?;
            let seconds = duration.trim_end_matches(" seconds");
            let seconds = read_bounded(seconds, MAX_LATENCY, "the duration")?;
            recorded.duration = Some(Nanos::SECOND * seconds as i64);
        }
        if let Some((count, cpu)) = line.split_once(" SMIs occured on cpu ") {
            let count = read_count(count)?;
            smis.of_cpus.insert(read_number(cpu.trim())?, count);
        }
        let Some((name, value)) = line.split_once(':') else { return Ok(()) };
        let value = value.trim();
        match name {
            "SMIs during run" => smis.all = Some(read_number(value)?),
            "detector" | "CPU list" | "Latency threshold" | "Sample window" | "Sample width" => {
                recorded.details.insert(name.to_lowercase().replace(' ', "_"), value.to_owned());
            }
            "Output File" => report = Some(value.to_owned()).filter(|value| value != "None"),
            "Samples recorded" => stated = Some(read_number(value)?),
            "Max Latency" => {
                refuse_second_run(replace(&mut finished, true))?;
                if value != "Below threshold" {
                    max = Some(read_bounded(value.trim_end_matches("us"), MAX_LATENCY, name)?);
                }
            }
            _ => {}
        }
        Ok(())
    })?;
    if !parameters && !finished && windows == 0 {
        return Err(Malformed::with_line(lines, "there is neither a run nor a sample in it"));
    }
    if parameters && !finished {
        let reason = "it ends without `Max Latency:`: the run was cut off, or failed";
        return Err(Malformed::with_line(lines, reason));
    }
    if let Some(stated) = stated.filter(|stated| *stated != windows) {
        return Err(Malformed::with_line(lines, describe_missing(stated, windows, report)));
    }
    let found = values.iter().flatten().max().copied();
    for (index, (part, values)) in PARTS.into_iter().zip(values).enumerate() {
        recorded
            .threads
            .push(Thread { name: Some(part.to_owned()), ..Thread::of_values(index, values) });
    }
    recorded.findings.push(only_above(recorded.details.get("latency_threshold")));
    recorded.findings.extend(coverage_finding(&recorded));
    smis.add_smis(&mut recorded);
    if !listed.is_empty() {
        recorded.notes.tables.push(gaps_table(listed, windows));
    }
    if max.is_some() && max != found {
        recorded.findings.push(other_maximum(max, found));
    }
    Ok(recorded)
}

/// System management interrupts, counted by the CPU (MSR_SMI_COUNT).
#[derive(Default)]
struct Smis {
    all: Option<u64>,
    of_cpus: BTreeMap<u64, u64>,
}

impl Smis {
    fn add_smis(self, into: &mut ImportedFile) {
        let smi_count = self.all.unwrap_or(0).max(self.of_cpus.values().sum());
        if self.all.is_none() && smi_count == 0 {
            return;
        }
        let title = "system management interrupts during the run";
        into.notes.figures.push(Figure::new("smis", title, smi_count as f64, "count"));
        if smi_count > 0 {
            let count_of_cpu = |(cpu, count): (&u64, &u64)| format!("{count} on CPU {cpu}");
            let of_cpus: Vec<String> = self.of_cpus.iter().map(count_of_cpu).collect();
            let message =
                format!("{smi_count} system management interrupts: the firmware took the CPU");
            into.findings.push(
                file_warning("smis", message).with_evidence(of_cpus.join(", ")).with_remedy(
                    "look for the cause in the firmware's setup (USB legacy, ECC, power)",
                ),
            );
        }
    }
}

/// The part of the time searched for gaps: the sample width of each window, on one CPU after the
/// other.
fn coverage_finding(of: &ImportedFile) -> Option<Finding> {
    let us = |name: &str| of.details.get(name)?.strip_suffix("us")?.parse::<u64>().ok();
    let (width, window) = (us("sample_width")?, us("sample_window")?);
    if window == 0 || width > window {
        return None;
    }
    let share = width as f64 / window as f64;
    let one_at_once = of.details.get("detector").is_some_and(|detector| detector == "tracer");
    let cpus = of.details.get("cpu_list").and_then(|list| list.parse::<CpuSet>().ok());
    let cpus = cpus.filter(|cpus| one_at_once && cpus.len() > 1);
    let duration = of.duration.unwrap_or(Nanos::ZERO);
    let part = |share: f64| Nanos((duration.ns() as f64 * share) as i64).to_readable();
    let (mut message, mut evidence) = (
        format!("gaps were looked for in {} % of the time", (share * 1e5).round() / 1e3),
        format!("{} of {}", part(share), duration.to_readable()),
    );
    if let Some(cpus) = cpus {
        message += ", on one CPU at once";
        evidence +=
            &format!("; {} on each of {} CPUs", part(share / cpus.len() as f64), cpus.len());
    }
    let message = message + ": the largest is not an upper bound";
    (share < 1.0 || evidence.contains("each")).then(|| {
        file_warning("watched-in-part", message).with_evidence(evidence).with_remedy(
            "let it run longer, with a larger --width; `punctual measure spin` watches all of the \
             time",
        )
    })
}

fn format_row(window: &HwlatWindow<'_>) -> Vec<Cell> {
    let gap = |us: u64| match us.min(MAX_LATENCY) {
        0 => Cell::Nothing,
        us => Cell::from(Nanos::MICRO * us as i64),
    };
    let cpu = window.cpu.map_or(Cell::Nothing, |cpu| cpu.to_string().into());
    let time = clip_text(window.time, 40);
    vec![time.into(), cpu, gap(window.gaps[0]), gap(window.gaps[1])]
}

fn gaps_table(rows: Vec<Vec<Cell>>, all: u64) -> Table {
    let columns = [("time", ""), ("cpu", ""), ("inner", "ns"), ("outer", "ns")];
    let left_out = all - rows.len() as u64;
    let title = match left_out {
        0 => "each gap above the threshold".to_owned(),
        _ => format!("the first gaps above the threshold; {left_out} further ones"),
    };
    make_table("gaps", &title, &columns, rows)
}

/// Samples that the text states but does not contain.
fn describe_missing(stated: u64, windows: u64, report: Option<String>) -> String {
    let place = match report {
        Some(file) => format!("import the report {file:?}, which has all"),
        None => "give the whole output, or the file of --report".to_owned(),
    };
    format!("{stated} samples were recorded, {windows} are in it: {place}")
}

fn only_above(threshold: Option<&String>) -> Finding {
    let threshold = threshold.map_or("not stated", String::as_str);
    let message = "hwlatdetect keeps only windows with a gap above its threshold: counts, means \
                   and percentiles are of those alone";
    file_note("only-above-threshold", message)
        .with_evidence(format!("latency threshold: {threshold}"))
        .with_remedy(
            "compare maxima; for a distribution of all gaps use oslat or `punctual measure spin`",
        )
}

fn other_maximum(stated: Option<u64>, found: Option<u64>) -> Finding {
    let format_latency = |us: Option<u64>| {
        us.map_or("none".to_owned(), |us| (Nanos::MICRO * us as i64).to_readable())
    };
    let message = "the stated largest latency is not among the samples";
    file_warning("source-inconsistent", message)
        .with_evidence(format!(
            "stated {}, largest sample {}",
            format_latency(stated),
            format_latency(found)
        ))
        .with_remedy(
            "import the whole output: samples are lost where it was cut, or where --watch went \
             elsewhere",
        )
}
