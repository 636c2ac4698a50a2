//! The cost of recording scheduling events for the recorded tasks, and the losses: punctual beside
//! perf and beside the kernel's trace buffers spliced into files, as trace-cmd does. Pinned
//! ping-pongs make the switches; rounds are interleaved.

mod pingpong;
mod reading;
mod recorder;

use crate::Args;
use crate::figures::median;
use recorder::{Lost, Recorder};
use serde_json::{Value, json};

/// Slowdown and losses of each recorder, and the time to read its recording.
pub fn measure_recorders(args: &Args) -> Result<Value, String> {
    let pairs = pingpong::pair_count()?;
    let (rounds, turns) = if args.quick { (2, 150_000) } else { (9, 800_000) };
    let recorders = recorder::available_recorders(&args.punctual);
    println!(
        "recording scheduling events of {pairs} pinned ping-pongs, {rounds} rounds of {turns} \
         turns, interleaved:"
    );
    let mut results: Vec<Vec<Round>> = recorders.iter().map(|_| Vec::new()).collect();
    for round in 0..rounds {
        for place in 0..recorders.len() {
            // Each begins a round equally often: a drift of the machine affects all equally.
            let place = (place + round) % recorders.len();
            results[place].push(one_round(&recorders[place], pairs, turns)?);
        }
        eprint!(".");
    }
    eprintln!();
    let unrecorded: Vec<f64> = results[0].iter().map(|round| round.ns_per_switch).collect();
    let base = median(&unrecorded);
    println!(
        "  unrecorded: {base:.0} ns a switch, {:.0} switches a second in all",
        pairs as f64 * 1e9 / base
    );
    let mut rows = Vec::new();
    for (recorder, rounds) in recorders.iter().zip(&results).skip(1) {
        rows.push(report_recorder(recorder, rounds, &unrecorded));
    }
    let reading =
        reading::measure_reading(&recorders, pairs, if args.quick { 150_000 } else { 850_000 })?;
    Ok(json!({
        "pairs": pairs, "turns": turns, "unrecorded_ns_per_switch": unrecorded,
        "recorders": rows, "reading": reading,
    }))
}

struct Round {
    ns_per_switch: f64,
    lost: Lost,
}

fn one_round(recorder: &Recorder, pairs: usize, turns: u64) -> Result<Round, String> {
    let place = tempfile::tempdir().map_err(|e| e.to_string())?;
    let running = recorder.start_recording(place.path())?;
    let elapsed = pingpong::run_turns(pairs, turns)?;
    let lost = running.stop_and_count(pairs as u64 * turns * 2)?;
    Ok(Round { ns_per_switch: elapsed.as_nanos() as f64 / (turns * 2) as f64, lost })
}

/// Slowdowns are computed between adjacent rounds.
fn report_recorder(recorder: &Recorder, rounds: &[Round], unrecorded: &[f64]) -> Value {
    let slowdown = |(round, base): (&Round, &f64)| (round.ns_per_switch / base - 1.0) * 100.0;
    let slowdowns: Vec<f64> = rounds.iter().zip(unrecorded).map(slowdown).collect();
    let lost: Vec<u64> = rounds.iter().map(|round| round.lost.0).collect();
    let name = recorder.name();
    println!(
        "  {name:<34} slowdown {:>6.1} %   lost {:>9}",
        median(&slowdowns),
        lost.iter().sum::<u64>()
    );
    json!({
        "name": name, "slowdown_percent": slowdowns, "median_slowdown_percent": median(&slowdowns),
        "lost": lost,
    })
}
