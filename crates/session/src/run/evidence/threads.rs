//! Policy, priority and affinity of the measuring threads, read back while they measure, and by
//! themselves at their end.

use super::super::mapping;
use super::super::measure::{AfterEnd, MeasureRun};
use punctual_bundle::evidence::{Deviation, ReadBack, ThreadEvidence};
use punctual_core::{CpuSet, Fact, Nanos};
use punctual_measure::thread::PreparedThread;
use punctual_measure::workload::MeasureConfig;
use punctual_plan::{Length, MeasurePlan};
use punctual_sys::attributes::{self, Scheduling};
use std::io;

/// A thread and its settings so far.
pub struct ThreadWatch {
    measure: usize,
    number: usize,
    in_force: Scheduling,
    cpus: CpuSet,
    evidence: ThreadEvidence,
}

/// A watch for each thread of a measure, which is number `place` of the phase.
pub(crate) fn watch_of(
    place: usize,
    measure: &MeasurePlan,
    order: &MeasureConfig,
    prepared: &[&PreparedThread],
) -> Vec<ThreadWatch> {
    let due = expected_samples(measure, order);
    let watch = |(number, prepared): (usize, &&PreparedThread)| {
        let planned = measure.threads.get(number);
        let asked_scheduling = planned
            .map_or(prepared.scheduling, |planned| mapping::to_scheduling(planned.scheduling));
        let read = |asked: String| ReadBack { asked, times: 0, other: None, after: Fact::NotAsked };
        let series = order
            .series
            .iter()
            .filter(|series| series.thread == number)
            .map(|series| series.name.clone());
        let offset = planned.map_or(Nanos::ZERO, |planned| planned.start_offset);
        let evidence = ThreadEvidence {
            tid: prepared.tid,
            series: series.collect(),
            scheduling: read(asked_scheduling.to_string()),
            refused: prepared.refused.as_ref().map(ToString::to_string),
            affinity: match asked_scheduling.deadline {
                Some(_) => Fact::NotAsked,
                None => Fact::Known(read(prepared.cpus.to_string())),
            },
            unlocked: prepared.unlocked.as_ref().map(ToString::to_string),
            due: due.map(|due| due(offset)),
            has_end: measure.length != Length::UntilInterrupted,
            reached_end: false,
        };
        let (in_force, cpus) = (prepared.scheduling, prepared.cpus.clone());
        ThreadWatch { measure: place, number, in_force, cpus, evidence }
    };
    prepared.iter().enumerate().map(watch).collect()
}

/// The expected number of samples of a timer series, given its thread's start delay; other kinds
/// take samples when they can.
fn expected_samples<'a>(
    measure: &'a MeasurePlan,
    order: &MeasureConfig,
) -> Option<impl Fn(Nanos) -> u64 + Copy + use<'a>> {
    let period = order.series.first()?.shape.period.filter(|period| period.ns() > 0)?;
    let is_known = matches!(measure.length, Length::Duration(_) | Length::Samples(_));
    is_known.then_some(move |_offset: Nanos| match measure.length {
        // Each thread measures for the whole duration from its own first expiry on.
        Length::Duration(span) => (span.ns() / period.ns()).max(0) as u64,
        Length::Samples(samples) => samples,
        Length::UntilInterrupted => 0,
    })
}

impl ThreadWatch {
    /// Whether this watches this thread of this measure.
    pub fn is_of_thread(&self, measure: usize, number: usize) -> bool {
        (self.measure, self.number) == (measure, number)
    }

    fn has_ended(&self, measures: &[MeasureRun]) -> bool {
        measures.get(self.measure).is_none_or(|measure| measure.thread_has_ended(self.number))
    }

    /// Reads its settings from the kernel now.
    pub fn poll(&mut self, at: Nanos, measures: &[MeasureRun]) {
        if self.has_ended(measures) {
            return;
        }
        let scheduling = attributes::read_scheduling(self.evidence.tid);
        let affinity = attributes::read_affinity(self.evidence.tid);
        // The thread's id may be reused by now.
        if self.has_ended(measures) {
            return;
        }
        let in_force = self.in_force;
        note_reading(&mut self.evidence.scheduling, at, scheduling, |now| *now == in_force);
        if let Fact::Known(read) = &mut self.evidence.affinity {
            let cpus = &self.cpus;
            note_reading(read, at, affinity, |now| now == cpus);
        }
    }

    /// Notes whether it reached its own end.
    pub(crate) fn before_stop(&mut self, measures: &[MeasureRun]) {
        self.evidence.reached_end = measures
            .get(self.measure)
            .is_some_and(|measure| measure.thread_reached_end(self.number));
    }

    /// Adds the settings that the thread read at its end. If the kernel refused the requested ones,
    /// those granted instead must have stayed.
    pub(crate) fn after_end(&mut self, after: &AfterEnd) {
        let Ok((scheduling, cpus)) = after else {
            let unavailable = || {
                Fact::Unavailable(after.as_ref().err().map_or(String::new(), ToString::to_string))
            };
            self.evidence.scheduling.after = unavailable();
            if let Fact::Known(read) = &mut self.evidence.affinity {
                read.after = unavailable();
            }
            return;
        };
        self.evidence.scheduling.after = Fact::Known(scheduling.to_string());
        if let Fact::Known(read) = &mut self.evidence.affinity {
            read.after = Fact::Known(cpus.to_string());
        }
    }

    pub(crate) fn into_evidence(self) -> ThreadEvidence {
        self.evidence
    }
}

fn note_reading<T: std::fmt::Display>(
    read: &mut ReadBack,
    at: Nanos,
    now: io::Result<T>,
    as_asked: impl Fn(&T) -> bool,
) {
    // ESRCH: it has just ended, and reads it itself.
    let Ok(now) = now else { return };
    read.times += 1;
    if !as_asked(&now) && read.other.is_none() {
        read.other = Some(Deviation { at, value: now.to_string() });
    }
}
