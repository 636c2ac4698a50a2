#![forbid(unsafe_code)]
//! Runs, recordings, explanations, attached programs.
//!
//! Nothing here depends on the command line or a terminal: requests are plain options, messages go
//! to a [`messages::Messages`] and to watchers ([`run::watcher`], [`attach::watcher`]). The modules
//! in the order of the data:
//!
//! 1. [`exit`], [`messages`], [`interrupts`], [`programs`], [`command`]: basics.
//! 2. [`options`] and [`request`]: the request, as a plan.
//! 3. `engine`, which drives all sources of samples, and [`series_store`], which stores samples.
//! 4. [`run`], with its companions: [`recording`], [`flight`], [`metrics`], [`violation`];
//!    [`attach`].
//! 5. [`playback`], [`limits`], [`explanation`]: the evidence in a bundle; [`traces`]: bundles from
//!    the recordings of other tools.

// These macros panic if the terminal was closed: `messages` does not.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

pub mod attach;
pub mod changes;
pub mod coincidence;
pub mod command;
pub mod continuing;
pub mod counting;
pub mod cycles;
pub mod end;
mod engine;
pub mod exit;
pub mod explanation;
pub mod flight;
pub mod frames;
pub mod interrupts;
pub mod limits;
pub mod machine;
pub mod messages;
pub mod metrics;
mod notify;
mod observers;
pub mod options;
pub mod playback;
pub mod programs;
pub mod recording;
pub mod refusals;
pub mod request;
pub mod run;
pub(crate) mod saver;
pub mod series_store;
pub mod steps;
pub mod traces;
pub mod unfinished;
mod violation;
