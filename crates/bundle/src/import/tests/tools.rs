//! The real output of every tool is imported under its own kind with the figures of the file.

use super::*;
use crate::meta::SOURCE_RESOLUTION;

/// Every captured file of the two versions that holds a result, with the kind that it must become.
macro_rules! captured {
    ($($kind:literal: $($file:literal)*;)*) => {
        const CAPTURED: &[(&str, &str, &str)] =
            &[$($(($kind, $file, include_str!(concat!("../testdata/", $file)))),*),*];
    };
}

captured! {
    "timer":
        "rt-tests-2.4/status.txt" "rt-tests-2.4/status-q.txt" "rt-tests-2.4/status-q.json"
        "rt-tests-2.4/verbose.txt" "rt-tests-2.4/verbose.json" "rt-tests-2.4/break.json"
        "rt-tests-2.4/break.txt" "rt-tests-2.4/break-status.txt" "rt-tests-2.4/nan.json"
        "rt-tests-2.6/status.txt" "rt-tests-2.6/status-q.txt" "rt-tests-2.6/status-q.json"
        "rt-tests-2.6/verbose.txt" "rt-tests-2.6/verbose.json" "rt-tests-2.6/break.json"
        "rt-tests-2.6/break.txt" "rt-tests-2.6/break-status.txt";
    "cyclicdeadline":
        "rt-tests-2.4/cyclicdeadline.txt" "rt-tests-2.4/cyclicdeadline.json"
        "rt-tests-2.4/cyclicdeadline-b.txt" "rt-tests-2.4/cyclicdeadline-b.json"
        "rt-tests-2.6/cyclicdeadline.txt" "rt-tests-2.6/cyclicdeadline.json";
    "oslat":
        "rt-tests-2.4/oslat.txt" "rt-tests-2.4/oslat.json" "rt-tests-2.4/oslat-bias.txt"
        "rt-tests-2.4/oslat-bias.json" "rt-tests-2.6/oslat.txt" "rt-tests-2.6/oslat.json"
        "rt-tests-2.6/oslat-bias.txt" "rt-tests-2.6/oslat-bias.json" "rt-tests-2.6/oslat-fine.txt"
        "rt-tests-2.6/oslat-fine.json" "rt-tests-2.6/oslat-wide.txt" "rt-tests-2.6/oslat-wide.json";
    "hwlatdetect":
        "rt-tests-2.4/hwlatdetect.txt" "rt-tests-2.4/hwlatdetect-watch.txt"
        "rt-tests-2.4/hwlatdetect.report" "rt-tests-2.4/hwlatdetect-none.txt"
        "rt-tests-2.6/hwlatdetect.txt" "rt-tests-2.6/hwlatdetect-watch.txt"
        "field/hwlatdetect-with-smis.txt";
    "timerlat":
        "rtla-6.1/timerlat.txt" "rtla-6.1/timerlat-ns.txt" "rtla-6.1/timerlat-noirq.txt"
        "rtla-6.1/timerlat-stop.txt" "rtla-6.12/timerlat.txt" "rtla-6.12/timerlat-ns.txt"
        "rtla-6.12/timerlat-noirq.txt" "rtla-6.12/timerlat-stop.txt" "rtla-6.12/timerlat-user.txt"
        "rtla-6.1/timerlat-top.txt" "rtla-6.12/timerlat-top.txt"
        "field/timerlat-top-auto-analysis.txt"
        "field/timerlat-no-sample-on-cpu2.txt";
    "osnoise":
        "rtla-6.1/osnoise.txt" "rtla-6.1/osnoise-over.txt" "rtla-6.12/osnoise.txt"
        "rtla-6.12/osnoise-over.txt" "rtla-6.1/osnoise-top.txt" "rtla-6.12/osnoise-top.txt"
        "field/osnoise-table.txt";
    "rteval":
        "rteval-3.8/cyclictest.xml" "rteval-3.8/cyclictest.txt" "rteval-3.8/timerlat.xml";
    "perf-sched":
        "perf-6.1/timehist.txt" "perf-6.1/timehist-all.txt" "perf-6.1/sched-latency.txt"
        "field/perf-sched-timehist.txt";
    "xenomai-latency": "field/xenomai-latency.txt";
}

fn file(name: &str) -> &'static str {
    CAPTURED
        .iter()
        .find(|(_, file, _)| *file == name)
        .unwrap_or_else(|| panic!("{name} is not listed"))
        .2
}

fn named(text: &str, tool: Tool) -> Bundle {
    imported_as(text, &ImportOptions { from: Some(tool), ..ImportOptions::default() })
}

/// The smallest, largest and count of a series in µs.
fn figures(series: &Series) -> (i64, i64, u64) {
    let data = &series.state.data;
    (data.min.unwrap().ns() / 1_000, data.max.unwrap().ns() / 1_000, data.sample_count())
}

#[test]
fn every_captured_file_is_imported_with_its_workload() {
    for (kind, name, text) in CAPTURED {
        let bundle = imported(text);
        let series = series(&bundle);
        assert!(!series.is_empty(), "{name}");
        for one in &series {
            assert_eq!(one.meta.workload, *kind, "{name}");
            assert!(one.meta.details.contains_key(SOURCE_RESOLUTION), "{name}");
            let data = &one.state.data;
            let distributed = data.whole.len();
            assert!(
                distributed == data.sample_count() || distributed == 0,
                "{name}: {distributed} of {}",
                data.sample_count()
            );
            assert_eq!(distributed, data.exact.total_count(), "{name}");
        }
        // Statements of real tools about themselves are consistent, except for their known errors.
        let contradicts = finding_ids(&bundle).contains(&"source-inconsistent");
        let slips = ["cyclicdeadline-b.json", "cyclicdeadline-b.txt"];
        let known = slips.iter().any(|slip| name.ends_with(slip));
        assert!(!contradicts || known, "{name}: {:?}", bundle.findings);
    }
}

#[test]
fn a_thread_without_cycles_does_not_prevent_the_import() {
    let text = file("rt-tests-2.4/nan.json");
    assert!(text.contains("\"avg\": -nan"));
    let bundle = imported(text);
    assert_eq!(series(&bundle)[0].state.data.sample_count(), 1);
    assert_eq!(
        (series(&bundle)[1].state.data.sample_count(), series(&bundle)[1].state.data.min),
        (0, None)
    );
    // Cycles without a mean are different.
    let wrong = text.replace("\"cycles\": 0", "\"cycles\": 7");
    assert!(refused(&wrong).contains("thread 1: it has no `avg`"), "{}", refused(&wrong));
}

#[test]
fn json_and_text_agree_on_a_run_ended_by_a_latency() {
    let outcome = |name: &str| imported(file(name)).manifest.ending.unwrap().outcome;
    for (json, text) in [
        ("rt-tests-2.4/break.json", "rt-tests-2.4/break.txt"),
        ("rt-tests-2.6/break.json", "rt-tests-2.6/break.txt"),
        ("rt-tests-2.4/cyclicdeadline-b.json", "rt-tests-2.4/cyclicdeadline-b.txt"),
    ] {
        assert!(
            matches!(outcome(json), Outcome::StoppedAbove { .. }),
            "{json}: {:?}",
            outcome(json)
        );
        assert_eq!(outcome(json), outcome(text), "{json}");
    }
    assert_eq!(outcome("rt-tests-2.4/status-q.json"), Outcome::Completed);
    assert_eq!(
        outcome("rt-tests-2.4/oslat.json"),
        Outcome::Completed,
        "-b is the number of its bins"
    );
}

/// Without -f, oslat runs with time sharing, which is then the request.
#[test]
fn the_policy_stated_by_a_tool_counts_as_requested() {
    for (_, name, text) in CAPTURED {
        for one in series(&imported(text)) {
            assert!(
                one.meta.has_requested_scheduling() || one.meta.is_scheduling_unknown(),
                "{name}: {:?}",
                one.meta
            );
        }
    }
    for name in ["rt-tests-2.4/oslat.txt", "rt-tests-2.6/oslat.txt"] {
        let bundle = imported(file(name));
        let meta = &series(&bundle)[0].meta;
        assert_eq!((meta.scheduling.as_str(), meta.real_time), ("SCHED_OTHER", false), "{name}");
    }
}

#[test]
fn values_of_verbose_output_are_imported_as_distribution() {
    let text = file("rt-tests-2.4/verbose.txt");
    let bundle = imported(text);
    for (index, series) in series(&bundle).into_iter().enumerate() {
        let own = format!("{index}:");
        let values: Vec<u64> = text
            .lines()
            .map(|line| line.replace(' ', ""))
            .filter(|line| line.starts_with(&own) && line.split(':').count() == 3)
            .map(|line| line.rsplit(':').next().unwrap().parse().unwrap())
            .collect();
        assert!(values.len() > 20);
        let data = &series.state.data;
        assert_eq!(data.sample_count(), values.len() as u64);
        assert_eq!(data.max, values.iter().max().map(|max| Nanos::from_micros(*max as i64)));
        assert_eq!(data.sum, values.iter().map(|us| i128::from(*us) * 1_000).sum::<i128>());
    }
    let gap = text.replacen("       0:       3:      41\n", "", 1);
    assert_ne!(gap, text);
    let bundle = imported(&gap);
    assert!(finding_ids(&bundle).contains(&"values-missing"), "{:?}", bundle.findings);
}

#[test]
fn status_lines_hold_the_newest_figures() {
    let bundle = imported(file("rt-tests-2.4/status.txt"));
    let of = series(&bundle);
    assert_eq!((figures(of[0]), figures(of[1])), ((17, 635, 993), (21, 483, 662)));
    assert_eq!(of[0].state.data.mean(), Some(49_000.0));
    assert_eq!(of[1].meta.period, Some(Nanos::from_micros(1_500)));
    let bundle = imported(file("rt-tests-2.4/cyclicdeadline.txt"));
    assert_eq!(figures(series(&bundle)[0]), (9, 229, 248));
    assert_eq!(series(&bundle)[0].meta.scheduling, "SCHED_DEADLINE");
    // Other programs have the same lines without an interval; so have old versions of these two.
    let line = "T: 0 ( 7753) P:80 C: 10 Min: 1 Act: 2 Avg: 3 Max: 4\n";
    assert!(refused(line).contains("not the output of a tool"), "{}", refused(line));
    let old = named(line, Tool::Cyclicdeadline);
    assert_eq!(series(&old)[0].meta.workload, "cyclicdeadline");
    assert_eq!(series(&named(line, Tool::Cyclictest))[0].meta.workload, "timer");
}

#[test]
fn text_and_json_of_one_run_agree() {
    for version in ["2.4", "2.6"] {
        for tool in ["oslat", "oslat-bias", "oslat-fine", "oslat-wide"] {
            let name = |ending| format!("rt-tests-{version}/{tool}.{ending}");
            if !CAPTURED.iter().any(|(_, file, _)| *file == name("txt")) {
                continue;
            }
            let (text, json) = (imported(file(&name("txt"))), imported(file(&name("json"))));
            for (a, b) in series(&text).into_iter().zip(series(&json)) {
                let (a, b) = (&a.state.data, &b.state.data);
                assert_eq!(
                    (a.exact.resolution, a.exact.above),
                    (b.exact.resolution, b.exact.above),
                    "{tool}"
                );
                assert!(a.exact.occupied_bins().eq(b.exact.occupied_bins()), "{tool} {version}");
                assert_eq!(
                    (a.min, a.max, a.sample_count()),
                    (b.min, b.max, b.sample_count()),
                    "{tool} {version}"
                );
            }
        }
    }
}

#[test]
fn oslat_bins_are_imported_by_their_upper_edge() {
    let bundle = imported(file("rt-tests-2.4/oslat.json"));
    let first = series(&bundle)[0];
    assert_eq!(first.meta.cpus.to_string(), "0");
    assert_eq!((first.meta.scheduling.as_str(), first.meta.real_time), ("SCHED_OTHER", false));
    // `"1": 20827233` are gaps below 1 us; `"min": 1` and `"max": 52103` are upper edges in this
    // version.
    let data = &first.state.data;
    assert_eq!(data.exact.bins[0], 20_827_233);
    assert_eq!((data.exact.above, data.exact.bins.len()), (245, 19));
    assert_eq!((data.min, data.max), (Some(Nanos(0)), Some(Nanos::from_micros(52_102))));
    let newer = imported(file("rt-tests-2.6/oslat.json"));
    let data = &series(&newer)[0].state.data;
    assert_eq!(data.exact.bins[1], 11_431_735);
    assert_eq!((data.min, data.max), (Some(Nanos::MICRO), Some(Nanos::from_micros(41_667))));
    let fine = imported(file("rt-tests-2.6/oslat-fine.json"));
    let data = &series(&fine)[0].state.data;
    assert_eq!((data.exact.resolution, data.exact.bins[0]), (Nanos(200), 3_490_193));
    assert_eq!((data.min, data.max), (Some(Nanos(21)), Some(Nanos(43_225_036))));
}

#[test]
fn only_gaps_above_the_threshold_are_imported_from_hwlatdetect() {
    let bundle = imported(file("rt-tests-2.4/hwlatdetect.txt"));
    let of = series(&bundle);
    let names: Vec<&str> = of.iter().map(|series| series.meta.name.as_str()).collect();
    assert_eq!(names, ["inner", "outer"]);
    assert_eq!((figures(of[0]), figures(of[1])), ((18_326, 26_587, 6), (16_085, 33_551, 6)));
    assert_eq!(bundle.phases[0].meta.duration, Some(Nanos::SECOND * 6));
    assert!(finding_ids(&bundle).contains(&"only-above-threshold"));
    let none = imported(file("rt-tests-2.4/hwlatdetect-none.txt"));
    assert!(series(&none).iter().all(|series| series.state.data.sample_count() == 0));
    let failed = "hwlatdetect:  test duration 4 seconds\n   detector: tracer\n";
    assert!(refused(failed).contains("line 2: it ends without `Max Latency:`"));
}

#[test]
fn rtla_has_a_series_for_each_column() {
    let bundle = imported(file("rtla-6.12/timerlat-user.txt"));
    let of = series(&bundle);
    let names: Vec<&str> = of.iter().map(|series| series.meta.name.as_str()).collect();
    assert_eq!(names, ["CPU 1/irq", "CPU 1/thread", "CPU 1/user"]);
    assert_eq!((figures(of[1]), of[1].state.data.exact.above), ((81, 35_553, 939), 15));
    assert_eq!(of[1].state.data.exact.resolution, Nanos::from_micros(10));
    let ns = imported(file("rtla-6.12/timerlat-ns.txt"));
    assert_eq!(series(&ns)[0].state.data.max, Some(Nanos(367_337_622)));
    let stopped = imported(file("rtla-6.12/timerlat-stop.txt"));
    assert_eq!(series(&stopped).len(), 2, "a column of dashes is no series");
    let noise = imported(file("rtla-6.12/osnoise.txt"));
    assert_eq!(series(&noise)[1].meta.name, "CPU 1");
}

#[test]
fn a_refused_import_names_the_supported_tools() {
    let other = "{\"file_version\": 1, \"cmdline:\": \"pi_stress -D 1\", \"inversion\": 35881}";
    assert!(
        refused(other)
            .contains("\"pi_stress\" keeps no latencies of threads; known tools are cyclictest")
    );
    let options = ImportOptions { from: Some(Tool::Oslat), ..ImportOptions::default() };
    for (text, expected) in [
        (file("rtla-6.1/osnoise.txt"), "this is the output of rtla-osnoise, not of oslat"),
        (
            file("rt-tests-2.4/cyclicdeadline.json"),
            "its command line is one of cyclicdeadline, not of oslat",
        ),
    ] {
        let said = check_input(text.as_bytes(), &options).unwrap_err().to_string();
        assert!(said.contains(expected), "{said}");
    }
}

proptest! {
    #[test]
    fn no_damage_to_any_panics(
        which in 0..CAPTURED.len(),
        at in 0usize..60_000,
        cut in 0usize..40,
        with in "[ -~\n\t]{0,8}",
    ) {
        let mut text = CAPTURED[which].2.to_owned();
        let at = at % text.len();
        if text.is_char_boundary(at) && text.is_char_boundary((at + cut).min(text.len())) {
            text.replace_range(at..(at + cut).min(text.len()), &with);
        }
        for from in [None, Some(Tool::Cyclicdeadline)] {
            let _ = check_input(text.as_bytes(), &ImportOptions { from,
                ..ImportOptions::default() });
        }
    }
}
