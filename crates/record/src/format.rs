//! Tracepoints as their `format` files in tracefs describe them, and from their records to ours.
//!
//! What recorders without BTF read are the kernel's own records of its tracepoints. Their fields
//! move between versions; their names have stayed.

mod fields;
mod translate;

pub(crate) use fields::{Fields, Format};
pub(crate) use translate::{NR_FUTEX, Recorded, Translator};
