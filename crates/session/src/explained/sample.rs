//! One sample.

use punctual_analyze::Explained;
use punctual_analyze::explain::{LatencyInterval, explain};
use punctual_analyze::gaps::Gaps;
use punctual_analyze::threads::Coverage;
use punctual_core::{CpuSet, Event};

/// Explains a sample by the events around it, in the order of time. `gaps`: the recording's losses.
pub fn explain_sample(
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
