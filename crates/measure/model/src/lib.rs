//! The ring between a measuring thread and its readers (the file `crates/measure/src/ring.rs`
//! itself), with the atomics of [loom](https://docs.rs/loom): it runs a test in every order that
//! the memory model of C11 allows, including those of weakly ordered machines.

#[path = "../../src/ring.rs"]
pub mod ring;

/// The items that the ring imports from its crate.
pub mod atomic {
    pub use loom::sync::atomic::{AtomicU64, Ordering};
    use std::cell::Cell;

    thread_local! {
        /// Whether the writer's fence is omitted, as before it was added.
        pub static WITHOUT_RELEASE: Cell<bool> = const { Cell::new(false) };
    }

    /// A fence of loom, unless it is the omitted one.
    pub fn fence(order: Ordering) {
        if order != Ordering::Release || !WITHOUT_RELEASE.get() {
            loom::sync::atomic::fence(order);
        }
    }
}

mod marker {
    pub fn mark_sample(_: i64, _: i64, _: usize) {}
}
