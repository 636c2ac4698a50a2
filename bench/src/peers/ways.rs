//! The pairs: how each program is run, and how its output is parsed.

use super::Peer;
use crate::{Args, heap, spin, switch, syscall, tools, working_set};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// A round of a second or less.
const ROUND: &str = "500ms";
/// Seconds per round if latencies are sampled at 1 ms.
const SECONDS: u64 = 2;
const MS: u64 = 1_000;
/// Calls per round of perf bench.
const CALLS: u64 = 1_000_000;
/// The working set, in bytes, and the heap's block with the turns per round.
const SET: u64 = 256 << 10;
const BLOCK: (u64, u64) = (1 << 20, 100_000);
/// Contending threads, and the terms per round.
const THREADS: usize = 2;
const TERMS: &str = "4000";
/// Records forced to the disk per round.
const RECORDS: &str = "40";

/// The peers that run here; missing ones are reported.
pub fn all<'p>(args: &'p Args, place: &'p Path) -> Result<Vec<Peer<'p>>, String> {
    let mut all = Vec::new();
    let punctual = args.punctual.as_path();
    let bundle = move |name: &str, round: usize| place.join(format!("{name}-{round}"));
    if tools::has_cyclictest() {
        all.push(Peer {
            name: "cyclictest",
            figures: &[("timer latency at 1 ms, median", "µs")],
            note: "",
            ours: Box::new(move |_| {
                let round = tools::punctual(punctual, MS, SECONDS)?;
                Ok(vec![crate::figures::grouped_median(&round.bins)])
            }),
            theirs: Box::new(|_| {
                let round = tools::cyclictest(MS, SECONDS)?;
                Ok(vec![crate::figures::grouped_median(&round.bins)])
            }),
        });
    }
    all.push(Peer {
        name: "stress-ng --cyclic",
        figures: &[("timer latency at 1 ms, median", "ns")],
        note: "both sleep for a time (clock_nanosleep(2), relative)",
        ours: Box::new(move |round| {
            let keys = ["method=nanosleep-relative", "period=1ms"];
            let found = run_measure(punctual, "timer", &keys, "2s", &bundle("timer", round))?;
            number(&found["series"][0], "median").map(|ns| vec![ns])
        }),
        theirs: Box::new(|_| cyclic().map(|ns| vec![ns])),
    });
    all.push(Peer {
        name: "perf bench syscall basic",
        figures: &[("getppid(2)", "ns")],
        note: "punctual's mean sample less the median reading of the clock that is in it",
        ours: Box::new(move |round| {
            let keys = ["call=number", "number=110", "rest=0s"];
            let found = run_measure(punctual, "syscall", &keys, ROUND, &bundle("getppid", round))?;
            let clock = &found["measures"][0]["notes"]["clock_cost"]["known"];
            Ok(vec![number(&found["series"][0], "mean")? - number(clock, "median")?])
        }),
        theirs: Box::new(|_| {
            let calls = CALLS.to_string();
            let words = ["perf", "bench", "-f", "simple", "syscall", "basic", "-l", &calls];
            let text = switch::pinned(&words)?;
            let seconds: f64 =
                text.trim().parse().map_err(|_| format!("perf bench said {text}"))?;
            Ok(vec![seconds * 1e9 / CALLS as f64])
        }),
    });
    for tasks in ["threads", "processes"] {
        all.push(Peer {
            name: "perf bench sched pipe",
            figures: match tasks {
                "threads" => &[("switch between threads, pipe", "ns")],
                _ => &[("switch between processes, pipe", "ns")],
            },
            note: "the time of a hand-over, what punctual does around it included",
            ours: Box::new(move |round| {
                switch::punctual(punctual, &bundle(tasks, round), tasks).map(|ns| vec![ns])
            }),
            theirs: Box::new(move |_| switch::perf(tasks).map(|ns| vec![ns])),
        });
    }
    all.push(Peer {
        name: "oslat",
        figures: &[
            ("gaps of 1 µs and more in a busy loop", "1/s"),
            ("gaps of 5 µs and more in a busy loop", "1/s"),
        ],
        note: "noise comes as it likes: of one size, no more",
        ours: Box::new(move |round| {
            let noise = spin::punctual(punctual, &bundle("spin", round), 1)?;
            Ok(vec![noise.gaps, noise.long])
        }),
        theirs: Box::new(move |_| {
            let noise = spin::oslat(&place.join("oslat.json"), 1)?;
            Ok(vec![noise.gaps, noise.long])
        }),
    });
    own(&mut all, punctual, place)?;
    Ok(all)
}

/// Compared with C programs of our own: `bench/c`.
fn own<'p>(all: &mut Vec<Peer<'p>>, punctual: &'p Path, place: &'p Path) -> Result<(), String> {
    let sources = ["getpid", "heap", "working_set", "mutex", "fsync"];
    let built: Option<Vec<_>> =
        sources.into_iter().map(|name| tools::compiled(name, place)).collect();
    let Some([getpid, heap, walks, mutex, fsync]) =
        built.and_then(|built| <[_; 5]>::try_from(built).ok())
    else {
        return Ok(());
    };
    let bundle = move |name: &str, round: usize| place.join(format!("{name}-{round}"));
    all.push(Peer {
        name: "c/getpid.c",
        figures: &[("a turn of the loop around getpid(2)", "ns"), ("getpid(2), mean", "ns")],
        note: "",
        ours: Box::new(move |round| {
            syscall::punctual(punctual, &bundle("getpid", round)).map(|of| vec![of.0, of.1])
        }),
        theirs: Box::new(move |_| syscall::bare_loop(&getpid).map(|of| vec![of.0, of.1])),
    });
    all.push(Peer {
        name: "c/heap.c",
        figures: &[
            ("a turn of the loop around 1 MiB", "ns"),
            ("malloc, mean", "ns"),
            ("first touch, mean", "ns"),
            ("free, mean", "ns"),
        ],
        note: "",
        ours: Box::new(move |round| {
            heap::punctual(punctual, &bundle("heap", round), BLOCK.0).map(Vec::from)
        }),
        theirs: Box::new(move |_| heap::bare_loop(&heap, BLOCK.1, BLOCK.0).map(Vec::from)),
    });
    all.push(Peer {
        name: "c/working_set.c",
        figures: &[
            ("walk through 256 KiB after a switch", "ns"),
            ("walk through 256 KiB alone", "ns"),
        ],
        note: "what both show of the difference is in the part `working_set`",
        ours: Box::new(move |round| {
            let row = working_set::punctual(punctual, &bundle("walks", round), SET)?;
            let numbers: Vec<f64> =
                row.as_array().into_iter().flatten().filter_map(Value::as_f64).collect();
            // Its size, the switch and the number of pairs come before.
            numbers.get(3..5).map(<[f64]>::to_vec).ok_or(format!("a row is {row}"))
        }),
        theirs: Box::new(move |_| {
            working_set::independent(&walks, SET).map(|all| all[..2].to_vec())
        }),
    });
    all.push(Peer {
        name: "c/mutex.c",
        figures: &[("wait for a mutex, mean", "ns"), ("longest run of one owner", "times")],
        note: "who gets a contended lock is the machine's choice: of one size, no more",
        ours: Box::new(move |round| contended(punctual, &bundle("mutex", round))),
        theirs: Box::new(move |_| {
            let cpus = std::thread::available_parallelism().map_or(1, usize::from).to_string();
            let arguments = [&THREADS.to_string(), &cpus, TERMS, "200"];
            let found = numbers(Command::new(&mutex).args(arguments), 3)?;
            // Its second figure counts from before the request for the lock.
            Ok(vec![found[0], found[2]])
        }),
    });
    all.push(Peer {
        name: "c/fsync.c",
        figures: &[("write of a record, mean", "ns"), ("fsync(2) after it, mean", "ns")],
        note: "",
        ours: Box::new(move |round| {
            let keys = ["mode=forced", "period=10ms"];
            let found = run_measure(punctual, "storage", &keys, "400ms", &bundle("disk", round))?;
            ["write", "force"].map(|name| of_series(&found, name, "mean")).into_iter().collect()
        }),
        theirs: Box::new(move |_| {
            let cpu = tools::cpu()?.to_string();
            let found =
                numbers(Command::new(&fsync).args(["/var/tmp", RECORDS, "10000", &cpu]), 4)?;
            Ok(found[1..3].to_vec())
        }),
    });
    Ok(())
}

/// The first phase of the summary of `punctual measure`, on the last CPU.
fn run_measure(
    program: &Path,
    kind: &str,
    keys: &[&str],
    duration: &str,
    bundle: &Path,
) -> Result<Value, String> {
    let mut command = Command::new(program);
    command.args(["measure", kind, "--quiet", "--json", "--duration", duration]);
    command.args(keys.iter().flat_map(|key| ["--set", key]));
    if kind != "mutex" {
        command.args(["--cpus", &tools::cpu()?.to_string()]);
    }
    let output = command.arg("--output").arg(bundle).output().map_err(|why| why.to_string())?;
    let summary: Value = serde_json::from_slice(&output.stdout).map_err(|why| {
        format!("punctual measure {kind}: {why}: {}", String::from_utf8_lossy(&output.stderr))
    })?;
    Ok(summary["phases"][0].clone())
}

fn number(of: &Value, name: &str) -> Result<f64, String> {
    of[name].as_f64().ok_or_else(|| format!("no {name} in the summary"))
}

/// A figure of the series whose name has this suffix.
fn of_series(phase: &Value, name: &str, figure: &str) -> Result<f64, String> {
    let is = |series: &&Value| {
        series["name"].as_str().is_some_and(|own| own.rsplit('/').next() == Some(name))
    };
    let series = phase["series"].as_array().and_then(|all| all.iter().find(is));
    number(series.ok_or_else(|| format!("no series {name} in the summary"))?, figure)
}

/// Over all waits of all threads: the mean, the most overtakings, and the longest run.
fn contended(program: &Path, bundle: &Path) -> Result<Vec<f64>, String> {
    let (threads, terms) = (format!("threads={THREADS}"), format!("terms={TERMS}"));
    let phase = run_measure(program, "mutex", &[&threads, &terms], ROUND, bundle)?;
    let series = phase["series"].as_array().map(Vec::as_slice).unwrap_or_default();
    let (mut sum, mut count) = (0.0, 0.0);
    for of in series {
        sum += number(of, "mean")? * number(of, "count")?;
        count += number(of, "count")?;
    }
    let notes = &phase["measures"][0]["notes"];
    let named = |list: &Value, name: &str| {
        list.as_array().and_then(|all| all.iter().find(|one| one["name"] == name)).cloned()
    };
    let run = named(&notes["figures"], "longest-run").ok_or("no figure of runs")?;
    Ok(vec![sum / count, number(&run, "value")?])
}

/// The median of `stress-ng --cyclic`: `50.00%:  23310 ns`.
fn cyclic() -> Result<f64, String> {
    let (cpu, seconds) = (tools::cpu()?.to_string(), format!("{SECONDS}s"));
    let mut command = Command::new("stress-ng");
    command.args(["--cyclic", "1", "--cyclic-policy", "fifo", "--cyclic-prio", "80"]);
    command.args(["--cyclic-method", "clock_ns", "--cyclic-sleep", "1000000"]);
    command.args(["--taskset", &cpu, "--timeout", &seconds]);
    let output = command.output().map_err(|why| format!("stress-ng: {why}"))?;
    // Depending on its version it writes to either.
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    let median = text.split_once("50.00%:").and_then(|(_, rest)| rest.split_whitespace().next());
    median.and_then(|word| word.parse().ok()).ok_or_else(|| format!("stress-ng said {text}"))
}

/// The numbers that a program prints.
fn numbers(command: &mut Command, count: usize) -> Result<Vec<f64>, String> {
    let output = command.output().map_err(|why| why.to_string())?;
    let text = String::from_utf8_lossy(&output.stdout);
    let found: Vec<f64> =
        text.split_ascii_whitespace().filter_map(|word| word.parse().ok()).collect();
    match found.len() == count && output.status.success() {
        true => Ok(found),
        false => Err(format!("{command:?} gave no figures: it needs the right to SCHED_FIFO")),
    }
}
