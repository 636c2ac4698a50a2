//! Tunings of machines with known truth, for the table of docs/tune.md and the tests.

use super::candidate::Candidate;
use super::procedure::Tuning;
use super::request::TuningOptions;
use super::run_tuning;
use super::simulated::{LatencySource, SimulatedTunable, Truth};
use super::time_needed;
use crate::dispersion::mean_and_variance;
use punctual_bundle::tune::{TuneAnswer, TuningDocument};
use punctual_core::Nanos;

/// A machine with its candidate settings.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// In words.
    pub name: &'static str,
    pub truth: Truth,
    pub candidates: Vec<Candidate>,
    /// The indices of the settings that are better.
    pub better: Vec<usize>,
    /// The indices of those that are worse.
    pub worse: Vec<usize>,
}

/// The outcome of many tunings.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct TuningCounts {
    pub tunings: usize,
    /// Tunings that wrongly call a setting better.
    pub falsely_better: usize,
    pub falsely_worse: usize,
    /// Settings that are better, in all tunings.
    pub to_find: usize,
    /// Those that were called better.
    pub found: usize,
    /// Settings without an effect that were called so, and all those without one.
    pub called_none: [usize; 2],
    /// Tunings with a set called better that is truly worse than the untouched machine.
    pub harmful: usize,
    /// The number of compared sets, and of those whose interval misses the truth.
    pub sets: [usize; 2],
    /// The longest and the mean time taken, and the stated time.
    pub hours: [f64; 2],
    /// The mean number of blocks per tuning.
    pub blocks: f64,
}

/// The factor of the smallest effect in the scenarios.
const SMALLEST: f64 = 1.3;

/// All scenarios, with `settings` settings (8 at least).
pub fn all_scenarios(settings: usize) -> Vec<Scenario> {
    let no_effect = Truth { effects: vec![1.0; settings], ..Truth::default() };
    let candidates: Vec<Candidate> =
        (0..settings).map(|place| Candidate::new(&format!("setting-{place}"))).collect();
    let with = |changes: &[(usize, f64)]| {
        let mut truth = no_effect.clone();
        changes.iter().for_each(|(place, factor)| truth.effects[*place] = *factor);
        truth
    };
    let scenario = |name, truth: Truth| {
        let places = |is_it: fn(f64) -> bool| -> Vec<usize> {
            (0..settings).filter(|place| is_it(truth.effects[*place])).collect()
        };
        let (better, worse) = (places(|e| e < 1.0), places(|e| e > 1.0));
        Scenario { name, candidates: candidates.clone(), better, worse, truth }
    };
    let several = [(1, 1.0 / 2.0), (2, 1.0 / 1.5), (3, 1.0 / SMALLEST), (4, 1.5)];
    let mut slow =
        scenario("one ×1.3, and a third of all act slowly", with(&[(2, 1.0 / SMALLEST)]));
    slow.candidates.iter_mut().step_by(3).for_each(|c| c.wash_out = Nanos(20_000_000_000));
    let mut hidden = scenario("a source of ×4 hides one of ×1.6", no_effect.clone());
    hidden.truth.sources = vec![
        LatencySource { size: 4.0, cured_by: vec![1] },
        LatencySource { size: 1.6, cured_by: vec![5] },
    ];
    hidden.better = vec![1, 5];
    vec![
        scenario("nothing helps", no_effect.clone()),
        scenario("one ×1.3", with(&[(3, 1.0 / SMALLEST)])),
        scenario(
            "×2, ×1.5, ×1.3, one worse by ×1.5; two pairs act together; drift",
            Truth { together: vec![(1, 2, 1.15), (2, 3, 1.0 / 1.1)], drift: 1.5, ..with(&several) },
        ),
        scenario("four worse by ×1.3", with(&[0, 2, 4, 6].map(|place| (place, SMALLEST)))),
        hidden,
        slow,
    ]
}

/// The stated time of a tuning. Nearly every block switches a setting with slow effect.
fn stated_time(options: &TuningOptions, scenario: &Scenario, spread: f64) -> Nanos {
    let wash_out = scenario.candidates.iter().map(|c| c.wash_out).max().unwrap_or(Nanos::ZERO);
    time_needed(options, scenario.candidates.len(), spread, options.block + wash_out)
}

/// Tunes many machines of a scenario; `noise` is that of blocks as long as those of `options`.
pub fn simulate_tunings(
    scenario: &Scenario,
    noise: &[f64],
    options: &TuningOptions,
    tunings: usize,
) -> TuningCounts {
    let spread = mean_and_variance(noise).map_or(0.0, |(_, variance)| variance.sqrt());
    let options =
        TuningOptions { within: stated_time(options, scenario, spread), ..options.clone() };
    let mut counted = TuningCounts::default();
    for seed in 0..tunings as u64 {
        let options = TuningOptions { seed, ..options.clone() };
        let mut machine = SimulatedTunable::new(
            &scenario.truth,
            &scenario.candidates,
            noise,
            options.block,
            seed,
        );
        let mut tuning = Tuning::new(scenario.candidates.clone(), options);
        let Ok(()) = run_tuning(&mut tuning, &mut machine);
        counted.add(scenario, &tuning.to_document("figure"));
    }
    counted.hours[1] = options.within.ns() as f64 / 3.6e12;
    counted.hours[0] /= tunings.max(1) as f64;
    counted.blocks /= tunings.max(1) as f64;
    counted
}

impl TuningCounts {
    fn add(&mut self, scenario: &Scenario, found: &TuningDocument) {
        let called = |answer: TuneAnswer| -> Vec<usize> {
            let all = found.settings.iter().enumerate();
            all.filter(|(_, s)| s.answer == answer).map(|(place, _)| place).collect()
        };
        let (better, worse, none) =
            (called(TuneAnswer::Better), called(TuneAnswer::Worse), called(TuneAnswer::NoEffect));
        self.tunings += 1;
        self.falsely_better += usize::from(better.iter().any(|p| !scenario.better.contains(p)));
        self.falsely_worse += usize::from(worse.iter().any(|p| !scenario.worse.contains(p)));
        self.to_find += scenario.better.len();
        self.found += better.iter().filter(|place| scenario.better.contains(place)).count();
        let has_none = |p: &usize| !scenario.better.contains(p) && !scenario.worse.contains(p);
        self.called_none[0] += none.iter().filter(|place| has_none(place)).count();
        self.called_none[1] += (0..found.settings.len()).filter(has_none).count();
        if let Some((set, effect)) = found.set.as_ref().and_then(|s| Some((s, s.effect?))) {
            let on: Vec<bool> = (0..found.settings.len()).map(|p| better.contains(&p)).collect();
            let truth = scenario.truth.factor_of_set(&on);
            self.harmful += usize::from(set.answer == TuneAnswer::Better && truth > 1.0);
            self.sets[0] += 1;
            self.sets[1] += usize::from(truth < effect.interval[0] || truth > effect.interval[1]);
            self.harmful += usize::from(truth > 1.0 && truth > effect.interval[1]);
        }
        self.hours[0] += found.elapsed.ns() as f64 / 3.6e12;
        self.blocks += found.blocks as f64;
    }
}
