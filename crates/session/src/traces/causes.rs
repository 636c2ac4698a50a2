//! Causes of delays in ftrace text, by both methods: explained from the events around a sample, and
//! as parts of a thread's cycles. The recordings are from other users, with tasks renamed.

use punctual_core::cycle::{Cycle, WokenBy};
use punctual_core::event::Tid;
use punctual_core::{CauseKind, Event, MonotonicNs};
use punctual_explain::cycles::stream::{CycleStream, ShownKinds, StreamResult, SyscallNumbers};
use punctual_explain::explain::{
    Cause, CpuMode, Explanation, LatencyInterval, StartKind, explain_sample,
};
use punctual_explain::gaps::Gaps;
use punctual_explain::threads::Coverage;
use punctual_report::sentence::explain::sample_paragraph;
use punctual_traces::Trace;

const NOT_THROTTLED: &str = include_str!("../../../traces/tests/data/not-throttled.txt");
const BUSY_CPU: &str = include_str!("../../../traces/tests/data/woken-for-a-busy-cpu.txt");
const SWITCH: &str = include_str!("../../../traces/tests/data/inside-the-switch.txt");
const STALLED: &str =
    include_str!("../../../traces/tests/data/stalled-with-interrupts-enabled.txt");

/// A sample of a thread in a trace, in microseconds, by both methods.
struct TraceCase {
    explanation: Explanation,
    sentences: String,
    /// The cycle of the sample.
    cycle: Option<Cycle>,
    cycles: Vec<Cycle>,
}

fn case_from_us(trace: &str, tid: u32, kind: StartKind, due: i64, woke: i64) -> TraceCase {
    case_of(trace.as_bytes().to_vec(), tid, kind, (due * 1_000, woke * 1_000))
}

fn case_of(trace: Vec<u8>, tid: u32, kind: StartKind, (due, woke): (i64, i64)) -> TraceCase {
    let mut trace = Trace::open(trace).expect("a trace");
    let events: Vec<Event> = trace.by_ref().map(|event| event.expect("an event")).collect();
    let facts = trace.facts();
    let (due, woke) = (MonotonicNs(due), MonotonicNs(woke));
    let cpu = events.iter().rfind(|event| event.tid.0 == tid && event.at <= woke);
    let cpu = cpu.map_or(Event::NO_CPU, |event| event.cpu);
    let interval = LatencyInterval { tid: Tid(tid), cpu, due, woke, kind };
    let coverage = Coverage::from_recording(&facts.recorded, &facts.names);
    let explanation = explain_sample(interval, &events, &coverage, &Gaps::default());
    assert!(explanation.adds_up(), "{explanation:#?}");
    let sentences = sample_paragraph(&explanation, &facts.names, &events);
    let shown_kinds = ShownKinds::of_recording(&facts.recorded, &facts.names).expect("switches");
    let mut stream = CycleStream::new(
        SyscallNumbers::from_names(&facts.names.syscalls),
        shown_kinds,
        Gaps::default(),
    );
    let (mut cycle, mut cycles) = (None, Vec::new());
    for event in &events {
        stream.push(event, &mut |found| match found {
            StreamResult::Cycle(one) if one.tid == tid => {
                assert_eq!(one.total_split().total_time(), one.response_time());
                cycles.push(one);
                if one.release <= due && due < one.again {
                    cycle = Some(one);
                }
            }
            _ => {}
        });
    }
    TraceCase { explanation, sentences, cycle, cycles }
}

impl TraceCase {
    /// The time of a cause, in microseconds: in the explanation, and in the cycle.
    fn cause_times(&self, part: CauseKind) -> (i64, i64) {
        let parts = self.explanation.parts.iter();
        let parts = parts.filter(|of| of.cause.kind() == part);
        let cycle = self.cycle.map_or(0, |cycle| cycle.total_split().time_of(part).ns());
        (parts.map(|part| part.duration().ns()).sum::<i64>() / 1_000, cycle / 1_000)
    }

    fn time_of_cause(&self, cause: &str) -> i64 {
        let parts = self.explanation.parts.iter().filter(|part| part.cause.id() == cause);
        parts.map(|part| part.duration().ns()).sum::<i64>() / 1_000
    }
}

/// The trace with a real-time priority of the thread, and of its waker.
fn real_time(text: &str) -> String {
    ["", "prev_", "next_"].iter().fold(text.to_owned(), |text, of| {
        [28_773, 28_779].iter().fold(text, |text, pid| {
            let (from, to) =
                (format!("{of}pid={pid} {of}prio=120"), format!("{of}pid={pid} {of}prio=79"));
            text.replace(&from, &to)
        })
    })
}

#[test]
fn a_migration_to_an_idle_cpu_is_not_throttling() {
    for (text, idle) in [(NOT_THROTTLED, 5_237), (BUSY_CPU, 40)] {
        for text in [text.to_owned(), real_time(text)] {
            let case =
                case_from_us(&text, 28_773, StartKind::Interval, 38_456_580_002, 38_456_640_237);
            assert_eq!(case.cause_times(CauseKind::Throttled), (0, 0), "{}", case.sentences);
            assert_eq!(case.time_of_cause("migration"), 0, "{}", case.sentences);
            let queued = 60_235 - idle;
            // The cycle includes the wake-up in progress, too.
            let cause_times = case.cause_times(CauseKind::Runqueue);
            assert_eq!(cause_times, (queued, queued + 2), "{}", case.sentences);
            // In cycles it may have been an interrupt, which is not recorded here.
            assert_eq!(case.cause_times(CauseKind::IdleExit), (idle, 0), "{}", case.sentences);
            assert_eq!(case.cause_times(CauseKind::Unknown), (0, idle), "{}", case.sentences);
        }
    }
}

/// If no event shows when the thread left the queue, an idle CPU proves nothing.
#[test]
fn an_unrecorded_migration_is_not_throttling() {
    let unseen: Vec<&str> =
        BUSY_CPU.lines().filter(|line| !line.contains("sched_migrate_task")).collect();
    // CPU 4 idles before the thread runs on CPU 2.
    let text = unseen.join("\n").replace("38456.641000", "38456.620000") + "\n";
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_by_key(|line| line.split(']').nth(1).and_then(|at| at.trim().split(':').next()));
    let text = lines.join("\n") + "\n";
    for text in [text.clone(), real_time(&text)] {
        let case = case_from_us(&text, 28_773, StartKind::Interval, 38_456_580_002, 38_456_640_237);
        assert_eq!(case.cause_times(CauseKind::Throttled), (0, 0), "{}", case.sentences);
        assert_eq!(case.time_of_cause("unknown"), 20_237, "{}", case.sentences);
    }
}

/// Removes lines that contain any of these.
fn remove_lines(text: &str, any: &[&str]) -> String {
    let kept = text.lines().filter(|line| !any.iter().any(|of| line.contains(of)));
    kept.map(|line| format!("{line}\n")).collect()
}

#[test]
fn the_context_switch_is_bounded_by_an_event_inside_or_by_the_return_of_the_call() {
    let case_of_text = |text: &str| {
        case_from_us(text, 2_866_344, StartKind::Timer, 17_000_012_000, 17_000_012_072)
    };
    let inside = case_of_text(SWITCH);
    assert_eq!(inside.cause_times(CauseKind::Switch), (63, 63), "{}", inside.sentences);
    assert!(
        inside.sentences.contains("context switch to it, until tlb_flush"),
        "{}",
        inside.sentences
    );
    assert!(inside.time_of_cause("self") <= 4, "{}", inside.sentences);
    let bounded = case_of_text(&remove_lines(SWITCH, &["tlb_flush"]));
    assert_eq!(bounded.cause_times(CauseKind::Switch), (64, 64), "{}", bounded.sentences);
    assert!(
        bounded.sentences.contains("up to the return of clock_nanosleep()"),
        "{}",
        bounded.sentences
    );
    // Without a bound it is unknown, and no switch of the others has such a part.
    let unknown =
        case_of_text(&remove_lines(SWITCH, &["tlb_flush", "sys_exit", "sys_enter", "user_e"]));
    assert_eq!(unknown.cause_times(CauseKind::Switch), (0, 0), "{}", unknown.sentences);
    let unsure = Cause::OwnExecution { mode: CpuMode::Unknown };
    assert!(unknown.explanation.parts.iter().any(|part| part.cause == unsure));
    let usual = case_from_us(SWITCH, 2_866_344, StartKind::Timer, 17_000_011_000, 17_000_011_008);
    assert_eq!(usual.cause_times(CauseKind::Switch), (1, 1), "{}", usual.sentences);
}

#[test]
fn a_late_timer_is_a_cpu_stall_only_if_interrupts_were_enabled() {
    let case_of_text =
        |text: &str| case_from_us(text, 77, StartKind::Timer, 700_012_000, 700_012_715);
    let stalled_case = case_of_text(STALLED);
    assert_eq!(
        stalled_case.cause_times(CauseKind::TimerIrqDelay),
        (709, 709),
        "{}",
        stalled_case.sentences
    );
    let says = "interrupts disabled or the CPU stalled, not known which (interrupts were enabled \
                50.0 µs before it was due, in igb_set_rx_mode+0x4f8/0x5a0); a stall is likely";
    assert!(stalled_case.sentences.contains(says), "{}", stalled_case.sentences);
    let disabled = case_of_text(&STALLED.replace(" b...3 ", " d...3 "));
    assert!(!disabled.sentences.contains("enabled"), "{}", disabled.sentences);
    assert!(disabled.sentences.contains("not known which"), "{}", disabled.sentences);
    let late = "              ip-4931 [001] d..h3  700.012709: local_timer_entry";
    let line = |flags: &str, at: &str, event: &str| {
        format!("              ip-4931 [001] {flags}  700.{at}: {event}\n{late}")
    };
    // Enabled on both sides of the expiry.
    let after = line("b...3", "012400", "kfree: call_site=igb_set_rx_mode+0x510/0x5a0 ptr=0");
    let bounded_case = case_of_text(&STALLED.replace(late, &after));
    assert_eq!(
        (bounded_case.time_of_cause("cpu-stall"), bounded_case.time_of_cause("timer-irq-delay")),
        (709, 0),
        "{}",
        bounded_case.sentences
    );
    // Sections with disabled interrupts are recorded: one was open, or none was.
    let kmalloc = "              ip-4931 [001] b...3  700.011950: kmalloc";
    let section = |events: &[(&str, &str)]| {
        let lines = events.iter().map(|(at, event)| {
            let rest = "caller=igb_update_phy_info+0x1f/0x40 parent=0x0";
            format!("              ip-4931 [001] d...3  700.{at}: {event}: {rest}\n")
        });
        STALLED.replace(kmalloc, &format!("{}{kmalloc}", lines.collect::<String>()))
    };
    let open = case_of_text(&section(&[("011940", "irq_disable")]));
    let says = "with interrupts disabled, in igb_update_phy_info+0x1f/0x40";
    assert!(open.sentences.contains(says), "{}", open.sentences);
    let closed = case_of_text(&section(&[("011930", "irq_disable"), ("011940", "irq_enable")]));
    assert_eq!(closed.time_of_cause("cpu-stall"), 709, "{}", closed.sentences);
}

/// cyclictest at priority 80 beside the task `visitor` at 95, recorded by perf without system calls
/// on a kernel that hides switches from the idle task. Its own longest latency was 1,294 us.
#[test]
fn cycles_are_found_without_system_calls_and_the_longest_is_that_of_cyclictest() {
    const PACKED: &[u8] =
        include_bytes!("../../../traces/tests/data/cyclictest-without-system-calls.perf.data.gz");
    const CYCLICTEST: u32 = 31_469;
    const VISITOR: u32 = 31_467;
    let mut data = Vec::new();
    std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(PACKED), &mut data).unwrap();
    let case_at = |due, woke| case_of(data.clone(), CYCLICTEST, StartKind::Timer, (due, woke));
    let cycles = case_at(0, 1).cycles;
    assert!((395..=400).contains(&cycles.len()), "{}", cycles.len());
    let worst = cycles.iter().max_by_key(|cycle| cycle.wakeup_latency()).expect("a cycle");
    let late = worst.wakeup_latency().ns() / 1_000;
    assert!((1_284..=1_304).contains(&late), "{late}");
    assert_eq!(worst.by, WokenBy::Sleep);
    let explained = case_at(worst.release.0, worst.returned.0);
    let (_, of_cycle) = explained.cause_times(CauseKind::Preempted);
    assert!(of_cycle > late * 9 / 10, "{:?}", worst.total_split());
    assert!(worst.culprit.is_some_and(|by| VISITOR == by.tid));
    assert!(worst.culprit.is_some_and(|by| by.time.ns() / 1_000 > late * 9 / 10));
}
