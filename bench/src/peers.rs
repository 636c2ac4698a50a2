//! Every figure that another program also has, beside it: the same CPU and policy, in interleaved
//! rounds, as ratios with their intervals. For figures without another tool there is a C program of
//! our own that shares no code with punctual.

mod page;
mod ways;

use crate::Args;
use crate::figures::median;
use punctual_stats::calibration::outside;
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;

/// One round of a program: figures in the order of [`Peer::figures`].
type Round<'r> = Box<dyn Fn(usize) -> Result<Vec<f64>, String> + 'r>;

/// Two programs that measure the same figures.
struct Peer<'p> {
    /// The other program.
    name: &'static str,
    /// The common figures, each with its unit.
    figures: &'static [(&'static str, &'static str)],
    /// Why the figures may differ by design; empty if no reason is known.
    note: &'static str,
    ours: Round<'p>,
    theirs: Round<'p>,
}

/// With this many rounds, the third smallest to the third largest ratio is a 96.5 % interval.
const ROUNDS: usize = 15;
/// The smallest number of rounds with an interval.
const QUICK: usize = 6;
/// The pause between two rounds, so that real-time throttling affects neither.
const REST: Duration = Duration::from_millis(300);

/// All peers, one after the other.
pub fn measure(args: &Args) -> Result<Value, String> {
    let place = tempfile::tempdir().map_err(|why| why.to_string())?;
    let rounds = if args.quick { QUICK } else { ROUNDS };
    let before = load()?;
    let mut rows = Vec::new();
    for peer in ways::all(args, place.path())? {
        println!("beside {}, {rounds} rounds each, interleaved:", peer.name);
        match compare(&peer, rounds) {
            Ok(of_peer) => rows.extend(of_peer),
            // One that cannot run here does not affect the others.
            Err(why) => println!("SKIPPED: {}: {why}", peer.name),
        }
    }
    let results = json!({"rounds": rounds, "load": [before, load()?], "rows": rows});
    if let Some(path) = &args.page {
        page::write(Path::new(path), &crate::write::machine(), &results)?;
    }
    Ok(results)
}

/// The number of runnable tasks over the last minute.
fn load() -> Result<f64, String> {
    let text = std::fs::read_to_string("/proc/loadavg").map_err(|why| why.to_string())?;
    let first = text.split(' ').next().and_then(|word| word.parse().ok());
    first.ok_or_else(|| format!("/proc/loadavg is `{text}`"))
}

fn compare(peer: &Peer, rounds: usize) -> Result<Vec<Value>, String> {
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        // A B B A: a drift of the machine affects both equally.
        for turn in 0..2 {
            std::thread::sleep(REST);
            match (round + turn) % 2 {
                0 => ours.push((peer.ours)(round)?),
                _ => theirs.push((peer.theirs)(round)?),
            }
        }
        eprint!(".");
    }
    eprintln!();
    let row = |(place, (figure, unit)): (usize, &(&str, &str))| {
        let of = |rounds: &[Vec<f64>]| rounds.iter().map(|round| round[place]).collect::<Vec<_>>();
        let (ours, theirs) = (of(&ours), of(&theirs));
        let ratio = ratio(&ours, &theirs);
        println!(
            "  {figure:<34} {:>10.1} {:>10.1} {unit:<5} ratio {:.3}, {:.3} to {:.3}",
            median(&ours),
            median(&theirs),
            ratio.median,
            ratio.low,
            ratio.high
        );
        json!({
            "peer": peer.name, "figure": figure, "unit": unit, "note": peer.note,
            "punctual": ours, "other": theirs,
            "median_punctual": median(&ours), "median_other": median(&theirs),
            "ratio": ratio.median, "low": ratio.low, "high": ratio.high,
        })
    };
    Ok(peer.figures.iter().enumerate().map(row).collect())
}

/// The ratio of adjacent rounds, with its interval.
struct Ratio {
    median: f64,
    low: f64,
    high: f64,
}

/// The median of the ratios of rounds, and the interval that holds their true median with 95 % or
/// more, for any distribution (sign test).
fn ratio(ours: &[f64], theirs: &[f64]) -> Ratio {
    let mut ratios: Vec<f64> =
        ours.iter().zip(theirs).map(|(ours, theirs)| ours / theirs).collect();
    ratios.sort_by(f64::total_cmp);
    let (low, high) = match outside(ratios.len()) {
        Some(k) => (ratios[k], ratios[ratios.len() - 1 - k]),
        None => (f64::NAN, f64::NAN),
    };
    Ratio { median: median(&ratios), low, high }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ratio_is_that_of_rounds_and_lies_in_its_interval() {
        // The machine becomes twice as slow: neither ratio shows it.
        let theirs: Vec<f64> = (0..ROUNDS).map(|k| 100.0 * (1.0 + k as f64 / 15.0)).collect();
        let ours: Vec<f64> = theirs.iter().map(|ns| ns * 1.1).collect();
        let found = ratio(&ours, &theirs);
        assert!([found.median, found.low, found.high].iter().all(|r| (r - 1.1).abs() < 1e-9));
        let ours: Vec<f64> = (0..ROUNDS).map(|k| k as f64).collect();
        let found = ratio(&ours, &[1.0; ROUNDS]);
        assert_eq!((found.low, found.median, found.high), (3.0, 7.0, 11.0));
        assert!(ratio(&[1.0; 5], &[1.0; 5]).low.is_nan());
        assert!(!ratio(&[1.0; QUICK], &[1.0; QUICK]).low.is_nan());
    }
}
