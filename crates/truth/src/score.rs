//! Scores explained samples against the causes injected while they were taken.

use super::document::TruthScore;
use punctual_bundle::explanation::{ExplainedPart, ExplainedSample};
use punctual_core::{Account, AccountBucket, CauseKind, MAIN_PARTS, MonotonicNs, Nanos};
use std::collections::BTreeMap;

/// The minimum overlap in ns, along with half of the sample, for a sample to count as affected.
/// Also the minimum part of a cause for a sample to be attributed to it.
pub const LEAST_NS: i64 = 20_000;

/// An injected cause was at work from `begin` to `end`, in ns on CLOCK_MONOTONIC.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Injected {
    pub begin: i64,
    pub end: i64,
    /// The role of this interval.
    pub role: Role,
}

/// The role of an interval in a delay.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Role {
    /// The start of a delay.
    #[default]
    Delay,
    /// The continuation of a delay after an interruption, which does not belong to the delay.
    GoesOn,
    /// The delay begins or ends within it, at an instant unknown to its maker.
    Perhaps,
    /// The maker of the delay works before and after it, and may delay samples as well.
    Around,
}

impl Injected {
    /// A delay, or its first interval.
    pub fn new(begin: i64, end: i64) -> Injected {
        Injected { begin, end, role: Role::Delay }
    }

    fn is_at_work(&self) -> bool {
        matches!(self.role, Role::Delay | Role::GoesOn)
    }

    fn in_common(&self, due: i64, end: i64) -> i64 {
        self.end.min(end).saturating_sub(self.begin.max(due)).max(0)
    }
}

/// The delays, each from its first instant to its last, in order of time.
pub fn whole_delays(injected: &[Injected]) -> Vec<Injected> {
    let mut delays: Vec<Injected> = Vec::new();
    for one in injected.iter().filter(|one| one.is_at_work()) {
        match delays.last_mut() {
            Some(delay) if one.role == Role::GoesOn => delay.end = one.end,
            _ => delays.push(Injected::new(one.begin, one.end)),
        }
    }
    delays
}

/// The content of a correct explanation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Expected<'e> {
    /// The ids of the correct causes, each with its culprit; `*` at the end of a name matches
    /// anything.
    pub causes: &'e [(&'e str, &'e str)],
    pub placing: Placing,
    /// Whether tasks without an injection share the culprit's name: then no attribution is false.
    pub is_shared: bool,
}

/// The samples that an injection delays.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Placing {
    /// Those due during the injection that ended after it.
    DueWithin,
    /// Those due during the injection, where the recorder of its end is itself delayed by it.
    DueAtAll,
    /// Those in which it began: the measured thread caused it.
    Within,
}

impl Expected<'_> {
    fn matches_part(&self, part: &ExplainedPart) -> bool {
        let who = part.who.as_deref().unwrap_or_default();
        self.causes.iter().any(|(cause, name)| {
            *cause == part.cause
                && name.strip_suffix('*').map_or(*name == who, |start| who.starts_with(start))
        })
    }

    /// Whether a sample is affected by one of these whole delays, with `overlap` ns injected.
    fn affects_sample(&self, delays: &[Injected], overlap: i64, due: i64, end: i64) -> bool {
        delays.iter().any(|one| self.delays_sample(one, due, end))
            && overlap >= LEAST_NS
            && overlap.saturating_mul(2) >= end.saturating_sub(due)
    }

    /// Whether an injection delays a sample with this due time and end.
    fn delays_sample(&self, one: &Injected, due: i64, end: i64) -> bool {
        match self.placing {
            // An injection after the due time may not be the reason: with preemption none or
            // voluntary, a task in the kernel is not preempted anyway. One that the thread
            // preempts, such as a softirq with PREEMPT_RT, ends after the sample.
            Placing::DueWithin => (one.begin..one.end).contains(&due) && one.end <= end,
            Placing::DueAtAll => (one.begin..one.end).contains(&due),
            Placing::Within => (due..end).contains(&one.begin),
        }
    }
}

/// The score of explained samples; `injected` is in order of time.
pub fn score_samples(
    samples: &[ExplainedSample],
    injected: &[Injected],
    expected: Expected<'_>,
) -> TruthScore {
    let mut score = TruthScore { explained: samples.len() as u64, ..TruthScore::default() };
    let delays = whole_delays(injected);
    for sample in samples {
        let end = sample.at.saturating_add(sample.latency_ns);
        let overlap = injected_time(injected, sample.at, end);
        let time_of_parts = |is: &dyn Fn(&ExplainedPart) -> bool| -> i64 {
            sample.parts.iter().filter(|part| is(part)).map(|part| part.ns).sum()
        };
        let named = time_of_parts(&|part| expected.matches_part(part));
        let (largest, is_right) = largest_part(sample, expected);
        if !expected.affects_sample(&delays, overlap, sample.at, end) {
            let met = touches_interval(injected, sample.at, end);
            let is_false = is_right && !expected.is_shared && !met && named >= LEAST_NS;
            score.falsely_named += u64::from(is_false);
            continue;
        }
        score.affected += 1;
        score.latency_ns += sample.latency_ns;
        score.unknown_ns += time_of_parts(&|part| part.cause == "unknown");
        score.time_ns += overlap;
        score.time_error_ns +=
            attribution_error(named, overlap, possible_time(injected, sample.at, end));
        if is_right {
            score.right += 1;
        } else {
            score.examples.entry(largest.clone()).or_insert_with(|| format_sample_parts(sample));
            *score.confused.entry(largest).or_default() += 1;
        }
    }
    score
}

/// The score of the accounting of samples, each given by its due time and latency. The accounting
/// has causes without culprits, and samples in narrow latency buckets. Of a bucket, as many
/// affected samples are right as samples have the right cause as their longest part. As many are
/// false as have it beyond the samples that met an injection or its maker. Times are of all samples
/// in buckets with an affected one.
pub fn score_account(
    samples: &[(MonotonicNs, Nanos)],
    account: &Account,
    injected: &[Injected],
    expected: Expected<'_>,
) -> TruthScore {
    let mut score = TruthScore { explained: samples.len() as u64, ..TruthScore::default() };
    let delays = whole_delays(injected);
    let mut met: BTreeMap<u64, Met> = BTreeMap::new();
    for (due, latency) in samples {
        let (due, end) = (due.ns(), (*due + *latency).ns());
        let overlap = injected_time(injected, due, end);
        let met = met.entry(Account::lower_edge(*latency)).or_default();
        met.overlap += overlap;
        met.perhaps += possible_time(injected, due, end);
        met.latency += latency.ns();
        met.touched += u64::from(touches_interval(injected, due, end));
        met.affected += u64::from(expected.affects_sample(&delays, overlap, due, end));
    }
    let is_right = |part: CauseKind| expected.causes.iter().any(|(cause, _)| *cause == part.id());
    let all_parts = || MAIN_PARTS.iter().copied();
    let named_in = |bucket: &AccountBucket| -> u64 {
        all_parts().filter(|part| is_right(*part)).map(|part| bucket.parts[part as usize]).sum()
    };
    // A delay without an injection also delays samples of the same length with one.
    let untouched = account.occupied_buckets().filter(|(edge, _)| {
        expected.is_shared && met.get(edge).is_some_and(|met| met.touched == 0)
    });
    let (count, usual) = untouched.fold((0, 0), |(count, usual), (_, bucket)| {
        (count + bucket.count, usual + named_in(bucket))
    });
    let usual = usual.checked_div(count).unwrap_or_default() as i64;
    for (edge, bucket) in account.occupied_buckets() {
        let Some(met) = met.get(&edge) else { continue };
        let named = named_in(bucket) as i64 - usual * bucket.count as i64;
        let longest: u64 = all_parts()
            .filter(|part| is_right(*part))
            .map(|part| bucket.longest[part as usize])
            .sum();
        let right = longest.min(met.affected);
        score.affected += met.affected;
        score.right += right;
        if met.affected > 0 {
            score.unknown_ns += bucket.parts[CauseKind::Unknown as usize] as i64;
            score.latency_ns += met.latency;
            score.time_ns += met.overlap;
            score.time_error_ns += attribution_error(named, met.overlap, met.perhaps);
        }
        if !expected.is_shared && edge as i64 >= LEAST_NS {
            score.falsely_named += longest.saturating_sub(met.touched);
        }
        if right < met.affected {
            let wrong_parts = all_parts().filter(|part| !is_right(*part));
            let longest_wrong = wrong_parts.max_by_key(|part| bucket.longest[*part as usize]);
            let name = longest_wrong.map_or(String::new(), |part| part.id().to_owned());
            *score.confused.entry(name).or_default() += met.affected - right;
        }
    }
    score
}

/// The injections met by the samples of a bucket.
#[derive(Default)]
struct Met {
    affected: u64,
    /// Injected time within them, possibly injected time, and their latency.
    overlap: i64,
    perhaps: i64,
    latency: i64,
    /// Samples that met an injection or its maker, however briefly.
    touched: u64,
}

/// The injected time within an interval.
fn injected_time(injected: &[Injected], due: i64, end: i64) -> i64 {
    let delays = injected.iter().filter(|one| one.is_at_work());
    delays.map(|one| one.in_common(due, end)).sum()
}

/// The possibly injected time within an interval.
fn possible_time(injected: &[Injected], due: i64, end: i64) -> i64 {
    let perhaps = injected.iter().filter(|one| one.role == Role::Perhaps);
    perhaps.map(|one| one.in_common(due, end)).sum()
}

/// The error of an attributed time; the true one is at least `overlap` and may have `perhaps` more.
fn attribution_error(named: i64, overlap: i64, perhaps: i64) -> i64 {
    (overlap - named).max(named - overlap - perhaps).max(0)
}

/// Whether an injection or its maker was at work in an interval.
fn touches_interval(injected: &[Injected], due: i64, end: i64) -> bool {
    injected.iter().any(|one| one.in_common(due, end) > 0)
}

/// The parts of a sample: `preempted hog 3000 ns (sched_switch 0, sched_switch 3000); …`, with the
/// events' instants relative to the due time.
fn format_sample_parts(sample: &ExplainedSample) -> String {
    let part = |part: &ExplainedPart| {
        let events: Vec<String> = part
            .evidence
            .iter()
            .map(|event| format!("{} {}", event.event, event.at - sample.at))
            .collect();
        let who = part.who.as_deref().unwrap_or("–");
        format!("{} {who} {} ns ({})", part.cause, part.ns, events.join(", "))
    };
    sample.parts.iter().map(part).collect::<Vec<_>>().join("; ")
}

/// The cause of the largest part of a sample, and whether it is the right one with the right
/// culprit.
fn largest_part(sample: &ExplainedSample, expected: Expected<'_>) -> (String, bool) {
    let mut times: BTreeMap<(&str, bool), i64> = BTreeMap::new();
    for part in &sample.parts {
        *times.entry((&part.cause, expected.matches_part(part))).or_default() += part.ns;
    }
    let largest = times.into_iter().max_by_key(|(_, ns)| *ns);
    largest.map_or((String::new(), false), |((cause, is_right), _)| (cause.to_owned(), is_right))
}

#[cfg(test)]
mod tests;
