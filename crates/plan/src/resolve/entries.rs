//! Measures of entries into the kernel: without measuring threads, settings of threads have no
//! effect.

use super::{Resolver, place};
use crate::experiment::MeasureSpec;
use crate::kinds::EntriesPlan;
use crate::plan::Workload;
use crate::problem::ProblemKind;
use crate::text::each;
use crate::words::Placement;
use punctual_core::CpuSet;

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
            ("threads", threads, place(&spec.threads, spec.span)),
            ("samples", spec.samples.is_some(), place(&spec.samples, spec.span)),
            ("counters", spec.counters.is_some(), place(&spec.counters, spec.span)),
        ];
        for (key, is_set, span) in refused {
            if is_set {
                self.without_effect(key, span, NO_THREAD);
            }
        }
        for at in each(&spec.require) {
            if let Some(why) = EntriesPlan::refuses(&at.value, cpus) {
                self.error(ProblemKind::Combination, at.span, why, WRITE);
            }
        }
    }
}
