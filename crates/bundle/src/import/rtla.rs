//! The output of rtla (kernel, tools/tracing/rtla): the histograms of `hist`, the tables of `top`
//! and of `hwnoise`, and the analysis of the latency that stopped it.

mod analysis;
mod hist;
mod top;

use super::osnoise::{OsnoiseRow, add_noise};
use super::recorded::{ImportedFile, Thread, file_note, file_warning};
use super::scan::{clip_text, scan_lines, without_cursor_moves};
use super::{Malformed, TextReader, Tool};

pub(super) const READER: TextReader =
    TextReader { what: "text of rtla", recognize: recognize_text, parse, may_lack_unit: true };
pub(crate) use analysis::Analyses;
pub(crate) use analysis::RtlaStop;
use hist::Hist;
use punctual_core::{Finding, Nanos};
use top::Top;

/// Recognises the tool that printed the text.
fn recognize_text(text: &str) -> Option<Tool> {
    let mut lines = text.lines().map(|line| without_cursor_moves(line.trim_end()));
    lines.find_map(|line| tool_of_line(line.trim())).or_else(|| hist::recognize_rows(text))
}

fn tool_of_line(line: &str) -> Option<Tool> {
    let comment = line.trim_start_matches(['#', ' ']);
    let is_stop = line.starts_with("##") && comment.contains(" hit stop tracing");
    match comment {
        "RTLA timerlat histogram" | "rtla timerlat hit stop tracing" | "Timer Latency" => {
            Some(Tool::Timerlat)
        }
        "RTLA osnoise histogram"
        | "rtla osnoise hit stop tracing"
        | "Operating System Noise"
        | "Hardware-related Noise" => Some(Tool::Osnoise),
        _ if is_stop || comment.starts_with("IRQ handler delay:") => Some(Tool::Timerlat),
        _ => hist::recognize_header(line).or_else(|| top::recognize_row(line)),
    }
}

/// Reads the text. Its parts are of one run: a table or histogram, then the stop.
fn parse(text: &str, tool: Tool, nanoseconds: bool) -> Result<ImportedFile, Malformed> {
    let (mut hist, mut top, mut analyses) = (Hist::default(), Top::default(), Analyses::default());
    let mut missed = None;
    let lines = scan_lines(text, |line| {
        let line = without_cursor_moves(line.trim_end());
        let line = line.trim();
        if line.contains("events missed, results might not be accurate") {
            missed = Some(clip_text(line, 80));
        } else if !analyses.read_line(line) && !top.read_line(line)? {
            hist.read_line(line)?;
        }
        Ok(())
    })?;
    let name = |hist: bool| match (tool, hist) {
        (Tool::Timerlat, true) => "rtla timerlat hist",
        (Tool::Timerlat, false) => "rtla timerlat top",
        (_, true) => "rtla osnoise hist",
        (_, false) => "rtla osnoise top",
    };
    let mut into = if top.is_seen() {
        top.into_file(ImportedFile::new(tool, name(false)), nanoseconds)
    } else if hist.is_seen() || analyses.is_empty() {
        let recorded = hist.into_file(ImportedFile::new(tool, name(true)), nanoseconds);
        recorded.map_err(|defect| defect.or_at(lines))?
    } else {
        let recorded = analyses.to_file(ImportedFile::new(tool, "rtla timerlat -a"));
        recorded.map_err(|defect| defect.or_at(lines))?
    };
    if into.threads.is_empty() {
        // Columns and rows exist only for CPUs with a sample: none had one.
        into.threads.push(Thread { name: Some("all CPUs".into()), ..Thread::default() });
        into.findings.push(nothing_recorded(tool, into.duration));
    }
    into.findings.extend(missed.map(|line| {
        let message = "rtla lost events: counts, and the largest latency, may be too small";
        file_warning("source-lost-events", message).with_evidence(line)
    }));
    match analyses.add_causes(&mut into) {
        RtlaStop::Known(series, latency) => into.stopped = Some((series, latency)),
        RtlaStop::Unknown => into.findings.push(stopped_somewhere(&into)),
        RtlaStop::None => {}
    }
    Ok(into)
}

/// A stop with a latency that rtla does not state.
fn stopped_somewhere(into: &ImportedFile) -> Finding {
    let largest = |part: &str| {
        let active_threads = into.threads.iter().filter(|thread| thread.cycle_count() > 0);
        let threads_of_part = active_threads.filter(|thread| thread.series_name().ends_with(part));
        let worst = threads_of_part.max_by_key(|thread| thread.max)?;
        let latency = (into.unit * worst.max as i64).to_readable();
        Some(format!("{} {latency}", worst.series_name()))
    };
    let parts: &[&str] = match into.tool {
        Tool::Timerlat => &["/irq", "/thread", "/user"],
        _ => &[""],
    };
    let largest_latencies: Vec<String> = parts.iter().filter_map(|part| largest(part)).collect();
    let message = "a threshold ended the run; rtla does not state which latency exceeded it";
    file_warning("stopped-by-threshold", message)
        .with_evidence(format!("largest: {}", largest_latencies.join(", ")))
        .with_remedy(
            "let rtla analyse the latency (without --no-aa), and import all that it prints",
        )
}

fn nothing_recorded(tool: Tool, duration: Option<Nanos>) -> Finding {
    let what = match tool {
        Tool::Osnoise => "no noise above the tool's threshold was recorded",
        _ => "no latency was recorded",
    };
    let time = duration.map_or("not stated".to_owned(), Nanos::to_readable);
    file_note("nothing-recorded", what)
        .with_evidence(format!("duration: {time}; the output has no CPU"))
}

/// `  0 00:00:03`: days, hours, minutes, seconds.
fn days_and_clock(text: &str) -> Option<Nanos> {
    let (days, clock) = text.trim().split_once(' ')?;
    let mut seconds: i64 = days.parse::<u16>().ok()?.into();
    let mut parts = 0;
    for (part, size) in clock.trim().split(':').zip([24, 60, 60]) {
        seconds = seconds * size + i64::from(part.parse::<u8>().ok()?);
        parts += 1;
    }
    (parts == 3).then_some(Nanos::SECOND * seconds)
}

/// The series of a CPU, and of a kind of latency of timerlat.
fn series_name(cpu: u32, part: &str) -> String {
    format!("CPU {cpu}{part}")
}

/// A text without titles.
fn unit_assumed() -> Finding {
    let message = "the text does not state its unit: the figures are taken as µs";
    file_warning("unit-assumed", message).with_remedy("pass --nanoseconds if rtla ran with -n")
}
