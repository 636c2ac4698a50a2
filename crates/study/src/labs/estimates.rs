//! Estimates of a lab's duration: from its earlier runs, and those of other labs on this machine.

use super::attempt::AttemptResult;
use super::directory::took;
use super::jobs::{LabJob, PlannedLab};
use super::times::RunTimes;
use punctual_core::Nanos;
use std::path::Path;

/// Reads the durations of runs from this lab's directory, and from other labs here.
pub fn learn(planned: &mut PlannedLab, directory: &Path) {
    planned.learn(RunTimes::read(), |name| took(directory, name));
}

/// Adds the durations of those of these runs that were made now.
pub(crate) fn remember(
    planned: &PlannedLab,
    jobs: &[LabJob],
    before: &[AttemptResult],
    after: &[AttemptResult],
) {
    let made = jobs.iter().zip(before.iter().zip(after));
    let made = made.filter(|(_, (before, _))| matches!(before, AttemptResult::Waiting));
    let made = made.filter_map(|(job, (_, after))| {
        let AttemptResult::Whole(stamp) = after else { return None };
        Some((planned.kind(job.cell), planned.unlearned(job.cell)?, Nanos(stamp.took)))
    });
    let mut times = RunTimes::read();
    if made.map(|(kind, estimated, took)| times.add(kind, estimated, took)).count() > 0 {
        times.keep();
    }
}
