//! The ring between a measuring thread and its readers (`crates/measure/src/ring.rs`, this very
//! file), with the atomics of [loom](https://docs.rs/loom): it runs a test in every order that the
//! memory model of C11 allows, those of weakly ordered machines among them.

#[path = "../../src/ring.rs"]
pub mod ring;

/// What the ring takes from its crate.
pub mod atomic {
    pub use loom::sync::atomic::{AtomicU64, Ordering};
    use std::cell::Cell;

    thread_local! {
        /// Whether the writer's fence is left out, as before it was put in.
        pub static WITHOUT_RELEASE: Cell<bool> = const { Cell::new(false) };
    }

    /// A fence of loom, unless it is the one that is left out.
    pub fn fence(order: Ordering) {
        if order != Ordering::Release || !WITHOUT_RELEASE.get() {
            loom::sync::atomic::fence(order);
        }
    }
}

mod marker {
    pub fn sample(_: i64, _: i64, _: usize) {}
}
