//! This program under rtla's own names: `osnoise hist`, by the workload `spin`, and `timerlat hist
//! --no-irq`, by the workload `timer` (tools/tracing/rtla/src). Their other reports need figures
//! that are not measured: the interferences of each period, the latency of each timer interrupt.

use super::getopt::Takes::{Nothing, Value};
use super::getopt::{Known, cpus, duration, known, number};
use super::{NamedTool, written};
use crate::exit::Failure;
use crate::output;
use punctual_bundle::{Bundle, Outcome};
use punctual_core::{CpuSet, Nanos};
use punctual_plan::text::quoted;
use punctual_report::export::rtla_output::{HiddenParts, RtlaHistogram};
use std::process::ExitCode;

/// The exit code of a run that its threshold stopped.
const STOPPED: u8 = 2;

/// The request, for timerlat or osnoise.
#[derive(Default)]
pub struct Rtla<const TIMER: bool> {
    cpus: Option<CpuSet>,
    house_keeping: Option<CpuSet>,
    duration: Option<Nanos>,
    policy: Option<(&'static str, u64)>,
    bucket: Option<u64>,
    entries: Option<u64>,
    stop_above: Option<u64>,
    hidden: HiddenParts,
    with_zeros: bool,
    nanoseconds: bool,
    dma_latency: Option<u64>,
    /// In µs: the period of timerlat, the shortest noise of osnoise.
    period: Option<u64>,
    threshold: Option<u64>,
    without_irq: bool,
    /// An option that makes no sense.
    wrong: Option<String>,
}

pub type Osnoise = Rtla<false>;
pub type Timerlat = Rtla<true>;

impl<const TIMER: bool> Rtla<TIMER> {
    const COMMON: &'static [Known<Self>] = &[
        Known('b', "bucket-size", Value, |o, text| match number(text) {
            size @ 1..1_000_000 => o.bucket = Some(size),
            _ => o.wrong = Some("Bucket size needs to be > 0 and <= 1000000".to_owned()),
        }),
        Known('E', "entries", Value, |o, text| match number(text) {
            entries @ 10..=9_999_999 => o.entries = Some(entries),
            _ => o.wrong = Some("Entries must be > 10 and < 9999999".to_owned()),
        }),
        Known('c', "cpus", Value, |o, text| match cpus(text) {
            Ok(cpus) => o.cpus = Some(cpus),
            Err(_) => o.wrong = Some("Invalid -c cpu list".to_owned()),
        }),
        Known('H', "house-keeping", Value, |o, text| match cpus(text) {
            Ok(cpus) => o.house_keeping = Some(cpus),
            Err(_) => o.wrong = Some("Error parsing house keeping CPUs".to_owned()),
        }),
        Known('d', "duration", Value, |o, text| match duration(text) {
            Some(duration) => o.duration = Some(duration),
            None => o.wrong = Some("Invalid -d duration".to_owned()),
        }),
        Known('P', "priority", Value, |o, text| match policy(text) {
            Some(policy) => o.policy = Some(policy),
            None => o.wrong = Some("Invalid -P priority".to_owned()),
        }),
        Known(' ', "no-header", Nothing, |o, _| o.hidden.header = true),
        Known(' ', "no-summary", Nothing, |o, _| o.hidden.summary = true),
        Known(' ', "no-index", Nothing, |o, _| o.hidden.index = true),
        Known(' ', "with-zeros", Nothing, |o, _| o.with_zeros = true),
    ];
    const OF_TIMERLAT: &'static [Known<Self>] = &[
        Known('p', "period", Value, |o, text| match number(text) {
            us @ 100..=1_000_000 => o.period = Some(us),
            _ => o.wrong = Some("Period longer than 1 s".to_owned()),
        }),
        Known('T', "thread", Value, |o, us| o.stop_above = Some(number(us))),
        Known('n', "nano", Nothing, |o, _| o.nanoseconds = true),
        Known(' ', "no-irq", Nothing, |o, _| o.without_irq = true),
        Known(' ', "no-aa", Nothing, |_, _| {}),
        Known(' ', "dma-latency", Value, |o, text| match number(text) {
            us @ 0..=10_000 => o.dma_latency = Some(us),
            _ => o.wrong = Some("--dma-latency needs to be >= 0 and < 10000".to_owned()),
        }),
    ];
    const OF_OSNOISE: &'static [Known<Self>] = &[
        Known('s', "stop", Value, |o, us| o.stop_above = Some(number(us))),
        Known('T', "threshold", Value, |o, us| o.threshold = Some(number(us))),
    ];

    fn bucket(&self) -> u64 {
        self.bucket.unwrap_or(1)
    }

    fn entries(&self) -> u64 {
        self.entries.unwrap_or(256)
    }
}

/// `f:80`, `r:80`, or `o:0`: a nice value other than 0 is not supported.
fn policy(text: &str) -> Option<(&'static str, u64)> {
    let (letter, priority) = text.split_once(':')?;
    let priority: u64 = priority.parse().ok()?;
    let real_time = |policy| (1..=99).contains(&priority).then_some((policy, priority));
    match letter {
        "f" | "F" => real_time("fifo"),
        "r" | "R" => real_time("rr"),
        "o" | "O" => (priority == 0).then_some(("other", 0)),
        _ => None,
    }
}

impl<const TIMER: bool> NamedTool for Rtla<TIMER> {
    const NAME: &'static str = if TIMER { "timerlat" } else { "osnoise" };
    const MODE: Option<&'static str> = Some("hist");
    const KNOWN: &'static [&'static [Known<Self>]] =
        &[Self::COMMON, if TIMER { Self::OF_TIMERLAT } else { Self::OF_OSNOISE }];
    const REFUSED: &'static [&'static str] = &[
        "aa-only",
        "auto",
        "bpf-action",
        "cgroup",
        "debug",
        "deepest-idle-state",
        "dump-task",
        "event",
        "filter",
        "help",
        "irq",
        "kernel-threads",
        "no-thread",
        "on-end",
        "on-threshold",
        "runtime",
        "stack",
        "stack-format",
        "stop-total",
        "trace",
        "trace-buffer-size",
        "trigger",
        "user-load",
        "user-threads",
        "warm-up",
    ];

    fn refuse(why: &str, is_unknown: bool) -> ExitCode {
        let options = known::<Self>().map(|Known(letter, name, takes, _)| {
            let letter = if *letter == ' ' { String::new() } else { format!("-{letter}/") };
            let value = if *takes == Nothing { "" } else { " VALUE" };
            format!("\t  {letter}--{name}{value}\n")
        });
        let name = Self::NAME;
        let usage = format!("\n  usage: {name} hist [options]\n\n{}", options.collect::<String>());
        let usage = if is_unknown { &usage } else { "" };
        output::say(&format!("{name}: {why}\n{usage}"));
        ExitCode::from(u8::from(!is_unknown))
    }

    fn complete(&mut self, online: &CpuSet) -> Result<String, String> {
        if let Some(why) = self.wrong.take() {
            return Err(why);
        }
        if TIMER && !self.without_irq {
            let why = "interrupts are not measured here, only threads: add --no-irq";
            return Err(why.to_owned());
        }
        if self.hidden.index && !self.with_zeros {
            let why = "no-index set with with-zeros is not set - it does not make sense";
            return Err(why.to_owned());
        }
        self.cpus.get_or_insert_with(|| online.clone());
        Ok(String::new())
    }

    fn experiment(&self) -> String {
        let (unit, kind) =
            (if self.nanoseconds { "ns" } else { "us" }, if TIMER { "timer" } else { "spin" });
        let range = self.bucket().saturating_mul(self.entries());
        let dma = self.dma_latency.map_or("leave".to_owned(), |us| format!("{us}us"));
        let cpus = self.cpus.clone().unwrap_or_default().to_string();
        let mut text = format!(
            "[experiment]\nname = \"{}\"\nmemory_lock = true\ndma_latency = {}\ncalibrate = \
             false\n",
            Self::NAME,
            quoted(&dma),
        );
        if let Some(cpus) = &self.house_keeping {
            text += &format!("cpus = {}\n", quoted(&cpus.to_string()));
        }
        text += &match self.duration {
            Some(_) => String::new(),
            None => "forever = true\n".to_owned(),
        };
        text += &format!(
            "\n[[measure]]\nname = \"{}\"\nkind = \"{kind}\"\ncpus = {}\nhistogram = {{ range = \
             \"{range}{unit}\", resolution = \"{}{unit}\" }}\n",
            Self::NAME,
            quoted(&cpus),
            self.bucket(),
        );
        // rtla's threads have SCHED_FIFO 95 with timerlat, and no real-time policy with osnoise.
        text += &match self.policy.unwrap_or(if TIMER { ("fifo", 95) } else { ("other", 0) }) {
            (policy, 0) => format!("policy = \"{policy}\"\n"),
            (policy, priority) => format!("policy = \"{policy}\"\npriority = {priority}\n"),
        };
        text += &match TIMER {
            true => format!("period = \"{}us\"\n", self.period.unwrap_or(1_000)),
            // The tracer's own default (kernel/trace/trace_osnoise.c): 5 µs.
            false => format!(
                "attribute = false\nthreshold = \"{}us\"\n",
                self.threshold.filter(|us| *us > 0).unwrap_or(5)
            ),
        };
        if let Some(duration) = self.duration {
            text += &format!("duration = {}\n", quoted(&duration.to_string()));
        }
        if let Some(us) = self.stop_above.filter(|us| *us > 0) {
            text += &format!("stop_above = \"{us}us\"\n");
        }
        text
    }

    fn begin(&self) -> String {
        String::new()
    }

    fn print(&self, bundle: &Bundle, _: &str) -> Result<ExitCode, Failure> {
        let output = RtlaHistogram {
            bundle,
            tool: Self::NAME,
            column: if TIMER { "Thr" } else { "CPU" },
            nanoseconds: self.nanoseconds,
            bucket: self.bucket(),
            entries: self.entries(),
            hidden: self.hidden,
            with_zeros: self.with_zeros,
        };
        let outcome = bundle.manifest.ending.as_ref().map(|ending| &ending.outcome);
        let is_stopped = matches!(outcome, Some(Outcome::StoppedAbove { .. }));
        written(None, |text| {
            output.write(text)?;
            match is_stopped {
                true => writeln!(text, "{} hit stop tracing", Self::NAME),
                false => Ok(()),
            }
        })?;
        Ok(ExitCode::from(if is_stopped { STOPPED } else { 0 }))
    }
}
