//! Findings about a run in a virtual machine.

use super::machine::{asked_preemption, preemption_word};
use punctual_core::{Finding, Severity};
use punctual_host::environment::Environment;
use punctual_lab::{GuestOutcome, GuestResult};
use punctual_plan::VmPlan;

pub(crate) fn machine_findings(
    vm: &VmPlan,
    result: &GuestResult,
    environment: Option<&Environment>,
) -> Vec<Finding> {
    let mut findings: Vec<Finding> =
        result.problems.iter().map(|problem| unprepared_finding(problem)).collect();
    findings.extend(killed_for_memory(result));
    findings.extend(other_preemption(vm, environment));
    findings
}

fn unprepared_finding(problem: &str) -> Finding {
    Finding::new(
        "guest-unprepared",
        Severity::Warning,
        "system",
        "a step of preparing the virtual machine failed",
    )
    .with_evidence(problem)
    .with_remedy("workloads that need it do not work; see console.log in the bundle")
}

/// Reported because a run can reach its end although a load of it was killed.
fn killed_for_memory(result: &GuestResult) -> Option<Finding> {
    let killed = result
        .oom_kills
        .filter(|killed| *killed > 0 && result.outcome == GuestOutcome::Finished)?;
    let message =
        format!("the virtual machine's memory ran out: its kernel killed {killed} task(s)");
    let finding = Finding::new("guest-out-of-memory", Severity::Bad, "system", message);
    Some(
        finding
            .with_evidence("oom_kill in /proc/vmstat")
            .with_remedy("increase it (memory = …) or reduce the load"),
    )
}

/// Reported because a kernel silently ignores a model that it does not have.
fn other_preemption(vm: &VmPlan, environment: Option<&Environment>) -> Option<Finding> {
    let requested_model = asked_preemption(&vm.cmdline)?;
    let kernel_preemption = environment?.kernel.preemption.known_value()?;
    let in_force = preemption_word(kernel_preemption.model);
    if in_force == requested_model {
        return None;
    }
    let message = format!(
        "preempt={requested_model} was requested from the kernel, and {in_force} is in force"
    );
    let finding = Finding::new("preemption-not-as-requested", Severity::Warning, "system", message);
    Some(finding.with_evidence(kernel_preemption.evidence.clone()).with_remedy(
        "this kernel does not offer that model at boot (a PREEMPT_RT kernel has one model; 6.12 \
         has no lazy, 7.2 neither none nor voluntary, arm64's 6.1 ignores the option): request \
         the model that is in force",
    ))
}
