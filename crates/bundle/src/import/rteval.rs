//! Reports of rteval: `summary.xml`, and the text made from it. The tests are cyclictest or `rtla
//! timerlat`, with figures per core (modules/measurement).
//!
//! ```text
//! <core id="0" priority="95"><statistics><samples>3971</samples><minimum unit="us">4</minimum>
//! ```

use super::recorded::{ImportedFile, Thread, file_warning};
use super::rtla::{Analyses, RtlaStop};
use super::scan::{
    MAX_LATENCY, add_bin, check_bin, clip_text, read_count, read_cpu, read_decimal,
    read_microseconds, read_number, read_priority, refuse_second_run, scan_lines,
};
use super::{Malformed, TextReader, Tool};
use punctual_core::{Finding, Nanos, Severity};

pub(super) const READER: TextReader = TextReader {
    what: "report of rteval",
    recognize: |text| recognize_layout(text).map(|_| Tool::Rteval),
    parse: |text, _, _| parse(text, recognize_layout(text).unwrap_or(RtevalLayout::Text)),
    may_lack_unit: false,
};

/// The format of the text.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RtevalLayout {
    Xml,
    Text,
}

fn recognize_layout(text: &str) -> Option<RtevalLayout> {
    let head = || text.lines().take(1_000).map(str::trim);
    if head().any(|line| line.starts_with("<rteval")) {
        return Some(RtevalLayout::Xml);
    }
    let is_title = |line: &str| line.starts_with("rteval (v") && line.ends_with(") report");
    let is_core = |line: &str| line.starts_with("CPU core ") && line.contains("Priority:");
    (head().any(is_title) || head().any(is_core)).then_some(RtevalLayout::Text)
}

fn parse(text: &str, layout: RtevalLayout) -> Result<ImportedFile, Malformed> {
    let mut report = RtevalReport::default();
    let lines = match layout {
        RtevalLayout::Xml => report.read_xml(text)?,
        RtevalLayout::Text => report.read_text(text)?,
    };
    let source = match layout {
        RtevalLayout::Xml => "summary.xml of rteval",
        RtevalLayout::Text => "report of rteval",
    };
    let recorded = report.into_file(ImportedFile::new(Tool::Rteval, source));
    recorded.map_err(|defect| defect.or_at(lines))
}

#[derive(Default)]
struct RtevalReport {
    /// The tool that measured: that of the first test.
    test: Option<String>,
    command: String,
    cores: Vec<Thread>,
    in_core: bool,
    /// The latency that ended the run.
    stopped: Option<Nanos>,
    /// rtla's analyses, and the element of the analysis being read.
    analyses: Analyses,
    in_analysis: bool,
    part: String,
    who: String,
}

impl RtevalReport {
    /// Reads the document as tags, each with the text after it. Only the usual entities are needed,
    /// and no comments or declarations.
    fn read_xml(&mut self, text: &str) -> Result<usize, Malformed> {
        let mut line = 1;
        for (k, part) in text.split('<').enumerate() {
            let at = line;
            line += part.bytes().filter(|byte| *byte == b'\n').count();
            // Text before the first tag has no tag.
            let Some((tag, content)) = part.split_once('>').filter(|_| k > 0) else { continue };
            let (name, attributes) = tag.split_once(char::is_whitespace).unwrap_or((tag, ""));
            let bare = name.trim_end_matches('/');
            let read = self.read_tag(bare, attributes, content.trim());
            read.map_err(|defect| defect.or_at(at))?;
            if tag.ends_with('/') {
                self.read_tag(&format!("/{bare}"), "", "").map_err(|defect| defect.or_at(at))?;
            }
        }
        Ok(line)
    }

    fn read_tag(&mut self, name: &str, rest: &str, content: &str) -> Result<(), Malformed> {
        match name {
            "cyclictest" | "timerlat" => {
                self.begin_test(name, read_attribute(rest, "command_line"))?
            }
            "core" => {
                let priority = read_attribute(rest, "priority");
                self.begin_core(&read_attribute(rest, "id"), &priority)?;
            }
            "/core" => self.in_core = false,
            "breaktrace" => {
                self.stopped = read_microseconds(&read_attribute(rest, "measured_latency"))
            }
            "stoptrace_report" => {
                let cpu = read_attribute(rest, "CPU");
                self.analyses.read_line(&format!("## CPU {cpu} hit stop tracing"));
                self.in_analysis = true;
            }
            "/stoptrace_report" => self.in_analysis = false,
            "bucket" if self.in_core => {
                let lower = check_bin(read_number(&read_attribute(rest, "index"))?)?;
                let count = read_count(&read_attribute(rest, "value"))?;
                let Some(core) = self.cores.last_mut() else { return Ok(()) };
                if core.bins.last().is_some_and(|(before, _)| *before >= lower) {
                    return Err(format!("the bin {lower} is out of order").into());
                }
                add_bin(&mut core.bins, lower, count)?;
            }
            "samples" | "minimum" | "mean" | "maximum" if self.in_core => {
                self.read_figure(name, content)?;
            }
            _ if self.in_analysis => self.read_analysis(name, content),
            _ => {}
        }
        Ok(())
    }

    /// Reads an element of the analysis as the line of rtla that it was made from.
    fn read_analysis(&mut self, name: &str, content: &str) {
        let total = if self.part == "Thread latency" { " (100%)" } else { "" };
        let line = match name {
            "name" => return self.who = clip_text(content, 40),
            "latency" if self.part.starts_with(char::is_lowercase) => {
                format!("{} {content} us", self.who)
            }
            "latency" => format!("{}: {content} us{total}", self.part),
            _ if name.starts_with('/') || name == "latency_percent" => return,
            _ => {
                self.part = name.replace("_exit_from_idle", ": (exit from idle)").replace('_', " ");
                if content.is_empty() {
                    return;
                }
                format!("{}: {content} us", self.part)
            }
        };
        self.analyses.read_line(&line);
    }

    fn read_text(&mut self, text: &str) -> Result<usize, Malformed> {
        scan_lines(text, |line| {
            let line = line.trim();
            if self.analyses.read_line(line) {
                return Ok(());
            }
            if let Some(command) = line.strip_prefix("Command:") {
                let command = command.trim();
                let is_rtla = command.starts_with("rtla");
                let test = if is_rtla { "timerlat" } else { "cyclictest" };
                self.begin_test(test, clip_text(command, 1_000))?;
            } else if let Some(rest) = line.strip_prefix("CPU core ") {
                let (id, priority) = rest.split_once("Priority:").unwrap_or((rest, ""));
                self.begin_core(id.trim(), priority.trim())?;
            } else if let Some(rest) = line.strip_prefix("Measured latency when stopping was ") {
                self.stopped = read_microseconds(rest.trim_end_matches("us.").trim());
            } else if let Some((name, value)) = line.split_once(':').filter(|_| self.in_core) {
                let name = match name {
                    "Samples" => "samples",
                    "Mean" => "mean",
                    "Min" => "minimum",
                    "Max" => "maximum",
                    _ => return Ok(()),
                };
                self.read_figure(name, value.trim().trim_end_matches("us"))?;
            }
            Ok(())
        })
    }

    fn begin_test(&mut self, test: &str, command: String) -> Result<(), Malformed> {
        refuse_second_run(self.test.replace(test.to_owned()).is_some())?;
        self.command = command;
        Ok(())
    }

    fn begin_core(&mut self, id: &str, priority: &str) -> Result<(), Malformed> {
        let cpu = read_cpu(id).ok_or("a core without a number")?;
        refuse_second_run(self.cores.iter().any(|core| core.cpu == Some(cpu)))?;
        self.in_core = true;
        self.cores.push(Thread {
            index: self.cores.len(),
            cpu: Some(cpu),
            name: Some(format!("CPU {cpu}")),
            priority: read_priority(priority),
            ..Thread::default()
        });
        Ok(())
    }

    fn read_figure(&mut self, name: &str, value: &str) -> Result<(), Malformed> {
        let Some(core) = self.cores.last_mut() else { return Ok(()) };
        if name == "samples" {
            core.undistributed = read_count(value)?;
            return Ok(());
        }
        let value = read_decimal(value)?;
        if value > MAX_LATENCY as f64 {
            return Err(format!("{name} {value} is implausible").into());
        }
        match name {
            "minimum" => core.min = value as u64,
            "mean" => core.mean = value,
            _ => core.max = value as u64,
        }
        Ok(())
    }

    fn into_file(mut self, mut into: ImportedFile) -> Result<ImportedFile, Malformed> {
        self.cores.retain(|core| core.cycle_count() > 0);
        if self.cores.is_empty() {
            let reason = "it has no figures of a core: rteval leaves them out where a latency \
                       exceeded its histogram; import what cyclictest or rtla printed";
            return Err(reason.into());
        }
        for core in &mut self.cores {
            let inside = core.cycles_in_bins();
            let Some(rest) = core.undistributed.checked_sub(inside) else {
                let (name, all) = (core.series_name(), core.undistributed);
                let reason = format!("{name} has {inside} in its histogram, but only {all} in all");
                return Err(reason.into());
            };
            if inside > 0 {
                (core.undistributed, core.overflows) = (0, rest);
                add_beyond_warning(core, &mut into);
            }
        }
        if !self.command.is_empty() {
            into.details.insert("command_line".into(), self.command.clone());
        }
        into.details.extend(self.test.iter().map(|test| ("measured_by".into(), test.clone())));
        if self.test.as_deref() == Some("timerlat") {
            let message = "rteval adds the latencies of interrupts, threads and returns to user \
                           mode of a core: each cycle counts two or three times";
            into.findings.push(
                file_warning("kinds-mixed", message)
                    .with_remedy("import what `rtla timerlat hist` prints"),
            );
        }
        into.threads = std::mem::take(&mut self.cores);
        self.record_stop(&mut into);
        Ok(into)
    }

    /// The latency that ended the run. For cyclictest, rteval states only the latency.
    fn record_stop(self, into: &mut ImportedFile) {
        match self.analyses.add_causes(into) {
            RtlaStop::Known(series, latency) => return into.stopped = Some((series, latency)),
            RtlaStop::None if self.stopped.is_none() => return,
            _ => {}
        }
        let is_stopped_thread = |of: &&Thread| self.stopped == Some(Nanos::MICRO * of.max as i64);
        let mut stopped_threads = into.threads.iter().filter(is_stopped_thread);
        if let (Some(of), None, Some(latency)) =
            (stopped_threads.next(), stopped_threads.next(), self.stopped)
        {
            return into.stopped = Some((of.series_name(), latency));
        }
        let latency = self.stopped.map_or("not stated".to_owned(), Nanos::to_readable);
        let message = "a threshold ended the run; rteval does not state on which core";
        into.findings.push(
            file_warning("stopped-by-threshold", message)
                .with_evidence(format!("latency: {latency}")),
        );
    }
}

/// Older versions omit samples beyond their histograms and do not count them.
fn add_beyond_warning(core: &Thread, into: &mut ImportedFile) {
    let last = core.bins.last().map_or(0, |(lower, _)| *lower);
    if core.max > last && core.overflows == 0 {
        let message = "the largest latency is not in the histogram: rteval does not count what \
                       lay beyond it, so that percentiles are too small";
        into.findings.push(
            Finding::new("beyond-not-counted", Severity::Warning, core.series_name(), message)
                .with_evidence(format!("largest {} us, histogram up to {last} us", core.max))
                .with_remedy("let rteval keep more buckets"),
        );
    }
}

/// The value of an attribute; empty if missing.
fn read_attribute(tag: &str, name: &str) -> String {
    let begins_word =
        |(at, _): &(usize, &str)| tag[..*at].ends_with(char::is_whitespace) || *at == 0;
    let place = tag.match_indices(name).find(|found| {
        begins_word(found) && tag[found.0 + name.len()..].trim_start().starts_with('=')
    });
    let Some((at, _)) = place else { return String::new() };
    let value = tag[at + name.len()..].trim_start().trim_start_matches('=').trim_start();
    let Some(quote) = value.chars().next().filter(|c| ['"', '\''].contains(c)) else {
        return String::new();
    };
    let value = value[1..].split(quote).next().unwrap_or_default();
    let plain = value.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"");
    clip_text(&plain.replace("&amp;", "&"), 1_000)
}
