//! The thread that looks at new samples and copies what happened around the worst.

use super::keeper::{Keeper, Kept};
use super::pacer::Pacer;
use super::shelf::Shelf;
use super::steal::StealClock;
use super::{Watched, capture};
use punctual_bundle::windows::{KeptRule, SeriesWindows};
use punctual_core::event::{Names, Recorded};
use punctual_core::{CpuSet, Sample};
use punctual_record::Recorder;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How long the first look waits.
const BEGINNING: Duration = Duration::from_millis(20);

/// So long the copy of a long wait's window waits for what the other CPUs do when they come back.
const AFTERWARDS: Duration = Duration::from_millis(10);

/// What the conducting thread wants.
pub enum Order {
    /// Look at these, and no longer at others.
    Watch(Vec<Watched>),
    /// These samples of a watched series were late.
    Late(usize, Vec<Sample>),
    /// Look at what came since.
    Look,
    /// Look once more, say so, and look no longer.
    Settle(SyncSender<()>),
    /// End.
    Stop,
}

/// The recorder with what is watched.
pub struct Watch {
    recorder: Recorder,
    cpus: CpuSet,
    rule: KeptRule,
    shelf: Arc<Mutex<Shelf>>,
    watched: Vec<(Watched, Keeper)>,
    /// Counts of series that ended.
    ended: Vec<SeriesWindows>,
    next: u64,
    /// Bytes of all windows that are kept.
    bytes: u64,
    pacer: Option<Pacer>,
    steal: StealClock,
}

impl Watch {
    /// Nothing watched yet.
    pub fn new(recorder: Recorder, rule: KeptRule, shelf: Arc<Mutex<Shelf>>) -> Watch {
        let cpus = recorder.recorded().cpus;
        let pacer = recorder.pace().map(Pacer::new);
        let (watched, ended, steal) = (Vec::new(), Vec::new(), StealClock::new());
        Watch { recorder, cpus, rule, shelf, watched, ended, next: 0, bytes: 0, pacer, steal }
    }

    /// Looks until it is told to stop; what was recorded, and names.
    pub fn run(mut self, orders: &Receiver<Order>) -> (Recorded, Names) {
        let mut patience = BEGINNING;
        loop {
            match orders.recv_timeout(patience) {
                Ok(Order::Watch(series)) => self.begin(series),
                Ok(Order::Late(place, samples)) => self.sift(place, samples),
                Ok(Order::Settle(done)) => {
                    self.look();
                    self.end();
                    let _ = done.send(());
                }
                Ok(Order::Look) | Err(RecvTimeoutError::Timeout) => {
                    patience = self.pacer.as_mut().map_or(BEGINNING, Pacer::patience);
                    self.look();
                }
                Ok(Order::Stop) | Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        let stopped = self.recorder.stop(&mut |_, _| {});
        (stopped.recorded, stopped.names)
    }

    fn begin(&mut self, series: Vec<Watched>) {
        self.end();
        let keeper = |of: &Watched| Keeper::new(self.rule.worst, self.rule.above, &of.phase, &of.series);
        self.watched = series.into_iter().map(|of| (keeper(&of), of)).map(|(keeper, of)| (of, keeper)).collect();
        self.count();
    }

    fn end(&mut self) {
        let ended = self.watched.drain(..).map(|(_, keeper)| keeper.counts);
        self.ended.extend(ended);
        self.count();
    }

    fn count(&self) {
        let all = self.ended.iter().chain(self.watched.iter().map(|(_, keeper)| &keeper.counts));
        if let Ok(mut shelf) = self.shelf.lock() {
            shelf.count(all.cloned().collect());
        }
    }

    /// Looks at what came since.
    fn look(&mut self) {
        // Names of threads, before they occur in a window.
        self.recorder.drain(&mut |_, _| {});
        for place in 0..self.watched.len() {
            let Some((of, keeper)) = self.watched.get_mut(place) else { return };
            let Some(peeker) = &mut of.peeker else { continue };
            let mut found = Vec::new();
            let unseen = peeker.peek(|sample| keeper.sift(sample, &mut found));
            keeper.counts.unseen += unseen;
            self.capture(place, found);
        }
        self.steal.look_ended();
        self.count();
    }

    /// Late samples of a series that cannot be looked at one by one.
    fn sift(&mut self, place: usize, samples: Vec<Sample>) {
        let Some((_, keeper)) = self.watched.get_mut(place) else { return };
        let mut found = Vec::new();
        samples.iter().for_each(|sample| keeper.sift(sample, &mut found));
        self.recorder.drain(&mut |_, _| {});
        self.capture(place, found);
        self.count();
    }

    /// Copies the windows of these samples, the worst first: it is the last that are overwritten meanwhile, if any.
    fn capture(&mut self, place: usize, samples: Vec<Sample>) {
        let any = !samples.is_empty();
        if samples.iter().any(|sample| sample.latency() >= capture::LONG) {
            std::thread::sleep(AFTERWARDS);
            self.steal.read();
        }
        for sample in samples {
            let Some((of, keeper)) = self.watched.get_mut(place) else { return };
            let Ok(replaced) = keeper.place(sample.latency()) else { continue };
            let Some(window) = capture::window(&mut self.recorder, &self.cpus, of, &sample, &self.rule, &self.steal)
            else {
                keeper.counts.missed_overwritten += 1;
                continue;
            };
            let bytes: u64 = window.records.iter().map(|records| records.len() as u64).sum();
            let free = self.rule.room.get().saturating_sub(self.bytes) + replaced.map_or(0, |window| window.bytes);
            if bytes > free {
                keeper.counts.missed_room += 1;
                continue;
            }
            let (number, partial) = (self.next, window.head.is_partial());
            self.next += 1;
            self.bytes = (self.bytes + bytes).saturating_sub(replaced.map_or(0, |window| window.bytes));
            keeper.keep(Kept { latency: window.head.latency(), number, bytes, partial });
            let Ok(mut shelf) = self.shelf.lock() else { return };
            for tid in &window.tids {
                if let Some(name) = self.recorder.task(*tid) {
                    shelf.tasks.insert(*tid, name.clone());
                }
            }
            shelf.put(number, window);
            replaced.into_iter().for_each(|window| shelf.remove(window.number));
        }
        if any && let Ok(mut shelf) = self.shelf.lock() {
            let (stacks, functions) = self.recorder.addresses();
            shelf.stacks = stacks;
            shelf.functions.clone_from(functions);
        }
    }
}
