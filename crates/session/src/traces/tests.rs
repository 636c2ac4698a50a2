//! A scripted trace becomes a bundle with the cycles of the script.

use super::*;
use crate::explanation::{self, Wanted};
use punctual_core::event::RecordedSource;
use punctual_core::{MonotonicNs, Nanos};
use punctual_testing::{events, parse_events, parse_names};

/// A real-time thread that sleeps for every millisecond; each tenth time it queues behind another.
struct Script {
    events: std::vec::IntoIter<Event>,
    end: MonotonicNs,
    groups: Vec<Group>,
}

const CYCLES: i64 = 100;

fn script(groups: &[Group]) -> Script {
    let mut text = String::new();
    for cycle in 0..CYCLES {
        let (due, after_late) = ((cycle + 1) * 1_000, if cycle % 10 == 6 { 400 } else { 0 });
        let now = cycle * 1_000 + 100 + after_late;
        let late = if cycle % 10 == 5 { 400 } else { 0 };
        text += &format!(
            "{now}us cpu0 servo:7/19 sys_enter 230 1 1
            +1us hrtimer_start 5 expires={due}us
            +1us switch S -> hog:9/9
            {}us vector_entry 0xec; +1us hrtimer_entry 5
            +1us waking 7/19; +1us wakeup 7/19
            +1us hrtimer_exit 5; +1us vector_exit 0xec
            +{}us switch S -> 7/19; +2us sys_exit 230\n",
            due + 1,
            2 + late
        );
    }
    let mut events = parse_events(&text);
    events.retain(|event| event.what.group().is_some_and(|group| groups.contains(&group)));
    events.sort_by_key(|event| event.at);
    let end = MonotonicNs((CYCLES + 2) * 1_000_000);
    Script { events: events.into_iter(), end, groups: groups.to_vec() }
}

impl TraceReader for Script {
    fn next_event(&mut self) -> Option<Result<Event, String>> {
        self.events.next().map(Ok)
    }

    fn trace_extent(&self) -> TraceExtent {
        let names = parse_names("task 7 in 7 servo; task 9 in 9 hog; syscall 230 clock_nanosleep");
        let source =
            RecordedSource { name: "cpu 0".to_owned(), cpu: Some(0), ..RecordedSource::default() };
        let recorded = Recorded {
            ended: self.end,
            groups: self.groups.clone(),
            sources: vec![source],
            ..Recorded::without_events("a script", MonotonicNs(0))
        };
        TraceExtent { recorded, names, seen: BTreeMap::new() }
    }
}

const GROUPS: [Group; 5] =
    [Group::Sched, Group::Vectors, Group::Irq, Group::Hrtimer, Group::Syscall];

fn bundle(groups: &[Group], cycles: CycleOptions) -> (tempfile::TempDir, Converted, Bundle) {
    let room = tempfile::tempdir().expect("a directory");
    let directory = room.path().join("bundle");
    let options = TraceOptions { name: "script".into(), origin: "a test".into(), cycles };
    let converted = convert_trace(&directory, &mut script(groups), options).expect("converted");
    let bundle = Bundle::open(&directory).expect("a bundle");
    (room, converted, bundle)
}

fn count(bundle: &Bundle, series: &str) -> Option<u64> {
    let found = bundle.all_series().find(|(_, one)| one.meta.name == series);
    found.map(|(_, series)| series.state.data.sample_count())
}

#[test]
fn cycles_of_a_trace_become_series_with_explained_delays() {
    let deadline = Some(Nanos::from_micros(300));
    let (_room, converted, bundle) =
        bundle(&GROUPS, CycleOptions { deadline, ..CycleOptions::default() });
    assert_eq!((converted.exit, converted.none), (Exit::Done, None));
    // The last one does not end.
    assert_eq!(count(&bundle, "servo/response"), Some(CYCLES as u64 - 1));
    let missed = bundle.findings.iter().find(|finding| finding.id == "deadline-missed");
    let message = missed.map(|finding| finding.message.as_str());
    assert_eq!(message, Some("10 of 99 cycles took longer than 300us"));
    let wanted = Wanted { worst: Some(1), ..Wanted::default() };
    let explained = explanation::explain_samples(&bundle, &wanted).expect("explained");
    let worst = explained.samples.first().expect("a sample");
    assert_eq!(worst.series, "servo/response");
    let causes: Vec<(&str, i64)> = worst
        .explanation
        .totals_by_cause()
        .into_iter()
        .map(|(cause, time)| (cause.id(), time.ns() / 1_000))
        .take(2)
        .collect();
    assert_eq!(causes, [("preempted", 402), ("self", 90)]);
    let limits = bundle.findings.iter().find(|finding| finding.id == "trace-limits");
    let limits = limits.expect("what it does not have").message.as_str();
    assert!(limits.contains("no softirq events") && !limits.contains("no irq"), "{limits}");
}

/// cyclictest stopped the recording at its own longest sample, 72 us by its clock: the events show
/// 69 us of it until its wait returned, and its cycle to the last of them.
#[test]
fn the_cycle_in_which_a_trace_ends_is_in_its_figures() {
    let trace = Path::new(env!("CARGO_MANIFEST_DIR"));
    let trace = trace.join("../traces/tests/data/ends-at-the-marker.txt");
    let judged = |requirement: &str| {
        let room = tempfile::tempdir().expect("a directory");
        let requirements = vec![requirement.parse().expect("a requirement")];
        let cycles = CycleOptions { requirements, ..CycleOptions::default() };
        let converted =
            import_trace(&trace, &room.path().join("bundle"), None, cycles).expect("converted");
        let bundle = Bundle::open(&room.path().join("bundle")).expect("a bundle");
        (converted.exit, punctual_stats::summarize_bundle(&bundle))
    };
    let (exit, summary) = judged("wakeup max < 30us");
    assert_eq!(exit, Exit::NotMet);
    let max = |name: &str| {
        let found = summary.phases[0].series.iter().find(|series| series.name == name);
        found.and_then(|series| series.max).map(|ns| ns / 1_000)
    };
    assert_eq!((max("cyclictest/wakeup"), max("cyclictest/response")), (Some(69), Some(110)));
    assert_eq!(judged("response max < 90us").0, Exit::NotMet);
    assert_eq!(judged("response max < 1ms").0, Exit::NoEvidence);
}

/// In the middle of the script the thread ends, and another one gets its id.
fn with_a_reused_id() -> Script {
    let whole = script(&GROUPS);
    let mut events: Vec<Event> = whole.events.collect();
    events.extend(events!(
        "{}us cpu0 7/19 exit
        +1us switch X -> 9/9
        +1us fork 7
        +1us switch S -> 7/19",
        CYCLES / 2 * 1_000 + 80
    ));
    events.sort_by_key(|event| event.at);
    Script { events: events.into_iter(), ..script(&GROUPS) }
}

#[test]
fn a_reused_thread_id_gets_a_separate_series() {
    let room = tempfile::tempdir().expect("a directory");
    let directory = room.path().join("bundle");
    convert_trace(&directory, &mut with_a_reused_id(), TraceOptions::default()).expect("converted");
    let bundle = Bundle::open(&directory).expect("a bundle");
    let counts: Vec<u64> = bundle
        .all_series()
        .filter(|(_, one)| one.meta.name.ends_with("/response"))
        .map(|(_, series)| series.state.data.sample_count())
        .collect();
    // The last cycle of each does not end.
    assert_eq!(counts, [CYCLES as u64 / 2 - 1; 2]);
    // Without the end of the first they count as one thread.
    let (_room, _, one) = self::bundle(&GROUPS, CycleOptions::default());
    let of_cycles = one.all_series().filter(|(_, one)| one.meta.name.ends_with("/response"));
    assert_eq!(of_cycles.count(), 1);
}

#[test]
fn time_between_the_last_cycle_and_the_exit_is_no_sample() {
    let ending = |after: i64| {
        let room = tempfile::tempdir().expect("a directory");
        let directory = room.path().join("bundle");
        let mut events: Vec<Event> = script(&GROUPS).events.collect();
        events.extend(events!("{}us cpu0 7 exit", CYCLES * 1_000 + after));
        let mut trace = Script { events: events.into_iter(), ..script(&GROUPS) };
        let requirements = vec!["response max < 600us".parse().expect("a requirement")];
        let cycles = CycleOptions { requirements, ..CycleOptions::default() };
        let options = TraceOptions { cycles, ..TraceOptions::default() };
        let exit = convert_trace(&directory, &mut trace, options).expect("converted").exit;
        let bundle = Bundle::open(&directory).expect("a bundle");
        let said = bundle.findings.iter().find(|finding| finding.id == "time-in-no-cycle");
        (exit, said.map(|finding| finding.message.clone()))
    };
    let said = "the last 1.5 s, until exit, are in no cycle".to_owned();
    assert_eq!(ending(1_500_000), (Exit::Done, Some(said)));
    assert_eq!(ending(100), (Exit::Done, None), "it left its loop as any does");
}

/// The thread no longer waits in its loop when the trace ends.
#[test]
fn a_thread_blocked_until_the_end_of_a_trace_is_never_met() {
    let ending = |after: i64, requirement: &str| {
        let room = tempfile::tempdir().expect("a directory");
        let mut events: Vec<Event> = script(&GROUPS).events.collect();
        events.extend(events!("{}us cpu1 9 vector_entry 0xec", CYCLES * 1_000 + after));
        let mut trace = Script { events: events.into_iter(), ..script(&GROUPS) };
        let requirements = vec![requirement.parse().expect("a requirement")];
        let cycles = CycleOptions { requirements, ..CycleOptions::default() };
        let options = TraceOptions { cycles, ..TraceOptions::default() };
        let bundle = room.path().join("bundle");
        convert_trace(&bundle, &mut trace, options).expect("converted").exit
    };
    assert_eq!(ending(1_602_000, "response max < 500ms"), Exit::NotMet);
    assert_eq!(ending(1_602_000, "overruns == 0"), Exit::NotMet);
    assert_eq!(ending(1_602_000, "response max < 2s"), Exit::NoEvidence);
    assert_eq!(ending(300, "response max < 600us"), Exit::Done, "young like any other");
}

#[test]
fn cycles_are_found_in_a_recording_without_samples() {
    let (room, _, recording) = bundle(&GROUPS, CycleOptions::default());
    let directory = room.path().join("found");
    let converted = cycles_of(&recording, &directory, TraceOptions::default()).expect("found");
    let found = Bundle::open(&directory).expect("a bundle");
    assert_eq!(converted.exit, Exit::Done);
    assert_eq!(count(&found, "servo/response"), count(&recording, "servo/response"));
    let explained = explanation::of_cycles(&found, &recording, &Wanted::default());
    assert!(!explained.expect("explained").samples.is_empty());
}

#[test]
fn a_requirement_is_decided_for_the_selected_thread() {
    let of = |requirement: &str, thread: &str| {
        let requirements = vec![requirement.parse().expect("a requirement")];
        let thread = Some(thread.to_owned());
        bundle(&GROUPS, CycleOptions { thread, requirements, ..CycleOptions::default() }).1
    };
    assert_eq!(of("response max < 1ms", "servo").exit, Exit::Done);
    assert_eq!(of("response max < 200us", "servo").exit, Exit::NotMet);
    let none = of("response max < 1ms", "nobody");
    assert_eq!(none.exit, Exit::NoEvidence);
    assert!(none.none.is_some_and(|why| why.contains("servo (7)")));
}

#[test]
fn a_trace_without_switches_has_no_cycles() {
    let (_room, converted, bundle) = bundle(&[Group::Hrtimer], CycleOptions::default());
    assert!(converted.none.is_some());
    let ids: Vec<&str> = bundle.findings.iter().map(|finding| finding.id.as_str()).collect();
    assert!(ids.contains(&"trace-without-switches"), "{ids:?}");
}

#[test]
fn a_truncated_trace_is_imported_up_to_the_error() {
    struct Broken(Script, bool);
    impl TraceReader for Broken {
        fn next_event(&mut self) -> Option<Result<Event, String>> {
            match self.0.next_event() {
                Some(event) => Some(event),
                None => (!std::mem::replace(&mut self.1, true)).then(|| Err("cut off".to_owned())),
            }
        }
        fn trace_extent(&self) -> TraceExtent {
            self.0.trace_extent()
        }
    }
    let room = tempfile::tempdir().expect("a directory");
    let directory = room.path().join("bundle");
    let mut broken = Broken(script(&GROUPS), false);
    convert_trace(&directory, &mut broken, TraceOptions::default()).expect("converted");
    let bundle = Bundle::open(&directory).expect("a bundle");
    assert!(bundle.findings.iter().any(|finding| finding.id == "trace-cut-off"));
    assert_eq!(count(&bundle, "servo/response"), Some(CYCLES as u64 - 1));
}

/// Text of cycles of 1 ms whose head counts its lines.
fn counted_calls(dues: &[i64]) -> String {
    let lines = numbered_calls("", dues);
    let count = lines.lines().count();
    let head = format!("# machine: x86_64\n# entries-in-buffer/entries-written: {count}/{count}\n");
    head + &lines
}

/// The verdict on a requirement for a text, and how the bundle ends; `None` if it is refused.
fn judged(text: &[u8], requirement: &str) -> Option<(Exit, Outcome)> {
    let room = tempfile::tempdir().expect("a directory");
    let (file, directory) = (room.path().join("trace.txt"), room.path().join("bundle"));
    std::fs::write(&file, text).expect("written");
    let requirements = vec![requirement.parse().expect("a requirement")];
    let cycles = CycleOptions { requirements, ..CycleOptions::default() };
    let converted = import_trace(&file, &directory, None, cycles).ok()?;
    let bundle = Bundle::open(&directory).expect("a bundle");
    Some((converted.exit, bundle.manifest.ending.expect("it ended").outcome))
}

#[test]
fn no_truncated_or_lossy_trace_yields_the_verdict_met() {
    let every_ms: Vec<i64> = (1..20).map(|ms| ms * 1_000).collect();
    let text = counted_calls(&every_ms);
    let (met, not_met) = ("response max < 500us", "response max < 20us");
    assert_eq!(judged(text.as_bytes(), met), Some((Exit::Done, Outcome::Completed)));
    assert_eq!(judged(text.as_bytes(), not_met), Some((Exit::NotMet, Outcome::Completed)));
    // A prime, so that cuts fall anywhere in lines; and between lines.
    let ends = text.match_indices('\n').map(|(at, _)| at + 1).filter(|at| *at < text.len());
    for cut in (0..text.len()).step_by(149).chain(ends.step_by(7)) {
        let found = judged(&text.as_bytes()[..cut], met);
        assert!(found.is_none_or(|(exit, _)| exit == Exit::NoEvidence), "byte {cut}");
    }
    let cut = &text.as_bytes()[..text.len() - 3];
    let (exit, outcome) = judged(cut, not_met).expect("read");
    assert_eq!(exit, Exit::NotMet, "what is not met stays so");
    assert!(matches!(outcome, Outcome::CutOff { .. }), "{outcome:?}");
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    // Text before the first event is not part of the trace.
    for at in (3..=lines.len()).step_by(11) {
        let damage = ["CPU:0 [LOST 500 EVENTS]\n", "  servo-7 [000] d..2.  100.0 sched_sw\n"];
        for added in damage {
            let text = [&lines[..at].concat(), added, &lines[at..].concat()].concat();
            let of = |requirement| judged(text.as_bytes(), requirement).map(|(exit, _)| exit);
            assert_eq!(of(met), Some(Exit::NoEvidence), "{added} before line {at}");
            assert_eq!(of(not_met), Some(Exit::NotMet), "{added} before line {at}");
        }
    }
}

/// The bundle of another tool's file.
fn imported(file: &str) -> (tempfile::TempDir, Bundle) {
    let room = tempfile::tempdir().expect("a directory");
    let directory = room.path().join("bundle");
    let data = concat!(env!("CARGO_MANIFEST_DIR"), "/../traces/tests/data");
    let (thread, deadline) = (Some("servo".to_owned()), Some(Nanos::from_millis(1)));
    let cycles = CycleOptions { thread, deadline, ..CycleOptions::default() };
    import_trace(&Path::new(data).join(file), &directory, None, cycles).expect("imported");
    let bundle = Bundle::open(&directory).expect("a bundle");
    (room, bundle)
}

/// The largest parts of the worst responses, with their culprits and times in microseconds.
fn longest_parts(bundle: &Bundle, count: usize) -> Vec<(&'static str, Option<String>, i64)> {
    let wanted = Wanted { worst: Some(count), ..Wanted::default() };
    let explained = explanation::explain_samples(bundle, &wanted).expect("explained");
    let of_response = explained.samples.iter().filter(|one| one.series == "servo/response");
    let longest = of_response.map(|sample| {
        let parts = sample.explanation.parts.iter();
        let part = parts.max_by_key(|part| part.duration()).expect("a part");
        (
            part.cause.id(),
            part.cause.responsible_name(&explained.names),
            part.duration().ns() / 1_000,
        )
    });
    longest.collect()
}

#[test]
fn an_injected_delay_is_found_in_perf_data() {
    // A task of FIFO 90 ran for some milliseconds now and then; the thread itself saw wake-ups more
    // than 1 ms late four times, by 4119 us at most.
    let (_room, bundle) = imported("servo.perf.data");
    let worst = longest_parts(&bundle, 4);
    let hog = |(cause, who, _): &(&str, Option<String>, i64)| {
        *cause == "preempted" && who.as_deref().is_some_and(|who| who.starts_with("hog"))
    };
    assert!(worst.len() == 4 && worst.iter().all(hog), "{worst:?}");
    assert!(worst.iter().all(|(.., us)| (1_000..=4_200).contains(us)), "{worst:?}");
}

#[test]
fn an_injected_delay_is_found_in_a_perfetto_trace() {
    let (_room, bundle) = imported("servo.perfetto");
    assert_eq!(count(&bundle, "servo/response"), Some(CYCLES as u64 - 1));
    let worst = longest_parts(&bundle, 10);
    let late = worst.iter().filter(|(cause, who, us)| {
        let hog = who.as_deref().is_some_and(|who| who.starts_with("hog"));
        *cause == "preempted" && hog && (400..=410).contains(us)
    });
    assert_eq!(late.count(), 10, "{worst:?}");
}

#[test]
fn a_user_space_trace_is_refused_by_its_domain() {
    let room = tempfile::tempdir().expect("a directory");
    std::fs::create_dir(room.path().join("kernel")).expect("a directory");
    let metadata = "/* CTF 1.8 */ env { domain = \"ust\"; };";
    std::fs::write(room.path().join("kernel/metadata"), metadata).expect("a file");
    assert!(is_trace(room.path()));
    let directory = room.path().join("bundle");
    let refused = import_trace(room.path(), &directory, None, CycleOptions::default()).err();
    let refused = format!("{:?}", refused.expect("refused"));
    assert!(refused.contains("domain ust"), "{refused}");
}

/// The tracefs text of a thread that sleeps until each of these instants, in µs.
fn numbered_calls(head: &str, dues: &[i64]) -> String {
    let mut text = head.to_owned();
    let mut add = |us: i64, who: &str, what: &str| {
        let at = format!("{}.{:06}", 100 + us / 1_000_000, us % 1_000_000);
        text.push_str(&format!("{who:>22}      [000] d..1.  {at}: {what}\n"));
    };
    for pair in dues.windows(2) {
        let [due, next] = pair else { continue };
        let switch = |from: &str, to: &str| format!("sched_switch: {from} ==> {to}");
        let servo = "next_comm=servo next_pid=7 next_prio=19";
        let idle = "next_comm=swapper/0 next_pid=0 next_prio=120";
        let timer = "hrtimer=00000000aaaabbbb function=hrtimer_wakeup";
        let (now, expires) = (100_000_000_000 + due * 1_000, 100_000_000_000 + next * 1_000);
        add(*due, "<idle>-0", &format!("hrtimer_expire_entry: {timer} now={now}"));
        add(due + 1, "<idle>-0", "sched_waking: comm=servo pid=7 prio=19 target_cpu=000");
        let from = "prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R";
        add(due + 3, "<idle>-0", &switch(from, servo));
        add(due + 4, "servo-7", "sys_exit: NR 230 = 0");
        add(due + 90, "servo-7", "sys_enter: NR 230 (1, 1, 7ffd5, 0, 0, 0)");
        let start = format!("hrtimer_start: {timer} expires={expires} softexpires={expires}");
        add(due + 91, "servo-7", &format!("{start} mode=ABS"));
        let from = "prev_comm=servo prev_pid=7 prev_prio=19 prev_state=S";
        add(due + 92, "servo-7", &switch(from, idle));
    }
    text
}

/// The text as a bundle, and its limits.
fn of_text(text: &str) -> (Converted, Finding) {
    let room = tempfile::tempdir().expect("a directory");
    let (file, directory) = (room.path().join("trace.txt"), room.path().join("bundle"));
    std::fs::write(&file, text).expect("written");
    let converted =
        import_trace(&file, &directory, None, CycleOptions::default()).expect("imported");
    let bundle = Bundle::open(&directory).expect("a bundle");
    let limits = bundle.findings.iter().find(|finding| finding.id == "trace-limits");
    (converted, limits.cloned().expect("what it does not have"))
}

#[test]
fn cycles_are_found_although_their_period_changes() {
    let dues: Vec<i64> =
        (1..300).map(|ms| ms * 1_000).chain((0..120).map(|n| 300_000 + n * 4_200)).collect();
    let (converted, _) = of_text(&numbered_calls("# machine: x86_64\n", &dues));
    assert_eq!(converted.none, None);
}

#[test]
fn text_without_its_machine_suggests_adding_it() {
    let every_ms: Vec<i64> = (1..20).map(|ms| ms * 1_000).collect();
    let of = |head: &str| of_text(&numbered_calls(head, &every_ms));
    let (converted, limits) = of("# machine: x86_64\n");
    assert_eq!(converted.none, None);
    assert!(converted.described.iter().any(|line| line.contains("clock_nanosleep")));
    assert!(!limits.message.contains("system call"), "{}", limits.message);

    let (converted, limits) = of("");
    assert!(!converted.described.iter().any(|line| line.contains("clock_nanosleep")));
    assert!(limits.message.contains("no names of system calls"), "{}", limits.message);
    let said = [converted.none.unwrap_or_default(), limits.remedy.unwrap_or_default()].concat();
    assert!(said.contains("`# machine: NAME`"), "{said}");
}
