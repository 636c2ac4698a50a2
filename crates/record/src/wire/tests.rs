use super::layout::Header;
use super::{WireError, decode, encode};
use proptest::prelude::*;
use punctual_core::MonotonicNs;
use punctual_core::event::{
    CpuContext, Event, EventKind, FunctionId, Futex, InterfaceName, PointId, PointKind,
    RecordBytes, StackId, TaskState, Tid, TracepointId,
};
use std::num::NonZeroU32;

#[rustfmt::skip] // A table.
fn whats() -> Vec<EventKind> {
    use EventKind::*;
    let (task, timer, at) = (Tid(7), 0xffff_8880_0000_1000, MonotonicNs(99));
    vec![
        Switch { prev_prio: -1, prev_state: TaskState::Blocked, next: task, next_prio: 139 },
        Switch { prev_prio: 0, prev_state: TaskState::Preempted, next: task, next_prio: 19 },
        Waking { task, prio: 120, target: 3 },
        Wakeup { task, prio: 120, target: 3, new: false },
        Wakeup { task, prio: 120, target: 3, new: true },
        Migrate { task, from: 1, to: 4095 },
        Fork { child: task }, Exec, Exit,
        PiSetPrio { task, old: 120, new: 9 },
        IrqEntry { irq: 24 }, IrqExit { irq: 24, handled: true },
        VectorEntry { vector: 0xec }, VectorExit { vector: 0xec },
        SoftirqRaise { vector: 1 }, SoftirqEntry { vector: 1 }, SoftirqExit { vector: 1 },
        IpiSend { target: 2 },
        Signal { task, signal: 19 },
        HrtimerStart { timer, expires: at, slack: None },
        HrtimerStart { timer, expires: at, slack: NonZeroU32::new(50_000) },
        HrtimerCancel { timer },
        HrtimerExpireEntry { timer, now: Some(at), expires: Some(at), slack: None },
        HrtimerExpireEntry { timer, now: None, expires: None, slack: None },
        HrtimerExpireEntry { timer, now: None, expires: Some(at), slack: NonZeroU32::new(9) },
        HrtimerExpireExit { timer },
        TimerStart { timer, expires: 5 }, TimerExpireEntry { timer, function: 6 },
        TimerExpireExit { timer },
        SyscallEnter { number: 39, args: [1, u64::MAX] }, SyscallExit { number: 39, result: -4 },
        FutexEnter { op: Futex::LockPi, address: 0x7fff_0000 },
        FutexExit { op: Futex::Wait, result: -11 },
        ContentionBegin { lock: 8, flags: 2 }, ContentionEnd { lock: 8, result: -4 },
        PageFault { address: 0x1000, ip: 0x40_0000, user: true },
        PageAlloc { order: 9, page: 77 }, ReclaimBegin { order: 3 }, ReclaimEnd { reclaimed: 32 },
        Kmalloc { requested: 20, allocated: 32, object: 7 },
        CacheAlloc { requested: 192, allocated: 192, object: 8 },
        Kfree { object: 7 }, CacheFree { object: 8 },
        BlockIssue { device: 0xfd00000, sector: 2048, bytes: 4096, write: true },
        BlockComplete { device: 0xfd00000, sector: 2048, bytes: 4096, error: -5 },
        JournalStart { device: 8, transaction: 9 }, JournalEnd { device: 8, transaction: 9 },
        MmcStart { opcode: 25, blocks: 8 }, MmcDone { opcode: 25, error: -110 },
        WorkStart { function: timer }, WorkEnd { function: timer },
        NapiPoll { work: 3, budget: 64 },
        PacketReceived { device: InterfaceName::from_bytes(b"eth0"), bytes: 84 },
        SocketReady { family: 2, protocol: 17 },
        IdleEnter { state: 1 }, IdleExit, Frequency { khz: 1_500_000 },
        Tracepoint { tracepoint: TracepointId(3), record: RecordBytes::new(&[7; 44]) },
        Tracepoint { tracepoint: TracepointId(0), record: RecordBytes::new(&[]) },
        Tracepoint { tracepoint: TracepointId(0), record: RecordBytes::new(&[1; 99]) },
        Context { context: CpuContext::of_record(0x80, 3), site: timer, section: true },
        Interrupted { call: Some(56) },
        Interrupted { call: None },
        Unthrottled { task },
        Stack { stack: StackId(12) },
        Point { point: PointId(4), kind: PointKind::Begin, count: 2, values: [-1, i64::MAX] },
        Call { function: FunctionId(1), began: at, depth: 3, left: true, argument: Some(0) },
        Call { function: FunctionId(1), began: at, depth: 3, left: false, argument: None },
        Sample { series: 2, due: at }, Lost { count: 1 << 40, since: at },
    ]
}

#[test]
fn every_event_is_decoded_as_encoded() {
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
fn records_after_an_unknown_one_are_decoded() {
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
    fn no_bytes_panic_and_all_are_accounted_for(
        bytes in proptest::collection::vec(any::<u8>(), 0..400),
    ) {
        let mut events = decode(&bytes);
        let count = events.by_ref().count();
        prop_assert!(count <= bytes.len() / Header::SIZE + 1);
        prop_assert_eq!(events.position(), bytes.len());
    }
}
