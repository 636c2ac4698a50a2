//! The options of a run besides its experiment; they override the file.

use crate::exit::Failure;
use crate::recording;
use punctual_core::event::Group;
use punctual_core::{CpuSet, Nanos};
use punctual_lab::ssh::Timeouts;
use punctual_plan::{ExplainPlan, Plan, RecordPlan};
use std::path::PathBuf;
use std::time::Duration;

/// How long a lost connection is retried by default.
const RECONNECT: Duration = Duration::from_secs(600);
/// How long a run waits for its owner by default.
const KEEP: Duration = Duration::from_secs(24 * 3600);

/// The request.
#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    /// Show only the plan, and start nothing.
    pub plan_only: bool,
    pub output: Option<PathBuf>,
    /// Show no progress.
    pub quiet: bool,
    /// A latency above this ends the run.
    pub stop_above: Option<Nanos>,
    /// The command that sh(1) runs when a requirement is violated.
    pub on_violation: Option<String>,
    pub forever: bool,
    /// Kernel events to record.
    pub trace: Vec<String>,
    /// Whether the worst samples are explained.
    pub explain: bool,
    /// Whether to measure the cost of recording before the run; `None`: as in the experiment.
    pub calibrate: Option<bool>,
    /// Whether to allow experiments that could make the system unresponsive.
    pub force: bool,
    pub target: Option<String>,
    pub seed: Option<u64>,
    /// The number of runs, in virtual time.
    pub repeat: u32,
    /// Whether every instruction is seen.
    pub exact: bool,
    /// Options of targets that ssh(1) reaches.
    pub ssh: SshOptions,
}

/// The options of a target that is another system.
#[derive(Clone, Debug, Default)]
pub struct SshOptions {
    /// The run to follow, instead of starting one.
    pub resume: Option<String>,
    /// How long a lost connection is retried.
    pub reconnect_for: Option<Nanos>,
    /// How long the run continues, and its bundle is kept, while no client is connected.
    pub keep_for: Option<Nanos>,
    /// Whether the other system stays in the boot of the run, and is in its usual one for a run
    /// that asks for none: runs of a lab follow one another.
    pub keep_boot: bool,
}

impl SshOptions {
    /// The times, with their defaults.
    pub fn timeouts(&self) -> Timeouts {
        let time = |given: Option<Nanos>, usual| given.map_or(usual, |given| given.to_std());
        Timeouts {
            reconnect: time(self.reconnect_for, RECONNECT),
            keep_for: time(self.keep_for, KEEP),
        }
    }
}

/// The option that enables or disables measuring the cost of recording.
pub fn calibration_option(measured: bool) -> &'static str {
    if measured { "--calibrate" } else { "--no-calibration" }
}

impl RunOptions {
    /// The arguments of this run on a target. Every option is considered here; those that concern
    /// the way back are omitted.
    pub fn for_a_target(&self, allow_unknown: bool) -> Vec<String> {
        let RunOptions {
            plan_only,
            output: _,
            quiet: _,
            stop_above,
            on_violation,
            forever,
            trace,
            explain,
            calibrate,
            force,
            target: _,
            repeat: _,
            exact: _,
            seed,
            ssh: _,
        } = self;
        let mut words = vec!["--target=host".to_owned(), "--quiet".to_owned()];
        words.extend(plan_only.then(|| "--plan".to_owned()));
        words.extend(stop_above.map(|limit| format!("--stop-above={limit}")));
        words.extend(on_violation.iter().map(|command| format!("--on-violation=shell={command}")));
        words.extend(forever.then(|| "--forever".to_owned()));
        words.extend((!trace.is_empty()).then(|| format!("--trace={}", trace.join(","))));
        words.extend(explain.then(|| "--explain".to_owned()));
        words.extend(calibrate.map(|is| calibration_option(is).to_owned()));
        words.extend(force.then(|| "--force".to_owned()));
        words.extend(seed.map(|seed| format!("--seed={seed}")));
        words.extend(allow_unknown.then(|| "--allow-unknown".to_owned()));
        words
    }

    /// The plan with these options applied, for a system with these CPUs.
    pub fn apply_to(&self, mut plan: Plan, online: &CpuSet) -> Result<Plan, Failure> {
        if let Some(directory) = &self.output {
            plan.output.clone_from(directory);
        }
        plan.seed = self.seed.or(plan.seed);
        plan.calibrate = self.calibrate.or(plan.calibrate);
        if self.stop_above.is_some() {
            let measures = plan.phases.iter_mut().flat_map(|phase| &mut phase.measures);
            measures.for_each(|measure| measure.stop_above = self.stop_above);
        }
        if self.on_violation.is_some() {
            plan.on_violation.clone_from(&self.on_violation);
        }
        if self.forever {
            plan.run_forever().map_err(Failure::refused)?;
        }
        if !self.trace.is_empty() {
            // Other groups of events than in the plan.
            let planned = plan
                .record
                .take()
                .unwrap_or_else(|| RecordPlan::with_default_events(online.clone()));
            let recording::KernelEvents { groups, tracepoints } =
                recording::parse_events(&self.trace, &Group::USUAL)?;
            plan.record = Some(RecordPlan { events: groups, tracepoints, ..planned });
        }
        if self.explain {
            plan.explain.get_or_insert_with(|| ExplainPlan::usual_of(&plan.phases));
        }
        Ok(plan)
    }
}
