//! Moments that a trace itself points at, or that are found in it.

use super::Tid;
use crate::{MonotonicNs, Nanos};
use serde::{Deserialize, Serialize};

/// How a moment was found; the order is that in which they are explained.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MomentSource {
    /// By the user.
    Named,
    /// `hit latency threshold (72 > 30)` of cyclictest.
    Marker,
    /// The head of a latency tracer that follows a wake-up: wakeup, wakeup_rt, wakeup_dl.
    WakeupTracer,
    /// The head of irqsoff or preemptirqsoff: interrupts, or these or preemption, were disabled.
    IrqsoffTracer,
    /// The head of preemptoff.
    PreemptoffTracer,
    /// A sample of the timerlat tracer.
    Timerlat,
    /// `sample_threshold` of the osnoise tracer.
    Osnoise,
    /// A sample of the hwlat tracer.
    Hwlat,
    /// A function of the function_graph tracer.
    FunctionGraph,
    /// A thread lost its CPU and got one again, in switch records of perf without tracepoints.
    OffCpu,
    /// A wake-up that is in the events.
    WakeUp,
}

impl MomentSource {
    /// The name of its series, behind that of the thread.
    pub fn as_str(self) -> &'static str {
        match self {
            MomentSource::Named => "named",
            MomentSource::Marker => "marked",
            MomentSource::WakeupTracer => "wakeup-tracer",
            MomentSource::IrqsoffTracer => "irqsoff-tracer",
            MomentSource::PreemptoffTracer => "preemptoff-tracer",
            MomentSource::Timerlat => "timerlat",
            MomentSource::Osnoise => "osnoise",
            MomentSource::Hwlat => "hwlat",
            MomentSource::FunctionGraph => "function",
            MomentSource::OffCpu => "off-cpu",
            MomentSource::WakeUp => "wake-up",
        }
    }

    /// Its finder, in words.
    pub fn found_by(self) -> &'static str {
        match self {
            MomentSource::Named => "named",
            MomentSource::Marker => "marked by cyclictest",
            MomentSource::WakeupTracer
            | MomentSource::IrqsoffTracer
            | MomentSource::PreemptoffTracer => "from the head of the latency tracer",
            MomentSource::Timerlat => "measured by timerlat",
            MomentSource::Osnoise => "measured by osnoise",
            MomentSource::Hwlat => "measured by hwlat",
            MomentSource::FunctionGraph => "the longest functions of function_graph",
            MomentSource::OffCpu => "times off the CPU, from switch records",
            MomentSource::WakeUp => "wake-ups",
        }
    }
}

impl MomentSource {
    /// Whether the trace itself points at the moment.
    pub fn is_marked(self) -> bool {
        use MomentSource::{FunctionGraph, Named, OffCpu, WakeUp};
        !matches!(self, Named | FunctionGraph | OffCpu | WakeUp)
    }
}

/// A moment that hurt: an interval of a thread or a CPU.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TraceMoment {
    pub source: MomentSource,
    pub from: MonotonicNs,
    pub to: MonotonicNs,
    /// The thread that was late, or ran.
    pub tid: Tid,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<u16>,
    /// Its end was not seen: its length is a lower bound.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub at_least: bool,
    /// The words of the trace, where it has some.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub words: String,
    /// The noises within it that the osnoise events state, in the order of their ends.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub noises: Vec<Noise>,
    /// Of timerlat: its timer's interrupt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timer: Option<LateTimer>,
    /// Lines that the head of a latency tracer counts and the text lacks.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub missing: u64,
    /// All stamps of a latency tracer are multiples of this, a millisecond at least.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<Nanos>,
}

/// How late the interrupt of timerlat's timer was, and the task that it interrupted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LateTimer {
    pub late: Nanos,
    pub running: Tid,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl TraceMoment {
    /// A moment of a thread that ended at this instant and took this long.
    pub fn from_end(source: MomentSource, to: MonotonicNs, took: Nanos, tid: Tid) -> TraceMoment {
        let from = MonotonicNs(to.0.saturating_sub(took.ns().max(0)));
        TraceMoment {
            source,
            from,
            to,
            tid,
            cpu: None,
            at_least: false,
            words: String::new(),
            noises: Vec::new(),
            timer: None,
            missing: 0,
            step: None,
        }
    }

    pub fn duration(&self) -> Nanos {
        self.to - self.from
    }
}

/// The taker of a CPU.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NoiseKind {
    Nmi,
    Irq(u32),
    Softirq(u8),
    Thread(Tid),
}

/// Something that took the CPU, as an event of osnoise states it. Its time is its own, without
/// that of what interrupted it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Noise {
    pub what: NoiseKind,
    pub from: MonotonicNs,
    pub own: Nanos,
}

/// The latency and the limit in cyclictest's mark `hit latency threshold (72 > 30)`, which it
/// writes when a sample exceeds the limit of --breaktrace (`-b`): µs, unless it counts in ns.
pub fn marker_of_cyclictest(text: &[u8]) -> Option<(i64, i64)> {
    const BEGIN: &[u8] = b"hit latency threshold (";
    let at = text.windows(BEGIN.len()).position(|part| part == BEGIN)?;
    let inner = text.get(at + BEGIN.len()..)?;
    let inner = std::str::from_utf8(inner.split(|byte| *byte == b')').next()?).ok()?;
    let (latency, limit) = inner.split_once(" > ")?;
    let (latency, limit) = (latency.trim().parse().ok()?, limit.trim().parse().ok()?);
    (latency > limit && limit >= 0).then_some((latency, limit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mark_of_cyclictest_has_a_latency_above_its_limit() {
        let cases = [
            ("tracing_mark_write: hit latency threshold (72 > 30)", Some((72, 30))),
            ("hit latency threshold (1294 > 1000)\n", Some((1294, 1000))),
            ("hit latency threshold (30 > 72)", None),
            ("hit latency threshold (72)", None),
            ("hit latency threshold (99999999999999999999 > 1)", None),
            ("hit latency threshold (", None),
            ("", None),
        ];
        for (text, latency) in cases {
            assert_eq!(marker_of_cyclictest(text.as_bytes()), latency, "{text}");
        }
    }
}
