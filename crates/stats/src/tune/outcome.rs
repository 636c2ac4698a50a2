//! The results of a tuning so far.

use super::candidate::Candidate;
use super::procedure::Tuning;
use crate::effect::EffectEstimate;
use crate::median_of_sorted;
use punctual_bundle::tune::{SCHEMA, TuneAnswer, TunedSet, TunedSetting, TuningDocument};
use punctual_core::Nanos;

impl Tuning {
    /// The results for `metric`, at any time, including before the end.
    pub fn to_document(&self, metric: &str) -> TuningDocument {
        let settings = (0..self.candidates.len()).map(|place| self.tuned_setting(place)).collect();
        let set = self.tuned_set();
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
            margin: self.options.smallest,
            error_rate: self.options.error,
            blocks: self.used,
            failed: self.failed,
            elapsed: self.elapsed,
            ended: self.tuning_end(),
        }
    }

    fn tuned_setting(&self, place: usize) -> TunedSetting {
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
            .then(|| estimate.factor_of_blocks(self.options.smallest, screened.share))
            .flatten();
        let more_blocks =
            times.map(|times| 2 * ((times - 1.0) * estimate.count as f64).ceil() as u64);
        let time = |blocks: u64| Nanos((blocks as f64 * self.block_time().ns() as f64) as i64);
        TunedSetting {
            answer: screened.answer,
            effect: Some(estimate.to_factor(screened.p_adjusted)),
            round: screened.round,
            more_blocks,
            more_time: more_blocks.map(time),
            ..unknown
        }
    }

    fn tuned_set(&self) -> Option<TunedSet> {
        let adopted = (0..self.candidates.len()).filter(|place| self.adopted[*place]);
        let settings: Vec<String> =
            adopted.map(|place| self.candidates[place].name.clone()).collect();
        if settings.is_empty() {
            return None;
        }
        let estimate = self.compare_set();
        Some(TunedSet {
            settings,
            answer: estimate
                .map_or(TuneAnswer::NotResolved, |estimate| self.answer_comparison(&estimate)),
            effect: estimate.map(|estimate| estimate.to_factor(estimate.p_value())),
            untouched: self.median_of_pairs(0),
            with_set: self.median_of_pairs(1),
        })
    }

    /// The answer of one comparison on its own.
    fn answer_comparison(&self, estimate: &EffectEstimate) -> TuneAnswer {
        match (estimate.p_value() <= self.options.error, estimate.effect < 0.0) {
            (true, true) => TuneAnswer::Better,
            (true, false) => TuneAnswer::Worse,
            _ if estimate.is_none(self.options.smallest) => TuneAnswer::NoEffect,
            _ => TuneAnswer::NotResolved,
        }
    }

    /// The median of one side of the pairs.
    fn median_of_pairs(&self, side: usize) -> Option<f64> {
        let mut logs: Vec<f64> = self.pairs.iter().map(|pair| pair[side]).collect();
        logs.sort_by(f64::total_cmp);
        median_of_sorted(&logs).map(f64::exp)
    }
}
