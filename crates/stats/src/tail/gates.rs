//! The gates before a model: each tests a condition of extreme value theory. A failed one refuses
//! the model with its reason.

use super::independence::{TestOutcome, bds_shuffled, kpss, kpss_lags, ljung_box, normal_scores};
use crate::probability::chi_squared_beyond;
use punctual_bundle::tail::{Model, ModelGate};

/// The probability below which a condition counts as violated. With about ten conditions, some six
/// in a hundred sources that satisfy all of them are refused.
const LEVEL: f64 = 0.01;
/// Distances of the BDS test, of normal scores.
const NEAR: f64 = 1.0;
const SHUFFLES: usize = 199;

/// Gates being collected for a [`Model`].
#[derive(Default)]
pub(crate) struct Gates {
    gates: Vec<ModelGate>,
    refusals: Vec<String>,
}

impl Gates {
    /// A condition that is either satisfied or not.
    pub fn require(
        &mut self,
        id: &str,
        what: &str,
        open: bool,
        refusal: impl FnOnce() -> String,
    ) -> bool {
        self.push(id, what, open, None, None, refusal)
    }

    /// A tested condition; one that cannot be tested is not satisfied.
    pub fn test(
        &mut self,
        id: &str,
        what: &str,
        outcome: Option<TestOutcome>,
        refusal: impl FnOnce() -> String,
    ) -> bool {
        self.test_at(LEVEL, id, what, outcome, refusal)
    }

    /// The same with another level.
    pub(crate) fn test_at(
        &mut self,
        level: f64,
        id: &str,
        what: &str,
        outcome: Option<TestOutcome>,
        refusal: impl FnOnce() -> String,
    ) -> bool {
        let open = outcome.is_some_and(|outcome| outcome.p > level);
        self.push(id, what, open, outcome.map(|o| o.statistic), outcome.map(|o| o.p), refusal)
    }

    /// A condition with a known outcome.
    pub fn push(
        &mut self,
        id: &str,
        what: &str,
        open: bool,
        statistic: Option<f64>,
        p: Option<f64>,
        refusal: impl FnOnce() -> String,
    ) -> bool {
        let statistic = statistic.filter(|s| s.is_finite());
        self.gates.push(ModelGate { id: id.to_owned(), what: what.to_owned(), open, statistic, p });
        if !open {
            self.refusals.push(refusal());
        }
        open
    }

    /// Whether all passed so far.
    pub(crate) fn all_open(&self) -> bool {
        self.refusals.is_empty()
    }

    /// Moves the gates into their model.
    pub(crate) fn into_model(self, mut model: Model) -> Model {
        model.accepted = self.refusals.is_empty();
        model.gates = self.gates;
        model.refusals = self.refusals;
        model
    }

    /// Values in order of time: neither dependent nor drifting.
    pub fn in_order(&mut self, of: &str, values: &[f64], seed: u64) {
        let scores = normal_scores(values);
        let lags = (values.len() / 5).clamp(1, 10);
        let id = |what: &str| format!("{what}-{}", of.replace(' ', "-"));
        self.test(
            &id("uncorrelated"),
            &format!("{of} are not autocorrelated (Ljung–Box)"),
            ljung_box(&scores, lags),
            || format!("{of} are autocorrelated: they are not independent draws"),
        );
        let bds = bds_shuffled(&scores, 2, NEAR, SHUFFLES, seed);
        self.test(&id("independent"), &format!("{of} have no pattern (BDS)"), bds, || {
            format!("{of} follow a pattern in time")
        });
        let outcome = kpss(&scores, kpss_lags(values.len()));
        self.test(&id("level"), &format!("{of} are stationary (KPSS)"), outcome, || {
            format!("{of} are not stationary: their level drifts")
        });
    }

    /// Peaks are as frequent in every part of the run as for a Poisson process (dispersion test:
    /// Cunnane, J. Hydrology 44, 1979).
    pub(crate) fn steady_rate(&mut self, places: &[usize], samples: usize) {
        let parts = (places.len() / 8).clamp(2, 25);
        let mut counts = vec![0f64; parts];
        places
            .iter()
            .for_each(|place| counts[(place * parts / samples.max(1)).min(parts - 1)] += 1.0);
        let mean = places.len() as f64 / parts as f64;
        let statistic =
            counts.iter().map(|n| (n - mean).powi(2)).sum::<f64>() / mean.max(f64::MIN_POSITIVE);
        let beyond = chi_squared_beyond(parts as f64 - 1.0, statistic);
        let outcome = TestOutcome { statistic, p: (2.0 * beyond.min(1.0 - beyond)).min(1.0) };
        self.test(
            "steady-rate",
            "bursts come at a steady rate (dispersion)",
            Some(outcome),
            || {
                let how = if beyond < 0.5 {
                    "in some parts of the run more often than in others"
                } else {
                    "more regularly than by chance"
                };
                format!("bursts come {how}")
            },
        );
    }
}
