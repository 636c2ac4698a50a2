//! The figures of a run as OpenMetrics text, in a file during the run.

mod program;

use super::companion::{Companion, CompanionResults};
use super::phase_run::{PhaseRun, phase_views};
use crate::exit::Failure;
use crate::metrics::MetricsFile;
use punctual_bundle::Verdict;
use punctual_bundle::openmetrics::{Exposition, Label};
use punctual_core::{MAIN_PARTS, Nanos, SeriesData};
use punctual_stats::PhaseView;
use punctual_sys::clock;
use std::cell::RefCell;
use std::rc::Rc;

/// The file, and the name of the experiment.
pub struct RunMetrics(pub MetricsFile, pub String);

/// Shared, as the end of a run writes the verdict into the file too.
pub type SharedMetrics = Rc<RefCell<RunMetrics>>;

impl RunMetrics {
    /// Writes the last figures with the verdict.
    pub(crate) fn write_final(
        &mut self,
        phases: &[PhaseRun],
        verdict: &Verdict,
    ) -> Result<(), Failure> {
        self.0.write_final(&format_metrics(&self.1, phases, Some(verdict)))
    }
}

impl Companion for SharedMetrics {
    fn on_tick(&mut self, phase: &mut PhaseRun) {
        let RunMetrics(file, experiment) = &mut *self.borrow_mut();
        if file.is_due(clock::monotonic_now()) {
            file.write(format_metrics(experiment, std::slice::from_ref(phase), None));
        }
    }

    fn finish(self: Box<Self>, phases: &[PhaseRun]) -> CompanionResults {
        let RunMetrics(file, experiment) = &mut *self.borrow_mut();
        if !phases.is_empty() {
            file.write(format_metrics(experiment, phases, None));
        }
        CompanionResults::from_findings(file.failure_finding("run"))
    }
}

/// Name, help, and the value for a series.
type SeriesMetric = (&'static str, &'static str, fn(&SeriesData) -> u64);

/// All figures of these phases so far: for an attached program, those of its threads.
fn format_metrics(experiment: &str, phases: &[PhaseRun], verdict: Option<&Verdict>) -> String {
    let mut programs = phases.iter().flat_map(|phase| &phase.programs);
    match programs.find(|program| program.is_attached) {
        Some(attached) => program::format_program(experiment, &attached.cycles, verdict),
        None => text_of_series(experiment, &phase_views(phases), verdict),
    }
}

fn text_of_series(experiment: &str, phases: &[PhaseView<'_>], verdict: Option<&Verdict>) -> String {
    let (mut series, mut causes) = (Vec::new(), Vec::new());
    for phase in phases {
        for view in &phase.series {
            let labels: Vec<Label<'_>> = vec![
                ("experiment", experiment.to_owned()),
                ("phase", phase.meta.name.clone()),
                ("series", view.meta.name.clone()),
            ];
            if let Some(account) = view.account.and_then(|account| account.known_value()) {
                let times = account.account.time_by_part();
                causes.extend(MAIN_PARTS.iter().map(|part| {
                    let cause = [("cause", part.id().to_owned())];
                    (
                        labels.iter().cloned().chain(cause).collect(),
                        Nanos(times[*part as usize] as i64),
                    )
                }));
            }
            series.push((labels, &view.state.data));
        }
    }
    let mut text = Exposition::default();
    text.add_histograms("punctual_latency_seconds", "Latencies of samples.", &series);
    let worst = series.iter().filter_map(|(labels, data)| Some((labels.clone(), data.max?)));
    let worst: Vec<(Vec<Label<'_>>, Nanos)> = worst.collect();
    text.time_gauges("punctual_latency_worst_seconds", "The longest latency.", &worst);
    let counters: [SeriesMetric; 3] = [
        ("punctual_samples", "Samples that were recorded.", SeriesData::sample_count),
        ("punctual_missed_periods", "Periods without a sample of their own.", |of| {
            of.losses.skipped
        }),
        ("punctual_samples_lost", "Samples that were lost.", |of| of.losses.dropped),
    ];
    for (name, help, value) in counters {
        let values = series.iter().map(|(labels, data)| (labels.clone(), value(data)));
        text.add_counters(name, help, &values.collect::<Vec<_>>());
    }
    text.time_counters("punctual_latency_cause_seconds", "Latencies by cause.", &causes);
    if let Some(verdict) = verdict {
        text.add_verdict(&[("experiment", experiment.to_owned())], verdict);
    }
    text.finish()
}
