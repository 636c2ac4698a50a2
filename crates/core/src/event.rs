//! Events: kernel events and test points on one clock.
//!
//! Every recorder and every recording yields one stream of [`Event`]s, the only input of pairing,
//! timeline and attribution. The names of the numbers in events are in [`Names`].

mod context;
mod coverage;
mod group;
mod interface;
mod kind;
mod named_tracepoint;
mod names;
mod trace_moment;
mod tracepoint;

pub use context::CpuContext;
pub use coverage::{Recorded, RecordedSource};
pub use group::Group;
pub use interface::InterfaceName;
pub use kind::{EventKind, Futex, PointKind, TaskState, signal};
pub use named_tracepoint::NamedTracepoint;
pub use names::{CallCounts, FunctionName, LineName, Names, ProbeCost, TaskName};
pub use trace_moment::{
    LateTimer, MomentSource, Noise, NoiseKind, TraceMoment, marker_of_cyclictest,
};
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
    /// The idle task of any CPU.
    pub const IDLE: Tid = Tid(0);
    /// A task that is not known. The kernel's ids are smaller.
    pub const UNKNOWN: Tid = Tid(u32::MAX);
}

/// The index of a test point in [`Names::points`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PointId(pub u32);

/// The index of a probed function in [`Names::functions`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct FunctionId(pub u32);

/// The index of a kernel stack in [`Names::stacks`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct StackId(pub u32);

/// An event.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Event {
    pub at: MonotonicNs,
    /// The CPU; [`Event::NO_CPU`] if the source does not know it (test points).
    pub cpu: u16,
    /// The thread that ran there: for an interrupt, the interrupted one.
    pub tid: Tid,
    pub what: EventKind,
}

impl Event {
    /// Test points do not know their CPU: reading it would cost more than the point.
    pub const NO_CPU: u16 = u16::MAX;
}
