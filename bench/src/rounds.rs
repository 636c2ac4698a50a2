//! The comparison with cyclictest.

use crate::Args;
use crate::figures::{grouped_mean, grouped_median, median};
use crate::tools::{self, Round};
use serde_json::{Value, json};

/// Rounds of both, in the order A B B A B A A B …: a drift of the machine affects both equally.
fn interleave(
    args: &Args,
    rounds: usize,
    seconds: u64,
) -> Result<(Vec<Round>, Vec<Round>), String> {
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        for turn in 0..2 {
            if (round + turn) % 2 == 0 {
                ours.push(tools::punctual(&args.punctual, seconds)?);
            } else {
                theirs.push(tools::cyclictest(seconds)?);
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

/// In µs, at 1,000 samples a second.
fn cpu_per_sample(round: &Round) -> f64 {
    round.seen.cpu_ns as f64 / (round.seen.span * 1e3) / 1000.0
}

/// The usual run: a period of 1 ms.
pub fn one_millisecond(args: &Args) -> Result<Value, String> {
    let (rounds, seconds) = if args.quick { (2, 3) } else { (15, 5) };
    println!(
        "period 1 ms, {rounds} rounds of {seconds} s each, interleaved; medians of punctual and \
         cyclictest:"
    );
    let both = interleave(args, rounds, seconds)?;
    Ok(json!([
        compared("mean latency within 1 ms", "µs", &both, |r| grouped_mean(&r.bins)),
        compared("p50 latency", "µs", &both, |r| grouped_median(&r.bins)),
        compared("max latency (never compared)", "µs", &both, |r| r.max),
        compared("CPU time per sample", "µs", &both, cpu_per_sample),
        compared("resident memory while measuring", "kB", &both, |r| r.seen.resident_kb as f64),
        compared("peak of resident memory until then", "kB", &both, |r| r.seen.peak_kb as f64),
    ]))
}
