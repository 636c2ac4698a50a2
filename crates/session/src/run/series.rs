//! One series of a phase: its statistics and its files.

use super::joining::Joining;
use super::mapping;
use crate::flight::{Watched, Whose};
use punctual_analyze::SeriesView;
use punctual_bundle::state::{State, ThreadUsage};
use punctual_bundle::windows::Waited;
use punctual_bundle::{BundleError, LineKeeper, SeriesAccount, SeriesMeta, SeriesWriter};
use punctual_core::{Clock, ClockNs, Fact, Finding, Sample, SeriesShape, Severity, Tid};
use punctual_measure::collect::{Collector, Recent};
use punctual_measure::sink::SampleSource;
use punctual_measure::thread::PreparedThread;
use punctual_plan::{ThreadPlan, Word, WorkloadKind};
use punctual_sys::clock;
use punctual_sys::usage::Usage;

/// A series, from before its first sample to its end.
pub struct SeriesRun {
    /// What it is.
    pub meta: SeriesMeta,
    /// Its statistics so far, as in the bundle.
    pub state: State,
    /// What came in since the last poll.
    pub recent: Option<Recent>,
    collector: Option<Collector>,
    writer: SeriesWriter,
    /// The first thing that went wrong with its files.
    pub trouble: Option<BundleError>,
    /// Where the time of its samples goes.
    pub account: Fact<Joining>,
    /// As in the bundle.
    saved: Fact<SeriesAccount>,
    /// Lines of five minutes, of a run for weeks.
    lines: Option<LineKeeper>,
}

impl SeriesRun {
    /// With nothing in it.
    pub fn new(shape: SeriesShape, meta: SeriesMeta, writer: SeriesWriter) -> SeriesRun {
        let data = punctual_core::SeriesData::new(shape);
        SeriesRun {
            meta,
            state: State {
                data,
                usage: Fact::NotAsked,
                digest: None,
                samples_kept: 0,
                log_bytes: 0,
            },
            recent: None,
            collector: None,
            writer,
            trouble: None,
            account: Fact::NotAsked,
            saved: Fact::NotAsked,
            lines: None,
        }
    }

    /// Its log keeps the newest samples from now on, and every five minutes have a line.
    pub fn keep_lines(&mut self, log_limit: u64) -> Result<(), BundleError> {
        self.lines = Some(LineKeeper::new(clock::now(Clock::Realtime).ns(), self.now()));
        self.writer.rotate(log_limit)
    }

    fn now(&self) -> ClockNs {
        clock::now(self.meta.clock)
    }

    /// Ends the line if it is as long as it gets.
    pub fn end_line_if_due(&mut self) {
        let now = self.now();
        if self.lines.as_ref().is_some_and(|lines| lines.is_due(now)) {
            self.end_line();
        }
    }

    fn end_line(&mut self) {
        let now = self.now();
        let Some(lines) = &mut self.lines else { return };
        let line = lines.end(&self.state.data, clock::now(Clock::Realtime).ns(), now);
        if let Err(trouble) = self.writer.append_line(&line) {
            self.trouble.get_or_insert(trouble);
        }
    }

    /// Its samples come from here from now on.
    pub fn begin(&mut self, source: SampleSource, keep_samples: bool) {
        self.collector =
            Some(Collector::new(source, keep_samples || self.account.known().is_some()));
    }

    /// What its samples are divided with, where they are.
    pub fn joining(&mut self) -> Option<&mut Joining> {
        match &mut self.account {
            Fact::Known(joining) => Some(joining),
            _ => None,
        }
    }

    /// As the flight recorder watches it, in this phase; before its first sample. `None` if the
    /// thread is unknown.
    pub fn watched(&self, phase: &str, source: &SampleSource) -> Option<Watched> {
        let own = Tid(self.meta.tid.and_then(|tid| u32::try_from(tid).ok())?);
        Some(Watched {
            phase: phase.to_owned(),
            series: self.meta.name.clone(),
            whose: if self.is_of_others() { Whose::RunsAtEnd } else { Whose::Thread(own) },
            clock: self.meta.clock,
            waited: if self.meta.workload == WorkloadKind::Timer.word() {
                Waited::Timer
            } else {
                Waited::Interval
            },
            cpus: self.meta.cpus.clone(),
            snapshot_reader: source.snapshot_reader(),
        })
    }

    /// Whether other tasks than its thread take its samples: the process that allocates, members of
    /// a ring, the thread that writes.
    fn is_of_others(&self) -> bool {
        let others =
            [WorkloadKind::Heap, WorkloadKind::Switch, WorkloadKind::Storage, WorkloadKind::Netio];
        others.iter().any(|kind| self.meta.workload == kind.word())
    }

    /// The worst of what was only counted is wanted too.
    pub fn keep_worst(&mut self) {
        self.collector.iter_mut().for_each(Collector::keep_worst);
    }

    /// Hands that out.
    pub fn take_worst(&mut self) -> Vec<Sample> {
        self.collector.as_mut().map(Collector::take_worst).unwrap_or_default()
    }

    /// Takes in what its thread has measured meanwhile.
    pub fn drain(&mut self) {
        let Some(collector) = &mut self.collector else { return };
        let fresh = collector.drain(&mut self.state.data);
        if let (Some(lines), Some(fresh)) = (&mut self.lines, fresh) {
            lines.extend(fresh.max);
        }
        self.recent = fresh.or(self.recent);
        self.keep();
    }

    /// Moves samples and windows to the log. Once a write has failed, statistics go on alone.
    fn keep(&mut self) {
        let Some(collector) = &mut self.collector else { return };
        let mut outcome = Ok(());
        let account = &mut self.account;
        collector.take_samples(|samples| {
            if let Fact::Known(joining) = account {
                joining.samples(samples);
            }
            if self.trouble.is_none() {
                outcome = self.writer.append(samples);
            }
        });
        for window in collector.take_windows() {
            outcome = outcome.and_then(|()| self.writer.append_window(&window));
        }
        if let Err(trouble) = outcome {
            if self.account.known().is_none() {
                collector.keep_no_samples();
            }
            self.trouble.get_or_insert(trouble);
        }
    }

    /// Saves the statistics as they are now.
    pub fn checkpoint(&mut self) {
        self.save(SeriesWriter::checkpoint);
    }

    /// Saves where the time went, as far as that is known now.
    pub fn save_account(&mut self) {
        self.saved = match &self.account {
            Fact::Known(joining) => Fact::Known(joining.account.clone()),
            Fact::Unavailable(why) => Fact::Unavailable(why.clone()),
            Fact::NotAsked => return,
        };
        if let Err(trouble) = self.writer.write_account(&self.saved) {
            self.trouble.get_or_insert(trouble);
        }
    }

    fn save(&mut self, write: fn(&mut SeriesWriter, &State) -> Result<(), BundleError>) {
        (self.state.samples_kept, self.state.log_bytes) =
            (self.writer.kept(), self.writer.log_bytes());
        if let Err(trouble) = write(&mut self.writer, &self.state) {
            self.trouble.get_or_insert(trouble);
        }
    }

    /// Its thread has ended: takes in the rest, and what the kernel counted for it.
    pub fn finish(&mut self, usage: Option<Usage>) {
        self.drain();
        if let Some(collector) = &mut self.collector {
            collector.finish(&mut self.state.data);
            self.state.digest = Some(collector.digest(&self.state.data));
        }
        self.keep();
        if let Some(usage) = usage {
            self.state.usage = Fact::Known(ThreadUsage {
                minor_faults: usage.minor_faults,
                major_faults: usage.major_faults,
                voluntary_switches: usage.voluntary_switches,
                involuntary_switches: usage.involuntary_switches,
            });
        }
        self.end_line();
        self.save(SeriesWriter::finish);
    }

    /// The view that the analysis takes.
    pub fn view(&self) -> SeriesView<'_> {
        SeriesView { meta: &self.meta, state: &self.state, account: Some(&self.saved) }
    }
}

/// What the reader of the figures must know of how the thread could be prepared.
pub fn findings(subject: &str, thread: &ThreadPlan, prepared: &PreparedThread) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Some(why) = &prepared.refused {
        let message = format!(
            "{} was refused; it ran as {}",
            mapping::scheduling(thread.scheduling),
            prepared.scheduling
        );
        let finding = Finding::new("scheduling-refused", Severity::Bad, subject, message);
        findings.push(finding.evidence(format!("sched_setattr: {why}")).remedy(
            "grant CAP_SYS_NICE or a real-time priority limit (ulimit -r, \
             /etc/security/limits.conf), or run as root; in a cgroup, assign real-time bandwidth; \
             SCHED_DEADLINE requires the affinity of a whole root domain",
        ));
    }
    if let Some(why) = &prepared.unlocked {
        let message = "the memory of the measuring thread could not be locked";
        let finding = Finding::new("memory-not-locked", Severity::Warning, subject, message);
        findings.push(
            finding
                .evidence(format!("mlock: {why}"))
                .remedy("raise RLIMIT_MEMLOCK or grant CAP_IPC_LOCK"),
        );
    }
    findings
}
