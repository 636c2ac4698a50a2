//! The figures of a run as OpenMetrics text.

use punctual_analyze::PhaseView;
use punctual_core::{MainPart, Nanos, SeriesData};
use punctual_report::openmetrics::{Exposition, Label};

/// Name, help, and the number of a series.
type Counter = (&'static str, &'static str, fn(&SeriesData) -> u64);

/// All figures of these phases so far.
pub fn text(experiment: &str, phases: &[PhaseView<'_>]) -> String {
    let (mut series, mut causes) = (Vec::new(), Vec::new());
    for phase in phases {
        for view in &phase.series {
            let labels: Vec<Label<'_>> = vec![
                ("experiment", experiment.to_owned()),
                ("phase", phase.meta.name.clone()),
                ("series", view.meta.name.clone()),
            ];
            if let Some(account) = view.account.and_then(|account| account.known()) {
                let parts = MainPart::ALL.iter().zip(account.account.time_by_part());
                causes.extend(parts.map(|(part, ns)| {
                    let cause = [("cause", part.id().to_owned())];
                    (labels.iter().cloned().chain(cause).collect(), Nanos(ns as i64))
                }));
            }
            series.push((labels, &view.state.data));
        }
    }
    let mut text = Exposition::default();
    text.histograms("punctual_latency_seconds", "Latencies of samples.", &series);
    let worst = series.iter().filter_map(|(labels, data)| Some((labels.clone(), data.max?)));
    let worst: Vec<(Vec<Label<'_>>, Nanos)> = worst.collect();
    text.time_gauges("punctual_latency_worst_seconds", "The longest latency.", &worst);
    let counters: [Counter; 3] = [
        ("punctual_samples", "Samples that were recorded.", SeriesData::count),
        ("punctual_missed_periods", "Periods without a sample of their own.", |of| {
            of.losses.overruns
        }),
        ("punctual_samples_lost", "Samples that were lost.", |of| of.losses.dropped),
    ];
    for (name, help, value) in counters {
        let values = series.iter().map(|(labels, data)| (labels.clone(), value(data)));
        text.counters(name, help, &values.collect::<Vec<_>>());
    }
    text.time_counters("punctual_latency_cause_seconds", "Latencies by cause.", &causes);
    text.finish()
}
