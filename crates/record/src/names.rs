//! The names of the numbers in a recording on this machine.

mod machine;
mod symbols;
mod tasks;

pub(crate) use machine::name_machine;
pub use machine::{syscall_names, syscall_number};
pub(crate) use symbols::kernel_functions;
pub use symbols::kernel_symbols;
pub(crate) use tasks::TaskNameCollector;
