//! Noise seen by a busy thread, beside oslat: gaps of 1 µs and more, on the same CPU with the same
//! policy, interleaved.

use crate::Args;
use crate::figures::median;
use crate::tools;
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Buckets of 1 µs that oslat keeps.
const BUCKETS: &str = "100";

/// The result of one round.
#[derive(Clone, Copy)]
pub struct Noise {
    /// Gaps of 1 µs and more, per second.
    pub gaps: f64,
    /// Those of 5 µs and more, per second.
    pub long: f64,
}

/// Gaps per second of both, round by round. Noise is irregular: the medians of many rounds only
/// have the same magnitude.
pub fn measure(args: &Args) -> Result<Value, String> {
    if Command::new("oslat").arg("--help").output().is_err() {
        println!(
            "SKIPPED: the comparison of spin lacks the program oslat (Debian package rt-tests)"
        );
        return Ok(Value::Null);
    }
    println!("SKIPPED: rtla osnoise needs the osnoise tracer, which few kernels have");
    let place = tempfile::tempdir().map_err(|e| e.to_string())?;
    let (rounds, seconds) = if args.quick { (3, 1) } else { (15, 2) };
    println!(
        "gaps in a busy loop, {rounds} rounds of {seconds} s each, interleaved; gaps a second:"
    );
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        for turn in 0..2 {
            std::thread::sleep(Duration::from_millis(500));
            match (round + turn) % 2 {
                0 => ours.push(punctual(
                    &args.punctual,
                    &place.path().join(format!("{round}")),
                    seconds,
                )?),
                _ => theirs.push(oslat(&place.path().join("oslat.json"), seconds)?),
            }
        }
        eprint!(".");
    }
    eprintln!();
    let row = |name: &str, pick: fn(&Noise) -> f64| {
        let (ours, theirs): (Vec<f64>, Vec<f64>) =
            (ours.iter().map(pick).collect(), theirs.iter().map(pick).collect());
        let ratio = median(&ours) / median(&theirs);
        println!("  {name:<18} {:>8.1} {:>8.1}  ratio {ratio:.3}", median(&ours), median(&theirs));
        json!({
            "name": name, "unit": "per second", "punctual": ours, "oslat": theirs,
            "median_punctual": median(&ours), "median_oslat": median(&theirs),
            "ratio_of_medians": ratio,
        })
    };
    Ok(json!([row("1 µs and more", |noise| noise.gaps), row("5 µs and more", |noise| noise.long)]))
}

/// The gaps that punctual sees in this many seconds.
pub fn punctual(program: &Path, bundle: &Path, seconds: u64) -> Result<Noise, String> {
    let cpu = tools::cpu()?.to_string();
    let mut command = Command::new(program);
    command.args(["measure", "spin", "--quiet", "--set", "threshold=1us", "--cpus", &cpu]);
    command.args(["--duration", &format!("{seconds}s"), "--output"]).arg(bundle);
    let output = command.output().map_err(|e| e.to_string())?;
    let exported = Command::new(program)
        .arg("export")
        .arg(bundle)
        .args(["--format", "cyclictest-json"])
        .output();
    let exported = exported.map_err(|e| e.to_string())?;
    let bins = tools::bins(&exported.stdout).map_err(|why| {
        format!("punctual measure spin: {why}: {}", String::from_utf8_lossy(&output.stderr))
    })?;
    let document: Value = serde_json::from_slice(&exported.stdout).map_err(|e| e.to_string())?;
    let all =
        document["thread"]["0"]["cycles"].as_f64().ok_or("no count in what punctual exported")?;
    // Its bins are narrower than 1 µs, so they are written in ns.
    let short: u64 = bins.iter().filter(|(ns, _)| *ns < 5_000).map(|(_, n)| n).sum();
    Ok(Noise { gaps: all / seconds as f64, long: (all - short as f64) / seconds as f64 })
}

/// oslat's bucket n holds the gaps from n − 1 to n µs; the last one holds all longer ones.
pub fn oslat(json: &Path, seconds: u64) -> Result<Noise, String> {
    let cpu = tools::cpu()?.to_string();
    let mut command = Command::new("oslat");
    command.args(["-q", "-c", &cpu, "-f", "80", "-b", BUCKETS, "-D", &seconds.to_string()]);
    command.arg(format!("--json={}", json.display()));
    let output = command.output().map_err(|e| e.to_string())?;
    let failed = || format!("oslat: {}", String::from_utf8_lossy(&output.stderr));
    let text = std::fs::read(json).map_err(|_| failed())?;
    let document: Value = serde_json::from_slice(&text).map_err(|e| e.to_string())?;
    let histogram = document["thread"]["0"]["histogram"].as_object().ok_or_else(failed)?;
    let buckets = || {
        histogram.iter().filter_map(|(bucket, n)| Some((bucket.parse::<u64>().ok()?, n.as_u64()?)))
    };
    let from = |least: u64| {
        buckets().filter(|(bucket, _)| *bucket > least).map(|(_, n)| n as f64).sum::<f64>()
    };
    Ok(Noise { gaps: from(1) / seconds as f64, long: from(5) / seconds as f64 })
}
