//! The progress of a running guest for its watcher, and the watcher's requests.

use std::fmt;
use std::time::Duration;

/// The phase of a guest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GuestPhase {
    /// The init had not yet started the job.
    Booting,
    Job,
    /// The job had ended, its results were being sent.
    Results,
}

impl fmt::Display for GuestPhase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            GuestPhase::Booting => "while booting",
            GuestPhase::Job => "while the job ran",
            GuestPhase::Results => "while sending the results",
        })
    }
}

/// The progress of a guest, for watchers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GuestProgress {
    /// The phase of the guest.
    pub phase: GuestPhase,
    /// The guest's time so far, by this machine's clock.
    pub elapsed: Duration,
}

/// A watcher's request to a guest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GuestControl {
    GoOn,
    /// End the job as by Ctrl-C (SIGINT), and return its results so far.
    End,
    /// Kill it at once; nothing more is returned.
    Kill,
}
