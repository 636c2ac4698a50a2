//! What the numbers in a recording are called on this machine.

mod tasks;

pub(crate) use tasks::Collector;
