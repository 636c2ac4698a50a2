//! The order of trials: a survey of all loads, sweeps beside it over its omissions (each parameter
//! once, each pair once), and, from the results so far, longer trials of the best (successive
//! halving) and changes of the best (local search).
//!
//! A batch has a fixed size and its results are taken in order, so a search is a function of its
//! space, its seed and the number of its batches, independent of concurrency. A longer search
//! begins with the shorter one.

use super::SplitMix64;
use super::archive::{Archive, ArchiveKey, TrialResults};
use super::space::{Input, MAX_LOADS, QUARTERS, Space};
use super::spec::Strategy;
use super::sweep::Sweep;
use std::collections::{HashMap, HashSet};

pub const BATCH: usize = 8;
/// Trials of a batch that continue the survey once much is known.
const SURVEYED: usize = 3;
/// Random trials of a batch, so that no input is left out because no rule expects it.
const DRAWN: usize = 2;
/// Trials of a batch for each sweep.
const SWEPT: usize = 1;
/// The number of batches for the survey alone.
const FIRST: usize = 2;
/// The reduction factor of the rungs: one trial of this many is tried for longer (Li et al.: A
/// system for massively parallel hyperparameter tuning, MLSys 2020).
const REDUCTION: usize = 4;
/// The number of causes whose longest inputs are changed.
const ALIVE: usize = 12;
/// One change of this many is a small change of a single input.
const MIXED_OF: usize = 4;
/// A trial showed a cause if its longest is at most this many times as long.
const SHOWED: u64 = 10;
/// Attempts to draw an unknown input.
const ATTEMPTS: usize = 32;

pub trait Trials {
    /// Why the search cannot continue.
    type Error;

    /// Runs a batch: its results in order; none, or only the first ones, if the time is over.
    ///
    /// # Errors
    /// Trials cannot be run at all. A failed trial is a result.
    fn run(&mut self, batch: &[Input]) -> Result<Option<Vec<TrialResults>>, Self::Error>;
}

/// Why an input was tried.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SearchStage {
    /// Every load once, some combined.
    Survey,
    /// The best inputs, for longer.
    Halving,
    /// Parameters and pairs in turn, independent of the results of their loads.
    Sweep,
    /// A change of the best inputs.
    Local,
    Random,
    /// Whether a smaller input shows the cause, too.
    Minimise,
}

/// A trial with its results.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tried {
    pub input: Input,
    pub stage: SearchStage,
    pub shown: TrialResults,
}

pub struct HuntSearch<'a> {
    space: &'a Space,
    random: SplitMix64,
    seed: u32,
    strategy: Strategy,
    /// Loads surveyed so far.
    surveyed: usize,
    sweep: Sweep,
    pub tried: Vec<Tried>,
    pub archive: Archive,
    known: HashMap<Input, usize>,
    promoted: HashSet<usize>,
    /// The trials of each load.
    with: HashMap<usize, Vec<usize>>,
    /// The number of changes tried per trial's input.
    changes: HashMap<usize, u64>,
}

impl<'a> HuntSearch<'a> {
    /// A new search.
    pub fn new(space: &'a Space, seed: u32, strategy: Strategy) -> HuntSearch<'a> {
        HuntSearch {
            space,
            random: SplitMix64::new(seed.into()),
            seed,
            strategy,
            surveyed: 0,
            sweep: Sweep::of(space),
            tried: Vec::new(),
            archive: Archive::default(),
            known: HashMap::new(),
            promoted: HashSet::new(),
            with: HashMap::new(),
            changes: HashMap::new(),
        }
    }

    /// Runs the next batch. Returns whether there was one: time or space may be used up.
    ///
    /// # Errors
    /// Those of [`Trials::run`].
    pub fn step<T: Trials>(&mut self, trials: &mut T) -> Result<bool, T::Error> {
        let batch = match self.strategy {
            Strategy::Search => self.batch(),
            Strategy::Random => (0..BATCH)
                .map(|_| (self.space.random(&mut self.random), SearchStage::Random))
                .collect(),
        };
        self.try_all(batch, trials)
    }

    /// Runs these and adds the results.
    ///
    /// # Errors
    /// Those of [`Trials::run`].
    pub(crate) fn try_all<T: Trials>(
        &mut self,
        batch: Vec<(Input, SearchStage)>,
        trials: &mut T,
    ) -> Result<bool, T::Error> {
        let inputs: Vec<Input> = batch.iter().map(|(input, _)| input.clone()).collect();
        if inputs.is_empty() {
            return Ok(false);
        }
        let Some(shown) = trials.run(&inputs)? else { return Ok(false) };
        let whole = shown.len() == inputs.len();
        for ((input, stage), shown) in batch.into_iter().zip(shown) {
            let number = self.tried.len();
            self.known.insert(input.clone(), number);
            self.archive.add(number, &shown);
            for part in &input.parts {
                self.with.entry(part.load).or_default().push(number);
            }
            self.tried.push(Tried { input, stage, shown });
        }
        Ok(whole)
    }

    /// The result of a trial of this input, if there was one.
    pub fn shown(&self, input: &Input) -> Option<&TrialResults> {
        self.known.get(input).map(|number| &self.tried[*number].shown)
    }

    fn batch(&mut self) -> Vec<(Input, SearchStage)> {
        let alone = if self.tried.len() < FIRST * BATCH { BATCH } else { SURVEYED };
        let mut batch: Vec<(Input, SearchStage)> = Vec::new();
        while batch.len() < alone && self.surveyed < self.space.loads.len() {
            let is_thorough = self.surveyed < self.space.thorough;
            let together = if is_thorough { 1 } else { MAX_LOADS };
            let end = (self.surveyed + together).min(self.space.loads.len());
            let mut input = Input::simple(self.surveyed..end, self.seed);
            if is_thorough {
                input.quarters = QUARTERS[1];
            }
            batch.push((self.space.whole(input), SearchStage::Survey));
            self.surveyed = end;
        }
        if self.tried.is_empty() {
            return batch;
        }
        let swept = [Sweep::parameters, Sweep::pairs];
        for sweep in swept.into_iter().cycle().take(swept.len() * SWEPT) {
            if batch.len() == BATCH {
                break;
            }
            let next = sweep(&mut self.sweep, self.space, self.surveyed);
            let next = next.map(|input| Input { seed: self.seed, ..input });
            if let Some(input) = next.filter(|input| self.is_new(input, &batch)) {
                batch.push((input, SearchStage::Sweep));
            }
        }
        for _ in batch.len()..BATCH.min(batch.len() + DRAWN) {
            let input = self.sweep.drawn(self.space, &mut self.random);
            if self.is_new(&input, &batch) {
                batch.push((input, SearchStage::Random));
            }
        }
        while batch.len() < BATCH {
            let longer = (batch.len() == BATCH - 1).then(|| self.longer(&batch)).flatten();
            let next = longer
                .map(|input| (input, SearchStage::Halving))
                .or_else(|| self.change(&batch).map(|input| (input, SearchStage::Local)));
            let Some(next) = next else { break };
            batch.push(next);
        }
        batch
    }

    fn is_new(&self, input: &Input, batch: &[(Input, SearchStage)]) -> bool {
        !self.known.contains_key(input) && batch.iter().all(|(other, _)| other != input)
    }

    /// The trials that showed the longest of each cause, longest causes first.
    fn alive(&self) -> Vec<usize> {
        let mut seen = HashSet::new();
        let ranked = self.archive.ranked().into_iter().map(|(_, _, trial)| trial);
        ranked.filter(|trial| seen.insert(*trial)).take(ALIVE).collect()
    }

    /// The best trial of a rung's best that was not tried for longer yet.
    fn longer(&mut self, batch: &[(Input, SearchStage)]) -> Option<Input> {
        let alive = self.alive();
        for rung in (1..QUARTERS.len()).rev() {
            let below = (0..self.tried.len())
                .filter(|trial| self.tried[*trial].input.quarters == QUARTERS[rung - 1]);
            let mut below: Vec<usize> = below.collect();
            below.sort_by_key(|trial| std::cmp::Reverse(self.tried[*trial].shown.longest()));
            let best = below.len() / REDUCTION;
            let candidates = below.into_iter().enumerate();
            let candidates =
                candidates.filter(|(place, trial)| *place < best || alive.contains(trial));
            for (_, trial) in candidates {
                let mut input = self.tried[trial].input.clone();
                input.quarters = QUARTERS[rung];
                if !self.promoted.contains(&trial) && self.is_new(&input, batch) {
                    self.promoted.insert(trial);
                    return Some(input);
                }
            }
        }
        None
    }

    /// Inputs derived from those that showed the longest of causes. A longer cause, or an input
    /// with fewer changes tried, is taken sooner: inputs long changed in vain make way. Most
    /// changes combine several inputs with all their parameters redrawn: each cause keeps its own
    /// longest, so that one trial informs about all of them.
    fn change(&mut self, batch: &[(Input, SearchStage)]) -> Option<Input> {
        for _ in 0..ATTEMPTS {
            let parents = self.parents();
            let (_, first) = parents.first()?;
            let input = match self.random.below(MIXED_OF) {
                0 => {
                    let inputs = parents.iter().map(|(_, trial)| &self.tried[*trial].input);
                    let inputs: Vec<&Input> = inputs.collect();
                    let first = &self.tried[*first].input;
                    self.space.changed(first, &inputs, &mut self.random)
                }
                _ => {
                    let loads: Vec<usize> =
                        parents.iter().map(|(key, trial)| self.culprit(key, *trial)).collect();
                    self.space.mixed(&loads, &mut self.random)
                }
            };
            if self.is_new(&input, batch) {
                return Some(input);
            }
        }
        None
    }

    /// The causes and trials whose changes are most promising.
    fn parents(&mut self) -> Vec<(ArchiveKey, usize)> {
        let mut all: Vec<_> = self.archive.ranked();
        all.sort_by_cached_key(|(_, length, trial)| {
            let changes = self.changes.get(trial).copied().unwrap_or(0);
            std::cmp::Reverse(length / (1 + changes))
        });
        let mut seen = HashSet::new();
        all.retain(|(_, _, trial)| seen.insert(*trial));
        let all: Vec<(ArchiveKey, usize)> =
            all.into_iter().take(MAX_LOADS).map(|(key, _, trial)| (key.clone(), trial)).collect();
        all.iter().for_each(|(_, trial)| *self.changes.entry(*trial).or_default() += 1);
        all
    }

    /// The load that probably produces a cause: most of the trials with it showed the cause.
    fn culprit(&mut self, key: &ArchiveKey, trial: usize) -> usize {
        let loads: Vec<usize> =
            self.tried[trial].input.parts.iter().map(|part| part.load).collect();
        if self.random.below(MIXED_OF) == 0 {
            return loads[self.random.below(loads.len())];
        }
        let longest = self.archive.best(key).map_or(0, |best| best.0);
        let share = |load: &usize| {
            let with: Vec<&Tried> = self.with[load].iter().map(|with| &self.tried[*with]).collect();
            let showed =
                with.iter().filter(|tried| tried.shown.of(key) * SHOWED >= longest).count();
            (showed * 1_000 / (with.len() + 1), std::cmp::Reverse(*load))
        };
        loads.iter().copied().max_by_key(share).unwrap_or(loads[0])
    }
}
