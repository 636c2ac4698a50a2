//! Estimates of a lab's duration: from its earlier runs, and those of other labs on this machine.

use super::attempt::AttemptResult;
use super::directory::duration_of_run;
use super::jobs::{LabJob, PlannedLab};
use super::times::RunTimes;
use punctual_core::Nanos;
use std::path::Path;

/// Reads the durations of runs from this lab's directory, and from other labs here.
pub fn learn_durations(planned: &mut PlannedLab, directory: &Path) {
    planned.learn_durations(RunTimes::read(), |name| duration_of_run(directory, name));
}

/// Adds the durations of those of these runs that were made now.
pub(crate) fn store_durations(
    planned: &PlannedLab,
    jobs: &[LabJob],
    before: &[AttemptResult],
    after: &[AttemptResult],
) {
    let job_results = jobs.iter().zip(before.iter().zip(after));
    let new_results =
        job_results.filter(|(_, (before, _))| matches!(before, AttemptResult::Waiting));
    let learned_times = new_results.filter_map(|(job, (_, after))| {
        let AttemptResult::Whole(stamp) = after else { return None };
        Some((planned.run_kind(job.cell), planned.unlearned_duration(job.cell)?, Nanos(stamp.took)))
    });
    let mut times = RunTimes::read();
    if learned_times.map(|(kind, estimated, took)| times.add(kind, estimated, took)).count() > 0 {
        times.save();
    }
}
