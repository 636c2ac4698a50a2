//! Measures of a program: checks of the keys besides its own.

use super::cpus::Zones;
use super::{Resolver, place_or};
use crate::experiment::MeasureSpec;
use crate::kinds::EntriesPlan;
use crate::plan::Workload;
use crate::problem::ProblemKind;
use crate::text::{Span, list_items};
use crate::words::Placement;
use punctual_core::{CpuSet, NamedSeries};

impl Resolver<'_> {
    /// Rejects settings that a measure of a program cannot have, and those that only a program can
    /// have.
    pub(super) fn check_program(
        &mut self,
        spec: &MeasureSpec,
        workload: &Workload,
        cpus: &CpuSet,
        zones: &Zones,
    ) {
        let Workload::Program(program) = workload else {
            if !matches!(workload, Workload::Entries(_)) {
                self.check_no_series_is_named(spec);
            }
            return;
        };
        if let Some(command) = &program.command {
            let word = command.0.first().map_or("", String::as_str);
            self.find_program(word, spec.span);
        } else if cpus != zones.measured_cpus() {
            self.without_effect("cpus", place_or(&spec.cpus, spec.span), STARTED_BY_OTHERS);
        }
        let usual = |range, resolution| {
            let usual = workload.default_histogram();
            range == usual.range && resolution == usual.resolution
        };
        let (range, resolution) = (spec.histogram_range(), spec.histogram_resolution());
        let histogram = range.zip(resolution).is_some_and(|(r, b)| !usual(r.value, b.value))
            || range.is_some() != resolution.is_some();
        let refused = [
            ("histogram", histogram, place_or(&range, spec.span), "it follows from the period"),
            ("samples", spec.samples.is_some(), place_or(&spec.samples, spec.span), ITS_OWN),
            ("counters", spec.counters.is_some(), place_or(&spec.counters, spec.span), ITS_OWN),
        ];
        for (key, is_set, span, because) in refused {
            if is_set {
                self.without_effect(key, span, because);
            }
        }
        for at in list_items(&spec.require) {
            if let Some(NamedSeries::Entry(series)) = at.value.kind {
                let message =
                    format!("a program has no series `{}`: that is of `entries`", series.as_str());
                let help = format!("write `{}`, or `response`", at.value.requirement);
                self.note_error(ProblemKind::Combination, at.span, message, &help);
            }
        }
    }

    pub(super) fn without_effect(&mut self, key: &str, span: Span, because: &str) {
        let message = format!("`{key}` has no effect here: {because}");
        self.note_error(ProblemKind::Combination, span, message, &format!("leave `{key}` out"));
    }

    /// Rejects series names elsewhere: only threads of a program are named by their run-time names,
    /// and only CPUs have entries.
    fn check_no_series_is_named(&mut self, spec: &MeasureSpec) {
        for at in list_items(&spec.require) {
            if at.value.kind.is_some() {
                let message = match at.value.kind {
                    Some(NamedSeries::Entry(_)) => {
                        "only a measure of `entries` has series of these names"
                    }
                    _ => "only the threads of a `program` have series of these names",
                };
                let help = format!("write `{}`, which is about each series", at.value.requirement);
                self.note_error(ProblemKind::Combination, at.span, message, &help);
            }
        }
    }
}

const STARTED_BY_OTHERS: &str = "punctual does not start this program";
const ITS_OWN: &str = "its threads are the program's own";

// Measures of entries into the kernel: without measuring threads, settings of threads have no
// effect.

/// Valid requirements on entries.
const WRITE: &str = "write `interruption max < 50us`, `entries < 10` or `cpu3/entry p99 < 20us`";
const NO_THREAD: &str = "no thread measures";

impl Resolver<'_> {
    /// Rejects settings that a measure of entries cannot have.
    pub(super) fn check_entries(&mut self, spec: &MeasureSpec, workload: &Workload, cpus: &CpuSet) {
        if !matches!(workload, Workload::Entries(_)) {
            return;
        }
        let threads = spec.threads.as_ref().is_some_and(|at| at.value != Placement::PerCpu);
        let refused = [
            ("threads", threads, place_or(&spec.threads, spec.span)),
            ("samples", spec.samples.is_some(), place_or(&spec.samples, spec.span)),
            ("counters", spec.counters.is_some(), place_or(&spec.counters, spec.span)),
        ];
        for (key, is_set, span) in refused {
            if is_set {
                self.without_effect(key, span, NO_THREAD);
            }
        }
        for at in list_items(&spec.require) {
            if let Some(why) = EntriesPlan::reason_to_refuse(&at.value, cpus) {
                self.note_error(ProblemKind::Combination, at.span, why, WRITE);
            }
        }
    }
}
