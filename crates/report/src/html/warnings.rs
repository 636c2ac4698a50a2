//! Findings for the page, in the order of [`Finding::sort_rank`]; equal ones of several CPUs and
//! bundles are merged.

use super::ReportInput;
use super::text::{clip_text, format_name};
use punctual_bundle::Completeness;
use punctual_core::finding::Rank;
use punctual_core::{Finding, Severity};
use serde::Serialize;
use std::collections::HashSet;

/// Kinds of findings beyond this are only counted.
const MAX_KINDS: usize = 60;
/// At most this many kinds are collected; punctual itself has about a hundred.
const MAX_SEEN: usize = 1_000;
/// Different sentences of one kind beyond this are only counted.
const MAX_SENTENCES: usize = 12;
/// Subjects of one sentence beyond this are only counted.
const MAX_SUBJECTS: usize = 10;
/// Pieces of evidence for one sentence beyond this are only counted.
const MAX_PLACES: usize = 60;
/// A sentence is cut at this many characters.
const MAX_LENGTH: usize = 600;

/// Findings of one kind.
#[derive(Serialize)]
pub struct PageWarning {
    /// The stable word for it.
    id: String,
    /// `bad`, `warning`, `advice`, `note`.
    severity: String,
    /// The findings and their places.
    sentences: Vec<Sentence>,
    more: usize,
    /// The remedies; several if they differ.
    remedies: Vec<String>,
    /// The bundles that have it, if there are several and not all have it.
    bundles: Option<String>,
    #[serde(skip)]
    weight: Severity,
    #[serde(skip)]
    rank: Rank,
    #[serde(skip)]
    places: Vec<usize>,
}

/// A sentence with the places where it holds.
#[derive(Serialize)]
struct Sentence {
    text: String,
    places: Vec<WarningPlace>,
    more: usize,
}

/// Subjects that share their evidence.
#[derive(Serialize)]
struct WarningPlace {
    subjects: Vec<String>,
    more: usize,
    evidence: Option<String>,
}

/// All warnings, and the number of kinds that are not shown.
#[derive(Serialize)]
pub struct PageWarnings {
    /// Warnings that must be read before the figures are trusted.
    pub grave: Vec<PageWarning>,
    /// Further information.
    pub light: Vec<PageWarning>,
    pub more: usize,
}

/// The findings of all bundles combined.
pub fn collect_warnings(inputs: &[ReportInput<'_>], labels: &[String]) -> PageWarnings {
    let (mut all, mut strange): (Vec<PageWarning>, usize) = (Vec::new(), 0);
    for (place, input) in inputs.iter().enumerate() {
        for finding in findings_of(input) {
            strange += usize::from(!add(&mut all, place, &finding));
        }
    }
    for warning in &mut all {
        let names: Vec<&str> = warning
            .places
            .iter()
            .take(6)
            .filter_map(|p| labels.get(*p))
            .map(String::as_str)
            .collect();
        let unnamed_bundles = warning.places.len().saturating_sub(6);
        warning.bundles = match (labels.len(), warning.places.len()) {
            (1, _) => None,
            (all, these) if all == these => Some(format!("all {all} bundles")),
            _ if unnamed_bundles > 0 => {
                Some(format!("{} and {unnamed_bundles} more", names.join(", ")))
            }
            _ => Some(names.join(", ")),
        };
    }
    all.sort_by_key(|warning| warning.rank);
    let omitted_kinds = all.len().saturating_sub(MAX_KINDS) + strange;
    all.truncate(MAX_KINDS);
    let (grave, light) = all.into_iter().partition(|warning| warning.weight >= Severity::Warning);
    PageWarnings { grave, light, more: omitted_kinds }
}

/// The findings of a bundle; those that the summary lacks are taken from the bundle itself, so that
/// none is lost.
fn findings_of(input: &ReportInput<'_>) -> Vec<Finding> {
    let summary_findings: HashSet<(&str, &str)> =
        input.summary.findings.iter().map(|f| (f.id.as_str(), f.subject.as_str())).collect();
    let bundle_findings = input
        .bundle
        .findings
        .iter()
        .filter(|f| !summary_findings.contains(&(f.id.as_str(), f.subject.as_str())));
    let mut all_findings: Vec<Finding> =
        input.summary.findings.iter().chain(bundle_findings).cloned().collect();
    if input.bundle.completeness == Completeness::CutOff
        && !all_findings.iter().any(|f| f.id == "cut-off")
    {
        all_findings.push(Finding::new(
            "cut-off",
            Severity::Warning,
            "system",
            "The run has no recorded end: the page shows the last checkpoint.",
        ));
    }
    let of_recording = input.recording.map(|digest| digest.warnings()).unwrap_or_default();
    all_findings.extend(
        of_recording
            .into_iter()
            .filter(|f| !summary_findings.contains(&(f.id.as_str(), f.subject.as_str()))),
    );
    if !all_findings.iter().any(|f| f.id == "bundle-damaged") {
        let damage = input.bundle.damage.iter().take(MAX_SENTENCES);
        all_findings.extend(
            damage.map(|why| {
                Finding::new("bundle-damaged", Severity::Warning, "system", why.clone())
            }),
        );
    }
    all_findings
}

/// Capitalises a sentence.
fn capitalize_sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().into_iter().flat_map(char::to_uppercase);
    clip_text(&first.chain(letters).collect::<String>(), MAX_LENGTH)
}

/// Adds a finding to those of its kind; returns false if there are too many kinds already.
fn add(all: &mut Vec<PageWarning>, place: usize, finding: &Finding) -> bool {
    let known_position =
        all.iter().position(|d| d.id == finding.id && d.weight == finding.severity);
    let warning = match known_position {
        Some(k) => &mut all[k],
        None if all.len() >= MAX_SEEN => return false,
        None => {
            all.push(PageWarning {
                id: finding.id.clone(),
                severity: finding.severity.to_string(),
                sentences: Vec::new(),
                more: 0,
                remedies: Vec::new(),
                bundles: None,
                weight: finding.severity,
                rank: finding.sort_rank(),
                places: Vec::new(),
            });
            let last = all.len() - 1;
            &mut all[last]
        }
    };
    if warning.places.last() != Some(&place) {
        warning.places.push(place);
    }
    // A remedy can be a command: it stays unchanged.
    let remedy = finding.remedy.as_deref().map(|text| clip_text(text, MAX_LENGTH));
    warning.remedies.extend(
        remedy.filter(|text| {
            !warning.remedies.contains(text) && warning.remedies.len() < MAX_SENTENCES
        }),
    );
    let text = capitalize_sentence(&finding.message);
    let place = warning.sentences.iter().position(|s| s.text == text);
    match place {
        Some(k) => warning.sentences[k].add(finding),
        None if warning.sentences.len() >= MAX_SENTENCES => warning.more += 1,
        None => {
            let mut new = Sentence { text, places: Vec::new(), more: 0 };
            new.add(finding);
            warning.sentences.push(new);
        }
    }
    true
}

impl Sentence {
    fn add(&mut self, finding: &Finding) {
        let evidence = finding.evidence.as_deref().map(|text| clip_text(text, MAX_LENGTH));
        let has_no_place =
            ["system", "run", Finding::READINESS].contains(&finding.subject.as_str());
        let subject = (!has_no_place).then(|| format_name(&finding.subject));
        let place = self.places.iter().position(|place| place.evidence == evidence);
        match place {
            Some(k) => {
                let place = &mut self.places[k];
                let new = subject.filter(|subject| !place.subjects.contains(subject));
                if place.subjects.len() < MAX_SUBJECTS {
                    place.subjects.extend(new)
                } else {
                    place.more += new.iter().len()
                }
            }
            None if self.places.len() >= MAX_PLACES => self.more += 1,
            None => self.places.push(WarningPlace {
                subjects: subject.into_iter().collect(),
                more: 0,
                evidence,
            }),
        }
    }
}
