//! The series that the flight recorder watches.

use punctual_bundle::windows::Waited;
use punctual_core::event::Tid;
use punctual_core::{Clock, CpuSet};
use punctual_measure::ring::SnapshotReader;

/// The task of a sample.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SampleTask {
    /// The same thread, always.
    Thread(Tid),
    /// The task that took its end: it ran on its CPU then. Tasks of a ring take turns; a process
    /// that allocates may be a new one each round.
    RunsAtEnd,
}

/// A series whose samples are polled.
pub struct WatchedSeries {
    pub phase: String,
    pub series: String,
    pub whose: SampleTask,
    /// The clock of its samples.
    pub clock: Clock,
    /// The meaning of a sample's start.
    pub waited: Waited,
    /// The affinity of its thread.
    pub cpus: CpuSet,
    /// The samples one by one; `None` if they are only counted, and the worst arrive through
    /// `Flight::add_worst`.
    pub snapshot_reader: Option<SnapshotReader>,
}
