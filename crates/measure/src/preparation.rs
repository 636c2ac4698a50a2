//! What the whole process asks for before it measures, held until it is dropped.

use punctual_core::{Finding, Nanos, Severity};
use punctual_host::task::memory;
use punctual_host::task::power::DmaLatency;

/// What is in force.
#[derive(Debug)]
pub struct Preparation {
    _dma_latency: Option<DmaLatency>,
    /// What could not be had, and what the reader of the figures must know of what was.
    pub findings: Vec<Finding>,
}

/// Locks memory and keeps CPUs out of deep idle states, as asked.
pub fn prepare(lock_memory: bool, dma_latency: Option<Nanos>) -> Preparation {
    let mut findings = Vec::new();
    if lock_memory && let Err(why) = memory::lock_all() {
        let finding = Finding::new("memory-not-locked", Severity::Warning, "system", "memory could not be locked");
        findings.push(
            finding
                .evidence(format!("mlockall: {why}"))
                .remedy("raise RLIMIT_MEMLOCK (ulimit -l unlimited), or grant CAP_IPC_LOCK, or run as root"),
        );
    }
    let held = dma_latency.and_then(|latency| match DmaLatency::hold(latency) {
        Ok(held) => {
            let message = format!("/dev/cpu_dma_latency was held at {latency} by the measurement itself");
            let finding = Finding::new("dma-latency-held", Severity::Note, "system", message);
            findings.push(finding.remedy(
                "an application that does not hold it leaves deeper idle states more slowly: measure with \
                 dma_latency = \"leave\" to see what it will see",
            ));
            Some(held)
        }
        Err(why) => {
            let message = "/dev/cpu_dma_latency could not be held: deep idle states add to the latency";
            let finding = Finding::new("dma-latency-not-held", Severity::Advice, "system", message);
            findings.push(finding.evidence(format!("/dev/cpu_dma_latency: {why}")).remedy(
                "run as root or give the user write access to it; or say dma_latency = \"leave\" if that is wanted",
            ));
            None
        }
    });
    Preparation { _dma_latency: held, findings }
}
