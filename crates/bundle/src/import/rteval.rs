//! Reports of rteval: `summary.xml`, and the text made from it. The tests are cyclictest or `rtla
//! timerlat`, with figures per core (modules/measurement).
//!
//! ```text
//! <core id="0" priority="95"><statistics><samples>3971</samples><minimum unit="us">4</minimum>
//! ```

use super::numbers::{decimal, microseconds, number, second_run};
use super::recorded::{ImportedFile, MAX_COUNT, MAX_LATENCY, Thread, bin, bounded};
use super::rtla::{Analyses, RtlaStop};
use super::{Malformed, TextReader, Tool};
use punctual_core::cpuset::MAX_CPUS;
use punctual_core::{Finding, Nanos, Severity};

pub(super) const READER: TextReader = TextReader {
    what: "report of rteval",
    recognize: |text| recognize(text).map(|_| Tool::Rteval),
    parse: |text, _, _| parse(text, recognize(text).unwrap_or(RtevalLayout::Text)),
    may_lack_unit: false,
};

/// The format of the text.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RtevalLayout {
    Xml,
    Text,
}

fn recognize(text: &str) -> Option<RtevalLayout> {
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
        RtevalLayout::Xml => report.xml(text)?,
        RtevalLayout::Text => report.text(text)?,
    };
    let source = match layout {
        RtevalLayout::Xml => "summary.xml of rteval",
        RtevalLayout::Text => "report of rteval",
    };
    report.recorded(lines.max(1), ImportedFile::of(Tool::Rteval, source))
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
    fn xml(&mut self, text: &str) -> Result<usize, Malformed> {
        let mut line = 1;
        for (k, part) in text.split('<').enumerate() {
            let at = line;
            line += part.bytes().filter(|byte| *byte == b'\n').count();
            // Text before the first tag has no tag.
            let Some((tag, content)) = part.split_once('>').filter(|_| k > 0) else { continue };
            let (name, attributes) = tag.split_once(char::is_whitespace).unwrap_or((tag, ""));
            self.tag(at, name.trim_end_matches('/'), attributes, content.trim())?;
            if tag.ends_with('/') {
                self.tag(at, &format!("/{}", name.trim_end_matches('/')), "", "")?;
            }
        }
        Ok(line)
    }

    fn tag(&mut self, at: usize, name: &str, rest: &str, content: &str) -> Result<(), Malformed> {
        match name {
            "cyclictest" | "timerlat" => self.begin(at, name, attribute(rest, "command_line"))?,
            "core" => {
                let priority = attribute(rest, "priority");
                self.core(at, &attribute(rest, "id"), &priority)?;
            }
            "/core" => self.in_core = false,
            "breaktrace" => self.stopped = microseconds(&attribute(rest, "measured_latency")),
            "stoptrace_report" => {
                let cpu = attribute(rest, "CPU");
                self.analyses.line(&format!("## CPU {cpu} hit stop tracing"));
                self.in_analysis = true;
            }
            "/stoptrace_report" => self.in_analysis = false,
            "bucket" if self.in_core => {
                let lower = bin(number(&attribute(rest, "index"), at)?, at)?;
                let count = number(&attribute(rest, "value"), at)?;
                let count = bounded(count, MAX_COUNT, "the count", at)?;
                let Some(core) = self.cores.last_mut() else { return Ok(()) };
                if core.bins.last().is_some_and(|(before, _)| *before >= lower) {
                    return Err(Malformed::at(at, format!("the bin {lower} is out of order")));
                }
                if count > 0 {
                    core.bins.push((lower, count));
                }
            }
            "samples" | "minimum" | "mean" | "maximum" if self.in_core => {
                self.figure(at, name, content)?;
            }
            _ if self.in_analysis => self.analysed(name, content),
            _ => {}
        }
        Ok(())
    }

    /// Reads an element of the analysis as the line of rtla that it was made from.
    fn analysed(&mut self, name: &str, content: &str) {
        let total = if self.part == "Thread latency" { " (100%)" } else { "" };
        let line = match name {
            "name" => return self.who = content.chars().take(40).collect(),
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
        self.analyses.line(&line);
    }

    fn text(&mut self, text: &str) -> Result<usize, Malformed> {
        let mut lines = 0;
        for (k, line) in text.lines().enumerate() {
            lines = k + 1;
            let line = line.trim();
            if self.analyses.line(line) {
                continue;
            }
            if let Some(command) = line.strip_prefix("Command:") {
                let command = command.trim();
                let is_rtla = command.starts_with("rtla");
                let test = if is_rtla { "timerlat" } else { "cyclictest" };
                self.begin(lines, test, command.chars().take(1_000).collect())?;
            } else if let Some(rest) = line.strip_prefix("CPU core ") {
                let (id, priority) = rest.split_once("Priority:").unwrap_or((rest, ""));
                self.core(lines, id.trim(), priority.trim())?;
            } else if let Some(rest) = line.strip_prefix("Measured latency when stopping was ") {
                self.stopped = microseconds(rest.trim_end_matches("us.").trim());
            } else if let Some((name, value)) = line.split_once(':').filter(|_| self.in_core) {
                let name = match name {
                    "Samples" => "samples",
                    "Mean" => "mean",
                    "Min" => "minimum",
                    "Max" => "maximum",
                    _ => continue,
                };
                self.figure(lines, name, value.trim().trim_end_matches("us"))?;
            }
        }
        Ok(lines)
    }

    fn begin(&mut self, at: usize, test: &str, command: String) -> Result<(), Malformed> {
        if self.test.replace(test.to_owned()).is_some() {
            return Err(second_run(at));
        }
        self.command = command;
        Ok(())
    }

    fn core(&mut self, at: usize, id: &str, priority: &str) -> Result<(), Malformed> {
        let cpu: Option<u32> = id.parse().ok().filter(|cpu| (*cpu as usize) < MAX_CPUS);
        let cpu = cpu.ok_or_else(|| Malformed::at(at, "a core without a number"))?;
        if self.cores.iter().any(|core| core.cpu == Some(cpu)) {
            return Err(second_run(at));
        }
        self.in_core = true;
        self.cores.push(Thread {
            index: self.cores.len(),
            cpu: Some(cpu),
            name: Some(format!("CPU {cpu}")),
            priority: priority.parse().ok().filter(|priority| *priority <= 99),
            ..Thread::default()
        });
        Ok(())
    }

    fn figure(&mut self, at: usize, name: &str, value: &str) -> Result<(), Malformed> {
        let Some(core) = self.cores.last_mut() else { return Ok(()) };
        if name == "samples" {
            core.undistributed = bounded(number(value, at)?, MAX_COUNT, "the count", at)?;
            return Ok(());
        }
        let value = decimal(value, at)?;
        if value > MAX_LATENCY as f64 {
            return Err(Malformed::at(at, format!("{name} {value} is implausible")));
        }
        match name {
            "minimum" => core.min = value as u64,
            "mean" => core.mean = value,
            _ => core.max = value as u64,
        }
        Ok(())
    }

    fn recorded(mut self, lines: usize, mut into: ImportedFile) -> Result<ImportedFile, Malformed> {
        self.cores.retain(|core| core.cycles() > 0);
        if self.cores.is_empty() {
            return Err(Malformed::at(
                lines,
                "it has no figures of a core: rteval leaves them out where a latency exceeded its \
                 histogram; import what cyclictest or rtla printed",
            ));
        }
        for core in &mut self.cores {
            let inside: u64 = core.bins.iter().map(|(_, n)| n).sum();
            let Some(rest) = core.undistributed.checked_sub(inside) else {
                let (name, all) = (core.name(), core.undistributed);
                let why = format!("{name} has {inside} in its histogram, but only {all} in all");
                return Err(Malformed::at(lines, why));
            };
            if inside > 0 {
                (core.undistributed, core.overflows) = (0, rest);
                beyond(core, &mut into);
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
                Finding::new("kinds-mixed", Severity::Warning, "", message)
                    .remedy("import what `rtla timerlat hist` prints"),
            );
        }
        into.threads = std::mem::take(&mut self.cores);
        self.stop(&mut into);
        Ok(into)
    }

    /// The latency that ended the run. For cyclictest, rteval states only the latency.
    fn stop(self, into: &mut ImportedFile) {
        match self.analyses.put(into) {
            RtlaStop::Known(series, latency) => return into.stopped = Some((series, latency)),
            RtlaStop::None if self.stopped.is_none() => return,
            _ => {}
        }
        let own = |of: &&Thread| self.stopped == Some(Nanos::MICRO * of.max as i64);
        let mut all = into.threads.iter().filter(own);
        if let (Some(of), None, Some(latency)) = (all.next(), all.next(), self.stopped) {
            return into.stopped = Some((of.name(), latency));
        }
        let latency = self.stopped.map_or("not stated".to_owned(), Nanos::readable);
        let message = "a threshold ended the run; rteval does not state on which core";
        into.findings.push(
            Finding::new("stopped-by-threshold", Severity::Warning, "", message)
                .evidence(format!("latency: {latency}")),
        );
    }
}

/// Older versions omit samples beyond their histograms and do not count them.
fn beyond(core: &Thread, into: &mut ImportedFile) {
    let last = core.bins.last().map_or(0, |(lower, _)| *lower);
    if core.max > last && core.overflows == 0 {
        let message = "the largest latency is not in the histogram: rteval does not count what \
                       lay beyond it, so that percentiles are too small";
        into.findings.push(
            Finding::new("beyond-not-counted", Severity::Warning, core.name(), message)
                .evidence(format!("largest {} us, histogram up to {last} us", core.max))
                .remedy("let rteval keep more buckets"),
        );
    }
}

/// The value of an attribute; empty if missing.
fn attribute(tag: &str, name: &str) -> String {
    let own = |(at, _): &(usize, &str)| tag[..*at].ends_with(char::is_whitespace) || *at == 0;
    let place = tag
        .match_indices(name)
        .find(|found| own(found) && tag[found.0 + name.len()..].trim_start().starts_with('='));
    let Some((at, _)) = place else { return String::new() };
    let value = tag[at + name.len()..].trim_start().trim_start_matches('=').trim_start();
    let Some(quote) = value.chars().next().filter(|c| ['"', '\''].contains(c)) else {
        return String::new();
    };
    let value = value[1..].split(quote).next().unwrap_or_default();
    let plain = value.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"");
    plain.replace("&amp;", "&").chars().take(1_000).collect()
}
