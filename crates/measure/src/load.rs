//! Loads: programs that keep the system busy, supervised, respawned, and gone at the end whatever
//! happens to punctual.
//!
//! A small process of its own, the [`guard`], is the parent of all loads. It adopts their orphans,
//! respawns them, and ends them all when punctual asks or dies: the socket between the two closes
//! with the last holder, also on kill -9. When the guard itself is killed, the kernel kills the
//! loads (their parent-death signal) and punctual, which adopts orphans as well, ends the rest.

mod client;
pub mod guard;
pub mod launch;
mod outbox;
mod protocol;
mod respawn;

pub use client::{Guarded, LoadError};
pub use protocol::{Event, LoadSpec, OnExit};
