//! The counts of loads themselves: the table that stress-ng(1) prints with `--metrics` at the end
//! of each of its runs. A run that is killed with the phase prints none, so only whole runs count.

use punctual_bundle::load::LoadWork;
use punctual_core::Fact;
use punctual_plan::{LoadOutput, LoadPlan};
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

/// A run prints some 100 bytes a stressor.
const MOST: u64 = 16 << 20;
/// Stressors of one load.
const STRESSORS: usize = 64;

/// Whether a load counts its work: a stress-ng that prints it, and whose errors are discarded.
pub(super) fn is_counted(load: &LoadPlan) -> bool {
    let is_it = load.program.file_name().is_some_and(|name| name == "stress-ng");
    let prints = load.argv.iter().any(|word| word.starts_with("--metrics"));
    is_it && prints && load.stderr == LoadOutput::Null
}

/// The text of this file, which is then removed.
pub(super) fn take_work(file: &Path) -> Fact<Vec<LoadWork>> {
    let text = read(file);
    let _ = fs::remove_file(file);
    match text.map(|text| parse(&text)) {
        Err(why) => Fact::Unavailable(format!("its output cannot be read: {why}")),
        Ok(work) if work.is_empty() => Fact::Unavailable(
            "no run of it ended within the phase and printed its metrics: give it a --timeout \
             shorter than the phase, and no --quiet"
                .to_owned(),
        ),
        Ok(work) => Fact::Known(work),
    }
}

fn read(file: &Path) -> std::io::Result<String> {
    let mut bytes = Vec::new();
    if File::open(file)?.take(MOST + 1).read_to_end(&mut bytes)? as u64 > MOST {
        return Err(std::io::ErrorKind::FileTooLarge.into());
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The rows `stressor, bogo ops, real, user and system time, ops a second of real time, …` of all
/// runs, summed (stress-ng.c, stress_metrics_dump). Its rate has more digits than its time, which
/// has two: the time follows from the rate.
fn parse(text: &str) -> Vec<LoadWork> {
    let mut all_work: Vec<LoadWork> = Vec::new();
    for line in text.lines() {
        let Some((_, row)) = line.split_once("] ") else { continue };
        let words: Vec<&str> = row.split_ascii_whitespace().collect();
        let [what, operations, real, user, system, rate, ..] = words[..] else { continue };
        let numbers = [real, user, system, rate].map(str::parse::<f64>);
        let (Ok(operations), [Ok(real), Ok(_), Ok(_), Ok(rate)]) = (operations.parse(), numbers)
        else {
            continue;
        };
        let seconds = if rate > 0.0 { operations as f64 / rate } else { real };
        if !(seconds.is_finite() && seconds > 0.0) {
            continue;
        }
        let run = LoadWork { what: what.to_owned(), operations, seconds, runs: 1 };
        match all_work.iter().position(|known| known.what == run.what) {
            Some(known) => all_work[known].add(&run),
            None if all_work.len() < STRESSORS => all_work.push(run),
            None => {}
        }
    }
    all_work
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two runs of stress-ng 0.15.06, with more words between them.
    const PRINTED: &str = "\
stress-ng: info:  [14118] setting to a 1 second run per stressor
stress-ng: info:  [14118] dispatching hogs: 1 fork, 1 pipe
stress-ng: metrc: [14118] stressor       bogo ops real time  usr time  sys time   bogo ops/s     \
bogo ops/s CPU used per       RSS Max
stress-ng: metrc: [14118]                           (secs)    (secs)    (secs)   (real time) \
(usr+sys time) instance (%)          (KB)
stress-ng: metrc: [14118] fork                 87      1.00      0.04      0.04        86.65      \
   987.31         8.78          2560
stress-ng: metrc: [14118] pipe             237089      1.00      0.15      0.81    236903.12      \
245179.18        96.62          2388
stress-ng: metrc: [14118] miscellaneous metrics:
stress-ng: metrc: [14118] pipe                 115.86 MB per sec pipe write rate (geometic mean of \
1 instances)
stress-ng: info:  [14118] successful run completed in 1.01s
stress-ng: metrc: [14119] pipe             100000      0.50      0.15      0.81    200000.00      \
245179.18        96.62          2388
stress-ng: metrc: [14120] pipe             1000
";

    #[test]
    fn whole_runs_of_stress_ng_are_summed_by_stressor() {
        let [fork, pipe] = parse(PRINTED).try_into().expect("two stressors");
        assert_eq!((fork.what.as_str(), fork.operations, fork.runs), ("fork", 87, 1));
        assert!((fork.per_second().unwrap() - 86.65).abs() < 1e-9);
        assert_eq!((pipe.operations, pipe.runs), (337_089, 2));
        assert!((pipe.seconds - (237_089.0 / 236_903.12 + 0.5)).abs() < 1e-9, "{pipe:?}");
        assert!(parse("x] cpu 5 NaN 0 0 NaN\n] cpu 5 0 0 0 0\n] a -1 1 1 1 1").is_empty());
    }
}
