use super::*;
use crate::explain::{Explanation, LatencyInterval, Part, StartKind};
use punctual_bundle::explanation::EventSource;
use punctual_bundle::state::SeriesState;
use punctual_bundle::{Bundle, Outcome, PhaseMeta, PlannedRequests, SeriesMeta};
use punctual_core::event::{Recorded, Tid};
use punctual_core::{Clock, ClockNs, CpuSet, Fact, MonotonicNs, Sample, SeriesData, SeriesShape};
use punctual_stats::{PhaseView, RunView, SeriesView, summarize_run};
use punctual_testing::parse_names;
use std::path::Path;

const MS: i64 = 1_000_000;

fn attached(name: &str, cycle: &str, scheduling: &str, requirements: &[&str]) -> SeriesMeta {
    SeriesMeta {
        name: name.to_owned(),
        measure: name.split('/').next().unwrap_or_default().to_owned(),
        workload: "program".to_owned(),
        scheduling: scheduling.to_owned(),
        real_time: scheduling.starts_with("SCHED_FIFO"),
        details: [("cycle", cycle), ("requested", scheduling)]
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into(),
        clock: Clock::Monotonic,
        cpus: CpuSet::from_cpu(0),
        period: Some(Nanos::MILLI),
        tid: Some(7),
        requirements: requirements.iter().map(|text| text.to_string()).collect(),
    }
}

fn state(latencies: &[i64]) -> SeriesState {
    let shape =
        SeriesShape { range: Nanos::MILLI, resolution: Nanos::MICRO, period: Some(Nanos::MILLI) };
    let mut data = SeriesData::new(shape);
    for (seq, latency) in (0..).zip(latencies) {
        let due = seq as i64 * MS;
        let woke = ClockNs(due + latency);
        data.record_sample(&Sample { seq, due: ClockNs(due), woke, cpu: 0 }, (latency / MS) as u64);
    }
    let samples_kept = data.sample_count();
    SeriesState { data, usage: Fact::NotAsked, digest: None, samples_kept, log_bytes: 8 }
}

fn phase() -> PhaseMeta {
    PhaseMeta { duration: Some(Nanos::SECOND), ..PhaseMeta::new("p", jiff::Timestamp::UNIX_EPOCH) }
}

/// The summary of a run of one phase that ended so.
fn summarized(outcome: Outcome, phase: PhaseView) -> Summary {
    let good = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/bundles/good");
    let mut manifest = Bundle::open(Path::new(good)).unwrap().manifest;
    manifest.ending.as_mut().unwrap().outcome = outcome;
    let (planned, phases) = (&PlannedRequests::default(), &[phase]);
    let (found, damage, recorded) = (&[], &[], None);
    let run = RunView { manifest: &manifest, planned, phases, found, damage, recorded };
    summarize_run(&run)
}

fn summary(all: &[(SeriesMeta, Vec<i64>)]) -> Summary {
    let states: Vec<_> = all.iter().map(|(_, latencies)| state(latencies)).collect();
    let series = all.iter().zip(&states);
    let series = series.map(|((meta, _), state)| SeriesView { meta, state, account: None });
    let meta = phase();
    let phase = PhaseView { meta: &meta, series: series.collect() };
    summarized(Outcome::Completed, phase)
}

fn name<'s>(of: &Deciding<'s>) -> &'s str {
    &of.series.name
}

#[test]
fn without_requirements_a_response_of_a_real_time_thread_decides() {
    let all = [
        (attached("ui/period", "event", "SCHED_OTHER", &[]), vec![900 * MS]),
        (attached("ui/response", "event", "SCHED_OTHER", &[]), vec![80 * MS]),
        (attached("control/execution", "absolute", "SCHED_FIFO 80", &[]), vec![70 * MS]),
        (attached("control/response", "absolute", "SCHED_FIFO 80", &[]), vec![MS, 3 * MS]),
        (attached("logger/response", "relative", "SCHED_OTHER", &[]), vec![9 * MS]),
    ];
    let all_of_them = summary(&all);
    let of = find_deciding(&all_of_them).unwrap();
    assert_eq!((name(&of), of.value, of.metric), ("control/response", 3e6, Metric::Max));
    let without_real_time = summary(&[all[0].clone(), all[1].clone(), all[4].clone()]);
    assert_eq!(name(&find_deciding(&without_real_time).unwrap()), "logger/response");
    let alone = summary(&[all[0].clone(), all[1].clone()]);
    assert_eq!(name(&find_deciding(&alone).unwrap()), "ui/response");
    assert!(find_deciding(&summary(&[])).is_none());
}

#[test]
fn a_requirement_decides_even_of_a_period() {
    let period = attached("ui/period", "event", "SCHED_OTHER", &["max < 100ms"]);
    let response = attached("control/response", "absolute", "SCHED_FIFO 80", &[]);
    let summary = summary(&[(period, vec![900 * MS]), (response, vec![3 * MS])]);
    let of = find_deciding(&summary).unwrap();
    assert_eq!((name(&of), of.late_from()), ("ui/period", Some(Nanos(100 * MS))));
    assert_eq!(of.beyond, Some(1));
}

#[test]
fn the_most_violated_requirement_decides_or_else_the_nearest_to_its_bound() {
    let of = |name: &str, requirements: &[&str]| {
        attached(name, "absolute", "SCHED_FIFO 80", requirements)
    };
    let late = vec![MS, 2 * MS, 5 * MS, 5 * MS];
    let both = summary(&[
        (of("a/response", &["max < 4ms", "overruns == 0"]), late.clone()),
        (of("b/response", &["max < 2500us"]), late.clone()),
    ]);
    let decided = find_deciding(&both).unwrap();
    assert_eq!((name(&decided), decided.beyond), ("b/response", Some(2)));
    let met = summary(&[
        (of("a/response", &["max < 6ms"]), late.clone()),
        (of("b/response", &["max < 100ms"]), late),
    ]);
    assert_eq!(name(&find_deciding(&met).unwrap()), "a/response");
}

#[test]
fn a_run_stopped_by_a_latency_is_decided_by_that_sample() {
    let stopped = Outcome::StoppedAbove {
        series: "p/control/response".to_owned(),
        latency: 8_720_000,
        limit: Some(2 * MS),
        seq: Some(7),
    };
    let series = attached("control/response", "absolute", "SCHED_FIFO 80", &[]);
    let (state, meta) = (state(&[MS, 8_720_000]), phase());
    let view = SeriesView { meta: &series, state: &state, account: None };
    let phase = PhaseView { meta: &meta, series: vec![view] };
    let summary = summarized(stopped, phase);
    let of = find_deciding(&summary).unwrap();
    assert_eq!((of.value, of.late_from()), (8_720_000.0, Some(Nanos(2 * MS))));
}

/// A sample of `control/response` with a single cause.
fn sample(due: i64, woke: i64, cause: Cause, prio: Option<i16>) -> Explained {
    let (due, woke) = (MonotonicNs(due), MonotonicNs(woke));
    let part = Part {
        cause,
        from: due,
        to: woke,
        cpu: Some(0),
        prio,
        stack: None,
        evidence: vec![0],
        meanwhile: Vec::new(),
    };
    let interval = LatencyInterval { tid: Tid(7), cpu: 0, due, woke, kind: StartKind::Interval };
    Explained {
        phase: "p".to_owned(),
        series: "control/response".to_owned(),
        explanation: Explanation {
            interval,
            parts: vec![part],
            chain: Vec::new(),
            wakeups: Vec::new(),
            lost: 0,
            warnings: Vec::new(),
            not_recorded: Vec::new(),
            moment: None,
        },
        events: Vec::new(),
        left_out: CpuSet::new(),
    }
}

fn explanations(samples: Vec<Explained>) -> Explanations {
    Explanations {
        source: EventSource::Windows,
        rule: None,
        recorded: Recorded::without_events("none", MonotonicNs(0)),
        names: parse_names("task 8 in 8 operator-panel; task 9 in 8 hog"),
        series: Vec::new(),
        samples,
        coincidences: None,
        findings: Vec::new(),
    }
}

const LOCK: Cause = Cause::Lock { holder: Some(Tid(8)), kernel: false };

fn control(latencies: Vec<i64>) -> Summary {
    let series = attached("control/response", "absolute", "SCHED_FIFO 80", &["max < 2ms"]);
    summary(&[(series, latencies)])
}

#[test]
fn samples_of_one_incident_count_once_with_its_first_cause() {
    let own = Cause::OwnExecution { mode: crate::explain::CpuMode::User };
    let all = explanations(vec![
        // Two released while the first waited for the lock: their own time is not a cause.
        sample(2 * MS, 7 * MS, own, None),
        sample(0, 6 * MS, LOCK, Some(120)),
        sample(4 * MS, 8 * MS, own, None),
        // A later incident, and a sample that is not late.
        sample(20 * MS, 22 * MS, Cause::PageFault, None),
        sample(40 * MS, 41 * MS, own, None),
    ]);
    let summary = control(vec![5 * MS]);
    let delayed = find_delays(&find_deciding(&summary).unwrap(), Some(&all)).unwrap();
    assert_eq!((delayed.samples, delayed.incidents), (4, Some(2)));
    let found: Vec<(Option<&str>, f64, bool)> = delayed
        .causes
        .iter()
        .map(|blame| (blame.who.as_deref(), blame.share, blame.is_held_below))
        .collect();
    assert_eq!(found, [(Some("operator-panel"), 0.75, true), (None, 0.25, false)]);
    assert_eq!(delayed.from, Nanos(2 * MS));
}

#[test]
fn a_lock_held_by_a_higher_priority_is_not_reported_as_held_below() {
    let summary = control(vec![5 * MS]);
    let is_below = |prio: Option<i16>| {
        let all = explanations(vec![sample(0, 6 * MS, LOCK, prio)]);
        find_delays(&find_deciding(&summary).unwrap(), Some(&all)).unwrap().causes[0].is_held_below
    };
    assert!(is_below(Some(98)), "FIFO 1");
    assert!(!is_below(Some(0)), "FIFO 99");
    assert!(!is_below(None), "not known");
}

#[test]
fn throttling_is_one_cause_whichever_task_ran_meanwhile() {
    let throttled = |running| Cause::Throttled {
        running: Tid(running),
        budget: crate::explain::Budget::RealTime,
    };
    let all = explanations(vec![
        sample(0, 4 * MS, throttled(8), None),
        sample(20 * MS, 24 * MS, throttled(9), None),
    ]);
    let summary = control(vec![4 * MS]);
    let delayed = find_delays(&find_deciding(&summary).unwrap(), Some(&all)).unwrap();
    assert_eq!(delayed.causes.len(), 1);
    assert_eq!((delayed.causes[0].share, delayed.causes[0].who.as_deref()), (1.0, None));
}

#[test]
fn without_recorded_events_no_cause_is_named() {
    let summary = control(vec![5 * MS]);
    let of = find_deciding(&summary).unwrap();
    assert_eq!(find_delays(&of, None), None);
    assert_eq!(find_delays(&of, Some(&explanations(Vec::new()))), None);
}

/// The same late samples divided in both ways: events that have a gap, and the kernel's accounting.
#[test]
fn kernel_accounting_is_used_if_events_leave_too_much_unattributed() {
    use punctual_bundle::SeriesAccount;
    use punctual_core::{Account, Fact, Split};
    let account = |unknown: i64| {
        let (mut account, mut split) = (Account::default(), Split::default());
        split.add(CauseKind::Irq, Nanos(2 * MS));
        split.add(CauseKind::IdleExit, Nanos(MS));
        split.add(CauseKind::Unknown, Nanos(unknown));
        account.record_split(&split);
        Fact::Known(SeriesAccount { account, ..SeriesAccount::default() })
    };
    let shown = |open: i64, account: Option<Fact<SeriesAccount>>| {
        let control = attached("control/response", "absolute", "SCHED_FIFO 80", &["max < 2ms"]);
        let (phase, state) = (phase(), state(&[3 * MS]));
        let series = SeriesView { meta: &control, state: &state, account: account.as_ref() };
        let phase = PhaseView { meta: &phase, series: vec![series] };
        let summary = summarized(Outcome::Completed, phase);
        let mut late = sample(0, 3 * MS, Cause::PageFault, None);
        let rest = Part { from: MonotonicNs(3 * MS - open), ..late.explanation.parts[0].clone() };
        late.explanation.parts[0].to = rest.from;
        late.explanation.parts.push(Part { cause: Cause::Unknown, evidence: Vec::new(), ..rest });
        let delayed =
            find_delays(&find_deciding(&summary).unwrap(), Some(&explanations(vec![late])));
        let delayed = delayed.expect("causes");
        (matches!(delayed.causes[0].what, Blamed::Kind(CauseKind::Irq)), delayed.left_open)
    };
    let half = 3 * MS / 2;
    assert_eq!(shown(half, Some(account(0))), (true, Some(0.5)));
    assert_eq!(shown(half, Some(account(3 * MS))), (false, None), "it leaves as much open");
    assert_eq!(shown(half, None), (false, None), "it was not divided there");
    assert_eq!(shown(MS / 10, Some(account(0))), (false, None), "events leave little open");
}

/// The places of a thread: with most stacks at `line`.
fn places(name: &str, line: &str) -> punctual_bundle::meta::MeasureMeta {
    use punctual_core::Column;
    let columns = [("what", ""), ("line", ""), ("stacks", "count"), ("in longest cycles", "count")];
    let row = |line: &str, stacks: u64, longest: u64| {
        let words = CauseKind::Lock.words();
        vec![Cell::from(words), Cell::from(line), Cell::from(stacks), Cell::from(longest)]
    };
    let mut measure = MeasureMeta {
        name: name.to_owned(),
        workload: ATTACHED_WORKLOAD.to_owned(),
        ..MeasureMeta::default()
    };
    measure.notes.tables.push(Table {
        name: PLACES.to_owned(),
        title: String::new(),
        columns: columns.map(|(name, unit)| Column::new(name, unit)).into(),
        rows: vec![row("seldom.cpp:1", 90, 1), row(line, 7, 9)],
    });
    measure
}

#[test]
fn delays_have_the_lines_of_their_own_thread() {
    let states = [state(&[5 * MS]), state(&[4 * MS])];
    let metas = [
        attached("ui/response", "absolute", "SCHED_FIFO 80", &[]),
        attached("control/response", "absolute", "SCHED_FIFO 80", &[]),
    ];
    let measures = vec![places("ui", "ui.cpp:7"), places("control", "control.cpp:142")];
    let meta = PhaseMeta { measures, ..phase() };
    let series = metas.iter().zip(&states);
    let series = series.map(|(meta, state)| SeriesView { meta, state, account: None }).collect();
    let summary = summarized(Outcome::Completed, PhaseView { meta: &meta, series });
    let of = find_deciding(&summary).unwrap();
    assert_eq!(name(&of), "ui/response");
    // Only the other thread is explained.
    let delayed =
        find_delays(&of, Some(&explanations(vec![sample(0, 4 * MS, LOCK, None)]))).unwrap();
    assert_eq!(delayed.series.as_deref(), Some("control/response"));
    assert_eq!(delayed.causes[0].at.as_deref(), Some("control.cpp:142"));
}

#[test]
fn several_tasks_of_a_control_group_are_one_culprit() {
    use punctual_core::Column;
    let table = |name: &str, columns: &[&str], row: Vec<Cell>| Table {
        name: name.to_owned(),
        title: String::new(),
        columns: columns.iter().map(|name| Column::new(name, "")).collect(),
        rows: vec![row],
    };
    let named_with = |tasks: u64| {
        let mut measure = places("control", "control.cpp:142");
        let groups = vec![Cell::from("docker 3f2a9c1b7d44"), Cell::from(tasks)];
        measure.notes.tables.push(table("culprits", &["task"], vec![Cell::from("hog-77")]));
        measure.notes.tables.push(table("culprit-groups", &["group", "tasks"], groups));
        let of = |part| find_culprit_name(&measure, part);
        (of(CauseKind::Preempted), of(CauseKind::Lock))
    };
    let group = "docker 3f2a9c1b7d44 (3 tasks), mostly hog-77";
    assert_eq!(named_with(3), (Some(group.to_owned()), None));
    assert_eq!(named_with(1), (Some("hog-77".to_owned()), None), "one task names itself");
}
