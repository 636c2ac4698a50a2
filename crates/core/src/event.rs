//! What happened: kernel events and test points, on one clock.
//!
//! One stream of [`Event`]s comes out of every recorder and every recording, whatever wrote it.
//! Pairing, timeline and attribution see nothing else. What a number in an event is called stands
//! in [`Names`].

mod context;
mod group;
mod interface;
mod kind;
mod named;
mod names;
mod recorded;
mod tracepoint;

pub use context::CpuContext;
pub use group::Group;
pub use interface::InterfaceName;
pub use kind::{EventKind, Futex, PointKind, TaskState, signal};
pub use named::NamedTracepoint;
pub use names::{CallCounts, FunctionName, LineName, Names, ProbeCost, TaskName};
pub use recorded::{Recorded, Source};
pub use tracepoint::{FieldKind, RecordBytes, RecordField, TracepointFormat, TracepointId};

use crate::MonotonicNs;
use serde::{Deserialize, Serialize};

/// A thread, by the kernel's id in the initial PID namespace. Idle tasks are 0 on every CPU.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Tid(pub u32);

impl Tid {
    /// The idle task of whatever CPU it is seen on.
    pub const IDLE: Tid = Tid(0);
}

/// A test point's place in [`Names::points`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PointId(pub u32);

/// A probed function's place in [`Names::functions`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct FunctionId(pub u32);

/// A kernel stack's place in [`Names::stacks`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct StackId(pub u32);

/// One thing that happened.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Event {
    pub at: MonotonicNs,
    /// On which CPU; [`Event::NO_CPU`] where the source does not know it (test points).
    pub cpu: u16,
    /// Which thread ran there: for an interrupt, the interrupted one.
    pub tid: Tid,
    pub what: EventKind,
}

impl Event {
    /// Test points do not know their CPU: asking would cost more than the point.
    pub const NO_CPU: u16 = u16::MAX;
}
