//! Many threads, many samples.

use crate::Args;
use serde_json::{Value, json};
use std::path::Path;
use std::process::{Command, Output};
use std::time::Instant;

fn punctual(program: &Path, place: &Path, arguments: &[&str]) -> Result<Output, String> {
    let program = std::path::absolute(program).map_err(|e| e.to_string())?;
    let output = Command::new(program)
        .args(arguments)
        .current_dir(place)
        .output()
        .map_err(|e| e.to_string())?;
    match output.status.code() {
        Some(0 | 3 | 4) => Ok(output),
        _ => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}

/// 64 threads at 100 µs, and the report of a bundle with a million samples.
pub fn measure(args: &Args) -> Result<Value, String> {
    let place = tempfile::tempdir().map_err(|e| e.to_string())?;
    let seconds = if args.quick { 5 } else { 60 };
    let measure = |threads: u32, seconds: u64| {
        format!(
            "[[measure]]\nkind = \"timer\"\ncpus = \"all\"\nthreads = {threads}\nperiod = \
             \"100us\"\nduration = \"{seconds}s\"\n"
        )
    };
    let write = |name: &str, text: String| {
        std::fs::write(place.path().join(name), text).map_err(|e| e.to_string())
    };
    write("many.toml", measure(64, seconds))?;
    write("million.toml", measure(2, 50))?;
    punctual(&args.punctual, place.path(), &["run", "-q", "many.toml", "-o", "many"])?;
    let many = totals(args, place.path(), "many")?;
    println!(
        "64 threads at 100 µs for {seconds} s: {} samples, {} periods missed while late, {} lost",
        many.0, many.1, many.2
    );
    // Two threads for 50 s make a million; a quick run uses the existing bundle.
    let bundle = if args.quick { "many" } else { "million" };
    if !args.quick {
        punctual(&args.punctual, place.path(), &["run", "-q", "million.toml", "-o", "million"])?;
    }
    let samples = totals(args, place.path(), bundle)?.0;
    let begin = Instant::now();
    punctual(&args.punctual, place.path(), &["report", bundle, "-o", "report.html"])?;
    let report = begin.elapsed().as_secs_f64();
    println!("report of a bundle with {samples} samples: {report:.3} s");
    Ok(json!({
        "threads": 64, "period_us": 100, "seconds": seconds, "samples": many.0,
        "overruns": many.1, "lost": many.2, "report": {"samples": samples, "seconds": report},
    }))
}

/// Samples, overruns and lost ones of all series.
fn totals(args: &Args, place: &Path, bundle: &str) -> Result<(u64, u64, u64), String> {
    let shown = punctual(&args.punctual, place, &["show", "--json", bundle])?;
    let summary: Value = serde_json::from_slice(&shown.stdout).map_err(|e| e.to_string())?;
    let phases = summary["phases"].as_array().ok_or("no phases in the summary")?;
    let series = phases.iter().filter_map(|phase| phase["series"].as_array()).flatten();
    let add = |sum: (u64, u64, u64), s: &Value| {
        let n = |name: &str| s[name].as_u64().unwrap_or(0);
        (sum.0 + n("count"), sum.1 + n("overruns"), sum.2 + n("lost"))
    };
    Ok(series.fold((0, 0, 0), add))
}
