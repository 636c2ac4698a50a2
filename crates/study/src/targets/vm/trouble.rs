//! Failures of a guest's run.

use punctual_lab::{GuestOutcome, GuestPhase, GuestResult};
use punctual_plan::{Acceleration, KernelChoice, VmPlan};

/// Why the guest did not reach its end; none if its command ended by itself.
pub(crate) fn guest_trouble(result: &GuestResult) -> Option<String> {
    match (&result.outcome, result.exit_status) {
        (GuestOutcome::Finished, Some(0..=4)) => None,
        (GuestOutcome::Finished, Some(status)) if status > 128 => {
            Some(format!("punctual was killed by signal {} in the virtual machine", status - 128))
        }
        (GuestOutcome::Finished, Some(status)) => {
            Some(format!("punctual ended with status {status} in the virtual machine"))
        }
        (outcome, _) => Some(outcome.to_string()),
    }
}

/// The remedy, where the end and the request show one.
pub(crate) fn trouble_remedy(outcome: &GuestOutcome, vm: &VmPlan) -> Option<&'static str> {
    let has_not_booted = matches!(
        outcome,
        GuestOutcome::Silent { .. }
            | GuestOutcome::Hung { phase: GuestPhase::Booting, .. }
            | GuestOutcome::EndedEarly(GuestPhase::Booting)
    );
    match (outcome, &vm.kernel) {
        // A processor that promises virtual machines and does not keep it shows only so.
        _ if vm.accel == Acceleration::Kvm
            && (has_not_booted || matches!(outcome, GuestOutcome::QemuFailed(_))) =>
        {
            Some("/dev/kvm of this system boots no kernel: use accel = \"virtual-time\" or \"tcg\"")
        }
        (GuestOutcome::OutOfMemory(_), _) => Some("give the machine more memory: memory = …"),
        // Without the drivers of its console and ports nothing comes back.
        (outcome, KernelChoice::Image { modules: None, .. })
            if has_not_booted || is_init_gone(outcome) =>
        {
            Some(
                "name the directory of this kernel's modules, from which its drivers are loaded \
                 (modules = \"…/lib/modules/RELEASE\"), or build the drivers of virtio into it",
            )
        }
        (GuestOutcome::Hung { .. }, _) => Some("allow it more time: timeout = …"),
        _ => None,
    }
}

fn is_init_gone(outcome: &GuestOutcome) -> bool {
    matches!(outcome, GuestOutcome::Panicked(line) if line.contains("kill init"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn remedies_for_guest_failures_fit_the_outcome_and_kernel() {
        let vm = |kernel: KernelChoice, accel| {
            let named = crate::targets::vm::plan_for_kernel("6.1").expect("a kernel's name");
            VmPlan { kernel, accel, ..named }
        };
        let image = |modules: Option<&str>| KernelChoice::Image {
            image: "/boot/vmlinuz".into(),
            modules: modules.map(Into::into),
        };
        let named = || KernelChoice::Named("6.1".to_owned());
        let (virtual_time, kvm) = (Acceleration::VirtualTime, Acceleration::Kvm);
        let panicked = || GuestOutcome::Panicked("Attempted to kill init!".to_owned());
        let other = GuestOutcome::Panicked("BUG: unable to handle page fault".to_owned());
        let hung = |phase| GuestOutcome::Hung { after: Duration::from_secs(9), phase };
        let cases = [
            (panicked(), image(None), virtual_time, Some("modules")),
            (
                GuestOutcome::EndedEarly(GuestPhase::Booting),
                image(None),
                virtual_time,
                Some("modules"),
            ),
            (panicked(), image(Some("/lib/modules/6.1")), virtual_time, None),
            (panicked(), named(), virtual_time, None),
            (hung(GuestPhase::Booting), named(), kvm, Some("/dev/kvm")),
            (hung(GuestPhase::Booting), image(None), kvm, Some("/dev/kvm")),
            (hung(GuestPhase::Booting), named(), virtual_time, Some("timeout")),
            (GuestOutcome::QemuFailed("no".to_owned()), named(), virtual_time, None),
            (GuestOutcome::OutOfMemory("killed".to_owned()), named(), virtual_time, Some("memory")),
            (other, image(None), virtual_time, None),
            (hung(GuestPhase::Job), image(None), virtual_time, Some("timeout")),
            (GuestOutcome::Finished, image(None), virtual_time, None),
        ];
        for (outcome, kernel, accel, part) in cases {
            let remedy = trouble_remedy(&outcome, &vm(kernel.clone(), accel));
            let fits = match part {
                Some(part) => remedy.is_some_and(|remedy| remedy.contains(part)),
                None => remedy.is_none(),
            };
            assert!(fits, "{outcome:?} {kernel:?}: {remedy:?}");
        }
    }
}
