//! The comparisons with cyclictest.

use crate::Args;
use crate::figures::{grouped_mean, grouped_median, median};
use crate::tools::{self, Round};
use serde_json::{Value, json};
use std::process::{Child, Command, Stdio};

/// Rounds of both, in the order A B B A B A A B …: a drift of the machine affects both equally.
fn interleave(
    args: &Args,
    rounds: usize,
    period_us: u64,
    seconds: u64,
) -> Result<(Vec<Round>, Vec<Round>), String> {
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        for turn in 0..2 {
            if (round + turn) % 2 == 0 {
                ours.push(tools::punctual(&args.punctual, period_us, seconds)?);
            } else {
                theirs.push(tools::cyclictest(period_us, seconds)?);
            }
        }
        eprint!(".");
    }
    eprintln!();
    Ok((ours, theirs))
}

fn compared(
    name: &str,
    unit: &str,
    rounds: &(Vec<Round>, Vec<Round>),
    of: impl Fn(&Round) -> f64,
) -> Value {
    let values = |rounds: &[Round]| rounds.iter().map(&of).collect::<Vec<f64>>();
    let (ours, theirs) = (values(&rounds.0), values(&rounds.1));
    let ratio = median(&ours) / median(&theirs);
    println!(
        "  {name:<34} {:>10.3} {:>10.3} {unit:<3} ratio {ratio:.3}",
        median(&ours),
        median(&theirs)
    );
    json!({
        "name": name, "unit": unit, "punctual": ours, "cyclictest": theirs,
        "median_punctual": median(&ours), "median_cyclictest": median(&theirs),
        "ratio_of_medians": ratio,
    })
}

fn cpu_per_sample(round: &Round, period_us: u64) -> f64 {
    round.seen.cpu_ns as f64 / (round.seen.span * 1e6 / period_us as f64) / 1000.0
}

/// The usual run: a period of 1 ms.
pub fn one_millisecond(args: &Args) -> Result<Value, String> {
    let (rounds, seconds) = if args.quick { (2, 3) } else { (15, 5) };
    println!(
        "period 1 ms, {rounds} rounds of {seconds} s each, interleaved; medians of punctual and \
         cyclictest:"
    );
    let both = interleave(args, rounds, 1000, seconds)?;
    Ok(json!([
        compared("mean latency within 1 ms", "µs", &both, |r| grouped_mean(&r.bins)),
        compared("p50 latency", "µs", &both, |r| grouped_median(&r.bins)),
        compared("max latency (never compared)", "µs", &both, |r| r.max),
        compared("CPU time per sample", "µs", &both, |r| cpu_per_sample(r, 1000)),
        compared("resident memory while measuring", "kB", &both, |r| r.seen.resident_kb as f64),
        compared("peak of resident memory until then", "kB", &both, |r| r.seen.peak_kb as f64),
    ]))
}

/// A period with little time to spare.
pub fn twenty_microseconds(args: &Args) -> Result<Value, String> {
    let (rounds, seconds) = if args.quick { (1, 2) } else { (3, 3) };
    println!(
        "period 20 µs, {rounds} rounds of {seconds} s each; share of periods without a sample:"
    );
    let both = interleave(args, rounds, 20, seconds)?;
    let missed = |r: &Round| r.missed as f64 / (r.missed + r.samples) as f64 * 100.0;
    Ok(json!([
        compared("missed periods", "%", &both, missed),
        compared("CPU time per sample", "µs", &both, |r| cpu_per_sample(r, 20)),
        compared("resident memory while measuring", "kB", &both, |r| r.seen.resident_kb as f64),
    ]))
}

/// Ends the load with its whole process group when it is dropped.
struct Load(Child);

impl Drop for Load {
    fn drop(&mut self) {
        let _ = Command::new("pkill").args(["-TERM", "-P", &self.0.id().to_string()]).status();
        let _ = Command::new("kill").arg(self.0.id().to_string()).status();
        let _ = self.0.wait();
    }
}

/// Under stress-ng.
pub fn loaded(args: &Args) -> Result<Value, String> {
    let (rounds, seconds) = if args.quick { (1, 3) } else { (3, 5) };
    let arguments =
        ["--cpu", "2", "--fork", "2", "--pipe", "1", "--timer", "1", "--timeout", "300"];
    let load = Command::new("stress-ng")
        .args(arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let Ok(load) = load.map(Load) else {
        println!(
            "SKIPPED: the loaded rounds lack the program stress-ng (Debian package stress-ng)"
        );
        return Ok(Value::Null);
    };
    println!("loaded (stress-ng {}), {rounds} rounds of {seconds} s each:", arguments.join(" "));
    let both = interleave(args, rounds, 1000, seconds)?;
    drop(load);
    Ok(json!([
        compared("mean latency within 1 ms", "µs", &both, |r| grouped_mean(&r.bins)),
        compared("p50 latency", "µs", &both, |r| grouped_median(&r.bins)),
        compared("max latency (order of magnitude)", "µs", &both, |r| r.max),
    ]))
}
