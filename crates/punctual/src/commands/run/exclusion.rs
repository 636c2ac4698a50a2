//! `--exclude`: a claim about a rate of long latencies, for how long it must be measured, and
//! whether it can be made.

use crate::exit::{Exit, Failure};
use crate::output;
use punctual_bundle::Bundle;
use punctual_core::format::{count_text, count_with_noun, duration_text, escape_unsafe};
use punctual_core::{CpuSet, Nanos};
use punctual_plan::Plan;
use punctual_stats::exclude::{Exclusion, ExclusionWord, SeriesExclusion, of_bundle};
use std::fmt::Write;
use std::path::Path;

/// Series whose sentences are shown.
const SHOWN: usize = 32;

/// The claim.
#[derive(clap::Args)]
#[command(next_help_heading = "Options for a claim about rare latencies")]
pub struct ExclusionArgs {
    /// Measure as long as it takes to exclude a rate of such latencies, as 'latency > 100us', and
    /// say what is excluded (docs/statistics.md)
    #[arg(long, value_name = "CONDITION", value_parser = parse_threshold)]
    exclude: Option<Nanos>,
    /// The mean rate to exclude, as 1/hour or 2/30min
    #[arg(long, value_name = "RATE", value_parser = parse_rate, requires = "exclude",
          default_value = "1/hour")]
    rate: Nanos,
    /// The confidence in percent
    #[arg(long, value_name = "PERCENT", value_parser = parse_confidence, requires = "exclude",
          default_value = "95")]
    confidence: f64,
    /// Print how long it would measure, and end
    #[arg(long, requires = "exclude")]
    pub dry_run: bool,
}

impl ExclusionArgs {
    /// The claim, if one is asked for.
    pub fn requested_exclusion(&self) -> Option<Exclusion> {
        let (every, confidence) = (self.rate, self.confidence);
        self.exclude.map(|threshold| Exclusion { threshold, every, confidence })
    }

    /// How long it must be measured for the claim, if there is no such latency.
    pub fn needed_time(&self) -> Option<Nanos> {
        // In whole seconds, for a plan that people read.
        let seconds = self.requested_exclusion()?.needed_time(0).ns() as f64 / 1e9;
        Some(Nanos::from_secs(seconds.ceil() as i64))
    }

    /// What a run would do for the claim.
    pub fn format_forecast(&self, asked: &Exclusion, plan: &Plan) -> String {
        let cpus: CpuSet = plan
            .phases
            .iter()
            .flat_map(|phase| &phase.measures)
            .flat_map(|measure| &measure.threads)
            .flat_map(|thread| thread.cpus.iter())
            .collect();
        forecast_claim(asked, cpus.iter().count() as u64)
    }
}

fn forecast_claim(asked: &Exclusion, cpus: u64) -> String {
    let (rate, time) = (words_of(asked), duration_text(asked.needed_time(0)));
    let one = duration_text(asked.needed_time(1));
    format!(
        "to exclude more than {rate}, each of {} must be measured for {time} without one, or for \
         {one} with one. CPUs are not pooled: nothing shows before that they are alike.\n",
        count_with_noun(cpus, "CPU")
    )
}

/// Prints what a run excludes, beside JSON on standard error; returns the exit code of the claim.
pub fn print_exclusion(asked: &Exclusion, directory: &Path, json: bool) -> Result<Exit, Failure> {
    let bundle = Bundle::open(directory).map_err(Failure::failed)?;
    let exclusions = of_bundle(&bundle, asked).map_err(Failure::failed)?;
    match json {
        true => output::print_stderr(&format_exclusions(asked, &exclusions)),
        false => output::print_stdout(&format_exclusions(asked, &exclusions))?,
    }
    let has = |word| exclusions.iter().any(|one| one.word == word);
    Ok(match () {
        () if has(ExclusionWord::Contradicted) => Exit::NotMet,
        () if has(ExclusionWord::Open) || exclusions.is_empty() => Exit::NoEvidence,
        () => Exit::Done,
    })
}

fn words_of(asked: &Exclusion) -> String {
    let (above, every) = (asked.threshold.to_readable(), duration_text(asked.every));
    format!("one sample above {above} in {every} ({} confidence)", format_percent(asked.confidence))
}

/// All digits that were given: 99.9 % is not 100 %.
fn format_percent(share: f64) -> String {
    format!("{} %", (share * 1e8).round() / 1e6)
}

/// A sentence for each series, the worst first.
fn format_exclusions(asked: &Exclusion, all: &[SeriesExclusion]) -> String {
    let mut sorted_exclusions: Vec<&SeriesExclusion> = all.iter().collect();
    sorted_exclusions.sort_by_key(|one| one.every);
    let percent = format_percent(asked.confidence);
    let above = asked.threshold.to_readable();
    let mut text = format!("\nasked: exclude more than {}\n", words_of(asked));
    for one in sorted_exclusions.iter().take(SHOWN) {
        let what = match one.word {
            ExclusionWord::Excluded => "excluded".to_owned(),
            ExclusionWord::Contradicted => "NOT EXCLUDED: it happens more often".to_owned(),
            ExclusionWord::Open => {
                format!("not yet: {} in all would do", duration_text(one.needed))
            }
        };
        let seen_samples = match one.samples {
            0 => "none".to_owned(),
            samples => {
                format!("{} in {}", count_text(samples), count_with_noun(one.episodes, "episode"))
            }
        };
        let lost = match one.lost {
            0 => String::new(),
            lost => format!("; {} lost samples count as such", count_text(lost)),
        };
        let _ = writeln!(
            text,
            "  {}: {what}; {seen_samples} above {above} in {}{lost}: with {percent} confidence no \
             more than one in {}",
            escape_unsafe(&one.series),
            duration_text(one.time),
            duration_text(one.every),
        );
    }
    text
}

/// `latency > 100us`.
fn parse_threshold(text: &str) -> Result<Nanos, String> {
    let wrong = || "write a condition like 'latency > 100us'".to_owned();
    let (figure, bound) = text.split_once('>').ok_or_else(wrong)?;
    if figure.trim() != "latency" {
        return Err(wrong());
    }
    bound.trim().parse().map_err(|why: punctual_core::units::DurationError| why.to_string())
}

/// The mean time from one to the next: `1/hour`, `2/30min`.
fn parse_rate(text: &str) -> Result<Nanos, String> {
    let wrong = || "write a rate like 1/hour or 2/30min".to_owned();
    let (number, time) = text.split_once('/').ok_or_else(wrong)?;
    let number: f64 = number.trim().parse().map_err(|_| wrong())?;
    let time: Nanos = match time.trim() {
        "second" => Nanos::from_secs(1),
        "minute" => Nanos::from_secs(60),
        "hour" => Nanos::from_secs(3_600),
        "day" => Nanos::from_secs(86_400),
        "week" => Nanos::from_secs(604_800),
        // `1/min` is one in `1min`.
        other => other.parse().or_else(|_| format!("1{other}").parse()).map_err(|_| wrong())?,
    };
    let every = time.ns() as f64 / number;
    (number > 0.0 && (1.0..1e17).contains(&every)).then_some(Nanos(every as i64)).ok_or_else(wrong)
}

fn parse_confidence(text: &str) -> Result<f64, String> {
    let percent: Option<f64> = text.trim_end_matches(['%', ' ']).parse().ok();
    let is_between = |of: &f64| *of >= 50.0 && *of < 100.0;
    let share = percent.filter(is_between).map(|of| of / 100.0);
    share.ok_or_else(|| "write a percentage from 50 to below 100".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_is_read_and_has_its_duration() {
        assert_eq!(parse_threshold("latency > 100us"), Ok(Nanos(100_000)));
        assert!(parse_threshold("max > 1us").is_err() && parse_threshold("latency < 1us").is_err());
        assert_eq!(parse_rate("1/hour"), Ok(Nanos::from_secs(3_600)));
        assert_eq!(parse_rate("2/30min"), Ok(Nanos::from_secs(900)));
        assert_eq!(parse_rate("1/min"), Ok(Nanos::from_secs(60)));
        assert!(
            parse_rate("0/hour").is_err()
                && parse_rate("hour").is_err()
                && parse_rate("1/x").is_err()
        );
        assert_eq!(parse_confidence("99 %"), Ok(0.99));
        assert!(parse_confidence("100").is_err() && parse_confidence("5").is_err());
        let args = ExclusionArgs {
            exclude: Some(Nanos(100_000)),
            rate: Nanos::from_secs(3_600),
            confidence: 0.95,
            dry_run: true,
        };
        // Three hours, by the rule of three.
        assert_eq!(args.needed_time(), Some(Nanos::from_secs(10_785)));
        let asked = args.requested_exclusion().expect("a claim");
        let text = forecast_claim(&asked, 4);
        assert!(
            text.contains("each of 4 CPUs must be measured for 2 h 59 min without one"),
            "{text}"
        );
    }

    #[test]
    fn a_short_run_says_what_it_excludes() {
        let asked = Exclusion {
            threshold: Nanos(100_000),
            every: Nanos::from_secs(3_600),
            confidence: 0.95,
        };
        let time = Nanos::from_secs(3_600);
        let (word, every) = asked.judge_episodes(time, 0, 0);
        let one = SeriesExclusion {
            series: "main/timer/cpu0".to_owned(),
            time,
            samples: 0,
            episodes: 0,
            lost: 0,
            word,
            every,
            needed: asked.needed_time(0),
        };
        let text = format_exclusions(&asked, &[one]);
        let expected = "  main/timer/cpu0: not yet: 2 h 59 min in all would do; none above 100 us \
                        in 1 h 00 min: with 95 % confidence no more than one in 20 min 01 s";
        assert!(text.contains(expected), "{text}");
        assert_eq!([format_percent(0.95), format_percent(0.999)], ["95 %", "99.9 %"]);
    }
}
