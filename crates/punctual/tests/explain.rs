//! `--explain` and `punctual explain`: samples that this test made late are blamed on what it did.

#[path = "explain/affinity.rs"]
mod affinity;
mod common;
#[path = "explain/faults.rs"]
mod faults;
#[path = "explain/heap.rs"]
mod heap;
#[path = "explain/hog.rs"]
mod hog;
#[path = "explain/injected.rs"]
mod injected;
#[path = "explain/inversion.rs"]
mod inversion;
#[path = "explain/kept.rs"]
mod kept;
#[path = "explain/section.rs"]
mod section;
#[path = "explain/slow_disk.rs"]
mod slow_disk;
#[path = "explain/storage.rs"]
mod storage;
#[path = "explain/throttled.rs"]
mod throttled;
