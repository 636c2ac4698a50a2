//! What the flight recorder watches.

use punctual_bundle::windows::Waited;
use punctual_core::event::Tid;
use punctual_core::{Clock, CpuSet};
use punctual_measure::ring::SnapshotReader;

/// Whose time a sample is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Whose {
    /// That of one thread, always.
    Thread(Tid),
    /// That of the task that took its end: whoever had its CPU then. Tasks of a ring take turns; a
    /// process that allocates may be a new one each round.
    RunsAtEnd,
}

/// A series whose samples are polled.
pub struct Watched {
    pub phase: String,
    pub series: String,
    pub whose: Whose,
    /// The clock of its samples.
    pub clock: Clock,
    /// What the start of a sample is.
    pub waited: Waited,
    /// The CPUs that its thread may run on.
    pub cpus: CpuSet,
    /// Its samples one by one; `None` where they are only counted, and the worst come through
    /// `Flight::add_worst`.
    pub snapshot_reader: Option<SnapshotReader>,
}
