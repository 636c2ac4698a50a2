//! Recording and counting on the running kernel, as root.

mod accounting;
mod attach;
mod common;
mod counting;
mod flight;
mod guests;
mod injected;
mod leftovers;
mod recording;
