//! What can be tried.

use punctual_core::Nanos;

/// What a setting may do besides what it is for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Risk {
    /// Other work may become slower, nothing else.
    Low,
    /// Power, temperature, or the work of other programs change much.
    Medium,
    /// It takes a protection away: tried only where it is named.
    High,
}

impl Risk {
    pub fn word(self) -> &'static str {
        match self {
            Risk::Low => "low",
            Risk::Medium => "medium",
            Risk::High => "high",
        }
    }
}

/// A setting with the value that is tried against the one that the machine has.
#[derive(Clone, PartialEq, Debug)]
pub struct Candidate {
    /// Its name, as `--only` takes it.
    pub name: String,
    /// The value that is tried, in words.
    pub value: String,
    /// What it may do besides.
    pub risk: Risk,
    /// How long it takes to switch it.
    pub switch: Nanos,
    /// How long after a switch blocks do not count yet, as its effect comes or goes slowly.
    pub wash_out: Nanos,
    /// Others, by their places, that it cannot be combined with.
    pub excludes: Vec<usize>,
    /// Others, by their places, without which it does nothing.
    pub requires: Vec<usize>,
    /// Whether it is tried only where `--only` names it.
    pub only_named: bool,
}

impl Candidate {
    /// One that can be changed at run time, at once, by itself.
    pub fn new(name: &str) -> Candidate {
        Candidate {
            name: name.to_owned(),
            value: String::new(),
            risk: Risk::Low,
            switch: Nanos::ZERO,
            wash_out: Nanos::ZERO,
            excludes: Vec::new(),
            requires: Vec::new(),
            only_named: false,
        }
    }
}

/// How long it takes until a block with `next` counts where `now` is set: the switches one after
/// the other, then the longest wash-out among them.
pub fn settling(candidates: &[Candidate], now: &[bool], next: &[bool]) -> Nanos {
    let switched =
        || candidates.iter().zip(now.iter().zip(next)).filter(|(_, (a, b))| a != b).map(|(c, _)| c);
    let switches = switched().fold(Nanos::ZERO, |sum, c| sum + c.switch);
    switches + switched().map(|c| c.wash_out).max().unwrap_or(Nanos::ZERO)
}
