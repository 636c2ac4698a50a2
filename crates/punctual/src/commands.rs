//! One file a subcommand, each reading like a table of contents.

pub mod check;
pub mod compare;
pub mod completions;
pub mod convert;
pub mod explain;
pub mod export;
pub mod import;
pub mod isolate;
pub mod lab;
pub mod man;
pub mod measure;
pub mod occupancy;
pub mod pairs;
pub mod probe;
pub mod report;
pub mod run;
pub mod show;
pub mod ssh;
pub mod tail;
pub mod trace;
