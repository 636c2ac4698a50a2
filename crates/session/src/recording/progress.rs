//! How far a recording is, and what it left.

use punctual_core::event::Recorded;
use std::sync::atomic::{AtomicBool, AtomicU64};

/// The state of a recording.
#[derive(Debug, Default)]
pub struct Progress {
    /// Kernel events and test points so far.
    pub events: AtomicU64,
    pub lost: AtomicU64,
    pub bytes: AtomicU64,
    /// Whether recording has ended of itself: its bound is reached, the disk is full, something
    /// failed.
    pub ended: AtomicBool,
}

/// What a recording left.
#[derive(Debug)]
pub struct Done {
    /// What it covers and lost.
    pub recorded: Recorded,
    /// What could not be written.
    pub trouble: Option<String>,
}
