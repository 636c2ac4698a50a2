//! Scripts of events, and the resulting entries.

use super::*;
use punctual_core::event::{FieldKind, RecordBytes, RecordField, Tid, TracepointId};

const CPU: u16 = 3;
const ELSEWHERE: u16 = 0;
const TICK: u64 = 0xffff_0000_0000_0010;
const SHOOTDOWN: u64 = 0xffff_0000_0000_0020;
const WAKEUP: u64 = 0xffff_0000_0000_0030;

struct Known;

impl TaskProperties for Known {
    fn name(&self, tid: u32) -> TaskComm {
        let mut name = TaskComm::default();
        let text = format!("task{tid}");
        name.0[..text.len()].copy_from_slice(text.as_bytes());
        name
    }
    fn is_kernel(&self, tid: u32) -> bool {
        tid >= 100
    }
}

/// Every tracepoint with two fields of 8 bytes.
fn formats() -> Vec<TracepointFormat> {
    let field = |(place, name): (usize, &&str)| RecordField {
        name: (*name).to_owned(),
        offset: 8 + 8 * place as u16,
        size: 8,
        kind: FieldKind::Unsigned,
    };
    let format = |(name, fields): (&str, [&str; 2])| TracepointFormat {
        name: name.to_owned(),
        fields: fields.iter().enumerate().filter(|(_, of)| !of.is_empty()).map(field).collect(),
    };
    named::fields().map(format).collect()
}

fn named(name: &str, values: [u64; 2]) -> EventKind {
    let place = TRACEPOINTS.iter().position(|one| one.ends_with(name)).expect(name);
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    let tracepoint = TracepointId(place as u32);
    EventKind::Tracepoint { tracepoint, record: RecordBytes::new(&bytes) }
}

/// The entries of a script: time, CPU, running thread, event.
fn entries(script: &[(i64, u16, u32, EventKind)]) -> (EntryStream, Vec<Entry>) {
    let functions = KernelFunctions { shootdown: SHOOTDOWN, call_function: 9, tick: TICK };
    let vectors = [(236, "local_timer"), (251, "call_function_single"), (253, "reschedule")];
    let vectors = vectors.map(|(number, name)| (number, name.to_owned())).into();
    let chosen = CpuSet::single(CPU.into());
    let mut stream = EntryStream::new(&chosen, functions, &vectors, &formats());
    let mut all = Vec::new();
    for (at, cpu, tid, what) in script {
        let event = Event { at: MonotonicNs(*at), cpu: *cpu, tid: Tid(*tid), what: *what };
        stream.push(&event, &Known, &mut |entry| all.push(entry));
    }
    (stream, all)
}

fn switch(prev_state: TaskState, next: u32) -> EventKind {
    EventKind::Switch { prev_prio: 120, prev_state, next: Tid(next), next_prio: 120 }
}

fn waking(task: u32) -> EventKind {
    EventKind::Waking { task: Tid(task), prio: 120, target: CPU }
}

fn vector(vector: u8) -> EventKind {
    EventKind::VectorEntry { vector }
}

const END: EventKind = EventKind::VectorExit { vector: 0 };

#[test]
fn nested_entries_are_excluded_from_own_time() {
    let softirq = |vector| EventKind::SoftirqEntry { vector };
    let (stream, all) = entries(&[
        (0, CPU, 1, EventKind::SoftirqRaise { vector: 7 }),
        (100, CPU, 1, softirq(7)),
        (150, CPU, 1, EventKind::IrqEntry { irq: 38 }),
        (170, CPU, 1, EventKind::IrqExit { irq: 38, handled: true }),
        (200, CPU, 1, EventKind::SoftirqExit { vector: 7 }),
    ]);
    let [irq, softirq] = &all[..] else { panic!("{all:#?}") };
    assert_eq!((irq.served, irq.own.ns(), irq.nested), (Served::Irq(38), 20, true));
    assert_eq!((softirq.served, softirq.own.ns(), softirq.over), (Served::Softirq(7), 80, 1));
    let by = softirq.originator.expect("who raised it");
    assert_eq!((by.tid, by.cpu, by.at.0), (1, CPU.into(), 0));
    assert_eq!(stream.counts(CPU.into()).irqs, 1);
}

#[test]
fn a_task_woken_by_a_timer_has_the_thread_that_armed_it_as_originator() {
    let (_, all) = entries(&[
        (0, ELSEWHERE, 7, named("hrtimer_start", [0x1000, WAKEUP])),
        (500, CPU, 1, vector(236)),
        (510, CPU, 1, named("hrtimer_expire_entry", [0x1000, WAKEUP])),
        (520, CPU, 1, waking(2)),
        (530, CPU, 1, named("hrtimer_expire_exit", [0x1000, 0])),
        (540, CPU, 1, END),
        (600, CPU, 1, switch(TaskState::Preempted, 2)),
        (700, CPU, 2, switch(TaskState::Sleeping, 1)),
    ]);
    let [interrupt, task] = &all[..] else { panic!("{all:#?}") };
    assert_eq!((interrupt.function, interrupt.own.ns()), (WAKEUP, 40));
    assert_eq!(interrupt.originator.map(|by| (by.tid, by.cpu)), Some((7, 0)));
    let served = Served::Task { name: Known.name(2), kernel: false };
    assert_eq!((task.served, task.over, task.away), (served, 1, true));
    let by = task.originator.expect("who armed the timer");
    assert_eq!((by.tid, by.cpu, by.at.0), (7, 0, 520));
    assert_eq!(task.via, Some(Via::Vector(WAKEUP)));
}

#[test]
fn a_tick_has_a_dependency_but_no_originator() {
    let (_, all) = entries(&[
        (0, CPU, 1, named("hrtimer_start", [0x2000, TICK])),
        (5, CPU, 1, named("tick_stop", [0, 8])),
        (10, CPU, 1, vector(236)),
        (11, CPU, 1, named("hrtimer_expire_entry", [0x2000, TICK])),
        (12, CPU, 1, named("hrtimer_start", [0x2000, TICK])),
        (13, CPU, 1, named("hrtimer_expire_exit", [0x2000, 0])),
        (14, CPU, 1, END),
    ]);
    let [tick] = &all[..] else { panic!("{all:#?}") };
    assert_eq!((tick.function, tick.originator, tick.tick_dependency), (TICK, None, 8));
}

#[test]
fn each_called_function_is_an_entry_with_or_without_an_interrupt() {
    let call = |at, function, call| (at, CPU, 1, named("csd_function_entry", [function, call]));
    let end = |at, call| (at, CPU, 1, named("csd_function_exit", [call, 0]));
    let (stream, all) = entries(&[
        (0, ELSEWHERE, 7, named("csd_queue_cpu", [CPU.into(), 0x11])),
        (1, ELSEWHERE, 8, named("csd_queue_cpu", [CPU.into(), 0x12])),
        (2, ELSEWHERE, 8, named("csd_queue_cpu", [1, 0x13])),
        (10, CPU, 1, vector(251)),
        call(20, SHOOTDOWN, 0x11),
        end(30, 0x11),
        call(40, 0x77, 0x12),
        end(55, 0x12),
        (60, CPU, 1, END),
        // On an idle CPU.
        call(80, 0x78, 0x14),
        end(90, 0x14),
    ]);
    let [further, entry, idle] = &all[..] else { panic!("{all:#?}") };
    assert_eq!((entry.function, entry.own.ns(), entry.further), (SHOOTDOWN, 35, false));
    assert_eq!(entry.originator.map(|by| by.tid), Some(7));
    assert_eq!((further.function, further.own.ns(), further.further), (0x77, 15, true));
    assert_eq!(further.originator.map(|by| by.tid), Some(8));
    assert_eq!((idle.served, idle.function, idle.originator), (Served::Call, 0x78, None));
    let counts = stream.counts(CPU.into());
    assert_eq!((counts.shootdowns, counts.of(&[Vector::CallFunctionSingle])), (1, 1));
}

#[test]
fn the_originator_of_an_ipi_or_work_item_is_its_sender() {
    let (_, all) = entries(&[
        (0, ELSEWHERE, 7, named("ipi_send_cpu", [CPU.into(), 0])),
        (10, CPU, 1, vector(253)),
        (15, CPU, 1, END),
        (16, CPU, 1, vector(253)),
        (17, CPU, 1, END),
        (20, CPU, 5, named("workqueue_queue_work", [0x50, 0])),
        (21, CPU, 5, waking(100)),
        (30, CPU, 5, switch(TaskState::Sleeping, 100)),
        (32, CPU, 100, named("workqueue_execute_start", [0x50, 0x99])),
        (40, CPU, 100, named("workqueue_execute_end", [0x50, 0])),
        (45, CPU, 100, switch(TaskState::Sleeping, 0)),
    ]);
    let [ipi, unknown, work] = &all[..] else { panic!("{all:#?}") };
    assert_eq!(ipi.originator.map(|by| (by.tid, by.cpu)), Some((7, 0)));
    assert_eq!(unknown.originator, None, "the sender of one is not that of the next");
    assert_eq!((work.function, work.away), (0x99, false), "the CPU was free");
    assert_eq!(work.originator.map(|by| by.tid), Some(5));
    assert!(matches!(work.served, Served::Task { kernel: true, .. }));
}

#[test]
fn the_originator_of_a_task_is_its_waker_or_the_task_that_moved_it() {
    let moved = |task, from| EventKind::Migrate { task: Tid(task), from, to: CPU };
    let (_, all) = entries(&[
        (0, ELSEWHERE, 7, waking(2)),
        (1, ELSEWHERE, 8, moved(2, 1)),
        (3, CPU, 1, switch(TaskState::Sleeping, 2)),
        (4, CPU, 2, switch(TaskState::Sleeping, 1)),
        (5, ELSEWHERE, 9, moved(6, 1)),
        (6, CPU, 1, switch(TaskState::Sleeping, 6)),
        (7, CPU, 6, switch(TaskState::Sleeping, 0)),
    ]);
    let by: Vec<Option<u32>> = all.iter().map(|one| one.originator.map(|by| by.tid)).collect();
    assert_eq!(by, [Some(7), None, Some(9)]);
}

#[test]
fn own_entries_are_counted_and_after_losses_the_originator_is_unknown() {
    let call = |number| EventKind::SyscallEnter { number, args: [0; 2] };
    let (stream, all) = entries(&[
        (0, CPU, 1, call(3)),
        (1, CPU, 1, call(3)),
        (2, ELSEWHERE, 7, call(3)),
        (3, CPU, 1, EventKind::PageFault { address: 0, ip: 0, user: true }),
        (4, ELSEWHERE, 7, waking(2)),
        (5, CPU, 1, vector(236)),
        (6, CPU, 1, EventKind::Lost { count: 12, since: MonotonicNs(5) }),
        (7, CPU, 1, END),
        (8, CPU, 1, switch(TaskState::Sleeping, 2)),
        (9, CPU, 2, switch(TaskState::Sleeping, 0)),
    ]);
    let [task] = &all[..] else { panic!("{all:#?}") };
    assert_eq!(task.originator, None);
    assert_eq!(stream.lost(CPU.into()), 12);
    let own: Vec<_> =
        stream.own_counts().iter().map(|one| (one.tid, one.what, one.count)).collect();
    assert_eq!(own, [(1, OwnEntry::SystemCall(Some(3)), 2), (1, OwnEntry::UserFault, 1)]);
}

#[test]
fn an_nmi_begins_and_lasts_as_its_event_states() {
    let (_, all) = entries(&[(1_000, CPU, 1, named("nmi_handler", [0xabc, 300]))]);
    let [nmi] = &all[..] else { panic!("{all:#?}") };
    assert_eq!((nmi.served, nmi.begin.0, nmi.own.ns()), (Served::Nmi(0xabc), 700, 300));
}

/// The workers of WQ_BH run their work items in a softirq (Linux 6.9).
#[test]
fn a_work_item_in_a_softirq_is_the_softirqs() {
    let work =
        |at, work, function| (at, CPU, 1, named("workqueue_execute_start", [work, function]));
    let ends = |at, work| (at, CPU, 1, named("workqueue_execute_end", [work, 0]));
    let (_, all) = entries(&[
        (0, CPU, 5, switch(TaskState::Sleeping, 1)),
        (100, CPU, 1, EventKind::SoftirqEntry { vector: 6 }),
        work(110, 0x1000, 0x77),
        ends(140, 0x1000),
        work(150, 0x2000, 0x88),
        ends(190, 0x2000),
        (200, CPU, 1, EventKind::SoftirqExit { vector: 6 }),
        (300, CPU, 1, switch(TaskState::Sleeping, 5)),
    ]);
    let [second, softirq, task] = &all[..] else { panic!("{all:#?}") };
    assert_eq!((second.served, second.further), (Served::Softirq(6), true));
    assert_eq!((second.function, second.own.ns()), (0x88, 40));
    assert_eq!((softirq.function, softirq.own.ns()), (0x77, 60));
    assert_eq!((task.function, task.own.ns()), (0, 200));
}

proptest::proptest! {
    /// The own times of entries never overlap: they add up to at most the elapsed time, whichever
    /// begins and ends were not seen.
    #[test]
    fn whatever_comes_own_times_are_within_the_time(
        events in proptest::collection::vec((0u8..14, 0u32..4, 1i64..50), 1..200),
    ) {
        let mut at = 0;
        let script: Vec<_> = events
            .into_iter()
            .map(|(kind, tid, later)| {
                at += later;
                let what = match kind {
                    0 => vector(236),
                    1 | 2 => END,
                    3 => EventKind::IrqEntry { irq: 1 },
                    4 => EventKind::SoftirqEntry { vector: 1 },
                    5 => EventKind::SoftirqExit { vector: 1 },
                    6 => named("hrtimer_expire_entry", [u64::from(tid), WAKEUP]),
                    7 => named("hrtimer_expire_exit", [u64::from(tid), 0]),
                    8 => named("csd_function_entry", [SHOOTDOWN, 1]),
                    9 => named("csd_function_exit", [1, 0]),
                    10 => named("workqueue_execute_start", [1, 2]),
                    11 => named("workqueue_execute_end", [1, 0]),
                    12 => switch(TaskState::Preempted, tid + 1),
                    _ => switch(TaskState::Sleeping, tid),
                };
                (at, CPU, tid, what)
            })
            .collect();
        let (_, all) = entries(&script);
        let own: i64 = all.iter().map(|entry| entry.own.ns()).sum();
        proptest::prop_assert!(own <= at, "{own} of {at}: {all:#?}");
        proptest::prop_assert!(all.iter().all(|one| one.begin <= one.end && one.own.ns() >= 0));
    }
}
