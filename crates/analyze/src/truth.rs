//! Holds explained samples against what was injected while they were taken.

use punctual_bundle::explanation::{ExplainedPart, ExplainedSample};
use punctual_bundle::truth::TruthScore;
use std::collections::BTreeMap;

/// A sample is affected from this overlap on, in ns, if that is at least half of it; and it is
/// given to a cause from as much of that cause on.
pub const LEAST_NS: i64 = 20_000;

/// An injected cause was at work from `begin` to `end`, in ns on CLOCK_MONOTONIC.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Injected {
    /// The first instant.
    pub begin: i64,
    /// The last instant.
    pub end: i64,
}

/// What an explanation must name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Expected<'e> {
    /// The ids of causes that are right, each with its culprit.
    pub causes: &'e [(&'e str, &'e str)],
    /// Whether the culprit's name is also that of what is not injected: then nothing is false.
    pub is_shared: bool,
}

impl Expected<'_> {
    fn is(&self, part: &ExplainedPart) -> bool {
        let who = part.who.as_deref().unwrap_or_default();
        self.causes.contains(&(&part.cause, who))
    }
}

/// The score of explained samples, with the injections in the order of time.
pub fn score(
    samples: &[ExplainedSample],
    injected: &[Injected],
    expected: Expected<'_>,
) -> TruthScore {
    let mut score = TruthScore { explained: samples.len() as u64, ..TruthScore::default() };
    for sample in samples {
        let end = sample.at.saturating_add(sample.latency_ns);
        let overlap: i64 = injected
            .iter()
            .map(|one| one.end.min(end).saturating_sub(one.begin.max(sample.at)).max(0))
            .sum();
        let of = |is: &dyn Fn(&ExplainedPart) -> bool| -> i64 {
            sample.parts.iter().filter(|part| is(part)).map(|part| part.ns).sum()
        };
        let named = of(&|part| expected.is(part));
        let (largest, is_right) = largest_part(sample, expected);
        // What begins after the sample was due may delay it for another reason: with preemption
        // none or voluntary a task in the kernel is not preempted, whatever it does there. And what
        // the thread preempts, such as a softirq with PREEMPT_RT, goes on after its sample.
        let is_due_within =
            injected.iter().any(|one| (one.begin..one.end).contains(&sample.at) && one.end <= end);
        if !is_due_within || overlap < LEAST_NS || overlap.saturating_mul(2) < sample.latency_ns {
            let is_false = is_right && !expected.is_shared && overlap == 0 && named >= LEAST_NS;
            score.falsely_named += u64::from(is_false);
            continue;
        }
        score.affected += 1;
        score.latency_ns += sample.latency_ns;
        score.unknown_ns += of(&|part| part.cause == "unknown");
        score.time_ns += overlap;
        score.time_error_ns += (named - overlap).abs();
        if is_right {
            score.right += 1;
        } else {
            *score.confused.entry(largest).or_default() += 1;
        }
    }
    score
}

/// The cause with the most of a sample, and whether that is the right one with the right culprit.
fn largest_part(sample: &ExplainedSample, expected: Expected<'_>) -> (String, bool) {
    let mut times: BTreeMap<(&str, bool), i64> = BTreeMap::new();
    for part in &sample.parts {
        *times.entry((&part.cause, expected.is(part))).or_default() += part.ns;
    }
    let largest = times.into_iter().max_by_key(|(_, ns)| *ns);
    largest.map_or((String::new(), false), |((cause, is_right), _)| (cause.to_owned(), is_right))
}

#[cfg(test)]
mod tests;
