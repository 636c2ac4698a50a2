//! The clock of a trace.

use punctual_core::Nanos;
use punctual_core::event::{CpuContext, Tid};

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

/// When and where a record was made.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Head {
    /// In nanoseconds of the trace's clock.
    pub(crate) at: i64,
    pub(crate) cpu: u16,
    /// As the record has it: `None` where the task is not known.
    pub(crate) tid: Option<Tid>,
    /// What its header shows of the CPU, where it has that.
    pub(crate) context: Option<CpuContext>,
    /// The kernel function that it names; 0: none.
    pub(crate) site: u64,
}
