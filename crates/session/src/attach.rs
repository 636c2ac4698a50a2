//! The command `attach`: a program whose cycles are measured alone ([`crate::cycles`]), from
//! attaching to a bundle.

mod attachment;
pub mod cpus;
pub mod ending;
mod explaining;
mod metrics;
mod options;
pub mod watcher;

pub use attachment::Attachment;
pub use options::{Options, PHASE};
