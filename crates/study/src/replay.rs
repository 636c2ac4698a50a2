//! A sample counted by a replay of its run, instruction by instruction.

use punctual_bundle::Bundle;
use punctual_bundle::exact::{EXACT_MEMBER, ExactDocument, ExplainedExactSample};
use punctual_bundle::summary::Summary;
use punctual_core::Nanos;
use punctual_explain::answer::find_deciding;

/// The sample of this phase and series with this latency, if the same run was replayed: if the
/// digest of all its samples is this one.
pub(crate) fn replayed_sample(
    run: &Bundle,
    digest: Option<&str>,
    (phase, series): (&str, &str),
    latency: Nanos,
) -> Option<ExplainedExactSample> {
    let exact: ExactDocument = run.read_document(EXACT_MEMBER).ok()??;
    if Some(exact.digest.as_str()) != digest {
        return None;
    }
    let is_it = |one: &ExplainedExactSample| {
        (one.phase.as_str(), one.series.as_str(), one.latency_ns) == (phase, series, latency.ns())
    };
    exact.worst.into_iter().find(is_it)
}

/// The longest sample of the series that decided.
pub fn of_answer(run: &Bundle, summary: &Summary) -> Option<ExplainedExactSample> {
    let deciding_series = find_deciding(summary)?;
    let longest = Nanos(deciding_series.series.max?);
    replayed_sample(
        run,
        summary.digest.as_deref(),
        (&deciding_series.phase.name, &deciding_series.series.name),
        longest,
    )
}
