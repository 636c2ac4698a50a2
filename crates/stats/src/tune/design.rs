//! The settings of each block. Blocks come in consecutive groups; drift from group to group goes
//! into the groups' levels, not into the effects. Two blocks of each group, one in either half,
//! have none of the tested settings: the controls.
//!
//! One at a time, a group has each setting alone. Factorial, half of the settings are on in each
//! block: four rows of a Hadamard matrix (Sylvester's) and their complements. All blocks then
//! contribute to every setting: with k settings, each is known as well as from (k + 2)/4 times the
//! blocks of one at a time. The complements keep effects apart from the joint effects of any two (a
//! fold-over: Box and Wilson, J. Royal Statist. Soc. B 13, 1951), and each setting is on in half of
//! each group.

use super::candidate::Candidate;
use crate::Random;

/// The combination of settings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Design {
    OneAtATime,
    /// Half of the settings in each block.
    Factorial,
}

/// The number of matrix rows per group.
const ROWS: usize = 4;
/// The number of blocks per group without any tested setting.
pub(crate) const CONTROLS: usize = 2;
/// The minimum order of the matrix: four rows and their complements, twice.
const LEAST_ORDER: usize = 8;

/// A block to be measured: its settings, and whether it is a control.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlannedBlock {
    /// For each candidate, whether it is set.
    pub on: Vec<bool>,
    /// Whether it has none of the tested settings.
    pub is_control: bool,
}

/// The task of a round.
#[derive(Clone, Copy, Debug)]
pub struct RoundTask<'a> {
    pub candidates: &'a [Candidate],
    /// The indices of the tested settings.
    pub open: &'a [usize],
    pub base: &'a [bool],
    /// The seed of this tuning and round: the same seed gives the same blocks.
    pub seed: u64,
}

/// The number of blocks per group.
pub(crate) fn group_size(design: Design, open: usize) -> usize {
    CONTROLS
        + match design {
            Design::OneAtATime => open,
            Design::Factorial if open == 1 => 4,
            Design::Factorial => 2 * ROWS,
        }
}

/// The minimum number of groups to separate effects and estimate their error: one full use of the
/// matrix.
pub(crate) fn least_groups(design: Design, open: usize) -> usize {
    match design {
        Design::Factorial if open > 1 => order(open) / ROWS,
        _ => 3,
    }
}

fn order(open: usize) -> usize {
    (open + 1).next_power_of_two().max(LEAST_ORDER)
}

/// The blocks of a group in order. Another `attempt` changes the order.
pub fn group(design: Design, asked: &RoundTask, number: usize, attempt: u32) -> Vec<PlannedBlock> {
    let mut random = Random::seeded(mix(&[asked.seed, 1, number as u64, u64::from(attempt)]));
    let mut rows = match design {
        Design::OneAtATime => alone(asked),
        Design::Factorial => combined(asked, number, &mut random),
    };
    shuffle(&mut rows, &mut random);
    let half = rows.len() / 2;
    let first = random.below(half + 1);
    let second = half + random.below(rows.len() - half + 1);
    let control = || PlannedBlock { on: asked.base.to_vec(), is_control: true };
    rows.insert(second, control());
    rows.insert(first, control());
    rows
}

fn with(asked: &RoundTask, on: impl Iterator<Item = usize>) -> Vec<bool> {
    let mut set = asked.base.to_vec();
    on.for_each(|place| set[place] = true);
    set
}

fn alone(asked: &RoundTask) -> Vec<PlannedBlock> {
    let row = |place: usize| {
        let requires = asked.candidates[place].requires.iter().copied();
        PlannedBlock { on: with(asked, requires.chain([place])), is_control: false }
    };
    asked.open.iter().map(|place| row(*place)).collect()
}

fn combined(asked: &RoundTask, number: usize, random: &mut Random) -> Vec<PlannedBlock> {
    // One setting needs no matrix: it is on in half of the blocks.
    if let [only] = asked.open {
        let row = |on: bool| PlannedBlock {
            on: with(asked, on.then_some(*only).into_iter()),
            is_control: false,
        };
        return [true, true, true, false].map(row).into();
    }
    let order = order(asked.open.len());
    let groups = order / ROWS;
    // One use of the matrix: its columns and rows in a random order, some columns inverted.
    let mut use_of = Random::seeded(mix(&[asked.seed, 2, (number / groups) as u64]));
    let mut columns: Vec<usize> = (1..order).collect();
    shuffle(&mut columns, &mut use_of);
    let turned: Vec<bool> = (0..order).map(|_| use_of.below(2) == 1).collect();
    let mut rows: Vec<usize> = (0..order).collect();
    shuffle(&mut rows, &mut use_of);
    let at = number % groups * ROWS;
    let mut planned = Vec::new();
    for row in &rows[at..at + ROWS] {
        for complement in [false, true] {
            let is_on = |place: &usize| {
                ((row & columns[*place]).count_ones() % 2 == 1) ^ turned[*place] ^ complement
            };
            let on = (0..asked.open.len()).filter(is_on).map(|place| asked.open[place]);
            let mut on = with(asked, on);
            admit(asked, &mut on, random);
            planned.push(PlannedBlock { on, is_control: false });
        }
    }
    planned
}

/// Makes a combination valid: removes one of two settings that exclude each other, and settings
/// that lack a required one.
fn admit(asked: &RoundTask, on: &mut [bool], random: &mut Random) {
    for place in asked.open {
        for other in &asked.candidates[*place].excludes {
            if on[*place] && on[*other] {
                let keeps_other = !asked.open.contains(other) || random.below(2) == 1;
                on[if keeps_other { *place } else { *other }] = false;
            }
        }
    }
    // A removed setting may be required by another: repeats as often as there are settings.
    for _ in asked.open {
        for place in asked.open {
            let lacks = asked.candidates[*place].requires.iter().any(|other| !on[*other]);
            on[*place] &= !lacks;
        }
    }
}

pub(super) fn shuffle<T>(items: &mut [T], random: &mut Random) {
    for k in 0..items.len() {
        items.swap(k, k + random.below(items.len() - k));
    }
}

/// Combines several numbers to a seed (the finalizer of SplitMix64: Steele, Lea and Flood, OOPSLA
/// 2014).
pub(super) fn mix(parts: &[u64]) -> u64 {
    parts.iter().fold(0, |seed: u64, part| {
        let mut z = (seed ^ part).wrapping_add(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    })
}
