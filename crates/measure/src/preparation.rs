//! Process-wide settings for a measurement, in force until they are dropped.

use punctual_core::{Finding, Nanos, Severity};
use punctual_sys::memory;
use punctual_sys::power::DmaLatencyRequest;

/// The settings in force.
#[derive(Debug)]
pub struct Preparation {
    /// In force while this lives.
    _dma_latency: Option<DmaLatencyRequest>,
    /// Settings that failed, and remarks on those in force that readers of the figures need.
    pub findings: Vec<Finding>,
}

/// The stack of the calling thread from here on: many times the needs of a phase.
const STACK: usize = 128 << 10;

/// Frees memory used during set-up, makes the rest resident and locks it as requested, and keeps
/// CPUs out of deep idle states as requested. Called when every thread is ready and before it is
/// started; again for the next phase, with the result of the last call.
pub fn prepare_process(
    lock_memory: bool,
    dma_latency: Option<Nanos>,
    last: Option<Preparation>,
) -> Preparation {
    if last.is_some() {
        memory::unlock_all();
    }
    memory::settle_heap();
    memory::touch_stack::<STACK>();
    let mut findings = Vec::new();
    let locked = if lock_memory { memory::lock_all() } else { Ok(()) };
    if !lock_memory || locked.is_err() {
        memory::populate_mappings();
    }
    if let Err(why) = locked {
        let finding = Finding::new(
            "memory-not-locked",
            Severity::Warning,
            "system",
            "memory could not be locked",
        );
        findings.push(finding.with_evidence(format!("mlockall: {why}")).with_remedy(
            "raise RLIMIT_MEMLOCK (ulimit -l unlimited), or grant CAP_IPC_LOCK, or run as root",
        ));
    }
    match last {
        Some(Preparation { _dma_latency, .. }) => {
            Preparation { _dma_latency, findings: Vec::new() }
        }
        None => {
            let _dma_latency =
                dma_latency.and_then(|latency| hold_dma_latency(latency, &mut findings));
            Preparation { _dma_latency, findings }
        }
    }
}

fn hold_dma_latency(latency: Nanos, findings: &mut Vec<Finding>) -> Option<DmaLatencyRequest> {
    match DmaLatencyRequest::hold_latency(latency) {
        Ok(held) => {
            let message =
                format!("/dev/cpu_dma_latency was held at {latency} by the measurement itself");
            let finding = Finding::new("dma-latency-held", Severity::Note, "system", message);
            findings.push(finding.with_remedy(
                "an application that does not hold it leaves deeper idle states more slowly: \
                 measure with dma_latency = \"leave\" to see what it will see",
            ));
            Some(held)
        }
        Err(why) => {
            let message =
                "/dev/cpu_dma_latency could not be held: deep idle states add to the latency";
            let finding = Finding::new("dma-latency-not-held", Severity::Advice, "system", message);
            findings
                .push(finding.with_evidence(format!("/dev/cpu_dma_latency: {why}")).with_remedy(
                "run as root or give the user write access to it; or set dma_latency = \"leave\" \
                 if that is intended",
            ));
            None
        }
    }
}
