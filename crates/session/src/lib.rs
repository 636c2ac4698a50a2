#![forbid(unsafe_code)]
//! Runs, recordings, explanations, targets, labs, searches, attached programs.
//!
//! Nothing here depends on the command line or a terminal: requests are plain options, messages go
//! to a [`messages::Messages`] and to watchers ([`run::watcher`], [`attach::watcher`]). The modules
//! in the order of the data:
//!
//! 1. [`exit`], [`messages`], [`interrupts`], [`programs`], [`command`]: basics.
//! 2. [`options`] and [`request`]: the request, as a plan.
//! 3. `engine`, which drives all sources of samples, and [`kept`], which stores samples.
//! 4. [`run`], with its companions: [`recording`], [`flight`], [`metrics`], [`violation`].
//! 5. [`recorded`], [`limits`], [`explained`], [`exact`]: the evidence in a bundle; [`baseline`]:
//!    the earlier runs; [`traces`]: bundles from the recordings of other tools.
//! 6. [`targets`], [`labs`], [`hunt`]: runs elsewhere, many runs, a search; [`tune`]: which
//!    settings help; [`attach`] and [`truth`].

// These macros panic if the terminal was closed: `messages` does not.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

pub mod attach;
pub mod baseline;
pub mod command;
pub mod continuing;
pub mod counted;
pub mod cycles;
pub mod end;
mod engine;
pub mod exact;
pub mod exact_difference;
pub mod exit;
pub mod explained;
pub mod flight;
pub mod hunt;
pub mod interrupts;
pub mod kept;
pub mod labs;
pub mod limits;
mod machine;
pub mod messages;
pub mod metrics;
mod notify;
mod observers;
pub mod options;
pub mod programs;
pub mod recorded;
pub mod recording;
pub mod replayed;
pub mod request;
pub mod run;
pub mod sections;
pub mod targets;
pub mod traces;
pub mod truth;
pub mod tune;
pub mod unfinished;
mod violation;
