//! Both tools with the same settings: one thread, one CPU, SCHED_FIFO 80, one period, one duration.

use crate::process::{Seen, watch_command};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// One round of one tool.
#[derive(Clone, Debug)]
pub struct Round {
    /// (whole µs, samples), within 1 ms.
    pub bins: Vec<(u64, u64)>,
    /// The largest latency in µs.
    pub max: f64,
    /// Observations from outside.
    pub seen: Seen,
}

/// Whether cyclictest can be run; reports if it is missing.
pub fn has_cyclictest() -> bool {
    let found = Command::new("cyclictest").arg("--help").output().is_ok();
    if !found {
        println!("SKIPPED: the comparisons lack the program cyclictest (Debian package rt-tests)");
    }
    found
}

/// A program of `bench/c`, compiled in this directory; reports what is missing if that fails.
pub fn compile_program(name: &str, place: &Path) -> Option<PathBuf> {
    let program = place.join(name);
    let source = format!("{}/c/{name}.c", env!("CARGO_MANIFEST_DIR"));
    let mut compiler = Command::new("cc");
    compiler.args(["-O2", "-pthread", "-o"]).arg(&program).arg(source);
    let is_built = compiler.status().is_ok_and(|status| status.success());
    if !is_built {
        println!("SKIPPED: c/{name}.c needs a C compiler (Debian package gcc)");
    }
    is_built.then_some(program)
}

/// The last online CPU.
pub fn last_online_cpu() -> Result<usize, String> {
    let online =
        std::fs::read_to_string("/sys/devices/system/cpu/online").map_err(|e| e.to_string())?;
    let last = online.trim().rsplit([',', '-']).next().and_then(|cpu| cpu.parse().ok());
    last.ok_or("cannot determine which CPUs are online".to_owned())
}

/// An experiment of one timer on [`last_online_cpu`], of 1 ms.
pub fn timer_experiment(duration: &str) -> Result<String, String> {
    let cpu = last_online_cpu()?;
    Ok(format!(
        "[[measure]]\nkind = \"timer\"\ncpus = \"{cpu}\"\npolicy = \"fifo\"\npriority = 80\n\
         period = \"1ms\"\nduration = \"{duration}\"\n"
    ))
}

fn watched_interval(seconds: u64) -> (Duration, Duration) {
    (Duration::from_millis(700), Duration::from_millis(seconds * 1000 - 400))
}

/// One round of punctual.
pub fn run_punctual(program: &Path, seconds: u64) -> Result<Round, String> {
    let place = tempfile::tempdir().map_err(|e| e.to_string())?;
    let text = timer_experiment(&format!("{seconds}s"))?;
    std::fs::write(place.path().join("bench.toml"), text).map_err(|e| e.to_string())?;
    let program = std::path::absolute(program).map_err(|e| e.to_string())?;
    let run = |arguments: &[&str]| {
        let mut command = Command::new(&program);
        command.args(arguments).current_dir(place.path());
        command
    };
    let (begin, end) = watched_interval(seconds);
    let observation =
        watch_command(&mut run(&["run", "-q", "bench.toml", "-o", "out"]), begin, end)?;
    let exported = run(&["export", "out", "--format", "cyclictest-json"])
        .output()
        .map_err(|e| e.to_string())?;
    let show_output = run(&["show", "--json", "out"]).output().map_err(|e| e.to_string())?;
    let summary: Value = serde_json::from_slice(&show_output.stdout).map_err(|e| e.to_string())?;
    let series = &summary["phases"][0]["series"][0];
    let max = series["max"].as_f64().ok_or("no max in the summary")?;
    Ok(Round { bins: parse_bins(&exported.stdout)?, max: max / 1000.0, seen: observation })
}

/// One round of cyclictest, with a histogram of 1 ms, punctual's default.
pub fn run_cyclictest(seconds: u64) -> Result<Round, String> {
    let place = tempfile::tempdir().map_err(|e| e.to_string())?;
    let json = place.path().join("out.json");
    let mut command = Command::new("cyclictest");
    command.args(["-m", "-q", "-p", "80", "-t", "1", "-h", "1000"]);
    command.args(["-a", &last_online_cpu()?.to_string(), "-i", "1000", "-D", &seconds.to_string()]);
    command.arg(format!("--json={}", json.display()));
    let (begin, end) = watched_interval(seconds);
    let observation = watch_command(&mut command, begin, end)?;
    let text = std::fs::read(&json).map_err(|e| e.to_string())?;
    let document: Value = serde_json::from_slice(&text).map_err(|e| e.to_string())?;
    let thread = &document["thread"]["0"];
    let max = thread["max"].as_f64().ok_or("no max in cyclictest's JSON")?;
    Ok(Round { bins: parse_bins(&text)?, max, seen: observation })
}

/// The histogram in cyclictest's JSON.
pub fn parse_bins(json: &[u8]) -> Result<Vec<(u64, u64)>, String> {
    let document: Value = serde_json::from_slice(json).map_err(|e| e.to_string())?;
    let histogram =
        document["thread"]["0"]["histogram"].as_object().ok_or("no histogram in the JSON")?;
    let pair = |(us, n): (&String, &Value)| Some((us.parse().ok()?, n.as_u64()?));
    let mut bins: Vec<(u64, u64)> = histogram.iter().filter_map(pair).collect();
    bins.sort();
    Ok(bins)
}

/// Seconds of CPU of all ended children and their children (fields 16 and 17 of proc_pid_stat(5),
/// in ticks, of which Linux reports 100 per second).
pub fn cpu_of_children() -> Result<f64, String> {
    let stat = std::fs::read_to_string("/proc/self/stat")
        .map_err(|why| format!("/proc/self/stat: {why}"))?;
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    Ok(fields.skip(13).take(2).filter_map(|field| field.parse::<f64>().ok()).sum::<f64>() / 100.0)
}

#[cfg(test)]
mod tests {
    #[test]
    fn histograms_are_read_in_order() {
        let json = br#"{"thread": {"0": {"histogram": {"10": 3, "9": 1}}}}"#;
        assert_eq!(super::parse_bins(json).unwrap(), [(9, 1), (10, 3)]);
    }
}
