//! The cost of building punctual, and the parts of the program: seconds of CPU and crates from an
//! empty target directory, bytes by section and by crate.

mod parts;

use crate::{Args, tools};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// A build from scratch: its name, and the arguments of cargo, as `./x` passes them. `board` is the
/// program without optional features: for a small system.
const BUILDS: [(&str, &[&str]); 3] = [
    ("demo", &["--profile", "quick", "--no-default-features", "--features", "pages"]),
    ("release", &["--profile", "release"]),
    ("board", &["--profile", "release", "--no-default-features"]),
];

/// Builds, and measures the parts of each program. With `--quick` only the build of `./x demo`: the
/// others take long.
pub fn measure_builds(args: &Args) -> Result<Value, String> {
    let builds = BUILDS.iter().filter(|(name, _)| !args.quick || *name == "demo");
    builds.map(|(name, arguments)| build_and_measure(name, arguments)).collect()
}

fn build_and_measure(name: &str, arguments: &[&str]) -> Result<Value, String> {
    let target = tempfile::tempdir().map_err(|why| why.to_string())?;
    let host = host_triple()?;
    let before = tools::cpu_of_children()?;
    let start = Instant::now();
    let mut command = Command::new("cargo");
    command.args([
        "build",
        "--locked",
        "--package",
        "punctual",
        "--message-format",
        "json",
        "--target",
        &host,
    ]);
    command
        .args(arguments)
        .env("CARGO_TARGET_DIR", target.path())
        .stdin(Stdio::null())
        .stderr(Stdio::inherit());
    let flags = format!("CARGO_TARGET_{}_RUSTFLAGS", host.to_uppercase().replace('-', "_"));
    command.env(flags, "-C target-feature=+crt-static -C relocation-model=static");
    let output = command.output().map_err(|why| format!("cargo: {why}"))?;
    if !output.status.success() {
        return Err(format!("the build for {name}: {}", output.status));
    }
    let (wall, cpu) = (start.elapsed().as_secs_f64(), tools::cpu_of_children()? - before);
    let (crates, program) = said_by_cargo(&String::from_utf8_lossy(&output.stdout));
    let program = program.ok_or("cargo names no program")?;
    let program = parts::measure_parts(&program)?;
    println!("{name}: {cpu:.0} s of CPU, {wall:.0} s, {crates} crates, {} bytes", program["bytes"]);
    Ok(json!({
        "name": name, "cpu_seconds": cpu, "wall_seconds": wall, "crates": crates,
        "program": program,
    }))
}

/// The number of crates, and the program.
fn said_by_cargo(messages: &str) -> (usize, Option<PathBuf>) {
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let artifacts: Vec<Value> =
        messages.filter(|message| message["reason"] == "compiler-artifact").collect();
    let crates: std::collections::BTreeSet<&str> =
        artifacts.iter().filter_map(|one| one["package_id"].as_str()).collect();
    let program = artifacts.iter().rev().find_map(|one| one["executable"].as_str());
    (crates.len(), program.map(|path| Path::new(path).to_owned()))
}

fn host_triple() -> Result<String, String> {
    let output =
        Command::new("rustc").arg("-vV").output().map_err(|why| format!("rustc: {why}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or("rustc -vV names no host".to_owned())
}
