//! The document of `punctual explain --json`. Times are in ns, instants on CLOCK_MONOTONIC; unknown
//! values are `null`.

use crate::intervals::Coincidences;
use crate::windows::{KeptRule, SeriesWindows};
use punctual_core::Finding;
use punctual_core::event::TraceMoment;
use serde::{Deserialize, Serialize};

/// The name and version of [`ExplainDocument`].
pub const EXPLAIN_SCHEMA: &str = "punctual-explain/2";

/// Late samples with the breakdown of their time.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ExplainDocument {
    /// [`EXPLAIN_SCHEMA`].
    pub schema: String,
    /// The source of the events.
    pub source: EventSource,
    /// The rule for keeping windows; `null` if the events are those of a whole recording.
    pub rule: Option<KeptRule>,
    /// The windows of each series' selected samples; empty if the events are those of a whole
    /// recording.
    pub series: Vec<SeriesWindows>,
    /// The samples by series, the highest latency first.
    pub samples: Vec<ExplainedSample>,
    /// The events of all long samples and of the ordinary ones; `null` if only windows of the worst
    /// were kept.
    #[serde(default)]
    pub coincidences: Option<Vec<Coincidences>>,
    pub findings: Vec<Finding>,
}

/// The source of the events that explain samples.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventSource {
    /// Windows that the flight recorder kept.
    Windows,
    /// A recording of the whole run.
    Recording,
}

/// A sample with the parts of its latency.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ExplainedSample {
    /// Its phase; empty if it does not belong to a run.
    pub phase: String,
    /// Its series, or the pair or function of the interval.
    pub series: String,
    /// When it was due or began.
    pub at: i64,
    /// From `due` to `woke`; the parts add up to it.
    pub latency_ns: i64,
    /// The CPU on which its end was seen.
    pub cpu: Option<u16>,
    pub tid: u32,
    pub task: String,
    /// The breakdown of the time: consecutive, without gaps, with the sum `latency_ns`.
    pub parts: Vec<ExplainedPart>,
    /// The task waited for, then the task that it waited for, and so on.
    pub chain: Vec<String>,
    /// The waker of the thread, then the waker of that, and so on.
    #[serde(default)]
    pub wakeups: Vec<ExplainedWakeUp>,
    /// The number of events known to be missing within it.
    pub lost: u64,
    /// The confidence: `high`, `fair`, `low`.
    pub confidence: String,
    /// Warnings, one word each.
    pub warnings: Vec<String>,
    /// Event groups that were not recorded and may show the unexplained parts.
    #[serde(default)]
    pub not_recorded: Vec<String>,
    /// CPUs whose recorded events did not fit in the window.
    pub left_out: Vec<u16>,
    /// The moment of a trace that it is, where that or the user names one, or it is a wake-up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moment: Option<TraceMoment>,
    /// The function in which the longest part was, where the trace has functions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<ExplainedFunction>,
}

/// The function with the longest time between its lines and the next ones on the delayed CPU.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ExplainedFunction {
    /// The function, `‹` and its caller.
    pub function: String,
    pub cpu: u16,
    pub from: i64,
    pub ns: i64,
    /// The lines that it was in; one alone where that has nearly all of the time.
    #[serde(default)]
    pub lines: u64,
    /// Whether interrupts were disabled at these lines and the next ones (`true`) or enabled;
    /// `null`: not known.
    pub irqs_off: Option<bool>,
}

/// A step in a chain of wake-ups; the next step is about the task in `by`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ExplainedWakeUp {
    /// The woken thread.
    pub tid: u32,
    pub task: String,
    /// The kind of its wait: `lock`, `reclaim`, `page-fault`, `uninterruptible`, `sleep`.
    pub wait: String,
    /// The length of the wait; `null` if the record lacks its start.
    pub waited_ns: Option<i64>,
    /// The task or interrupt that woke it.
    pub by: String,
    /// The path of the network packet that it was woken for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packet: Option<ExplainedPacket>,
    /// The event that proves it.
    pub evidence: PartEvidence,
}

/// The path of a network packet to the socket that a thread waited at.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ExplainedPacket {
    /// The device's interrupt; `null` for a packet that a thread of this machine sent.
    pub irq: Option<String>,
    pub irq_at: Option<i64>,
    /// When the softirq that delivered it began; `null` if a thread delivered it.
    pub delivery: Option<i64>,
    /// The device that received it; `null` if no event shows it.
    #[serde(default)]
    pub device: Option<String>,
    /// When it was passed up the protocol stack.
    #[serde(default)]
    pub received: Option<i64>,
    /// Its length.
    #[serde(default)]
    pub bytes: Option<u32>,
    /// The kind of the socket; `null` if no event shows it.
    #[serde(default)]
    pub socket: Option<String>,
    /// When it was queued at the socket.
    #[serde(default)]
    pub socket_at: Option<i64>,
    /// When the device poll (NAPI) that took the packet ended; `null` if no event shows it.
    #[serde(default)]
    pub poll_end: Option<i64>,
    /// The number of packets taken by that poll.
    #[serde(default)]
    pub polled: Option<u32>,
}

/// A part of a latency.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ExplainedPart {
    /// The cause: a word of docs/reference/explain.md.
    pub cause: String,
    /// The culprit by name; `null` if the cause implies it or it is unknown.
    pub who: Option<String>,
    /// The responsible task, if any.
    pub tid: Option<u32>,
    pub ns: i64,
    pub from: i64,
    /// The CPU concerned.
    pub cpu: Option<u16>,
    /// The system call that the responsible task, or the thread itself, was in.
    pub syscall: Option<String>,
    /// The priority of the responsible task, as the kernel's `prio`: 0 to 99 real-time (99 less
    /// rt_priority), 100 to 139 others, -1 deadline.
    pub prio: Option<i16>,
    /// The kernel stack of the responsible task, innermost first, if taken.
    pub stack: Vec<String>,
    /// For a wait for another task: that task's activity meanwhile, with the sum `ns`.
    pub meanwhile: Vec<ExplainedPart>,
    /// The events that prove it, at most [`EVIDENCE_SHOWN`].
    pub evidence: Vec<PartEvidence>,
    pub evidence_count: u64,
}

/// An event that proves a part.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct PartEvidence {
    pub at: i64,
    /// The CPU; `null` if no event shows it.
    pub cpu: Option<u16>,
    pub tid: u32,
    /// The name: the tracepoint's, if it has one.
    pub event: String,
}

/// The maximum number of events shown as proof of a part: the first ones.
pub const EVIDENCE_SHOWN: usize = 8;
