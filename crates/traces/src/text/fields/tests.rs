use super::*;
use proptest::prelude::*;
use punctual_core::MonotonicNs;
use punctual_core::event::{EventKind, TaskState, Tid};

fn of(name: &str, rest: &str) -> Option<EventKind> {
    let meaning = Meaning::of(None, name).unwrap();
    meaning.event(&read(meaning, rest.as_bytes(), &mut Decoder::default()))
}

fn switch(prev_state: TaskState) -> Option<EventKind> {
    Some(EventKind::Switch { prev_prio: 120, prev_state, next: Tid(1234), next_prio: 19 })
}

#[test]
fn switches_and_wake_ups_are_parsed_in_every_form() {
    let kernel = "prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R+ ==> \
                  next_comm=cyclictest next_pid=1234 next_prio=19";
    assert_eq!(of("sched_switch", kernel), switch(TaskState::Preempted));
    let hostile = "prev_comm=a prev_pid=9 prev_pid=5 prev_prio=120 prev_state=D|K ==> \
                   next_comm=next_pid=7 next_pid=1234 next_prio=19";
    assert_eq!(of("sched_switch", hostile), switch(TaskState::Blocked));
    let plugin = "a b:c:5 [120] S ==> cyclictest:1234 [19]";
    assert_eq!(of("sched_switch", plugin), switch(TaskState::Sleeping));
    let arrows = "a ==> b:5 [120] S ==> cyclictest:1234 [19]";
    assert_eq!(of("sched_switch", arrows), switch(TaskState::Sleeping));
    assert_eq!(of("sched_switch", "prev_comm=a prev_pid=0 prev_prio=120"), None);

    let wakeup = Some(EventKind::Wakeup { task: Tid(1234), prio: 19, target: 3, new: false });
    for form in [
        "comm=cyclictest pid=1234 prio=19 target_cpu=003",
        "comm=cyclictest pid=1234 prio=19 success=1 target_cpu=003",
        "comm=a pid=1 pid=1234 prio=19 target_cpu=003",
        "cyclictest:1234 [19] success=1 CPU:003",
        "cyclictest:1234 [19] CPU:003",
        "cyclictest:1234 [19]<CPU:003>",
    ] {
        assert_eq!(of("sched_wakeup", form), wakeup, "{form}");
    }
    let waking = "comm=dl pid=7 prio=-1 target_cpu=000";
    assert_eq!(
        of("sched_waking", waking),
        Some(EventKind::Waking { task: Tid(7), prio: -1, target: 0 })
    );
}

#[test]
fn events_written_by_latency_tracers_are_parsed() {
    let (meaning, values) = of_tracer(b"    0:120:R ==> [001]  1234: 19:S two words").unwrap();
    assert_eq!(meaning.event(&values), switch(TaskState::Preempted));
    assert_eq!(values.texts[4], b"two words");
    let (meaning, values) = of_tracer(b"0:120:R   + [003]  1234: 19:R a").unwrap();
    let wakeup = EventKind::Wakeup { task: Tid(1234), prio: 19, target: 3, new: false };
    assert_eq!(meaning.event(&values), Some(wakeup));
    assert!(of_tracer(b"0:120:R --> [003]  1234: 19:R a").is_some());
}

#[test]
fn interrupt_and_timer_events_are_parsed() {
    let handled = |handled| Some(EventKind::IrqExit { irq: 24, handled });
    assert_eq!(of("irq_handler_exit", "irq=24 ret=handled"), handled(true));
    assert_eq!(of("irq_handler_exit", "irq=24 ret=unhandled"), handled(false));
    assert_eq!(
        of("irq_handler_entry", "irq=24 name=virtio0-input.0"),
        Some(EventKind::IrqEntry { irq: 24 })
    );
    assert_eq!(
        of("softirq_entry", "vec=1 [action=TIMER]"),
        Some(EventKind::SoftirqEntry { vector: 1 })
    );
    assert_eq!(of("local_timer_entry", "vector=236"), Some(EventKind::VectorEntry { vector: 236 }));
    let start = |timer, expires, slack| {
        let slack = std::num::NonZeroU32::new(slack);
        Some(EventKind::HrtimerStart { timer, expires: MonotonicNs(expires), slack })
    };
    let form = "hrtimer=0000000012345678 function=hrtimer_wakeup expires=1050000 \
                softexpires=1000000 mode=REL";
    assert_eq!(of("hrtimer_start", form), start(0x1234_5678, 1_000_000, 50_000));
    let form = "hrtimer=0xffff8880abcdef00 function=hrtimer_wakeup/0x0 expires=1050000";
    assert_eq!(of("hrtimer_start", form), start(0xffff_8880_abcd_ef00, 1_050_000, 0));
    let form = "hrtimer=0xffff8880abcdef00 function=tick_nohz_handler expires=\
                9223372036854775807 softexpires=9223372036854775807";
    assert_eq!(of("hrtimer_start", form), start(0xffff_8880_abcd_ef00, i64::MAX, 0));
    assert_eq!(of("hrtimer_start", "hrtimer=(____ptrval____) expires=5"), None);
    assert_eq!(
        of("hrtimer_expire_entry", "hrtimer=00000000deadbeef function=a now=77"),
        Some(EventKind::HrtimerExpireEntry {
            timer: 0xdead_beef,
            now: Some(MonotonicNs(77)),
            expires: None,
            slack: None
        })
    );
}

#[test]
fn functions_without_an_address_get_a_number_by_name() {
    let mut decoder = Decoder::default();
    let mut function = |rest: &str| {
        let values = read(Meaning::WorkStart, rest.as_bytes(), &mut decoder);
        Meaning::WorkStart.event(&values)
    };
    let first = function("work struct 00000000a: function vmstat_update");
    assert_ne!(first, None);
    assert_ne!(function("work struct 00000000a: function wb_workfn"), first);
    assert_eq!(function("work struct 00000000b: function vmstat_update"), first);
    let symbols = decoder.names().symbols;
    assert!(symbols.values().any(|name| name == "vmstat_update"));
}

#[test]
fn system_call_events_are_parsed() {
    let enter = EventKind::SyscallEnter { number: 202, args: [0x7f12, 0x81] };
    assert_eq!(of("sys_enter", "NR 202 (7f12, 81, 1, 0, 0, 0)"), Some(enter));
    let exit = EventKind::SyscallExit { number: 202, result: -110 };
    assert_eq!(of("sys_exit", "NR 202 = -110"), Some(exit));
    let named = |enter, rest: &'static str| of_call(enter, rest.as_bytes()).numbers;
    assert_eq!(named(true, "(uaddr: 7f12, op: 81, val: 1)")[1..3], [Some(0x7f12), Some(0x81)]);
    assert_eq!(named(true, "uaddr: 0x7f12, op: 0x81")[1..3], [Some(0x7f12), Some(0x81)]);
    assert_eq!(named(false, "-> 0xffffffffffffff92")[1], Some(-110));
    assert_eq!(named(false, "0x0")[1], Some(0));
}

#[test]
fn block_lock_and_page_events_are_parsed() {
    let device = 8 << 20 | 16;
    assert_eq!(
        of("block_rq_issue", "8,16 WS 4096 () 123456 + 8 none,0,0 [jbd2/sda1-8]"),
        Some(EventKind::BlockIssue { device, sector: 123_456, bytes: 4096, write: true })
    );
    assert_eq!(
        of("block_rq_complete", "8,16 R () 123456 + 8 [-5]"),
        Some(EventKind::BlockComplete { device, sector: 123_456, bytes: 4096, error: -5 })
    );
    assert_eq!(
        of("jbd2_start_commit", "dev 8,16 transaction 99 sync 0"),
        Some(EventKind::JournalStart { device, transaction: 99 })
    );
    assert_eq!(
        of("contention_begin", "000000001234abcd (flags=SPIN|READ)"),
        Some(EventKind::ContentionBegin { lock: 0x1234_abcd, flags: 3 })
    );
    assert_eq!(
        of("contention_end", "0xffff888012345678 (ret=0)"),
        Some(EventKind::ContentionEnd { lock: 0xffff_8880_1234_5678, result: 0 })
    );
    assert_eq!(
        of("napi_poll", "napi poll on napi struct 00000000a for device eth0 work 1 budget 64"),
        Some(EventKind::NapiPoll { work: 1, budget: 64 })
    );
    assert_eq!(
        of("mm_page_alloc", "page=00000000a pfn=0x1234 order=2 migratetype=0 gfp_flags=GFP"),
        Some(EventKind::PageAlloc { order: 2, page: 0x1234 })
    );
    assert_eq!(of("cpu_idle", "state=4294967295 cpu_id=0"), Some(EventKind::IdleExit));
}

proptest! {
    #[test]
    fn no_text_panics(
        name in proptest::sample::select(vec![
            "sched_switch", "sched_wakeup", "sys_enter", "block_rq_issue", "block_rq_complete",
            "contention_begin", "hrtimer_start", "workqueue_execute_start", "napi_poll",
        ]),
        text in "(prev_comm=|comm=|NR |8,1 |flags=|hrtimer=|function |work )?\
                 [a-zA-Z0-9=:(),\\[\\]+ >-]{0,60}",
    ) {
        let _ = of(name, &text);
        let _ = of_tracer(text.as_bytes());
        let _ = of_call(true, text.as_bytes());
    }
}
