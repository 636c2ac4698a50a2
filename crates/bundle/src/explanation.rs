//! What `punctual explain --json` prints. Times are in ns, instants on CLOCK_MONOTONIC; what is not
//! known is `null`.

use crate::windows::{KeptRule, SeriesWindows};
use punctual_core::Finding;
use serde::{Deserialize, Serialize};

/// The name and version of [`ExplainDocument`].
pub const EXPLAIN_SCHEMA: &str = "punctual-explain/2";

/// Late samples and what their time went to.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ExplainDocument {
    /// [`EXPLAIN_SCHEMA`].
    pub schema: String,
    /// Where the events come from.
    pub source: EventSource,
    /// By what rule windows were kept; `null` where the events are those of a whole recording.
    pub rule: Option<KeptRule>,
    /// What became of the selected samples of each series; empty where the events are those of a
    /// whole recording.
    pub series: Vec<SeriesWindows>,
    /// The samples, by series, of each the latest first.
    pub samples: Vec<ExplainedSample>,
    pub findings: Vec<Finding>,
}

/// Where the events come from that explain samples.
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
    /// Its phase; empty where it is none of a run.
    pub phase: String,
    /// Its series, or the pair or function that it is an interval of.
    pub series: String,
    /// When it was due, or began.
    pub at: i64,
    /// From `due` to `woke`; the parts add up to it.
    pub latency_ns: i64,
    /// The CPU on which its end was seen.
    pub cpu: Option<u16>,
    pub tid: u32,
    pub task: String,
    /// Where the time went: one after the other, without holes; they add up to `latency_ns`.
    pub parts: Vec<ExplainedPart>,
    /// The task that was waited for, then the task that one waited for, and so on.
    pub chain: Vec<String>,
    /// Who woke the thread, who woke that one, and so on.
    #[serde(default)]
    pub wakeups: Vec<ExplainedWakeUp>,
    /// Events that are known to be missing within it.
    pub lost: u64,
    /// How far this can be trusted: `high`, `fair`, `low`.
    pub confidence: String,
    /// Its warnings, a word each; empty where there are none.
    pub warnings: Vec<String>,
    /// Groups of kernel events that were not recorded and may show what is not explained.
    #[serde(default)]
    pub not_recorded: Vec<String>,
    /// CPUs whose events were recorded and did not fit in the window.
    pub left_out: Vec<u16>,
}

/// A step of a chain of wake-ups: the next one is about the task in `by`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ExplainedWakeUp {
    /// The thread that was woken.
    pub tid: u32,
    pub task: String,
    /// What it had waited for: `lock`, `reclaim`, `page-fault`, `uninterruptible`, `sleep`.
    pub wait: String,
    /// For how long; `null` where the record does not have the start.
    pub waited_ns: Option<i64>,
    /// The task or interrupt that woke it.
    pub by: String,
    /// How the network packet came that it was woken for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packet: Option<ExplainedPacket>,
    /// The event that proves it.
    pub evidence: Evidence,
}

/// The way of a network packet to the socket that a thread waited at.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ExplainedPacket {
    /// The device's interrupt; `null` for a packet that a thread of this machine sent.
    pub irq: Option<String>,
    pub irq_at: Option<i64>,
    /// When the softirq began that delivered it; `null` where a thread did.
    pub delivery: Option<i64>,
    /// The device that received it; `null` where no event shows that.
    #[serde(default)]
    pub device: Option<String>,
    /// When it went up the protocols.
    #[serde(default)]
    pub received: Option<i64>,
    /// Its length.
    #[serde(default)]
    pub bytes: Option<u32>,
    /// The kind of the socket that it was queued at; `null` where no event shows that.
    #[serde(default)]
    pub socket: Option<String>,
    /// When that had it.
    #[serde(default)]
    pub socket_at: Option<i64>,
    /// When the poll of the device (NAPI) was over in which it was taken; `null` where no event
    /// shows that.
    #[serde(default)]
    pub poll_end: Option<i64>,
    /// How many packets that poll took.
    #[serde(default)]
    pub polled: Option<u32>,
}

/// A part of a latency.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ExplainedPart {
    /// What took the time: a word, see docs/reference/explain.md.
    pub cause: String,
    /// The culprit, by name; `null` where the cause names it, or it is unknown.
    pub who: Option<String>,
    /// The task that is responsible, where one is.
    pub tid: Option<u32>,
    pub ns: i64,
    pub from: i64,
    /// The CPU that it concerns.
    pub cpu: Option<u16>,
    /// The system call that the responsible task was in, or the thread itself.
    pub syscall: Option<String>,
    /// The priority of the responsible task, as the kernel's `prio`: 0 to 99 real-time (99 less
    /// rt_priority), 100 to 139 others, -1 deadline.
    pub prio: Option<i16>,
    /// Where in the kernel the responsible task was, innermost first, where its stack was taken.
    pub stack: Vec<String>,
    /// For a wait for another task: what that one did meanwhile. These add up to `ns`.
    pub meanwhile: Vec<ExplainedPart>,
    /// The events that prove it, at most [`EVIDENCE_SHOWN`] of them.
    pub evidence: Vec<Evidence>,
    pub evidence_count: u64,
}

/// An event that proves a part.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Evidence {
    pub at: i64,
    /// Where it ran; `null` where no event shows it.
    pub cpu: Option<u16>,
    pub tid: u32,
    /// Its name: that of its tracepoint where it has one.
    pub event: String,
}

/// So many events are shown of what proves a part: the first ones.
pub const EVIDENCE_SHOWN: usize = 8;
