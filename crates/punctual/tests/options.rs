//! No option is accepted and ignored: it changes the result, or it is refused. Every option of the
//! commands that take files of several kinds, on each kind.

use crate::common::{Place, text};
use serde_json::Value;

const STATUS: &str = "T: 0 (  7) P:99 I:1000 C: 9000 Min: 1 Act: 2 Avg: 2 Max: 1771\n\
                      T: 1 (  8) P:99 I:1500 C: 6000 Min: 1 Act: 2 Avg: 2 Max: 90\n";
const HISTOGRAM: &str = "# Histogram\n000010 000900\n000070 000100\n# Total: 000001000\n\
                         # Min Latencies: 00010\n# Avg Latencies: 00016\n\
                         # Max Latencies: 00070\n# Histogram Overflows: 00000\n\
                         # Histogram Overflow at cycle number:\n# Thread 0:\n";
const TRACE: &[u8] = include_bytes!("../../traces/tests/data/servo.perf.data");

/// A file of each kind, in a separate directory.
fn place() -> Place {
    let place = Place::with("");
    place.write("status.txt", STATUS.as_bytes());
    place.write("histogram.txt", HISTOGRAM.as_bytes());
    place.write("perf.data", TRACE);
    for (file, bundle) in [("perf.data", "recording"), ("status.txt", "summary")] {
        let import = place.punctual(&["import", file, "-o", bundle]);
        assert_eq!(import.status.code(), Some(0), "{}", text(&import));
    }
    place
}

/// Removes the times of the import.
fn without_times(value: &mut Value) {
    match value {
        Value::Object(all) => {
            ["created", "at", "started", "ending"].iter().for_each(|key| drop(all.remove(*key)));
            all.values_mut().for_each(without_times);
        }
        Value::Array(all) => all.iter_mut().for_each(without_times),
        _ => {}
    }
}

/// The complete result of a command: its exit code, its output, and its files.
fn outcome(place: &Place, words: &[&str]) -> (Option<i32>, String) {
    let out = place.path().join("out");
    let _ = std::fs::remove_dir_all(&out);
    let _ = std::fs::remove_file(&out);
    let output = place.punctual(words);
    let mut all = text(&output).replace("punctual-", "");
    for name in ["bundle.json", "summary.json", "phases/000/0000.meta.json"] {
        if let Ok(text) = std::fs::read_to_string(out.join(name)) {
            let mut value: Value = serde_json::from_str(&text).expect("JSON");
            without_times(&mut value);
            all.push_str(&value.to_string());
        }
    }
    all.push_str(&out.is_file().to_string());
    (output.status.code(), all)
}

fn options(place: &Place, command: &str) -> Vec<String> {
    let help = text(&place.punctual(&[command, "--help"]));
    let of_line = |line: &str| {
        // Words of a list begin with a dash, too.
        let is_option = |rest: &&str| !rest.starts_with(' ');
        let at = line.trim_start().strip_prefix("-").filter(is_option).and(line.find("--"))?;
        let word = line[at..].split([' ', ',', '=']).next()?;
        Some(word.to_owned())
    };
    let mut all: Vec<String> = help.lines().filter_map(of_line).collect();
    all.retain(|option| option != "--help");
    all.sort();
    all.dedup();
    all
}

fn check(command: &str, base: &[&str], kinds: &[&str], table: &[&[&str]]) {
    let place = place();
    let mut named: Vec<String> = table.iter().map(|words| words[0].to_owned()).collect();
    named.sort();
    assert_eq!(named, options(&place, command), "each option of {command} is in the table");
    for kind in kinds {
        let words = [&[command, kind], base].concat();
        let plain = outcome(&place, &words);
        for option in table {
            let with = outcome(&place, &[&words, *option].concat());
            let is_refused = with.0 == Some(2) && plain.0 != Some(2);
            assert!(is_refused || with != plain, "{command} {kind} {option:?}: {}", with.1);
        }
    }
}

#[test]
fn no_option_of_import_is_ignored() {
    let kinds = ["status.txt", "histogram.txt", "perf.data", "recording"];
    check(
        "import",
        &["-o", "out"],
        &kinds,
        &[
            &["--output", "other"],
            &["--name", "another"],
            &["--from", "oslat"],
            &["--nanoseconds"],
            &["--thread", "thread 1"],
            &["--deadline", "60us"],
            &["--require", "max < 100us"],
        ],
    );
}

#[test]
fn no_option_of_explain_is_ignored() {
    check(
        "explain",
        &[],
        &["perf.data", "recording"],
        &[
            &["--thread", "hog"],
            &["--deadline", "1ms"],
            &["--require", "response max < 1ms"],
            &["--series", "servo/wakeup"],
            &["--pair", "sched_switch->sched_switch"],
            &["--path", "read"],
            &["--worst", "1"],
            &["--at", "0..1"],
            &["--min-latency", "4ms"],
            &["--exact"],
            &["--against", "6.12"],
            &["--lines"],
            &["--folded", "out"],
            &["--json"],
            &["--perfetto", "out"],
        ],
    );
}

const PAIR: &str = "sched_switch->sched_switch";
const LIMIT: &str = "sched_switch->sched_switch < 1s";

#[test]
fn no_option_of_the_commands_that_read_bundles_is_ignored() {
    let bundles = ["recording", "summary"];
    check("show", &[], &bundles, &[&["--json"], &["--published"], &["--lines"]]);
    check(
        "report",
        &["-o", "-"],
        &bundles,
        &[
            &["--output", "other"],
            &["--pair", PAIR],
            &["--limit", LIMIT],
            &["--format", "markdown"],
        ],
    );
    check(
        "export",
        &["--format", "kcidb"],
        &bundles,
        &[
            &["--format", "csv"],
            &["--output", "out"],
            &["--origin", "x"],
            &["--build", "x:1"],
            &["--machine", "m"],
        ],
    );
    check(
        "compare",
        &["summary"],
        &["summary"],
        &[
            &["--a", "summary"],
            &["--b", "summary"],
            &["--tables", "none"],
            &["--match", "a/b=c/d"],
            &["--fail-if-worse", "max:1us"],
            &["--require", "max:5%"],
            &["--json"],
            &["--report", "out"],
            &["--junit", "out"],
        ],
    );
    check(
        "pairs",
        &[PAIR],
        &["recording"],
        &[
            &["--by", "value"],
            &["--rule", "async"],
            &["--limit", LIMIT],
            &["--calls"],
            &["--worst", "2"],
            &["--json"],
        ],
    );
    check("occupancy", &[], &["recording"], &[&["--threads"], &["--memory"], &["--json"]]);
    let place = place();
    for (words, why) in [
        (&["pairs", "recording", "--by", "value"][..], "name one, or a --limit"),
        (&["pairs", "recording", "--rule", "async"], "name one, or a --limit"),
        (&["export", "summary", "--format", "parquet-tables", "--build", "x:1"], "for --format"),
    ] {
        let (code, said) = outcome(&place, words);
        assert!(code == Some(2) && said.contains(why), "{words:?}: {said}");
    }
}

#[test]
fn a_requirement_on_an_import_is_judged_as_of_a_run() {
    let place = place();
    let import = |file: &str, options: &[&str]| {
        outcome(&place, &[&["import", file, "-o", "out"], options].concat())
    };
    let (code, said) = import("status.txt", &["--require", "max < 100us"]);
    assert!(code == Some(3) && said.contains("NOT MET"), "{said}");
    let one = ["--require", "max < 100us", "--thread", "thread 1"];
    assert_eq!(import("status.txt", &one).0, Some(0));
    let refused = [
        ("status.txt", ["--require", "p99 < 100us"], "does not state the p99"),
        ("status.txt", ["--require", "overruns == 0"], "does not state the overruns"),
        ("status.txt", ["--require", "response max < 100us"], "no series `response`"),
        ("status.txt", ["--deadline", "100us"], "--require 'max < 100us' can be judged"),
        ("status.txt", ["--thread", "servo"], "it has thread 0, thread 1"),
        ("histogram.txt", ["--from", "oslat"], "not of oslat"),
    ];
    for (file, option, why) in refused {
        let (code, said) = import(file, &option);
        assert!(code == Some(2) && said.contains(why), "{file} {option:?}: {said}");
    }
    let (code, said) = import("histogram.txt", &["--deadline", "60us"]);
    assert!(code == Some(0) && said.contains("100 of 1000 samples"), "{said}");
    // The file does not state the scheduling.
    let (code, said) = import("histogram.txt", &["--require", "p50 < 20us"]);
    assert!(code == Some(4) && said.contains("it ran as unknown"), "{said}");
}

#[test]
fn a_recording_that_cannot_be_read_is_not_absent() {
    let place = place();
    let path = place.path().join("recording/recording");
    let directory = std::fs::read_dir(&path).expect("a recording");
    let document = directory.flatten().find(|entry| entry.file_name() == "recording.json");
    std::fs::remove_file(document.expect("its document").path()).expect("removed");
    for words in [
        &["export", "recording", "--format", "perfetto"][..],
        &["explain", "recording", "--pair", "a->b"],
        &["occupancy", "recording"],
        &["show", "recording"],
    ] {
        let output = place.punctual(words);
        let said = text(&output);
        assert_eq!(output.status.code(), Some(1), "{words:?}: {said}");
        assert!(said.contains("recording.json") && !said.contains("no event was lost"), "{said}");
    }
}
