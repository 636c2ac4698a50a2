//! The results of a tuning so far.

use super::candidate::Candidate;
use super::effect::EffectRow;
use super::procedure::{Tuning, of_pairs};
use crate::effect::EffectEstimate;
use crate::median_of_sorted;
use punctual_bundle::tune::{
    SCHEMA, TuneAnswer, TunedCost, TunedSet, TunedSetting, TuningDocument,
};
use punctual_core::Nanos;

impl Tuning {
    /// The results for `metric`, at any time, including before the end.
    pub fn outcome(&self, metric: &str) -> TuningDocument {
        let settings = (0..self.candidates.len()).map(|place| self.setting(place)).collect();
        let set = self.set();
        let is_better = set.as_ref().is_some_and(|set| set.answer == TuneAnswer::Better);
        TuningDocument {
            schema: SCHEMA.to_owned(),
            experiment: String::new(),
            kernel: None,
            target: None,
            metric: metric.to_owned(),
            settings,
            recommended: set
                .iter()
                .filter(|_| is_better)
                .flat_map(|s| s.settings.clone())
                .collect(),
            set,
            not_tried: Vec::new(),
            required: None,
            spread: self.spread,
            smallest: self.options.smallest,
            margin: self.options.margin,
            error_rate: self.options.error,
            blocks: self.used,
            failed: self.failed,
            repeated: self.repeated,
            elapsed: self.elapsed,
            ended: self.ended(),
        }
    }

    fn setting(&self, place: usize) -> TunedSetting {
        let Candidate { name, value, risk, .. } = &self.candidates[place];
        let unknown = TunedSetting {
            name: name.clone(),
            value: value.clone(),
            risk: risk.word().to_owned(),
            answer: TuneAnswer::NotResolved,
            effect: None,
            round: 0,
            more_blocks: None,
            more_time: None,
        };
        let Some(screened) = &self.screened[place] else { return unknown };
        let estimate = &screened.estimate;
        let times = (screened.answer == TuneAnswer::NotResolved)
            .then(|| estimate.needed(self.options.margin, screened.share))
            .flatten();
        let more_blocks = times.map(|times| ((times - 1.0) * estimate.count as f64).ceil() as u64);
        let time = |blocks: u64| Nanos((blocks as f64 * self.block_time().ns() as f64) as i64);
        TunedSetting {
            answer: screened.answer,
            effect: Some(estimate.ratio(screened.p_adjusted)),
            round: screened.round,
            more_blocks,
            more_time: more_blocks.map(time),
            ..unknown
        }
    }

    fn set(&self) -> Option<TunedSet> {
        let adopted = (0..self.candidates.len()).filter(|place| self.adopted[*place]);
        let settings: Vec<String> =
            adopted.map(|place| self.candidates[place].name.clone()).collect();
        if settings.is_empty() {
            return None;
        }
        let estimate = self.of_set();
        Some(TunedSet {
            settings,
            answer: self.answer(estimate, |effect| effect < 0.0),
            effect: estimate.map(|estimate| estimate.ratio(estimate.p())),
            untouched: middle(&self.pairs, false),
            with_set: middle(&self.pairs, true),
            cost: (self.options.cost > Nanos::ZERO).then(|| self.cost()),
        })
    }

    /// The cost of the set: the throughput in the same pairs of blocks.
    fn cost(&self) -> TunedCost {
        let estimate = of_pairs(&self.throughputs);
        TunedCost {
            command: String::new(),
            answer: self.answer(estimate, |effect| effect > 0.0),
            effect: estimate.map(|estimate| estimate.ratio(estimate.p())),
            untouched: middle(&self.throughputs, false),
            with_set: middle(&self.throughputs, true),
            why: None,
        }
    }

    /// The answer of one comparison on its own.
    fn answer(&self, estimate: Option<EffectEstimate>, is_better: fn(f64) -> bool) -> TuneAnswer {
        let Some(estimate) = estimate else { return TuneAnswer::NotResolved };
        match (estimate.p() <= self.options.error, is_better(estimate.effect)) {
            (true, true) => TuneAnswer::Better,
            (true, false) => TuneAnswer::Worse,
            _ if estimate.is_none(self.options.margin) => TuneAnswer::NoEffect,
            _ => TuneAnswer::NotResolved,
        }
    }
}

/// The median of the blocks with the set, or of those without it.
fn middle(pairs: &[EffectRow], of_set: bool) -> Option<f64> {
    let is_it = |row: &&EffectRow| row.on.contains(&true) == of_set;
    let mut logs: Vec<f64> = pairs.iter().filter(is_it).map(|row| row.log).collect();
    logs.sort_by(f64::total_cmp);
    median_of_sorted(&logs).map(f64::exp)
}
