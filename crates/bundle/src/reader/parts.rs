//! A run that was cut off and continued: later parts are separate bundles in `parts/`, and an
//! opened bundle holds all of them together.

use super::{Bundle, Completeness, Phase, Series, shift_instant};
use crate::account::SeriesAccount;
use crate::evidence::PhaseEvidence;
use crate::manifest::Outcome;
use crate::member::Member;
use crate::meta::PhaseMeta;
use punctual_core::{Clock, Fact, Finding, Nanos, Sample, Severity};
use std::path::{Path, PathBuf};

/// The directory of later parts.
pub const DIRECTORY: &str = "parts";
/// The number of the first of them; the bundle itself is the part before.
pub const FIRST: usize = 1;
/// The maximum clock difference between parts measured since the same boot.
const SAME_START: Nanos = Nanos::from_secs(10);

/// The directory of part `number` of a bundle.
pub fn directory_of(bundle: &Path, number: usize) -> PathBuf {
    bundle.join(DIRECTORY).join(format!("{number:03}"))
}

/// The parts that follow the first, in order.
pub(super) fn read(root: &Member, damage: &mut Vec<String>) -> Vec<Bundle> {
    let directory = root.join(DIRECTORY);
    if !directory.is_directory() {
        return Vec::new();
    }
    let mut parts = Vec::new();
    for member in directory.readable_entries("", damage) {
        match Bundle::open_part(&member) {
            Ok(part) => parts.push(part),
            Err(why) => damage.push(why.to_string()),
        }
    }
    parts
}

impl Bundle {
    /// Appends a later part: figures are over both, and the ending is that of the later part.
    pub(super) fn append_part(&mut self, part: Bundle) {
        self.manifest.gaps.extend(part.manifest.gaps);
        self.manifest.unwritten.extend(part.manifest.unwritten);
        self.manifest.command = part.manifest.command.or(self.manifest.command);
        let limits = part.manifest.limits.into_iter().flatten();
        self.manifest.limits.iter_mut().for_each(|own| own.extend(limits.clone()));
        let ended = std::mem::replace(&mut self.manifest.ending, part.manifest.ending);
        // The bundle's own header already has the ending of the last part.
        let before = ended.filter(|ending| ending.at <= part.manifest.created);
        self.findings.extend(before.and_then(|ending| failure_finding(&ending.outcome)));
        self.completeness = part.completeness;
        self.damage.extend(part.damage);
        let known_findings = &self.findings;
        let new: Vec<_> =
            part.findings.into_iter().filter(|finding| !known_findings.contains(finding)).collect();
        self.findings.extend(new);
        for phase in part.phases {
            match self.phases.iter_mut().find(|own| own.meta.name == phase.meta.name) {
                Some(own) => own.append_phase(phase, part.completeness),
                None => self.phases.push(phase),
            }
        }
        self.parts.push(part.directory);
    }
}

/// The finding about a failed part, as the run's ending is that of its last part.
fn failure_finding(outcome: &Outcome) -> Option<Finding> {
    outcome.is_failure().then(|| {
        let message = "a part of the run failed; it was continued afterwards";
        Finding::new("part-failed", Severity::Warning, "run", message)
            .with_evidence(outcome.to_string())
    })
}

impl Phase {
    fn append_phase(&mut self, later: Phase, completeness: Completeness) {
        let offset = clock_offset(&self.meta, &later.meta);
        let so_far = std::mem::take(&mut self.meta.evidence);
        let measured = |name: &str| {
            let own_series = self.series.iter().find(|series| series.meta.name == name);
            own_series.map_or(0, |series| series.state.data.losses.expected_count())
        };
        self.meta.evidence = PhaseEvidence::of_parts(so_far, later.meta.evidence, measured);
        for series in later.series {
            let of_same = |own: &&mut Series| own.meta.name == series.meta.name;
            match self.series.iter_mut().find(of_same) {
                Some(own) => own.append_series(series, offset),
                None => self.series.push(series),
            }
        }
        self.meta.duration = match completeness {
            Completeness::Whole => {
                self.measured_time().zip(later.meta.duration).map(|(a, b)| a + b)
            }
            Completeness::CutOff => None,
        };
    }

    /// The measured time, if its figures show it.
    fn measured_time(&self) -> Option<Nanos> {
        let expected_time = |series: &Series| {
            let expected = i64::try_from(series.state.data.losses.expected_count()).ok()?;
            Some(Nanos(series.meta.period?.ns().saturating_mul(expected)))
        };
        self.meta.duration.or_else(|| self.series.iter().filter_map(expected_time).max())
    }
}

/// The offset of the later part's CLOCK_MONOTONIC from that of the first: it restarts at 0 with the
/// system.
fn clock_offset(first: &PhaseMeta, later: &PhaseMeta) -> Nanos {
    let since = |meta: &PhaseMeta| {
        let started = meta.started.as_nanosecond() - i128::from(meta.started_monotonic);
        i64::try_from(started).unwrap_or(0)
    };
    let offset = Nanos(since(later).saturating_sub(since(first)));
    let goes_on = later.started_monotonic >= first.started_monotonic;
    if goes_on && offset < SAME_START && offset > Nanos(-SAME_START.ns()) {
        Nanos::ZERO
    } else {
        offset
    }
}

impl Series {
    fn append_series(&mut self, part: Series, ahead: Nanos) {
        let clock_ahead = if part.meta.clock == Clock::Monotonic { ahead } else { Nanos::ZERO };
        // The worse of both.
        if self.meta.has_requested_scheduling() && !part.meta.has_requested_scheduling() {
            self.meta.scheduling = part.meta.scheduling;
        }
        self.meta.real_time &= part.meta.real_time;
        let mut state = part.state;
        state.data.worst.iter_mut().for_each(|sample| shift_sample(sample, clock_ahead));
        self.state.data.add(&state.data);
        self.state.samples_kept += state.samples_kept;
        // Neither digest covers all samples.
        self.state.digest = None;
        self.state.usage = Fact::NotAsked;
        self.account = add_accounts(&self.account, part.account);
        self.later.push((part.files, clock_ahead));
    }
}

/// Converts a sample to the clock of the first part.
pub(super) fn shift_sample(sample: &mut Sample, ahead: Nanos) {
    (sample.due, sample.woke) =
        (shift_instant(sample.due, ahead), shift_instant(sample.woke, ahead));
}

/// The sum of both accounts; unknown if either is.
fn add_accounts(first: &Fact<SeriesAccount>, later: Fact<SeriesAccount>) -> Fact<SeriesAccount> {
    match (first, later) {
        (Fact::Known(first), Fact::Known(later)) => {
            let mut account_sum = first.clone();
            account_sum.complete = later.complete;
            account_sum.account.add(&later.account);
            account_sum.unattributed += later.unattributed;
            account_sum.lost += later.lost;
            Fact::Known(account_sum)
        }
        (Fact::Known(_), unknown) => unknown,
        (unknown, _) => unknown.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_part_is_a_finding_an_interrupted_one_is_not() {
        let found =
            failure_finding(&Outcome::Failed { why: "no space".into() }).expect("a finding");
        assert_eq!((found.id.as_str(), found.subject.as_str()), ("part-failed", "run"));
        assert!(found.evidence.is_some_and(|evidence| evidence.contains("no space")));
        assert_eq!(failure_finding(&Outcome::Interrupted), None);
    }
}
