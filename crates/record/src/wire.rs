//! The records on the wire: written by the kernel side, stored in recordings, and decoded here.
//!
//! `bpf/wire.h` defines them; `build.rs` converts it to [`layout`]. Decoding is pure and trusts
//! nothing: a record of unknown kind or wrong size, or a truncated one, is an error with its
//! position, and the records after one of known length are still decoded.

mod decode;
mod encode;
#[cfg(test)]
mod tests;

pub(crate) use decode::decode_futex;
pub use decode::{Decode, Survey, WireError, count_records, decode, survey_records};
pub use encode::encode;

/// The structures and numbers of `bpf/wire.h`.
#[allow(missing_docs, clippy::identity_op)] // Generated.
pub mod layout {
    include!(concat!(env!("OUT_DIR"), "/wire_generated.rs"));
}

/// The size of a record is a multiple of this.
pub(crate) const WORD: usize = 8;
