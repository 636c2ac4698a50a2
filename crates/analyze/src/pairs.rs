//! Two-point reports: how long it takes from any point to any other.
//!
//! A pair is an ordered couple of ends ([`Endpoint`]): test points, kernel events, entries and
//! exits of probed functions. [`By`] defines which A belongs to which B, [`Rule`] which of several
//! open ones. Every A and every B is matched or counted as unmatched, and a match that spans lost
//! events is counted separately: its true partner may be among them.

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

pub use crate::intervals::{Figures, Interval, Seen, Uncertain};
pub use document::{Detail, document, gate, windows};
pub use endpoint::{Endpoint, EndpointError};
pub use matcher::Matcher;
pub use pairing::{Pairing, PairingOptions, Prepared};
pub use request::{Request, RequestError, Target};
pub use results::{Found, Pair, PairResult, Results};

use std::fmt;

/// What an A and a B must have in common to be a pair.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum By {
    /// The thread that they concern: that passes a point, is woken, is switched to.
    Thread,
    /// Their value: the first one of a point, the number of an interrupt or of a system call, a
    /// sector, a timer's address.
    Value,
    /// The CPU on which both happened.
    Cpu,
    Global,
}

/// Which of several open A's a B belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rule {
    /// The latest; an A that another A follows before any B is unmatched.
    Next,
    /// The latest that has no B yet: brackets.
    Nested,
    /// The oldest that has no B yet: many may be under way.
    Async,
}

impl By {
    /// Every way, by its word.
    pub const ALL: [(&'static str, By); 4] =
        [("thread", By::Thread), ("value", By::Value), ("cpu", By::Cpu), ("global", By::Global)];
}

impl Rule {
    /// Every rule, by its word.
    pub const ALL: [(&'static str, Rule); 3] =
        [("next", Rule::Next), ("nested", Rule::Nested), ("async", Rule::Async)];
}

impl fmt::Display for By {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(By::ALL.iter().find(|(_, by)| by == self).map_or("", |(word, _)| word))
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(Rule::ALL.iter().find(|(_, rule)| rule == self).map_or("", |(word, _)| word))
    }
}
