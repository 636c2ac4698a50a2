//! The experiment, the time and the outcome of a run: before any figure, so that none is
//! over-interpreted.

use super::paint::{TextPage, Tone};
use crate::answer::known_answer;
use crate::format;
use crate::verdict::{beside_requirements, of_reason, tone_of};
use punctual_bundle::summary::{Proof, ProofOutcome, ProofWord, Summary, ValidityWord};
use punctual_bundle::verdict::FailedPart;
use punctual_bundle::{Outcome, Reason, Timebase};

/// Proofs beyond this are only counted.
const PROOFS: usize = 4;
/// Reasons shown beside the requirements; the rest are counted.
const REASONS: usize = 4;

pub fn write(out: &mut TextPage, summary: &Summary) {
    write_name(out, summary);
    super::answer::write(out, summary, &known_answer(summary));
    if let Some(target) = &summary.target {
        let words = format!("on {}: {}", target.kind, format::escape_unsafe(&target.name));
        out.push_paragraph("", "", Tone::Plain, &words);
        target.limits.iter().for_each(|limit| {
            out.push_paragraph("", "", Tone::Uncertain, &format::escape_unsafe(limit))
        });
    }
    let (tone, text) = how_it_ended(summary);
    out.push_paragraph("", "", tone, &text);
    let gaps = crate::sentence::format_gaps(&summary.gaps);
    gaps.iter().for_each(|gap| out.push_paragraph("", "", Tone::Uncertain, gap));
    if let Some((tone, text)) = not_real_time(summary) {
        out.push_paragraph("", "", tone, &text);
    }
    for (tone, text) in format_validity(summary) {
        out.push_paragraph("", "", tone, &text);
    }
    if let Some(text) = further_reasons(summary) {
        out.push_paragraph("", "", tone_of(&summary.verdict), &text);
    }
}

/// The experiment and the time of the run.
pub(crate) fn write_name(out: &mut TextPage, summary: &Summary) {
    let name = format::clip_name(&summary.experiment, 60, out.options.ascii);
    let name = out.paint(Tone::Strong, &name);
    // The clock of a virtual machine may be wrong.
    let begun = summary.target.as_ref().map_or(summary.created, |target| target.started);
    let when = begun.strftime("%Y-%m-%d %H:%M:%S UTC");
    out.push_line(&format!("{name}  {when}"));
}

/// The digest of all samples, below all figures: only in virtual time, where a run can be repeated
/// and the digest proves it. Elsewhere no two runs share one, and only `--json` shows it.
pub(crate) fn write_digest(out: &mut TextPage, summary: &Summary) {
    let is_virtual = Timebase::from_target(summary.target.as_ref()) == Timebase::Virtual;
    if let Some(digest) = summary.digest.as_ref().filter(|_| is_virtual) {
        out.push_gap();
        out.push_paragraph("", "", Tone::Faint, &digest_line(summary, digest));
    }
}

/// Enough digits to distinguish runs, and whether repeats agree.
fn digest_line(summary: &Summary, digest: &str) -> String {
    let repeats = summary.target.as_ref().map_or(&[][..], |target| &target.repeats);
    let agree = match repeats {
        [] => String::new(),
        all if all.iter().all(|one| one == digest) => {
            format!(", the same in all {} repeats", all.len())
        }
        all => format!(", NOT the same in all {} repeats", all.len()),
    };
    format!("digest of all samples: {}{agree}", format::short_digest(digest))
}

fn how_it_ended(summary: &Summary) -> (Tone, String) {
    let Some(ending) = &summary.ending else {
        let text =
            "CUT OFF: the run has no recorded end; these are the figures of its last checkpoint";
        return (Tone::Bad, text.to_owned());
    };
    let tone = match ending.outcome {
        Outcome::Completed => Tone::Plain,
        Outcome::Failed { .. } => Tone::Bad,
        _ => Tone::Uncertain,
    };
    (tone, format::escape_unsafe(&ending.outcome.to_string()))
}

/// Shown if any series was measured without real-time scheduling, requested or not.
fn not_real_time(summary: &Summary) -> Option<(Tone, String)> {
    let all_series = summary.phases.iter().flat_map(|phase| &phase.series);
    let (count, without) =
        (all_series.clone().count(), all_series.filter(|series| !series.real_time).count());
    let which = if without == count {
        "these figures are".to_owned()
    } else {
        format!("{without} of {count} series are")
    };
    let refused = |id: &str| ["not-real-time", "scheduling-refused"].contains(&id);
    let as_wanted = !summary.findings.iter().any(|f| refused(&f.id));
    let tone = if as_wanted { Tone::Uncertain } else { Tone::Bad };
    (without > 0).then(|| {
        (tone, format!("NOT REAL-TIME: {which} not proven to come from a real-time thread"))
    })
}

/// That the run is invalid, and why: each failed proof once.
fn format_validity(summary: &Summary) -> Vec<(Tone, String)> {
    let Some(validity) = &summary.validity else { return Vec::new() };
    let mut against = summary.verdict.adverse_reasons();
    let is_stopped = against.any(|reason| matches!(reason, Reason::StopAbove { .. }));
    let proofs_of = |outcome: ProofOutcome| {
        // A requested stop leaves fewer samples: the others stay valid.
        let is_stop = move |proof: &&Proof| {
            is_stopped && proof.proof == ProofWord::Samples && outcome == ProofOutcome::Unknown
        };
        let proofs = validity.proofs.iter();
        proofs.filter(move |proof| proof.outcome == outcome && !is_stop(proof))
    };
    let (tone, word, proofs): (_, _, Vec<&Proof>) = match validity.verdict {
        ValidityWord::Invalid => (Tone::Bad, "INVALID", proofs_of(ProofOutcome::Fails).collect()),
        ValidityWord::Undecided => {
            (Tone::Uncertain, "validity unknown", proofs_of(ProofOutcome::Unknown).collect())
        }
        ValidityWord::Valid | ValidityWord::NotRecorded => return Vec::new(),
    };
    let sentence = |proof: &&Proof| {
        let text =
            format!("{word}: {} of {}: {}", proof.proof.json_word(), proof.subject, proof.why);
        (tone, format::escape_unsafe(&text))
    };
    let mut lines: Vec<(Tone, String)> = proofs.iter().take(PROOFS).map(sentence).collect();
    if proofs.len() > PROOFS {
        lines.push((
            tone,
            format!("{word}: and {} more proofs (punctual show --json)", proofs.len() - PROOFS),
        ));
    }
    lines
}

/// The reasons for the verdict that are neither in the answer nor in the tables below.
fn further_reasons(summary: &Summary) -> Option<String> {
    let is_above = |reason: &&Reason| match reason {
        Reason::NotAsAsked { .. } | Reason::CutOff { .. } | Reason::StopAbove { .. } => true,
        Reason::Failed { part, .. } => *part == FailedPart::Run,
        _ => false,
    };
    let first = summary.verdict.adverse_reasons().next();
    let reasons = beside_requirements(summary);
    let mut reasons: Vec<String> = reasons
        .filter(|reason| !is_above(reason) && Some(*reason) != first)
        .map(of_reason)
        .collect();
    let omitted_count = reasons.len().saturating_sub(REASONS);
    reasons.truncate(REASONS);
    reasons.extend(
        (omitted_count > 0).then(|| format!("and {omitted_count} more (punctual show --json)")),
    );
    (!reasons.is_empty()).then(|| format::escape_unsafe(&reasons.join("; ")))
}
