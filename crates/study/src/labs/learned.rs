//! Estimates of a lab's duration: from its earlier runs, and those of other labs on this machine.

use super::attempt::Done;
use super::directory::took;
use super::jobs::{Job, Planned};
use super::times::Times;
use punctual_core::Nanos;
use std::path::Path;

/// Reads the durations of runs from this lab's directory, and from other labs here.
pub fn learn(planned: &mut Planned, directory: &Path) {
    planned.learn(Times::read(), |name| took(directory, name));
}

/// Adds the durations of those of these runs that were made now.
pub fn remember(planned: &Planned, jobs: &[Job], before: &[Done], after: &[Done]) {
    let made = jobs.iter().zip(before.iter().zip(after));
    let made = made.filter(|(_, (before, _))| matches!(before, Done::Waiting));
    let made = made.filter_map(|(job, (_, after))| {
        let Done::Whole(stamp) = after else { return None };
        Some((planned.kind(job.cell), planned.unlearned(job.cell)?, Nanos(stamp.took)))
    });
    let mut times = Times::read();
    if made.map(|(kind, estimated, took)| times.add(kind, estimated, took)).count() > 0 {
        times.keep();
    }
}
