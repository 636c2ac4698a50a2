//! Decodes the records of entries.

use crate::wire::layout::{self as wire, Entry as Wire, Header};
use punctual_core::cycle::TaskComm;
use punctual_core::entry::{Entry, Originator, Served, Vector, Via};
use punctual_core::{MonotonicNs, Nanos};

/// Reads the entries in a buffer. Skips everything else, and truncated records.
pub(super) fn read(mut bytes: &[u8], take: &mut dyn FnMut(Entry)) {
    while let Some((head, rest)) = bytes.split_first_chunk::<{ Header::SIZE }>() {
        let header = Header::read(head);
        let Some((payload, rest)) = rest.split_at_checked(usize::from(header.words) * 8) else {
            return;
        };
        bytes = rest;
        let whole = payload.first_chunk().filter(|chunk| chunk.len() == payload.len());
        if u64::from(header.kind) == wire::ENTRY
            && let Some(entry) = whole.and_then(|chunk| decode_entry(&header, &Wire::read(chunk)))
        {
            take(entry);
        }
    }
}

fn decode_entry(header: &Header, wire: &Wire) -> Option<Entry> {
    let at = |ns: u64| MonotonicNs(i64::try_from(ns).unwrap_or(i64::MAX));
    let flag = |bit: u64| u64::from(wire.flags) & bit != 0;
    let begin = at(wire.begin);
    let end = at(header.ns).max(begin);
    let originator = Originator {
        at: at(wire.at),
        tid: wire.by,
        name: TaskComm(wire.by_comm),
        cpu: wire.by_cpu,
        stack: u32::try_from(wire.stack).ok(),
    };
    Some(Entry {
        cpu: header.cpu,
        begin,
        end,
        own: Nanos(i64::try_from(wire.own).unwrap_or(i64::MAX)).min(end - begin),
        served: decode_served(wire)?,
        task: if u64::from(wire.kind) == wire::ENTRY_TASK { wire.what as u32 } else { 0 },
        observer: false,
        function: wire.func,
        over: wire.over,
        nested: flag(wire::ENTRY_NESTED),
        away: flag(wire::ENTRY_AWAY),
        further: flag(wire::ENTRY_FURTHER),
        tick_dependency: wire.detail,
        originator: (wire.at > 0).then_some(originator),
        via: decode_via(wire),
    })
}

fn decode_served(wire: &Wire) -> Option<Served> {
    Some(match u64::from(wire.kind) {
        wire::ENTRY_IRQ => Served::Irq(wire.what as u32),
        wire::ENTRY_VECTOR => Served::Vector(*Vector::ALL.get(wire.what as usize)?),
        wire::ENTRY_SOFTIRQ => Served::Softirq(wire.what as u32),
        wire::ENTRY_TASK => Served::Task {
            name: TaskComm(wire.name),
            kernel: u64::from(wire.flags) & wire::ENTRY_KERNEL != 0,
        },
        wire::ENTRY_CALL => Served::Call,
        wire::ENTRY_NMI => Served::Nmi(wire.what),
        _ => return None,
    })
}

fn decode_via(wire: &Wire) -> Option<Via> {
    match u64::from(wire.via) {
        wire::ENTRY_IRQ => Some(Via::Irq(wire.via_what as u32)),
        wire::ENTRY_VECTOR => Some(Via::Vector(wire.via_what)),
        wire::ENTRY_SOFTIRQ => Some(Via::Softirq(wire.via_what as u32)),
        wire::ENTRY_CALL => Some(Via::Call),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(wire: &Wire) -> Vec<u8> {
        let mut payload = [0; Wire::SIZE];
        wire.write(&mut payload);
        let mut head = [0; Header::SIZE];
        let words = (Wire::SIZE / 8) as u8;
        Header { ns: 2_000, tid: 7, kind: wire::ENTRY as u8, words, cpu: 3 }.write(&mut head);
        [head.as_slice(), payload.as_slice()].concat()
    }

    fn empty() -> Wire {
        Wire { begin: 1_000, own: 5_000, kind: wire::ENTRY_VECTOR as u8, ..Wire::read(&[0; _]) }
    }

    fn all(bytes: &[u8]) -> Vec<Entry> {
        let mut all = Vec::new();
        read(bytes, &mut |entry| all.push(entry));
        all
    }

    #[test]
    fn the_own_time_of_an_entry_is_at_most_its_length() {
        let [entry] = all(&bytes(&empty()))[..] else { panic!() };
        assert_eq!((entry.cpu, entry.own), (3, Nanos(1_000)));
        assert_eq!(entry.served, Served::Vector(Vector::LocalTimer));
        assert_eq!(entry.originator, None, "nobody is known");
    }

    #[test]
    fn truncated_and_unknown_entry_records_are_skipped() {
        let whole = bytes(&empty());
        assert!((0..whole.len()).all(|end| all(&whole[..end]).is_empty()));
        let unknown = bytes(&Wire { kind: 99, ..empty() });
        let beyond = bytes(&Wire { what: 4_711, ..empty() });
        assert_eq!(all(&[unknown, beyond, whole].concat()).len(), 1);
    }
}
