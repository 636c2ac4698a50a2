//! One sample, as divided by the kernel.

use crate::wire::layout::{self as wire, Header};
use punctual_core::{CauseKind, MonotonicNs, Nanos, Split};

const PIECES: usize = wire::ACCOUNT_PIECES as usize;
/// The bits of a piece that are its length in ns.
const SPAN: u64 = (1 << 56) - 1;

/// The breakdown of the time from a timer's expiry on, in order of time: at least until the thread
/// slept again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AccountRecord {
    pub tid: u32,
    /// The CPU whose timer woke it.
    pub cpu: u16,
    /// Whether it was moved to another CPU since.
    pub moved: bool,
    /// The due time of its timer.
    pub begin: MonotonicNs,
    pub(super) pieces: [u64; PIECES],
}

impl AccountRecord {
    /// The pieces with their part and length.
    pub fn pieces(&self) -> impl Iterator<Item = (CauseKind, Nanos)> + '_ {
        self.pieces
            .iter()
            .filter(|piece| **piece != 0)
            .map(|piece| (cause_of_part(piece >> 56), Nanos((piece & SPAN) as i64)))
    }

    /// The latency of the sample due at `due` and arrived at `woke`, divided into main parts that
    /// add up to it. If the sample's own start precedes the timer's (it was armed late), the thread
    /// itself took that time; time outside of the record is unknown.
    pub fn split_latency(&self, due: MonotonicNs, woke: MonotonicNs) -> Split {
        let mut split = Split::default();
        let mut at = due;
        let mut until = |part, end: MonotonicNs| {
            let end = end.min(woke);
            if end > at {
                split.add(part, end - at);
                at = end;
            }
        };
        until(CauseKind::OwnExecution, self.begin);
        let mut end = self.begin;
        for (part, span) in self.pieces() {
            end = end + span;
            until(part, end);
        }
        until(CauseKind::Unknown, woke);
        split
    }

    /// The time before the decision to wake the thread, if the record begins with such: the timer's
    /// interrupt was late.
    pub fn overdue_time(&self) -> Nanos {
        let late = |(part, _): &(CauseKind, Nanos)| {
            matches!(part, CauseKind::TimerIrqDelay | CauseKind::IdleExit)
        };
        self.pieces().filter(late).fold(Nanos::ZERO, |sum, (_, span)| sum + span)
    }
}

pub(crate) fn cause_of_part(code: u64) -> CauseKind {
    match code {
        wire::PART_TIMER_LATE => CauseKind::TimerIrqDelay,
        wire::PART_HARDIRQ => CauseKind::Irq,
        wire::PART_SOFTIRQ => CauseKind::Softirq,
        wire::PART_IDLE_EXIT => CauseKind::IdleExit,
        wire::PART_NOT_SWITCHED => CauseKind::NonPreemptible,
        wire::PART_PREEMPTED => CauseKind::Preempted,
        wire::PART_THROTTLED => CauseKind::Throttled,
        wire::PART_RUNQUEUE => CauseKind::Runqueue,
        wire::PART_BLOCKED => CauseKind::Waiting,
        wire::PART_LOCK => CauseKind::Lock,
        wire::PART_IO => CauseKind::Io,
        wire::PART_PAGE_FAULT => CauseKind::PageFault,
        wire::PART_FAULT_RAN => CauseKind::PageFault,
        wire::PART_STEAL => CauseKind::Steal,
        wire::PART_SLACK => CauseKind::TimerSlack,
        wire::PART_STOPPED => CauseKind::Stopped,
        wire::PART_TIMEOUT => CauseKind::Timeout,
        wire::PART_SWITCH => CauseKind::Switch,
        wire::PART_RECLAIM | wire::PART_RECLAIM_RAN => CauseKind::Reclaim,
        wire::PART_OVERRUN => CauseKind::Overrun,
        wire::PART_KERNEL => CauseKind::SystemCall,
        wire::PART_ITSELF => CauseKind::OwnExecution,
        _ => CauseKind::Unknown,
    }
}

/// The records in a buffer. Skips everything else, and truncated records.
pub(super) fn read(mut bytes: &[u8], take: &mut dyn FnMut(AccountRecord)) {
    while let Some((head, rest)) = bytes.split_first_chunk::<{ Header::SIZE }>() {
        let header = Header::read(head);
        let Some((payload, rest)) = rest.split_at_checked(usize::from(header.words) * 8) else {
            return;
        };
        bytes = rest;
        if u64::from(header.kind) != wire::ACCOUNT || usize::from(header.words) != PIECES + 1 {
            continue;
        }
        let word =
            |k: usize| payload[k * 8..].first_chunk().map_or(0, |word| u64::from_le_bytes(*word));
        let pieces = std::array::from_fn(word);
        let (begin, moved) = (MonotonicNs(header.ns as i64), word(PIECES) != 0);
        take(AccountRecord { tid: header.tid, cpu: header.cpu, moved, begin, pieces });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use punctual_core::MAIN_PARTS;

    fn record(begin: i64, pieces: &[(u64, u64)]) -> AccountRecord {
        let mut words = [0; PIECES];
        words.iter_mut().zip(pieces).for_each(|(word, (part, ns))| *word = part << 56 | ns);
        AccountRecord { tid: 7, cpu: 0, moved: false, begin: MonotonicNs(begin), pieces: words }
    }

    #[test]
    fn parts_after_the_clock_reading_are_not_counted() {
        let record = record(
            100,
            &[
                (wire::PART_TIMER_LATE, 10),
                (wire::PART_HARDIRQ, 5),
                (wire::PART_ITSELF, 20),
                (wire::PART_SOFTIRQ, 500),
            ],
        );
        let split = record.split_latency(MonotonicNs(90), MonotonicNs(125));
        let pieces: Vec<_> = MAIN_PARTS
            .iter()
            .map(|part| (part.id(), split.time_of(*part).ns()))
            .filter(|p| p.1 > 0)
            .collect();
        assert_eq!(pieces, [("timer-irq-delay", 10), ("irq", 5), ("self", 20)]);
        assert_eq!((split.total_time(), record.overdue_time()), (Nanos(35), Nanos(10)));
        assert_eq!(
            record.split_latency(MonotonicNs(100), MonotonicNs(1_000)).time_of(CauseKind::Unknown),
            Nanos(365)
        );
    }

    proptest! {
        #[test]
        fn parts_of_an_account_record_add_up(
            begin in -1000i64..1000,
            due in -1000i64..1000,
            late in -100i64..5000,
            pieces in proptest::collection::vec((0u64..20, 0u64..1000), 0..16),
        ) {
            let split = record(begin, &pieces).split_latency(MonotonicNs(due),
                MonotonicNs(due + late));
            prop_assert_eq!(split.total_time(), Nanos(late.max(0)));
        }

        #[test]
        fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
            read(&bytes, &mut |_| ());
        }
    }
}
