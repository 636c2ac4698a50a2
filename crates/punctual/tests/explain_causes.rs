//! Samples delayed by a test are attributed to its cause: exactly on bundles that were recorded
//! once (fixtures/causes); live as scores (`./x test --all`).

mod affinity;
pub mod case;
mod faults;
mod heap;
mod hog;
mod inversion;
mod section;
mod storage;
mod throttled;
