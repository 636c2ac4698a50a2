//! What is recorded and counted of the kernel that runs, as root.

mod accounting;
mod accounting_untyped;
mod attach;
mod common;
mod counting;
mod flight;
mod guests;
mod injected;
mod leftovers;
mod recording;
mod sleeps;
