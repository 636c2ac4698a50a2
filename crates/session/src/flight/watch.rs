//! The thread that polls new samples and copies the events around the worst.

use super::WatchedSeries;
use super::capture;
use super::pacer::Pacer;
use super::pending::PendingWindows;
use super::steal::StealClock;
use super::worst_set::{KeptWindow, WorstSet};
use punctual_bundle::windows::{KeptRule, SeriesWindows};
use punctual_core::event::{Names, Recorded};
use punctual_core::{CpuSet, Sample};
use punctual_record::Recorder;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The delay of the first poll.
const BEGINNING: Duration = Duration::from_millis(20);

/// The delay before the window of a long wait is copied, for the activity of resuming CPUs.
const AFTERWARDS: Duration = Duration::from_millis(10);

/// Commands of the controller thread.
pub enum WatchCommand {
    /// Poll these series, and no others.
    Watch(Vec<WatchedSeries>),
    WatchAlso(Box<WatchedSeries>),
    /// The worst samples of a watched series that is only counted.
    WorstSamples(usize, Vec<Sample>),
    /// Poll the samples since the last poll.
    Poll,
    /// Poll once more, acknowledge, and stop polling.
    Settle(SyncSender<()>),
    Stop,
}

/// The recorder and the watched series.
pub struct Watch {
    recorder: Recorder,
    cpus: CpuSet,
    rule: KeptRule,
    pending: Arc<Mutex<PendingWindows>>,
    watched: Vec<(WatchedSeries, WorstSet)>,
    ended: Vec<SeriesWindows>,
    next: u64,
    /// Bytes of all windows that are kept.
    bytes: u64,
    pacer: Option<Pacer>,
    steal: StealClock,
}

impl Watch {
    pub fn new(recorder: Recorder, rule: KeptRule, pending: Arc<Mutex<PendingWindows>>) -> Watch {
        let cpus = recorder.coverage_so_far().cpus;
        let pacer = recorder.buffer_progress().map(Pacer::new);
        let (watched, ended, steal) = (Vec::new(), Vec::new(), StealClock::new());
        Watch { recorder, cpus, rule, pending, watched, ended, next: 0, bytes: 0, pacer, steal }
    }

    /// Polls until it is stopped; returns the recorder and names.
    pub fn run(mut self, commands: &Receiver<WatchCommand>) -> (Recorded, Names) {
        let mut interval = BEGINNING;
        loop {
            match commands.recv_timeout(interval) {
                Ok(WatchCommand::Watch(series)) => self.begin_series(series),
                Ok(WatchCommand::WatchAlso(series)) => self.add(*series),
                Ok(WatchCommand::WorstSamples(place, samples)) => {
                    self.offer_samples(place, samples)
                }
                Ok(WatchCommand::Settle(done)) => {
                    self.poll();
                    self.end_series();
                    let _ = done.send(());
                }
                Ok(WatchCommand::Poll) | Err(RecvTimeoutError::Timeout) => {
                    interval = self.pacer.as_mut().map_or(BEGINNING, Pacer::next_interval);
                    self.poll();
                }
                Ok(WatchCommand::Stop) | Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        let stopped = self.recorder.stop(&mut |_, _| {});
        (stopped.recorded, stopped.names)
    }

    fn begin_series(&mut self, series: Vec<WatchedSeries>) {
        self.end_series();
        series.into_iter().for_each(|of| self.add(of));
        self.publish_counts();
    }

    fn add(&mut self, of: WatchedSeries) {
        let worst_set = WorstSet::new(self.rule.worst, self.rule.above, &of.phase, &of.series);
        self.watched.push((of, worst_set));
    }

    fn end_series(&mut self) {
        let ended = self.watched.drain(..).map(|(_, worst_set)| worst_set.counts);
        self.ended.extend(ended);
        self.publish_counts();
    }

    fn publish_counts(&self) {
        let all_counts =
            self.ended.iter().chain(self.watched.iter().map(|(_, worst_set)| &worst_set.counts));
        if let Ok(mut pending) = self.pending.lock() {
            pending.set_counts(all_counts.cloned().collect());
        }
    }

    /// Polls the samples since the last poll.
    fn poll(&mut self) {
        // Names of threads, before they occur in a window.
        self.recorder.drain(&mut |_, _| {});
        for place in 0..self.watched.len() {
            let Some((of, worst_set)) = self.watched.get_mut(place) else { return };
            let Some(snapshot_reader) = &mut of.snapshot_reader else { continue };
            let mut found = Vec::new();
            let unseen =
                snapshot_reader.read_snapshot(|sample| worst_set.offer_sample(sample, &mut found));
            worst_set.counts.unseen += unseen;
            self.capture_windows(place, found);
        }
        self.steal.poll_ended();
        self.publish_counts();
    }

    /// Offers samples of a series whose samples are only counted.
    fn offer_samples(&mut self, place: usize, samples: Vec<Sample>) {
        let Some((_, worst_set)) = self.watched.get_mut(place) else { return };
        let mut found = Vec::new();
        samples.iter().for_each(|sample| worst_set.offer_sample(sample, &mut found));
        self.recorder.drain(&mut |_, _| {});
        self.capture_windows(place, found);
        self.publish_counts();
    }

    /// Copies the windows of these samples, the worst first: if any are overwritten meanwhile, it
    /// is the last ones.
    fn capture_windows(&mut self, place: usize, samples: Vec<Sample>) {
        let has_samples = !samples.is_empty();
        if samples.iter().any(|sample| sample.latency() >= capture::LONG) {
            std::thread::sleep(AFTERWARDS);
            self.steal.read();
        }
        for sample in samples {
            let Some((of, worst_set)) = self.watched.get_mut(place) else { return };
            let Ok(replaced) = worst_set.replaced_window(sample.latency()) else { continue };
            let Some(window) = capture::capture_window(
                &mut self.recorder,
                &self.cpus,
                of,
                &sample,
                &self.rule,
                &self.steal,
            ) else {
                worst_set.counts.missed_overwritten += 1;
                continue;
            };
            let bytes: u64 = window.records.iter().map(|records| records.len() as u64).sum();
            let free = self.rule.room.get().saturating_sub(self.bytes)
                + replaced.map_or(0, |window| window.bytes);
            if bytes > free {
                worst_set.counts.missed_room += 1;
                continue;
            }
            let (number, partial) = (self.next, window.head.is_partial());
            self.next += 1;
            self.bytes =
                (self.bytes + bytes).saturating_sub(replaced.map_or(0, |window| window.bytes));
            worst_set.keep_window(KeptWindow {
                latency: window.head.latency(),
                number,
                bytes,
                partial,
            });
            let Ok(mut pending) = self.pending.lock() else { return };
            for tid in &window.tids {
                if let Some(name) = self.recorder.task_name(*tid) {
                    pending.tasks.insert(*tid, name.clone());
                }
            }
            pending.put_window(number, window);
            replaced.into_iter().for_each(|window| pending.remove(window.number));
        }
        if has_samples && let Ok(mut pending) = self.pending.lock() {
            let (stacks, functions) = self.recorder.seen_addresses();
            pending.stacks = stacks;
            pending.functions.clone_from(functions);
        }
    }
}
