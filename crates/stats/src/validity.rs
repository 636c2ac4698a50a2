//! Whether a run was measured as requested. Every verdict (on a requirement, a limit, a comparison,
//! a lab) passes through here.
//!
//! Each proof is judged from typed evidence ([`punctual_bundle::evidence`]), proof by proof
//! ([`proofs`]); [`Validity::gate_verdict`] determines the effect on a verdict.
//! docs/reference/validity.md has the table.

mod proofs;

pub(crate) use proofs::when_stopped;

use crate::PhaseView;
use punctual_bundle::summary::{
    Proof, ProofOutcome, ProofWord, ValiditySummary, ValidityWord, VerdictWord,
};
use punctual_bundle::{Bundle, Manifest};
use punctual_core::event::Recorded;

/// The subject of proofs about the run as a whole.
pub const RUN: &str = "run";
/// The share of expected samples that may be lost or unmeasured before figures are no evidence.
pub(crate) const TOO_MUCH_LOST: f64 = 0.01;

/// All proofs of a run.
#[derive(Clone, PartialEq, Debug)]
pub struct Validity {
    pub proofs: Vec<Proof>,
}

/// A verdict adapted to the validity, with the reason for a change.
#[derive(Clone, PartialEq, Debug)]
pub struct GatedVerdict {
    /// The verdict considering the validity of the run.
    pub verdict: VerdictWord,
    /// The reason for a change.
    pub reason: Option<String>,
}

impl Validity {
    /// Judges a run by its evidence.
    pub(crate) fn from_evidence(
        manifest: &Manifest,
        phases: &[PhaseView],
        recorded: Option<&Recorded>,
    ) -> Validity {
        let mut proofs: Vec<Proof> = proofs::of_run(manifest, recorded);
        phases.iter().for_each(|phase| proofs.extend(proofs::of_phase(manifest, phase)));
        Validity { proofs }
    }

    pub fn of_bundle(bundle: &Bundle) -> Validity {
        let recorded = bundle.recording.as_ref().map(|recording| recording.count_recorded());
        Validity::from_evidence(&bundle.manifest, &crate::phase_views(bundle), recorded.as_ref())
    }

    #[cfg(test)]
    pub(crate) fn of_proofs(proofs: Vec<Proof>) -> Validity {
        Validity { proofs }
    }

    pub(crate) fn overall_word(&self) -> ValidityWord {
        let has_outcome =
            |outcome: ProofOutcome| self.proofs.iter().any(|proof| proof.outcome == outcome);
        match () {
            () if has_outcome(ProofOutcome::Fails) => ValidityWord::Invalid,
            () if has_outcome(ProofOutcome::Unknown) => ValidityWord::Undecided,
            () if has_outcome(ProofOutcome::NotRecorded) => ValidityWord::NotRecorded,
            () => ValidityWord::Valid,
        }
    }

    /// The effective verdict on a series of a phase: never *met* if a proof fails or is unknown.
    pub(crate) fn gate_verdict(
        &self,
        verdict: VerdictWord,
        phase: &str,
        series: &str,
    ) -> GatedVerdict {
        let about = |proof: &&Proof| {
            concerns_series(proof, phase, series) && proof.proof != ProofWord::Recorder
        };
        gate_by_proofs(verdict, self.proofs.iter().filter(about))
    }

    /// The effective verdict on intervals of a recording. Missing events, and the number of
    /// intervals, are judged limit by limit.
    pub fn gate_recording(&self, verdict: VerdictWord) -> GatedVerdict {
        let about =
            |proof: &&Proof| !matches!(proof.proof, ProofWord::Recorder | ProofWord::Samples);
        gate_by_proofs(verdict, self.proofs.iter().filter(about))
    }

    /// Why series cannot be compared with others of their kind. This also considers properties that
    /// a single run may lack.
    pub(crate) fn proofs_against_comparing(&self) -> impl Iterator<Item = &Proof> {
        self.proofs.iter().filter(|proof| {
            let stands = matches!(proof.outcome, ProofOutcome::Holds | ProofOutcome::NotRecorded);
            !stands && proof.proof != ProofWord::Recorder
        })
    }

    pub fn to_summary(&self) -> ValiditySummary {
        ValiditySummary { verdict: self.overall_word(), proofs: self.proofs.clone() }
    }
}

/// Whether a proof is about this series: about the run, its phase, a load of its phase, or itself.
pub(crate) fn concerns_series(proof: &Proof, phase: &str, series: &str) -> bool {
    match proof.subject.strip_prefix(phase).and_then(|rest| rest.strip_prefix('/')) {
        _ if proof.subject == RUN || proof.subject == phase => true,
        Some(_) if proof.proof == ProofWord::Load => true,
        Some(own) => own == series,
        None => false,
    }
}

/// The rule. A sample that was measured as requested and is too long remains so, however many
/// others are missing; a sample that was not measured as requested shows nothing.
fn gate_by_proofs<'a>(
    verdict: VerdictWord,
    proofs: impl Iterator<Item = &'a Proof>,
) -> GatedVerdict {
    let mut unknown = None;
    let mut invalid: Option<&Proof> = None;
    for proof in proofs {
        let stays = verdict == VerdictWord::NotMet
            && matches!(proof.proof, ProofWord::Samples | ProofWord::Controller);
        match proof.outcome {
            ProofOutcome::Fails if !stays => invalid = invalid.or(Some(proof)),
            ProofOutcome::Unknown if verdict == VerdictWord::Met => {
                unknown = unknown.or(Some(proof))
            }
            _ => {}
        }
    }
    let text = |proof: &Proof| Some(format!("{}: {}", proof.subject, proof.why));
    match (invalid, unknown) {
        (Some(proof), _) => GatedVerdict { verdict: VerdictWord::Invalid, reason: text(proof) },
        (None, Some(proof)) => {
            GatedVerdict { verdict: VerdictWord::Undecided, reason: text(proof) }
        }
        (None, None) => GatedVerdict { verdict, reason: None },
    }
}

#[cfg(test)]
mod tests;
