//! Decodes the records of cycles.

use super::copies::Copies;
use super::ordinary;
use super::stacks::UserStacks;
use super::wait_places::WaitPlaces;
use crate::account::cause_of_part;
use crate::unwind::Unwinder;
use crate::wire::layout::{
    self as wire, Cycle as Wire, Gap as WireGap, Header, Moment as WireMoment, Ordinary,
    Times as WireTimes, Wait,
};
use punctual_core::cycle::{
    AwaitedWaker, CallSet, Cycle, CycleCulprit, DescriptorSet, Gap, HolderDeed, LockEvidence,
    LockHolder, Moment, MomentHolder, MomentKind, MomentWaker, OUTSIDE, TaskComm, ThreadTimes,
    WaitingCall, WokenBy,
};
use punctual_core::{CauseKind, MonotonicNs, Nanos, Split};

const _: () = assert!(wire::OUTSIDE == OUTSIDE as u64);

/// The maximum number of instants and gaps kept until they are taken.
const MOMENTS: usize = 1 << 16;

/// Results besides cycles: instants within them, gaps of polling threads, and the times of ended
/// threads.
#[derive(Default)]
pub(super) struct Moments {
    pub(super) kept: Vec<Moment>,
    pub(super) stacks: UserStacks,
    pub(super) unwinder: Unwinder,
    /// Copied stacks, where they can be unwound.
    pub(super) copies: Option<Copies>,
    pub(super) waits: WaitPlaces,
    pub(super) gaps: Vec<Gap>,
    pub(super) times: Vec<(u32, ThreadTimes)>,
    /// Instants before which records were lost.
    pub(super) breaks: Vec<MonotonicNs>,
}

/// Reads the cycles in a buffer, and the results besides them. Skips everything else, and truncated
/// records.
pub(super) fn read(mut bytes: &[u8], take: &mut dyn FnMut(Cycle), moments: &mut Moments) {
    let mut is_after_loss = false;
    while let Some((head, rest)) = bytes.split_first_chunk::<{ Header::SIZE }>() {
        let header = Header::read(head);
        let Some((payload, rest)) = rest.split_at_checked(usize::from(header.words) * 8) else {
            return;
        };
        bytes = rest;
        let kind = u64::from(header.kind);
        let mut written_at = MonotonicNs(i64::try_from(header.ns).unwrap_or(i64::MAX));
        if kind == wire::CYCLE
            && let Some(cycle) = exact_payload::<{ Wire::SIZE }>(payload)
        {
            let cycle = decode_cycle(&header, &Wire::read(cycle));
            written_at = cycle.again;
            take(cycle);
        }
        if kind == wire::ORDINARY
            && let Some(cycle) = exact_payload::<{ Ordinary::SIZE }>(payload)
        {
            let cycle = decode_cycle(&header, &ordinary::divide_ordinary(&Ordinary::read(cycle)));
            written_at = cycle.again;
            take(cycle);
        }
        if kind == wire::WAIT
            && let Some(wait) = exact_payload::<{ Wait::SIZE }>(payload)
        {
            moments.waits.note_wait(header.tid, &Wait::read(wait), &mut moments.unwinder);
        }
        // The lost records were made before the next one that found room.
        if is_after_loss && moments.breaks.len() < MOMENTS {
            moments.breaks.push(written_at);
        }
        is_after_loss = kind == wire::LOST;
        if kind == wire::GAP
            && let Some(gap) = exact_payload::<{ WireGap::SIZE }>(payload)
            && moments.gaps.len() < MOMENTS
        {
            moments.gaps.push(decode_gap(&header, &WireGap::read(gap)));
        }
        if kind == wire::TIMES
            && let Some(times) = exact_payload::<{ WireTimes::SIZE }>(payload)
            && moments.times.len() < MOMENTS
        {
            moments.times.push((header.tid, thread_times(&WireTimes::read(times), header.ns)));
        }
        if kind == wire::MOMENT
            && let Some(moment) = exact_payload::<{ WireMoment::SIZE }>(payload)
        {
            let moment = WireMoment::read(moment);
            moments.stacks.note_stack(moment.stack);
            if moments.kept.len() < MOMENTS {
                let mut of_it = decode_moment(&header, &moment);
                if let (Some(of_it), Some(copies)) = (&mut of_it, &mut moments.copies) {
                    let mut take =
                        |number, tid, at| copies.take_copy(number, tid, at, &mut moments.unwinder);
                    let copied = take(moment.copy, header.tid, moment.begin);
                    of_it.stack = copied.or(of_it.stack);
                    if let Some(waker) = &mut of_it.waker {
                        waker.stack = take(moment.waker_copy, waker.tid, moment.woken);
                    }
                    if let Some(holder) = &mut of_it.holder {
                        let (copy, seen) = (moment.holder_copy, moment.holder_seen);
                        holder.stack = take(copy, holder.tid, seen);
                    }
                }
                if let Some(MomentKind::Exec | MomentKind::Exit { .. }) = of_it.map(|of| of.what) {
                    let at = MonotonicNs(i64::try_from(header.ns).unwrap_or(i64::MAX));
                    moments.waits.forget_thread(header.tid, at);
                }
                if of_it.is_some_and(|of| of.what == MomentKind::Exec) {
                    moments.unwinder.forget_process(header.tid);
                }
                moments.kept.extend(of_it);
            }
        }
    }
}

fn exact_payload<const SIZE: usize>(payload: &[u8]) -> Option<&[u8; SIZE]> {
    payload.first_chunk().filter(|chunk| chunk.len() == payload.len())
}

fn decode_moment(header: &Header, wire: &WireMoment) -> Option<Moment> {
    let at = |ns: u64| MonotonicNs(i64::try_from(ns).unwrap_or(i64::MAX));
    let begin = at(wire.begin);
    let end = at(header.ns).max(begin);
    let slept = Nanos(i64::try_from(wire.slept).unwrap_or(i64::MAX));
    let what = match u64::from(wire.kind) {
        wire::MOMENT_PREEMPTED => {
            MomentKind::Preempted { by: wire.next, name: TaskComm(wire.next_comm) }
        }
        wire::MOMENT_ASLEEP => MomentKind::Asleep {
            part: cause_of_part(wire.within.into()),
            time: slept.min(end - begin),
        },
        wire::MOMENT_RAN => MomentKind::Ran,
        wire::MOMENT_FAULT => MomentKind::Fault,
        wire::MOMENT_CALL => MomentKind::Called,
        wire::MOMENT_EXEC => MomentKind::Exec,
        wire::MOMENT_EXIT => {
            MomentKind::Exit { name: TaskComm(wire.next_comm), status: Some(wire.next) }
        }
        _ => return None,
    };
    let (call, stack) = (wire.call.checked_sub(1), u32::try_from(wire.stack).ok());
    let name = TaskComm(wire.waker_comm);
    let waker = (wire.waker > 0).then_some(MomentWaker { tid: wire.waker, name, stack: None });
    let holder = (wire.holder > 0).then(|| decode_holder(wire, end - begin));
    Some(Moment { tid: header.tid, begin, end, what, call, stack, waker, holder })
}

fn decode_holder(wire: &WireMoment, slept: Nanos) -> MomentHolder {
    let did = match u64::from(wire.holder_did) {
        wire::HOLDING_CALLED => Some(HolderDeed::Called),
        wire::HOLDING_PREEMPTED => Some(HolderDeed::Preempted),
        wire::HOLDING_ASLEEP => Some(HolderDeed::Asleep),
        _ => None,
    };
    let off_cpu = Nanos(i64::try_from(wire.holder_off).unwrap_or(i64::MAX)).min(slept);
    let call = wire.holder_call.checked_sub(1);
    MomentHolder { tid: wire.holder, did, call, off_cpu, stack: None }
}

fn decode_gap(header: &Header, wire: &WireGap) -> Gap {
    let nanos = |ns: u64| i64::try_from(ns).unwrap_or(i64::MAX);
    let begin = MonotonicNs(nanos(wire.begin));
    let end = MonotonicNs(nanos(header.ns)).max(begin);
    let culprit = CycleCulprit {
        tid: wire.by,
        name: TaskComm(wire.by_comm),
        time: Nanos(nanos(wire.by_ns)),
        behind: Nanos::ZERO,
    };
    Gap {
        tid: header.tid,
        cpu: header.cpu,
        begin,
        end,
        split: split_span(&wire.parts, end - begin),
        culprit: (wire.by_ns > 0).then_some(culprit),
    }
}

/// Until `now`: the current state of the thread continues.
pub(super) fn thread_times(wire: &WireTimes, now: u64) -> ThreadTimes {
    let mut state = wire.state.map(|ns| i64::try_from(ns).unwrap_or(i64::MAX));
    if let Some(of) = state.get_mut(wire.now as usize).filter(|_| wire.since > 0) {
        *of = of.saturating_add(i64::try_from(now.saturating_sub(wire.since)).unwrap_or(0));
    }
    let [_, ran, ready, asleep] = state.map(Nanos);
    let stopped = Nanos(i64::try_from(wire.stopped).unwrap_or(i64::MAX)).min(asleep);
    let waited = asleep - stopped;
    let (lost_cycles, lost_gaps) = (wire.lost_cycles.into(), wire.lost_gaps.into());
    ThreadTimes { ran, ready, waited, stopped, lost_cycles, lost_gaps }
}

fn decode_cycle(header: &Header, wire: &Wire) -> Cycle {
    let at = |ns: u64| MonotonicNs(i64::try_from(ns).unwrap_or(i64::MAX));
    let span = |ns: u64| Nanos(i64::try_from(ns).unwrap_or(i64::MAX));
    // In this order, as an instant from another CPU may be some ns earlier.
    let release = at(wire.release);
    let returned = at(wire.returned).max(release);
    let next_wait = at(wire.again).max(returned);
    let culprit = CycleCulprit {
        tid: wire.culprit,
        name: TaskComm(wire.culprit_comm),
        time: span(wire.culprit_ns),
        behind: span(wire.culprit_behind),
    };
    Cycle {
        tid: header.tid,
        cpu: header.cpu,
        release,
        entered: at(wire.entered),
        woken: at(wire.woken),
        returned,
        again: next_wait,
        call: WaitingCall {
            number: wire.call,
            operation: wire.operation,
            argument: wire.argument,
            place: 0,
        },
        by: woken_by(wire.by),
        timer: wire.timer,
        waker: wire.waker,
        waker_name: TaskComm(wire.waker_comm),
        wait_is: cause_of_part(wire.within.into()),
        reclaimed: ran_in(wire, wire::PART_RECLAIM_RAN),
        faulted: ran_in(wire, wire::PART_FAULT_RAN),
        blocks: wire.blocks,
        elsewhere: wire.elsewhere,
        blocked: span(wire.blocked),
        migrations: wire.migrations,
        syscalls: wire.syscalls,
        faults: wire.faults,
        calls: CallSet(wire.calls & !FUTEX_WAIT),
        written: DescriptorSet(wire.written),
        slept_without_pi: wire.calls & FUTEX_WAIT != 0,
        longest_call: (wire.longest_ns > 0).then_some((wire.longest, span(wire.longest_ns))),
        culprit: (wire.culprit_ns > 0).then_some(culprit),
        holder: decode_lock_holder(wire),
        awaited: decode_awaited(wire),
        hidden: wire.hidden,
        likely: (wire.likely_ns > 0).then(|| CycleCulprit {
            tid: wire.likely,
            name: TaskComm::default(),
            time: span(wire.likely_ns),
            behind: Nanos::ZERO,
        }),
        wake: split_span(&wire.wake, returned - release),
        run: split_span(&wire.run, next_wait - returned),
    }
}

const FUTEX_WAIT: u32 = 1 << wire::CYCLE_FUTEX_WAIT;
fn decode_lock_holder(wire: &Wire) -> Option<LockHolder> {
    let in_namespace = u64::from(wire.holder_by) & wire::HOLDER_IN_NAMESPACE != 0;
    let evidence = match u64::from(wire.holder_by) & !wire::HOLDER_IN_NAMESPACE {
        wire::HOLDER_PI => LockEvidence::PiFutex,
        wire::HOLDER_MUTEX => LockEvidence::MutexOwner,
        wire::HOLDER_WAKER => LockEvidence::Waker,
        _ => return None,
    };
    Some(LockHolder {
        tid: wire.holder,
        name: TaskComm(wire.holder_comm),
        evidence,
        in_namespace,
        waits: wire.holder_waits,
        time: Nanos(i64::try_from(wire.holder_ns).unwrap_or(i64::MAX)),
    })
}

fn decode_awaited(wire: &Wire) -> Option<AwaitedWaker> {
    (wire.awaited_ns > 0).then(|| AwaitedWaker {
        by: woken_by(wire.awaited_by as u8),
        tid: wire.awaited,
        name: TaskComm(wire.awaited_comm),
        time: Nanos(i64::try_from(wire.awaited_ns).unwrap_or(i64::MAX)),
    })
}

/// The run time of the thread in a part that also includes others' time.
fn ran_in(wire: &Wire, part: u64) -> Nanos {
    let part = part as usize;
    let time = wire.wake[part].saturating_add(wire.run[part]);
    let whole = wire.again.saturating_sub(wire.release);
    Nanos(i64::try_from(time.min(whole)).unwrap_or(i64::MAX))
}

fn woken_by(code: u8) -> WokenBy {
    match u64::from(code) {
        wire::CYCLE_BY_TIMER => WokenBy::Timer,
        wire::CYCLE_BY_SLEEP => WokenBy::Sleep,
        wire::CYCLE_BY_PERIOD => WokenBy::Period,
        wire::CYCLE_BY_TASK => WokenBy::Task,
        wire::CYCLE_BY_IRQ => WokenBy::Irq,
        wire::CYCLE_BY_SOFTIRQ => WokenBy::Softirq,
        _ => WokenBy::Unseen,
    }
}

/// The parts of a span, which they add up to: the missing rest is unknown, or all of it if they
/// exceed the span (two CPUs observed the thread at once).
fn split_span(parts: &[u64], whole: Nanos) -> Split {
    let mut split = Split::default();
    let sum = parts.iter().fold(0, |sum: u64, ns| sum.saturating_add(*ns));
    let known_sum = i64::try_from(sum).ok().filter(|sum| *sum <= whole.ns() + SLACK);
    match known_sum {
        Some(sum) => {
            let mut over = Nanos((sum - whole.ns()).max(0));
            for (code, ns) in parts.iter().enumerate() {
                let ns = Nanos(*ns as i64);
                let surplus_part = over.min(ns);
                over = over - surplus_part;
                split.add(cause_of_part(code as u64), ns - surplus_part);
            }
            split.add(CauseKind::Unknown, whole - Nanos(sum).min(whole));
        }
        None => split.add(CauseKind::Unknown, whole),
    }
    split
}

/// The maximum excess of parts over the span, due to instants from two CPUs.
const SLACK: i64 = 2_000;

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;

    pub(crate) fn cycle_of(tid: u32, entered: u64) -> Cycle {
        let header = Header { ns: 0, tid, kind: wire::CYCLE as u8, words: 0, cpu: 0 };
        decode_cycle(&header, &Wire { entered, ..Wire::read(&[0; Wire::SIZE]) })
    }

    #[test]
    fn a_cycle_record_is_decoded_as_written() {
        let mut wire = Wire::read(&[0; Wire::SIZE]);
        (wire.release, wire.returned, wire.again) = (1_000, 1_500, 3_000);
        wire.wake[wire::PART_HARDIRQ as usize] = 400;
        wire.run[wire::PART_ITSELF as usize] = 1_500;
        (wire.culprit, wire.culprit_ns, wire.by) = (9, 70, wire::CYCLE_BY_TIMER as u8);
        wire.culprit_behind = 30;
        wire.culprit_comm[..3].copy_from_slice(b"hog");
        (wire.holder, wire.holder_ns, wire.holder_waits) = (8, 60, 2);
        wire.holder_by = wire::HOLDER_PI as u32;
        wire.holder_comm[..5].copy_from_slice(b"owner");
        (wire.awaited, wire.awaited_ns) = (6, 50);
        wire.awaited_by = wire::CYCLE_BY_TASK as u32;
        wire.awaited_comm[..4].copy_from_slice(b"peer");
        let mut payload = [0; Wire::SIZE];
        wire.write(&mut payload);
        let (mut bytes, mut head) = (Vec::new(), [0; Header::SIZE]);
        let header = Header {
            ns: 1_000,
            tid: 7,
            kind: wire::CYCLE as u8,
            words: (Wire::SIZE / 8) as u8,
            cpu: 1,
        };
        header.write(&mut head);
        bytes.extend(head);
        bytes.extend(payload);
        let mut all = Vec::new();
        read(&bytes, &mut |cycle| all.push(cycle), &mut Moments::default());
        let [cycle] = all[..] else { panic!("one cycle") };
        assert_eq!((cycle.tid, cycle.cpu, cycle.by), (7, 1, WokenBy::Timer));
        assert_eq!((cycle.wakeup_latency(), cycle.response_time()), (Nanos(500), Nanos(2_000)));
        assert_eq!(cycle.wake.time_of(CauseKind::Unknown), Nanos(100));
        let holder = cycle.holder.expect("it was recorded");
        assert!(!holder.in_namespace);
        wire.holder_by |= wire::HOLDER_IN_NAMESPACE as u32;
        let inside = decode_cycle(&header, &wire).holder.expect("it was recorded");
        assert_eq!((inside.evidence, inside.in_namespace), (LockEvidence::PiFutex, true));
        assert_eq!((holder.tid, holder.evidence, holder.waits), (8, LockEvidence::PiFutex, 2));
        assert_eq!((holder.name.to_string().as_str(), holder.time), ("owner", Nanos(60)));
        let awaited = cycle.awaited.expect("it was recorded");
        assert_eq!((awaited.by, awaited.tid, awaited.time), (WokenBy::Task, 6, Nanos(50)));
        assert_eq!(awaited.name.to_string(), "peer");
        let culprit = cycle.culprit.expect("it was recorded");
        assert_eq!((culprit.name.to_string().as_str(), culprit.behind), ("hog", Nanos(30)));
    }

    #[test]
    fn a_moment_record_is_decoded_as_written() {
        let mut wire = WireMoment::read(&[0; WireMoment::SIZE]);
        (wire.begin, wire.slept, wire.call, wire.stack) = (1_000, 9_000, 36, -14);
        wire.kind = wire::MOMENT_ASLEEP as u8;
        wire.within = wire::PART_LOCK as u8;
        let moment = |wire: &WireMoment| {
            let header = Header { ns: 3_000, tid: 7, kind: 0, words: 0, cpu: 1 };
            decode_moment(&header, wire)
        };
        let asleep = moment(&wire).expect("it has a known kind");
        assert_eq!((asleep.tid, asleep.call, asleep.stack), (7, Some(35), None));
        assert_eq!(asleep.time_off_cpu(), Nanos(2_000), "no longer than until it ran again");
        (wire.kind, wire.next, wire.call) = (wire::MOMENT_PREEMPTED as u8, 9, 0);
        let preempted = moment(&wire).expect("it has a known kind");
        assert_eq!((preempted.call, preempted.time_off_cpu()), (None, Nanos(2_000)));
        assert_eq!(moment(&WireMoment { kind: 99, ..wire }), None);
    }

    /// The first record after a loss says until when records are missing.
    #[test]
    fn a_loss_breaks_the_cycles_before_the_next_record() {
        let mut bytes = Vec::new();
        let mut add = |kind: u64, ns: u64, payload: &[u8]| {
            let (kind, words) = (kind as u8, (payload.len() / 8) as u8);
            let mut head = [0; Header::SIZE];
            Header { ns, tid: 7, kind, words, cpu: 1 }.write(&mut head);
            bytes.extend(head);
            bytes.extend(payload);
        };
        let mut wire = Wire::read(&[0; Wire::SIZE]);
        (wire.release, wire.returned, wire.again) = (1_000, 1_500, 3_000);
        let mut cycle = [0; Wire::SIZE];
        wire.write(&mut cycle);
        add(wire::CYCLE, 1_000, &cycle);
        add(wire::LOST, 1_000, &[0; 16]);
        add(wire::CYCLE, 1_000, &cycle);
        add(wire::LOST, 5_000, &[0; 16]);
        add(wire::TIMES, 5_000, &[0; WireTimes::SIZE]);
        let (mut count, mut moments) = (0, Moments::default());
        read(&bytes, &mut |_| count += 1, &mut moments);
        assert_eq!((count, moments.breaks), (2, vec![MonotonicNs(3_000), MonotonicNs(5_000)]));
    }

    #[test]
    fn lost_cycles_and_gaps_of_a_thread_are_decoded() {
        let mut wire = WireTimes::read(&[0; WireTimes::SIZE]);
        (wire.lost_cycles, wire.lost_gaps) = (3, 4);
        let times = thread_times(&wire, 0);
        assert_eq!((times.lost_cycles, times.lost_gaps), (3, 4));
    }

    proptest! {
        #[test]
        fn parts_of_any_cycle_record_add_up(
            words in proptest::collection::vec(any::<u64>(), Wire::SIZE / 8),
            small in any::<bool>(),
        ) {
            let bytes: Vec<u8> = words
                .iter()
                .flat_map(|word| if small { word % 5_000 } else { *word }.to_le_bytes())
                .collect();
            let header = Header {
                ns: 0,
                tid: 1,
                kind: wire::CYCLE as u8,
                words: (Wire::SIZE / 8) as u8,
                cpu: 0,
            };
            let wire = Wire::read(bytes.first_chunk().expect("as long"));
            let cycle = decode_cycle(&header, &wire);
            prop_assert_eq!(cycle.wake.total_time(), cycle.wakeup_latency());
            prop_assert_eq!(cycle.total_split().total_time(), cycle.response_time());
        }

        #[test]
        fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..2_000)) {
            read(&bytes, &mut |_| (), &mut Moments::default());
        }
    }
}
