//! `punctual compare` on real bundles and on imports, as used in a pipeline.

use crate::common::{Place, text};
use std::path::Path;
use std::process::Output;

fn fixture(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fixtures/bundles")
        .join(name)
        .display()
        .to_string()
}

/// An imported run of cyclictest with latencies (µs) spread over a hundred from this one on.
fn imported(place: &Place, name: &str, from: usize) {
    let rows: String = (0..100).map(|k| format!("{:06} {:06}\n", from + k, 400 - 3 * k)).collect();
    let total: usize = (0..100).map(|k| 400 - 3 * k).sum();
    let (max, mean) = (from + 99, from + 40);
    let footer = format!(
        "# Total: {total:09}\n# Min Latencies: {from:05}\n# Avg Latencies: {mean:05}\n# Max \
         Latencies: {max:05}\n# Histogram Overflows: 00000\n# Histogram Overflow at cycle \
         number:\n# Thread 0:\n"
    );
    place.write(&format!("{name}.txt"), format!("# Histogram\n{rows}{footer}").as_bytes());
    let import = place.punctual(&["import", &format!("{name}.txt"), "-o", name, "--name", "x"]);
    assert_eq!(import.status.code(), Some(0), "{}", text(&import));
}

fn json(output: &Output) -> serde_json::Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", text(output)))
}

#[test]
fn a_run_against_itself_has_no_difference() {
    let place = Place::with("");
    let good = fixture("good");
    let compared = place.punctual(&["compare", &good, &good, "--json", "--report", "c.html"]);
    assert_eq!(compared.status.code(), Some(0), "{}", text(&compared));
    let comparison = json(&compared);
    assert_eq!(comparison["schema"], "punctual-comparison/2");
    let series = comparison["series"].as_array().unwrap();
    assert_eq!(series.len(), 4);
    for metric in series.iter().flat_map(|s| s["metrics"].as_array().unwrap()) {
        assert!(
            ["no-significant-difference", "unsupported"]
                .contains(&metric["verdict"].as_str().unwrap()),
            "{metric}"
        );
    }
    let page = std::fs::read_to_string(place.path().join("c.html")).unwrap();
    assert!(
        page.starts_with("<!DOCTYPE html>")
            && page.contains("timer&#x2f;cpu1")
            && !page.contains("<script")
    );
}

#[test]
fn compare_fails_only_if_latencies_increased() {
    let place = Place::with("");
    for k in 0..4 {
        imported(&place, &format!("old{k}"), 10 + k % 2);
        imported(&place, &format!("new{k}"), 60 + k % 2);
    }
    let sides = "--a old0 old1 old2 old3 --b new0 new1 new2 new3";
    let compare = |rest: &str| {
        let line = format!("compare {sides} {rest}");
        place.punctual(&line.split_whitespace().collect::<Vec<_>>())
    };
    let worse = compare("--fail-if-worse p50:10us --fail-if-worse max:20% --junit j.xml");
    assert_eq!(worse.status.code(), Some(3), "{}", text(&worse));
    assert!(
        text(&worse).contains("NOT MET") && text(&worse).contains("new's median is"),
        "{}",
        text(&worse)
    );
    let xml = std::fs::read_to_string(place.path().join("j.xml")).unwrap();
    assert!(xml.contains("failures=\"2\"") && xml.contains("imported/thread 0"), "{xml}");
    assert_eq!(compare("--fail-if-worse p50:80us --require max:90us").status.code(), Some(0));
    assert_eq!(compare("--require p50:10us").status.code(), Some(3));
    // The output goes to a closed pipe.
    for json in [&[][..], &["--json"]] {
        let _ = std::fs::remove_file(place.path().join("j.xml"));
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let words = "compare --a old0 old1 old2 old3 --b new0 new1 new2 new3 --require p50:10us";
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_punctual"));
        command.args(words.split(' ')).args(["--junit", "j.xml"]).args(json);
        let status = command.current_dir(place.path()).stdout(writer).status().unwrap();
        assert_eq!(status.code(), Some(3));
        assert!(place.path().join("j.xml").exists(), "a closed pipe loses no file");
    }
    // In the opposite order it is an improvement.
    let better = "compare --a new0 new1 new2 new3 --b old0 old1 old2 old3 --require p50:0.1%";
    assert_eq!(
        place.punctual(&better.split_whitespace().collect::<Vec<_>>()).status.code(),
        Some(0)
    );
}

#[test]
fn unknown_dependence_or_missing_partners_leave_a_gate_undecided() {
    let place = Place::with("");
    imported(&place, "old", 10);
    imported(&place, "new", 60);
    // One import per side: the dependence of its samples is unknown.
    let single = place.punctual(&["compare", "old", "new", "--fail-if-worse", "p50:1us"]);
    assert_eq!(single.status.code(), Some(4), "{}", text(&single));
    assert!(text(&single).contains("give several runs"), "{}", text(&single));
    // A series that is on one side only, and one matched by hand.
    let good = fixture("good");
    let alone = place.punctual(&["compare", "old", &good]);
    assert_eq!(alone.status.code(), Some(2), "{}", text(&alone));
    assert!(
        text(&alone).contains("imported/thread 0") && text(&alone).contains("--match"),
        "{}",
        text(&alone)
    );
    let by_hand = [
        "compare",
        "old",
        &good,
        "--match",
        "imported/thread 0=idle/timer/cpu0",
        "--fail-if-worse",
        "max:1s",
    ];
    let by_hand = place.punctual(&by_hand);
    assert_eq!(
        by_hand.status.code(),
        Some(4),
        "the others are on one side only: {}",
        text(&by_hand)
    );
    assert!(text(&by_hand).contains("imported/thread 0, idle/timer/cpu0"), "{}", text(&by_hand));
    // What Xenomai's latency and latmus print stands in the same comparison.
    for (file, series) in [("xenomai-h", "imported/latency"), ("latmus-g", "imported/user")] {
        let results = concat!(env!("CARGO_MANIFEST_DIR"), "/../bundle/src/import/testdata/made");
        let results = format!("{results}/{file}.txt");
        assert_eq!(place.punctual(&["import", &results, "-o", file]).status.code(), Some(0));
        let matched = format!("{series}=idle/timer/cpu0");
        let both = place.punctual(&["compare", file, &good, "--match", &matched]);
        let said = text(&both);
        assert!(both.status.code() == Some(0) && said.contains("p99"), "{said}");
        assert!(said.contains(&format!("{series}, idle/timer/cpu0")), "{said}");
    }
}

#[test]
fn a_wrong_request_is_refused() {
    let place = Place::with("");
    let good = fixture("good");
    for (rest, word) in [
        (vec![], "BUNDLE"),
        (vec![good.as_str()], "two bundles"),
        (vec![&good, "nothing-here"], "nothing-here"),
        (vec![&good, &good, "--require", "mean:1us"], "percentiles"),
        (vec![&good, &good, "--require", "max"], "p99.9:10us"),
        (vec![&good, &good, "--match", "a/b=c/d"], "has no series"),
        (vec!["--a", &good], "--b"),
    ] {
        let refused = place.punctual(&[vec!["compare"], rest.clone()].concat());
        assert_eq!(refused.status.code(), Some(2), "{rest:?}: {}", text(&refused));
        assert!(text(&refused).contains(word), "{rest:?}: {}", text(&refused));
    }
}

#[test]
fn a_side_with_lost_samples_or_truncation_leaves_a_gate_undecided() {
    let place = Place::with("");
    let of = |bundle: &str, series: &str| {
        let bundle = fixture(bundle);
        let words = ["compare", &bundle, &bundle, "--fail-if-worse", "p50:1s", "--json"];
        let compared = place.punctual(&words);
        assert_eq!(compared.status.code(), Some(4), "{}", text(&compared));
        let comparison = json(&compared);
        assert_eq!(comparison["verdict"], "undecided");
        let findings = comparison["findings"].as_array().unwrap().clone();
        assert!(
            findings.iter().any(|one| one["id"] == "unequal-sides" && one["subject"] == series),
            "{findings:?}"
        );
        let gates = comparison["gates"].as_array().unwrap().clone();
        let gate = gates.into_iter().find(|gate| gate["series"] == series).unwrap();
        assert_eq!(gate["verdict"], "undecided", "{gate}");
        gate["reason"].as_str().unwrap().to_owned()
    };
    let lost = of("lossy", "main/dropped");
    assert!(
        lost.starts_with("side lossy, ") && lost.contains("130 of 2130 samples were lost"),
        "{lost}"
    );
    let shared = of("lossy", "main/time-sharing");
    assert!(shared.contains("SCHED_FIFO 80 was requested, it ran as SCHED_OTHER"), "{shared}");
    let bundle = fixture("cut-off");
    let compared = place.punctual(&["compare", &bundle, &bundle, "--require", "p50:1s", "--json"]);
    assert_eq!(compared.status.code(), Some(4), "{}", text(&compared));
    assert!(json(&compared)["gates"].to_string().contains("it was cut off"), "{}", text(&compared));
}

/// One side missed periods: the compared figure is the corrected one that `show` prints, and the
/// measured one is beside it.
#[test]
fn corrected_figures_of_compare_match_those_of_show() {
    let place = Place::with("");
    let cell = |name: &str| fixture(&format!("../labs/quick/cells/{name}/r1"));
    let (standard, rt) = (cell("6.1"), cell("6.1-rt"));
    let shown = json(&place.punctual(&["show", &standard, "--json"]));
    let series = &shown["phases"][0]["series"][0];
    let compared = json(&place.punctual(&["compare", &standard, &rt, "--json"]));
    assert_eq!(compared["sides"][1]["label"], "6.1.0-56-rt", "named by what differs");
    let one = &compared["series"][0];
    assert_eq!((&one["corrected"], &one["a"]["overruns"]), (&true.into(), &45.into()));
    let mut compared = 0;
    for metric in one["metrics"].as_array().unwrap() {
        let Some(percentile) = metric["metric"].as_str().unwrap().strip_prefix('p') else {
            continue;
        };
        // The histogram of `show` resolves 0.1 %, the log of `compare` all.
        let same = |one: &serde_json::Value, other: &serde_json::Value| {
            let (one, other) = (one.as_f64().unwrap(), other.as_f64().unwrap());
            assert!((one - other).abs() <= one * 0.002, "{percentile}: {one}, {other}");
        };
        let (corrected, measured) =
            (&series["corrected"]["percentiles"][percentile], &series["percentiles"][percentile]);
        if !(corrected.is_null() || measured.is_null() || metric["a"].is_null()) {
            same(corrected, &metric["a"]);
            same(measured, &metric["measured"][0]);
            compared += 1;
        }
        // No interval of a ratio extends below zero.
        if let Some(low) = metric["ratio"]["low"].as_f64() {
            assert!(low > 0.0 && low <= metric["ratio"]["at"].as_f64().unwrap(), "{metric}");
        }
    }
    assert!(compared >= 2, "{one}");
}

#[test]
fn imports_are_paired_by_cpu_or_the_option_is_printed() {
    let place = Place::with("");
    let two = concat!(env!("CARGO_MANIFEST_DIR"), "/../bundle/src/import/testdata/two.json");
    let import = place.punctual(&["import", two, "-o", "two"]);
    assert_eq!(import.status.code(), Some(0), "{}", text(&import));
    let good = fixture("good");
    let known = json(&place.punctual(&["show", &good, "--json"]));
    let compared = json(&place.punctual(&["compare", "two", &good, "--json"]));
    let pairs: Vec<(String, String)> = compared["series"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| [&one["series"], &one["partner"]].map(|name| name.as_str().unwrap().to_owned()))
        .map(|[one, two]| (one, two))
        .collect();
    assert!(!pairs.is_empty(), "{compared}");
    for (one, partner) in &pairs {
        let cpu = one.rsplit(' ').next().unwrap();
        assert!(partner.ends_with(&format!("cpu{cpu}")), "{one} is paired with {partner}: {known}");
    }
    // A histogram of unpinned threads names no CPU: the printed option works unchanged.
    imported(&place, "old", 10);
    let alone = place.punctual(&["compare", "old", &good]);
    assert_eq!(alone.status.code(), Some(2), "{}", text(&alone));
    let printed = text(&alone);
    let option = printed.split("--match '").nth(1).and_then(|rest| rest.split('\'').next());
    let option = option.unwrap_or_else(|| panic!("{printed}"));
    let matched = place.punctual(&["compare", "old", &good, "--match", option]);
    assert_eq!(matched.status.code(), Some(0), "{option}: {}", text(&matched));
}

const BEFORE: &str = include_str!("../../bundle/src/import/testdata/field/cyclictest-6.9.12.txt");
const AFTER: &str = include_str!("../../bundle/src/import/testdata/field/cyclictest-6.10.14.txt");

/// A status line of cyclictest.
fn status(place: &Place, name: &str, max: u32) {
    let line = format!("T: 0 (  1) P:99 I:1000 C: 9000 Min: 1 Act: 2 Avg: 2 Max: {max}\n");
    place.write(&format!("{name}.txt"), line.as_bytes());
    let import = place.punctual(&["import", &format!("{name}.txt"), "-o", name, "--name", "x"]);
    assert_eq!(import.status.code(), Some(0), "{}", text(&import));
}

#[test]
fn a_comparison_of_several_runs_tests_the_maximum() {
    let place = Place::with("");
    for (name, content) in [("before", BEFORE), ("after", AFTER)] {
        place.write(&format!("{name}.txt"), content.as_bytes());
        let import = place.punctual(&["import", &format!("{name}.txt"), "-o", name]);
        assert_eq!(import.status.code(), Some(0), "{}", text(&import));
    }
    let one = place.punctual(&["compare", "before", "after", "--json"]);
    let comparison = json(&one);
    let first = &comparison["series"][0];
    assert_eq!(
        (first["a"]["count"].as_u64(), first["b"]["count"].as_u64()),
        (Some(785_036), Some(788_179))
    );
    let max = first["metrics"].as_array().unwrap().iter().find(|m| m["metric"] == "max").unwrap();
    assert_eq!((&max["a"], &max["b"]), (&1_771_000.0.into(), &63_290_000.0.into()));
    assert_eq!((&max["low"], &max["p"]), (&serde_json::Value::Null, &serde_json::Value::Null));
    assert_eq!(
        (comparison["tests"].as_u64(), first["distribution"].as_array()),
        (Some(0), Some(&vec![]))
    );
    let shown = text(&place.punctual(&["compare", "before", "after"]));
    let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(shown.contains("the median of 8 maxima is 1,366 µs on before"), "{shown}");
    assert!(!shown.contains(": 0 samples") && !shown.contains("p = 1"), "{shown}");

    for k in 0..5 {
        status(&place, &format!("old{k}"), 1_800 + 10 * k);
        status(&place, &format!("new{k}"), 63_000 + 500 * k);
    }
    let words = "compare --a old0 old1 old2 old3 old4 --b new0 new1 new2 new3 new4 --json";
    let several = json(&place.punctual(&words.split(' ').collect::<Vec<_>>()));
    let metrics = several["series"][0]["metrics"].as_array().unwrap();
    let max = metrics.iter().find(|m| m["metric"] == "max").unwrap();
    assert_eq!(max["verdict"], "higher", "{max}");
    assert!(max["p_adjusted"].as_f64().unwrap() < 0.001, "{max}");
}
