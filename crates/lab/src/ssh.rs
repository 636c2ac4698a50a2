//! Other systems, reached by ssh(1): punctual is copied there, measures in its own directory,
//! returns the bundle, and removes all its files.
//!
//! 1. [`Destination`]: an address that cannot be mistaken for options or commands.
//! 2. [`Connection`]: the system's own ssh, which checks the host's key and authenticates once; the
//!    remote system ([`RemoteSystem`]).
//! 3. A suitable program is sent, verified, and supervises its own run there ([`agent`]),
//!    independent of connections.
//! 4. [`run`] and [`resume`] follow it, reconnect, and receive the bundle, without trust in the
//!    received data.
//! 5. [`leftovers`] lists and removes the files of runs without an owner.

pub mod agent;
mod binary;
mod client;
mod destination;
mod error;
mod files;
mod follow;
mod staging;
mod stderr;
mod wire;

pub use client::{Connection, RemoteSystem};
pub use destination::Destination;
pub use error::{ErrorPlace, SshError};
pub(crate) use files::digest_of;
pub use follow::{RemoteEnd, RemoteJob, RemoteResult, RemoteWatch, Timeouts, resume, run};
pub use staging::{Leftover, clean, leftovers};
