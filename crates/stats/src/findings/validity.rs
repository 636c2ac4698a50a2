//! Findings for failed proofs without another finding.

use crate::Validity;
use punctual_bundle::summary::{Proof, ProofOutcome, ProofWord};
use punctual_core::{Finding, Severity};

/// The findings that already report a failed proof.
const REPORTED_ALREADY: [(ProofWord, &[&str]); 7] = [
    (ProofWord::Controller, &["controller-delayed"]),
    (ProofWord::Scheduling, &["scheduling-refused", "not-real-time"]),
    (ProofWord::Clock, &["clock-set", "clock-stepped", "negative-latency"]),
    (ProofWord::Samples, &["samples-lost", "no-samples"]),
    (ProofWord::Memory, &["memory-not-locked"]),
    // The second id is that of bundles written before it was renamed.
    (ProofWord::Kernel, &["preemption-not-as-requested", "preemption-not-as-asked"]),
    (ProofWord::Recorder, &["recording-lossy"]),
];

/// One finding for each failed proof that none of the findings `known` covers.
pub(crate) fn of_validity<'a>(
    validity: &Validity,
    known: impl Iterator<Item = &'a Finding> + Clone,
) -> Vec<Finding> {
    let failed =
        |proof: &&Proof| matches!(proof.outcome, ProofOutcome::Fails | ProofOutcome::Waived);
    let is_about = |finding: &Finding, proof: &Proof| {
        let subject = &finding.subject;
        *subject == proof.subject
            || subject == "system"
            || subject.strip_prefix(&proof.subject).is_some_and(|rest| rest.starts_with('/'))
    };
    let text = |proof: &Proof| {
        let ids = REPORTED_ALREADY
            .iter()
            .find(|(word, _)| *word == proof.proof)
            .map_or(&[][..], |(_, ids)| ids);
        // Heat has a finding with more evidence than its proof.
        let says = |finding: &Finding| {
            finding.id == "throttled"
                && finding.evidence.as_ref().is_some_and(|all| all.starts_with(&proof.why))
        };
        let is_known = |of: &Finding| ids.contains(&of.id.as_str()) || says(of);
        known.clone().any(|finding| is_known(finding) && is_about(finding, proof))
    };
    validity
        .proofs
        .iter()
        .filter(failed)
        .filter(|proof| !text(proof))
        .filter_map(of_proof)
        .collect()
}

fn of_proof(proof: &Proof) -> Option<Finding> {
    let (id, severity, message, remedy) = match proof.proof {
        ProofWord::Scheduling => (
            "scheduling-changed",
            Severity::Bad,
            "its policy or priority changed during the measurement",
            "do not change it (chrt, a system service) during the measurement, and run again",
        ),
        ProofWord::Affinity => (
            "affinity-changed",
            Severity::Bad,
            "its affinity changed during the measurement",
            "keep CPUs online, do not change affinities or cpusets (taskset, a system service), \
             and run again",
        ),
        ProofWord::Clock => (
            "clock-unusable",
            Severity::Bad,
            "the clock is unusable",
            "see the kernel log (dmesg) for messages about the clock source; tsc is the usual one \
             on x86",
        ),
        ProofWord::Isolation => (
            "partition-not-in-force",
            Severity::Bad,
            "the partition was not in force as requested",
            "`punctual isolate status` shows what is in force; stop what else changes cpusets",
        ),
        ProofWord::Settings => (
            "settings-not-in-force",
            Severity::Bad,
            "a governor, a frequency or SMT was not as the experiment fixes it",
            "stop what else sets it (a power daemon), improve the cooling, and run again",
        ),
        ProofWord::Load if proof.outcome == ProofOutcome::Waived => (
            "load-starved",
            Severity::Warning,
            "a load was given hardly any CPU: others kept the CPUs busy",
            "end what else runs there, or give the load CPUs of its own, and run again",
        ),
        ProofWord::Load => (
            "load-not-working",
            Severity::Bad,
            "a load did not load the system: it died or idled",
            "run its command alone to see what it does; on_success = \"ignore\" allows it to end",
        ),
        ProofWord::Others => (
            "measured-by-others",
            Severity::Warning,
            "another punctual measured on the same CPU: each disturbed the other",
            "measure one after the other, or on different CPUs: cpus = …",
        ),
        ProofWord::Samples => (
            "samples-missing",
            Severity::Bad,
            "there are fewer samples than were due",
            "see the other findings; run again",
        ),
        ProofWord::Throttling => (
            "throttled",
            Severity::Warning,
            "tasks or CPUs were throttled during the measurement",
            "give the cgroup more CPU time or the processor more cooling, or lift \
             sched_rt_runtime_us",
        ),
        ProofWord::Kernel => (
            "kernel-not-as-asked",
            Severity::Bad,
            "the kernel is not the requested one",
            "name the installed kernel, or install the requested one",
        ),
        ProofWord::Controller => (
            "controller-delayed",
            Severity::Bad,
            "punctual itself did not run when it was to, and samples were lost",
            "see the phase's finding for the reason, and run again",
        ),
        ProofWord::Memory | ProofWord::Recorder => return None,
    };
    Some(
        Finding::new(id, severity, &proof.subject, message)
            .with_evidence(&*proof.why)
            .with_remedy(remedy),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_proof_with_a_finding_is_not_reported_again() {
        let proof = Proof {
            proof: ProofWord::Kernel,
            subject: "run".into(),
            outcome: ProofOutcome::Fails,
            why: "another model is in force".into(),
        };
        let validity = Validity::of_proofs(vec![proof]);
        assert_eq!(of_validity(&validity, [].iter()).len(), 1);
        for id in ["preemption-not-as-requested", "preemption-not-as-asked"] {
            let known =
                [Finding::new(id, Severity::Warning, "system", "another model is in force")];
            assert!(of_validity(&validity, known.iter()).is_empty(), "{id}");
        }
    }
}
