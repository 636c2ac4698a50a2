//! Output for explained samples.

use super::*;
use punctual_bundle::explanation::EventSource;
use punctual_core::event::Recorded;
use punctual_core::{CpuSet, Event, MonotonicNs, Tid};
use punctual_explain::explain::{LatencyInterval, StartKind, explain_sample};
use punctual_explain::gaps::Gaps;
use punctual_explain::threads::Coverage;
use punctual_testing::{events, parse_names};

const CONTROL: Tid = Tid(7);
fn names() -> Names {
    let mut names = parse_names(
        "task 7 in 1 control SCHED_FIFO 80; task 5 in 1 stress-ng-fork SCHED_OTHER
        task 6 in 1 mid SCHED_FIFO 50; task 8 in 1 low SCHED_FIFO 10; task 9 in 1 x SCHED_OTHER
        vector 236 local_timer; syscall 56 clone; syscall 202 futex; softirq 3 NET_RX",
    );
    names.tasks.get_mut(&Tid(9)).unwrap().comm = "\u{1b}[31mevil\n".to_owned();
    names
}

/// A timer interrupt is delayed, and a fork is not preempted; a thread with a hostile name runs
/// briefly.
fn spike() -> Explained {
    let events = events!(
        "0 cpu0 5 sys_enter 56
        1030us vector_entry 0xec; 1032us waking 7/19; 1033us wakeup 7/19; 1038us vector_exit 0xec
        1040us softirq_entry 3; 1100us softirq_exit 3
        2500us switch R -> 9/0
        2540us switch S -> 7/19"
    );
    explained(events, StartKind::Timer, (1_000, 2_545), "timer/cpu0")
}

/// A low-priority task holds a lock, and a middle-priority one keeps it from running.
fn inversion() -> Explained {
    let events = events!(
        "0 cpu0 0 switch R -> 7/19
        1000us futex_enter wait 64
        1010us switch S -> 8/89
        1050us switch R -> 6/49
        6000us switch S -> 8/89
        6020us waking 7/19; 6021us wakeup 7/19
        6030us switch R -> 7/19
        6035us futex_exit wait"
    );
    explained(events, StartKind::Interval, (1_000, 6_040), "mutex/wait")
}

fn explained(
    events: Vec<Event>,
    kind: StartKind,
    (due, woke): (i64, i64),
    series: &str,
) -> Explained {
    let (due, woke) = (MonotonicNs(due * 1_000), MonotonicNs(woke * 1_000));
    let late = LatencyInterval { tid: CONTROL, cpu: 0, due, woke, kind };
    let coverage = Coverage::from_span(due, woke);
    let explanation = explain_sample(late, &events, &coverage, &Gaps::default());
    let (phase, series) = ("main".to_owned(), series.to_owned());
    Explained { phase, series, explanation, events, left_out: CpuSet::new() }
}

fn all(samples: Vec<Explained>) -> Explanations {
    Explanations {
        source: EventSource::Windows,
        rule: None,
        recorded: Recorded::without_events("none", MonotonicNs(0)),
        names: names(),
        series: Vec::new(),
        samples,
        coincidences: None,
        findings: Vec::new(),
    }
}

fn shown(samples: Vec<Explained>, width: usize) -> String {
    let check = serde_json::json!({"rules": [
        {
            "id": "preemption-model", "verdict": "warning", "message": "the model is voluntary",
            "fix": "boot a PREEMPT_RT kernel",
        },
        {"id": "packet-steering", "verdict": "ok", "message": "no queue is steered", "fix": null},
    ]});
    let options = ShowOptions { width, ascii: false, ..ShowOptions::default() };
    show_explanations(&all(samples), 5, &Rules::from_document(Some(&check)), &options)
}

#[test]
fn an_explained_spike_fits_into_80_columns() {
    let text = shown(vec![spike()], 80);
    assert!(text.lines().all(|line| crate::format::width_of(line) <= 80), "{text}");
    insta::assert_snapshot!(text, @r#"
    main/timer/cpu0: 1 of 1 sample
      Latency 1,545 µs on CPU 0. For 1,402 µs stress-ng-fork (SCHED_OTHER) was not
      preempted in clone(): preemption was disabled, or this kernel is not
      preemptible there (2 times); for 60.0 µs the softirq NET_RX ran; for 40.0 µs
      \u{1b}[31mevil\n (real-time priority 99) ran with a higher priority. The other
      43.0 µs are 3 shorter parts.
      |DEBBBAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAACC|
            µs  cause                           who
      A  1,402  running task not preempted      stress-ng-fork (SCHED_OTHER) in clo…
      B   60.0  softirq                         NET_RX
      C   40.0  preempted by a higher priority  \u{1b}[31mevil\n (real-time priorit…
      D   30.0  timer interrupt delayed         stress-ng-fork (SCHED_OTHER) in clo…
      E   8.00  interrupt handler               local_timer
      F   5.00  own execution
      hidden: terminal too narrow: share

    Culprits: 1,545 µs in 1 sample, times in µs
      cause                           who                share   time  samples
      running task not preempted      stress-ng-fork    90.7 %  1,402        1
      softirq                         NET_RX             3.9 %   60.0        1
      preempted by a higher priority  \u{1b}[31mevil\n   2.6 %   40.0        1
      timer interrupt delayed         stress-ng-fork     1.9 %   30.0        1
      interrupt handler               local_timer        0.5 %   8.00        1
      own execution                                      0.3 %   5.00        1
      hidden: terminal too narrow: longest in, longest

    What to do
      · running task not preempted (stress-ng-fork), 90.7 %: A PREEMPT_RT kernel is
        preemptible nearly everywhere; on other kernels, keep this task off the CPU.
        check preemption-model: the model is voluntary; boot a PREEMPT_RT kernel
    "#);
}

#[test]
fn an_explained_inversion_fits_into_120_columns() {
    let text = shown(vec![inversion(), spike()], 120);
    assert!(text.lines().all(|line| crate::format::width_of(line) <= 120), "{text}");
    insta::assert_snapshot!(text, @r#"
    main/mutex/wait: 1 of 1 sample
      5,040 µs on CPU 0. For 4,950 µs mid (SCHED_FIFO 50), of lower priority than the thread, ran on CPU 0 and kept low
      (SCHED_FIFO 10), which held the lock, from running: a priority inversion. The other 90.0 µs are 4 shorter parts.
      |BAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAB|
            µs    share  cause                       who
      A  4,950   98.2 %  priority inversion          mid (SCHED_FIFO 50); low (SCHED_FIFO 10) held the lock
      B   60.0    1.2 %  waiting for a lock          low (SCHED_FIFO 10)
      C   20.0    0.4 %  own execution
      D   9.00    0.2 %  running task not preempted  low (SCHED_FIFO 10)
      E   1.00  < 0.1 %  wake-up in progress

      chain of wake-ups (µs since the sample was due):
      1 control (SCHED_FIFO 80) waited for a lock for 5,010 µs, until low (SCHED_FIFO 10) woke it at 5,020 µs (sched_waking,
        CPU 0)

    main/timer/cpu0: 1 of 1 sample
      Latency 1,545 µs on CPU 0. For 1,402 µs stress-ng-fork (SCHED_OTHER) was not preempted in clone(): preemption was
      disabled, or this kernel is not preemptible there (2 times); for 60.0 µs the softirq NET_RX ran; for 40.0 µs
      \u{1b}[31mevil\n (real-time priority 99) ran with a higher priority. The other 43.0 µs are 3 shorter parts.
      |DDABBBAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAACCC|
            µs   share  cause                           who
      A  1,402  90.7 %  running task not preempted      stress-ng-fork (SCHED_OTHER) in clone()
      B   60.0   3.9 %  softirq                         NET_RX
      C   40.0   2.6 %  preempted by a higher priority  \u{1b}[31mevil\n (real-time priority 99)
      D   30.0   1.9 %  timer interrupt delayed         stress-ng-fork (SCHED_OTHER) in clone()
      E   8.00   0.5 %  interrupt handler               local_timer
      F   5.00   0.3 %  own execution

    Culprits: 6,585 µs in 2 samples, times in µs
      cause                           who                 share   time  samples  longest in  longest
      priority inversion              low                75.2 %  4,950        1           1    4,950
      running task not preempted      stress-ng-fork     21.3 %  1,402        1           1    1,402
      waiting for a lock              low                 0.9 %   60.0        1           0     60.0
      softirq                         NET_RX              0.9 %   60.0        1           0     60.0
      preempted by a higher priority  \u{1b}[31mevil\n    0.6 %   40.0        1           0     40.0
      timer interrupt delayed         stress-ng-fork      0.5 %   30.0        1           0     30.0
      own execution                                       0.4 %   25.0        2           0     20.0
      running task not preempted      low                 0.1 %   9.00        1           0     9.00
      interrupt handler               local_timer         0.1 %   8.00        1           0     8.00
      wake-up in progress                               < 0.1 %   1.00        1           0     1.00

    What to do
      · priority inversion (low), 75.2 %: Use a mutex with priority inheritance (PTHREAD_PRIO_INHERIT): low then runs with
        the priority of the waiting thread. Hold the lock for a shorter time.
      · running task not preempted (stress-ng-fork), 21.3 %: A PREEMPT_RT kernel is preemptible nearly everywhere; on other
        kernels, keep this task off the CPU.
        check preemption-model: the model is voluntary; boot a PREEMPT_RT kernel
    "#);
}

/// The culprit is the answer: shares are hidden first, then the end of the name.
#[test]
fn the_legend_keeps_the_culprit_in_80_columns_and_fewer() {
    let legend = |width: usize| {
        let text = shown(vec![inversion()], width);
        assert!(text.lines().all(|line| crate::format::width_of(line) <= width), "{text}");
        let lines = text
            .lines()
            .skip_while(|line| !line.ends_with("who"))
            .take_while(|line| !line.is_empty());
        lines.map(|line| format!("{line}\n")).collect::<String>()
    };
    insta::assert_snapshot!(legend(80), @r#"
          µs  cause                       who
    A  4,950  priority inversion          mid (SCHED_FIFO 50); low (SCHED_FIFO 10…
    B   60.0  waiting for a lock          low (SCHED_FIFO 10)
    C   20.0  own execution
    D   9.00  running task not preempted  low (SCHED_FIFO 10)
    E   1.00  wake-up in progress
    hidden: terminal too narrow: share
    "#);
    assert!(legend(60).contains("priority inversion          mid (SCHED_FIFO"), "{}", legend(60));
}

#[test]
fn explaining_no_samples_prints_a_message() {
    assert_eq!(shown(Vec::new(), 80), "No sample or interval matches.\n");
}

#[test]
fn colour_is_used_for_the_bar_and_names_are_escaped() {
    let options = ShowOptions { color: true, ..ShowOptions::default() };
    let text = show_explanations(&all(vec![spike()]), 5, &Rules::default(), &options);
    assert!(text.contains("\u{1b}[97;41mAAAA"), "{text:?}");
    assert!(!text.contains("\u{1b}[31m"), "{text:?}");
}
