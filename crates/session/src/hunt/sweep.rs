//! What a survey leaves out, in turn: each parameter of each load, and each pair of the loads that
//! are surveyed thoroughly. A search that follows only what showed something never comes to a
//! parameter without which nothing shows, nor to two loads of which neither shows anything alone.

use super::random::Random;
use super::space::{Input, MAX_LOADS, Part, QUARTERS, Space};
use std::collections::{HashSet, VecDeque};

/// How far the sweeps have come.
pub struct Sweep {
    /// Loads with parameters that are left, those of the space's first loads first.
    parameters: VecDeque<(usize, usize)>,
    /// Pairs that were tried together.
    paired: HashSet<(usize, usize)>,
    /// Loads that are left of a round of drawn inputs.
    round: Vec<usize>,
}

impl Sweep {
    pub fn of(space: &Space) -> Sweep {
        let loads = space.loads.iter().enumerate();
        let parameters =
            loads.flat_map(|(load, choice)| (1..choice.parameters.len()).map(move |p| (load, p)));
        Sweep { parameters: parameters.collect(), paired: HashSet::new(), round: Vec::new() }
    }

    /// The next parameters of the loads that were surveyed, as many together as an input has loads.
    pub fn parameters(&mut self, space: &Space, surveyed: usize) -> Option<Input> {
        let known = self.parameters.iter().take_while(|(load, _)| *load < surveyed);
        let together = known.count().min(MAX_LOADS);
        let parts = self
            .parameters
            .drain(..together)
            .map(|(load, parameter)| Part { parameter, ..Part::simple(load) });
        input(space, parts.collect())
    }

    /// Loads of which no two were together, of those that were surveyed thoroughly: the first in
    /// the order of the space, and those that make the most new pairs.
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
        input(space, loads.into_iter().map(Part::simple).collect())
    }

    /// An input with everything about it drawn evenly; but every load is in one before any is in a
    /// second.
    pub fn drawn(&mut self, space: &Space, random: &mut Random) -> Input {
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

/// These together, for as long as a survey runs them.
fn input(space: &Space, parts: Vec<Part>) -> Option<Input> {
    let thorough = parts.iter().any(|part| part.load < space.thorough);
    let quarters = QUARTERS[usize::from(thorough)];
    (!parts.is_empty()).then(|| space.whole(Input { parts, seed: 1, quarters }))
}
