//! Text of ftrace: events in order, losses as gaps, names, clocks.

use punctual_core::event::{EventKind, Group, MomentSource, TaskState, Tid};
use punctual_core::{Event, MonotonicNs, Nanos};
use punctual_traces::{ClockRelation, NO_MACHINE, Trace, TraceError, TraceFacts, TraceFormat};

fn read(text: &str) -> (Vec<Event>, TraceFacts) {
    let mut trace = Trace::open(text.as_bytes().to_vec()).unwrap();
    let events: Vec<Event> = trace.by_ref().map(Result::unwrap).collect();
    assert!(events.windows(2).all(|pair| pair[0].at <= pair[1].at));
    (events, trace.facts())
}

const TRACE: &str = include_str!("data/tracefs.txt");

#[test]
fn a_text_trace_is_read_completely() {
    let (events, facts) = read(TRACE);
    let kinds: Vec<&str> = events.iter().map(|event| event.what.event_name()).collect();
    let expected = [
        "hrtimer_expire_entry",
        "sched_waking",
        "sched_switch",
        "hrtimer_start",
        "lost",
        "futex_enter",
        "sys_enter",
        "sys_exit",
        "futex_exit",
        "irq_handler_entry",
        "lost",
    ];
    assert_eq!(kinds, expected);
    assert_eq!(events[2].tid, Tid(0));
    assert!(matches!(
        events[2].what,
        EventKind::Switch { prev_state: TaskState::Preempted, next: Tid(77), next_prio: 19, .. }
    ));
    let gap = EventKind::Lost { count: 5, since: MonotonicNs(100_000_020_000) };
    assert_eq!((events[10].at, events[10].what), (MonotonicNs(100_000_030_000), gap));
    assert_eq!(facts.format, TraceFormat::FtraceText);
    assert_eq!(facts.names.task_name(Tid(77)), "servo loop");
    assert_eq!(facts.names.task_name(Tid(81)), "a b-c");
    assert_eq!(facts.names.irqs[&24], "virtio0-input.0");
    assert_eq!(facts.clock.resolution, Nanos(1_000));
    assert_eq!(facts.clock.relation, ClockRelation::Monotonic);
    assert_eq!(facts.recorded.cpus.len(), 4);
    assert_eq!(facts.recorded.lost_count(), 6);
    assert_eq!(facts.tracepoints["myriad"].used, 0);
    assert_eq!(facts.tracepoints["sched_switch"].used, 1);
    assert!(facts.has_tracepoint("sched_waking") && !facts.has_tracepoint("sched_wakeup"));
    let groups = [Group::Sched, Group::Hrtimer, Group::Syscall, Group::Futex];
    assert_eq!(facts.recorded.groups, groups);
    assert_eq!((facts.unreadable, facts.out_of_order), (0, 0));
}

/// Numbers of system calls only have a meaning on a known machine.
#[test]
fn system_calls_are_named_only_if_the_text_states_its_machine() {
    let of = |head: &str| read(&format!("{head}{}", include_str!("data/numbered-calls.txt")));
    let kinds = |events: &[Event]| -> Vec<&str> {
        events.iter().map(|event| event.what.event_name()).collect()
    };
    let (events, facts) = of("");
    assert_eq!(kinds(&events), ["sys_enter", "sched_switch", "sys_enter", "sys_exit"]);
    assert_eq!(facts.recorded.groups, [Group::Sched]);
    assert!(facts.names.syscalls.is_empty() && facts.machine.is_none());
    let findings = &facts.recorded.findings;
    let nameless = findings.iter().find(|finding| finding.id == NO_MACHINE).expect("it is said");
    assert!(nameless.remedy.as_ref().is_some_and(|text| text.contains("`# machine: NAME`")));

    // In the format of `punctual recipe tracefs`, and `perf script --header`.
    for head in ["# machine: x86_64\n", "# arch : x86_64\n"] {
        let (events, facts) = of(head);
        let with_futex =
            ["sys_enter", "sched_switch", "futex_enter", "sys_enter", "sys_exit", "futex_exit"];
        assert_eq!(kinds(&events), with_futex, "{head}");
        assert_eq!(facts.recorded.groups, [Group::Sched, Group::Syscall, Group::Futex]);
        assert_eq!(facts.names.syscalls[&230], "clock_nanosleep");
        assert_eq!(facts.machine.as_deref(), Some("x86_64"));
        assert!(facts.recorded.findings.iter().all(|finding| finding.id != NO_MACHINE));
    }
    // A machine without a table, and one stated after events that were read without it.
    let late = |head: &str| read(&[include_str!("data/numbered-calls.txt"), head].concat()).1;
    for facts in [of("# machine: vax\n").1, late("# machine: x86_64\n")] {
        assert!(facts.machine.is_none() && !facts.recorded.has_group(Group::Syscall));
        assert!(facts.recorded.findings.iter().any(|finding| finding.id == NO_MACHINE));
    }
}

#[test]
fn other_clocks_are_converted_by_timer_expiries() {
    let text = include_str!("data/local-clock.txt");
    let (events, facts) = read(text);
    assert_eq!(facts.clock.relation, ClockRelation::Bridged);
    let EventKind::HrtimerStart { expires, .. } = events[0].what else { panic!("{events:?}") };
    assert_eq!(expires, MonotonicNs(5_000_502_000));
}

#[test]
fn output_of_latency_tracers_and_trace_cmd_report_is_read() {
    let text = include_str!("data/wakeup_rt.txt");
    let (events, facts) = read(text);
    let kinds: Vec<&str> = events.iter().map(|event| event.what.event_name()).collect();
    assert_eq!(kinds, ["sched_wakeup", "sched_switch"]);
    assert_eq!(events[1].at, MonotonicNs(12_000));
    assert_eq!(facts.names.task_name(Tid(1234)), "cyclictest");

    let text = include_str!("data/report.txt");
    let (events, facts) = read(text);
    assert_eq!(events.len(), 3);
    assert_eq!(facts.names.task_name(Tid(77)), "servo loop");
    assert_eq!(facts.recorded.recorder, "trace-cmd report");
    assert_eq!(facts.recorded.lost_count(), 7);
}

/// The functions of the kernel in a stack of `perf script -g`, innermost first.
#[test]
fn stacks_of_perf_script_are_those_of_the_kernel() {
    let text = "perf 15047 [000]  2196.838042: irq:softirq_raise: vec=9 [action=RCU]\n\
                \tffffffff81415c9c syscall_exit_work+0xbc ([kernel.kallsyms])\n\
                \tffffffffc0415c9c nft_do_chain+0x1 ([nf_tables])\n\
                \tffffffffc0415c9c of_file (/lib/modules/6.1/kernel/a.ko)\n\
                \t          fdd6b __GI___ioctl+0x3b (/usr/lib/libc.so.6)\n\
                \t          147bc2 [unknown] ([unknown])\n\
                \t    7fff147bc2 clock_gettime+0x2 ([vdso])\n\n\
                perf 15047 [000]  2196.840330: irq:softirq_entry: vec=9 [action=RCU]\n";
    let (events, facts) = read(text);
    let stacks = events.iter().filter_map(|event| match event.what {
        EventKind::Stack { stack } => Some(facts.names.stack_functions(stack)),
        _ => None,
    });
    assert_eq!(stacks.collect::<Vec<_>>(), [["syscall_exit_work", "nft_do_chain", "of_file"]]);
    assert_eq!((events.len(), facts.unreadable), (3, 0));
}

const HEAD: &str = "<!DOCTYPE html>\n<html>\n<title>Android System Trace</title>\n<script>\n";
const SWITCH: &str = "<idle>-0     (-----) [001] d..2     5.000020: sched_switch: \
                      prev_comm=swapper/1 prev_pid=0 prev_prio=120 prev_state=R ==> \
                      next_comm=servo next_pid=77 next_prio=19";
const WAKING: &str = "<...>-1103  (-----) [001] d..4     5.000010: sched_waking: comm=servo pid=77 \
                      prio=19 target_cpu=001";

/// A page with megabytes of its viewer, its processes, the trace, and JSON.
#[test]
fn a_page_of_systrace_is_read_like_the_text_in_it() {
    let section = "  <script class=\"trace-data\" type=\"application/text\">\n";
    let viewer = format!("var a='{}';\n# tracer: not this\n", "x".repeat(100_000));
    let page = |end: &str| {
        format!(
            "{HEAD}{viewer}</script>\n{section}PROCESS DUMP\nroot 1 0 init\n  </script>\n\
             {section}# tracer: nop\n#\n{WAKING}\n{SWITCH}\n{end}"
        )
    };
    let rest = format!("  </script>\n{section}{{\"traceEvents\": []}}\n  </script>\n</html>\n");
    let (events, facts) = read(&page(&rest));
    let kinds: Vec<&str> = events.iter().map(|event| event.what.event_name()).collect();
    assert_eq!(kinds, ["sched_waking", "sched_switch"]);
    assert_eq!((facts.format.word(), facts.unreadable), ("systrace page", 0));
    assert_eq!(facts.recorded.recorder, "ftrace");
    assert!(facts.recorded.missing.is_empty(), "{:?}", facts.recorded.missing);
    let (text, _) = read(&format!("TRACE:\n# tracer: nop\n{WAKING}\n{SWITCH}\n"));
    assert_eq!(text, events);
    // Its script does not end.
    let (events, facts) = read(&page(""));
    assert_eq!((events.len(), facts.recorded.missing.len()), (2, 1));
}

/// Of 2012: the text is a string of the page's script.
#[test]
fn an_old_page_of_systrace_is_read() {
    let page = format!(
        "{HEAD}</script>\n  var linuxPerfData = \"\\\n# tracer: nop\\n\\\n{WAKING}\\n\\\n\
         {SWITCH}\\n\";\n  </script>\n</html>\n"
    );
    let (events, facts) = read(&page);
    assert_eq!((events.len(), facts.unreadable), (2, 0));
    assert_eq!(facts.names.task_name(Tid(77)), "servo");
    assert!(facts.recorded.missing.is_empty(), "{:?}", facts.recorded.missing);
}

#[test]
fn files_that_are_no_trace_are_refused_with_a_hint() {
    let why = |bytes: &[u8]| match Trace::open(bytes.to_vec()).unwrap_err() {
        TraceError::Unrecognized { hint } => hint,
        other => panic!("{other}"),
    };
    assert!(why(b"").contains("empty"));
    assert!(why(b"\x1f\x8b\x08").contains("gzip"));
    assert!(why(b"TRACE:\n\x78\x9c\x00\x01").contains("atrace"));
    assert!(why(b"capturing trace... done\nTRACE:\n\x78\x9c\x00").contains("atrace"));
    assert!(why(b"{\"traceEvents\": []}").contains("trace viewer"));
    assert!(why(b"<!DOCTYPE html>\n<html>\n").contains("page"));
    assert_eq!(why(b"# T: 0 ( 1234) P:80 I:1000 C: 5 Min: 6\n"), "");
    assert!(Trace::open_stream(TRACE.as_bytes()).is_ok());
}

/// The moments that a trace points at, with the flags and functions of its lines.
#[test]
fn marks_noises_and_heads_of_tracers_are_moments() {
    let (_, facts) = read(include_str!("data/ends-at-the-marker.txt"));
    let [mark] = &facts.recorded.moments[..] else { panic!("{:?}", facts.recorded.moments) };
    assert_eq!((mark.source, mark.duration()), (MomentSource::Marker, Nanos(72_000)));
    assert_eq!((mark.to, mark.words.as_str()), (MonotonicNs(17_000_012_110_000), MARK));

    let (events, facts) = read(include_str!("data/wakeup_rt-latency-format.txt"));
    let [head] = &facts.recorded.moments[..] else { panic!("{:?}", facts.recorded.moments) };
    assert_eq!(
        (head.source, head.tid, head.cpu),
        (MomentSource::WakeupTracer, Tid(8_238), Some(4))
    );
    assert_eq!((head.from, head.duration()), (MonotonicNs(0), Nanos(55_060_000)));
    // The head states the switch that this excerpt lacks.
    assert!(matches!(
        events.last().map(|event| event.what),
        Some(EventKind::Switch { prev_prio: 120, next: Tid(8_238), next_prio: 0, .. })
    ));
    assert_eq!(facts.names.task_name(Tid(88)), "kswapd()");
    let stacks = events.iter().filter_map(|event| match event.what {
        EventKind::Stack { stack } => Some(facts.names.stack_functions(stack)),
        _ => None,
    });
    assert_eq!(stacks.collect::<Vec<_>>()[0][0], "shrink_inactive_list");
    let off = |of: &&Event| match of.what {
        EventKind::Context { context, .. } => context.irqs_off == Some(true),
        _ => false,
    };
    assert_eq!(events.iter().filter(off).count(), 12);

    let (_, facts) = read(include_str!("data/osnoise-events.txt"));
    let [sample] = &facts.recorded.moments[..] else { panic!("{:?}", facts.recorded.moments) };
    assert_eq!((sample.source, sample.duration()), (MomentSource::Osnoise, Nanos(34_531)));
    assert_eq!((sample.noises.len(), facts.names.irqs[&179].as_str()), (5, "dcvsh-irq-7"));
    assert_eq!(facts.unreadable, 0);
}

const MARK: &str = "hit latency threshold (72 > 30)";
