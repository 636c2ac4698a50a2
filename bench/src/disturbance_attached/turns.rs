//! The effect on one process, which measures from beginning to end: beside it each way is enabled
//! and disabled, for a second each. Processes that measure one after the other differ by a
//! microsecond or two, which is more than the effect; one process differs less from itself.

use crate::Args;
use crate::figures::median;
use crate::tools;
use punctual_sys::clock::monotonic_now;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The time until a started program measures, after its start-up.
const STARTED: Duration = Duration::from_millis(700);
/// The time after everything was enabled or disabled.
const SETTLED: Duration = Duration::from_millis(100);
const RESAMPLED: usize = 999;
const PERCENTILES: [f64; 4] = [0.5, 0.9, 0.99, 0.999];

/// Two instants of CLOCK_MONOTONIC, ns.
type Window = (i64, i64);

/// A way in one round: without, then with data being kept.
struct Turn {
    way: usize,
    off: Window,
    on: Window,
}

/// The measuring process's figures for a turn, ns.
struct Seen {
    /// From the windows before and after.
    off: Vec<i64>,
    on: Vec<i64>,
    /// The difference of each percentile from the mean of both neighbours'.
    added: [f64; 3],
}

/// The increase of percentiles of the measuring process, with the 95 % interval of resampled
/// rounds. `switch_on` starts a way beside that process, given the compared
/// program and that process's id; it ends when the returned value is dropped.
pub(super) fn compare_ways<W: Copy, K>(
    args: &Args,
    ways: &[(W, &str)],
    switch_on: impl Fn(&Path, u32, W) -> Result<K, String>,
) -> Result<Value, String> {
    let (rounds, second) = if args.quick { (2, 300) } else { (30, 1_000) };
    let length = Duration::from_millis(second);
    println!(
        "timer latency of a program that is attached to, period 1 ms, {rounds} times {second} ms \
         beside each way, and as long without:"
    );
    let punctual = std::path::absolute(&args.punctual).map_err(|why| why.to_string())?;
    let measuring = Measuring::start_run(&punctual)?;
    let mut turns = Vec::new();
    for round in 0..rounds {
        for place in 0..ways.len() {
            let way = (place + round) % ways.len();
            let off = wait_for_window(length);
            let kept = switch_on(&punctual, measuring.running.0.id(), ways[way].0)?;
            turns.push(Turn { way, off, on: wait_for_window(length) });
            drop(kept);
        }
        eprint!(".");
    }
    let last = wait_for_window(length);
    eprintln!();
    let samples = measuring.end_and_export()?;
    let next_off = |place: usize| turns.get(place + 1).map_or(last, |turn: &Turn| turn.off);
    let turn_results: Vec<(usize, Seen)> = turns
        .iter()
        .enumerate()
        .map(|(place, turn)| (turn.way, evaluate_turn(&samples, turn, next_off(place))))
        .collect();
    let row = |(way, (_, name)): (usize, &(W, &str))| {
        let own_turns: Vec<&Seen> =
            turn_results.iter().filter(|(of, _)| *of == way).map(|(_, seen)| seen).collect();
        report_way(name, &own_turns)
    };
    Ok(ways.iter().enumerate().map(row).collect())
}

fn wait_for_window(length: Duration) -> Window {
    sleep(SETTLED);
    let from = monotonic_now();
    sleep(length);
    (from.0, monotonic_now().0)
}

/// A program that is interrupted, and awaited, when it is dropped.
pub(super) struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = kill_process(Pid::from_child(&self.0), Signal::INT);
        let _ = self.0.wait();
    }
}

pub(super) fn start_quietly(command: &mut Command) -> Result<Running, String> {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().map(Running).map_err(|why| format!("{command:?}: {why}"))
}

/// `punctual run` of one timer that keeps only its samples.
struct Measuring<'p> {
    program: &'p Path,
    running: Running,
    place: TempDir,
}

impl Measuring<'_> {
    fn start_run(program: &Path) -> Result<Measuring<'_>, String> {
        let place = tempfile::tempdir().map_err(|why| why.to_string())?;
        fs::write(place.path().join("bench.toml"), tools::timer_experiment("2h")?)
            .map_err(|why| why.to_string())?;
        let mut run = Command::new(program);
        let run = run.args(["run", "-q", "bench.toml", "-o", "out"]);
        let running = start_quietly(run.current_dir(place.path()))?;
        let begun = Instant::now();
        while !place.path().join("out/phases/000").exists() {
            if begun.elapsed() > Duration::from_secs(10) {
                return Err("punctual does not begin to measure".to_owned());
            }
            sleep(Duration::from_millis(20));
        }
        sleep(STARTED);
        Ok(Measuring { program, running, place })
    }

    /// The due time and the latency of each sample, in time order.
    fn end_and_export(self) -> Result<Vec<(i64, i64)>, String> {
        drop(self.running);
        let mut export = Command::new(self.program);
        let export =
            export.args(["export", "out", "--format", "csv"]).current_dir(self.place.path());
        let output = export.output().map_err(|why| why.to_string())?;
        let text = String::from_utf8_lossy(&output.stdout);
        let mut lines = text.lines();
        let header: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
        let column = |name: &str| {
            header.iter().position(|of| *of == name).ok_or(format!("no {name} in the samples"))
        };
        let (due, latency) = (column("due_ns")?, column("latency_ns")?);
        let sample = |line: &str| {
            let cells: Vec<&str> = line.split(',').collect();
            cells.get(due)?.parse().ok().zip(cells.get(latency)?.parse().ok())
        };
        Ok(lines.filter_map(sample).collect())
    }
}

/// The latencies of the samples due in a window.
fn latencies_in_window(samples: &[(i64, i64)], (from, to): Window) -> Vec<i64> {
    let [begin, end] = [from, to].map(|at| samples.partition_point(|(due, _)| *due < at));
    samples[begin..end.max(begin)].iter().map(|(_, latency)| *latency).collect()
}

/// The nearest rank, in µs.
fn percentile(values: &[i64], share: f64) -> f64 {
    let mut values = values.to_vec();
    if values.is_empty() {
        return f64::NAN;
    }
    let rank = ((values.len() as f64 * share).ceil() as usize).clamp(1, values.len());
    *values.select_nth_unstable(rank - 1).1 as f64 / 1e3
}

fn evaluate_turn(samples: &[(i64, i64)], turn: &Turn, after: Window) -> Seen {
    let [before, on, after] =
        [turn.off, turn.on, after].map(|window| latencies_in_window(samples, window));
    let added = [0, 1, 2].map(|place| {
        let turn_percentile = |values: &[i64]| percentile(values, PERCENTILES[place]);
        turn_percentile(&on) - (turn_percentile(&before) + turn_percentile(&after)) / 2.0
    });
    Seen { off: [before, after].concat(), on, added }
}

/// Percentiles that one second supports: the median over all turns. The rarest one: over the
/// samples of all turns together.
fn added_latency(turns: &[&Seen], place: usize) -> f64 {
    if place < 3 {
        return median(&turns.iter().map(|turn| turn.added[place]).collect::<Vec<_>>());
    }
    let pooled = |of: fn(&Seen) -> &Vec<i64>| {
        percentile(
            &turns.iter().flat_map(|turn| of(turn)).copied().collect::<Vec<_>>(),
            PERCENTILES[place],
        )
    };
    pooled(|turn| &turn.on) - pooled(|turn| &turn.off)
}

/// A statistic of the turns, with the 95 % interval of resampled turns (percentile bootstrap; the
/// turns are a second or more apart).
fn with_interval(turns: &[&Seen], statistic: impl Fn(&[&Seen]) -> f64) -> [f64; 3] {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
    let mut resampled: Vec<f64> = (0..RESAMPLED)
        .map(|_| {
            let one = |_| turns[(random.next_u64() % turns.len() as u64) as usize];
            statistic(&turns.iter().map(one).collect::<Vec<_>>())
        })
        .collect();
    resampled.sort_by(f64::total_cmp);
    [statistic(turns), resampled[RESAMPLED * 25 / 1000], resampled[RESAMPLED * 975 / 1000]]
}

fn report_way(name: &str, turns: &[&Seen]) -> Value {
    let added_figures: Vec<[f64; 3]> = (0..PERCENTILES.len())
        .map(|place| with_interval(turns, |turns| added_latency(turns, place)))
        .collect();
    let bare: Vec<i64> = turns.iter().flat_map(|turn| &turn.off).copied().collect();
    let cells = added_figures
        .iter()
        .map(|[value, low, high]| format!("{value:>+7.2} ({low:>+6.2} to {high:>+6.2})"));
    println!("  {name:<52} p50, p90, p99, p99.9 {}", cells.collect::<Vec<_>>().join("  "));
    let keys = ["added_p50_us", "added_p90_us", "added_p99_us", "added_p99_9_us"];
    let mut row = json!({
        "name": name, "turns": turns.len(),
        "samples": turns.iter().map(|turn| turn.on.len()).sum::<usize>(),
        "without": PERCENTILES.map(|share| percentile(&bare, share)),
        "rounds_added_p50_us": turns.iter().map(|turn| turn.added[0]).collect::<Vec<_>>(),
    });
    for (key, value) in keys.into_iter().zip(added_figures) {
        row[key] = json!(value);
    }
    row
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_added_is_told_apart_from_a_drift() {
        // Latencies drift by 1 ns per sample; keeping data adds 5 µs.
        let latency = |n: i64| 20_000 + n + if (200..300).contains(&n) { 5_000 } else { 0 };
        let samples: Vec<(i64, i64)> = (0..500).map(|n| (n, latency(n))).collect();
        let seen =
            evaluate_turn(&samples, &Turn { way: 0, off: (0, 100), on: (200, 300) }, (400, 500));
        assert_eq!((seen.on.len(), seen.off.len()), (100, 200));
        assert!((seen.added[0] - 5.0).abs() < 1e-9, "{:?}", seen.added);
        let [value, low, high] = with_interval(&[&seen, &seen], |turns| added_latency(turns, 0));
        assert!(low <= value && value <= high && (value - 5.0).abs() < 1e-9);
    }

    #[test]
    fn a_percentile_is_the_nearest_rank() {
        assert_eq!(percentile(&[3_000, 1_000, 2_000], 0.5), 2.0);
        assert_eq!(percentile(&[3_000, 1_000, 2_000], 0.999), 3.0);
        assert!(percentile(&[], 0.5).is_nan());
    }
}
