//! The procedure of a tuning, as a state that blocks are recorded into: an interrupted tuning is
//! restored by recording its blocks again. It queries neither clock nor machine.
//!
//! 1. Screening, in groups of blocks: each setting alone, and blocks without any setting, in a
//!    random order. Each setting is paired with the blocks without, so drift from group to group
//!    goes into the levels of the groups, not into the effects. A round lasts until each effect of
//!    the requested smallest size would be found, or until its share of the time is over. Only the
//!    spread decides when a round ends, never an effect. Better settings are adopted, worse ones
//!    dropped, and the rest is screened again beside what was adopted: the largest source of a tail
//!    hides others.
//! 2. All adopted settings together against the untouched machine, in pairs of new blocks: effects
//!    that were selected for being large are overestimated.
//!
//! The rounds share the error rate: 60 % of it for the first, and 60 % of the rest for each further
//! one, over all settings of a round by Holm's procedure.

use super::candidate::Candidate;
use super::effect::Screened;
use super::request::{BlockPurpose, BlockRequest, MeasuredBlock, TuneStep, TuningOptions};
use super::{FIRST, LAST, LEAST_GROUPS, PAIRS, ROUND, blocks_needed, control_count, group_size};
use crate::Random;
use crate::compare::multiple::adjust_holm;
use crate::dispersion::mean;
use crate::effect::EffectEstimate;
use punctual_bundle::tune::{TuneAnswer, TuningEnd};
use punctual_core::Nanos;
use std::collections::VecDeque;

/// The maximum number of tries of a failing block.
const TRIES: u32 = 3;
/// The number of blocks that may fail in addition to a third of all.
const FAILURES: u64 = 6;

#[derive(Clone, Debug)]
enum TuningStage {
    Screen { round: u32, group: usize },
    Confirm,
    Done(TuningEnd),
}

/// A usable block.
#[derive(Clone, Debug)]
struct UsableBlock {
    request: BlockRequest,
    /// The logarithm of its figure.
    log: f64,
}

/// A tuning.
#[derive(Clone, Debug)]
pub struct Tuning {
    pub(super) candidates: Vec<Candidate>,
    pub(super) options: TuningOptions,
    random: Random,
    stage: TuningStage,
    queue: VecDeque<BlockRequest>,
    /// The blocks of the current group.
    current: Vec<UsableBlock>,
    tries: u32,
    /// For each candidate: with it minus without it, in the groups of this round.
    differences: Vec<Vec<f64>>,
    pub(super) spread: Option<f64>,
    pub(super) adopted: Vec<bool>,
    open: Vec<usize>,
    pub(super) screened: Vec<Option<Screened>>,
    /// Of each pair of the last comparison: the untouched machine, and the set.
    pub(super) pairs: Vec<[f64; 2]>,
    pub(super) used: u64,
    pub(super) failed: u64,
    pub(super) elapsed: Nanos,
}

impl Tuning {
    /// A tuning of these candidates; its first block is the next step.
    pub fn new(candidates: Vec<Candidate>, options: TuningOptions) -> Tuning {
        let count = candidates.len();
        let mut tuning = Tuning {
            candidates,
            random: Random::from_seed(options.seed),
            options,
            stage: TuningStage::Done(TuningEnd::Complete),
            queue: VecDeque::new(),
            current: Vec::new(),
            tries: 0,
            differences: Vec::new(),
            spread: None,
            adopted: vec![false; count],
            open: (0..count).collect(),
            screened: vec![None; count],
            pairs: Vec::new(),
            used: 0,
            failed: 0,
            elapsed: Nanos::ZERO,
        };
        if count > 0 {
            tuning.begin_round(1);
        }
        tuning
    }

    pub fn next(&self) -> TuneStep<'_> {
        match (&self.stage, self.queue.front()) {
            (TuningStage::Done(end), _) => TuneStep::Done(*end),
            (_, Some(request)) => TuneStep::Measure(request),
            // A stage fills the queue before it returns.
            (_, None) => TuneStep::Done(TuningEnd::Complete),
        }
    }

    pub fn candidates(&self) -> &[Candidate] {
        &self.candidates
    }

    pub(crate) fn tuning_end(&self) -> TuningEnd {
        if let TuneStep::Done(end) = self.next() { end } else { TuningEnd::Time }
    }

    /// Records the outcome of the block that was the next step.
    pub fn record_block(&mut self, block: MeasuredBlock) {
        self.elapsed = self.elapsed.max(block.elapsed);
        let Some(request) = self.queue.pop_front() else { return };
        match block.figure.filter(|figure| figure.is_finite()) {
            Some(figure) => {
                self.used += 1;
                self.tries = 0;
                self.current.push(UsableBlock { request, log: figure.max(1.0).ln() });
            }
            None => {
                self.failed += 1;
                self.tries += 1;
                if self.failed > FAILURES + self.used / 2 {
                    self.stage = TuningStage::Done(TuningEnd::BlocksFailed);
                } else if self.tries < TRIES {
                    self.queue.push_front(request);
                } else {
                    self.tries = 0;
                }
            }
        }
        if self.queue.is_empty() {
            self.end_group();
        }
    }

    /// The duration of a block including its preparation, as far as known.
    pub(crate) fn block_time(&self) -> Nanos {
        let measured = (self.used + self.failed) as i64;
        if measured == 0 { self.options.block } else { Nanos(self.elapsed.ns() / measured) }
    }

    fn error_share(&self, round: u32) -> f64 {
        self.options.error * FIRST * (1.0 - FIRST).powi(round as i32 - 1)
    }

    fn end_group(&mut self) {
        let measured = std::mem::take(&mut self.current);
        match self.stage {
            TuningStage::Screen { round, group } => {
                self.add_differences(&measured);
                self.stage = TuningStage::Screen { round, group: group + 1 };
                self.continue_screening();
            }
            TuningStage::Confirm => {
                // Only whole pairs: a failed block leaves its partner without one.
                if let [first, second] = measured.as_slice() {
                    let mut pair = [first.log, second.log];
                    if first.request.on.contains(&true) {
                        pair.reverse();
                    }
                    self.pairs.push(pair);
                }
                self.continue_confirming();
            }
            TuningStage::Done(_) => {}
        }
    }

    fn add_differences(&mut self, measured: &[UsableBlock]) {
        let is_control = |block: &&UsableBlock| block.request.purpose == BlockPurpose::Control;
        let logs: Vec<f64> = measured.iter().filter(is_control).map(|block| block.log).collect();
        if logs.is_empty() {
            return;
        }
        let control_mean = mean(&logs);
        for block in measured.iter().filter(|block| !is_control(block)) {
            let tested = self.open.iter().find(|place| block.request.on[**place]);
            if let Some(place) = tested {
                self.differences[*place].push(block.log - control_mean);
            }
        }
    }

    /// The effects of the open settings in this round.
    fn estimate_effects(&self) -> Vec<Option<EffectEstimate>> {
        self.open.iter().map(|place| EffectEstimate::of_pairs(&self.differences[*place])).collect()
    }

    /// Stores the spread between blocks of the same settings, from that of the differences.
    fn store_spread(&mut self, found: &[Option<EffectEstimate>]) {
        let variances: Vec<f64> = found.iter().flatten().map(|of| of.variance).collect();
        if !variances.is_empty() {
            let of_difference = 1.0 + 1.0 / control_count(self.open.len()) as f64;
            self.spread = Some((mean(&variances) / of_difference).sqrt());
        }
    }

    fn begin_round(&mut self, round: u32) {
        self.differences = vec![Vec::new(); self.candidates.len()];
        self.stage = TuningStage::Screen { round, group: 0 };
        self.continue_screening();
    }

    /// When a round must end, for the last comparison and, after the first, for another round.
    fn end_of_round(&self, round: u32) -> Nanos {
        let time_limit = self.options.within.ns() as f64;
        let error = self.options.error;
        let blocks = self.spread.map(|spread| blocks_needed(&self.options, 1, error, spread));
        let needed = blocks.map(|blocks| blocks * self.block_time().ns() as f64);
        let kept = needed.unwrap_or(f64::INFINITY).min(LAST * time_limit);
        Nanos(((time_limit - kept) * if round == 1 { ROUND } else { 1.0 }) as i64)
    }

    /// The duration of this many groups of the open settings.
    fn group_time(&self, groups: usize) -> Nanos {
        let blocks = groups * group_size(self.open.len());
        Nanos(self.block_time().ns() * blocks as i64)
    }

    fn continue_screening(&mut self) {
        let TuningStage::Screen { round, group } = self.stage else { return };
        let found = self.estimate_effects();
        self.store_spread(&found);
        let error_per_test = self.error_share(round) / self.open.len().max(1) as f64;
        let is_resolved = |estimate: &Option<EffectEstimate>| {
            estimate.is_some_and(|of| of.can_resolve(self.options.smallest, error_per_test))
        };
        let is_over =
            self.open.is_empty() || self.elapsed + self.group_time(1) > self.end_of_round(round);
        if is_over || (group >= PAIRS && found.iter().all(is_resolved)) {
            return self.end_round(round, &found);
        }
        let request = |purpose, tested: Option<usize>| {
            let mut on = self.adopted.clone();
            tested.into_iter().for_each(|place| on[place] = true);
            BlockRequest { purpose, round, group, on }
        };
        let screened = self.open.iter().map(|place| request(BlockPurpose::Screen, Some(*place)));
        let control_blocks = std::iter::repeat_n(
            request(BlockPurpose::Control, None),
            control_count(self.open.len()),
        );
        let mut blocks: Vec<BlockRequest> = screened.chain(control_blocks).collect();
        shuffle_items(&mut blocks, &mut self.random);
        self.queue.extend(blocks);
    }

    fn end_round(&mut self, round: u32, found: &[Option<EffectEstimate>]) {
        let known_estimates: Vec<(usize, EffectEstimate)> =
            self.open.iter().zip(found).filter_map(|(place, e)| Some((*place, (*e)?))).collect();
        let adjusted =
            adjust_holm(&known_estimates.iter().map(|(_, e)| e.p_value()).collect::<Vec<f64>>());
        let mut adopts = false;
        for ((place, estimate), p_adjusted) in known_estimates.into_iter().zip(adjusted) {
            let share = self.error_share(round);
            let answer = if p_adjusted <= share && estimate.effect < 0.0 {
                TuneAnswer::Better
            } else if p_adjusted <= share && estimate.effect > 0.0 {
                TuneAnswer::Worse
            } else if estimate.is_none(self.options.smallest) {
                TuneAnswer::NoEffect
            } else {
                TuneAnswer::NotResolved
            };
            adopts |= answer == TuneAnswer::Better;
            self.adopted[place] |= answer == TuneAnswer::Better;
            self.screened[place] = Some(Screened { estimate, p_adjusted, answer, round, share });
        }
        let is_answered = |place: &usize| {
            let answer = self.screened[*place].as_ref().map(|screened| screened.answer);
            matches!(answer, Some(TuneAnswer::Better | TuneAnswer::Worse))
        };
        self.open.retain(|place| !is_answered(place));
        self.leave_out_excluded();
        if adopts && !self.open.is_empty() && self.has_time_for_a_round(round + 1) {
            self.begin_round(round + 1);
        } else if self.adopted.contains(&true) {
            self.stage = TuningStage::Confirm;
            self.continue_confirming();
        } else {
            self.stage = TuningStage::Done(self.end_of_rounds());
        }
    }

    /// Of two better settings that exclude each other, the one with the larger effect stays.
    /// Settings excluded by an adopted one are no longer tested.
    fn leave_out_excluded(&mut self) {
        let excludes = |one: usize, other: usize| {
            let exclusions_of = |place: usize| &self.candidates[place].excludes;
            exclusions_of(one).contains(&other) || exclusions_of(other).contains(&one)
        };
        let effect = |place: usize| self.screened[place].map_or(0.0, |of| of.estimate.effect);
        let mut best: Vec<usize> = (0..self.adopted.len()).filter(|k| self.adopted[*k]).collect();
        best.sort_by(|a, b| effect(*a).total_cmp(&effect(*b)));
        let mut kept: Vec<usize> = Vec::new();
        for place in best {
            if !kept.iter().any(|other| excludes(place, *other)) {
                kept.push(place);
            }
        }
        self.open.retain(|place| !kept.iter().any(|other| excludes(*place, *other)));
        self.adopted = (0..self.adopted.len()).map(|place| kept.contains(&place)).collect();
    }

    fn has_time_for_a_round(&self, round: u32) -> bool {
        self.elapsed + self.group_time(LEAST_GROUPS) < self.end_of_round(round)
    }

    fn continue_confirming(&mut self) {
        let compared = self.compare_set();
        let is_resolved =
            compared.is_some_and(|of| of.can_resolve(self.options.smallest, self.options.error));
        let pair = Nanos(2 * self.block_time().ns());
        let is_over = self.elapsed + pair > self.options.within;
        if is_over || (is_resolved && self.pairs.len() >= PAIRS) {
            self.stage = TuningStage::Done(self.end_of_rounds());
            return;
        }
        let group = self.pairs.len();
        let request = |on| BlockRequest { purpose: BlockPurpose::Confirm, round: 0, group, on };
        let mut pair = [vec![false; self.adopted.len()], self.adopted.clone()].map(request);
        shuffle_items(&mut pair, &mut self.random);
        self.queue.extend(pair);
    }

    /// The set against the untouched machine.
    pub(super) fn compare_set(&self) -> Option<EffectEstimate> {
        let differences: Vec<f64> =
            self.pairs.iter().map(|[without, with]| with - without).collect();
        EffectEstimate::of_pairs(&differences)
    }

    fn end_of_rounds(&self) -> TuningEnd {
        let is_open = |place: &usize| {
            !self.screened[*place].as_ref().is_some_and(|s| s.answer != TuneAnswer::NotResolved)
        };
        if self.open.iter().any(is_open) { TuningEnd::Time } else { TuningEnd::Complete }
    }
}

fn shuffle_items<T>(items: &mut [T], random: &mut Random) {
    for k in 0..items.len() {
        items.swap(k, k + random.next_below(items.len() - k));
    }
}
