use super::*;
use proptest::prelude::*;
use punctual_core::event::EventKind;
use punctual_testing::events;

fn of(name: &str, rest: &str) -> Option<EventKind> {
    let meaning = Meaning::from_tracepoint(None, name).unwrap();
    meaning.to_event(&read(meaning, rest.as_bytes(), &mut Decoder::default()))
}

/// The event of a text.
fn kind(text: &str) -> Option<EventKind> {
    Some(events!("0 {text}")[0].what)
}

#[test]
fn switches_and_wake_ups_are_parsed_in_every_form() {
    let kernel = "prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R+ ==> \
                  next_comm=cyclictest next_pid=1234 next_prio=19";
    assert_eq!(of("sched_switch", kernel), kind("switch R -> 1234/19"));
    let hostile = "prev_comm=a prev_pid=9 prev_pid=5 prev_prio=120 prev_state=D|K ==> \
                   next_comm=next_pid=7 next_pid=1234 next_prio=19";
    assert_eq!(of("sched_switch", hostile), kind("switch D -> 1234/19"));
    let plugin = "a b:c:5 [120] S ==> cyclictest:1234 [19]";
    assert_eq!(of("sched_switch", plugin), kind("switch S -> 1234/19"));
    let arrows = "a ==> b:5 [120] S ==> cyclictest:1234 [19]";
    assert_eq!(of("sched_switch", arrows), kind("switch S -> 1234/19"));
    assert_eq!(of("sched_switch", "prev_comm=a prev_pid=0 prev_prio=120"), None);

    let wakeup = kind("wakeup 1234/19 cpu3");
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
    assert_eq!(of("sched_waking", waking), kind("waking 7/-1"));
}

#[test]
fn events_written_by_latency_tracers_are_parsed() {
    let (meaning, values) = of_tracer(b"    0:120:R ==> [001]  1234: 19:S two words").unwrap();
    assert_eq!(meaning.to_event(&values), kind("switch R -> 1234/19"));
    assert_eq!(values.texts[4], b"two words");
    let (meaning, values) = of_tracer(b"0:120:R   + [003]  1234: 19:R a").unwrap();
    assert_eq!(meaning.to_event(&values), kind("wakeup 1234/19 cpu3"));
    assert!(of_tracer(b"0:120:R --> [003]  1234: 19:R a").is_some());
}

#[test]
fn interrupt_and_timer_events_are_parsed() {
    assert_eq!(of("irq_handler_exit", "irq=24 ret=handled"), kind("irq_exit 24"));
    assert_eq!(of("irq_handler_exit", "irq=24 ret=unhandled"), kind("irq_exit 24 unhandled"));
    assert_eq!(of("irq_handler_entry", "irq=24 name=virtio0-input.0"), kind("irq_entry 24"));
    assert_eq!(of("softirq_entry", "vec=1 [action=TIMER]"), kind("softirq_entry 1"));
    assert_eq!(of("local_timer_entry", "vector=236"), kind("vector_entry 236"));
    let form = "hrtimer=0000000012345678 function=hrtimer_wakeup expires=1050000 \
                softexpires=1000000 mode=REL";
    assert_eq!(
        of("hrtimer_start", form),
        kind("hrtimer_start 0x12345678 expires=1ms slack=50_000")
    );
    let form = "hrtimer=0xffff8880abcdef00 function=hrtimer_wakeup/0x0 expires=1050000";
    assert_eq!(of("hrtimer_start", form), kind("hrtimer_start 0xffff8880abcdef00 expires=1050us"));
    let form = "hrtimer=0xffff8880abcdef00 function=tick_nohz_handler expires=\
                9223372036854775807 softexpires=9223372036854775807";
    let last = format!("hrtimer_start 0xffff8880abcdef00 expires={}", i64::MAX);
    assert_eq!(of("hrtimer_start", form), kind(&last));
    assert_eq!(of("hrtimer_start", "hrtimer=(____ptrval____) expires=5"), None);
    assert_eq!(
        of("hrtimer_expire_entry", "hrtimer=00000000deadbeef function=a now=77"),
        kind("hrtimer_entry 0xdeadbeef now=77")
    );
}

#[test]
fn functions_without_an_address_get_a_number_by_name() {
    let mut decoder = Decoder::default();
    let mut function = |rest: &str| {
        let values = read(Meaning::WorkStart, rest.as_bytes(), &mut decoder);
        Meaning::WorkStart.to_event(&values)
    };
    let first = function("work struct 00000000a: function vmstat_update");
    assert_ne!(first, None);
    assert_ne!(function("work struct 00000000a: function wb_workfn"), first);
    assert_eq!(function("work struct 00000000b: function vmstat_update"), first);
    let symbols = decoder.collect_names().symbols;
    assert!(symbols.values().any(|name| name == "vmstat_update"));
}

#[test]
fn system_call_events_are_parsed() {
    let enter = kind("sys_enter 202 0x7f12 0x81");
    assert_eq!(of("sys_enter", "NR 202 (7f12, 81, 1, 0, 0, 0)"), enter);
    assert_eq!(of("sys_exit", "NR 202 = -110"), kind("sys_exit 202 -110"));
    let named = |enter, rest: &'static str| of_call(enter, rest.as_bytes()).numbers;
    assert_eq!(named(true, "(uaddr: 7f12, op: 81, val: 1)")[1..3], [Some(0x7f12), Some(0x81)]);
    assert_eq!(named(true, "uaddr: 0x7f12, op: 0x81")[1..3], [Some(0x7f12), Some(0x81)]);
    assert_eq!(named(false, "-> 0xffffffffffffff92")[1], Some(-110));
    assert_eq!(named(false, "0x0")[1], Some(0));
}

#[test]
fn block_lock_and_page_events_are_parsed() {
    // The device 8:16.
    for (name, text, event) in [
        (
            "block_rq_issue",
            "8,16 WS 4096 () 123456 + 8 none,0,0 [jbd2/sda1-8]",
            "block_issue 0x800010 123456 4096 write",
        ),
        (
            "block_rq_complete",
            "8,16 R () 123456 + 8 [-5]",
            "block_complete 0x800010 123456 4096 error=-5",
        ),
        ("jbd2_start_commit", "dev 8,16 transaction 99 sync 0", "journal_start 0x800010 99"),
        ("contention_begin", "000000001234abcd (flags=SPIN|READ)", "contention_begin 0x1234abcd 3"),
        ("contention_end", "0xffff888012345678 (ret=0)", "contention_end 0xffff888012345678"),
        (
            "napi_poll",
            "napi poll on napi struct 00000000a for device eth0 work 1 budget 64",
            "napi_poll 1 64",
        ),
        (
            "mm_page_alloc",
            "page=00000000a pfn=0x1234 order=2 migratetype=0 gfp_flags=GFP",
            "page_alloc 2 0x1234",
        ),
        ("cpu_idle", "state=4294967295 cpu_id=0", "idle_exit"),
    ] {
        assert_eq!(of(name, text), kind(event), "{text}");
    }
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
