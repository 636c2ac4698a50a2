//! What a process asks the kernel for itself: clocks, scheduling, affinity, memory locks, signals,
//! its children, counts of its own disturbances.

pub mod attributes;
pub mod call;
pub mod children;
pub mod clock;
pub mod gate;
pub mod memory;
pub mod power;
pub mod signals;
pub mod usage;

pub use call::check;
