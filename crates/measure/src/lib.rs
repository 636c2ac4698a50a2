//! Where time passes: the workloads that measure and the loads that disturb.
//!
//! Rule for the measured path: between two samples a measuring thread makes no allocation, takes no
//! lock, meets no page fault, formats nothing and calls nothing but what is measured, the sleep and
//! the clock. It writes samples into a [`ring`], or counts them in a [`binned_counter`] where they
//! come too fast for that; the controller thread takes them into statistics with a
//! [`collect::Collector`].

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
