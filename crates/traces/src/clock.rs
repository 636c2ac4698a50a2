//! The clock of a trace.

use punctual_core::Nanos;

/// How the clock of a trace relates to CLOCK_MONOTONIC, on which timers are programmed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ClockRelation {
    /// It is CLOCK_MONOTONIC: the file says so, or its timers expire by it.
    Monotonic,
    /// Another clock, whose distance from that of the timers the file states or its timers'
    /// expiries show. Expiries are converted to the clock of the trace.
    Bridged,
    /// Another clock, or one that is not named, and nothing shows its distance from that of the
    /// timers. Events with the instants of timers are left out.
    Unknown,
}

/// The clock of a trace. Events keep its instants, whatever clock it is; what they say of timers is
/// converted to it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TraceClock {
    /// As the file calls it: `local`, `mono`; `None` where it does not.
    pub name: Option<String>,
    /// How it relates to CLOCK_MONOTONIC.
    pub relation: ClockRelation,
    /// The step in which the file states instants: 1 ns, or 1 µs in most text.
    pub resolution: Nanos,
}
