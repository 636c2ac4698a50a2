//! The moments of traces that others recorded, as `explain` finds them, with what their reports
//! came to. Some of the recordings are of others, who published them.

use super::{Converted, import_trace};
use crate::cycles::CycleOptions;
use crate::explanation::{self, Wanted};
use punctual_bundle::Bundle;
use punctual_bundle::summary::SeriesSummary;
use punctual_core::Tid;
use punctual_explain::explain::{Cause, Part};
use punctual_explain::{Explained, Explanations};
use punctual_report::answer;
use punctual_report::remedies::Rules;
use punctual_report::sentence::explain::sample_paragraph;
use std::path::{Path, PathBuf};

const CYCLICTEST: &[u8] =
    include_bytes!("../../../traces/tests/data/cyclictest-without-system-calls.perf.data.gz");

fn data_path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../traces/tests/data").join(name)
}

/// A trace that was made into a bundle, and what is asked of it.
struct ImportedTrace {
    _room: tempfile::TempDir,
    bundle: Bundle,
    converted: Converted,
}

fn import_bundle(trace: &Path) -> ImportedTrace {
    let room = tempfile::tempdir().expect("a directory");
    let directory = room.path().join("bundle");
    let converted =
        import_trace(trace, &directory, None, CycleOptions::default()).expect("converted");
    let bundle = Bundle::open(&directory).expect("a bundle");
    ImportedTrace { _room: room, bundle, converted }
}

fn of_text(text: &str) -> ImportedTrace {
    let room = tempfile::tempdir().expect("a directory");
    let path = room.path().join("trace.txt");
    std::fs::write(&path, text).expect("written");
    import_bundle(&path)
}

impl ImportedTrace {
    fn explain_wanted(&self, wanted: &Wanted) -> Explanations {
        let found = explanation::explain_samples(&self.bundle, wanted).expect("explained");
        assert!(found.samples.iter().all(Explained::adds_up));
        found
    }
}

fn latency_us(sample: &Explained) -> i64 {
    sample.explanation.latency().ns() / 1_000
}

/// The time of a cause in a sample, in ns.
fn cause_time(sample: &Explained, cause: &str) -> i64 {
    let parts = sample.explanation.parts.iter().filter(|part| part.cause.id() == cause);
    parts.map(|part| part.duration().ns()).sum()
}

#[test]
fn a_trace_is_explained_by_the_moment_that_it_points_at() {
    // Of each: how many moments, the series and length in us of the first, and its sentences.
    let cases: [(&str, usize, &str, i64, &[&str]); 3] = [
        (
            "ends-at-the-marker.txt",
            1,
            "cyclictest/marked",
            72,
            &[
                "The trace says: hit latency threshold (72 > 30).",
                "within the context switch to it",
            ],
        ),
        (
            "wakeup_rt-latency-format.txt",
            1,
            "cyclictest/wakeup-tracer",
            55_060,
            &[
                "The trace says: wakeup_rt: 55060 us.",
                "55,060 µs on CPU 4.",
                "kswapd() (SCHED_OTHER) was not preempted",
                "99.8 % of it (54,973 µs) were between two lines of CPU 4, from \
             isolate_lru_folios ‹ shrink_inactive_list on, with interrupts disabled at both.",
            ],
        ),
        (
            "osnoise-events.txt",
            1,
            "osnoise/7/osnoise",
            34,
            &[
                "kworker/7:0 ran on CPU 7",
                "irq/179-dcvsh-i ran on CPU 7",
                "8.49 µs no event proves a cause",
                "It began with the interrupt irq 179 dcvsh-irq-7: its thread ran, irq/179-dcvsh-i \
                 for 4.74 µs, and directly after that kworker/7:0 for 21.0 µs (no event",
            ],
        ),
    ];
    for (file, count, series, length, says) in cases {
        let found = import_bundle(&data_path(file)).explain_wanted(&Wanted::default());
        let first = found.samples.first().expect(file);
        let sentences = sample_paragraph(&first.explanation, &found.names, &first.events);
        assert_eq!(
            (first.series.as_str(), latency_us(first)),
            (series, length),
            "{file}: {sentences}"
        );
        assert_eq!(found.samples.len(), count, "{file}");
        for part in says {
            assert!(sentences.contains(part), "{file}: {sentences}");
        }
        let note = found.findings.iter().find(|finding| finding.id == "moments").expect(file);
        assert!(!note.message.contains('\n'), "{}", note.message);
    }
}

/// The head is about the moment for which the recording was stopped, and not about all cycles.
#[test]
fn a_marked_moment_is_in_the_head_with_its_causes_and_what_to_do() {
    let imported = import_bundle(&data_path("ends-at-the-marker.txt"));
    let summary = punctual_stats::summarize_bundle(&imported.bundle);
    let explained = explanation::of_answer(&imported.bundle, &summary);
    let evidence = answer::AnswerEvidence { explained, replayed: None };
    let answer = answer::build_answer(&summary, &evidence, &Rules::default());
    let delayed = answer.delayed_by.expect("its causes");
    assert_eq!((delayed.series.as_deref(), delayed.samples), (Some("cyclictest/marked"), 1));
    assert_eq!((delayed.causes[0].cause.as_str(), delayed.from), ("switch", 72_000));
    assert!((0.87..0.88).contains(&delayed.causes[0].share));
    assert!(answer.to_do[0].contains("address space"), "{:?}", answer.to_do);
}

#[test]
fn noises_are_the_originators_of_an_osnoise_sample_and_the_rest_is_not_named() {
    let found = import_bundle(&data_path("osnoise-events.txt")).explain_wanted(&Wanted::default());
    let sample = &found.samples[0];
    assert_eq!(
        (cause_time(sample, "runqueue"), cause_time(sample, "task-noise")),
        (0, 4_740 + 20_990)
    );
    assert_eq!(cause_time(sample, "irq"), 3 * 104);
    assert_eq!(cause_time(sample, "unknown"), 34_531 - 4_740 - 20_990 - 312);
    let who = |place: usize| sample.explanation.parts[place].cause.responsible_name(&found.names);
    assert_eq!(who(1).as_deref(), Some("irq 179 dcvsh-irq-7"));
    assert_eq!(sample.explanation.moment.as_ref().map(|of| of.noises.len()), Some(5));
}

fn import_cyclictest() -> ImportedTrace {
    let room = tempfile::tempdir().expect("a directory");
    let path = room.path().join("perf.data");
    let mut file = std::fs::File::create(&path).expect("a file");
    std::io::copy(&mut flate2::read::GzDecoder::new(CYCLICTEST), &mut file).expect("unpacked");
    import_bundle(&path)
}

/// A cycle whose end is not known has no response time: waits of 100 ms were in some of them.
#[test]
fn without_system_calls_the_real_time_thread_decides_and_its_longest_cycle_was_preempted() {
    let imported = import_cyclictest();
    let summary = punctual_stats::summarize_bundle(&imported.bundle);
    let deciding = punctual_explain::answer::find_deciding(&summary).expect("a figure");
    assert_eq!(deciding.series.name, "cyclictest-2/response");
    assert!((1_284_000..1_400_000).contains(&(deciding.value as i64)));
    let series = || summary.phases[0].series.iter();
    for other in series().filter(|one| one.name.ends_with("/response")) {
        assert!(other.max.is_none_or(|max| max < 2_000_000), "{}: {:?}", other.name, other.max);
    }
    let wakeup = |one: &SeriesSummary| one.name.ends_with("/wakeup") && !one.real_time;
    assert!(series().any(|one| wakeup(one) && one.count > 10));
    let found = imported.explain_wanted(&Wanted { worst: Some(1), ..Wanted::default() });
    let worst = found.samples.iter().find(|one| one.series == deciding.series.name);
    let worst = worst.expect("a sample");
    let visitor = |part: &&Part| matches!(part.cause, Cause::Preempted { by: Tid(31_467), .. });
    let preempted = worst.explanation.parts.iter().filter(visitor).map(|part| part.duration().ns());
    let preempted = preempted.sum::<i64>();
    assert!(preempted > worst.explanation.latency().ns() * 9 / 10, "{preempted}");
    // What else is in it is in one line.
    let note = found.findings.iter().find(|finding| finding.id == "moments").expect("a note");
    let says = "explained: the longest cycles; also in it: ";
    assert!(note.message.starts_with(says) && note.message.contains("wake-ups (the longest"));
}

/// Without system calls, on a kernel that hides switches from the idle task.
#[test]
fn a_wake_up_and_the_cycles_of_a_thread_are_named() {
    let imported = import_cyclictest();
    assert_eq!(imported.converted.none, None);
    let thread = |name: &str| Wanted { thread: Some(name.to_owned()), ..Wanted::default() };
    let found = imported.explain_wanted(&thread("31469"));
    let worst = &found.samples[0];
    assert!(worst.series.starts_with("cyclictest"), "{}", worst.series);
    assert!((1_284..1_400).contains(&latency_us(worst)), "{}", latency_us(worst));
    // An interval of a thread by its id.
    let at = Some("4385.0..4385.1".parse().expect("an interval"));
    let found = imported.explain_wanted(&Wanted { at, ..thread("31469") });
    assert_eq!(
        (found.samples[0].series.as_str(), latency_us(&found.samples[0])),
        ("cyclictest/named", 100_000)
    );
    // No such thread: those that there are.
    let refused =
        explanation::explain_samples(&imported.bundle, &thread("nosuch")).expect_err("refused");
    let message = format!("{refused:?}");
    assert!(
        message.contains("no thread `nosuch`") && message.contains("cyclictest (31469)"),
        "{message}"
    );
}

/// Fewer than the ten cycles that are needed: the wake-ups are the moments. Where the trace ends
/// before the thread runs, its latency is a lower bound.
#[test]
fn wake_ups_are_moments_and_one_that_has_not_ended_is_a_lower_bound() {
    let whole = std::fs::read_to_string(data_path("not-throttled.txt")).expect("read");
    let lines: Vec<&str> = whole.lines().collect();
    let woken =
        lines.iter().rposition(|line| line.contains("sched_waking: comm=schbench pid=28773"));
    let woken = woken.expect("a wake-up");
    let text = |to: usize| format!("{}\n", lines[woken - 8..to].join("\n"));
    let first = |text: &str| {
        let found = of_text(text).explain_wanted(&Wanted::default());
        let longest =
            found.samples.iter().max_by_key(|sample| latency_us(sample)).expect("a wake-up");
        let sentences = sample_paragraph(&longest.explanation, &found.names, &longest.events);
        (longest.series.clone(), latency_us(longest), sentences)
    };
    let (series, length, sentences) = first(&text(lines.len()));
    assert_eq!((series.as_str(), length), ("schbench/wake-up", 60_237), "{sentences}");
    assert!(sentences.contains("ran on CPU 4"), "{sentences}");
    let (series, length, sentences) = first(&text(woken + 4));
    assert!(series == "schbench/wake-up" && length <= 60_237, "{length}: {sentences}");
    assert!(sentences.contains("its latency is a lower bound"), "{sentences}");
}

#[test]
fn a_trace_without_moments_says_what_it_has_and_how_to_record_more() {
    let imported =
        of_text("# tracer: nop\n      servo-7  [000] .....  1.000001: myriad: value=5\n");
    assert!(!imported.converted.has_moments);
    let reason = imported.converted.none.expect("why there is nothing");
    for part in ["it has: 1 myriad", "no sched events", "recipe trace-cmd --for wakeup"] {
        assert!(reason.contains(part), "{reason}");
    }
    let finding = imported.bundle.findings.iter().find(|finding| finding.id == "no-cycles-found");
    assert!(finding.is_some_and(|finding| !finding.message.contains('\n')));
    let table = self::import_bundle(&data_path("osnoise-table.txt")).converted;
    assert!(table.none.is_some_and(|why| why.contains("punctual import")) && !table.has_moments);
}

/// The examples of the kernel's documentation (Documentation/trace/ftrace.rst), shortened.
#[test]
fn every_latency_tracer_states_its_moment_in_its_head() {
    let file = |tracer: &str, head: &str, lines: &str| {
        let (latency, task) = head.split_once('|').expect("two parts");
        of_text(&format!(
            "# tracer: {tracer}\n#\n# {tracer} latency trace v1.1.5 on 3.8.0-test+\n# latency: \
             {latency} | (M:preempt VP:0, KP:0, SP:0 HP:0 #P:4)\n#    -----------------\n#    | \
             task: {task} (uid:0 nice:0 policy:0 rt_prio:0)\n#    -----------------\n#  => \
             started at: ata_scsi_queuecmd\n#  => ended at:   ata_scsi_queuecmd\n#\n{lines}"
        ))
    };
    let irqsoff = "    bash-2042    3d...    0us+: _raw_spin_lock_irqsave <-ata_scsi_queuecmd\n    \
                 bash-2042    3d..1   71us : _raw_spin_unlock_irqrestore <-ata_scsi_queuecmd\n    \
                   bash-2042    3d..1  120us : <stack trace>\n => ata_scsi_queuecmd\n";
    let preemptoff = "   sshd-1991    1d.h.    0us+: irq_enter <-do_IRQ\n   sshd-1991    1d..1   \
                      46us : irq_exit <-do_IRQ\n   sshd-1991    1...1   47us+: x <-do_IRQ\n";
    let wakeup = "  <idle>-0       3dNh7    0us :      0:120:R   + [003]  2312: 94:R sleep\n  \
                  <idle>-0       3d..3   15us :      0:120:R ==> [003]  2312: 94:R sleep\n";
    let cases = [
        (
            file("irqsoff", "71 us, #4/4, CPU#3|bash-2042", irqsoff),
            "bash/irqsoff-tracer",
            71,
            "bash ran on CPU 3 with interrupts disabled",
        ),
        (
            file("preemptirqsoff", "71 us, #4/4, CPU#3|bash-2042", irqsoff),
            "bash/irqsoff-tracer",
            71,
            "bash ran on CPU 3 with interrupts disabled",
        ),
        (
            file("preemptoff", "46 us, #4/4, CPU#1|sshd-1991", preemptoff),
            "sshd/preemptoff-tracer",
            46,
            "sshd ran on CPU 1 with preemption disabled",
        ),
        (
            file("wakeup", "15 us, #2/2, CPU#3|sleep-2312", wakeup),
            "sleep/wakeup-tracer",
            15,
            "15.0 µs on CPU 3.",
        ),
        (
            file("wakeup_dl", "15 us, #2/2, CPU#3|sleep-2312", wakeup),
            "sleep/wakeup-tracer",
            15,
            "CPU 3",
        ),
    ];
    for (made, series, length, says) in cases {
        let found = made.explain_wanted(&Wanted::default());
        let first = &found.samples[0];
        let sentences = sample_paragraph(&first.explanation, &found.names, &first.events);
        assert_eq!((first.series.as_str(), latency_us(first)), (series, length), "{sentences}");
        assert!(sentences.contains(says), "{sentences}");
    }
    // A tracer without latencies has no moment in such a head.
    let nop = file("nop", "0 us, #4/4, CPU#3|-0", irqsoff);
    assert!(!nop.converted.has_moments && nop.converted.none.is_some());
}

/// In the forms in which people quote traces: shortened, with stacks, of other machines' kernels.
#[test]
fn a_quoted_trace_of_a_latency_tracer_is_explained_as_far_as_its_lines_show() {
    let head = |tracer: &str, head: &str| {
        format!(
            "# tracer: {tracer}\n#\n# {tracer} latency trace v1.1.5 on 6.6.7-rt18\n\
             # latency: {head} | (M:preempt VP:0, KP:0, SP:0 HP:0 #P:2)\n\
             #    | task: dd-70 (uid:0 nice:0 policy:0 rt_prio:0)\n\
             #  => started at: poll\n#  => ended at:   poll\n#\n"
        )
    };
    let line =
        |flags: &str, us: u32, of: &str| format!("      dd-70        1{flags} {us}us : {of}\n");
    let polls: String =
        (0..9).map(|at| line("d..1.", 10 + at * 10, "read_reg <-tx_chars")).collect();
    let stack =
        "      dd-70        1d..1.  110us : <stack trace>\n => uart_write\n => n_tty_write\n";
    let many_polls = head("irqsoff", "100 us, #11/11, CPU#1")
        + &line("d....", 1, "_raw_spin_lock_irqsave <-uart_write")
        + &polls
        + &line("d..1.", 100, "_raw_spin_unlock_irqrestore <-uart_write")
        + stack;
    let cut = head("irqsoff", "90 us, #500/500, CPU#1")
        + &line("d..1.", 0, "lock <-uart_write")
        + &line("d..1.", 90, "unlock <-uart_write");
    let both_sections = head("preemptirqsoff", "100 us, #3/3, CPU#1")
        + &line("d..1.", 0, "lock <-spin")
        + &line("...1.", 20, "spin <-down_write")
        + &line(".N.1.", 100, "leave <-down_write");
    let tick: String = (0..5).map(|_| line("d....", 0, "tick <-irq")).collect();
    let coarse =
        head("irqsoff", "10000 us, #6/6, CPU#1") + &tick + &line("d....", 10_000, "load <-tick");
    let cases: [(&str, &[&str]); 4] = [
        (
            &many_polls,
            &[
                "90.0 % of it (90.0 µs) were after 9 lines of CPU 1, from read_reg ‹ tx_chars on \
                 each time, with interrupts disabled at all.",
                "Kernel stack of dd at its end: uart_write < n_tty_write.",
            ],
        ),
        (&cut, &["This text lacks 498 lines of the trace, perhaps from there."]),
        (
            &both_sections,
            &[
                "20.0 µs dd ran on CPU 1 with interrupts disabled",
                "80.0 µs dd ran on CPU 1 with preemption disabled and interrupts enabled",
                "with interrupts enabled at both; a reschedule was requested meanwhile",
            ],
        ),
        (&coarse, &["Its clock advances by 10,000 µs at once"]),
    ];
    for (text, says) in cases {
        let found = of_text(text).explain_wanted(&Wanted::default());
        let first = &found.samples[0];
        let sentences = sample_paragraph(&first.explanation, &found.names, &first.events);
        for part in says {
            assert!(sentences.contains(part), "{part}: {sentences}");
        }
    }
}

/// A wake-up is counted from its own line on, and the tracer's stacks in the switch are no events
/// of the task that leaves.
#[test]
fn the_stacks_of_a_wakeup_tracer_begin_behind_its_own_functions() {
    let text = "# tracer: wakeup_RT\n#\n# latency: 400 us, #4/4, CPU#0 | (M:preempt VP:0, KP:0, \
                SP:0 HP:0)\n#    | task: servo-118 (uid:0 nice:0 policy:1 rt_prio:50)\n#\n  \
                telnetd-229       0Dnh4.   13us+:      229:120:R   + [000]     118: 49:R servo\n  \
                telnetd-229       0D..3.  370us+:      229:120:R ==> [000]     118: 49:R servo\n  \
                telnetd-229       0D..3.  395us : <stack trace>\n  => __trace_stack\n  => \
                probe_wakeup_sched_switch\n  => __schedule\n  => preempt_schedule_irq\n  => \
                ip_finish_output2\n  => ip_output\n";
    let found = of_text(text).explain_wanted(&Wanted::default());
    let first = &found.samples[0];
    let sentences = sample_paragraph(&first.explanation, &found.names, &first.events);
    assert_eq!(
        (first.series.as_str(), latency_us(first)),
        ("servo/wakeup-tracer", 400),
        "{sentences}"
    );
    assert_eq!(cause_time(first, "non-preemptible"), 370_000, "{sentences}");
    assert!(
        sentences.contains("telnetd at that time: ip_finish_output2 < ip_output."),
        "{sentences}"
    );
    assert!(!sentences.contains("contradict"), "{sentences}");
}

/// Times of noises are their own: a thread does not run within an interrupt.
#[test]
fn a_sample_of_timerlat_is_its_late_interrupt_and_the_noises_behind_it() {
    let text = "cc1-87 [005] d..h... 548.771078: #40 context    irq timer_latency     13000 ns\n\
                cc1-87 [005] dNLh1.. 548.771082: irq_noise: local_timer:236 start 548.771078000 \
                duration 7000 ns\n\
                cc1-87 [005] dNLh2.. 548.771099: irq_noise: qxl:21 start 548.771086000 duration \
                6000 ns\n\
                cc1-87 [005] d...3.. 548.771102: thread_noise:      cc1:87 start 548.771079000 \
                duration 9000 ns\n\
                timerlat/5-35 [005] ....... 548.771105: #40 context thread timer_latency     \
                40000 ns\n\
                timerlat/5-35 [005] ....1.. 548.771106: <stack trace>\n => timerlat_irq\n => \
                asm_sysvec_apic_timer_interrupt\n => delay_tsc\n => do_one_initcall\n";
    let found = of_text(text).explain_wanted(&Wanted::default());
    let first = &found.samples[0];
    let sentences = sample_paragraph(&first.explanation, &found.names, &first.events);
    let figures = ["timer-irq-delay", "irq", "task-noise"].map(|cause| cause_time(first, cause));
    assert_eq!(figures, [13_000, 13_000, 9_000], "{sentences}");
}

#[test]
fn samples_of_tracers_are_moments() {
    let cases = [
        // hwlat and timerlat, as Documentation/trace/{hwlat_detector,timerlat-tracer}.rst has them.
        (
            "# tracer: hwlat\n           <...>-1729  [001] d...   678.473449: #1     \
          inner/outer(us):   11/12    ts:1581527483.343962693 count:6\n",
            "hwlat",
            12,
            "hwlat polled",
        ),
        (
            "# tracer: timerlat\n          <idle>-0     [000] d.h1  54.029328: #1     context    \
             irq timer_latency       932 ns\n           <...>-867  [000] ....  54.029339: #1  \
             context thread timer_latency     11700 ns\n",
            "timerlat",
            11,
            "no event proves a cause",
        ),
        (
            "# tracer: function_graph\n 0)  cat-9   =>   dd-7\n 0)               |  shrink() {\n \
             0) ! 900.0 us    |    scan();\n 0) ! 910.1 us    |  }\n",
            "function",
            900,
            "scan ‹ shrink, 900000 ns of its own",
        ),
    ];
    for (text, word, length, says) in cases {
        let found = of_text(text).explain_wanted(&Wanted::default());
        let first = &found.samples[0];
        let sentences = sample_paragraph(&first.explanation, &found.names, &first.events);
        assert!(first.series.ends_with(&format!("/{word}")), "{}", first.series);
        assert_eq!(latency_us(first), length, "{sentences}");
        assert!(sentences.contains(says), "{sentences}");
    }
}

#[test]
fn switch_records_alone_show_how_long_a_thread_was_off_the_cpu() {
    let found = import_bundle(&data_path("switch-records-only.perf.data"))
        .explain_wanted(&Wanted::default());
    let first = &found.samples[0];
    let sentences = sample_paragraph(&first.explanation, &found.names, &first.events);
    assert_eq!((first.series.as_str(), latency_us(first)), ("sleep/off-cpu", 1_049), "{sentences}");
    assert!(sentences.contains("whether it waited or was ready is not recorded"), "{sentences}");
    assert_eq!(cause_time(first, "unknown"), first.explanation.latency().ns());
}
