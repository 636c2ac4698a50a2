//! The output for intervals and occupancy.

use punctual_bundle::intervals::*;
use punctual_bundle::summary::VerdictWord;
use punctual_report::terminal::{ShowOptions, show_occupancy, show_pairs};
use std::collections::BTreeMap;

fn figures(count: u64, min: i64, max: i64) -> IntervalFigures {
    IntervalFigures {
        count,
        min: Some(min),
        mean: Some((min + max) as f64 / 2.0),
        median: Some(min),
        max: Some(max),
        stddev: Some(1.0),
        percentiles: BTreeMap::from([("50".to_owned(), min)]),
        unsupported_percentiles: BTreeMap::from([("99".to_owned(), 1_000)]),
    }
}

fn covered(lost: u64) -> Covered {
    Covered { began: 1_000_000_000, ended: 2_000_000_000, lost, untracked: 0 }
}

fn worst() -> WorstInterval {
    let ran = |kind: &str, who: &str, tid, ns| RanTask {
        cpu: 2,
        kind: kind.into(),
        who: who.into(),
        tid,
        ns,
    };
    WorstInterval {
        latency: 104_200,
        seq: 7,
        from: 1_250_000_000,
        to: 1_250_104_200,
        tid: 7,
        task: "wor\u{1b}ker".into(),
        value: Some(-3),
        states: vec![
            StateShare { state: "ready".into(), ns: 80_000 },
            StateShare { state: "running".into(), ns: 24_200 },
        ],
        ran: vec![
            ran("task", "stress-ng", Some(99), 70_000),
            ran("irq", "irq 5 virtio0", None, 2_000),
        ],
    }
}

fn limit(verdict: VerdictWord, violations: u64, reason: Option<&str>) -> Option<LimitSummary> {
    Some(LimitSummary {
        limit: "< 100us".into(),
        verdict,
        violations,
        reason: reason.map(str::to_owned),
    })
}

fn scope(name: &str, overlapping: u64) -> ScopeSummary {
    ScopeSummary {
        name: name.into(),
        figures: figures(120, 9_000, 104_200),
        exclusive: figures(120, 4_000, 99_000),
        total: 2_400_000,
        exclusive_total: 600_000,
        share: Some(0.25),
        threads: 2,
        recursive: 0,
        overlapping,
        open: 0,
        uncertain: 0,
    }
}

#[test]
fn intervals_are_shown_with_unmatched_events_and_the_worst_case() {
    let pair = PairSummary {
        name: "request->reply".into(),
        by: "value".into(),
        rule: "async".into(),
        figures: figures(120, 9_000, 104_200),
        unmatched_from: 1,
        unmatched_to: 0,
        uncertain: UncertainSummary { count: 2, max: Some(200_000) },
        limit: limit(VerdictWord::NotMet, 1, None),
        worst: vec![worst()],
        histogram: vec![(9_000, 119), (104_200, 1)],
    };
    let function = FunctionSummary {
        name: "fopen".into(),
        object: "/lib/libc.so.6".into(),
        figures: figures(30, 2_000, 6_000),
        exclusive: figures(29, 1_000, 3_000),
        exclusive_unknown: 1,
        period: figures(29, 1_000_000, 2_000_000),
        left: 1,
        limit: limit(
            VerdictWord::Undecided,
            0,
            Some("events were lost: a violation may be among them"),
        ),
        worst: Vec::new(),
        histogram: vec![(2_000, 30)],
    };
    let bucket = |start, min, max| ValueSummary {
        start,
        count: 2,
        min,
        mean: (min + max) as f64 / 2.0,
        max,
    };
    let document = PairsDocument {
        schema: PAIRS_SCHEMA.into(),
        covered: covered(5),
        verdict: Some(VerdictWord::NotMet),
        pairs: vec![pair],
        scopes: vec![scope("cycle", 1), scope("cycle.send", 0)],
        functions: vec![function],
        values: vec![ValueCurve {
            point: "load".into(),
            index: 0,
            width: 10,
            buckets: vec![bucket(0, -4, 8), bucket(10, 2, 4)],
        }],
        coincidences: None,
        findings: Vec::new(),
    };
    let options = ShowOptions { width: 100, ..ShowOptions::default() };
    insta::assert_snapshot!(show_pairs(&document, 1, &options), @r#"
    pairs (µs)
      from->to        matched by    count   min  mean   p50    max  no end  no begin  uncertain
      request->reply  value, async    120  9.00  56.6  9.00  104.2       1         0          2
      uncertain: matches that span lost events, which may include the true partner; in no other figure

    scopes, with and without those within them (µs)
      scope       calls   share  exclusive   min  median   max  inclusive   min  median    max  threads
      cycle         120  25.0 %      600.0  4.00    4.00  99.0      2,400  9.00    9.00  104.2        2
      cycle.send    120  25.0 %      600.0  4.00    4.00  99.0      2,400  9.00    9.00  104.2        2
      share: of the exclusive time of all scopes; exclusive: a thread's time while no scope that began
      later was open, all calls together, then of one call; inclusive: all calls together from begin to
      end, recursion once, then of one call
      cycle: 1 ended while a scope that began later was open, which counts the time from its start on

    functions (µs)
      function  count   min  mean   p50   max  exclusive mean  exclusive max  period mean  left
      fopen        30  2.00  4.00  2.00  6.00            2.00           3.00        1,500     1
      exclusive mean: without the probed functions that it called; period mean: from call to call in one
      thread; left: by longjmp, an exception or the end of the thread, in no other figure
      the exclusive time of 1 call is unknown: inner calls may be missing

    distributions (number of samples by latency, both logarithmic)
      request->reply                             █                                           ▁
      fopen           █
                      2.00                            14.4                            104.2 µs

    the worst (µs)
         104.2  request->reply wor\u{1b}ker (tid 7) at 0.250000 s, value -3
                it was ready 80.0, running 24.2
                ran: stress-ng (tid 99) on CPU 2 70.0; irq irq 5 virtio0 on CPU 2 2.00

    values of points
      point  count  min  mean  max
      load       4   -4   2.5    8

    limits
      ✗ NOT MET  request->reply < 100us: 1 of 120 beyond it
      ? undecided  fopen < 100us: events were lost: a violation may be among them

    5 events missing from this recording
    "#);
}

#[test]
fn occupancy_is_shown_in_shares() {
    let times = ActivityTimes {
        running: 250_000_000,
        ready: 10_000_000,
        sleeping: 740_000_000,
        voluntary: 12,
        ..ActivityTimes::default()
    };
    let thread = ThreadOccupancy {
        tid: 7,
        name: "worker".into(),
        times,
        longest_ready: Some(1),
        longest_ready_at: Some(2),
    };
    let document = OccupancyDocument {
        schema: OCCUPANCY_SCHEMA.into(),
        covered: covered(0),
        contradictions: 1,
        cpus: vec![CpuOccupancy {
            cpu: 0,
            busy: 250_000_000,
            idle: 700_000_000,
            unknown: 50_000_000,
            interrupts: 3_000_000,
            switches: 24,
            tasks: vec![RanTask {
                cpu: 0,
                kind: "task".into(),
                who: "worker".into(),
                tid: Some(7),
                ns: 250_000_000,
            }],
        }],
        processes: vec![ProcessOccupancy {
            process: Some(7),
            name: "worker".into(),
            times,
            threads: vec![thread],
        }],
        interrupts: vec![InterruptOccupancy {
            kind: "irq".into(),
            name: "irq 5 virtio0".into(),
            cpu: 0,
            count: 100,
            ns: 3_000_000,
            max: 90_000,
        }],
        findings: Vec::new(),
    };
    let options = ShowOptions { width: 110, ..ShowOptions::default() };
    insta::assert_snapshot!(show_occupancy(&document, false, &options), @r#"
    CPUs: shares of the recorded time
      CPU    busy  interrupts    idle  unknown  switches  largest shares
        0  25.0 %       0.3 %  70.0 %    5.0 %        24  worker 25.0 %

    processes: shares of one CPU, times in µs
      name    PID  running  ready  sleeping  blocked  unknown  longest ready  voluntary  involuntary  migrations
      worker    7   25.0 %  1.0 %    74.0 %    0.0 %    0.0 %          0.001         12            0           0
      hidden: terminal too narrow: other

    interrupts (µs)
      name           kind  CPU  count  share  mean   max
      irq 5 virtio0  irq   0      100  0.3 %  30.0  90.0
      share: of one CPU, without nested interrupts; max: with nested interrupts

    1 event contradicting earlier ones: the time between is unknown
    "#);
    assert!(show_occupancy(&document, true, &options).contains("threads: shares of one CPU"));
}
