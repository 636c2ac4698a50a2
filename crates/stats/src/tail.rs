//! `punctual tail`: estimates of latencies longer than the measured ones. First the results without
//! a model ([`model_free`]); then a model ([`model`]), only behind its gates ([`gates`]). Not a
//! guaranteed bound (no WCET): docs/reference/tail.md describes the figures and their coverage.

pub mod causes;
mod fit;
mod gates;
pub(crate) mod gev;
pub(crate) mod gpd;
mod heldout;
pub(crate) mod independence;
pub mod model;
pub mod model_free;
mod peaks;
#[cfg(test)]
mod testdata;
#[cfg(test)]
mod tests;

use crate::Validity;
use crate::compare::run::{ComparedRun, ComparedView};
use causes::{ExplainedLatencies, KnownCauses};
use punctual_bundle::summary::Proof;
use punctual_bundle::tail::{Model, ModelGate, SCHEMA, SeriesTail, Tails};
use punctual_bundle::{Bundle, BundleError};
use punctual_core::{Finding, Severity};

/// A level and its 95 % interval.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TailLevel {
    /// In ns.
    pub level: f64,
    /// The lower end; `None` if the data do not bound it.
    pub low: Option<f64>,
    pub high: Option<f64>,
}

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
pub enum TailError {
    /// The requested series does not exist.
    #[error("there is no series `{required}`; the bundle has: {known}")]
    NoSuchSeries { required: String, known: String },
    /// Samples are unreadable.
    #[error(transparent)]
    Bundle(#[from] BundleError),
}

/// The tails of a bundle's series, or of the requested one: `phase/series`, or the name of a series
/// in every phase. `explained` are the samples with kept windows.
pub fn of_bundle(
    bundle: &Bundle,
    name: &str,
    required: Option<&str>,
    explained: Option<&ExplainedLatencies>,
) -> Result<Tails, TailError> {
    let full = |phase: &str, series: &str| format!("{phase}/{series}");
    let is_wanted = |phase: &str, series: &str| {
        required.is_none_or(|w| w == series || w == full(phase, series))
    };
    let validity = Validity::of_bundle(bundle);
    let mut series = Vec::new();
    for phase in &bundle.phases {
        for one in phase.series.iter().filter(|one| is_wanted(&phase.meta.name, &one.meta.name)) {
            let run = ComparedRun::of_series(one, phase.meta.duration, ComparedView::Measured)?;
            let its = (phase.meta.name.clone(), one.meta.name.clone());
            let windows = explained.map(|all| all.get(&its).cloned().unwrap_or_default());
            let known = KnownCauses::of(windows, &one.account);
            let mut tail = of_run(full(&phase.meta.name, &one.meta.name), &run, &known);
            if let Some(proof) = validity.against_comparing(&phase.meta.name, &one.meta.name) {
                refuse(&mut tail.model, proof);
            }
            series.push(tail);
        }
    }
    if let (Some(required), true) = (required, series.is_empty()) {
        let known: Vec<String> =
            bundle.series().take(8).map(|(phase, series)| full(phase, &series.meta.name)).collect();
        return Err(TailError::NoSuchSeries {
            required: required.to_owned(),
            known: known.join(", "),
        });
    }
    let findings = series.iter().flat_map(warnings).collect();
    Ok(Tails {
        schema: SCHEMA.to_owned(),
        bundle: name.to_owned(),
        timebase: bundle.timebase(),
        confidence: 1.0 - model_free::ERROR,
        series,
        findings,
    })
}

/// Without a valid measurement there is no model.
fn refuse(model: &mut Model, proof: &Proof) {
    let refusal = format!(
        "it was not measured as requested ({} of {}): {}",
        proof.proof.word(),
        proof.subject,
        proof.why
    );
    let what = "it was measured as requested".to_owned();
    model.accepted = false;
    model.levels.clear();
    model.gates.insert(
        0,
        ModelGate { id: "valid".to_owned(), what, open: false, statistic: None, p: None },
    );
    model.refusals.insert(0, refusal);
}

/// The tail of one run of a series.
pub fn of_run(series: String, run: &ComparedRun, known: &KnownCauses) -> SeriesTail {
    let model = model::of(run, known);
    let threshold = model.peaks.as_ref().map(|peaks| peaks.threshold);
    let causes =
        known.beyond(threshold.map(|threshold| (threshold, model::beyond(run, threshold))));
    SeriesTail { series, seen: model_free::of(run), model, causes }
}

fn warnings(tail: &SeriesTail) -> Vec<Finding> {
    let seen = &tail.seen;
    let order = (seen.count > 0 && seen.effective.is_none()).then(|| {
        let message = "the clustering of long latencies is unknown: the bounds without a model \
                       assume independent samples";
        Finding::new("autocorrelation-unknown", Severity::Warning, &tail.series, message)
            .evidence(
                "the bundle holds too few samples in order of time (a short run, an import, \
                 keep_samples)",
            )
            .remedy("measure longer, with keep_samples")
    });
    let lost = (seen.lost > 0).then(|| {
        let message = "samples were lost: any of them may have been larger than the maximum";
        Finding::new("samples-lost", Severity::Warning, &tail.series, message)
            .evidence(format!("{} lost, {} recorded", seen.lost, seen.count))
    });
    let overruns = (seen.overruns > 0).then(|| {
        let message =
            "missed periods (coordinated omission): a burst has fewer samples than periods";
        Finding::new("overruns", Severity::Note, &tail.series, message)
            .evidence(format!("{} periods were missed", seen.overruns))
    });
    [order, lost, overruns].into_iter().flatten().collect()
}
