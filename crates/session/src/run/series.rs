//! One series of a phase: the source of its samples, and their storage.

use super::joining::Joining;
use super::mapping;
use crate::flight::{SampleTask, WatchedSeries};
use crate::series_store::{KeptSeries, SeriesFiles};
use punctual_bundle::SeriesMeta;
use punctual_bundle::meta::TIMER_WORKLOAD;
use punctual_bundle::state::ThreadUsage;
use punctual_bundle::windows::Waited;
use punctual_core::{Fact, Finding, Nanos, Policy, Sample, SeriesShape, Severity, Tid};
use punctual_measure::collect::SeriesCollector;
use punctual_measure::sink::SampleSource;
use punctual_measure::thread::PreparedThread;
use punctual_plan::kinds::SampledBy;
use punctual_plan::{ThreadPlan, WorkloadKind};
use punctual_sys::clock;
use punctual_sys::rights::{Capabilities, Capability};
use punctual_sys::status;
use punctual_sys::usage::Usage;
use std::io;

/// A series, from before its first sample to its end.
pub struct SeriesRun {
    pub kept: KeptSeries,
    collector: Option<SeriesCollector>,
    /// The state that its samples are broken down with.
    pub account: Fact<Joining>,
}

impl SeriesRun {
    pub(crate) fn new(shape: SeriesShape, meta: SeriesMeta, files: SeriesFiles) -> SeriesRun {
        SeriesRun {
            kept: KeptSeries::new(shape, meta, files),
            collector: None,
            account: Fact::NotAsked,
        }
    }

    /// Takes its samples from here from now on.
    pub(crate) fn begin_collecting(&mut self, source: SampleSource, keep_samples: bool) {
        self.collector = Some(SeriesCollector::new(
            source,
            keep_samples || self.account.known_value().is_some(),
        ));
    }

    /// The state that its samples are broken down with, if they are.
    pub(crate) fn joining_mut(&mut self) -> Option<&mut Joining> {
        match &mut self.account {
            Fact::Known(joining) => Some(joining),
            _ => None,
        }
    }

    /// The series for the flight recorder, in this phase; before its first sample. `None` if the
    /// thread is unknown.
    pub(crate) fn watched_series(
        &self,
        phase: &str,
        source: &SampleSource,
    ) -> Option<WatchedSeries> {
        let meta = &self.kept.meta;
        let own_tid = Tid(meta.tid.and_then(|tid| u32::try_from(tid).ok())?);
        let kind = WorkloadKind::from_word(&meta.workload)?;
        Some(WatchedSeries {
            phase: phase.to_owned(),
            series: meta.name.clone(),
            whose: match kind.sampled_by() {
                SampledBy::Helpers => SampleTask::RunsAtEnd,
                SampledBy::Thread | SampledBy::Kernel => SampleTask::Thread(own_tid),
            },
            clock: meta.clock,
            waited: match kind {
                WorkloadKind::Timer => Waited::Timer,
                _ => Waited::Interval,
            },
            cpus: meta.cpus.clone(),
            snapshot_reader: source.snapshot_reader(),
        })
    }

    /// Also keeps the worst of samples that are only counted.
    pub fn keep_worst(&mut self) {
        self.collector.iter_mut().for_each(SeriesCollector::keep_worst);
    }

    pub fn take_worst(&mut self) -> Vec<Sample> {
        self.collector.as_mut().map(SeriesCollector::take_worst).unwrap_or_default()
    }

    /// Adds the samples of its thread since the last call.
    pub fn drain(&mut self) {
        let Some(collector) = &mut self.collector else { return };
        let fresh = collector.drain(&mut self.kept.state.data);
        if fresh.is_some() {
            // The unfinished sample has arrived.
            self.kept.state.data.unfinished = None;
        }
        fresh.into_iter().for_each(|recent| self.kept.came_in(recent));
        self.store_samples();
    }

    /// Checks for an overdue sample: `None` if its thread has ended, or is not periodic.
    pub(crate) fn check_overdue(&mut self, has_ended: bool) -> Option<Nanos> {
        let timer = self.kept.meta.workload == TIMER_WORKLOAD && !has_ended;
        let now = clock::read_clock(self.kept.meta.clock);
        let data = &mut self.kept.state.data;
        let collector = self.collector.as_ref().filter(|_| timer);
        data.unfinished = collector.and_then(|collector| collector.overdue_sample(data, now));
        data.unfinished.map(|one| one.at_least)
    }

    /// Moves samples and windows to the log.
    fn store_samples(&mut self) {
        let Some(collector) = &mut self.collector else { return };
        let (kept, account) = (&mut self.kept, &mut self.account);
        let mut appended = true;
        collector.take_samples(|samples| {
            if let Fact::Known(joining) = account {
                joining.add_samples(samples);
            }
            appended = kept.append_samples(samples);
        });
        if !appended && account.known_value().is_none() {
            collector.keep_no_samples();
        }
        kept.append_windows(collector.take_windows());
    }

    /// Saves the current statistics.
    pub fn checkpoint(&mut self) {
        self.kept.checkpoint();
    }

    /// Saves the breakdown, as far as known now.
    pub(crate) fn save_account(&mut self) {
        self.kept.account = match &self.account {
            Fact::Known(joining) => Fact::Known(joining.account.clone()),
            Fact::Unavailable(why) => Fact::Unavailable(why.clone()),
            Fact::NotAsked => Fact::NotAsked,
        };
        self.kept.save_account();
    }

    /// Ends the series after its thread: adds the rest, and the kernel's counters for the thread.
    pub fn finish(&mut self, usage: Option<Usage>) {
        self.drain();
        if let Some(collector) = &mut self.collector {
            let data = &mut self.kept.state.data;
            collector.finish(data);
            self.kept.state.digest = Some(collector.sample_digest(data));
        }
        self.store_samples();
        if let Some(usage) = usage {
            self.kept.state.usage = Fact::Known(ThreadUsage {
                minor_faults: usage.minor_faults,
                major_faults: usage.major_faults,
                voluntary_switches: usage.voluntary_switches,
                involuntary_switches: usage.involuntary_switches,
            });
        }
        self.kept.finish();
    }
}

/// The findings about how the thread could be prepared.
pub(crate) fn preparation_findings(
    subject: &str,
    thread: &ThreadPlan,
    prepared: &PreparedThread,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Some(why) = &prepared.refused {
        let message = format!(
            "{} was refused; it ran as {}",
            mapping::to_scheduling(thread.scheduling),
            prepared.scheduling
        );
        let finding = Finding::new("scheduling-refused", Severity::Bad, subject, message);
        let rights = status::read().ok().and_then(|status| Capabilities::parse(&status));
        let may = rights.is_some_and(|rights| rights.has_capability(Capability::SysNice));
        let remedy = of_refusal(why, thread.scheduling.policy(), may).map(str::to_owned);
        findings.push(finding.with_evidence(format!("sched_setattr: {why}")).remedy_by(remedy));
    }
    if let Some(why) = &prepared.unlocked {
        let message = "the memory of the measuring thread could not be locked";
        let finding = Finding::new("memory-not-locked", Severity::Warning, subject, message);
        findings.push(
            finding
                .with_evidence(format!("mlock: {why}"))
                .with_remedy("raise RLIMIT_MEMLOCK or grant CAP_IPC_LOCK"),
        );
    }
    findings
}

/// The remedy where the kernel refused a policy (sched(7), sched_setattr(2)). `may`: this process
/// has CAP_SYS_NICE.
fn of_refusal(why: &io::Error, policy: Policy, may: bool) -> Option<&'static str> {
    match (why.raw_os_error()?, policy) {
        (libc::EPERM, Policy::Deadline) if may => Some(
            "SCHED_DEADLINE requires the affinity of a whole root domain: allow it all CPUs, or \
             make a partition of its own",
        ),
        (libc::EPERM, Policy::Deadline) => Some("grant CAP_SYS_NICE, or run as root"),
        (libc::EPERM, _) if may => Some(
            "give its control group real-time bandwidth (cpu.rt_runtime_us), or run it outside of \
             that group",
        ),
        (libc::EPERM, _) => Some(
            "grant CAP_SYS_NICE or a real-time priority limit (ulimit -r, limits.conf(5)), or run \
             as root",
        ),
        (libc::EBUSY, Policy::Deadline) => {
            Some("reserve less: all SCHED_DEADLINE tasks together ask for more than is allowed")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_remedy_for_a_refused_policy_names_the_missing_privilege() {
        let (eperm, ebusy, einval) = (libc::EPERM, libc::EBUSY, libc::EINVAL);
        let cases = [
            (eperm, Policy::Fifo, false, Some("a real-time priority limit")),
            (eperm, Policy::Fifo, true, Some("control group")),
            (eperm, Policy::Deadline, false, Some("CAP_SYS_NICE")),
            (eperm, Policy::Deadline, true, Some("root domain")),
            (ebusy, Policy::Deadline, true, Some("reserve less")),
            (ebusy, Policy::Fifo, true, None),
            (einval, Policy::Fifo, false, None),
        ];
        let all: Vec<Option<&str>> = cases
            .iter()
            .map(|(errno, policy, may, _)| {
                of_refusal(&io::Error::from_raw_os_error(*errno), *policy, *may)
            })
            .collect();
        for (place, (errno, policy, may, part)) in cases.into_iter().enumerate() {
            let of = all[place];
            let fits = part.map_or(of.is_none(), |part| of.is_some_and(|of| of.contains(part)));
            assert!(fits, "{errno} {policy} {may}: {of:?}");
            // A deadline needs no priority limit, and a limit is no help against a group's budget.
            assert!(
                of.is_none_or(|of| all.iter().filter(|other| **other == Some(of)).count() == 1)
            );
        }
    }
}
