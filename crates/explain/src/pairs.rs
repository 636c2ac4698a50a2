//! Two-point reports: the time from any point to any other.
//!
//! A pair is an ordered couple of ends ([`Endpoint`]): test points, kernel events, entries and
//! exits of probed functions. [`By`] defines which A matches which B, [`Rule`] which of several
//! open ones. Every A and every B is matched or counted as unmatched. A match across lost events is
//! counted separately, as its true partner may be among them.

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

/// The common key of an A and its B.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum By {
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
pub enum Rule {
    /// The latest; an A that another A follows before any B is unmatched.
    Next,
    /// The latest without a B yet: brackets.
    Nested,
    /// The oldest without a B yet: many may be in progress.
    Async,
}

impl By {
    /// All keys, by name.
    pub const ALL: [(&'static str, By); 4] =
        [("thread", By::Thread), ("value", By::Value), ("cpu", By::Cpu), ("global", By::Global)];
}

impl Rule {
    /// All rules, by name.
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
