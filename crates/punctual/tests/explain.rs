//! `--explain` and `punctual explain`: which windows are kept, and what becomes of them.

mod common;
#[path = "explain/injected.rs"]
mod injected;
#[path = "explain/kept.rs"]
mod kept;
#[path = "explain/slow_disk.rs"]
mod slow_disk;
