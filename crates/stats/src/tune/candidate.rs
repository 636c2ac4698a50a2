//! The settings that can be tried.

use punctual_core::Nanos;

/// The risk of side effects of a setting.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Risk {
    /// Other work may become slower.
    Low,
    /// Power, temperature, or the work of other programs may change much.
    Medium,
    /// It removes a protection: tried only if named.
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

/// A setting with the value tried against the machine's own.
#[derive(Clone, PartialEq, Debug)]
pub struct Candidate {
    /// Its name, as `--only` takes it.
    pub name: String,
    /// The tried value, for display.
    pub value: String,
    /// The risk of side effects.
    pub risk: Risk,
    /// The duration of a switch.
    pub switch: Nanos,
    /// The time after a switch in which blocks do not count, as the effect comes or goes slowly.
    pub wash_out: Nanos,
    /// The indices of settings that it cannot be combined with.
    pub excludes: Vec<usize>,
    /// The indices of settings without which it has no effect.
    pub requires: Vec<usize>,
    /// Whether it is tried only if `--only` names it.
    pub only_named: bool,
}

impl Candidate {
    /// A setting that can be changed at run time, immediately and independently.
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

/// The time until a block with `next` counts when `now` is set: all switches in sequence, then the
/// longest wash-out among them.
pub(crate) fn settling(candidates: &[Candidate], now: &[bool], next: &[bool]) -> Nanos {
    let switched =
        || candidates.iter().zip(now.iter().zip(next)).filter(|(_, (a, b))| a != b).map(|(c, _)| c);
    let switches = switched().fold(Nanos::ZERO, |sum, c| sum + c.switch);
    switches + switched().map(|c| c.wash_out).max().unwrap_or(Nanos::ZERO)
}
