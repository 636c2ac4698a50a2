//! The indirect cost of a switch beside an independent C program: the additional time of a walk
//! through a working set after it.

use crate::Args;
use crate::tools;
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;

const SIZES: [u64; 3] = [256 << 10, 1 << 20, 4 << 20];

/// Both programs for each size, in turn; ns.
pub fn measure_working_sets(args: &Args) -> Result<Value, String> {
    let place = tempfile::tempdir().map_err(|e| e.to_string())?;
    let Some(program) = tools::compile_program("working_set", place.path()) else {
        return Ok(Value::Null);
    };
    let rounds = if args.quick { 1 } else { 5 };
    println!(
        "what going through a working set takes after a switch and alone, ns; median difference, \
         and its border:"
    );
    let mut rows = Vec::new();
    for size in SIZES {
        for round in 0..rounds {
            let theirs = run_c_program(&program, size)?;
            let ours =
                run_punctual(&args.punctual, &place.path().join(format!("{size}-{round}")), size)?;
            println!("  {size:>8} B  C: {theirs:?}");
            println!("             punctual: {ours}");
            rows.push(
                json!({"size": size, "round": round, "independent": theirs, "punctual": ours}),
            );
        }
    }
    let columns = ["after", "alone", "difference", "lower quartile", "upper quartile"];
    Ok(json!({"unit": "ns", "independent columns": columns, "rows": rows}))
}

/// After a switch, alone, the difference, and its quartiles.
fn run_c_program(program: &Path, size: u64) -> Result<Vec<f64>, String> {
    let arguments = [size.to_string(), tools::last_online_cpu()?.to_string(), "200".to_owned()];
    let output = Command::new(program).args(arguments).output().map_err(|e| e.to_string())?;
    let text = String::from_utf8_lossy(&output.stdout);
    let figures: Vec<f64> =
        text.split_ascii_whitespace().filter_map(|word| word.parse().ok()).collect();
    if figures.len() == 5 {
        Ok(figures)
    } else {
        Err("the C program gave no figures: it needs SCHED_FIFO".to_owned())
    }
}

/// The row of the table `working-sets`.
fn run_punctual(program: &Path, bundle: &Path, size: u64) -> Result<Value, String> {
    let (cpu, set) = (tools::last_online_cpu()?.to_string(), format!("working_set=[\"{size}B\"]"));
    let mut command = Command::new(program);
    command.args([
        "measure", "switch", "--quiet", "--json", "--count", "4000", "--cpus", &cpu, "--set", &set,
    ]);
    let output = command.arg("--output").arg(bundle).output().map_err(|e| e.to_string())?;
    let summary: Value = serde_json::from_slice(&output.stdout).map_err(|why| {
        format!("punctual measure switch: {why}: {}", String::from_utf8_lossy(&output.stderr))
    })?;
    let tables = summary["phases"][0]["measures"][0]["notes"]["tables"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let table = tables.into_iter().find(|table| table["name"] == "working-sets");
    table
        .map(|table| table["rows"][0].clone())
        .ok_or_else(|| "no table `working-sets` in the summary".to_owned())
}
