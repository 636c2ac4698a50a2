#![forbid(unsafe_code)]
//! Running things: what conducts a run, a recording, an explanation, a target, a lab, a search, an
//! attached program.
//!
//! Nothing here knows the command line or a terminal: requests come as plain options, what is to be
//! shown meanwhile goes to a [`messages::Messages`] and to watchers ([`run::watcher`],
//! [`attach::watcher`]). The modules in the order of the data:
//!
//! 1. [`exit`], [`messages`], [`interrupts`], [`programs`], [`command`]: small things of all.
//! 2. [`options`] and [`request`]: what was asked for, as a plan.
//! 3. `engine`, which drives whatever yields samples, and [`kept`], which keeps them.
//! 4. [`run`], with what goes beside it: [`recording`], [`flight`], [`metrics`], [`violation`].
//! 5. [`recorded`], [`limits`], [`explained`], [`exact`]: what a bundle says of it; [`baseline`]:
//!    what the runs before it say; [`traces`]: bundles of what other tools recorded.
//! 6. [`targets`], [`labs`], [`hunt`]: runs elsewhere, many runs, a search; [`tune`]: which
//!    settings help; [`attach`] and [`truth`].

// They panic where the terminal was closed: `messages` does not.
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
