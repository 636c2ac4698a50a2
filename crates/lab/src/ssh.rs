//! Other systems, reached by ssh(1): punctual goes there, measures in a directory of its own, comes
//! back with the bundle, and leaves nothing.
//!
//! 1. [`Destination`]: where to, in names that nothing takes for options or commands.
//! 2. [`Connection`]: the system's own ssh, which checks the host's key and authenticates once; who
//!    is there ([`System`]).
//! 3. The program that fits is sent, verified, and supervises its own run over there ([`agent`]):
//!    connections come and go.
//! 4. [`run`] and [`resume`] follow it, reconnect, and take the bundle in, believing nothing that
//!    they are sent.
//! 5. [`leftovers`] lists and removes what a run left whose owner is gone.

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

pub use client::{Connection, System};
pub use destination::Destination;
pub use error::{SshError, Trouble};
pub(crate) use files::digest_of;
pub use follow::{Ended, Job, RemoteResult, Timeouts, Watch, resume, run};
pub use staging::{Leftover, clean, leftovers};
