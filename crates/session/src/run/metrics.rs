//! The figures of a run as OpenMetrics text, in a file while it goes on.

use super::companion::Companion;
use super::phase_run::{PhaseRun, views};
use crate::exit::Failure;
use crate::metrics::MetricsFile;
use punctual_analyze::PhaseView;
use punctual_core::{Finding, MainPart, Nanos, SeriesData};
use punctual_report::openmetrics::{Exposition, Label};
use punctual_sys::clock;

/// The file, and the name of the experiment.
pub struct RunMetrics(pub MetricsFile, pub String);

impl Companion for RunMetrics {
    fn tick(&mut self, phase: &mut PhaseRun) {
        if self.0.is_due(clock::monotonic()) {
            self.0.write(&text(&self.1, &[phase.view()]));
        }
    }

    fn finish(mut self: Box<Self>, phases: &[PhaseRun]) -> Result<Vec<Finding>, Failure> {
        if !phases.is_empty() {
            self.0.write(&text(&self.1, &views(phases)));
        }
        Ok(self.0.finding("run").into_iter().collect())
    }
}

/// Name, help, and the number of a series.
type Counter = (&'static str, &'static str, fn(&SeriesData) -> u64);

/// All figures of these phases so far.
fn text(experiment: &str, phases: &[PhaseView<'_>]) -> String {
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
            of.losses.skipped
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
