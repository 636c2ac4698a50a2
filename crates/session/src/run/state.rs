//! State of a run from its first step to its last.

use super::companion::Companion;
use super::metrics::SharedMetrics;
use super::program::AttachedTo;
use super::{fixed, partition};
use crate::cycles::target::CycleTarget;
use crate::interrupts::SignalRequests;
use crate::messages::Listener;
use crate::saver::Saver;
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
    /// Writes what changes while something is measured.
    pub saver: Saver,
    pub findings: Vec<Finding>,
    /// The errors that prevented writes.
    pub unwritten: Vec<String>,
    /// The attached program or CPUs, instead of the plan's.
    pub attached: Option<AttachedTo>,
    /// The guard of the loads, if the plan has loads.
    pub guard: Option<Guarded>,
    /// The partition, if the plan asks for one.
    pub partition: Option<partition::HeldPartition>,
    /// The settings of all CPUs that the experiment fixes, if any.
    pub fixed: Option<fixed::HeldSettings>,
    /// Memory locks and idle states, from the first measurement to the last.
    pub preparation: Option<Preparation>,
    /// Everything that runs beside measuring.
    pub companions: Vec<Box<dyn Companion>>,
    /// The file for the figures, and at the end the verdict.
    pub metrics: Option<SharedMetrics>,
    /// Signals of the user.
    pub interrupts: SignalRequests,
    /// The listener where no view is drawn.
    pub messages: Listener,
}

impl Run<'_> {
    /// The program that is attached to.
    pub(crate) fn attached_program(&self) -> Option<&CycleTarget> {
        self.attached.as_ref()?.program.as_ref()
    }

    /// Keeps the controller thread off the measured CPUs if there are others; without controller
    /// CPUs in the plan, its affinity is unchanged.
    pub(crate) fn bind_controller(&mut self) {
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
                    .with_evidence(why.to_string())
                    .with_remedy("set cpus = … to CPUs that this process is allowed to use"),
            );
        }
    }
}
