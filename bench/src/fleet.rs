//! The results of 10,000 bundles: the time to write them as tables, and the time of DuckDB to find
//! the worst cause of each kernel.

use crate::Args;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

const MACHINES: usize = 100;
const DAYS: usize = 10;
const KERNELS: [&str; 5] = ["5.10", "6.1", "6.1-rt", "6.12", "6.12-rt"];

/// As in docs/reference/fleet.md, in seconds.
const ASK: &str = "
import duckdb, time
began = time.monotonic()
rows = duckdb.sql('''SELECT kernel, cause, max(max_ns) / 1000 AS max_us, sum(samples) AS samples
FROM read_parquet('fleet/causes/*/*/*.parquet', hive_partitioning = true)
WHERE source = 'worst' AND timebase = 'own' AND kernel IS NOT NULL
GROUP BY kernel, cause
QUALIFY row_number() OVER (PARTITION BY kernel ORDER BY max(max_ns) DESC, cause) = 1
ORDER BY max_us DESC, kernel''').fetchall()
assert len(rows) == 5, rows
print(time.monotonic() - began)
";

/// Copies a run with explained samples many times, and measures.
pub fn measure(args: &Args) -> Result<Value, String> {
    let place = tempfile::tempdir().map_err(|e| e.to_string())?;
    let place = place.path();
    let bundles = if args.quick { 1_000 } else { 10_000 };
    let text = "[experiment]\nname = \"fleet\"\n[[measure]]\nkind = \"timer\"\nduration = \"2s\"\n\
                [explain]\n";
    fs::write(place.join("one.toml"), text).map_err(|e| e.to_string())?;
    run(args, place, &["run", "-q", "one.toml", "-o", "one"])?;
    for number in 0..bundles {
        copy(&place.join("one"), &place.join("results").join(number.to_string()), number)
            .map_err(|e| e.to_string())?;
    }
    let began = Instant::now();
    run(args, place, &["export", "results", "--format", "parquet-tables", "-o", "fleet"])?;
    let export = began.elapsed().as_secs_f64();
    println!("{bundles} bundles as tables: {export:.1} s");
    let mut python = Command::new("python3");
    let asked = python.args(["-c", ASK]).current_dir(place).output().map_err(|e| e.to_string())?;
    let seconds: Option<f64> = String::from_utf8_lossy(&asked.stdout).trim().parse().ok();
    match seconds {
        Some(seconds) => println!("the worst cause of each kernel, by DuckDB: {seconds:.2} s"),
        None => println!("no answer: {}", String::from_utf8_lossy(&asked.stderr).trim()),
    }
    Ok(json!({
        "bundles": bundles, "machines": MACHINES, "days": DAYS, "export_seconds": export,
        "query_seconds": seconds,
    }))
}

fn run(args: &Args, place: &Path, words: &[&str]) -> Result<(), String> {
    let program = std::path::absolute(&args.punctual).map_err(|e| e.to_string())?;
    let ran = Command::new(program).args(words).current_dir(place).output();
    let ran = ran.map_err(|e| e.to_string())?;
    match ran.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&ran.stderr).into_owned()),
    }
}

/// The same bundle with another machine, day and kernel. Unchanged files are hard links.
fn copy(from: &Path, to: &Path, number: usize) -> std::io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)?.flatten() {
        let (path, to) = (entry.path(), to.join(entry.file_name()));
        let changed: fn(&mut Value, usize) = match entry.file_name().to_str() {
            _ if path.is_dir() => {
                copy(&path, &to, number)?;
                continue;
            }
            Some("bundle.json") => |manifest, number| {
                let (machine, rest) = (number % MACHINES, number / MACHINES);
                let (day, second) = (1 + rest % DAYS, rest / DAYS);
                let (minute, second) = (second / 60, second % 60);
                manifest["machine"] = json!(format!("board{machine}"));
                manifest["created"] =
                    json!(format!("2026-11-{day:02}T10:{minute:02}:{second:02}Z"));
            },
            Some("environment.json") => |environment, number| {
                let kernel = KERNELS[number % KERNELS.len()];
                environment["kernel"]["release"] = json!({ "known": kernel });
            },
            _ => {
                fs::hard_link(&path, &to)?;
                continue;
            }
        };
        let mut document: Value = serde_json::from_slice(&fs::read(&path)?)?;
        changed(&mut document, number);
        fs::write(&to, document.to_string())?;
    }
    Ok(())
}
