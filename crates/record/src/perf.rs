//! Events counted by the kernel and the CPU, through perf_event_open(2).

mod attr;
mod counter;
mod group;
mod refusal;
mod vendor;

pub(crate) use attr::{ENABLED, PerfEventAttr, PerfType, open_event};
pub use counter::{CounterReading, PerfCounter, Total, Whom};
pub use group::{GROUP_MAX, TracepointGroup};
pub use vendor::vendor_events;
