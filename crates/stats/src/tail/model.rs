//! The model of a tail: two fits that must agree, behind gates.
//!
//! Order: enough samples, all of them, fine enough → bursts (declustered) and block maxima →
//! independence and stationarity → both fits, each good → no mode beyond a gap → the second half as
//! the first predicts → levels on which both agree.

use super::causes::KnownCauses;
use super::fit::{self, GOOD};
use super::gates::Gates;
use super::gev::Gev;
use super::heldout;
use super::independence::TestOutcome;
use super::peaks::{Over, over_threshold};
use crate::Random;
use crate::compare::run::ComparedRun;
use punctual_bundle::tail::{BlockMaxima, CauseShare, CauseSource, Model, ReturnLevel, TailCauses};

/// The minimum number of samples for a model.
const SAMPLES: usize = 30_000;
/// The numbers of blocks tried, for the shortest blocks whose maxima fit.
const BLOCKS: [usize; 3] = [200, 100, 60];

/// The maximum extrapolation: no level exceeded less than once in this many times the data is
/// shown.
const REACH: i64 = 200;
/// The shape from which a distribution has no variance.
const HEAVIEST: f64 = 0.5;
/// The maximum number of causes of a mixture that are named.
const CAUSES: usize = 4;
const SEED: u64 = 0x7461696c;

const HOUR: i64 = 3_600_000_000_000;
/// The common periods: an hour, a day, a month, a year.
const PERIODS: [i64; 4] = [HOUR, 24 * HOUR, 30 * 24 * HOUR, 365 * 24 * HOUR];

/// The maxima of equal blocks.
struct ModelBlocks {
    length: usize,
    maxima: Vec<f64>,
    fit: Gev,
    fit_p: f64,
}

/// The model of a run, or why there is none.
pub fn of(run: &ComparedRun, known: &KnownCauses) -> Model {
    let mut gates = Gates::default();
    let (n, all) = (run.samples.len(), run.ladder.count());
    let kept = all == n as u64;
    gates.require("order-known", "all samples are kept in order", kept, || {
        format!(
            "{n} of {all} samples were kept in order: the clustering of long latencies is unknown \
             (keep_samples)"
        )
    });
    gates.require(
        "enough",
        "at least 30,000 samples and a duration",
        n >= SAMPLES && run.duration.is_some_and(|d| d > 0),
        || format!("{n} samples are too few for a model: {SAMPLES} at least"),
    );
    gates.require("none-lost", "no sample was lost", run.lost == 0, || {
        format!("{} samples were lost: any of them may have been the maximum", run.lost)
    });
    let (Some(duration), true) = (run.duration, gates.all_open()) else {
        return gates.into_model(Model::default());
    };
    let mut random = Random::seeded(SEED);
    let samples = smoothed(run, &mut random);
    let model = Model::default();
    let Some(over) = over_threshold(&samples, &mut random) else {
        gates.require("peaks", "some threshold has enough bursts above it", false, || {
            "no threshold has enough bursts of different height above it".to_owned()
        });
        return gates.into_model(model);
    };
    one_cause(&mut gates, &known.beyond(Some((over.threshold, beyond(run, over.threshold)))));
    let fine = (run.step as f64) < 0.5 * over.fit.scale;
    gates.require("resolution", "the clock resolves the tail", fine, || {
        format!(
            "the clock's step of {} is as coarse as the tail ({})",
            micros(run.step as f64),
            micros(over.fit.scale)
        )
    });
    let Some(blocks) = block_maxima(&samples, &mut random) else {
        gates.require("blocks", "block maxima can be fitted", false, || {
            "block maxima cannot be fitted".to_owned()
        });
        return gates.into_model(Model { peaks: Some(over.summary()), ..model });
    };
    gates.in_order("block maxima", &blocks.maxima, SEED);
    gates.in_order("peaks", &over.excesses, SEED + 1);
    gates.steady_rate(&over.places, samples.len());
    rare_mode(&mut gates, &over, &mut random);
    good_fits(&mut gates, &over, &blocks);
    if gates.all_open() {
        heldout::predict(&mut gates, &over, samples.len(), &mut random);
    }
    let levels = if gates.all_open() {
        levels(&mut gates, &over, &blocks, samples.len(), duration)
    } else {
        Vec::new()
    };
    let levels = if gates.all_open() { levels } else { Vec::new() };
    gates.into_model(Model {
        levels,
        block_maxima: Some(blocks.summary()),
        peaks: Some(over.summary()),
        ..model
    })
}

/// The samples; those of a coarse clock are spread uniformly over its resolution, as ties are due
/// to the clock, not the latencies.
fn smoothed(run: &ComparedRun, random: &mut Random) -> Vec<f64> {
    let step = run.step.max(0) as f64;
    run.samples
        .iter()
        .map(|sample| *sample as f64 + if step > 0.0 { step * random.unit() } else { 0.0 })
        .collect()
}

fn block_maxima(samples: &[f64], random: &mut Random) -> Option<ModelBlocks> {
    let mut last = None;
    for blocks in BLOCKS.into_iter().filter(|blocks| samples.len() / blocks >= SAMPLES / 60) {
        let length = samples.len() / blocks;
        let of = |block: &[f64]| block.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let maxima: Vec<f64> = samples.chunks_exact(length).map(of).collect();
        let Some(fit) = Gev::by_likelihood(&maxima) else { continue };
        let fit_p = fit::of_maxima(&maxima, &fit, random);
        last = Some(ModelBlocks { length, maxima, fit, fit_p });
        if fit_p > GOOD {
            break;
        }
    }
    last
}

pub fn beyond(run: &ComparedRun, threshold: f64) -> u64 {
    run.samples.iter().filter(|sample| **sample as f64 > threshold).count() as u64
}

/// A gate if the causes of enough samples are known; otherwise omitted.
fn one_cause(gates: &mut Gates, causes: &[TailCauses]) {
    let by = |source| match source {
        CauseSource::Windows => ("windows", "of the explained samples"),
        CauseSource::Account => ("account", "of all samples by cause"),
    };
    for tail in causes.iter().filter(|tail| tail.dominant || tail.p.is_some()) {
        let (id, known) = by(tail.source);
        let what =
            format!("the tail is of one cause, or of causes of one size, {known} (Kruskal–Wallis)");
        gates.push(
            &format!("one-cause-{id}"),
            &what,
            tail.mixture != Some(true),
            None,
            tail.p,
            || {
                let share = |c: &CauseShare| {
                    let who = c.who.as_ref().map_or(String::new(), |who| format!(" ({who})"));
                    format!(
                        "{}{who} {:.0} %, median {}",
                        c.cause,
                        c.share * 100.0,
                        micros(c.median)
                    )
                };
                let shares: Vec<String> = tail.causes.iter().take(CAUSES).map(share).collect();
                let more = tail.causes.len().saturating_sub(CAUSES);
                let more = if more > 0 { format!("; {more} more") } else { String::new() };
                format!(
                    "causes of different sizes mix in the tail, {known}: {}{more}",
                    shares.join("; ")
                )
            },
        );
    }
}

fn rare_mode(gates: &mut Gates, over: &Over, random: &mut Random) {
    let mut ascending = over.excesses.clone();
    ascending.sort_by(f64::total_cmp);
    let gap = fit::widest_gap(&ascending, random);
    let outcome = gap.map(|(_, p)| TestOutcome { statistic: f64::NAN, p });
    gates.test("no-rare-mode", "no gap in the tail", outcome, || {
        let (place, _) = gap.unwrap_or_default();
        let from = |k: usize| over.threshold + ascending.get(k).copied().unwrap_or(0.0);
        format!(
            "{} of the bursts lie beyond a gap from {} to {}: a rare mode with a cause of its \
             own, with too few samples",
            ascending.len() - place,
            micros(from(place.saturating_sub(1))),
            micros(from(place))
        )
    });
}

fn good_fits(gates: &mut Gates, over: &Over, blocks: &ModelBlocks) {
    let outcome = |p: f64| Some(TestOutcome { statistic: f64::NAN, p });
    let what = "peaks over a threshold are generalised Pareto (Anderson–Darling)";
    gates.test_at(GOOD, "peaks-fit", what, outcome(over.fit_p), || {
        "no threshold has peaks that follow a generalised Pareto distribution".to_owned()
    });
    let shape = over.fit.shape.max(blocks.fit.shape);
    gates.require(
        "not-too-heavy",
        "the tail has a variance (both shapes below 0.5)",
        shape < HEAVIEST,
        || {
            format!(
                "the tail is too heavy (shape {shape:.2}): few samples decide, as where different \
                 causes mix"
            )
        },
    );
    let what = "block maxima follow the generalised extreme value distribution (Anderson–Darling)";
    gates.test_at(GOOD, "maxima-fit", what, outcome(blocks.fit_p), || {
        "block maxima do not follow a generalised extreme value distribution".to_owned()
    });
}

/// Levels on which both models agree.
fn levels(
    gates: &mut Gates,
    over: &Over,
    blocks: &ModelBlocks,
    samples: usize,
    duration: i64,
) -> Vec<ReturnLevel> {
    let reach = duration.saturating_mul(REACH);
    let mut periods: Vec<i64> =
        PERIODS.into_iter().filter(|p| *p > duration && *p <= reach).collect();
    periods.push(duration.saturating_mul(10));
    periods.sort_unstable();
    periods.dedup();
    let mut levels = Vec::new();
    for period in periods {
        let by_peaks = over.level(period as f64 / duration as f64);
        let blocks_in = period as f64 / duration as f64 * samples as f64 / blocks.length as f64;
        // As often as a Poisson process exceeds the level once in the period.
        let by_maxima = blocks.fit.level(&blocks.maxima, -(-1.0 / blocks_in).exp_m1());
        let holds = by_maxima.low.is_some_and(|low| low <= by_peaks.level)
            && by_maxima.high.is_some_and(|h| by_peaks.level <= h);
        let seconds = period / 1_000_000_000;
        let agree = holds && by_peaks.low.is_some() && by_peaks.high.is_some();
        gates.require(
            &format!("agreement-{seconds}s"),
            "both models agree on a level, and bound it",
            agree,
            || {
                format!(
                    "the two models do not agree on, or do not bound, the level exceeded once in \
                     {seconds} s: {} and {}",
                    micros(by_peaks.level),
                    micros(by_maxima.level)
                )
            },
        );
        if let (Some(low), Some(high)) = (by_peaks.low, by_peaks.high) {
            levels.push(ReturnLevel {
                period,
                level: by_peaks.level,
                low,
                high,
                by_block_maxima: by_maxima.level,
            });
        }
    }
    levels
}

/// A latency for a sentence.
fn micros(ns: f64) -> String {
    format!("{:.1} µs", ns / 1e3)
}

impl ModelBlocks {
    fn summary(&self) -> BlockMaxima {
        let Gev { location, scale, shape } = self.fit;
        let (blocks, block_length) = (self.maxima.len() as u64, self.length as u64);
        BlockMaxima { blocks, block_length, location, scale, shape, fit_p: self.fit_p }
    }
}
