//! The procedure of a tuning, as a state that blocks are recorded into: an interrupted tuning is
//! restored by recording its blocks again. It queries neither clock nor machine.
//!
//! 1. Some blocks of the untouched machine: the spread of the figure.
//! 2. Screening, in groups of blocks ([`super::design`]), until each effect of the requested
//!    smallest size would be found, or the round's share of the time is over. Only the spread
//!    decides when a round ends, never an effect. Better settings are adopted, worse ones dropped,
//!    and the rest is screened again: the largest source of a tail hides others.
//! 3. All adopted settings together against the untouched machine, in pairs of new blocks: effects
//!    that were selected for being large are overestimated.
//!
//! The rounds share the error rate: 60 % of it for the first, and 60 % of the rest for each further
//! one, over all settings of a round by Holm's procedure.

use super::candidate::Candidate;
use super::design::{self, PlannedBlock, RoundTask, group, group_size, least_groups, mix};
use super::effect::{EffectRow, MISSED, Screened, estimates};
use super::repeats::{ATTEMPTS, Controls};
use super::request::{BlockPurpose, BlockRequest, MeasuredBlock, TuneStep, TuningOptions};
use super::{FIRST, PILOT, ROUND};
use crate::Random;
use crate::compare::multiple::holm;
use crate::dispersion::moments;
use crate::effect::EffectEstimate;
use crate::probability::normal_upper;
use punctual_bundle::tune::{TuneAnswer, TuningEnd};
use punctual_core::Nanos;
use std::collections::VecDeque;

/// The minimum number of block pairs for comparing a set with the untouched machine.
pub(super) const PAIRS: usize = 6;
/// The maximum share of the time reserved for the last comparison.
pub(super) const LAST: f64 = 0.3;
/// The maximum number of tries of a failing block.
const TRIES: u32 = 3;
/// The number of blocks that may fail in addition to a third of all.
const FAILURES: u64 = 6;

#[derive(Clone, Debug)]
enum TuningStage {
    Pilot,
    Screen { round: u32, group: usize, attempt: u32, until: Nanos },
    Confirm,
    Done(TuningEnd),
}

/// A usable block.
#[derive(Clone, Debug)]
struct UsableBlock {
    request: BlockRequest,
    /// The logarithm of its figure.
    log: f64,
    throughput: Option<f64>,
}

impl UsableBlock {
    fn row(self, group: usize) -> EffectRow {
        EffectRow { group, on: self.request.on, log: self.log }
    }
}

/// A tuning.
#[derive(Clone, Debug)]
pub struct Tuning {
    pub(super) candidates: Vec<Candidate>,
    pub(super) options: TuningOptions,
    stage: TuningStage,
    queue: VecDeque<BlockRequest>,
    /// The blocks of the current group.
    current: Vec<UsableBlock>,
    tries: u32,
    /// The rows of the round, or of the last comparison.
    rows: Vec<EffectRow>,
    /// The number of rows when effects were last computed.
    computed: usize,
    controls: Controls,
    pub(super) spread: Option<f64>,
    pub(super) adopted: Vec<bool>,
    open: Vec<usize>,
    pub(super) screened: Vec<Option<Screened>>,
    pub(super) pairs: Vec<EffectRow>,
    /// The logarithms of the throughput of the same pairs, if both blocks have one.
    pub(super) throughputs: Vec<EffectRow>,
    pub(super) used: u64,
    pub(super) failed: u64,
    pub(super) repeated: u64,
    pub(super) elapsed: Nanos,
}

impl Tuning {
    /// A tuning of these candidates; its first block is the next step.
    pub fn new(candidates: Vec<Candidate>, options: TuningOptions) -> Tuning {
        let count = candidates.len();
        let mut tuning = Tuning {
            candidates,
            options,
            stage: TuningStage::Pilot,
            queue: VecDeque::new(),
            current: Vec::new(),
            tries: 0,
            rows: Vec::new(),
            computed: 0,
            controls: Controls::default(),
            spread: None,
            adopted: vec![false; count],
            open: (0..count).collect(),
            screened: vec![None; count],
            pairs: Vec::new(),
            throughputs: Vec::new(),
            used: 0,
            failed: 0,
            repeated: 0,
            elapsed: Nanos::ZERO,
        };
        let pilot = tuning.request(BlockPurpose::Pilot, 0, 0, vec![false; count]);
        tuning.queue.extend(std::iter::repeat_n(pilot, PILOT));
        if count == 0 {
            tuning.stage = TuningStage::Done(TuningEnd::Complete);
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

    pub fn ended(&self) -> TuningEnd {
        if let TuneStep::Done(end) = self.next() { end } else { TuningEnd::Time }
    }

    /// Records the outcome of the block that was the next step.
    pub fn record(&mut self, block: MeasuredBlock) {
        self.elapsed = self.elapsed.max(block.elapsed);
        let Some(request) = self.queue.pop_front() else { return };
        match block.figure.filter(|figure| figure.is_finite()) {
            Some(figure) => {
                self.used += 1;
                self.tries = 0;
                let log = figure.max(1.0).ln();
                self.current.push(UsableBlock { request, log, throughput: block.throughput });
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
        if self.queue.is_empty() && !matches!(self.stage, TuningStage::Done(_)) {
            self.end_group();
        }
    }

    /// The duration of a block including its preparation, as far as known.
    pub(crate) fn block_time(&self) -> Nanos {
        let measured = (self.used + self.failed) as i64;
        if measured == 0 { self.options.block } else { Nanos(self.elapsed.ns() / measured) }
    }

    fn request(
        &self,
        purpose: BlockPurpose,
        round: u32,
        group: usize,
        on: Vec<bool>,
    ) -> BlockRequest {
        BlockRequest { purpose, round, group, on }
    }

    fn share(&self, round: u32) -> f64 {
        self.options.error * FIRST * (1.0 - FIRST).powi(round as i32 - 1)
    }

    fn pairs_needed(&self, spread: f64) -> f64 {
        let z = normal_upper(0.025) + normal_upper(MISSED);
        (2.0 * (z * spread / self.options.smallest.ln()).powi(2)).max(PAIRS as f64)
    }

    fn end_group(&mut self) {
        let measured = std::mem::take(&mut self.current);
        match self.stage {
            TuningStage::Pilot => {
                let logs: Vec<f64> = measured.iter().map(|block| block.log).collect();
                self.spread = moments(&logs).map(|(_, variance)| variance.sqrt());
                logs.chunks_exact(2).for_each(|pair| {
                    self.controls.drifted(pair[1] - pair[0]);
                });
                self.begin_round(1);
            }
            TuningStage::Screen { round, group, attempt, until } => {
                if attempt < ATTEMPTS && self.has_drifted(&measured) {
                    self.repeated += measured.len() as u64;
                    self.used -= measured.len() as u64;
                    self.stage = TuningStage::Screen { round, group, attempt: attempt + 1, until };
                } else {
                    self.rows.extend(measured.into_iter().map(|block| block.row(group)));
                    self.stage = TuningStage::Screen { round, group: group + 1, attempt: 0, until };
                }
                self.go_on_screening();
            }
            TuningStage::Confirm => {
                // Only whole pairs: a failed block leaves its partner without one.
                if let [_, _] = measured.as_slice() {
                    let group = self.pairs.len();
                    let is_known = |of: &f64| of.is_finite() && *of > 0.0;
                    let row = |block: &UsableBlock| {
                        let log = block.throughput.filter(is_known)?.ln();
                        Some(EffectRow { log, ..block.clone().row(group) })
                    };
                    let rows: Option<Vec<EffectRow>> = measured.iter().map(row).collect();
                    self.throughputs.extend(rows.into_iter().flatten());
                    self.pairs.extend(measured.into_iter().map(|block| block.row(group)));
                }
                self.go_on_confirming();
            }
            TuningStage::Done(_) => {}
        }
    }

    fn has_drifted(&mut self, measured: &[UsableBlock]) -> bool {
        let mut controls =
            measured.iter().filter(|block| block.request.purpose == BlockPurpose::Control);
        match (controls.next(), controls.next()) {
            (Some(first), Some(second)) => self.controls.drifted(second.log - first.log),
            _ => false,
        }
    }

    fn begin_round(&mut self, round: u32) {
        self.rows.clear();
        self.computed = 0;
        let part = if round == 1 { ROUND } else { 1.0 };
        let left = self.left_for_screening().ns() as f64;
        let until = self.elapsed + Nanos((left * part) as i64);
        self.stage = TuningStage::Screen { round, group: 0, attempt: 0, until };
        self.go_on_screening();
    }

    /// The time until the last comparison must begin.
    fn left_for_screening(&self) -> Nanos {
        let pairs = self.pairs_needed(self.spread.unwrap_or(0.0));
        let needed = 2.0 * pairs * (self.block_time() + self.options.cost).ns() as f64;
        let kept = needed.min(LAST * self.options.within.ns() as f64);
        self.options.within - self.elapsed - Nanos(kept as i64)
    }

    fn go_on_screening(&mut self) {
        let TuningStage::Screen { round, group: number, attempt, until } = self.stage else {
            return;
        };
        let size = group_size(self.options.design, self.open.len());
        let least = least_groups(self.options.design, self.open.len());
        let is_over = self.open.is_empty()
            || self.elapsed + Nanos(self.block_time().ns() * size as i64) > until;
        // Effects are recomputed after a twentieth more rows, not for each group.
        if is_over || self.rows.len() * 20 >= self.computed * 21 {
            self.computed = self.rows.len();
            let (found, spread) = estimates(&self.rows, &self.open);
            if self.rows.len() > 2 * size {
                self.spread = spread.or(self.spread);
            }
            let each = self.share(round) / self.open.len().max(1) as f64;
            let is_resolved = |estimate: &Option<EffectEstimate>| {
                estimate.is_some_and(|e| e.resolves(self.options.smallest, each))
            };
            if is_over || (number >= least && found.iter().all(is_resolved)) {
                return self.end_round(round, &found);
            }
        }
        let asked = RoundTask {
            candidates: &self.candidates,
            open: &self.open,
            base: &self.adopted,
            seed: mix(&[self.options.seed, u64::from(round)]),
        };
        let planned = group(self.options.design, &asked, number, attempt);
        let requests: Vec<BlockRequest> = planned
            .into_iter()
            .map(|PlannedBlock { on, is_control }| {
                let purpose = if is_control { BlockPurpose::Control } else { BlockPurpose::Screen };
                self.request(purpose, round, number, on)
            })
            .collect();
        self.queue.extend(requests);
    }

    fn end_round(&mut self, round: u32, found: &[Option<EffectEstimate>]) {
        let known: Vec<(usize, EffectEstimate)> =
            self.open.iter().zip(found).filter_map(|(place, e)| Some((*place, (*e)?))).collect();
        let adjusted = holm(&known.iter().map(|(_, e)| e.p()).collect::<Vec<f64>>());
        let mut adopts = false;
        for ((place, estimate), p_adjusted) in known.into_iter().zip(adjusted) {
            let share = self.share(round);
            let answer = if p_adjusted <= share && estimate.effect < 0.0 {
                TuneAnswer::Better
            } else if p_adjusted <= share && estimate.effect > 0.0 {
                TuneAnswer::Worse
            } else if estimate.is_none(self.options.margin) {
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
        if adopts && !self.open.is_empty() && self.has_time_for_a_round() {
            self.begin_round(round + 1);
        } else if self.adopted.contains(&true) {
            self.stage = TuningStage::Confirm;
            self.go_on_confirming();
        } else {
            self.stage = TuningStage::Done(self.end());
        }
    }

    /// Settings excluded by an adopted one are no longer tested.
    fn leave_out_excluded(&mut self) {
        let (candidates, adopted) = (&self.candidates, &self.adopted);
        let conflicts = |place: usize| {
            let excludes = |one: usize, other: usize| candidates[one].excludes.contains(&other);
            (0..adopted.len())
                .any(|other| adopted[other] && (excludes(place, other) || excludes(other, place)))
        };
        self.open.retain(|place| !conflicts(*place));
    }

    /// Three groups show hardly anything: fewer make no round.
    fn has_time_for_a_round(&self) -> bool {
        let size = 3 * group_size(self.options.design, self.open.len()) as i64;
        self.left_for_screening() > Nanos(self.block_time().ns() * size)
    }

    fn go_on_confirming(&mut self) {
        let compared = self.of_set();
        let is_resolved =
            compared.is_some_and(|e| e.resolves(self.options.smallest, self.options.error));
        let pair = Nanos(2 * (self.block_time() + self.options.cost).ns());
        let is_over = self.elapsed + pair > self.options.within;
        if is_over || (is_resolved && self.pairs.len() >= 2 * PAIRS) {
            self.stage = TuningStage::Done(self.end());
            return;
        }
        let number = self.pairs.len();
        let mut random = Random::seeded(mix(&[self.options.seed, 3, number as u64]));
        let mut pair = [vec![false; self.adopted.len()], self.adopted.clone()];
        design::shuffle(&mut pair, &mut random);
        for on in pair {
            self.queue.push_back(self.request(BlockPurpose::Confirm, 0, number, on));
        }
    }

    /// The set against the untouched machine.
    pub(super) fn of_set(&self) -> Option<EffectEstimate> {
        of_pairs(&self.pairs)
    }

    fn end(&self) -> TuningEnd {
        let is_open = |place: &usize| {
            !self.screened[*place].as_ref().is_some_and(|s| s.answer != TuneAnswer::NotResolved)
        };
        if self.open.iter().any(is_open) { TuningEnd::Time } else { TuningEnd::Complete }
    }
}

/// The set against the untouched machine, from blocks in pairs.
pub(super) fn of_pairs(pairs: &[EffectRow]) -> Option<EffectEstimate> {
    let is_set = |row: &EffectRow| EffectRow { on: vec![row.on.contains(&true)], ..row.clone() };
    let rows: Vec<EffectRow> = pairs.iter().map(is_set).collect();
    *estimates(&rows, &[0]).0.first()?
}
