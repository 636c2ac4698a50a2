//! All that a tuning has found so far.

use super::candidate::Candidate;
use super::effect::Row;
use super::procedure::Tuning;
use punctual_bundle::tune::{Answer, SCHEMA, TunedSet, TunedSetting, TuningDocument};
use punctual_core::Nanos;

impl Tuning {
    /// What has been found of `metric`; at any time, also before the end.
    pub fn outcome(&self, metric: &str) -> TuningDocument {
        let settings = (0..self.candidates.len()).map(|place| self.setting(place)).collect();
        let set = self.set();
        let is_better = set.as_ref().is_some_and(|set| set.answer == Answer::Better);
        TuningDocument {
            schema: SCHEMA.to_owned(),
            experiment: String::new(),
            kernel: None,
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
            answer: Answer::NotResolved,
            effect: None,
            round: 0,
            more_blocks: None,
            more_time: None,
        };
        let Some(screened) = &self.screened[place] else { return unknown };
        let estimate = &screened.estimate;
        let times = (screened.answer == Answer::NotResolved)
            .then(|| estimate.needed(self.options.margin, screened.share))
            .flatten();
        let more_blocks = times.map(|times| ((times - 1.0) * estimate.blocks as f64).ceil() as u64);
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
        let answer = estimate.map_or(Answer::NotResolved, |estimate| {
            match (estimate.p() <= self.options.error, estimate.effect < 0.0) {
                (true, true) => Answer::Better,
                (true, false) => Answer::Worse,
                _ if estimate.is_none(self.options.margin) => Answer::NoEffect,
                _ => Answer::NotResolved,
            }
        });
        let middle = |of_set: bool| {
            let is_it = |row: &&Row| row.on.contains(&true) == of_set;
            let mut logs: Vec<f64> = self.pairs.iter().filter(is_it).map(|r| r.log).collect();
            logs.sort_by(f64::total_cmp);
            let (low, high) =
                (logs.get(logs.len().wrapping_sub(1) / 2)?, logs.get(logs.len() / 2)?);
            Some(((low + high) / 2.0).exp())
        };
        Some(TunedSet {
            settings,
            answer,
            effect: estimate.map(|estimate| estimate.ratio(estimate.p())),
            untouched: middle(false),
            with_set: middle(true),
        })
    }
}
