//! The progress of a recording, and its result.

use punctual_core::event::Recorded;
use std::sync::atomic::{AtomicBool, AtomicU64};

/// The state of a recording.
#[derive(Debug, Default)]
pub struct RecordingProgress {
    /// Kernel events and test points so far.
    pub events: AtomicU64,
    pub lost: AtomicU64,
    pub bytes: AtomicU64,
    /// Whether recording has ended by itself: its bound is reached, the disk is full, something
    /// failed.
    pub ended: AtomicBool,
}

/// The result of a recording.
#[derive(Debug)]
pub struct RecordingResult {
    /// The recorded extent and the losses.
    pub recorded: Recorded,
    /// The error that prevented a write.
    pub trouble: Option<String>,
}
