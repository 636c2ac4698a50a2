//! The command `attach`: a running program, a program that a command starts, or the disturbances of
//! CPUs, each as a plan of one measure which [`crate::run`] runs.
//!
//! Attaching changes nothing on the machine: no memory is locked, no idle state is disabled, no CPU
//! is reserved; and the program is judged as it is, not by whether it runs as planned.

mod cpus;
mod program;
pub mod watcher;

pub use cpus::{EntriesAsked, entries_plan, refuse_for_cpus};
pub use program::{CyclesAsked, plan_program};

use crate::exit::Failure;
use crate::messages::Listener;
use crate::request::{ExperimentRequest, Loaded};
use punctual_plan::Plan;
use std::path::Path;

/// The phase of a bundle of this kind.
pub const PHASE: &str = "attached";

/// Samples in the log of a series.
const LOGGED_SAMPLES: u64 = 1 << 20;
/// The settings that leave the machine unchanged.
const SETTINGS: &str =
    "[experiment]\nmemory_lock = false\ndma_latency = \"leave\"\ncpu_load = false\n\n[[measure]]\n";

/// A plan of one measure, with these keys.
fn attached_plan(
    name: String,
    measure: &str,
    messages: Listener,
) -> Result<(Loaded, Plan), Failure> {
    let text = format!("{SETTINGS}{measure}").into_bytes();
    let (loaded, mut plan) =
        ExperimentRequest::of_plain_text(Path::new(PHASE), text).resolve(messages)?;
    plan.name = name;
    plan.keep_samples = LOGGED_SAMPLES;
    plan.phases.iter_mut().for_each(|phase| phase.name = PHASE.to_owned());
    Ok((loaded, plan))
}
