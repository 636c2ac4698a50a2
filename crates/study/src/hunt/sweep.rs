//! Sweeps over the survey's omissions: each parameter of each load, and each pair of the thoroughly
//! surveyed loads. A search that follows only positive results never reaches a parameter without
//! which nothing shows, nor two loads that show nothing alone.

use super::SplitMix64;
use super::space::{Input, InputLoad, MAX_LOADS, QUARTERS, Space};
use std::collections::{HashSet, VecDeque};

/// The progress of the sweeps.
pub struct Sweep {
    /// The remaining parameters of loads, in the order of the space.
    parameters: VecDeque<(usize, usize)>,
    /// Pairs that were tried together.
    paired: HashSet<(usize, usize)>,
    /// The remaining loads of a round of random inputs.
    round: Vec<usize>,
}

impl Sweep {
    pub fn of(space: &Space) -> Sweep {
        let loads = space.loads.iter().enumerate();
        let parameters =
            loads.flat_map(|(load, choice)| (1..choice.parameters.len()).map(move |p| (load, p)));
        Sweep { parameters: parameters.collect(), paired: HashSet::new(), round: Vec::new() }
    }

    /// The next parameters of surveyed loads, as many together as an input has loads.
    pub fn parameters(&mut self, space: &Space, surveyed: usize) -> Option<Input> {
        let known = self.parameters.iter().take_while(|(load, _)| *load < surveyed);
        let together = known.count().min(MAX_LOADS);
        let parts = self
            .parameters
            .drain(..together)
            .map(|(load, parameter)| InputLoad { parameter, ..InputLoad::simple(load) });
        input(space, parts.collect())
    }

    /// Thoroughly surveyed loads that were not paired yet: the first in the order of the space, and
    /// those that make the most new pairs.
    pub fn pairs(&mut self, space: &Space, surveyed: usize) -> Option<Input> {
        let end = space.thorough.min(surveyed);
        let pairs = (0..end).flat_map(|second| (0..second).map(move |first| (first, second)));
        let (first, second) = pairs.into_iter().find(|pair| !self.paired.contains(pair))?;
        let mut loads = vec![first, second];
        while loads.len() < MAX_LOADS {
            let new = |load: &usize| {
                let pair = |other: &usize| (*load.min(other), *load.max(other));
                loads.iter().filter(|other| !self.paired.contains(&pair(other))).count()
            };
            let others = (0..end).filter(|load| !loads.contains(load));
            match others.max_by_key(|load| (new(load), std::cmp::Reverse(*load))) {
                Some(load) if new(&load) > 0 => loads.push(load),
                _ => break,
            }
        }
        loads.sort_unstable();
        for (place, first) in loads.iter().enumerate() {
            self.paired.extend(loads[place + 1..].iter().map(|second| (*first, *second)));
        }
        input(space, loads.into_iter().map(InputLoad::simple).collect())
    }

    /// An input with uniformly drawn settings; but every load is in one before any is in a second.
    pub fn drawn(&mut self, space: &Space, random: &mut SplitMix64) -> Input {
        let loads: Vec<usize> = (0..1 + random.below(MAX_LOADS))
            .map(|_| {
                if self.round.is_empty() {
                    self.round = (0..space.loads.len()).collect();
                }
                self.round.swap_remove(random.below(self.round.len()))
            })
            .collect();
        space.mixed(&loads, random)
    }
}

/// The input of these loads together, for as long as a survey runs them.
fn input(space: &Space, parts: Vec<InputLoad>) -> Option<Input> {
    let thorough = parts.iter().any(|part| part.load < space.thorough);
    let quarters = QUARTERS[usize::from(thorough)];
    (!parts.is_empty()).then(|| space.whole(Input { parts, seed: 1, quarters }))
}
