//! Packaged programs measure: in the image, and by the files for pipelines. These tests run alone,
//! and one after the other.

#[path = "packaging/in_image.rs"]
mod in_image;
#[path = "packaging/pipelines.rs"]
mod pipelines;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Held while a test measures.
fn alone() -> MutexGuard<'static, ()> {
    static MEASURING: Mutex<()> = Mutex::new(());
    MEASURING.lock().unwrap_or_else(PoisonError::into_inner)
}
