//! Loads: programs that keep the system busy, supervised, respawned, and terminated at the end even
//! if punctual dies.
//!
//! A small process, the [`guard`], is the parent of all loads. It adopts their orphans, respawns
//! them, and terminates them all when punctual requests it or dies: the socket between the two
//! closes with its last holder, also on kill -9. If the guard itself is killed, the kernel kills
//! the loads (their parent-death signal) and punctual, which adopts orphans as well, terminates the
//! rest.

mod client;
pub mod guard;
pub mod launch;
mod outbox;
mod protocol;
mod respawn;

pub use client::{GuardError, Guarded};
pub use protocol::{GuardEvent, LoadExitAction, LoadSpec};
