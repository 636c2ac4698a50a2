//! Context switches beside other ways to count them: a bare ring in C, `perf bench sched pipe`,
//! hackbench; the same CPU and policy, interleaved.

use crate::Args;
use crate::figures::median;
use crate::tools;
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Hand-overs per round of the others: well below the second after which real-time throttling
/// begins.
const SWITCHES: u64 = 200_000;
/// A round of punctual, about equally long.
const ROUND_MS: u64 = 500;

/// A way to switch, and its name.
type Way<'a> = (&'static str, Box<dyn Fn(usize) -> Result<f64, String> + 'a>);

/// ns per hand-over, round by round; hackbench's is the time of a message, several of which precede
/// a switch.
pub fn measure(args: &Args) -> Result<Value, String> {
    let place = tempfile::tempdir().map_err(|e| e.to_string())?;
    let Some(ring) = tools::compiled("pipes", place.path()) else { return Ok(Value::Null) };
    println!(
        "SKIPPED: lmbench's lat_ctx is in no free suite of Debian; the bare ring does as it does"
    );
    let mut compared = Vec::new();
    for tasks in ["threads", "processes"] {
        compared.push(ways(args, place.path(), &ring, tasks)?);
    }
    Ok(Value::Array(compared))
}

fn ways(args: &Args, place: &Path, ring: &Path, tasks: &'static str) -> Result<Value, String> {
    let mut ways: Vec<Way> = vec![
        (
            "punctual",
            Box::new(move |round| {
                punctual(&args.punctual, &place.join(format!("{tasks}-{round}")), tasks)
            }),
        ),
        ("ring in C, timed", Box::new(move |_| bare(ring, tasks, "timed"))),
        ("ring in C, bare", Box::new(move |_| bare(ring, tasks, "bare"))),
    ];
    if has("perf", &["bench", "sched", "pipe", "-l", "10"]) {
        ways.push(("perf bench sched pipe", Box::new(move |_| perf(tasks))));
    } else {
        println!("SKIPPED: the comparison of switch lacks perf (Debian package linux-perf)");
    }
    if has("hackbench", &["-l", "10", "-g", "1", "-f", "1"]) {
        ways.push(("hackbench, a message", Box::new(move |_| hackbench(tasks))));
    } else {
        println!("SKIPPED: the comparison of switch lacks hackbench (Debian package rt-tests)");
    }
    let rounds = if args.quick { 3 } else { 15 };
    println!(
        "a byte over two pipes between {tasks} on one CPU, {rounds} rounds each, interleaved; ns \
         a hand-over:"
    );
    let mut figures = vec![Vec::new(); ways.len()];
    for round in 0..rounds {
        for turn in 0..ways.len() {
            let way = (round + turn) % ways.len();
            std::thread::sleep(Duration::from_millis(500));
            figures[way].push(ways[way].1(round)?);
        }
        eprint!(".");
    }
    eprintln!();
    let ours = median(&figures[0]);
    let rows = ways.iter().zip(&figures).map(|((name, _), figures)| {
        let theirs = median(figures);
        println!("  {name:<24} {theirs:>8.1} ns  punctual is {:.3} of it", ours / theirs);
        json!({
            "name": name, "unit": "ns", "rounds": figures, "median": theirs,
            "punctual_to_it": ours / theirs,
        })
    });
    Ok(json!({"tasks": tasks, "ways": rows.collect::<Vec<_>>()}))
}

fn has(program: &str, arguments: &[&str]) -> bool {
    Command::new(program).args(arguments).output().is_ok_and(|output| output.status.success())
}

/// ns per hand-over in a ring of two.
pub fn punctual(program: &Path, bundle: &Path, tasks: &str) -> Result<f64, String> {
    let (duration, cpu, tasks) =
        (format!("{ROUND_MS}ms"), tools::cpu()?.to_string(), format!("tasks={tasks}"));
    let mut command = Command::new(program);
    command.args([
        "measure",
        "switch",
        "--quiet",
        "--json",
        "--set",
        "mechanism=pipe",
        "--set",
        "rest=0s",
        "--set",
        &tasks,
    ]);
    command.args(["--duration", &duration, "--cpus", &cpu, "--output"]).arg(bundle);
    let output = command.output().map_err(|e| e.to_string())?;
    let summary: Value = serde_json::from_slice(&output.stdout).map_err(|why| {
        format!("punctual measure switch: {why}: {}", String::from_utf8_lossy(&output.stderr))
    })?;
    let count =
        summary["phases"][0]["series"][0]["count"].as_f64().ok_or("no count in the summary")?;
    Ok(ROUND_MS as f64 * 1e6 / count)
}

/// The output of a program on the last CPU with SCHED_FIFO 80.
pub fn pinned(words: &[&str]) -> Result<String, String> {
    let cpu = tools::cpu()?.to_string();
    let output =
        Command::new("taskset").args(["-c", &cpu, "chrt", "-f", "80"]).args(words).output();
    let output = output.map_err(|e| e.to_string())?;
    if !output.status.success() {
        return Err(format!("{}: {}", words.join(" "), String::from_utf8_lossy(&output.stderr)));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The number before or after a word.
fn number<'t>(mut words: impl Iterator<Item = &'t str>, after: &str) -> Option<f64> {
    words.find(|word| *word == after)?;
    words.next()?.parse().ok()
}

fn bare(ring: &Path, tasks: &str, kind: &str) -> Result<f64, String> {
    let (rounds, cpu) = ((SWITCHES / 2).to_string(), tools::cpu()?.to_string());
    let output = Command::new(ring)
        .args([&rounds, &cpu, tasks, kind])
        .output()
        .map_err(|e| e.to_string())?;
    let text = String::from_utf8_lossy(&output.stdout);
    let figure = text.split_ascii_whitespace().next().and_then(|word| word.parse().ok());
    figure
        .ok_or_else(|| "the bare ring gave no figure: it needs the right to SCHED_FIFO".to_owned())
}

/// An operation is a round: two hand-overs.
pub fn perf(tasks: &str) -> Result<f64, String> {
    let rounds = (SWITCHES / 2).to_string();
    let mut words = vec!["perf", "bench", "-f", "simple", "sched", "pipe", "-l", &rounds];
    if tasks == "threads" {
        words.push("-T");
    }
    let text = pinned(&words)?;
    let seconds: f64 = text.trim().parse().map_err(|_| format!("perf bench said {text}"))?;
    Ok(seconds * 1e9 / SWITCHES as f64)
}

fn hackbench(tasks: &str) -> Result<f64, String> {
    let messages = SWITCHES.to_string();
    let kind = if tasks == "threads" { "-T" } else { "-P" };
    let text =
        pinned(&["hackbench", kind, "-p", "-g", "1", "-f", "1", "-s", "1", "-l", &messages])?;
    let seconds =
        number(text.split_ascii_whitespace(), "Time:").ok_or(format!("hackbench said {text}"))?;
    Ok(seconds * 1e9 / SWITCHES as f64)
}
