//! The CPUs of a phase whose entries into the kernel are measured.

use super::super::entries::{Above, EntriesContext, EntriesRun};
use super::super::measure::MeasureRun;
use super::super::phase_run::PhaseRun;
use super::{Controller, PhaseError};
use punctual_bundle::Outcome;
use punctual_host::environment::Environment;
use punctual_plan::MeasurePlan;
use punctual_record::Backend;

impl Controller<'_, '_, '_> {
    /// Prepares the CPUs of a measure, with the files of their series.
    pub(super) fn prepare_entries(
        &mut self,
        measure: &MeasurePlan,
        current: &mut PhaseRun,
    ) -> Result<(), PhaseError> {
        let attached = self.run.attached.as_ref();
        let first = current.series.len();
        let context = EntriesContext {
            phase: &self.phase.name,
            is_attached: attached.is_some(),
            backend: attached.map_or(Backend::Auto, |attached| attached.backend),
            controller: &self.run.plan.controller_cpus,
            first,
        };
        let prepared = EntriesRun::prepare(measure, &context);
        let (entries, findings) = prepared.map_err(PhaseError::Missing)?;
        self.run.findings.extend(findings);
        for meta in entries.series_metas(measure) {
            self.add_series(current, measure, meta)?;
        }
        current.entries.push(entries);
        current.measures.push(MeasureRun::without_threads(first));
        Ok(())
    }

    /// Adds entries; returns the outcome of an interruption above the limit.
    pub(super) fn drain_entries(&mut self, current: &mut PhaseRun) -> Option<Outcome> {
        let PhaseRun { entries, series, .. } = current;
        let above: Vec<Above> = entries.iter_mut().filter_map(|of| of.drain(series)).collect();
        let Above { series, latency, seq } = above.into_iter().next()?;
        Some(self.stopped_above(format!("{}/{series}", self.phase.name), latency, Some(seq)))
    }

    /// Stops measuring them.
    pub(super) fn stop_entries(&mut self, current: &mut PhaseRun) {
        let PhaseRun { entries, series, .. } = current;
        for of in entries {
            let environment = self.run.writer.read_document::<Environment>("environment");
            self.run.findings.extend(of.finish(environment.ok().flatten(), series));
        }
    }
}
