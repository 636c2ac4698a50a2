//! The cost of a test point beside other ways to leave a record, all in one program and one run:
//! the counter alone, our point while `punctual trace` collects it, a step, LTTng-UST in its own
//! session, a system call, trace_marker.

use crate::Args;
use crate::figures::median;
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const FILES: [(&str, &str); 2] =
    [("cost.c", include_str!("points/cost.c")), ("tp.h", include_str!("points/tp.h"))];
const SESSION: &str = "punctual-bench";

/// Means of batches, and the intended ratios.
pub fn measure_points(args: &Args) -> Result<Value, String> {
    let place = tempfile::tempdir().map_err(|e| e.to_string())?;
    let lttng = build_program(place.path())?;
    let points = place.path().join("points");
    create_private(&points)?;
    // LTTng may be installed but its session refused: the other ways are compared without it.
    let session =
        lttng.then(|| Session::start_session(place.path())).transpose().unwrap_or_else(|why| {
            println!("SKIPPED: no session of LTTng: {why}");
            None
        });
    let mut command = Command::new(std::path::absolute(&args.punctual).map_err(|e| e.to_string())?);
    command.args(["trace", "-q", "--events", "none", "--output", "recorded", "--", "./cost"]);
    command.arg(if args.quick { "30" } else { "400" }).env("PUNCTUAL_POINTS_DIR", &points);
    let output = command
        .current_dir(place.path())
        .stdin(Stdio::null())
        .output()
        .map_err(|e| e.to_string())?;
    drop(session);
    if !output.status.success() {
        return Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr)));
    }
    println!(
        "what a record costs (ns, median of the means of batches), and how many test points that \
         is:"
    );
    compare_ways(&String::from_utf8_lossy(&output.stdout))
}

fn compare_ways(text: &str) -> Result<Value, String> {
    let mut ways = Vec::new();
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let name = words.next().unwrap_or_default().to_owned();
        let means: Vec<f64> =
            words.map(str::parse).collect::<Result<_, _>>().map_err(|e| format!("{line}: {e}"))?;
        ways.push((name, means));
    }
    let ring = ways
        .iter()
        .find(|(name, _)| name == "ring")
        .map(|(_, means)| median(means))
        .ok_or("no test points")?;
    let mut rows = Map::new();
    for (name, means) in ways {
        let ns = median(&means);
        println!("  {name:<14} {ns:>8.2} {:>8.2}", ns / ring);
        rows.insert(name, json!({"median_ns": ns, "per_test_point": ns / ring, "means_ns": means}));
    }
    Ok(Value::Object(rows))
}

/// Builds the program, and returns whether LTTng-UST is in it.
fn build_program(place: &Path) -> Result<bool, String> {
    for (name, text) in FILES {
        std::fs::write(place.join(name), text).map_err(|e| e.to_string())?;
    }
    let installed = place.join("library");
    let install = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/testpoint/c/install");
    run_to_success(Command::new(install).arg(&installed).stdout(Stdio::null()))?;
    let compile = |extra: &[&str]| {
        let mut command = Command::new("cc");
        command
            .args(["-O2", "-I.", "-o", "cost", "cost.c"])
            .arg("-I")
            .arg(installed.join("include"));
        let libraries = ["steps", "testpoint"];
        let libraries = libraries.map(|part| installed.join(format!("lib/libpunctual-{part}.a")));
        command.args(libraries).args(extra).args(["-lpthread", "-ldl", "-lm"]);
        command.current_dir(place).stderr(Stdio::null());
        run_to_success(&mut command)
    };
    let has_session =
        run_to_success(Command::new("lttng").arg("--version").stdout(Stdio::null())).is_ok();
    if has_session && compile(&["-DLTTNG", "-llttng-ust"]).is_ok() {
        return Ok(true);
    }
    println!("SKIPPED: LTTng-UST lacks Debian's lttng-tools or liblttng-ust-dev");
    compile(&[]).map(|()| false)
}

/// A directory accessible only to its owner, as applications require.
fn create_private(path: &PathBuf) -> Result<(), String> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new().mode(0o700).create(path).map_err(|e| e.to_string())
}

fn run_to_success(command: &mut Command) -> Result<(), String> {
    let status = command.stdin(Stdio::null()).status().map_err(|e| format!("{command:?}: {e}"))?;
    if status.success() { Ok(()) } else { Err(format!("{command:?}: {status}")) }
}

/// A session with buffers that keep everything; destroyed when it is dropped.
struct Session;

impl Session {
    fn start_session(place: &Path) -> Result<Session, String> {
        run_lttng(&["create", SESSION, &format!("--output={}", place.join("lttng").display())])?;
        let session = Session;
        let channel =
            ["enable-channel", "-u", "all", "--subbuf-size=1M", "--num-subbuf=16", "-s", SESSION];
        run_lttng(&channel)?;
        run_lttng(&["enable-event", "-u", "punctual_bench:*", "-c", "all", "-s", SESSION])?;
        run_lttng(&["start", SESSION])?;
        Ok(session)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = run_lttng(&["destroy", SESSION]);
    }
}

fn run_lttng(arguments: &[&str]) -> Result<(), String> {
    run_to_success(Command::new("lttng").args(arguments).stdout(Stdio::null()))
}
