use super::layout::Header;
use super::{WireError, decode, encode};
use proptest::prelude::*;
use punctual_core::MonotonicNs;
use punctual_core::event::{
    Event, EventKind, FunctionId, Futex, PointId, PointKind, RecordBytes, StackId, TaskState, Tid,
    TracepointId,
};

#[rustfmt::skip]
fn whats() -> Vec<EventKind> {
    let (task, timer, at) = (Tid(7), 0xffff_8880_0000_1000, MonotonicNs(99));
    vec![
        EventKind::Switch { prev_prio: -1, prev_state: TaskState::Blocked, next: task, next_prio: 139 },
        EventKind::Switch { prev_prio: 0, prev_state: TaskState::Preempted, next: task, next_prio: 19 },
        EventKind::Waking { task, prio: 120, target: 3 },
        EventKind::Wakeup { task, prio: 120, target: 3, new: false },
        EventKind::Wakeup { task, prio: 120, target: 3, new: true },
        EventKind::Migrate { task, from: 1, to: 4095 },
        EventKind::Fork { child: task }, EventKind::Exec, EventKind::Exit,
        EventKind::PiSetPrio { task, old: 120, new: 9 },
        EventKind::IrqEntry { irq: 24 }, EventKind::IrqExit { irq: 24, handled: true },
        EventKind::VectorEntry { vector: 0xec }, EventKind::VectorExit { vector: 0xec },
        EventKind::SoftirqRaise { vector: 1 }, EventKind::SoftirqEntry { vector: 1 }, EventKind::SoftirqExit { vector: 1 },
        EventKind::IpiSend { target: 2 },
        EventKind::HrtimerStart { timer, expires: at }, EventKind::HrtimerCancel { timer },
        EventKind::HrtimerExpireEntry { timer, now: Some(at), expires: Some(at) },
        EventKind::HrtimerExpireEntry { timer, now: None, expires: None },
        EventKind::HrtimerExpireExit { timer },
        EventKind::TimerStart { timer, expires: 5 }, EventKind::TimerExpireEntry { timer, function: 6 }, EventKind::TimerExpireExit { timer },
        EventKind::SyscallEnter { number: 39, args: [1, u64::MAX] }, EventKind::SyscallExit { number: 39, result: -4 },
        EventKind::FutexEnter { op: Futex::LockPi, address: 0x7fff_0000 }, EventKind::FutexExit { op: Futex::Wait, result: -11 },
        EventKind::ContentionBegin { lock: 8, flags: 2 }, EventKind::ContentionEnd { lock: 8, result: -4 },
        EventKind::PageFault { address: 0x1000, ip: 0x40_0000, user: true },
        EventKind::PageAlloc { order: 9, page: 77 }, EventKind::ReclaimBegin { order: 3 }, EventKind::ReclaimEnd { reclaimed: 32 },
        EventKind::Kmalloc { requested: 20, allocated: 32 }, EventKind::CacheAlloc { requested: 192, allocated: 192 },
        EventKind::BlockIssue { device: 0xfd00000, sector: 2048, bytes: 4096, write: true },
        EventKind::BlockComplete { device: 0xfd00000, sector: 2048, bytes: 4096, error: -5 },
        EventKind::JournalStart { device: 8, transaction: 9 }, EventKind::JournalEnd { device: 8, transaction: 9 },
        EventKind::MmcStart { opcode: 25, blocks: 8 }, EventKind::MmcDone { opcode: 25, error: -110 },
        EventKind::WorkStart { function: timer }, EventKind::WorkEnd { function: timer }, EventKind::NapiPoll { work: 3, budget: 64 },
        EventKind::IdleEnter { state: 1 }, EventKind::IdleExit, EventKind::Frequency { khz: 1_500_000 },
        EventKind::Tracepoint { tracepoint: TracepointId(3), record: RecordBytes::new(&[7; 44]) },
        EventKind::Tracepoint { tracepoint: TracepointId(0), record: RecordBytes::new(&[]) },
        EventKind::Tracepoint { tracepoint: TracepointId(0), record: RecordBytes::new(&[1; 99]) },
        EventKind::Interrupted { call: Some(56) },
        EventKind::Interrupted { call: None },
        EventKind::Unthrottled { task },
        EventKind::Stack { stack: StackId(12) },
        EventKind::Point { point: PointId(4), kind: PointKind::Begin, count: 2, values: [-1, i64::MAX] },
        EventKind::Call { function: FunctionId(1), began: at, depth: 3, left: true, argument: Some(0) },
        EventKind::Call { function: FunctionId(1), began: at, depth: 3, left: false, argument: None },
        EventKind::Sample { series: 2, due: at }, EventKind::Lost { count: 1 << 40, since: at },
    ]
}

#[test]
fn every_event_is_read_back_as_it_was_written() {
    let events: Vec<Event> = whats()
        .into_iter()
        .map(|what| Event { at: MonotonicNs(1 << 50), cpu: 3, tid: Tid(1234), what })
        .collect();
    let mut bytes = Vec::new();
    for event in &events {
        encode(event, &mut bytes);
        assert_eq!(bytes.len() % 8, 0);
    }
    let read: Result<Vec<Event>, WireError> = decode(&bytes).collect();
    assert_eq!(read, Ok(events));
}

#[test]
fn what_follows_a_strange_record_is_read() {
    let event = Event { at: MonotonicNs(5), cpu: 0, tid: Tid(1), what: EventKind::Exec };
    let mut bytes = Vec::new();
    let mut strange = [0; Header::SIZE];
    Header { ns: 5, tid: 1, kind: 250, words: 2, cpu: 0 }.write(&mut strange);
    bytes.extend_from_slice(&strange);
    bytes.extend_from_slice(&[0xff; 16]);
    encode(&event, &mut bytes);
    bytes.extend_from_slice(&strange[..9]);
    let read: Vec<_> = decode(&bytes).collect();
    assert_eq!(
        read,
        [
            Err(WireError::UnknownKind { at: 0, kind: 250 }),
            Ok(event),
            Err(WireError::CutOff { at: 48 })
        ]
    );
}

proptest! {
    #[test]
    fn no_bytes_panic_and_all_are_accounted_for(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let mut events = decode(&bytes);
        let count = events.by_ref().count();
        prop_assert!(count <= bytes.len() / Header::SIZE + 1);
        prop_assert_eq!(events.position(), bytes.len());
    }
}
