//! Xenomai's `latency` and EVL's `latmus`: a line per second, then the totals
//! (testsuite/latency/latency.c, benchmarks/latmus.c). The distribution is printed with `-h`, or in
//! the file for gnuplot (`-g`).
//!
//! ```text
//! RTT|  00:00:01  (periodic user-mode task, 100 us period, priority 99)
//! RTH|----lat min|----lat avg|----lat max|-overrun|---msw|---lat best|--lat worst
//! RTD|      1.393|      2.908|     21.765|       0|     0|      1.393|     21.765
//! RTS|      1.175|      2.955|    374.075|      40|     0|    00:01:00/00:01:00
//! ```

use super::recorded::{ImportedFile, Thread, file_note, file_warning};
use super::scan::{
    MAX_COUNT, add_bin, check_bin, clip_text, read_bounded, read_count, read_cpu, read_interval,
    read_number, read_priority, read_signed_microseconds, refuse_second_run, scan_lines,
};
use super::{Malformed, TextReader, Tool};
use punctual_core::{Finding, Nanos, Severity};
use std::mem::replace;

pub(super) const READER: TextReader = TextReader {
    what: "text of Xenomai's latency or of latmus",
    recognize: recognize_text,
    parse: |text, tool, _| parse(text, tool),
    may_lack_unit: false,
};

/// The bins of the histograms: 1 µs, unless `-B` is given, in ns.
const BIN: u64 = 1_000;

/// Figures of a run, possibly unfinished; times in ns.
#[derive(Clone, Copy)]
struct XenomaiFigures {
    min: i64,
    mean: i64,
    max: i64,
    overruns: u64,
    switches: u64,
}

#[derive(Default)]
struct XenomaiReading {
    period: Option<u64>,
    priority: Option<u8>,
    cpu: Option<u32>,
    context: Option<String>,
    duration: Option<Nanos>,
    /// The number of lines, one per second, and the sum of their means.
    seconds: u64,
    means: i64,
    so_far: Option<XenomaiFigures>,
    of_all: Option<XenomaiFigures>,
    /// Samples as `-s` counts them.
    samples: Option<u64>,
    /// Lower edges in bins, and counts.
    bins: Vec<(u64, u64)>,
    exceeded: Option<Nanos>,
    /// Whether the last line was read, and the tool that wrote a histogram for gnuplot.
    ended: bool,
    plot: Option<Tool>,
}

/// Recognises the tool that printed the text.
fn recognize_text(text: &str) -> Option<Tool> {
    let lines = || text.lines().map(str::trim);
    if lines().any(|line| line.starts_with("# libevl version:")) {
        return Some(Tool::Latmus);
    }
    let head = lines().find(|line| line.starts_with("RTT|") || plot_head(line).is_some());
    let has_rows = lines().any(|line| ["RTD|", "RTS|"].iter().any(|row| line.starts_with(row)));
    match head {
        Some(head) if head.contains(", CPU") => Some(Tool::Latmus),
        Some(_) => Some(Tool::Xenomai),
        None => has_rows.then_some(Tool::Xenomai),
    }
}

/// `# 00:01:00 (periodic user-mode task, 100 us period, priority 99)`: the first line for gnuplot.
fn plot_head(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("# ")?;
    (rest.contains(" us period") && read_clock(rest).is_some()).then_some(rest)
}

/// `00:01:00` at the beginning of a text.
fn read_clock(text: &str) -> Option<Nanos> {
    let word = text.split_ascii_whitespace().next()?.split('/').next()?;
    let mut parts = word.split(':').map(|part| part.parse::<u32>().ok());
    let (hours, minutes, seconds) = (parts.next()??, parts.next()??, parts.next()??);
    let seconds = i64::from(hours) * 3_600 + i64::from(minutes) * 60 + i64::from(seconds);
    parts.next().is_none().then(|| Nanos::SECOND * seconds)
}

fn parse(text: &str, tool: Tool) -> Result<ImportedFile, Malformed> {
    let mut reading = XenomaiReading::default();
    let lines = scan_lines(text, |line| reading.read_line(line.trim()))?;
    let source = if tool == Tool::Latmus { "latmus" } else { "latency of Xenomai" };
    reading.into_file(ImportedFile::new(tool, source)).map_err(|defect| defect.or_at(lines))
}

impl XenomaiReading {
    fn read_line(&mut self, line: &str) -> Result<(), Malformed> {
        if let Some(rest) = line.strip_prefix("# ") {
            return self.read_comment(rest);
        }
        let mut cells = line.split('|').map(str::trim);
        let first = cells.next().unwrap_or_default();
        let cells: Vec<&str> = cells.collect();
        match first {
            "RTT" => self.read_head(cells.first().copied().unwrap_or_default()),
            "RTD" => self.read_second(&cells)?,
            "RTS" => {
                refuse_second_run(replace(&mut self.ended, true))?;
                self.of_all = Some(self.read_figures(&cells)?);
                self.duration = cells.last().and_then(|times| read_clock(times));
            }
            "HSS" if cells.first() == Some(&"avg") => {
                self.samples = Some(read_count(cells.get(1).unwrap_or(&""))?);
            }
            "HSD" if cells.first() == Some(&"avg") => {
                let lower = cells.get(1).and_then(|range| range.split('-').next());
                let lower = read_number(lower.unwrap_or_default().trim())?;
                self.add_bin(lower, read_number(cells.get(2).unwrap_or(&""))?)?;
            }
            _ if self.plot.is_some() && line.starts_with(|c: char| c.is_ascii_digit()) => {
                self.read_bin(line)?;
            }
            _ => self.read_remark(line)?,
        }
        Ok(())
    }

    /// `00:00:01  (user, 1000 us period, priority 98, CPU1-noisol)`
    fn read_head(&mut self, text: &str) {
        self.duration = self.duration.max(read_clock(text));
        let Some((_, inner)) = text.split_once('(') else { return };
        for part in inner.trim_end_matches(')').split(',').map(str::trim) {
            if let Some(us) = part.strip_suffix(" us period") {
                self.period = read_interval(us);
            } else if let Some(priority) = part.strip_prefix("priority ") {
                self.priority = read_priority(priority);
            } else if let Some(cpu) = part.strip_prefix("CPU") {
                self.cpu = cpu_of(cpu);
            } else {
                self.context = Some(clip_text(part, 40));
            }
        }
    }

    /// A line of one second. Older Xenomai versions have no column `msw`.
    fn read_second(&mut self, cells: &[&str]) -> Result<(), Malformed> {
        let now = self.read_figures(cells)?;
        let [.., best, worst] = cells else { return Err(TOO_FEW.into()) };
        let (min, max) = (read_time(best)?, read_time(worst)?);
        let so_far = XenomaiFigures { min, max, ..now };
        let is_less = |before: XenomaiFigures| before.max > max || before.overruns > now.overruns;
        refuse_second_run(self.ended || self.so_far.is_some_and(is_less))?;
        self.seconds += 1;
        self.means = self.means.saturating_add(now.mean);
        self.so_far = Some(so_far);
        Ok(())
    }

    fn read_figures(&self, cells: &[&str]) -> Result<XenomaiFigures, Malformed> {
        let [min, mean, max, overruns, rest @ ..] = cells else { return Err(TOO_FEW.into()) };
        let switches = rest.first().and_then(|cell| cell.parse().ok()).unwrap_or(0);
        Ok(XenomaiFigures {
            min: read_time(min)?,
            mean: read_time(mean)?,
            max: read_time(max)?,
            overruns: read_bounded(overruns, MAX_COUNT, "the count of overruns")?,
            switches,
        })
    }

    /// The comment before the histogram for gnuplot.
    fn read_comment(&mut self, rest: &str) -> Result<(), Malformed> {
        let plotted = rest.contains(" us period") && read_clock(rest).is_some();
        if plotted {
            self.read_head(rest);
        }
        if plotted || rest.starts_with("libevl version:") {
            let tool = if plotted { Tool::Xenomai } else { Tool::Latmus };
            return refuse_second_run(self.plot.replace(tool).is_some());
        }
        // Xenomai's histogram has the figures of `RTS`.
        let cells: Vec<&str> = rest.split('|').map(str::trim).collect();
        if cells.len() >= 5 && self.of_all.is_none() && read_time(cells[0]).is_ok() {
            self.of_all = Some(self.read_figures(&cells)?);
        }
        let Some((name, value)) = rest.split_once(": ") else { return Ok(()) };
        let value = value.trim();
        let mut run_figures = self.of_all.unwrap_or(XenomaiFigures {
            min: 0,
            mean: 0,
            max: 0,
            overruns: 0,
            switches: 0,
        });
        match name {
            "sampling period" => {
                self.period = value.split(' ').next().and_then(read_interval);
            }
            "context" => self.context = Some(clip_text(value, 40)),
            "thread priority" => self.priority = read_priority(value),
            "thread affinity" => self.cpu = value.strip_prefix("CPU").and_then(cpu_of),
            "duration (hhmmss)" => self.duration = read_clock(value),
            "sample count" => self.samples = Some(read_number(value)?.min(MAX_COUNT)),
            "OVERRUNS" => run_figures.overruns = read_number(value)?.min(MAX_COUNT),
            "IN-BAND SWITCHES" => run_figures.switches = read_number(value)?,
            "min latency" => run_figures.min = read_time(value)?,
            "avg latency" => run_figures.mean = read_time(value)?,
            "max latency" => run_figures.max = read_time(value)?,
            _ => return Ok(()),
        }
        if !name.starts_with(char::is_lowercase) || name.ends_with("latency") {
            self.of_all = Some(run_figures);
        }
        Ok(())
    }

    /// A line of the histogram. latmus writes bin and count; Xenomai the middle of a bin and the
    /// count, plus a line at both ends without a bin.
    fn read_bin(&mut self, line: &str) -> Result<(), Malformed> {
        let (edge, count) = line.split_once(' ').unwrap_or((line, ""));
        let count = read_number(count.trim())?;
        match edge.trim_end_matches('+').split_once('.') {
            None if self.plot == Some(Tool::Xenomai) => Ok(()),
            None => self.add_bin(read_number(edge.trim_end_matches('+'))?, count),
            Some((lower, "5")) if count > 0 => self.add_bin(read_number(lower)?, count - 1),
            Some(_) => Err("bins of other than 1 us (-B) are not read".into()),
        }
    }

    fn add_bin(&mut self, lower: u64, count: u64) -> Result<(), Malformed> {
        let lower = check_bin(lower)?;
        if self.bins.last().is_some_and(|(before, _)| *before >= lower * BIN) {
            return Err(format!("the bin {lower} comes twice or out of order").into());
        }
        add_bin(&mut self.bins, lower * BIN, count)
    }

    fn read_remark(&mut self, line: &str) -> Result<(), Malformed> {
        if let Some(us) = line.strip_prefix("== Sampling period:") {
            refuse_second_run(self.period.is_some())?;
            self.period = us.trim().trim_end_matches(" us").parse().ok().filter(|us| *us > 0);
        } else if let Some(mode) = line.strip_prefix("== Test mode:") {
            self.context = Some(clip_text(mode.trim(), 40));
        } else if let Some(rest) = line.strip_prefix("Maximum latency exceeded:") {
            let latency = rest.split('>').next().unwrap_or_default().trim();
            self.exceeded = read_time(latency).ok().map(Nanos);
        } else if line.starts_with("latency threshold is exceeded (") {
            let latency = line.split(">= ").nth(1).and_then(|rest| rest.split(')').next());
            self.exceeded = latency.and_then(|latency| read_time(latency).ok()).map(Nanos);
        }
        Ok(())
    }

    fn into_file(self, mut into: ImportedFile) -> Result<ImportedFile, Malformed> {
        let seconds = self.so_far.map(|so_far| XenomaiFigures {
            mean: self.means / self.seconds.max(1) as i64,
            ..so_far
        });
        let stated_figures = self.of_all.or(seconds);
        let run_figures = stated_figures.ok_or("there is no line of figures in it: RTD or RTS")?;
        into.unit = Nanos(1);
        into.duration = self.duration;
        let name = match into.tool {
            Tool::Latmus => self.context.clone().unwrap_or_else(|| "latency".to_owned()),
            _ => "latency".to_owned(),
        };
        if let Some(context) = &self.context {
            into.details.insert("context".into(), context.clone());
        }
        let has_bins = !self.bins.is_empty();
        let mut thread = Thread {
            name: Some(name),
            cpu: self.cpu,
            priority: self.priority,
            interval: self.period,
            overruns: Some(run_figures.overruns),
            min: run_figures.min.max(0) as u64,
            mean: run_figures.mean.max(0) as f64,
            max: run_figures.max.max(0) as u64,
            ..Thread::default()
        };
        if has_bins {
            into.step = BIN;
            thread.bins = self.bins;
            // The last bin also holds longer latencies.
            let last = thread.bins.pop_if(|(lower, _)| thread.max >= *lower + BIN);
            thread.overflows = last.map_or(0, |(_, count)| count);
        } else {
            thread.undistributed = match self.samples {
                Some(samples) => samples,
                None => self.derive_count(&mut into)?.saturating_sub(run_figures.overruns),
            };
        }
        into.findings.extend(missed_periods(&thread, run_figures.overruns));
        into.findings
            .extend((run_figures.min < 0).then(|| negative_finding(Nanos(run_figures.min))));
        into.findings
            .extend((run_figures.switches > 0).then(|| mode_switches(run_figures.switches)));
        into.stopped = self.exceeded.map(|latency| (thread.series_name(), latency));
        into.threads.push(thread);
        Ok(into)
    }

    /// The number of periods in the whole run: the tools state the number of latencies only if
    /// asked for statistics.
    fn derive_count(&self, into: &mut ImportedFile) -> Result<u64, Malformed> {
        let of_lines = Nanos::SECOND * self.seconds as i64;
        let duration = self.duration.unwrap_or(of_lines).max(of_lines);
        let period = self.period.filter(|_| duration.ns() > 0).ok_or(
            "neither the number of latencies nor period and duration are in it: give the whole \
             output",
        )?;
        let message = "the number of latencies is not stated: it follows from period and duration";
        into.findings.push(
            file_note("count-derived", message)
                .with_evidence(format!("{} in {period} us", duration.to_readable()))
                .with_remedy("latency -s, or latmus -g, states it"),
        );
        Ok((duration.ns() as u64 / 1_000 / period).clamp(1, MAX_COUNT))
    }
}

fn cpu_of(text: &str) -> Option<u32> {
    read_cpu(text.split(|c: char| !c.is_ascii_digit()).next()?)
}

fn read_time(word: &str) -> Result<i64, Malformed> {
    let time = read_signed_microseconds(word).map(Nanos::ns);
    time.ok_or_else(|| format!("{:?} is not a time in us", clip_text(word, 40)).into())
}

const TOO_FEW: &str = "a line with too few figures";

/// Periods that passed during a longer latency: the tools count them but measure nothing for them.
fn missed_periods(thread: &Thread, overruns: u64) -> Option<Finding> {
    let period = Nanos::MICRO * thread.interval? as i64;
    let longest = Nanos(thread.max as i64);
    let hidden = (longest.ns() - 1).max(0) / period.ns();
    let hidden_latencies = (1..=hidden.min(3)).map(|k| (longest - period * k).to_readable());
    let hid = match hidden {
        0 => String::new(),
        _ => format!(
            "; while the longest lasted ({}), {hidden} were due, with latencies of {}{}",
            longest.to_readable(),
            hidden_latencies.collect::<Vec<_>>().join(", "),
            if hidden > 3 { ", …" } else { "" }
        ),
    };
    let message = "periods passed without a latency of their own (coordinated omission): \
                   percentiles of the others are too small";
    (overruns > 0).then(|| {
        Finding::new("missed-periods", Severity::Warning, thread.series_name(), message)
            .with_evidence(format!("{overruns} overruns of {} cycles{hid}", thread.cycle_count()))
            .with_remedy(
                "with a histogram (latency -h, latmus -g) the corrected figures include them",
            )
    })
}

fn negative_finding(min: Nanos) -> Finding {
    let message =
        "the smallest latency is negative (the timer is programmed ahead): it counts as 0";
    file_note("negative-latency", message).with_evidence(min.to_readable())
}

fn mode_switches(switches: u64) -> Finding {
    let message = "the thread left the real-time core: some latencies may be of those switches";
    file_warning("mode-switches", message).with_evidence(format!("{switches} switches (msw)"))
}
