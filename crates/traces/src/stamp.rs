//! When and where a record was made.

use punctual_core::event::{CpuContext, Tid};

/// When and where a record was made.
#[derive(Clone, Copy, Debug)]
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
