//! The settings of all CPUs that an experiment fixes (`governor`, `frequency`, `smt`): set before
//! anything else, read back in each phase, restored after the last one, or by the next experiment
//! or `punctual isolate undo` after kill -9.

use crate::changes::{MachineChanges, refusal_reason};
use crate::exit::Failure;
use crate::messages::Listener;
use punctual_core::{Finding, Severity};
use punctual_host::files::Root;
use punctual_host::fixed::{FixedDraft, FixedSettings};
use punctual_host::isolate::check_rights;
use punctual_host::journal::JournalDirectory;
use punctual_host::journal::record::ChangePurpose;
use punctual_plan::Plan;

/// Settings in force as long as this lives.
pub struct HeldSettings {
    draft: FixedDraft,
    standing: bool,
    messages: Listener,
}

/// The settings that a plan fixes.
fn fixed_settings(plan: &Plan) -> FixedSettings {
    let frequency = plan.frequency.map(|of| of.0);
    FixedSettings { governor: plan.governor.clone(), frequency, smt: plan.smt }
}

fn restore_settings() -> Result<(), Failure> {
    with_changes(|changes| changes.restore_settings())
}

fn with_changes<T>(act: impl FnOnce(&MachineChanges) -> T) -> T {
    let (files, store) = (Root::from_system(), JournalDirectory::from_system());
    act(&MachineChanges { files: &files, store: &store, purpose: &ChangePurpose::Experiment })
}

impl HeldSettings {
    /// Sets what the plan fixes; `None` if it fixes nothing.
    pub(crate) fn fix_settings(
        plan: &Plan,
        messages: Listener,
    ) -> Result<Option<HeldSettings>, Failure> {
        let asked_settings = fixed_settings(plan);
        if !asked_settings.is_requested() {
            return Ok(None);
        }
        let files = Root::from_system();
        check_rights(&files).map_err(Failure::refused)?;
        restore_settings()?;
        let draft = asked_settings.draft_settings(&files).map_err(Failure::refused)?;
        // Dropped at any early return.
        let held_settings = HeldSettings { draft, standing: true, messages };
        let writes: Vec<_> =
            held_settings.draft.writes.iter().map(|(name, of)| (*name, of)).collect();
        let results = with_changes(|changes| changes.apply_writes(&writes))?;
        let refused =
            results.iter().filter_map(refusal_reason).chain(held_settings.missing_settings());
        match refused.reduce(|all, why| format!("{all}; {why}")) {
            Some(why) => Err(Failure::refused(format!("a setting cannot be fixed: {why}"))),
            None => Ok(Some(held_settings)),
        }
    }

    /// The settings that are not in force now.
    pub fn missing_settings(&self) -> Vec<String> {
        self.draft.missing_settings(&Root::from_system())
    }

    /// Restores them; the finding lists failures.
    pub fn undo(mut self) -> Option<Finding> {
        self.take_back()
    }

    fn take_back(&mut self) -> Option<Finding> {
        if !std::mem::take(&mut self.standing) {
            return None;
        }
        let restore_error = restore_settings().err()?.render(false);
        let message = "the fixed settings could not be restored completely";
        let finding = Finding::new("settings-not-restored", Severity::Bad, "system", message);
        Some(
            finding.with_evidence(restore_error).with_remedy(
                "`punctual isolate undo` shows the remaining changes and reverts them",
            ),
        )
    }
}

impl Drop for HeldSettings {
    fn drop(&mut self) {
        if let Some(finding) = self.take_back() {
            let evidence = finding.evidence.unwrap_or_default();
            self.messages.say(&format!("warning: {}: {evidence}\n", finding.message));
        }
    }
}
