//! The inputs of a search: loads with their parameters, alone and together, at other times, with
//! other seeds, for longer.

use super::SplitMix64;

pub(crate) const MAX_LOADS: usize = 3;
const INSTANCES: [u32; 4] = [1, 2, 4, 8];
/// How long a load runs before it is killed and restarted, in ms; 0: as long as the trial. Only
/// restarts show the activity at the end of a process.
pub(crate) const LIVES_MS: [u32; 3] = [0, 100, 400];
/// Durations of a trial in quarters of the requested one: one for each rung of the halving.
pub(crate) const QUARTERS: [u32; 3] = [1, 4, 8];

/// A load that may be tried.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LoadChoice {
    /// The name of a stressor, or of a load of the hunt file.
    pub name: String,
    /// Additional words of the command. The first is always empty.
    pub parameters: Vec<String>,
    /// The command; `None` for a stressor of stress-ng, which takes a number of instances.
    pub command: Option<String>,
}

/// All possible inputs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Space {
    /// The loads, in the order in which they are first tried.
    pub loads: Vec<LoadChoice>,
    /// The number of first loads surveyed one by one, for the whole duration: those that need
    /// memory or a rare moment show little in a quarter of it, beside others.
    pub thorough: usize,
    /// The choices of [`InputLoad::lives_ms`], the first of which is 0.
    pub lives_ms: &'static [u32],
    /// The maximum start delay of a load in µs: the period of the timer, or 1 ms.
    pub shift_us: u32,
}

/// A load of an input.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct InputLoad {
    /// The index of the load in the space.
    pub load: usize,
    /// The index of its parameter.
    pub parameter: usize,
    pub instances: u32,
    /// The start delay, in µs: the load's phase against the timer.
    pub delay_us: u32,
    /// See [`LIVES_MS`].
    pub lives_ms: u32,
}

/// The input of one trial.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Input {
    /// The loads, at least one.
    pub parts: Vec<InputLoad>,
    /// The seed of the loads and of the timer.
    pub seed: u32,
    /// The duration, in quarters of the requested one.
    pub quarters: u32,
}

impl InputLoad {
    /// A load with the simplest settings.
    pub fn simple(load: usize) -> InputLoad {
        InputLoad { load, instances: 1, parameter: 0, delay_us: 0, lives_ms: 0 }
    }
}

impl Input {
    /// Loads together, each with the simplest settings.
    pub fn simple(loads: std::ops::Range<usize>, seed: u32) -> Input {
        Input { parts: loads.map(InputLoad::simple).collect(), seed, quarters: QUARTERS[0] }
    }
}

impl Space {
    /// Any input, each part drawn uniformly: the reference for a search.
    pub fn random(&self, random: &mut SplitMix64) -> Input {
        let parts = (0..1 + random.below(MAX_LOADS)).map(|_| self.random_part(random)).collect();
        let quarters = QUARTERS[random.below(QUARTERS.len())];
        self.whole(Input { parts, seed: random.below(1 << 16) as u32 + 1, quarters })
    }

    fn random_part(&self, random: &mut SplitMix64) -> InputLoad {
        let load = random.below(self.loads.len());
        self.drawn(load, random)
    }

    /// A load with all settings drawn uniformly.
    fn drawn(&self, load: usize, random: &mut SplitMix64) -> InputLoad {
        let stressor = self.loads[load].command.is_none();
        InputLoad {
            load,
            instances: if stressor { INSTANCES[random.below(INSTANCES.len())] } else { 1 },
            parameter: random.below(self.loads[load].parameters.len()),
            delay_us: random.below(self.shift_us as usize + 1) as u32,
            lives_ms: self.lives(random),
        }
    }

    fn lives(&self, random: &mut SplitMix64) -> u32 {
        match self.lives_ms.len() {
            0 | 1 => 0,
            some => self.lives_ms[random.below(some)],
        }
    }

    /// These loads together, with all settings redrawn.
    pub fn mixed(&self, loads: &[usize], random: &mut SplitMix64) -> Input {
        let parts = loads.iter().take(MAX_LOADS).map(|load| self.drawn(*load, random)).collect();
        let quarters = QUARTERS[random.below(QUARTERS.len())];
        self.whole(Input { parts, seed: random.below(1 << 16) as u32 + 1, quarters })
    }

    /// An input with one change. `others` are inputs whose loads are worth combining with it.
    pub fn changed(&self, input: &Input, others: &[&Input], random: &mut SplitMix64) -> Input {
        let mut changed = input.clone();
        let which = random.below(changed.parts.len());
        let part = &mut changed.parts[which];
        let choice = &self.loads[part.load];
        match random.below(8) {
            0 | 1 if choice.parameters.len() > 1 => {
                part.parameter = random.below(choice.parameters.len());
            }
            2 if choice.command.is_none() => {
                part.instances = INSTANCES[random.below(INSTANCES.len())];
            }
            3 if self.lives_ms.len() > 1 && random.below(2) == 0 => {
                part.lives_ms = self.lives(random);
            }
            3 => part.delay_us = random.below(self.shift_us as usize + 1) as u32,
            4 => changed.quarters = QUARTERS[random.below(QUARTERS.len())],
            5 if changed.parts.len() > 1 => drop(changed.parts.remove(which)),
            6 | 7 if changed.parts.len() < MAX_LOADS => {
                let beside = match others.len() {
                    0 => self.random_part(random),
                    many => {
                        let other = &others[random.below(many)].parts;
                        other[random.below(other.len())].clone()
                    }
                };
                changed.parts.push(beside);
            }
            _ => changed.seed = random.below(1 << 16) as u32 + 1,
        }
        self.whole(changed)
    }

    /// The canonical form of an input: the loads in order, each once with a parameter.
    pub fn whole(&self, mut input: Input) -> Input {
        input.parts.sort();
        input.parts.dedup_by_key(|part| (part.load, part.parameter));
        input
    }
}
