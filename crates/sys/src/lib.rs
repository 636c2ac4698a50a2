//! Requests of a process to the kernel for itself: clocks, scheduling, affinity, memory, signals,
//! its children, its rights, counts of its own disturbances. The only place that checks errno.

pub mod attributes;
pub mod call;
pub mod children;
pub mod clock;
pub mod descriptor;
pub mod futex;
pub mod gate;
pub mod mapping;
pub mod memory;
pub mod observers;
pub mod pace;
pub mod power;
pub mod rights;
pub mod signals;
mod socket_owners;
pub mod standard_output;
pub mod status;
pub mod usage;
pub mod user;

pub use call::check_result;
