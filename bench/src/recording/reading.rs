//! The time to read a recording of some million events: `perf script` writes each as text, punctual
//! decodes, merges and pairs them.

use super::pingpong;
use super::recorder::Recorder;
use serde_json::{Value, json};
use std::process::{Command, Stdio};
use std::time::Instant;

/// Records the same turns with both, one after the other, and reads both recordings.
pub fn measure_reading(recorders: &[Recorder], pairs: usize, turns: u64) -> Result<Value, String> {
    let mut rows = serde_json::Map::new();
    // Each switch has a waking and a wake-up.
    let events = pairs as u64 * turns * 2 * 3;
    println!("reading a recording of {events} events:");
    for recorder in recorders {
        let Some((name, mut command)) = reader_command(recorder) else { continue };
        let place = tempfile::tempdir().map_err(|e| e.to_string())?;
        let running = recorder.start_recording(place.path())?;
        pingpong::run_turns(pairs, turns)?;
        let lost = running.stop_and_count(pairs as u64 * turns * 2)?.0;
        let start = Instant::now();
        let status =
            command.current_dir(place.path()).stdin(Stdio::null()).stdout(Stdio::null()).status();
        let seconds = start.elapsed().as_secs_f64();
        if !status.as_ref().is_ok_and(|status| status.success()) {
            return Err(format!("{command:?}: {status:?}"));
        }
        // A recorder that lost events has less to read.
        let read = events.saturating_sub(lost);
        let rate = read as f64 / seconds;
        println!("  {name:<20} {seconds:>6.2} s, {:>10.0} events a second", rate);
        rows.insert(
            name.to_owned(),
            json!({"events": read, "seconds": seconds, "events_per_second": rate}),
        );
    }
    Ok(Value::Object(rows))
}

fn reader_command(recorder: &Recorder) -> Option<(&'static str, Command)> {
    match recorder {
        Recorder::Punctual(program) => {
            let mut command = Command::new(std::path::absolute(program).ok()?);
            command.args(["pairs", "out", "sched_waking->sched_switch"]);
            Some(("punctual pairs", command))
        }
        Recorder::Perf => {
            let mut command = Command::new("perf");
            command.args(["script", "-i", "perf.data"]);
            Some(("perf script", command))
        }
        Recorder::None | Recorder::Ftrace => None,
    }
}
