//! The duration of contiguous interruptions of a CPU's tasks.

use punctual_core::entry::{Entry, Served};
use punctual_core::{MonotonicNs, Nanos};

/// The maximum distance of entries within one interruption: no event shows the path from the end of
/// an interrupt to its softirq, or to the task that it woke.
pub const JOINED: Nanos = Nanos(1_000);

/// Joins the entries of one CPU.
#[derive(Default)]
pub struct Interruptions {
    pending: Option<(MonotonicNs, MonotonicNs)>,
}

impl Interruptions {
    /// Takes the next entry; returns the previous interruption if that has ended.
    pub fn push(&mut self, entry: &Entry) -> Option<(MonotonicNs, MonotonicNs)> {
        let is_task = matches!(entry.served, Served::Task { .. });
        // Entries while another task has the CPU are within the time of that task.
        let interrupts = match is_task {
            true => entry.away,
            false => !entry.away && !entry.nested && entry.over != 0,
        };
        if entry.further || !interrupts {
            return None;
        }
        match &mut self.pending {
            Some((begin, end)) if entry.begin <= *end + JOINED => {
                *begin = entry.begin.min(*begin);
                *end = entry.end.max(*end);
                None
            }
            pending => pending.replace((entry.begin, entry.end)),
        }
    }

    pub fn finish(&mut self) -> Option<(MonotonicNs, MonotonicNs)> {
        self.pending.take()
    }
}
