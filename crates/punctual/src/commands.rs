//! One file a subcommand, each reading like a table of contents.

pub mod completions;
pub mod convert;
pub mod export;
#[cfg(any())]
pub mod import;
pub mod isolate;
#[cfg(any())]
pub mod man;
#[cfg(any())]
pub mod report;
pub mod run;
pub mod show;
