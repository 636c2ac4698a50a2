//! PERF_RECORD_SWITCH of a file without tracepoints: how long each thread was off the CPU.

use super::attr::RecordLayout;
use crate::bytes::ByteOrder;
use crate::decoder::{Decoder, Head};
use punctual_core::MonotonicNs;
use punctual_core::event::{MomentSource, Tid, TraceMoment};
use std::collections::HashMap;

/// Records that are kept to bring those of several CPUs into order.
const MOST_SWITCHES: usize = 1 << 20;
/// Bits of a record's `misc` (include/uapi/linux/perf_event.h).
const OUT: u64 = 1 << 13;
const PREEMPTED: u64 = 1 << 14;

/// A thread got a CPU, or lost it.
#[derive(Debug)]
struct Switch {
    at: i64,
    tid: u32,
    cpu: Option<u16>,
    out: bool,
    preempted: bool,
}

/// The switches of a file.
#[derive(Default, Debug)]
pub(super) struct Switches {
    all: Vec<Switch>,
}

impl Switches {
    pub(super) fn add_switch(
        &mut self,
        record: &[u8],
        attr: &RecordLayout,
        order: ByteOrder,
        decoder: &mut Decoder,
    ) {
        let place = attr.read_place(record, order);
        let (Some(at), Some(tid), Some(misc)) =
            (place.at, place.tid, order.unsigned_at(record, 4, 2))
        else {
            decoder.unreadable += 1;
            return;
        };
        let Some(tracepoint) = decoder.intern_tracepoint(None, "PERF_RECORD_SWITCH") else {
            return;
        };
        let head =
            Head { at, cpu: place.cpu.unwrap_or(0), tid: Some(Tid(tid)), context: None, site: 0 };
        decoder.count_record(tracepoint, head);
        if tid != 0 && self.all.len() < MOST_SWITCHES {
            let (out, preempted) = (misc & OUT != 0, misc & PREEMPTED != 0);
            self.all.push(Switch { at, tid, cpu: place.cpu, out, preempted });
        } else if tid != 0 {
            decoder.lost_outside(place.cpu.unwrap_or(0), Some(1));
        }
    }

    /// From each loss of a CPU to the next switch to the thread.
    pub(super) fn add_moments(&mut self, decoder: &mut Decoder) {
        self.all.sort_by_key(|switch| (switch.at, !switch.out));
        let mut off: HashMap<u32, &Switch> = HashMap::new();
        for switch in &self.all {
            let before = off.remove(&switch.tid);
            if switch.out {
                off.insert(switch.tid, switch);
            } else if let Some(out) = before {
                let (from, to) = (MonotonicNs(out.at), MonotonicNs(switch.at));
                let source = MomentSource::OffCpu;
                let until = TraceMoment::from_end(source, to, to - from, Tid(switch.tid));
                let words = match out.preempted {
                    true => "it was preempted, and ready; the task that ran is not recorded",
                    false => "off the CPU: whether it waited or was ready is not recorded",
                };
                let words = words.to_owned();
                decoder.marks.add(TraceMoment { cpu: switch.cpu, words, ..until });
            }
        }
        self.all = Vec::new();
    }
}
