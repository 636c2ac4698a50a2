//! The smallest input that still shows a cause, by delta debugging (Zeller, Hildebrandt:
//! Simplifying and isolating failure-inducing input, IEEE TSE 2002): the simpler neighbours of an
//! input are tried together, the simplest that still shows it replaces it, until none does.

use super::archive::{ArchiveKey, TrialResults};
use super::search::{HuntSearch, SearchStage, Trials};
use super::space::{Input, InputLoad};

/// The percentage of the longest that a smaller input must show.
pub(crate) const SHOWS_PERCENT: u64 = 90;

/// Whether the results contain enough of a length.
pub fn shows(shown: &TrialResults, key: &ArchiveKey, length: u64) -> bool {
    u128::from(shown.of(key)) * 100 >= u128::from(length) * u128::from(SHOWS_PERCENT)
}

/// An input with something removed, the simplest first: one load alone, one load less, no
/// parameter, fewer instances, no end, no delay, a shorter run.
pub(crate) fn simpler(input: &Input) -> Vec<Input> {
    let mut all = Vec::new();
    let parts = &input.parts;
    if parts.len() > 2 {
        all.extend(parts.iter().map(|part| Input { parts: vec![part.clone()], ..input.clone() }));
    }
    if parts.len() > 1 {
        all.extend((0..parts.len()).map(|gone| {
            let mut less = input.clone();
            less.parts.remove(gone);
            less
        }));
    }
    for (place, part) in parts.iter().enumerate() {
        let mut with = |change: &dyn Fn(&mut InputLoad)| {
            let mut less = input.clone();
            change(&mut less.parts[place]);
            all.push(less);
        };
        if part.parameter != 0 {
            with(&|part| part.parameter = 0);
        }
        if part.instances > 1 {
            with(&|part| part.instances = 1);
        }
        if part.instances > 2 {
            with(&|part| part.instances /= 2);
        }
        if part.lives_ms != 0 {
            with(&|part| part.lives_ms = 0);
        }
        if part.delay_us != 0 {
            with(&|part| part.delay_us = 0);
        }
    }
    if input.quarters > 1 {
        all.push(Input { quarters: 1, ..input.clone() });
    }
    if input.quarters > 2 {
        all.push(Input { quarters: input.quarters / 2, ..input.clone() });
    }
    all
}

/// The smallest input that shows a cause, and its length. If the time is over, the smallest so far;
/// then the last is `false`.
///
/// # Errors
/// Those of [`Trials::run`].
pub(crate) fn minimise<T: Trials>(
    search: &mut HuntSearch,
    key: &ArchiveKey,
    trials: &mut T,
) -> Result<Option<(Input, u64, bool)>, T::Error> {
    let Some((length, trial)) = search.archive.best(key) else { return Ok(None) };
    let mut least = search.tried[trial].input.clone();
    let mut left = length;
    loop {
        let candidates = simpler(&least);
        let new = candidates.iter().filter(|input| search.shown(input).is_none());
        let batch: Vec<_> = new.map(|input| (input.clone(), SearchStage::Minimise)).collect();
        let over = !batch.is_empty() && !search.try_all(batch, trials)?;
        let still = |input: &&Input| search.shown(input).is_some_and(|s| shows(s, key, length));
        match candidates.iter().find(still) {
            Some(input) => {
                left = search.shown(input).map_or(0, |shown| shown.of(key));
                least = input.clone();
            }
            None => return Ok(Some((least, left, !over))),
        }
        if over {
            return Ok(Some((least, left, false)));
        }
    }
}
