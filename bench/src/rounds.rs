//! The comparison with cyclictest.

use crate::Args;
use crate::figures::{grouped_mean, grouped_median, median};
use crate::tools::{self, Round};
use serde_json::{Value, json};

/// Rounds of both, in the order A B B A B A A B …: a drift of the machine affects both equally.
fn interleave_rounds(
    args: &Args,
    rounds: usize,
    seconds: u64,
) -> Result<(Vec<Round>, Vec<Round>), String> {
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        for turn in 0..2 {
            if (round + turn) % 2 == 0 {
                ours.push(tools::run_punctual(&args.punctual, seconds)?);
            } else {
                theirs.push(tools::run_cyclictest(seconds)?);
            }
        }
        eprint!(".");
    }
    eprintln!();
    Ok((ours, theirs))
}

fn compare_figure(
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
    let round_pairs = interleave_rounds(args, rounds, seconds)?;
    Ok(json!([
        compare_figure("mean latency within 1 ms", "µs", &round_pairs, |r| grouped_mean(&r.bins)),
        compare_figure("p50 latency", "µs", &round_pairs, |r| grouped_median(&r.bins)),
        compare_figure("max latency (never compared)", "µs", &round_pairs, |r| r.max),
        compare_figure("CPU time per sample", "µs", &round_pairs, cpu_per_sample),
        compare_figure(
            "resident memory while measuring",
            "kB",
            &round_pairs,
            |r| r.seen.resident_kb as f64
        ),
        compare_figure(
            "peak of resident memory until then",
            "kB",
            &round_pairs,
            |r| r.seen.peak_kb as f64
        ),
    ]))
}
