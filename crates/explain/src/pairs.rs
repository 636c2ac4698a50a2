//! Two-point reports: the time from any point to any other.
//!
//! A pair is an ordered couple of ends ([`Endpoint`]): test points, kernel events, entries and
//! exits of probed functions. [`PairKey`] defines which A matches which B, [`MatchRule`] which of
//! several open ones. Every A and every B is matched or counted as unmatched. A match across lost
//! events is counted separately, as its true partner may be among them.

mod automatic;
mod document;
mod endpoint;
mod matcher;
mod pairing;
pub mod ran;
mod request;
mod results;
#[cfg(test)]
mod tests;

pub use crate::intervals::{IntervalEnd, MatchedPair, PairFigures, Uncertain};
pub use document::{WorstDetail, apply_validity, build_document, worst_windows};
pub use endpoint::{Endpoint, EndpointError};
pub use matcher::Matcher;
pub use pairing::{Pairing, PairingOptions, PreparedPairing};
pub use request::{PairRequest, RequestError, RequestTarget};
pub use results::{IntervalPair, PairMatch, PairResult, Results};

use std::fmt;

/// The common key of an A and its B.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PairKey {
    /// The thread concerned: that passes a point, is woken, is switched to.
    Thread,
    /// The value: the first one of a point, the number of an interrupt or of a system call, a
    /// sector, a timer's address.
    Value,
    /// The CPU on which both occurred.
    Cpu,
    Global,
}

/// Which of several open A's a B is matched with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MatchRule {
    /// The latest; an A that another A follows before any B is unmatched.
    Next,
    /// The latest without a B yet: brackets.
    Nested,
    /// The oldest without a B yet: many may be in progress.
    Async,
}

impl PairKey {
    /// All keys, by name.
    pub const ALL: [(&'static str, PairKey); 4] = [
        ("thread", PairKey::Thread),
        ("value", PairKey::Value),
        ("cpu", PairKey::Cpu),
        ("global", PairKey::Global),
    ];
}

impl MatchRule {
    /// All rules, by name.
    pub const ALL: [(&'static str, MatchRule); 3] =
        [("next", MatchRule::Next), ("nested", MatchRule::Nested), ("async", MatchRule::Async)];
}

impl fmt::Display for PairKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(PairKey::ALL.iter().find(|(_, by)| by == self).map_or("", |(word, _)| word))
    }
}

impl fmt::Display for MatchRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(MatchRule::ALL.iter().find(|(_, rule)| rule == self).map_or("", |(word, _)| word))
    }
}
