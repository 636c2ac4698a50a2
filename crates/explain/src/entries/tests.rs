//! Tests of the sums, the words and the interruptions.

use super::*;
use punctual_core::MonotonicNs;
use punctual_core::entry::{EntryKind, Vector};

fn entry(served: Served, begin: i64, end: i64) -> Entry {
    Entry {
        cpu: 3,
        begin: MonotonicNs(begin),
        end: MonotonicNs(end),
        own: Nanos(end - begin),
        served,
        task: 0,
        observer: false,
        function: 0,
        over: 7,
        nested: false,
        away: false,
        further: false,
        tick_dependency: 0,
        originator: None,
        via: None,
    }
}

fn name(text: &str) -> TaskComm {
    let mut bytes = [0; 16];
    bytes[..text.len()].copy_from_slice(text.as_bytes());
    TaskComm(bytes)
}

fn by(tid: u32, stack: Option<u32>) -> Option<Originator> {
    Some(Originator { at: MonotonicNs(1), tid, name: name("sender"), cpu: 1, stack })
}

fn names() -> EntryNames {
    let symbols = [
        (0xffff_0000_0000_0010, "tick_nohz_handler"),
        (0xffff_0000_0000_0020, "flush_tlb_func"),
        (0xffff_0000_0000_0030, "hrtimer_wakeup"),
        (0xffff_0000_0000_0040, "sysvec_apic_timer_interrupt+0x7"),
        (0xffff_0000_0000_0050, "bpf_trace_run3+0x1"),
        (0xffff_0000_0000_0060, "do_mprotect_pkey+0x2"),
    ];
    EntryNames {
        symbols: symbols.map(|(address, name)| (address, name.to_owned())).into(),
        irqs: [(38, "eth0".to_owned())].into(),
        stacks: [
            (1, vec![0xffff_0000_0000_0050, 0xffff_0000_0000_0060]),
            (2, vec![0xffff_0000_0000_0050, 0xffff_0000_0000_0040]),
        ]
        .into(),
    }
}

fn rows(entries: &[Entry]) -> Vec<EntryRow> {
    let mut table = EntryTable::default();
    entries.iter().for_each(|entry| table.push(entry));
    table.to_rows(&names())
}

const TIMER: Served = Served::Vector(Vector::LocalTimer);
const CALL: Served = Served::Vector(Vector::CallFunctionSingle);

#[test]
fn entries_of_one_originator_are_aggregated_in_one_row() {
    let shootdown = |end| Entry {
        function: 0xffff_0000_0000_0020,
        originator: by(42, Some(1)),
        ..entry(CALL, 0, end)
    };
    let other = Entry { originator: by(43, Some(1)), ..shootdown(1) };
    let rows = rows(&[shootdown(10), other, shootdown(30), shootdown(20)]);
    let [first, second] = &rows[..] else { panic!("{rows:?}") };
    assert_eq!(first.kind, EntryKind::TlbShootdown);
    assert_eq!((first.entries, first.total, first.longest), (3, Nanos(60), Nanos(30)));
    assert_eq!(first.originator, "sender-42 [001]");
    assert_eq!(first.stack, ["do_mprotect_pkey+0x2"], "without the functions of BPF");
    assert_eq!(second.by_tid, Some(43));
    let mut table = EntryTable::default();
    assert!(table.top_entries(&names()).is_none());
    [shootdown(10), other, shootdown(30)].iter().for_each(|one| table.push(one));
    assert_eq!(
        table.top_entries(&names()).unwrap().to_rows(&names()),
        table.to_rows(&names())[..1]
    );
}

#[test]
fn the_top_row_sums_all_entries_with_the_same_text() {
    let mut table = EntryTable::default();
    // None of the three is longer than the others.
    let irq = |via| Entry { via: Some(Via::Irq(via)), ..entry(Served::Irq(38), 0, 10) };
    (1..=3).for_each(|via| table.push(&irq(via)));
    table.push(&Entry { originator: by(42, Some(1)), ..entry(CALL, 0, 20) });
    let all = table.to_rows(&names());
    assert_eq!(all.len(), 2, "{all:?}");
    assert_eq!((all[0].entries, all[0].total), (3, Nanos(30)));
    assert_eq!(table.top_entries(&names()).unwrap().to_rows(&names()), all[..1]);
}

#[test]
fn a_task_that_a_device_interrupts_is_not_the_originator() {
    let one = |originator, via| {
        let all = rows(&[Entry { originator, via, ..entry(Served::Softirq(3), 0, 5) }]);
        let through = all[0].through.as_ref().map(|of| format!(" through {of}"));
        format!("{}{}", all[0].originator, through.unwrap_or_default())
    };
    assert_eq!(one(by(42, Some(2)), None), "sysvec_apic_timer_interrupt [001]");
    assert_eq!(one(None, None), "unknown");
    let nobody = by(0, None).map(|by| Originator { name: TaskComm::default(), ..by });
    assert_eq!(one(nobody, Some(Via::Irq(38))), "irq 38 eth0 [001]");
    let armed = Some(Via::Vector(0xffff_0000_0000_0030));
    assert_eq!(one(by(42, None), armed), "sender-42 [001] through hrtimer_wakeup");
}

#[test]
fn the_originator_of_a_tick_is_the_cpu_itself() {
    let tick = Entry {
        function: 0xffff_0000_0000_0010,
        originator: by(42, Some(1)),
        tick_dependency: 4,
        ..entry(TIMER, 0, 5)
    };
    let all = rows(&[tick]);
    assert_eq!((all[0].kind, all[0].what.as_str()), (EntryKind::Tick, "tick, kept by SCHED"));
    assert_eq!((all[0].originator.as_str(), all[0].by_tid), ("the CPU itself", None));
}

#[test]
fn entries_by_interrupt_are_one_row_whichever_task_was_interrupted() {
    let tick = |tick_dependency, tid| Entry {
        function: 0xffff_0000_0000_0010,
        tick_dependency,
        originator: by(tid, Some(1)),
        ..entry(TIMER, 0, 5)
    };
    let woken = |tid| Entry { originator: by(tid, Some(2)), ..entry(Served::Softirq(3), 0, 7) };
    let all = rows(&[tick(4, 42), tick(0x10, 43), woken(42), woken(43)]);
    let [softirq, ticks] = &all[..] else { panic!("{all:?}") };
    assert_eq!((ticks.what.as_str(), ticks.entries), ("tick, kept by SCHED and RCU", 2));
    assert_eq!(
        (softirq.originator.as_str(), softirq.entries),
        ("sysvec_apic_timer_interrupt [001]", 2)
    );
    assert_eq!((softirq.total, softirq.by_tid), (Nanos(14), None));
}

#[test]
fn entries_of_punctual_are_one_row_at_the_end() {
    let ours = |served, task| Entry { task, observer: true, ..entry(served, 0, 100) };
    let task = |text| Served::Task { name: name(text), kernel: false };
    let timer = Entry { originator: by(42, None), ..ours(TIMER, 0) };
    let theirs = Entry { task: 9, ..entry(task("hog"), 0, 7) };
    let all = [ours(task("measure"), 41), ours(task("punctual"), 42), timer, theirs];
    let found = rows(&all);
    let [hog, own] = &found[..] else { panic!("{found:?}") };
    assert_eq!((hog.what.as_str(), hog.kind), ("task hog", EntryKind::Task));
    assert_eq!((own.kind, own.entries, own.total), (EntryKind::Observer, 3, Nanos(300)));
    assert_eq!((own.originator.as_str(), own.by_tid), ("punctual itself", None));
    let mut table = EntryTable::default();
    all.iter().for_each(|one| table.push(one));
    assert_eq!(table.top_entries(&names()).unwrap().to_rows(&names()), found[..1]);
}

#[test]
fn a_further_function_has_a_row_but_is_not_counted_as_entry() {
    let mut table = EntryTable::default();
    table.push(&entry(TIMER, 0, 5));
    let further = Entry { function: 0xffff_0000_0000_0030, further: true, ..entry(TIMER, 1, 3) };
    table.push(&further);
    assert_eq!((table.entries, table.total), (1, Nanos(7)));
    let all = table.to_rows(&names());
    assert_eq!(all.len(), 2);
    assert!(all.iter().any(|row| row.what == "timer hrtimer_wakeup" && row.further == 1));
}

#[test]
fn threads_beyond_the_row_limit_share_rows_and_omissions_are_counted() {
    let mut table = EntryTable::default();
    let all = ROWS as u32 + 500;
    for tid in 1..=all {
        table.push(&Entry { originator: by(tid, None), ..entry(CALL, 0, 1) });
    }
    let rows = table.to_rows(&names());
    assert_eq!(rows.len(), ROWS + 1);
    assert_eq!(rows[0].entries, 500, "those of the name together");
    for function in 1..=all {
        let function = u64::from(function);
        table.push(&Entry { function, originator: by(1, None), ..entry(CALL, 0, 1) });
    }
    assert_eq!(table.sums.len(), MAX_THREAD_ROWS);
    let kept: u64 = table.sums.values().map(|sum| sum.entries).sum();
    assert_eq!(kept + table.left_out, table.entries);
}

fn joined(entries: &[Entry]) -> Vec<(i64, i64)> {
    let mut of = Interruptions::default();
    let mut all: Vec<_> = entries.iter().filter_map(|entry| of.push(entry)).collect();
    all.extend(of.finish());
    all.into_iter().map(|(begin, end)| (begin.ns(), end.ns())).collect()
}

#[test]
fn an_interrupt_with_its_softirq_and_woken_task_is_one_interruption() {
    let task = Served::Task { name: name("hog"), kernel: false };
    let away = |entry| Entry { away: true, ..entry };
    let all = [
        entry(TIMER, 0, 2_000),
        entry(Served::Softirq(1), 2_500, 4_000),
        // Within the time of the following task, which ends after them.
        away(entry(TIMER, 1_000_000, 1_002_000)),
        away(entry(task, 4_900, 5_000_000)),
        entry(TIMER, 9_000_000, 9_001_000),
    ];
    assert_eq!(joined(&all), [(0, 5_000_000), (9_000_000, 9_001_000)]);
}

#[test]
fn entries_on_an_idle_cpu_are_no_interruption() {
    let task = Served::Task { name: name("loop"), kernel: false };
    let idle = Entry { over: 0, ..entry(TIMER, 0, 10) };
    let within = Entry { nested: true, ..entry(TIMER, 20, 30) };
    let further = Entry { further: true, ..entry(TIMER, 40, 50) };
    assert_eq!(joined(&[idle, entry(task, 0, 1_000), within, further]), []);
}
