use super::layout::Header;
use super::{WireError, decode, encode};
use proptest::prelude::*;
use punctual_core::MonotonicNs;
use punctual_core::event::{
    Event, FunctionId, Futex, PointId, PointKind, RecordBytes, StackId, TaskState, Tid, TracepointId, What,
};

#[rustfmt::skip]
fn whats() -> Vec<What> {
    let (task, timer, at) = (Tid(7), 0xffff_8880_0000_1000, MonotonicNs(99));
    vec![
        What::Switch { prev_prio: -1, prev_state: TaskState::Blocked, next: task, next_prio: 139 },
        What::Switch { prev_prio: 0, prev_state: TaskState::Preempted, next: task, next_prio: 19 },
        What::Waking { task, prio: 120, target: 3 },
        What::Wakeup { task, prio: 120, target: 3, new: false },
        What::Wakeup { task, prio: 120, target: 3, new: true },
        What::Migrate { task, from: 1, to: 4095 },
        What::Fork { child: task }, What::Exec, What::Exit,
        What::PiSetPrio { task, old: 120, new: 9 },
        What::IrqEntry { irq: 24 }, What::IrqExit { irq: 24, handled: true },
        What::VectorEntry { vector: 0xec }, What::VectorExit { vector: 0xec },
        What::SoftirqRaise { vector: 1 }, What::SoftirqEntry { vector: 1 }, What::SoftirqExit { vector: 1 },
        What::IpiSend { target: 2 },
        What::HrtimerStart { timer, expires: at }, What::HrtimerCancel { timer },
        What::HrtimerExpireEntry { timer, now: Some(at), expires: Some(at) },
        What::HrtimerExpireEntry { timer, now: None, expires: None },
        What::HrtimerExpireExit { timer },
        What::TimerStart { timer, expires: 5 }, What::TimerExpireEntry { timer, function: 6 }, What::TimerExpireExit { timer },
        What::SyscallEnter { number: 39, args: [1, u64::MAX] }, What::SyscallExit { number: 39, result: -4 },
        What::FutexEnter { op: Futex::LockPi, address: 0x7fff_0000 }, What::FutexExit { op: Futex::Wait, result: -11 },
        What::ContentionBegin { lock: 8, flags: 2 }, What::ContentionEnd { lock: 8, result: -4 },
        What::PageFault { address: 0x1000, ip: 0x40_0000, user: true },
        What::PageAlloc { order: 9, page: 77 }, What::ReclaimBegin { order: 3 }, What::ReclaimEnd { reclaimed: 32 },
        What::Kmalloc { requested: 20, allocated: 32 }, What::CacheAlloc { requested: 192, allocated: 192 },
        What::BlockIssue { device: 0xfd00000, sector: 2048, bytes: 4096, write: true },
        What::BlockComplete { device: 0xfd00000, sector: 2048, bytes: 4096, error: -5 },
        What::JournalStart { device: 8, transaction: 9 }, What::JournalEnd { device: 8, transaction: 9 },
        What::MmcStart { opcode: 25, blocks: 8 }, What::MmcDone { opcode: 25, error: -110 },
        What::WorkStart { function: timer }, What::WorkEnd { function: timer }, What::NapiPoll { work: 3, budget: 64 },
        What::IdleEnter { state: 1 }, What::IdleExit, What::Frequency { khz: 1_500_000 },
        What::Tracepoint { tracepoint: TracepointId(3), record: RecordBytes::new(&[7; 44]) },
        What::Tracepoint { tracepoint: TracepointId(0), record: RecordBytes::new(&[]) },
        What::Tracepoint { tracepoint: TracepointId(0), record: RecordBytes::new(&[1; 99]) },
        What::Interrupted { call: Some(56) },
        What::Interrupted { call: None },
        What::Released { task },
        What::Stack { stack: StackId(12) },
        What::Point { point: PointId(4), kind: PointKind::Begin, count: 2, values: [-1, i64::MAX] },
        What::Call { function: FunctionId(1), began: at, depth: 3, left: true, argument: Some(0) },
        What::Call { function: FunctionId(1), began: at, depth: 3, left: false, argument: None },
        What::Sample { series: 2, due: at }, What::Lost { count: 1 << 40, since: at },
    ]
}

#[test]
fn every_event_is_read_back_as_it_was_written() {
    let events: Vec<Event> =
        whats().into_iter().map(|what| Event { at: MonotonicNs(1 << 50), cpu: 3, tid: Tid(1234), what }).collect();
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
    let event = Event { at: MonotonicNs(5), cpu: 0, tid: Tid(1), what: What::Exec };
    let mut bytes = Vec::new();
    let mut strange = [0; Header::SIZE];
    Header { ns: 5, tid: 1, kind: 250, words: 2, cpu: 0 }.write(&mut strange);
    bytes.extend_from_slice(&strange);
    bytes.extend_from_slice(&[0xff; 16]);
    encode(&event, &mut bytes);
    bytes.extend_from_slice(&strange[..9]);
    let read: Vec<_> = decode(&bytes).collect();
    assert_eq!(read, [Err(WireError::UnknownKind { at: 0, kind: 250 }), Ok(event), Err(WireError::CutOff { at: 48 })]);
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
