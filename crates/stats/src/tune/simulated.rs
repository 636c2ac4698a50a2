//! A machine with known truth: effects, interactions, sources of latency that hide each other,
//! drift, settings with slow effect. Its noise is that of a real machine, drawn from blocks
//! recorded there, bursts included.

use super::TunableMachine;
use super::candidate::Candidate;
use super::request::{BlockRequest, MeasuredBlock};
use crate::Random;
use crate::percentiles;
use punctual_core::Nanos;
use std::convert::Infallible;

/// Consecutive blocks of a real machine, a second each.
#[derive(Clone, Debug)]
pub struct RecordedMachine {
    /// For each: the number of samples, and latencies with their rank from the top, ascending
    /// ranks.
    seconds: Vec<(u64, Vec<(u64, f64)>)>,
}

/// Why a text is not a record of blocks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {why}")]
pub struct NotRecorded {
    /// The line, from 1.
    pub line: usize,
    pub why: &'static str,
}

impl RecordedMachine {
    /// Reads lines of numbers: `rank …` with the ranks from the top, then for each second the
    /// number of samples and the latency of each rank in ns.
    pub fn read(text: &str) -> Result<RecordedMachine, NotRecorded> {
        let mut ranks: Vec<u64> = Vec::new();
        let mut seconds = Vec::new();
        for (place, line) in text.lines().enumerate().filter(|(_, line)| !line.starts_with('#')) {
            let wrong = |why| NotRecorded { line: place + 1, why };
            let mut words = line.split_whitespace();
            let first = words.next().ok_or(wrong("nothing in it"))?;
            let rest: Option<Vec<u64>> = words.map(|word| word.parse().ok()).collect();
            let rest = rest.ok_or(wrong("not a number"))?;
            if first == "rank" {
                ranks = rest;
            } else if rest.len() != ranks.len() || rest.is_empty() {
                return Err(wrong("not as many latencies as ranks"));
            } else {
                let count = first.parse().map_err(|_| wrong("not a number of samples"))?;
                let latencies = rest.into_iter().map(|ns| ns as f64);
                seconds.push((count, ranks.iter().copied().zip(latencies).collect()));
            }
        }
        if seconds.is_empty() {
            return Err(NotRecorded { line: 1, why: "no blocks" });
        }
        Ok(RecordedMachine { seconds })
    }

    /// The logarithm of a percentile of every window of `seconds` seconds, by its first second;
    /// windows wrap around at the end.
    pub fn window_logs(&self, percentile: f64, seconds: usize) -> Vec<f64> {
        let log_of_window = |first: usize| {
            let window_seconds =
                || (first..first + seconds).map(|s| &self.seconds[s % self.seconds.len()]);
            let count: u64 = window_seconds().map(|(count, _)| count).sum();
            let at_rank_from_top = count - percentiles::percentile_rank(percentile, count) + 1;
            // A latency represents the samples from its rank up to the next known one.
            let mut steps: Vec<(f64, u64)> = window_seconds()
                .flat_map(|(_, known)| {
                    let before = std::iter::once(0).chain(known.iter().map(|(rank, _)| *rank));
                    known.iter().zip(before).map(|((rank, ns), before)| (*ns, rank - before))
                })
                .collect();
            steps.sort_by(|a, b| b.0.total_cmp(&a.0));
            let mut above = 0;
            let found = steps.iter().find(|(_, samples)| {
                above += samples;
                above >= at_rank_from_top
            });
            found.or(steps.last()).map_or(0.0, |(ns, _)| ns.max(1.0).ln())
        };
        (0..self.seconds.len()).map(log_of_window).collect()
    }
}

/// A source of latency, active until one of these settings is on.
#[derive(Clone, PartialEq, Debug)]
pub struct LatencySource {
    /// The factor by which it alone raises the figure.
    pub size: f64,
    /// The settings that remove it.
    pub cured_by: Vec<usize>,
}

/// The true effects of the settings.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Truth {
    /// The factor of each on the figure; below 1 is better.
    pub effects: Vec<f64>,
    /// The additional factor of two together.
    pub together: Vec<(usize, usize, f64)>,
    /// Sources of latency; the largest hides the others.
    pub sources: Vec<LatencySource>,
    /// The factor by which the machine drifts up and down in an hour.
    pub drift: f64,
}

/// How strongly the largest source hides the others: the figure is the root of their sum with this
/// exponent.
const HIDES: f64 = 6.0;
/// The mean number of consecutive blocks taken from the recording.
const STRETCH: usize = 6;

impl Truth {
    /// The logarithm of the factor on the figure; each setting is on to a degree between 0 and 1.
    pub(crate) fn log_factor(&self, on: &[f64]) -> f64 {
        let own_effects: f64 =
            self.effects.iter().zip(on).map(|(effect, on)| effect.ln() * on).sum();
        let joint_effects: f64 =
            self.together.iter().map(|(a, b, f)| f.ln() * on[*a] * on[*b]).sum();
        let left = |source: &LatencySource| {
            let cured = source.cured_by.iter().map(|place| on[*place]).fold(0.0, f64::max);
            source.size.powf(HIDES) * (1.0 - cured)
        };
        own_effects
            + joint_effects
            + (1.0 + self.sources.iter().map(left).sum::<f64>()).ln() / HIDES
    }

    /// The factor of a set against the untouched machine.
    pub(crate) fn factor_of_set(&self, on: &[bool]) -> f64 {
        let parts: Vec<f64> = on.iter().map(|on| f64::from(*on)).collect();
        (self.log_factor(&parts) - self.log_factor(&vec![0.0; on.len()])).exp()
    }
}

/// A simulated machine.
#[derive(Clone, Debug)]
pub struct SimulatedTunable<'a> {
    truth: &'a Truth,
    candidates: &'a [Candidate],
    /// From [`RecordedMachine::window_logs`].
    noise: &'a [f64],
    block: Nanos,
    place: usize,
    random: Random,
    /// The degree to which each setting is in effect.
    acts: Vec<f64>,
    on: Vec<bool>,
    elapsed: f64,
    phase: f64,
}

impl<'a> SimulatedTunable<'a> {
    /// A machine; `noise` has an entry per second of a recording, for blocks as long as `block`.
    pub fn new(
        truth: &'a Truth,
        candidates: &'a [Candidate],
        noise: &'a [f64],
        block: Nanos,
        seed: u64,
    ) -> SimulatedTunable<'a> {
        let mut random = Random::from_seed(seed);
        let count = candidates.len();
        SimulatedTunable {
            truth,
            candidates,
            noise,
            block,
            place: random.next_below(noise.len()),
            phase: random.next_unit(),
            random,
            acts: vec![0.0; count],
            on: vec![false; count],
            elapsed: 0.0,
        }
    }

    /// Lets time pass: switched settings approach their effect, to 95 % after the wash-out.
    fn pass_time(&mut self, seconds: f64) {
        for place in 0..self.acts.len() {
            let target = f64::from(self.on[place]);
            let slow = self.candidates[place].wash_out.ns() as f64 / 1e9 / 3.0;
            let left = if slow > 0.0 { (-seconds / slow).exp() } else { 0.0 };
            self.acts[place] = target + (self.acts[place] - target) * left;
        }
        self.elapsed += seconds;
    }
}

impl TunableMachine for SimulatedTunable<'_> {
    type Error = Infallible;

    fn apply_settings(&mut self, on: &[bool]) -> Result<(), Infallible> {
        self.on = on.to_vec();
        Ok(())
    }

    fn wait_to_settle(&mut self, time: Nanos) -> Result<(), Infallible> {
        self.pass_time(time.ns() as f64 / 1e9);
        Ok(())
    }

    fn measure_block(&mut self, _: &BlockRequest) -> Result<Option<f64>, Infallible> {
        let seconds = self.block.ns() as f64 / 1e9;
        if self.random.next_below(STRETCH) == 0 {
            self.place = self.random.next_below(self.noise.len());
        }
        let noise = self.noise[self.place % self.noise.len()];
        self.place = (self.place + seconds.ceil() as usize) % self.noise.len();
        self.pass_time(seconds / 2.0);
        let turn = std::f64::consts::TAU * (self.elapsed / 3600.0 + self.phase);
        let drift = self.truth.drift.max(1.0).ln() * turn.sin() / 2.0;
        let log = noise + self.truth.log_factor(&self.acts) + drift;
        self.pass_time(seconds / 2.0);
        Ok(Some(log.exp()))
    }

    fn elapsed_time(&self) -> Nanos {
        Nanos((self.elapsed * 1e9) as i64)
    }

    fn store_block(&mut self, _: &BlockRequest, _: MeasuredBlock) -> Result<(), Infallible> {
        Ok(())
    }
}
