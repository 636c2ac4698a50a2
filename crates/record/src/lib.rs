//! Recording what the kernel does: events, counts, times of functions, accounts of threads.

pub mod account;
pub mod attach;
mod bpf;
pub mod count;
mod format;
pub mod gaps;
pub mod interrupt;
mod names;
pub mod perf;
pub mod probe;
mod recorder;
pub mod release;
mod rights;
pub mod symbols;
pub mod tracefs;
mod tracepoints;
pub mod wire;

pub use names::{kernel_symbols, syscall_names, syscall_number};
pub use recorder::{Backend, BufferProgress, Mode, Recorder, Request, StartError, Stopped, Window};
pub use rights::missing_rights;
pub use tracepoints::group_of;
