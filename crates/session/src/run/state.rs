//! What a run holds from its first step to its last.

use super::companion::Companion;
use super::metrics::SharedMetrics;
use super::partition;
use super::program::AttachedTo;
use crate::cycles::target::Target;
use crate::interrupts::Interrupts;
use punctual_bundle::BundleWriter;
use punctual_core::{Finding, Severity};
use punctual_measure::load::Guarded;
use punctual_measure::preparation::Preparation;
use punctual_plan::Plan;
use punctual_sys::attributes;

/// The state of a run.
pub struct Run<'a> {
    pub plan: &'a Plan,
    pub writer: BundleWriter,
    pub findings: Vec<Finding>,
    /// What could not be written.
    pub unwritten: Vec<String>,
    /// What is attached to, instead of what the plan names.
    pub attached: Option<AttachedTo>,
    /// The loads' guard, where the plan has loads.
    pub guard: Option<Guarded>,
    /// The partition, where the plan asks for one.
    pub partition: Option<partition::Held>,
    /// Memory locks and idle states, from the first measurement to the last.
    pub preparation: Option<Preparation>,
    /// What goes on beside measuring.
    pub companions: Vec<Box<dyn Companion>>,
    /// Where the figures are written to, and at the end the verdict.
    pub metrics: Option<SharedMetrics>,
    /// What the user asked for by signals.
    pub interrupts: Interrupts,
}

impl Run<'_> {
    /// The program that is attached to.
    pub fn attached_program(&self) -> Option<&Target> {
        self.attached.as_ref()?.program.as_ref()
    }

    /// Keeps the controller thread off the measured CPUs if there are others; a plan without CPUs
    /// for it leaves it where it is.
    pub fn bind_controller(&mut self) {
        if self.plan.controller_cpus.is_empty() {
            return;
        }
        if let Err(why) = attributes::set_affinity(0, &self.plan.controller_cpus) {
            let message = format!(
                "the controller thread could not be bound to CPU {}",
                self.plan.controller_cpus
            );
            let finding = Finding::new("controller-not-bound", Severity::Advice, "system", message);
            self.findings.push(
                finding
                    .evidence(why.to_string())
                    .remedy("set cpus = … to CPUs that this process is allowed to use"),
            );
        }
    }
}
