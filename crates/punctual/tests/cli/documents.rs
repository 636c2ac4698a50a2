//! Every command in a document runs in a test: here, if it only reads the fixtures; those of
//! tutorials in `tests/tutorials.rs`; of all others the subcommand and each option in some suite.

// The program's own tests read its messages with it, too.
#[expect(dead_code)]
#[path = "../../src/cli/documents/scan.rs"]
mod scan;

use super::common::{punctual, text};
use super::fixtures;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// Subcommands that only read.
const READ: [&str; 9] =
    ["show", "report", "compare", "pairs", "occupancy", "explain", "export", "import", "convert"];
/// Options that need a guest, or tables of many runs.
const NEED_MORE: [&str; 6] =
    ["--path", "--memory", "--exact", "--tables", "parquet-tables", "--lines"];
/// Options that no test runs, with reasons.
const LEFT_OUT: [(&str, &str); 1] =
    [("--boot", "a boot takes 10 s of CPU; a command in a guest goes the same way")];
/// Placeholders in documents, and their values here.
const MEANT: [(&str, &str); 10] = [
    ("request->reply", "sched_waking->sched_switch"),
    ("A->B", "sched_waking->sched_switch"),
    ("PHASE/SERIES", "timer/cpu3"),
    ("FORMAT", "csv"),
    ("FILE.toml", "stress.cfg"),
    ("FILE", "cyclictest.json"),
    ("TOOL", "cyclictest"),
    ("PATH", "out"),
    ("punctual-trace-*", "BUNDLE"),
    ("DIR", "imported"),
];

#[test]
fn every_command_in_documents_runs_in_a_test() {
    let place = tempfile::tempdir().unwrap();
    for name in ["explained", "recorded"] {
        stage(&place.path().join(name), name);
    }
    let suites = texts_of_suites();
    let (mut ran, mut wrong) = (BTreeSet::new(), Vec::new());
    for shown in scan::document_paths().iter().flat_map(|path| scan::document_commands(path)) {
        if shown.is_mention || shown.place.contains("/tutorials/") {
            continue;
        }
        let words = &shown.words[1..];
        let line = words.join(" ");
        let more = words.iter().any(|word| NEED_MORE.contains(&word.as_str()));
        if more || !READ.contains(&words[0].as_str()) {
            let used = |word: &&String| {
                suites.contains(&format!("\"{word}")) || suites.contains(&format!(" {word}"))
            };
            let end = words.iter().position(|word| word == "--").unwrap_or(words.len());
            let parts = words[..end].iter().enumerate();
            let parts = parts.filter(|(place, word)| *place == 0 || word.starts_with("--"));
            let names =
                parts.map(|(_, word)| word.split('=').next().unwrap_or_default().to_owned());
            let names = names.filter(|name| LEFT_OUT.iter().all(|(left, _)| left != name));
            let missing: Vec<String> = names.filter(|name| !used(&name)).collect();
            if !missing.is_empty() {
                wrong.push(format!("{}: {line}: in no suite: {missing:?}", shown.place));
            }
        } else if ran.insert(line.clone()) {
            let here = if ["pairs", "occupancy"].contains(&words[0].as_str()) {
                "recorded"
            } else {
                "explained"
            };
            let words = words.iter().enumerate().map(|(place, word)| match place {
                1.. if ["-o", "--report"].contains(&words[place - 1].as_str()) => {
                    format!("out-{}", ran.len())
                }
                _ => {
                    MEANT.iter().fold(word.clone(), |word, (meant, here)| word.replace(meant, here))
                }
            });
            let done = punctual()
                .args(words)
                .current_dir(place.path().join(here))
                .stdin(Stdio::null())
                .output()
                .unwrap();
            // A document's requirement may fail here.
            let judges = ["--limit", "--fail"].iter().any(|option| line.contains(option));
            if !matches!((done.status.code(), judges), (Some(0), _) | (Some(3 | 4), true)) {
                wrong.push(format!("{}: {line}: {}", shown.place, text(&done)));
            }
        }
    }
    assert!(ran.len() > 20, "{ran:?}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Creates the reader's bundles and files with the names from documents.
fn stage(place: &Path, fixture: &str) {
    fs::create_dir(place).unwrap();
    let named = |name: &str| fixtures().into_iter().find(|path| path.ends_with(name)).unwrap();
    for name in [
        "BUNDLE", "late", "bundle", "A1", "A2", "A3", "A4", "A5", "B1", "B2", "B3", "B4", "B5",
        "BEFORE", "AFTER", "b1", "b2", "points", "looked",
    ] {
        // Left by `punctual trace`.
        let is_recording = ["points", "looked"].contains(&name);
        let from = named(if is_recording { "recorded" } else { fixture });
        let copied = Command::new("cp").arg("-r").arg(from).arg(place.join(name)).status();
        assert!(copied.unwrap().success());
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let lab = root.join("fixtures/labs/quick");
    assert!(
        Command::new("cp").arg("-r").arg(lab).arg(place.join("lq")).status().unwrap().success()
    );
    for name in ["fixtures", "crates"] {
        std::os::unix::fs::symlink(root.join(name), place.join(name)).unwrap();
    }
    let of_tool = "crates/bundle/src/import/testdata/rt-tests-2.6/verbose.json";
    fs::copy(root.join(of_tool), place.join("cyclictest.json")).unwrap();
    fs::copy(root.join("examples/systress-demo.cfg"), place.join("stress.cfg")).unwrap();
    for name in ["trace.txt", "trace.dat"] {
        fs::write(place.join(name), trace()).unwrap();
    }
    for (name, file) in [("perf.data", "servo.perf.data"), ("trace.pftrace", "servo.perfetto")] {
        let from = root.join("crates/traces/tests/data").join(file);
        fs::copy(from, place.join(name)).unwrap();
    }
}

/// The ftrace text of a thread that sleeps until each next millisecond.
fn trace() -> String {
    let mut text =
        "# tracer: nop\n#\n# entries-in-buffer/entries-written: 900/900   #P:1\n#\n".to_owned();
    for cycle in 0..100 {
        let mut line = |us: u32, task: &str, what: &str| {
            let at = f64::from(cycle * 1_000 + us) / 1e6 + 100.0;
            text += &format!("{task:>16} [000] d..2. {at:12.6}: {what}\n");
        };
        let expires = (u64::from(cycle) + 1) * 1_000_000 + 100_000_000_000;
        line(100, "servo-7", "sys_clock_nanosleep(which_clock: 1, flags: 1, rqtp: 7f00, rmtp: 0)");
        let start = format!(
            "hrtimer_start: hrtimer=00000000aaaabbbb function=hrtimer_wakeup expires={expires} \
             softexpires={expires} mode=ABS"
        );
        line(101, "servo-7", &start);
        line(
            102,
            "servo-7",
            "sched_switch: prev_comm=servo prev_pid=7 prev_prio=19 prev_state=S ==> \
             next_comm=swapper/0 next_pid=0 next_prio=120",
        );
        let expire = format!(
            "hrtimer_expire_entry: hrtimer=00000000aaaabbbb function=hrtimer_wakeup now={}",
            expires + 1_000
        );
        line(1_001, "<idle>-0", "local_timer_entry: vector=236");
        line(1_002, "<idle>-0", &expire);
        line(1_003, "<idle>-0", "sched_waking: comm=servo pid=7 prio=19 target_cpu=000");
        line(1_004, "<idle>-0", "local_timer_exit: vector=236");
        line(
            1_005,
            "<idle>-0",
            "sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> \
             next_comm=servo next_pid=7 next_prio=19",
        );
        line(1_006, "servo-7", "sys_clock_nanosleep -> 0x0");
    }
    text
}

/// The sources of all tests of the program, and of those that need a guest.
fn texts_of_suites() -> String {
    let mut open = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("tests")];
    let mut texts = String::new();
    while let Some(path) = open.pop() {
        if path.is_dir() {
            open.extend(fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
        } else if path.extension().is_some_and(|end| end == "rs" || end == "sh")
            && !path.ends_with("cli/documents.rs")
        {
            texts += &fs::read_to_string(path).unwrap();
        }
    }
    texts
}
