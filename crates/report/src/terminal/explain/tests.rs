//! Output for explained samples.

use super::*;
use punctual_bundle::explanation::EventSource;
use punctual_core::event::{Futex, Recorded, TaskName, TaskState};
use punctual_core::{CpuSet, Event, EventKind, MonotonicNs, Tid};
use punctual_explain::explain::{LatencyInterval, StartKind, explain};
use punctual_explain::gaps::Gaps;
use punctual_explain::threads::Coverage;

const CONTROL: Tid = Tid(7);
const OWN: i16 = 19;

fn event(us: i64, cpu: u16, tid: u32, what: EventKind) -> Event {
    Event { at: MonotonicNs(us * 1_000), cpu, tid: Tid(tid), what }
}

fn switch(us: i64, cpu: u16, prev: (u32, i16), prev_state: TaskState, next: (u32, i16)) -> Event {
    event(
        us,
        cpu,
        prev.0,
        EventKind::Switch { prev_prio: prev.1, prev_state, next: Tid(next.0), next_prio: next.1 },
    )
}

fn names() -> Names {
    let task = |comm: &str, scheduling: &str| TaskName {
        process: 1,
        comm: comm.to_owned(),
        scheduling: Some(scheduling.to_owned()),
    };
    Names {
        tasks: [
            (CONTROL, task("control", "SCHED_FIFO 80")),
            (Tid(5), task("stress-ng-fork", "SCHED_OTHER")),
            (Tid(6), task("mid", "SCHED_FIFO 50")),
            (Tid(8), task("low", "SCHED_FIFO 10")),
            (Tid(9), task("\u{1b}[31mevil\n", "SCHED_OTHER")),
        ]
        .into(),
        vectors: [(0xec, "local_timer".to_owned())].into(),
        syscalls: [(56, "clone".to_owned()), (202, "futex".to_owned())].into(),
        softirqs: [(3, "NET_RX".to_owned())].into(),
        ..Names::default()
    }
}

/// A timer interrupt is delayed, and a fork is not preempted; a thread with a hostile name runs
/// briefly.
fn spike() -> Explained {
    let events = vec![
        event(0, 0, 5, EventKind::SyscallEnter { number: 56, args: [0; 2] }),
        event(1_030, 0, 5, EventKind::VectorEntry { vector: 0xec }),
        event(1_032, 0, 5, EventKind::Waking { task: CONTROL, prio: OWN, target: 0 }),
        event(1_033, 0, 5, EventKind::Wakeup { task: CONTROL, prio: OWN, target: 0, new: false }),
        event(1_038, 0, 5, EventKind::VectorExit { vector: 0xec }),
        event(1_040, 0, 5, EventKind::SoftirqEntry { vector: 3 }),
        event(1_100, 0, 5, EventKind::SoftirqExit { vector: 3 }),
        switch(2_500, 0, (5, 120), TaskState::Preempted, (9, 0)),
        switch(2_540, 0, (9, 0), TaskState::Sleeping, (7, OWN)),
    ];
    explained(events, StartKind::Timer, (1_000, 2_545), "timer/cpu0")
}

/// A low-priority task holds a lock, and a middle-priority one keeps it from running.
fn inversion() -> Explained {
    let events = vec![
        switch(0, 0, (0, 120), TaskState::Preempted, (7, OWN)),
        event(1_000, 0, 7, EventKind::FutexEnter { op: Futex::Wait, address: 64 }),
        switch(1_010, 0, (7, OWN), TaskState::Sleeping, (8, 89)),
        switch(1_050, 0, (8, 89), TaskState::Preempted, (6, 49)),
        switch(6_000, 0, (6, 49), TaskState::Sleeping, (8, 89)),
        event(6_020, 0, 8, EventKind::Waking { task: CONTROL, prio: OWN, target: 0 }),
        event(6_021, 0, 8, EventKind::Wakeup { task: CONTROL, prio: OWN, target: 0, new: false }),
        switch(6_030, 0, (8, 89), TaskState::Preempted, (7, OWN)),
        event(6_035, 0, 7, EventKind::FutexExit { op: Futex::Wait, result: 0 }),
    ];
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
    let coverage = Coverage::between(due, woke);
    let explanation = explain(late, &events, &coverage, &Gaps::default());
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
    explanations(&all(samples), 5, &Rules::of(Some(&check)), &options)
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
    let text = explanations(&all(vec![spike()]), 5, &Rules::default(), &options);
    assert!(text.contains("\u{1b}[97;41mAAAA"), "{text:?}");
    assert!(!text.contains("\u{1b}[31m"), "{text:?}");
}
