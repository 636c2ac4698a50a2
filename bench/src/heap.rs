//! The overhead of `punctual measure heap` over a bare loop in C: the same malloc, touch and free,
//! the same readings of the clock, the same CPU and policy, in interleaved rounds.

use crate::Args;
use crate::figures::median;
use crate::tools;
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;

/// A round of punctual: well below the second after which real-time throttling begins.
const ROUND_MS: u64 = 500;
/// Sizes, with turns per round of the bare loop that take about the same time.
const SIZES: [(u64, u64); 2] = [(1 << 10, 3_000_000), (1 << 20, 200_000)];
/// The figures of a round: ns per turn, and the mean samples.
const NAMES: [&str; 4] = ["a turn", "malloc", "touch", "free"];

/// Both programs, round by round, for each size.
pub fn measure(args: &Args) -> Result<Value, String> {
    let place = tempfile::tempdir().map_err(|e| e.to_string())?;
    let Some(bare) = tools::compiled("heap", place.path()) else { return Ok(Value::Null) };
    let rounds = if args.quick { 3 } else { 15 };
    let sizes = SIZES.map(|(size, turns)| compare(args, &bare, place.path(), size, turns, rounds));
    Ok(Value::Array(sizes.into_iter().collect::<Result<_, _>>()?))
}

fn compare(
    args: &Args,
    bare: &Path,
    place: &Path,
    size: u64,
    turns: u64,
    rounds: usize,
) -> Result<Value, String> {
    println!(
        "malloc, touch and free of {size} B, {rounds} rounds each, interleaved; ns a turn, and \
         the mean samples:"
    );
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        for turn in 0..2 {
            // Neither alone uses up a second's allowance for real-time tasks.
            std::thread::sleep(std::time::Duration::from_millis(500));
            match (round + turn) % 2 {
                0 => ours.push(punctual(
                    &args.punctual,
                    &place.join(format!("{size}-{round}")),
                    size,
                )?),
                _ => theirs.push(bare_loop(bare, turns, size)?),
            }
        }
        eprint!(".");
    }
    eprintln!();
    let row = |(place, name): (usize, &str)| {
        let pick =
            |rounds: &[[f64; 4]]| rounds.iter().map(|round| round[place]).collect::<Vec<f64>>();
        let (ours, theirs) = (pick(&ours), pick(&theirs));
        let ratio = median(&ours) / median(&theirs);
        println!(
            "  {name:<14} {:>10.2} {:>10.2} ns  ratio {ratio:.4}",
            median(&ours),
            median(&theirs)
        );
        json!({
            "name": name, "unit": "ns", "punctual": ours, "bare": theirs,
            "median_punctual": median(&ours), "median_bare": median(&theirs),
            "ratio_of_medians": ratio,
        })
    };
    Ok(json!({"size": size, "rows": NAMES.into_iter().enumerate().map(row).collect::<Vec<_>>()}))
}

/// ns per turn, and the mean samples.
pub fn punctual(program: &Path, bundle: &Path, size: u64) -> Result<[f64; 4], String> {
    let (duration, cpu, size) =
        (format!("{ROUND_MS}ms"), tools::cpu()?.to_string(), format!("size={size}B"));
    let mut command = Command::new(program);
    command.args([
        "measure",
        "heap",
        "--quiet",
        "--json",
        "--set",
        &size,
        "--duration",
        &duration,
        "--cpus",
        &cpu,
    ]);
    let output = command.arg("--output").arg(bundle).output().map_err(|e| e.to_string())?;
    let summary: Value = serde_json::from_slice(&output.stdout).map_err(|why| {
        format!("punctual measure heap: {why}: {}", String::from_utf8_lossy(&output.stderr))
    })?;
    let phase = &summary["phases"][0];
    let figures =
        phase["measures"][0]["notes"]["figures"].as_array().ok_or("no figures in the summary")?;
    let turn =
        figures.iter().find(|one| one["name"] == "turn").and_then(|one| one["value"].as_f64());
    let mean =
        |place: usize| phase["series"][place]["mean"].as_f64().ok_or("no mean in the summary");
    Ok([turn.ok_or("no turn in the summary")?, mean(0)?, mean(1)?, mean(2)?])
}

/// The same for the C program.
pub fn bare_loop(program: &Path, turns: u64, size: u64) -> Result<[f64; 4], String> {
    let output = Command::new(program)
        .args([turns.to_string(), tools::cpu()?.to_string(), size.to_string()])
        .output();
    let output = output.map_err(|e| e.to_string())?;
    let text = String::from_utf8_lossy(&output.stdout);
    let numbers: Vec<f64> =
        text.split_ascii_whitespace().map_while(|word| word.parse().ok()).collect();
    match numbers.first_chunk() {
        Some(numbers) if output.status.success() => Ok(*numbers),
        _ => Err("the bare loop gave no figures: it needs the right to SCHED_FIFO".to_owned()),
    }
}
