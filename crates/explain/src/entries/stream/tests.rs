//! Scripts of events, and the resulting entries.

use super::*;
use punctual_core::event::{FieldKind, RecordField};
use punctual_testing::parse_events;

const CPU: u16 = 3;
const TICK: u64 = 0xffff_0000_0000_0010;
const SHOOTDOWN: u64 = 0xffff_0000_0000_0020;
const WAKEUP: u64 = 0xffff_0000_0000_0030;

struct Known;

impl TaskProperties for Known {
    fn task_name(&self, tid: u32) -> TaskComm {
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
    named::tracepoint_fields().map(format).collect()
}

/// The entries of a text of events, in which a tracepoint with its fields stands as well.
fn entries(script: &str) -> (EntryStream, Vec<Entry>) {
    let functions = KernelFunctions { shootdown: SHOOTDOWN, call_function: 9, tick: TICK };
    let vectors = [(236, "local_timer"), (251, "call_function_single"), (253, "reschedule")];
    let vectors = vectors.map(|(number, name)| (number, name.to_owned())).into();
    let chosen = CpuSet::from_cpu(CPU.into());
    let mut stream = EntryStream::new(&chosen, functions, &vectors, &formats());
    let mut script = script.to_owned();
    for (place, tracepoint) in TRACEPOINTS.iter().enumerate() {
        let (_, name) = tracepoint.split_once(':').unwrap_or(("", tracepoint));
        script = script.replace(&format!(" {name} "), &format!(" tracepoint {place} "));
    }
    let mut all = Vec::new();
    for event in parse_events(&script) {
        stream.push(&event, &Known, &mut |entry| all.push(entry));
    }
    (stream, all)
}

#[test]
fn nested_entries_are_excluded_from_own_time() {
    let (stream, all) = entries(
        "0 cpu3 1 softirq_raise 7
        100 softirq_entry 7
        150 irq_entry 38
        170 irq_exit 38
        200 softirq_exit 7",
    );
    let [irq, softirq] = &all[..] else { panic!("{all:#?}") };
    assert_eq!((irq.served, irq.own.ns(), irq.nested), (Served::Irq(38), 20, true));
    assert_eq!((softirq.served, softirq.own.ns(), softirq.over), (Served::Softirq(7), 80, 1));
    let by = softirq.originator.expect("who raised it");
    assert_eq!((by.tid, by.cpu, by.at.0), (1, CPU.into(), 0));
    assert_eq!(stream.cpu_counts(CPU.into()).irqs, 1);
}

#[test]
fn a_task_woken_by_a_timer_has_the_thread_that_armed_it_as_originator() {
    let (_, all) = entries(&format!(
        "0 cpu0 7 hrtimer_start 0x1000 {WAKEUP}
        500 cpu3 1 vector_entry 236
        510 hrtimer_expire_entry 0x1000 {WAKEUP}
        520 waking 2
        530 hrtimer_expire_exit 0x1000 0
        540 vector_exit 0
        600 switch R -> 2
        700 switch S -> 1"
    ));
    let [interrupt, task] = &all[..] else { panic!("{all:#?}") };
    assert_eq!((interrupt.function, interrupt.own.ns()), (WAKEUP, 40));
    assert_eq!(interrupt.originator.map(|by| (by.tid, by.cpu)), Some((7, 0)));
    let served = Served::Task { name: Known.task_name(2), kernel: false };
    assert_eq!((task.served, task.over, task.away), (served, 1, true));
    let by = task.originator.expect("who armed the timer");
    assert_eq!((by.tid, by.cpu, by.at.0), (7, 0, 520));
    assert_eq!(task.via, Some(Via::Vector(WAKEUP)));
}

#[test]
fn a_tick_has_a_dependency_but_no_originator() {
    let (_, all) = entries(&format!(
        "0 cpu3 1 hrtimer_start 0x2000 {TICK}
        5 tick_stop 0 8
        10 vector_entry 236
        11 hrtimer_expire_entry 0x2000 {TICK}
        12 hrtimer_start 0x2000 {TICK}
        13 hrtimer_expire_exit 0x2000 0
        14 vector_exit 0"
    ));
    let [tick] = &all[..] else { panic!("{all:#?}") };
    assert_eq!((tick.function, tick.originator, tick.tick_dependency), (TICK, None, 8));
}

#[test]
fn each_called_function_is_an_entry_with_or_without_an_interrupt() {
    // The last function is called on an idle CPU.
    let (stream, all) = entries(&format!(
        "0 cpu0 7 csd_queue_cpu {CPU} 0x11
        1 8 csd_queue_cpu {CPU} 0x12
        2 8 csd_queue_cpu 1 0x13
        10 cpu3 1 vector_entry 251
        20 csd_function_entry {SHOOTDOWN} 0x11; 30 csd_function_exit 0x11 0
        40 csd_function_entry 0x77 0x12; 55 csd_function_exit 0x12 0
        60 vector_exit 0
        80 csd_function_entry 0x78 0x14; 90 csd_function_exit 0x14 0"
    ));
    let [further, entry, idle] = &all[..] else { panic!("{all:#?}") };
    assert_eq!((entry.function, entry.own.ns(), entry.further), (SHOOTDOWN, 35, false));
    assert_eq!(entry.originator.map(|by| by.tid), Some(7));
    assert_eq!((further.function, further.own.ns(), further.further), (0x77, 15, true));
    assert_eq!(further.originator.map(|by| by.tid), Some(8));
    assert_eq!((idle.served, idle.function, idle.originator), (Served::Call, 0x78, None));
    let counts = stream.cpu_counts(CPU.into());
    assert_eq!((counts.shootdowns, counts.vector_count(&[Vector::CallFunctionSingle])), (1, 1));
}

#[test]
fn the_originator_of_an_ipi_or_work_item_is_its_sender() {
    let (_, all) = entries(
        "0 cpu0 7 ipi_send_cpu 3 0
        10 cpu3 1 vector_entry 253; 15 vector_exit 0
        16 vector_entry 253; 17 vector_exit 0
        20 5 workqueue_queue_work 0x50 0
        21 waking 100
        30 switch S -> 100
        32 workqueue_execute_start 0x50 0x99
        40 workqueue_execute_end 0x50 0
        45 switch S -> 0",
    );
    let [ipi, unknown, work] = &all[..] else { panic!("{all:#?}") };
    assert_eq!(ipi.originator.map(|by| (by.tid, by.cpu)), Some((7, 0)));
    assert_eq!(unknown.originator, None, "the sender of one is not that of the next");
    assert_eq!((work.function, work.away), (0x99, false), "the CPU was free");
    assert_eq!(work.originator.map(|by| by.tid), Some(5));
    assert!(matches!(work.served, Served::Task { kernel: true, .. }));
}

#[test]
fn the_originator_of_a_task_is_its_waker_or_the_task_that_moved_it() {
    let (_, all) = entries(
        "0 cpu0 7 waking 2 cpu3
        1 8 migrate 2 cpu1 -> cpu3
        3 cpu3 1 switch S -> 2
        4 switch S -> 1
        5 cpu0 9 migrate 6 cpu1 -> cpu3
        6 cpu3 switch S -> 6
        7 switch S -> 0",
    );
    let by: Vec<Option<u32>> = all.iter().map(|one| one.originator.map(|by| by.tid)).collect();
    assert_eq!(by, [Some(7), None, Some(9)]);
}

#[test]
fn own_entries_are_counted_and_after_losses_the_originator_is_unknown() {
    let (stream, all) = entries(
        "0 cpu3 1 sys_enter 3
        1 sys_enter 3
        2 cpu0 7 sys_enter 3
        3 cpu3 page_fault
        4 cpu0 waking 2 cpu3
        5 cpu3 vector_entry 236
        6 lost 12 since=5
        7 vector_exit 0
        8 switch S -> 2
        9 switch S -> 0",
    );
    let [task] = &all[..] else { panic!("{all:#?}") };
    assert_eq!(task.originator, None);
    assert_eq!(stream.lost_events(CPU.into()), 12);
    let own: Vec<_> =
        stream.own_counts().iter().map(|one| (one.tid, one.what, one.count)).collect();
    assert_eq!(own, [(1, OwnEntry::SystemCall(Some(3)), 2), (1, OwnEntry::UserFault, 1)]);
}

#[test]
fn an_nmi_begins_and_lasts_as_its_event_states() {
    let (_, all) = entries("1000 cpu3 1 nmi_handler 0xabc 300");
    let [nmi] = &all[..] else { panic!("{all:#?}") };
    assert_eq!((nmi.served, nmi.begin.0, nmi.own.ns()), (Served::Nmi(0xabc), 700, 300));
}

/// The workers of WQ_BH run their work items in a softirq (Linux 6.9).
#[test]
fn a_work_item_in_a_softirq_is_the_softirqs() {
    let (_, all) = entries(
        "0 cpu3 5 switch S -> 1
        100 softirq_entry 6
        110 workqueue_execute_start 0x1000 0x77; 140 workqueue_execute_end 0x1000 0
        150 workqueue_execute_start 0x2000 0x88; 190 workqueue_execute_end 0x2000 0
        200 softirq_exit 6
        300 switch S -> 5",
    );
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
        let script = events.into_iter().map(|(kind, tid, later)| {
            at += later;
            let event = match kind {
                0 => "vector_entry 236".to_owned(),
                1 | 2 => "vector_exit 0".to_owned(),
                3 => "irq_entry 1".to_owned(),
                4 => "softirq_entry 1".to_owned(),
                5 => "softirq_exit 1".to_owned(),
                6 => format!("hrtimer_expire_entry {tid} {WAKEUP}"),
                7 => format!("hrtimer_expire_exit {tid} 0"),
                8 => format!("csd_function_entry {SHOOTDOWN} 1"),
                9 => "csd_function_exit 1 0".to_owned(),
                10 => "workqueue_execute_start 1 2".to_owned(),
                11 => "workqueue_execute_end 1 0".to_owned(),
                12 => format!("switch R -> {}", tid + 1),
                _ => format!("switch S -> {tid}"),
            };
            format!("{at} cpu3 {tid} {event}\n")
        });
        let (_, all) = entries(&script.collect::<String>());
        let own: i64 = all.iter().map(|entry| entry.own.ns()).sum();
        proptest::prop_assert!(own <= at, "{own} of {at}: {all:#?}");
        proptest::prop_assert!(all.iter().all(|one| one.begin <= one.end && one.own.ns() >= 0));
    }
}
