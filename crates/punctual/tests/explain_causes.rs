//! Samples that a test made late are attributed to what it did: on bundles that were recorded once
//! (fixtures/causes), exactly; here and now as scores (`./x test --all`).

mod affinity;
mod case;
mod faults;
mod heap;
mod hog;
mod inversion;
mod section;
mod storage;
mod throttled;
