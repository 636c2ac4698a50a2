//! The results of a replay as a document.

use super::path::{ExecutionContext, Path};
use super::phases::{self, PathPart};
use super::{Exact, ExactSample};
use punctual_bundle::Bundle;
use punctual_bundle::exact::{
    EXACT_SCHEMA, ExactCall, ExactDocument, ExactLine, ExactPart, ExplainedExactSample, MoreThan,
};
use punctual_core::{Finding, Nanos, Severity};

/// The maximum number of functions listed per sample; the rest is in its calls.
const FUNCTIONS: usize = 50;
pub const SECTIONS: usize = 50;
/// The maximum number of calls listed per sample: a page shows no more, and 4 million instructions
/// have 300,000.
const CALLS_MAX: usize = 20_000;

impl Exact {
    /// The document; `bundle` is the replayed run, which names its worst samples, and `digest` that
    /// of the replay. `count` limits the samples.
    pub fn to_document(
        &self,
        bundle: &Bundle,
        kernel: &str,
        digest: &str,
        insn: Nanos,
        samples: usize,
    ) -> ExactDocument {
        let typical = self.typical_sample();
        // The plugin also saw the warm-up of threads, which is not in the bundle.
        let mut worst: Vec<ExplainedExactSample> = self
            .worst
            .iter()
            .map(|sample| self.explain_sample(sample, bundle, typical))
            .filter(|sample| !sample.series.is_empty())
            .take(samples)
            .collect();
        let mut findings = self.limit_findings();
        if self.cut > 0 {
            let evidence = format!("{} of {} that were taken", self.cut, self.samples_seen);
            findings.push(
                Finding::new(
                    "exact-cut",
                    Severity::Warning,
                    "system",
                    "the beginning of long samples was not kept",
                )
                .with_evidence(evidence)
                .with_remedy("the parts at their end are whole"),
            );
        }
        let shortened = worst.iter().filter(|sample| sample.calls.len() > CALLS_MAX).count();
        worst.iter_mut().for_each(|sample| sample.calls.truncate(CALLS_MAX));
        if shortened > 0 {
            let evidence =
                format!("{shortened} of {} samples; {CALLS_MAX} calls of each", worst.len());
            findings.push(
                Finding::new(
                    "exact-calls",
                    Severity::Note,
                    "system",
                    "not all calls of long samples are listed",
                )
                .with_evidence(evidence)
                .with_remedy("their functions and parts are of all calls"),
            );
        }
        ExactDocument {
            schema: EXACT_SCHEMA.to_owned(),
            kernel: kernel.to_owned(),
            ns_per_instruction: u32::try_from(insn.0).unwrap_or(0),
            digest: digest.to_owned(),
            instructions: self.insns,
            measured: self.kept,
            cut: self.cut,
            worst,
            ordinary: typical.map(|sample| self.explain_sample(sample, bundle, None)),
            sections: self.sections.clone().keep_longest(SECTIONS),
            difference: None,
            findings,
        }
    }

    /// The parts of the run that were not seen.
    pub fn limit_findings(&self) -> Vec<Finding> {
        let finding =
            |id: &str, severity, message: &str| Finding::new(id, severity, "system", message);
        let lost = (self.lost > 0).then(|| {
            finding("exact-lost", Severity::Warning, "not all that was executed is counted")
                .with_evidence(format!("{} blocks and sections found no room", self.lost))
                .with_remedy("run less at a time")
        });
        let uncounted =
            (self.kept > 0 && self.sections.preemption_disabled.is_empty()).then(|| {
                let message = "no section with preemption disabled was seen";
                finding("preemption-uncounted", Severity::Note, message)
                    .with_evidence("the kernel's symbols name neither __preempt_count nor pcpu_hot")
                    .with_remedy("sections with interrupts disabled are whole")
            });
        lost.into_iter().chain(uncounted).collect()
    }

    fn explain_sample(
        &self,
        sample: &ExactSample,
        bundle: &Bundle,
        typical: Option<&ExactSample>,
    ) -> ExplainedExactSample {
        let (phase, series, number) = find_sample_name(bundle, sample).unwrap_or_default();
        let excess_functions = typical.map(|typical| sample.more_than(typical)).unwrap_or_default();
        ExplainedExactSample {
            phase,
            series,
            sample: number,
            due: sample.due,
            latency_ns: sample.latency.0,
            thread: sample.thread.clone().unwrap_or_default(),
            instructions: sample.path.insns,
            without: sample.path.without,
            response: phases::response_instructions(&sample.path, &sample.parts),
            parts: sample.parts.iter().map(describe_part).collect(),
            functions: sample.functions.iter().take(FUNCTIONS).cloned().collect(),
            lines: sample
                .path
                .lines
                .iter()
                .take(FUNCTIONS)
                .map(|(line, function, own)| ExactLine {
                    line: line.clone(),
                    function: function.clone(),
                    own: *own,
                })
                .collect(),
            more: excess_functions
                .into_iter()
                .take(FUNCTIONS)
                .map(|more| MoreThan {
                    function: more.function,
                    here: more.here,
                    there: more.there,
                })
                .collect(),
            calls: self.describe_calls(&sample.path),
        }
    }

    fn describe_calls(&self, path: &Path) -> Vec<ExactCall> {
        let context = |context: ExecutionContext| match context {
            ExecutionContext::Interrupt => "interrupt".to_owned(),
            ExecutionContext::Task(Some(task)) => self.tasks[task].clone(),
            ExecutionContext::Task(None) => "the task before".to_owned(),
        };
        path.calls
            .iter()
            .map(|call| ExactCall {
                function: call.function.clone(),
                context: context(call.context),
                depth: call.depth as u32,
                begin: call.begin,
                end: call.end,
            })
            .collect()
    }
}

fn describe_part(part: &PathPart) -> ExactPart {
    ExactPart {
        kind: part.kind.as_str().to_owned(),
        begin: part.begin,
        instructions: part.end - part.begin,
        functions: part.functions.clone(),
        stack: part.stack.clone(),
    }
}

/// The name of a sample if it is among the worst of the bundle: its phase, series and number.
fn find_sample_name(
    bundle: &Bundle,
    sample: &ExactSample,
) -> Option<(String, String, Option<u64>)> {
    bundle.all_series().find_map(|(phase, series)| {
        let found = series.state.data.worst.iter().find(|worst| {
            worst.due.0 == sample.due && worst.woke.0 - worst.due.0 == sample.latency.0
        })?;
        Some((phase.to_owned(), series.meta.name.clone(), Some(found.seq)))
    })
}
