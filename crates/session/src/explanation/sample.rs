//! One sample.

use punctual_core::{CpuSet, Event};
use punctual_explain::Explained;
use punctual_explain::explain::{LatencyInterval, explain};
use punctual_explain::gaps::Gaps;
use punctual_explain::threads::Coverage;

/// Explains a sample by the events around it, in the order of time. `gaps`: the recording's losses.
pub(crate) fn explain_sample(
    phase: &str,
    series: &str,
    late: LatencyInterval,
    events: Vec<Event>,
    left_out: CpuSet,
    coverage: &Coverage,
) -> Explained {
    let gaps = Gaps::of(events.iter().copied());
    let explanation = explain(late, &events, coverage, &gaps);
    Explained { phase: phase.to_owned(), series: series.to_owned(), explanation, events, left_out }
}
