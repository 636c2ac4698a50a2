//! The clock of a trace.

use punctual_core::Nanos;

/// The relation of a trace's clock to CLOCK_MONOTONIC, on which timers are programmed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ClockRelation {
    /// It is CLOCK_MONOTONIC: the file says so, or its timers expire by it.
    Monotonic,
    /// Another clock, with an offset from that of the timers that is stated by the file or follows
    /// from timer expiries. Expiries are converted to the clock of the trace.
    Bridged,
    /// Another or unnamed clock with an unknown offset from that of the timers. Events with
    /// instants of timers are dropped.
    Unknown,
}

/// The clock of a trace. Events keep its instants, whatever clock it is; timer expiries are
/// converted to it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TraceClock {
    /// Its name in the file: `local`, `mono`; `None` without one.
    pub name: Option<String>,
    /// Its relation to CLOCK_MONOTONIC.
    pub relation: ClockRelation,
    /// The resolution of instants in the file: 1 ns, or 1 µs in most text.
    pub resolution: Nanos,
}
