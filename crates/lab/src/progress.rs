//! What the watcher of a guest is shown while it runs, and what it may request.

use std::fmt;
use std::time::Duration;

/// How far the guest had come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// The init had not yet started the job.
    Booting,
    Job,
    /// The job had ended, its results were being sent.
    Results,
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Phase::Booting => "while booting",
            Phase::Job => "while the job ran",
            Phase::Results => "while sending the results",
        })
    }
}

/// The progress of a guest, for those who watch it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Progress {
    /// How far it has come.
    pub phase: Phase,
    /// How long it has been running, by this machine's clock.
    pub elapsed: Duration,
}

/// What a watcher requests of a guest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Control {
    GoOn,
    /// That the job ends as by Ctrl-C (SIGINT) and what it has comes back.
    End,
    /// That it is ended at once; nothing more comes back.
    Kill,
}
