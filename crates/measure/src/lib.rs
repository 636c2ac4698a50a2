//! The workloads that measure and the loads that disturb.
//!
//! Rule for the measured path: between two samples a measuring thread allocates nothing, takes no
//! lock, has no page fault, formats nothing and calls nothing except the measured operation, the
//! sleep and the clock. It writes samples into a [`ring`], or counts them in a [`binned_counter`]
//! if they come too fast for that; the controller thread turns them into statistics with a
//! [`collect::SeriesCollector`].

mod atomic {
    pub use std::sync::atomic::{AtomicU64, Ordering, fence};
}
pub mod binned_counter;
pub mod collect;
pub mod load;
mod marker;
pub mod preparation;
pub mod ring;
pub mod sink;
pub mod stop;
pub mod thread;
pub mod timer;
pub mod workload;
