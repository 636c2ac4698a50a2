//! Samples that a test made late are attributed to what it did: on bundles that were recorded once
//! (fixtures/causes), exactly; here and now as scores (`./x test --all`).

#[path = "explain_causes/affinity.rs"]
mod affinity;
#[path = "explain_causes/case.rs"]
mod case;
mod common;
#[path = "explain_causes/faults.rs"]
mod faults;
#[path = "explain_causes/heap.rs"]
mod heap;
#[path = "explain_causes/hog.rs"]
mod hog;
#[path = "explain/injected.rs"]
mod injected;
#[path = "explain_causes/inversion.rs"]
mod inversion;
#[path = "explain_causes/section.rs"]
mod section;
#[path = "explain_causes/storage.rs"]
mod storage;
#[path = "explain_causes/throttled.rs"]
mod throttled;
