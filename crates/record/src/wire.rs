//! The records on the wire: what the kernel side writes, what recordings hold, and what becomes of
//! them.
//!
//! `bpf/wire.h` defines them; `build.rs` turns it into [`layout`]. Reading is pure and believes
//! nothing: a record of an unknown kind, of the wrong size or cut off is an error with its place,
//! and what follows a record of known length is still read.

mod decode;
mod encode;
#[cfg(test)]
mod tests;

pub(crate) use decode::futex;
pub use decode::{Decode, Survey, WireError, count, decode, survey};
pub use encode::encode;

/// The structures and numbers of `bpf/wire.h`.
#[allow(missing_docs, clippy::identity_op)] // Generated.
pub mod layout {
    include!(concat!(env!("OUT_DIR"), "/wire_generated.rs"));
}

/// A record is a multiple of this.
pub const WORD: usize = 8;
