//! Kinds of input that were once misread: several runs in one text, samples elsewhere, other
//! layouts and tools. Input that cannot be read completely is refused.

use super::*;
use crate::meta::TIMER_WORKLOAD;

macro_rules! field {
    ($name:literal) => {
        include_str!(concat!("../testdata/field/", $name))
    };
}

macro_rules! jitterdebugger {
    ($name:literal) => {
        include_bytes!(concat!("../testdata/jitterdebugger-0.3/", $name))
    };
}

fn imported_bytes(bytes: &[u8], options: &ImportOptions) -> Bundle {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("b");
    import_results(&mut &*bytes, &directory, options, no_figures).unwrap();
    Bundle::open(&directory).unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("a text")
}

const SECOND: &str = "a second run begins here";

#[test]
fn several_runs_in_one_text_are_refused() {
    let said = refused(field!("cyclictest-two-runs.log"));
    assert!(said.starts_with("line 4: a second run begins here"), "{said}");
    let said = refused(field!("hwlatdetect-two-runs.txt"));
    assert!(said.starts_with("line 18: a second run begins here"), "{said}");
    for one in [
        include_str!("../testdata/rt-tests-2.4/status.txt"),
        include_str!("../testdata/rt-tests-2.6/status-q.txt"),
        include_str!("../testdata/rt-tests-2.4/verbose.txt"),
        include_str!("../testdata/rt-tests-2.4/cyclicdeadline.txt"),
        include_str!("../testdata/rt-tests-2.4/oslat.txt"),
        include_str!("../testdata/rt-tests-2.4/hwlatdetect.txt"),
        include_str!("../testdata/rtla-6.1/timerlat.txt"),
        include_str!("../testdata/rtla-6.12/osnoise.txt"),
        include_str!("../testdata/new-layout.txt"),
        text(jitterdebugger!("status.txt")),
    ] {
        assert!(check_input(one.as_bytes(), &ImportOptions::default()).is_ok(), "{one}");
        // The second run has other threads, as always.
        let other = one.replace("T: 0 ( ", "T: 0 (").replace("T: 0 (", "T: 0 (9");
        let both = check_input(format!("{one}{other}").as_bytes(), &ImportOptions::default());
        let said = both.map_or_else(|why| why.to_string(), |()| "it was read".into());
        let known = [SECOND, "a second histogram", "a second line"];
        assert!(known.iter().any(|known| said.contains(known)), "{said} of {one}");
    }
    let json = include_str!("../testdata/none.json");
    let said = refused(&format!("{json}{json}"));
    assert!(said.contains("a second document begins here"), "{said}");
}

#[test]
fn a_live_display_is_one_run() {
    let line = |cycles: u64, min: i64, max: i64| {
        format!("T: 0 (  801) P:90 I:1000 C: {cycles} Min: {min} Act: 5 Avg: 4 Max: {max}\n")
    };
    let live = [line(0, 1_000_000, -1_000_000), line(5, 4, 9), line(9, 3, 9)].concat();
    assert!(check_input(live.as_bytes(), &ImportOptions::default()).is_ok());
    for (second, why) in [
        (line(8, 3, 9), "fewer cycles"),
        (line(10, 3, 8), "a smaller maximum"),
        (line(10, 3, 9).replace("801", "901"), "another thread"),
    ] {
        assert!(refused(&format!("{live}{second}")).contains(SECOND), "{why}");
    }
}

#[test]
fn output_of_old_hwlatdetect_without_field_names_is_imported() {
    let bundle = imported(field!("hwlatdetect-before-ts.txt"));
    let of = series(&bundle);
    let figures = |series: &Series| {
        let data = &series.state.data;
        (data.sample_count(), data.min, data.max)
    };
    let us = |us: i64| Some(Nanos::MICRO * us);
    assert_eq!(figures(of[0]), (3, us(15), us(18)));
    assert_eq!(figures(of[1]), (3, us(17), us(21)));
    assert!(!finding_ids(&bundle).contains(&"source-inconsistent"));
}

#[test]
fn samples_that_are_elsewhere_are_asked_for() {
    let whole = field!("hwlatdetect-before-ts.txt");
    let head: String = whole.split_inclusive('\n').take(13).collect();
    let said = refused(&head);
    assert!(said.contains("3 samples were recorded, 0 are in it"), "{said}");
    let named = head.replace("Output File:       None", "Output File:       /tmp/x.report");
    assert!(refused(&named).contains("import the report \"/tmp/x.report\""), "{}", refused(&named));
    let one_less: String = whole.split_inclusive('\n').take(15).collect();
    assert!(refused(&one_less).contains("3 samples were recorded, 2 are in it"));
    let options = ImportOptions { from: Some(Tool::Hwlatdetect), ..ImportOptions::default() };
    assert!(check_input(b"hello\n", &options).is_err());
}

#[test]
fn an_empty_histogram_blames_no_option() {
    let bundle = imported(field!("osnoise-empty.txt"));
    assert_eq!(series(&bundle)[0].state.data.sample_count(), 0);
    assert_eq!(bundle.phases[0].meta.duration, Some(Nanos::SECOND * 5));
    let nothing = bundle.findings.iter().find(|f| f.id == "nothing-recorded").expect("it is said");
    assert!(nothing.message.contains("no noise above the tool's threshold"), "{nothing:?}");
    // A count without a column is not such a histogram.
    let odd = field!("osnoise-empty.txt").replace("count: 0", "count: 7");
    assert!(refused(&odd).contains("1 numbers in this row, 0 columns"), "{}", refused(&odd));
}

#[test]
fn indented_output_is_imported_like_plain_output() {
    let indented = field!("timerlat-indented.txt");
    let plain: String = indented.lines().map(|line| format!("{}\n", line.trim())).collect();
    let figures = |text: &str| -> Vec<(String, u64, Option<Nanos>)> {
        let bundle = imported(text);
        let of = |series: &&Series| {
            (series.meta.name.clone(), series.state.data.sample_count(), series.state.data.max)
        };
        series(&bundle).iter().map(of).collect()
    };
    assert_eq!(figures(indented), figures(&plain));
    assert_eq!(figures(indented).len(), 8);
    for text in [
        include_str!("../testdata/rt-tests-2.6/status-q.txt"),
        include_str!("../testdata/rt-tests-2.4/oslat.txt"),
        include_str!("../testdata/rt-tests-2.4/hwlatdetect.txt"),
        include_str!("../testdata/two.txt"),
        include_str!("../testdata/two.json"),
    ] {
        let indented: String = text.lines().map(|line| format!("    {line}\n")).collect();
        assert_eq!(figures(&indented), figures(text));
    }
}

#[test]
fn a_policy_is_that_of_each_thread() {
    let status = |policy: &str| {
        format!(
            "policy: {policy}: loadavg: 0.1 0.1 0.1 1/99 801\n\
             T: 0 (  801) P:80 I:1000 C: 10 Min: 1 Act: 5 Avg: 4 Max: 9\n\
             T: 1 (  802) P: 0 I:1000 C: 10 Min: 1 Act: 5 Avg: 4 Max: 9\n"
        )
    };
    let policies = |policy: &str| -> Vec<String> {
        let bundle = imported(&status(policy));
        series(&bundle).iter().map(|series| series.meta.scheduling.clone()).collect()
    };
    assert_eq!(policies("other"), ["SCHED_OTHER", "SCHED_OTHER"]);
    assert_eq!(policies("other/other"), ["SCHED_OTHER", "SCHED_OTHER"]);
    assert_eq!(policies("fifo/other"), ["SCHED_FIFO", "SCHED_OTHER"]);
    assert_eq!(policies("rr"), ["SCHED_RR", "SCHED_RR"]);
    // Without -p and --policy, JSON of cyclictest is from threads that are not real-time.
    let json = include_str!("../testdata/none.json");
    let line = json.lines().find(|line| line.contains("\"cmdline:\"")).expect("it has one");
    let plain = json.replace(line, "  \"cmdline:\": \"cyclictest -t 1 -q --json=x\",");
    let bundle = imported(&plain);
    let meta = &series(&bundle)[0].meta;
    assert_eq!((meta.scheduling.as_str(), meta.real_time), ("SCHED_OTHER", false));
}

#[test]
fn the_cpu_that_hit_stop_tracing_is_named() {
    let plain = "# RTLA timerlat histogram\n# Time unit is microseconds (us)\n# Duration:   0 \
                 00:00:01\nIndex   IRQ-001   Thr-001   IRQ-002   Thr-002\n\
                 5   1   0   1   1\n9   0   1   0   0\nover:   0   0   0   0\n\
                 count:   1   1   1   1\nmin:   5   9   5   5\navg:   5   9   5   5\n\
                 max:   5   9   5   5\n";
    let outcome = |text: &str| imported(text).manifest.ending.unwrap().outcome;
    assert_eq!(outcome(plain), Outcome::Completed);
    let analysed = "rtla timerlat hit stop tracing\n## CPU 2 hit stop tracing, analyzing it ##\n\
                    IRQ handler delay:      1.30 us (0.11 %)\n--------\n\
                    IRQ latency:   5.20 us (100%)\n";
    assert_eq!(outcome(&format!("{plain}{analysed}")), stopped_above("CPU 2/irq", 5_200));
}

#[test]
fn json_of_an_unsupported_tool_is_refused_by_name() {
    for (json, expected) in [
        ("{\"fio version\": \"fio-3.33\", \"jobs\": []}", "this is JSON of fio"),
        ("{\"results\": [{\"command\": \"ls\"}]}", "this is JSON of hyperfine"),
        ("{\"context\": {}, \"benchmarks\": []}", "this is JSON of Google Benchmark"),
        ("{\"a\": 1, \"b\": [{}]}", "JSON of no known tool; its keys are \"a\", \"b\""),
        ("{}", "an empty JSON object"),
    ] {
        let said = refused(json);
        assert!(said.contains(expected) && said.contains("jitterdebugger"), "{said}");
    }
}

#[test]
fn jitterdebugger_results_are_imported_exactly() {
    let bundle = imported(text(jitterdebugger!("results.json")));
    let of = series(&bundle);
    let names: Vec<&str> = of.iter().map(|series| series.meta.name.as_str()).collect();
    assert_eq!(names, ["thread 0", "thread 1"]);
    for (series, max) in of.iter().zip([31_458, 31_264]) {
        let data = &series.state.data;
        assert_eq!((data.sample_count(), data.exact.bins.len()), (200, 1_000));
        assert_eq!((data.min, data.max), (Some(Nanos::MICRO * 9), Some(Nanos::MICRO * max)));
        assert_eq!(data.exact.total_count(), 200);
        assert_eq!((series.meta.workload.as_str(), series.meta.real_time), (TIMER_WORKLOAD, true));
        assert!(series.meta.cpus.is_empty(), "threads are numbered, not CPUs");
    }
    assert!(of[0].state.data.exact.above > 0);
    let ns = imported(text(jitterdebugger!("results-ns.json")));
    assert_eq!(series(&ns)[0].state.data.exact.resolution, Nanos(1));
    // Before 0.2 it had only the histogram; a thread without a cycle has no mean.
    let old = "{\"cpu\": {\"0\": {\"histogram\": {\"3\": 2}, \"count\": 2, \"min\": 3, \"max\": 3, \
               \"avg\": 3.00}, \"1\": {\"histogram\": {}, \"count\": 0, \"min\": \
               18446744073709551615, \"max\": 0, \"avg\": -nan}}}";
    let bundle = imported(old);
    assert_eq!(
        series(&bundle).iter().map(|s| s.state.data.sample_count()).collect::<Vec<_>>(),
        [2, 0]
    );
    let wrong = old.replace("\"count\": 2", "\"count\": 1");
    assert!(refused(&wrong).contains("2 in its histogram, but only 1 in all"));
}

#[test]
fn jitterdebuggers_lines_and_results_agree() {
    let (lines, json) = (
        imported(text(jitterdebugger!("status.txt"))),
        imported(text(jitterdebugger!("results.json"))),
    );
    for (index, (a, b)) in series(&lines).into_iter().zip(series(&json)).enumerate() {
        let (data, other) = (&a.state.data, &b.state.data);
        assert_eq!(
            (data.sample_count(), data.min, data.max),
            (other.sample_count(), other.min, other.max)
        );
        assert_eq!(a.meta.cpus.to_string(), index.to_string());
        assert_eq!(a.meta.scheduling, "SCHED_FIFO");
        assert!((data.mean().unwrap() - other.mean().unwrap()).abs() < 1.0, "two decimals");
    }
    let live = imported(text(jitterdebugger!("live.txt")));
    assert_eq!(series(&live)[1].state.data.sample_count(), 106);
    let hit = format!(
        "{}Thread 4605 on CPU 1 hit 31264 ns latency\n",
        text(jitterdebugger!("status.txt"))
    );
    let stopped = imported(&hit);
    assert_eq!(series(&stopped)[0].state.data.max, Some(Nanos(31_458)), "the line names the unit");
    assert_eq!(stopped.manifest.ending.unwrap().outcome, stopped_above("thread 1", 31_264));
}

#[test]
fn jitterdebuggers_samples_are_a_distribution() {
    let raw = jitterdebugger!("samples.raw");
    let bundle = imported_bytes(raw, &ImportOptions::default());
    let of = series(&bundle);
    // The newest sample of one thread was never stored.
    assert_eq!(of.iter().map(|s| s.state.data.sample_count()).sum::<u64>(), raw.len() as u64 / 28);
    assert_eq!(of[0].state.data.min, Some(Nanos::MICRO * 9));
    assert_eq!(of[0].state.data.max, Some(Nanos::MICRO * 31_458));
    assert!(finding_ids(&bundle).contains(&"last-samples-missing"));
    let ns = ImportOptions { nanoseconds: true, ..ImportOptions::default() };
    let bundle = imported_bytes(jitterdebugger!("samples-ns.raw"), &ns);
    assert_eq!(series(&bundle)[0].state.data.exact.resolution, Nanos(1));
    let refused =
        |bytes: &[u8]| check_input(bytes, &ImportOptions::default()).unwrap_err().to_string();
    assert!(refused(&raw[..raw.len() - 5]).contains("it ends within a sample"));
    assert!(refused(&[&raw[..], &raw[..]].concat()).contains(SECOND));
    let other = ImportOptions { from: Some(Tool::Oslat), ..ImportOptions::default() };
    let said = check_input(raw, &other).unwrap_err().to_string();
    assert!(said.contains("this is the output of jitterdebugger, not of oslat"), "{said}");
    // Times of 32 bits.
    let record = |at: u32| {
        let fields: [&[u8]; 4] =
            [&1u32.to_le_bytes(), &at.to_le_bytes(), &500u32.to_le_bytes(), &7u64.to_le_bytes()];
        fields.concat()
    };
    let short = imported_bytes(&[record(1), record(2)].concat(), &ImportOptions::default());
    assert_eq!(series(&short)[0].state.data.max, Some(Nanos::MICRO * 7));
}

proptest! {
    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), cut in 0usize..400) {
        let _ = check_input(&bytes, &ImportOptions::default());
        let raw = jitterdebugger!("samples.raw");
        let mut damaged = raw[..raw.len() - cut].to_vec();
        let place = cut * 7 % damaged.len();
        damaged[place] ^= 0xff;
        let _ = check_input(&damaged, &ImportOptions::default());
    }
}
