//! Histories with known truth, for the table of docs/notes/error-rates.md and the tests.

use super::{DETECTION_RUNS, MIN_RUNS, RunFigures, judge_last_run, propose};
#[cfg(test)]
use super::{RunChanges, RunJudgement};
use crate::Random;
use crate::probability::normal_upper;
use punctual_core::{Metric, Requirement};

/// The noise of the figures from run to run.
#[derive(Clone, Debug)]
pub enum SimulatedNoise {
    /// Normally distributed logarithms of the figures, correlated like median, p99 and p99.9 of one
    /// run.
    Normal,
    /// The same with the tails of Student's t with three degrees of freedom: outliers.
    Heavy,
    /// Figures of a real machine's runs, a row each, in order.
    Recorded {
        /// Median, p99, p99.9, missed periods.
        rows: Vec<Vec<f64>>,
        /// The mean number of consecutive rows drawn together: with 1 they come in any order, with
        /// more, bursts are preserved.
        stretch: usize,
    },
}

impl SimulatedNoise {
    /// Reads the lines of fixtures/baselines/runs.tsv; `None` if one is invalid.
    pub fn from_recording(text: &str, stretch: usize) -> Option<SimulatedNoise> {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let row = |line: &str| -> Option<Vec<f64>> {
            let figures = line.split('\t').take(FIGURES).map(|word| word.parse().ok());
            figures.collect::<Option<Vec<f64>>>().filter(|row| row.len() == FIGURES)
        };
        let rows: Vec<Vec<f64>> = lines.map(row).collect::<Option<_>>()?;
        (!rows.is_empty()).then_some(SimulatedNoise::Recorded { rows, stretch: stretch.max(1) })
    }
}

/// The simulated machine.
#[derive(Clone, Debug)]
pub struct SimulatedMachine {
    pub noise: SimulatedNoise,
    pub runs: usize,
    /// The step of the second figure after the last run, in standard deviations of its logarithm in
    /// this history.
    pub step: f64,
}

/// The result of a simulation.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct SimulationResult {
    /// Judged runs without a change.
    pub judged: usize,
    /// Those that were called worse.
    pub false_alarms: usize,
    /// Histories with a step at their end.
    pub steps: usize,
    /// Those in which it was noticed within five runs.
    pub noticed: usize,
}

/// Figures of a run: the median, p99, p99.9, and missed periods.
const FIGURES: usize = 4;

/// Simulates histories; one in `every` runs without a change is judged.
pub fn simulate_histories(
    machine: &SimulatedMachine,
    histories: usize,
    every: usize,
    seed: u64,
) -> SimulationResult {
    let mut random = Random::from_seed(seed);
    let mut total = SimulationResult::default();
    for _ in 0..histories {
        let mut rows = SimulatedRows { noise: &machine.noise, place: 0, random: &mut random };
        let mut history_rows: Vec<Vec<f64>> = (0..machine.runs).map(|_| rows.next()).collect();
        for judged in ((MIN_RUNS + 1)..=machine.runs).step_by(every) {
            total.judged += 1;
            let is_worse = judge_last_run(&figures_of_rows(&history_rows[..judged])).is_worse();
            total.false_alarms += usize::from(is_worse);
        }
        let factor = (machine.step * log_deviation(&history_rows)).exp();
        total.steps += 1;
        for _ in 0..DETECTION_RUNS {
            let mut row = rows.next();
            row[1] *= factor;
            history_rows.push(row);
            if judge_last_run(&figures_of_rows(&history_rows)).is_worse() {
                total.noticed += 1;
                break;
            }
        }
    }
    total
}

/// Histories without a change, judged run by run.
#[cfg(test)]
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(crate) struct Quiet {
    pub judged: usize,
    /// Changes found.
    pub onsets: usize,
    /// Runs called worse.
    pub red: usize,
    /// Runs reported as far outside of everything.
    pub leaps: usize,
}

#[cfg(test)]
pub(crate) fn simulate_quiet(
    noise: &SimulatedNoise,
    histories: usize,
    runs: usize,
    seed: u64,
) -> Quiet {
    let mut random = Random::from_seed(seed);
    let mut total = Quiet::default();
    for _ in 0..histories {
        let mut rows = SimulatedRows { noise, place: 0, random: &mut random };
        let history_rows: Vec<Vec<f64>> = (0..runs).map(|_| rows.next()).collect();
        let (mut changes, mut was) = (RunChanges::default(), 0);
        for end in (MIN_RUNS + 1)..=runs {
            let RunJudgement::Known(known) =
                changes.judge_newest(&figures_of_rows(&history_rows[..end]))
            else {
                continue;
            };
            total.judged += 1;
            total.red += usize::from(!known.worse.is_empty());
            total.leaps += usize::from(!known.leaps.is_empty());
            total.onsets += known.worse.len().saturating_sub(was).min(1);
            was = known.worse.len();
        }
    }
    total
}

/// Histories with a lasting step.
#[cfg(test)]
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Followed {
    /// Those in which it was found within the horizon.
    pub found: usize,
    /// Those in which every later run was also called worse.
    pub stayed: usize,
    /// For those that then returned: runs until the return was found, sorted.
    pub returns: Vec<usize>,
    /// Runs until it was found, sorted.
    pub delays: Vec<usize>,
}

/// Follows histories with a step by this factor after `runs` runs, over `horizon` runs, and then as
/// many after its end.
#[cfg(test)]
pub(crate) fn follow_steps(
    noise: &SimulatedNoise,
    runs: usize,
    factor: f64,
    histories: usize,
    horizon: usize,
    seed: u64,
) -> Followed {
    let mut random = Random::from_seed(seed);
    let mut total = Followed::default();
    for _ in 0..histories {
        let mut rows = SimulatedRows { noise, place: 0, random: &mut random };
        let mut history_rows: Vec<Vec<f64>> = (0..runs).map(|_| rows.next()).collect();
        let mut changes = RunChanges::default();
        let mut next = |factor: f64, changes: &mut RunChanges| {
            let mut row = rows.next();
            row[1] *= factor;
            history_rows.push(row);
            // Only that figure.
            changes.judge_newest(&figures_of_rows(&history_rows)[1..2]).is_worse()
        };
        let Some(delay) = (1..=horizon).find(|_| next(factor, &mut changes)) else { continue };
        total.found += 1;
        total.delays.push(delay);
        if !(delay..horizon).all(|_| next(factor, &mut changes)) {
            continue;
        }
        total.stayed += 1;
        total.returns.extend((1..=horizon).find(|_| !next(1.0, &mut changes)));
    }
    total.delays.sort_unstable();
    total.returns.sort_unstable();
    total
}

/// What proposed bounds state, and what later runs show.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct BoundRates {
    /// Histories with a bound at the asked rate.
    pub bounds: usize,
    /// The mean stated and the true share of later runs beyond the bound.
    pub stated_alarms: f64,
    pub alarms: f64,
    /// The same for three runs that are 30 % worse, of which one is beyond.
    pub stated_noticed: f64,
    pub noticed: f64,
}

/// Histories of `runs` runs, each with a bound of its second figure at this rate, and 20 later runs
/// as they are, and 18 that are worse.
pub fn simulate_bounds(
    noise: &SimulatedNoise,
    runs: usize,
    rate: Option<f64>,
    histories: usize,
    seed: u64,
) -> BoundRates {
    let mut random = Random::from_seed(seed);
    let mut rates = BoundRates::default();
    for _ in 0..histories {
        let mut rows = SimulatedRows { noise, place: 0, random: &mut random };
        let values: Vec<f64> = (0..runs).map(|_| rows.next()[1]).collect();
        let bound = propose::of_values(&values, Metric::Percentile(99.0), rate);
        let Some(bound) = bound.filter(|bound| bound.needed.is_none()) else { continue };
        let Ok(stated) = bound.require.parse::<Requirement>() else { continue };
        let mut exceeds = |factor: f64| {
            !stated.comparison.is_satisfied(rows.next()[1] * factor, stated.bound as f64)
        };
        let alarms = (0..20).filter(|_| exceeds(1.0)).count();
        let noticed = (0..6).filter(|_| {
            let three = [(); propose::WITHIN as usize].map(|()| exceeds(propose::WORSE));
            three.contains(&true)
        });
        rates.bounds += 1;
        rates.stated_alarms += bound.false_alarms;
        rates.alarms += alarms as f64 / 20.0;
        rates.stated_noticed += bound.noticed.unwrap_or_default();
        rates.noticed += noticed.count() as f64 / 6.0;
    }
    let bound_count = rates.bounds.max(1) as f64;
    BoundRates {
        bounds: rates.bounds,
        stated_alarms: rates.stated_alarms / bound_count,
        alarms: rates.alarms / bound_count,
        stated_noticed: rates.stated_noticed / bound_count,
        noticed: rates.noticed / bound_count,
    }
}

/// The standard deviation of the logarithm of the second figure.
fn log_deviation(rows: &[Vec<f64>]) -> f64 {
    let logs: Vec<f64> = rows.iter().map(|row| row[1].ln()).collect();
    crate::dispersion::mean_and_variance(&logs).map_or(0.0, |(_, variance)| variance.sqrt())
}

fn figures_of_rows(rows: &[Vec<f64>]) -> Vec<RunFigures> {
    let width = rows.first().map_or(0, Vec::len);
    (0..width)
        .map(|place| RunFigures {
            name: String::new(),
            values: rows.iter().map(|row| Some(row[place])).collect(),
            is_time: place + 1 < FIGURES,
            is_main: place == 1,
        })
        .collect()
}

struct SimulatedRows<'a> {
    noise: &'a SimulatedNoise,
    place: usize,
    random: &'a mut Random,
}

impl SimulatedRows<'_> {
    fn next(&mut self) -> Vec<f64> {
        if let SimulatedNoise::Recorded { rows, stretch } = self.noise {
            let is_new = self.place == 0 || self.random.next_below(*stretch) == 0;
            let place = if is_new { self.random.next_below(rows.len()) } else { self.place };
            self.place = (place + 1) % rows.len();
            return rows[place].clone();
        }
        let common = self.draw_noise();
        let tail = 0.7 * common + 0.714 * self.draw_noise();
        let far = 0.8 * tail + 0.6 * self.draw_noise();
        let missed = if self.random.next_unit() < 0.05 { 1.0 } else { 0.0 };
        let time = |at: f64, spread: f64, of: f64| at * (spread * of).exp();
        vec![
            time(5_000.0, 0.05, common),
            time(40_000.0, 0.2, tail),
            time(90_000.0, 0.3, far),
            missed,
        ]
    }

    fn draw_noise(&mut self) -> f64 {
        let mut normal = || normal_upper(self.random.next_unit());
        match self.noise {
            SimulatedNoise::Normal | SimulatedNoise::Recorded { .. } => normal(),
            SimulatedNoise::Heavy => {
                let z = normal();
                let chi: f64 = (0..3).map(|_| normal().powi(2)).sum();
                // Its variance is 3.
                z / (chi / 3.0).sqrt() / 3f64.sqrt()
            }
        }
    }
}
