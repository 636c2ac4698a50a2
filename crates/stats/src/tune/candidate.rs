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
    /// The time after a switch in which blocks do not count, as the effect comes or goes slowly.
    pub wash_out: Nanos,
    /// The indices of settings that it cannot be combined with.
    pub excludes: Vec<usize>,
}

impl Candidate {
    /// A setting that can be changed at run time, immediately and independently.
    pub fn new(name: &str) -> Candidate {
        Candidate {
            name: name.to_owned(),
            value: String::new(),
            risk: Risk::Low,
            wash_out: Nanos::ZERO,
            excludes: Vec::new(),
        }
    }
}

/// The time until a block with `next` counts when `now` is set: the longest wash-out of the
/// settings that are switched.
pub(crate) fn wash_out(candidates: &[Candidate], now: &[bool], next: &[bool]) -> Nanos {
    let switched = candidates.iter().zip(now.iter().zip(next)).filter(|(_, (a, b))| a != b);
    switched.map(|(candidate, _)| candidate.wash_out).max().unwrap_or(Nanos::ZERO)
}
