//! The flight recorder: windows from the kernel's buffers.

use super::Recorder;
use crate::bpf::Buffers;
use crate::request::RecordMode;
use crate::wire::{self, WireError};
use punctual_core::MonotonicNs;
use std::sync::Arc;

/// The records of one CPU in a span of time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FlightWindow {
    pub cpu: u16,
    /// Records from before the beginning to the end, as far as they were kept: see
    /// [`crate::wire::decode`].
    pub records: Vec<u8>,
    /// The instant from which no record is missing: later than the window's beginning if the buffer
    /// was too small.
    pub whole_from: MonotonicNs,
}

/// The progress of a flight recorder: data must be copied before they are overwritten. A query
/// takes two or three loads per CPU.
pub struct BufferProgress {
    buffers: Arc<Buffers>,
    cpus: u32,
}

impl BufferProgress {
    /// The number of complete passes over the buffer of each CPU so far.
    pub fn completed_laps(&self) -> impl Iterator<Item = f64> + '_ {
        (0..self.cpus).map(|slot| self.buffers.completed_laps(slot))
    }
}

impl Recorder {
    /// The addresses in windows so far: kernel stacks by number, and all addresses to resolve with
    /// [`crate::kernel_symbols`].
    pub fn seen_addresses(&mut self) -> (Vec<Vec<u64>>, &std::collections::BTreeSet<u64>) {
        let stacks = self.seen.resolve_stacks(|stack| self.running.stack_addresses(stack));
        (stacks, &self.seen.functions)
    }

    /// The name of a thread, if known by now.
    pub fn task_name(
        &mut self,
        tid: punctual_core::Tid,
    ) -> Option<&punctual_core::event::TaskName> {
        self.names.refresh_task(tid)
    }

    /// In [`RecordMode::Flight`]: the write progress of the buffers, which other threads may query
    /// too.
    pub fn buffer_progress(&self) -> Option<BufferProgress> {
        let buffers = self.running.buffers().filter(|_| self.request.mode == RecordMode::Flight)?;
        Some(BufferProgress { buffers: Arc::clone(buffers), cpus: self.request.cpus.len() as u32 })
    }

    /// In [`RecordMode::Flight`]: the events on the CPU from `from` to `to`, copied during
    /// recording. Includes records slightly before `from`, so that the running task is known.
    ///
    /// `None` if the CPU is not recorded, in other modes, or if a writer was interrupted for so
    /// long that no instant without one was found: try again then. No event before the call can be
    /// missing at the end if `to` is earlier than the call.
    pub fn copy_window(
        &mut self,
        cpu: u16,
        from: MonotonicNs,
        to: MonotonicNs,
    ) -> Option<FlightWindow> {
        if self.request.mode != RecordMode::Flight {
            return None;
        }
        let slot = self.request.cpus.iter().position(|other| other == usize::from(cpu))?;
        let mut records = Vec::new();
        self.running.copy_newest(slot as u32, from, &mut records)?;
        let first = wire::decode(&records).flatten().next().map(|event| event.at);
        // A buffer that still has its very first record was never overwritten.
        let whole_from = first
            .map_or(self.began, |first| if first <= from { from } else { first.max(self.began) });
        let end = end_of(&records, to);
        records.truncate(end);
        self.seen.note_records(&records);
        Some(FlightWindow { cpu, records, whole_from })
    }
}

/// The first record from which on all are too late: the records of one CPU are out of order by at
/// most the length of an interrupt.
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
