use super::*;

fn run(created: &str, p99: f64) -> BaselineRun {
    BaselineRun {
        schema: RECORD.to_owned(),
        created: created.parse().expect("a time"),
        machine: "A model, 4 CPUs".into(),
        experiment: "gate/../../etc".into(),
        digest: "d".into(),
        kernel: "6.12 PREEMPT_RT".into(),
        commit: None,
        bundle: None,
        verdict: None,
        begins: false,
        found: None,
        figures: vec![punctual_bundle::baseline::KeptFigure {
            name: "main/t p99".into(),
            value: p99,
            is_time: true,
            is_main: true,
        }],
        environment: BTreeMap::new(),
    }
}

fn baseline(place: &Path) -> Baseline {
    Baseline { directory: place.join("history"), commit: None, required: false }
}

#[test]
fn baseline_records_are_read_in_order_of_creation() {
    let place = tempfile::tempdir().expect("a directory");
    let baseline = baseline(place.path());
    baseline.check_directory().expect("it can be made");
    for created in ["2026-11-03T00:00:00Z", "2026-11-01T00:00:00Z", "2026-11-02T00:00:00Z"] {
        baseline.store_record(&run(created, 1.0)).expect("it is kept");
    }
    let record = run("2026-11-04T00:00:00Z", 1.0);
    let kept = baseline.records_directory(&record);
    assert!(kept.starts_with(&baseline.directory) && kept.is_dir(), "{}", kept.display());
    let mut history = RunHistory::read(&kept).expect("it is read");
    let days: Vec<String> = history.runs.iter().map(|run| run.created.to_string()).collect();
    assert_eq!(days[0], "2026-11-01T00:00:00Z");
    assert_eq!((days.len(), history.files.len()), (3, 3));
    // Later runs, and other versions, are not before it.
    let record = BaselineRun { digest: "other".into(), ..run("2026-11-02T12:00:00Z", 1.0) };
    assert_eq!(history.retain_comparable(&record), 3);
    let mut history = RunHistory::read(&kept).expect("it is read");
    assert_eq!(history.retain_comparable(&run("2026-11-02T12:00:00Z", 1.0)), 0);
    assert_eq!(history.runs.len(), 2);
}

#[test]
fn hostile_baseline_records_are_omitted_with_the_reason() {
    let place = tempfile::tempdir().expect("a directory");
    let baseline = baseline(place.path());
    baseline.store_record(&run("2026-11-01T00:00:00Z", 1.0)).expect("it is kept");
    let kept = baseline.records_directory(&run("2026-11-01T00:00:00Z", 1.0));
    for (name, text) in [("a.json", "{"), ("b.json", "[]"), ("c.json", "\u{0}")] {
        std::fs::write(kept.join(name), text).expect("written");
    }
    std::fs::write(kept.join("large.json"), vec![b' '; MOST_BYTES as usize + 1]).expect("written");
    std::os::unix::fs::symlink("/etc/passwd", kept.join("link.json")).expect("linked");
    let newer =
        BaselineRun { schema: "punctual-baseline/9".into(), ..run("2026-11-01T00:00:00Z", 1.0) };
    std::fs::write(kept.join("new.json"), serde_json::to_vec(&newer).expect("JSON"))
        .expect("written");
    let history = RunHistory::read(&kept).expect("it is read");
    assert_eq!((history.runs.len(), history.left_out.len()), (1, 6), "{:?}", history.left_out);
}

#[test]
fn a_history_begins_with_the_last_accepted_run() {
    let mut history = RunHistory::default();
    for day in 1..=5 {
        let begins = day == 3;
        let created = format!("2026-11-0{day}T00:00:00Z");
        history.runs.push(BaselineRun { begins, ..run(&created, 1.0) });
    }
    history.from_begin();
    assert_eq!(history.runs.len(), 3);
}

#[test]
fn a_regression_is_reported_with_the_changed_environment() {
    let with = |day: usize, p99: f64, kernel: &str| {
        let created = format!("2026-10-{:02}T00:00:00Z", day + 1);
        let environment = BTreeMap::from([("kernel".to_owned(), kernel.to_owned())]);
        BaselineRun { environment, ..run(&created, p99) }
    };
    let before: Vec<BaselineRun> = (0..20)
        .map(|day| with(day, 40_000.0 + ((day * 7) % 11) as f64 * 100.0, "6.12.1"))
        .chain((20..23).map(|day| with(day, 90_000.0, "6.12.2")))
        .collect();
    let held =
        punctual_stats::baseline::compare_with_baseline(&before, &with(23, 91_000.0, "6.12.2"));
    let [worse] = &held.worse[..] else { panic!("{held:?}") };
    assert_eq!((worse.runs, worse.figure.as_str()), (4, "main/t p99"));
    assert_eq!(worse.since, before[20].created);
    assert_eq!(worse.changed, ["kernel: 6.12.1 -> 6.12.2"]);
    let held = punctual_stats::baseline::compare_with_baseline(
        &before[..20],
        &with(20, 40_300.0, "6.12.1"),
    );
    assert!(held.worse.is_empty() && held.missing == 0, "{held:?}");
    assert!(held.smallest.expect("a step").by < 1.1);
    let held = punctual_stats::baseline::compare_with_baseline(
        &before[..5],
        &with(20, 90_000.0, "6.12.1"),
    );
    assert_eq!((held.runs, held.missing), (5, 7));
}

/// With the records of an older version, which have no state, and of each run, with a record
/// removed.
#[test]
fn a_detected_change_persists_despite_missing_or_hostile_records() {
    let value = |day: usize| {
        (40_000.0 + ((day * 7) % 11) as f64 * 100.0) * [1.0, 46.0][usize::from(day >= 17)]
    };
    let created = |day: usize| format!("2026-{:02}-{:02}T00:00:00Z", 1 + day / 28, 1 + day % 28);
    let (mut kept, mut older) = (Vec::new(), Vec::new());
    for day in 0..60 {
        let record = run(&created(day), value(day));
        let held = punctual_stats::baseline::compare_with_baseline(&kept, &record);
        assert_eq!(held.worse.is_empty(), day < 19, "{day}: {held:?}");
        if day % 10 == 9 {
            let of_older = punctual_stats::baseline::compare_with_baseline(&older, &record);
            assert_eq!(of_older.worse, held.worse, "{day}");
        }
        older.push(record.clone());
        kept.push(BaselineRun { found: Some(found_changes(&held)), ..record });
    }
    // A run that lacks the figure does not end it, nor does a state that names a missing run.
    let mut damaged = kept.clone();
    damaged.remove(17);
    let without = BaselineRun { figures: Vec::new(), ..run("2026-06-01T00:00:00Z", 1.0) };
    let held = punctual_stats::baseline::compare_with_baseline(&damaged, &without);
    assert_eq!(held.worse.len(), 1, "{held:?}");
    let nowhere =
        FoundChange { figure: "none".into(), since: "2020-01-01T00:00:00Z".parse().unwrap() };
    let late =
        FoundChange { figure: "main/t p99".into(), since: "2030-01-01T00:00:00Z".parse().unwrap() };
    damaged.last_mut().unwrap().found = Some(vec![nowhere, late]);
    punctual_stats::baseline::compare_with_baseline(&damaged, &run("2026-06-01T00:00:00Z", 1e300));
}
