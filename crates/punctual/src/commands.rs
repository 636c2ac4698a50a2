//! One file per subcommand, each readable like a table of contents.

mod answer;
pub mod attach;
mod beside;
pub mod boot;
pub mod bundle;
mod bundle_page;
pub mod check;
pub mod compare;
#[cfg(feature = "manual")]
pub mod completions;
pub mod convert;
pub mod count;
pub mod cpus;
pub mod demo;
mod documents;
pub mod explain;
pub mod export;
pub mod hunt;
pub mod import;
pub mod isolate;
pub mod lab;
#[cfg(feature = "manual")]
pub mod man;
pub mod measure;
pub mod names;
pub mod new;
pub mod occupancy;
pub mod pairs;
mod printing;
pub mod probe;
pub mod recipe;
pub mod report;
pub mod run;
pub mod sections;
pub mod show;
pub mod ssh;
pub mod steps;
mod stored;
pub mod trace;
pub mod trend;
pub mod tune;
pub mod watch;
