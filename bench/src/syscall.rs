//! The overhead of `punctual measure syscall` over a bare loop in C: the same clock, the same call,
//! the same CPU and policy, in interleaved rounds.

use crate::Args;
use crate::figures::median;
use crate::tools;
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;

/// Turns per round of the bare loop: well below the second after which real-time throttling begins.
const TURNS: u64 = 3_000_000;
/// A round of punctual, equally long.
const ROUND_MS: u64 = 500;

/// ns per turn and mean sample of both, round by round.
pub fn measure(args: &Args) -> Result<Value, String> {
    let place = tempfile::tempdir().map_err(|e| e.to_string())?;
    let Some(bare) = tools::compiled("getpid", place.path()) else { return Ok(Value::Null) };
    let rounds = if args.quick { 3 } else { 15 };
    println!("getpid, {rounds} rounds each, interleaved; ns a turn, and the mean sample:");
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        for turn in 0..2 {
            // Neither alone uses up a second's allowance for real-time tasks.
            std::thread::sleep(std::time::Duration::from_millis(500));
            match (round + turn) % 2 {
                0 => ours.push(punctual(&args.punctual, &place.path().join(format!("{round}")))?),
                _ => theirs.push(bare_loop(&bare)?),
            }
        }
        eprint!(".");
    }
    eprintln!();
    let row = |name: &str, pick: fn(&(f64, f64)) -> f64| {
        let (ours, theirs): (Vec<f64>, Vec<f64>) =
            (ours.iter().map(pick).collect(), theirs.iter().map(pick).collect());
        let ratio = median(&ours) / median(&theirs);
        println!(
            "  {name:<14} {:>8.2} {:>8.2} ns  ratio {ratio:.4}",
            median(&ours),
            median(&theirs)
        );
        json!({
            "name": name, "unit": "ns", "punctual": ours, "bare": theirs,
            "median_punctual": median(&ours), "median_bare": median(&theirs),
            "ratio_of_medians": ratio,
        })
    };
    Ok(json!([row("a turn", |round| round.0), row("mean sample", |round| round.1)]))
}

/// ns per turn, and the mean sample.
pub fn punctual(program: &Path, bundle: &Path) -> Result<(f64, f64), String> {
    let (duration, cpu) = (format!("{ROUND_MS}ms"), tools::cpu()?.to_string());
    let mut command = Command::new(program);
    command.args([
        "measure",
        "syscall",
        "--quiet",
        "--json",
        "--set",
        "rest=0s",
        "--duration",
        &duration,
        "--cpus",
        &cpu,
    ]);
    let output = command.arg("--output").arg(bundle).output().map_err(|e| e.to_string())?;
    let summary: Value = serde_json::from_slice(&output.stdout).map_err(|why| {
        format!("punctual measure syscall: {why}: {}", String::from_utf8_lossy(&output.stderr))
    })?;
    let series = &summary["phases"][0]["series"][0];
    let figure = |name: &str| series[name].as_f64().ok_or(format!("no {name} in the summary"));
    Ok((ROUND_MS as f64 * 1e6 / figure("count")?, figure("mean")?))
}

/// The same for the C program.
pub fn bare_loop(program: &Path) -> Result<(f64, f64), String> {
    let output =
        Command::new(program).args([TURNS.to_string(), tools::cpu()?.to_string()]).output();
    let output = output.map_err(|e| e.to_string())?;
    let text = String::from_utf8_lossy(&output.stdout);
    let mut numbers = text.split_ascii_whitespace().map(str::parse::<f64>);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(turn)), Some(Ok(sample))) if output.status.success() => Ok((turn, sample)),
        _ => Err("the bare loop gave no figures: it needs the right to SCHED_FIFO".to_owned()),
    }
}
