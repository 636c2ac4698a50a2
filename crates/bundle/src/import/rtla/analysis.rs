//! rtla's analysis of the latency that crossed a threshold (timerlat_aa.c, from rtla 6.5 on): the
//! causes with their times. Tabs, spaces and decimal commas are accepted.
//!
//! ```text
//! ## CPU 3 hit stop tracing, analyzing it ##
//!   IRQ handler delay:                        1.30 us (0.11 %)
//!   IRQ latency:                              1.90 us
//!   Blocking thread:                       1223.16 us (99.00 %)
//!                      insync:4048         1223.16 us
//! ------------------------------------------------------------------------
//!   Thread latency:                        1235.47 us (100%)
//! ```

use super::series_name;
use crate::answer::{AnsweredDelay, Delays};
use crate::import::Malformed;
use crate::import::recorded::{ImportedFile, Thread, file_note, make_table};
use crate::import::scan::{clip_text, read_microseconds};
use punctual_core::cpuset::MAX_CPUS;
use punctual_core::notes::{Cell, Table};
use punctual_core::{CauseKind, Nanos};

/// The maximum number of lines per analysis, and of analyses per text.
const MAX_LINES: usize = 256;
const MAX_ANALYSES: usize = 256;

/// The unit: rtla prints two decimals of a microsecond.
const UNIT: Nanos = Nanos(10);

/// A line of the analysis that begins a part of the latency.
const PARTS: [(&str, Option<CauseKind>); 8] = [
    ("Previous IRQ interference", None),
    ("IRQ handler delay", Some(CauseKind::TimerIrqDelay)),
    ("Timerlat IRQ duration", Some(CauseKind::Irq)),
    ("Blocking thread", Some(CauseKind::NonPreemptible)),
    ("NMI interference", Some(CauseKind::Nmi)),
    ("IRQ interference", Some(CauseKind::Irq)),
    ("Softirq interference", Some(CauseKind::Softirq)),
    ("Thread interference", Some(CauseKind::Preempted)),
];

/// The text's statement about its stop.
pub(crate) enum RtlaStop {
    None,
    /// The series, and its latency.
    Known(String, Nanos),
    Unknown,
}

/// Everything that a text states about its stop.
#[derive(Default)]
pub(crate) struct Analyses {
    stopped: bool,
    all: Vec<Analysis>,
    /// The longest latency of an exit from idle, and its CPU.
    from_idle: Option<(Nanos, u32)>,
    /// Whether the tasks of all CPUs follow (`--dump-tasks`).
    tasks: bool,
}

#[derive(Default)]
struct Analysis {
    cpu: Option<u32>,
    parts: Vec<AnalysisPart>,
    irq_latency: Option<Nanos>,
    /// The latency, and whether it is that of the interrupt.
    total: Option<(Nanos, bool)>,
    /// Callers of the timer's interrupt, innermost first.
    stack: Vec<String>,
    in_stack: bool,
}

/// A part of the latency, with its duration and culprit.
struct AnalysisPart {
    title: &'static str,
    cause: Option<CauseKind>,
    time: Option<Nanos>,
    is_idle: bool,
    who: Vec<(String, Option<Nanos>)>,
}

impl Analyses {
    pub fn is_empty(&self) -> bool {
        self.all.iter().all(|one| one.total.is_none())
    }

    /// Takes a line if it belongs to an analysis. Older versions omit the end of the first of two
    /// lines; rteval that of the rule.
    pub fn read_line(&mut self, line: &str) -> bool {
        let labels = ["IRQ handler delay:", "Thread latency:", "IRQ latency:"];
        let inside = labels.iter().filter_map(|label| line.find(label).filter(|at| *at > 0)).min();
        match inside.map(|at| line.split_at(at)) {
            Some((first, second)) => self.read_part(first.trim()) | self.read_part(second),
            None => self.read_part(line),
        }
    }

    fn read_part(&mut self, line: &str) -> bool {
        if let Some((before, _)) = line.split_once("hit stop tracing") {
            self.stopped = true;
            let cpu = before.trim_start_matches(['#', ' ']).strip_prefix("CPU ");
            if let Some(cpu) = cpu.and_then(|cpu| cpu.trim().parse().ok()) {
                self.begin_analysis(Some(cpu));
            }
            return true;
        }
        if let Some(rest) = line.strip_prefix("Max timerlat IRQ latency from idle:") {
            let cpu = rest.rsplit_once("in cpu").and_then(|(_, cpu)| cpu.trim().parse().ok());
            self.from_idle = time_of(rest).zip(cpu);
            return true;
        }
        if line == "Printing CPU tasks:" {
            self.tasks = true;
            return true;
        }
        if self.tasks && line.starts_with('[') {
            return true;
        }
        let is_first = line.starts_with("IRQ handler delay") || line.starts_with("Previous IRQ");
        if is_first && self.all.last().is_none_or(|last| last.total.is_some()) {
            self.begin_analysis(None);
        }
        let open = self.all.last_mut().filter(|last| last.total.is_none());
        open.is_some_and(|analysis| analysis.read_line(line))
    }

    fn begin_analysis(&mut self, cpu: Option<u32>) {
        if self.all.len() < MAX_ANALYSES {
            let cpu = cpu.filter(|cpu| (*cpu as usize) < MAX_CPUS);
            self.all.push(Analysis { cpu, ..Analysis::default() });
        }
    }

    /// The result of a text that holds only analyses (`--aa-only`, or a part of a report): one
    /// latency of each stated kind.
    pub(crate) fn to_file(&self, mut into: ImportedFile) -> Result<ImportedFile, Malformed> {
        into.unit = UNIT;
        for analysis in &self.all {
            let Some((total, is_irq)) = analysis.total else { continue };
            let irq = analysis.irq_latency.filter(|_| !is_irq).map(|latency| (latency, "/irq"));
            let part = if is_irq { "/irq" } else { "/thread" };
            for (latency, part) in irq.into_iter().chain([(total, part)]) {
                let value = (latency.ns() / UNIT.ns()) as u64;
                let name = analysis.analysis_series(part);
                if into.threads.iter().any(|thread| thread.series_name() == name) {
                    return Err(format!("{name} is analysed twice in it").into());
                }
                let (cpu, name) = (analysis.cpu, Some(name));
                let index = into.threads.len();
                into.threads.push(Thread { cpu, name, ..Thread::of_values(index, [value]) });
            }
        }
        let message = "it has only the latency that stopped rtla: there is no distribution, and \
                       the number of shorter ones is unknown";
        into.findings.push(
            file_note("only-above-threshold", message)
                .with_remedy("import the table or histogram that rtla printed before it, too"),
        );
        Ok(into)
    }

    /// Adds the causes of the latency and returns the one that stopped rtla.
    pub(crate) fn add_causes(mut self, into: &mut ImportedFile) -> RtlaStop {
        let from_idle = self.from_idle;
        self.all.retain(|one| one.total.is_some());
        for analysis in &mut self.all {
            analysis.cpu = analysis.cpu.or_else(|| analysis.find_cpu(into, from_idle));
        }
        let stops: Vec<(String, Nanos)> =
            self.all.iter().filter_map(|a| a.find_stop(into)).collect();
        for (analysis, (series, latency)) in self.all.iter().zip(&stops) {
            into.delayed_by.push(Delays {
                series: Some(series.clone()),
                samples: 1,
                incidents: Some(1),
                from: latency.ns(),
                causes: analysis.list_causes(),
                source: Some("rtla".to_owned()),
            });
        }
        let tables = [self.parts_table(), self.stack_table()];
        into.notes.tables.extend(tables.into_iter().filter(|table| !table.rows.is_empty()));
        // rtla analyses all CPUs above the threshold in order.
        match (self.stopped || !self.all.is_empty(), self.all.first(), stops.first()) {
            (true, Some(first), Some((series, latency)))
                if first.cpu.is_some()
                    || into.threads.iter().any(|of| of.series_name() == *series) =>
            {
                RtlaStop::Known(series.clone(), *latency)
            }
            (true, ..) => RtlaStop::Unknown,
            _ => RtlaStop::None,
        }
    }

    fn parts_table(&self) -> Table {
        let columns = [("cpu", ""), ("part", ""), ("who", ""), ("time", "ns"), ("share", "ratio")];
        let mut rows = Vec::new();
        for analysis in &self.all {
            let cpu = || analysis.cpu.map_or(Cell::Nothing, |cpu| cpu.to_string().into());
            let total = analysis.total.map_or(Nanos::ZERO, |(total, _)| total);
            let mut row = |part: &str, who: Cell, time: Option<Nanos>| {
                let share = time.and_then(|time| time_share(time, total)).map(Cell::Number);
                let time = time.map_or(Cell::Nothing, Cell::from);
                rows.push(vec![cpu(), part.into(), who, time, share.unwrap_or(Cell::Nothing)]);
            };
            for part in &analysis.parts {
                row(part.title, Cell::Nothing, part.time);
                for (who, time) in &part.who {
                    row(part.title, who.as_str().into(), *time);
                }
            }
        }
        make_table(
            "rtla-analysis",
            "what rtla states of the latency that stopped it",
            &columns,
            rows,
        )
    }

    fn stack_table(&self) -> Table {
        let row = |cpu: Option<u32>, function: &String| {
            let cpu = cpu.map_or(Cell::Nothing, |cpu| cpu.to_string().into());
            vec![cpu, function.as_str().into()]
        };
        let rows = self.all.iter().flat_map(|one| one.stack.iter().map(move |of| row(one.cpu, of)));
        let title = "stack of the blocking thread at the timer interrupt";
        make_table("rtla-stack", title, &[("cpu", ""), ("function", "")], rows.collect())
    }
}

impl Analysis {
    fn analysis_series(&self, part: &str) -> String {
        self.cpu.map_or_else(|| format!("unknown CPU{part}"), |cpu| series_name(cpu, part))
    }

    /// Takes a line below the first.
    fn read_line(&mut self, line: &str) -> bool {
        if let Some(function) = line.strip_prefix("->").filter(|_| self.in_stack) {
            if self.stack.len() < MAX_LINES {
                self.stack.push(clip_text(function.trim(), 100));
            }
            return true;
        }
        self.in_stack = false;
        let stack = ["Blocking thread stack trace", "Blocking thread stacktrace"];
        if stack.iter().any(|title| line.starts_with(title)) {
            self.in_stack = true;
            return true;
        }
        if !line.is_empty() && line.bytes().all(|byte| byte == b'-') {
            return true;
        }
        let is_total = line.contains("(100%)") || line.contains("(100 %)");
        if let Some(rest) = line.strip_prefix("IRQ latency:") {
            self.irq_latency = time_of(rest);
            if is_total {
                self.total = self.irq_latency.map(|latency| (latency, true));
            }
            return true;
        }
        if let Some(rest) = line.strip_prefix("Thread latency:") {
            self.total = time_of(rest).map(|latency| (latency, false));
            return true;
        }
        if self.parts.len() >= MAX_LINES {
            return true;
        }
        if let Some((title, cause)) = PARTS.iter().find(|(title, _)| line.starts_with(title)) {
            self.parts.push(AnalysisPart {
                title,
                cause: *cause,
                time: time_of(line),
                is_idle: line.contains("(exit from idle)"),
                who: Vec::new(),
            });
            return true;
        }
        let last = self.parts.last_mut().filter(|part| part.who.len() < MAX_LINES);
        let Some((part, who)) = last.zip(parse_task(line)) else { return false };
        part.who.push(who);
        true
    }

    /// Finds the CPU if rtla does not name it: that of the longest exit from idle if the latency
    /// was that, else the only one with this maximum.
    fn find_cpu(&self, into: &ImportedFile, from_idle: Option<(Nanos, u32)>) -> Option<u32> {
        let idle = from_idle.filter(|(latency, _)| Some(*latency) == self.irq_latency);
        let is_idle = self.parts.iter().any(|part| part.is_idle);
        if let Some((_, cpu)) = idle.filter(|_| is_idle) {
            return Some(cpu);
        }
        let mut largest_threads =
            into.threads.iter().filter(|thread| self.is_largest(thread, into.unit));
        let cpu = largest_threads.next()?.cpu?;
        largest_threads.all(|thread| thread.cpu == Some(cpu)).then_some(cpu)
    }

    /// Whether the latency is the maximum of a series of its kind.
    fn is_largest(&self, thread: &Thread, unit: Nanos) -> bool {
        let Some((total, is_irq)) = self.total else { return false };
        thread.cycle_count() > 0
            && thread.series_name().ends_with("/irq") == is_irq
            && unit.ns() > 0
            && thread.max == (total.ns() / unit.ns()) as u64
    }

    /// The series that stopped it: for a CPU with user threads, the return to user mode if that is
    /// the longest.
    fn find_stop(&self, into: &ImportedFile) -> Option<(String, Nanos)> {
        let (total, is_irq) = self.total?;
        let cpu_threads =
            || into.threads.iter().filter(|of| self.cpu.is_some() && of.cpu == self.cpu);
        let mut largest = cpu_threads().filter(|thread| self.is_largest(thread, into.unit));
        let only_thread = || cpu_threads().next().filter(|_| cpu_threads().count() == 1);
        let default = self.analysis_series(if is_irq { "/irq" } else { "/thread" });
        Some((largest.next().or_else(only_thread).map_or(default, Thread::series_name), total))
    }

    /// The causes. For an interrupt's latency rtla knows only the task: the handler delay it prints
    /// there is that of the previous cycle.
    fn list_causes(&self) -> Vec<AnsweredDelay> {
        let Some((total, is_irq)) = self.total else { return Vec::new() };
        let who = self.blocking_thread();
        if is_irq {
            let kind = match &who {
                Some(who) if who.starts_with("swapper/") => CauseKind::IdleExit,
                _ => CauseKind::TimerIrqDelay,
            };
            let who = who.filter(|_| kind == CauseKind::TimerIrqDelay);
            return vec![new_delay(kind, who, 1.0)];
        }
        let mut causes = Vec::new();
        for part in &self.parts {
            let Some(cause) = part.cause else { continue };
            let cause = if part.is_idle { CauseKind::IdleExit } else { cause };
            let mut add = |who: Option<String>, time: Option<Nanos>| {
                let share =
                    time.and_then(|time| time_share(time, total)).filter(|share| *share > 0.0);
                causes.extend(share.map(|share| new_delay(cause, who, share)));
            };
            match part.who.as_slice() {
                [] => add(None, part.time),
                [_] if cause == CauseKind::NonPreemptible => add(who.clone(), part.time),
                all => all.iter().for_each(|(who, time)| add(Some(who.clone()), *time)),
            }
        }
        causes.sort_by(|one, other| other.share.total_cmp(&one.share));
        causes
    }

    /// The task running when the timer's interrupt arrived, with its current function.
    fn blocking_thread(&self) -> Option<String> {
        let part = self.parts.iter().find(|part| part.cause == Some(CauseKind::NonPreemptible))?;
        let (who, _) = part.who.first()?;
        Some(match interrupted_function(&self.stack) {
            Some(function) => format!("{who} in {function}"),
            None => who.clone(),
        })
    }
}

/// The innermost function below those of the interrupt itself and of locks.
fn interrupted_function(stack: &[String]) -> Option<&str> {
    const ENTRIES: [&str; 10] = [
        "asm_",
        "el1",
        "el0",
        "__irq_",
        "irq_entries",
        "do_IRQ",
        "ret_from",
        "apic_timer",
        "call_on_irq_stack",
        "handle_riscv_irq",
    ];
    let is_entry = |name: &String| ENTRIES.iter().any(|entry| name.starts_with(entry));
    let below = stack.iter().rposition(is_entry)? + 1;
    stack[below..].iter().map(String::as_str).find(|name| !name.starts_with("_raw_"))
}

fn new_delay(kind: CauseKind, who: Option<String>, share: f64) -> AnsweredDelay {
    AnsweredDelay::new(kind.id(), kind.words(), who, share)
}

fn time_share(time: Nanos, total: Nanos) -> Option<f64> {
    (total.ns() > 0).then(|| (time.ns() as f64 / total.ns() as f64).min(1.0))
}

/// The last time in a line: `up to 2.22 us`, `48.21 us (91.09 %)`.
fn time_of(line: &str) -> Option<Nanos> {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let at = words.iter().rposition(|word| *word == "us")?;
    read_microseconds(words.get(at.checked_sub(1)?)?)
}

/// `insync:4048   1223.16 us`, or only the task.
fn parse_task(line: &str) -> Option<(String, Option<Nanos>)> {
    let time = time_of(line);
    let who = match time {
        Some(_) => line.trim_end_matches(" us").trim_end().rsplit_once([' ', '\t'])?.0,
        None => line,
    };
    let who = who.trim();
    let is_task = who.rsplit_once(':').is_some_and(|(_, id)| id.parse::<u64>().is_ok());
    (is_task || who == "nmi").then(|| (clip_text(who, 40), time))
}
