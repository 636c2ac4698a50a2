//! Questions about the figures of an import, as for a run.

use super::recorded::{ImportedFile, Thread};
use crate::meta::DEADLINE;
use punctual_core::{Finding, Metric, Nanos, Requirement, SeriesRequirement, Severity};

/// The questions to all threads of an import.
#[derive(Clone, Debug, Default)]
pub struct ImportQuestions {
    /// Only the thread of this name.
    pub thread: Option<String>,
    /// Samples longer than this are counted.
    pub deadline: Option<Nanos>,
    pub requirements: Vec<SeriesRequirement>,
}

impl ImportQuestions {
    /// Restricts the import to the requested threads, counts their samples beyond the deadline, and
    /// rejects questions that such a file cannot answer.
    pub(super) fn apply_questions(&self, recorded: &mut ImportedFile) -> Result<(), String> {
        if let Some(name) = &self.thread {
            let names: Vec<String> = recorded.threads.iter().map(Thread::series_name).collect();
            recorded.threads.retain(|thread| thread.series_name() == *name);
            if recorded.threads.is_empty() {
                let names = names.join(", ");
                return Err(format!("--thread: there is no thread {name:?} in it: it has {names}"));
            }
        }
        for requirement in &self.requirements {
            if let Some(why) = unanswerable_reason(requirement, recorded) {
                return Err(format!("--require: {requirement} cannot be judged: {why}"));
            }
        }
        self.deadline.map_or(Ok(()), |deadline| count_beyond_deadline(deadline, recorded))
    }
}

fn count_beyond_deadline(deadline: Nanos, recorded: &mut ImportedFile) -> Result<(), String> {
    recorded.details.insert(DEADLINE.to_owned(), deadline.to_string());
    for thread in &recorded.threads {
        let Some(longer) = thread.longer_than(deadline, recorded.unit, recorded.step) else {
            return Err(format!(
                "--deadline: how many samples of {} took longer than {deadline} is not in it: it \
                 has no such histogram; --require 'max < {deadline}' can be judged",
                thread.series_name()
            ));
        };
        if longer > 0 {
            let message = format!(
                "{longer} of {} samples of {} took longer than {deadline}",
                thread.cycle_count(),
                thread.series_name()
            );
            let finding = Finding::new("deadline-missed", Severity::Warning, "imported", message);
            recorded.findings.push(finding);
        }
    }
    Ok(())
}

/// Why such a file can never decide a requirement.
fn unanswerable_reason(asked: &SeriesRequirement, recorded: &ImportedFile) -> Option<String> {
    let SeriesRequirement { kind, requirement: Requirement { metric, .. }, .. } = asked;
    if let Some(kind) = kind {
        let word = kind.as_str();
        return Some(format!("it has no series `{word}`: leave the word out"));
    }
    let has_histogram = |thread: &Thread| thread.undistributed == 0;
    let is_known = match metric {
        Metric::Min | Metric::Mean | Metric::Max | Metric::Count => true,
        Metric::Percentile(_) | Metric::CorrectedPercentile(_) => {
            recorded.threads.iter().all(has_histogram)
        }
        _ => false,
    };
    (!is_known).then(|| format!("{} does not state the {metric}", recorded.source))
}
