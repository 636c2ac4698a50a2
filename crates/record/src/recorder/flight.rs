//! The flight recorder: windows out of what the kernel keeps.

use super::Recorder;
use crate::bpf::Buffers;
use crate::request::Mode;
use crate::wire::{self, WireError};
use punctual_core::MonotonicNs;
use std::sync::Arc;

/// What one CPU did in a span of time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Window {
    pub cpu: u16,
    /// Records from before the beginning to the end, as many as were kept: see
    /// [`crate::wire::decode`].
    pub records: Vec<u8>,
    /// The first instant from which nothing is missing: later than the window's beginning where
    /// the buffer was too small for it.
    pub whole_from: MonotonicNs,
}

/// How far a flight recorder is: what is to be copied must be before it is overwritten. A look
/// costs two or three loads a CPU.
pub struct BufferProgress {
    buffers: Arc<Buffers>,
    cpus: u32,
}

impl BufferProgress {
    /// How often the buffer of each CPU was written from end to end so far.
    pub fn laps(&self) -> impl Iterator<Item = f64> + '_ {
        (0..self.cpus).map(|slot| self.buffers.laps(slot))
    }
}

impl Recorder {
    /// What is called how of what occurs in windows so far: kernel stacks by their number, and the
    /// addresses in them and elsewhere that [`crate::kernel_symbols`] finds names for.
    pub fn addresses(&mut self) -> (Vec<Vec<u64>>, &std::collections::BTreeSet<u64>) {
        let stacks = self.seen.stacks(|stack| self.running.stack(stack));
        (stacks, &self.seen.functions)
    }

    /// The name of a thread, as far as it is known by now.
    pub fn task(&mut self, tid: punctual_core::Tid) -> Option<&punctual_core::event::TaskName> {
        self.names.task(tid)
    }

    /// In [`Mode::Flight`]: how fast the buffers are written, which other threads may look at too.
    pub fn buffer_progress(&self) -> Option<BufferProgress> {
        let buffers = self.running.buffers().filter(|_| self.request.mode == Mode::Flight)?;
        Some(BufferProgress { buffers: Arc::clone(buffers), cpus: self.request.cpus.len() as u32 })
    }

    /// In [`Mode::Flight`]: what happened on the CPU from `from` to `to`, copied while recording
    /// goes on. Records a little before `from` are given too, so that what ran then is known.
    ///
    /// `None` where the CPU is not recorded, the mode is another, or a writer was interrupted for
    /// so long that no instant without one was found: ask again then. Nothing after the call's
    /// own beginning can be missing at the end if `to` lies before it.
    pub fn window(&mut self, cpu: u16, from: MonotonicNs, to: MonotonicNs) -> Option<Window> {
        if self.request.mode != Mode::Flight {
            return None;
        }
        let slot = self.request.cpus.iter().position(|other| other == usize::from(cpu))?;
        let mut records = Vec::new();
        self.running.newest(slot as u32, from, &mut records)?;
        let first = wire::decode(&records).flatten().next().map(|event| event.at);
        // Nothing was ever overwritten in a buffer whose first record is its very first.
        let whole_from = first
            .map_or(self.began, |first| if first <= from { from } else { first.max(self.began) });
        let end = end_of(&records, to);
        records.truncate(end);
        self.seen.look(&records);
        Some(Window { cpu, records, whole_from })
    }
}

/// Where the first record begins that is so late that all after it are too: those of one CPU are
/// out of order by an interrupt's length at most.
fn end_of(records: &[u8], to: MonotonicNs) -> usize {
    const DISORDER: i64 = 10_000_000;
    let mut events = wire::decode(records);
    loop {
        let at = events.position();
        match events.next() {
            Some(Ok(event)) if event.at.0 > to.0.saturating_add(DISORDER) => return at,
            Some(Ok(_)) | Some(Err(WireError::UnknownKind { .. })) => {}
            Some(Err(_)) | None => return at,
        }
    }
}
