//! The results of trials: the longest of each cause and its trial.

use std::collections::BTreeMap;

/// A kind of length in a trial.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum LengthKind {
    /// The worst sample; its function is empty.
    Sample,
    /// A section with interrupts disabled, by its function.
    IrqsDisabled,
    /// The time from `need_resched` to the call of `__schedule`, of a sample or of any task, by the
    /// function with the largest share.
    NotPreempted,
    /// A section with preemption disabled, by its function.
    PreemptionDisabled,
}

pub type ArchiveKey = (LengthKind, String);

/// The results of a trial: the longest of each cause, in instructions.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct TrialResults {
    pub lengths: BTreeMap<ArchiveKey, u64>,
    /// The reason of a bad end.
    pub failure: Option<String>,
}

impl TrialResults {
    pub fn longest(&self) -> u64 {
        self.lengths.values().copied().max().unwrap_or(0)
    }

    /// The longest of a cause.
    pub fn of(&self, key: &ArchiveKey) -> u64 {
        self.lengths.get(key).copied().unwrap_or(0)
    }
}

/// The longest of each cause, and the trial that showed it first.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Archive {
    best: BTreeMap<ArchiveKey, (u64, usize)>,
}

impl Archive {
    /// Adds a trial's results. Returns whether it showed a new or longer cause.
    pub fn add(&mut self, trial: usize, shown: &TrialResults) -> bool {
        let mut gained = false;
        for (key, length) in &shown.lengths {
            let best = self.best.entry(key.clone()).or_default();
            if *length > best.0 {
                *best = (*length, trial);
                gained = true;
            }
        }
        gained
    }

    /// The causes, the longest first: length, trial.
    pub fn ranked(&self) -> Vec<(&ArchiveKey, u64, usize)> {
        let mut all: Vec<_> = self.best.iter().map(|(key, best)| (key, best.0, best.1)).collect();
        all.sort_by(|a, b| (b.1, a.0).cmp(&(a.1, b.0)));
        all
    }

    /// The longest of a cause and its trial.
    pub fn best(&self, key: &ArchiveKey) -> Option<(u64, usize)> {
        self.best.get(key).copied()
    }
}
