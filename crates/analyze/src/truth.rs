//! Holds explained samples against what was injected while they were taken.

use punctual_bundle::explanation::{ExplainedPart, ExplainedSample};
use punctual_bundle::truth::TruthScore;
use punctual_core::{Account, AccountBucket, MainPart, MonotonicNs, Nanos};
use std::collections::BTreeMap;

/// A sample is affected from this overlap on, in ns, if that is at least half of it; and it is
/// given to a cause from as much of that cause on.
pub const LEAST_NS: i64 = 20_000;

/// An injected cause was at work from `begin` to `end`, in ns on CLOCK_MONOTONIC.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Injected {
    pub begin: i64,
    pub end: i64,
    /// What this stretch of time is.
    pub role: Role,
}

/// What a stretch of time is for a delay.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Role {
    /// The delay begins with it.
    #[default]
    Delay,
    /// The delay goes on after something interrupted it: what that took is no part of it.
    GoesOn,
    /// The delay begins or ends in it: its maker does not know more.
    Perhaps,
    /// Who makes the delay works before it and after it, and may delay samples like it.
    Around,
}

impl Injected {
    /// A delay, or its first stretch.
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

/// The delays, each from its first instant to its last; in the order of time.
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

/// What an explanation must name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Expected<'e> {
    /// The ids of causes that are right, each with its culprit; `*` at the end of a name stands for
    /// anything.
    pub causes: &'e [(&'e str, &'e str)],
    pub placing: Placing,
    /// Whether the culprit's name is also that of what is not injected: then nothing is false.
    pub is_shared: bool,
}

/// Which samples an injection delays.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Placing {
    /// Those that were due while it went on, and ended after it.
    DueWithin,
    /// Those that were due while it went on: who records its end is itself delayed by it.
    DueAtAll,
    /// Those in which it began: the measured thread met it itself.
    Within,
}

impl Expected<'_> {
    fn is(&self, part: &ExplainedPart) -> bool {
        let who = part.who.as_deref().unwrap_or_default();
        self.causes.iter().any(|(cause, name)| {
            *cause == part.cause
                && name.strip_suffix('*').map_or(*name == who, |start| who.starts_with(start))
        })
    }

    /// Whether a sample is affected by one of these whole delays, of which so much was injected.
    fn affects(&self, delays: &[Injected], overlap: i64, due: i64, end: i64) -> bool {
        delays.iter().any(|one| self.delays(one, due, end))
            && overlap >= LEAST_NS
            && overlap.saturating_mul(2) >= end.saturating_sub(due)
    }

    /// Whether an injection delays a sample that was due at an instant and ended at another.
    fn delays(&self, one: &Injected, due: i64, end: i64) -> bool {
        match self.placing {
            // What begins after the sample was due may delay it for another reason: with preemption
            // none or voluntary a task in the kernel is not preempted, whatever it does there. And
            // what the thread preempts, such as a softirq with PREEMPT_RT, goes on after its
            // sample.
            Placing::DueWithin => (one.begin..one.end).contains(&due) && one.end <= end,
            Placing::DueAtAll => (one.begin..one.end).contains(&due),
            Placing::Within => (due..end).contains(&one.begin),
        }
    }
}

/// The score of explained samples, with the injections in the order of time.
pub fn score(
    samples: &[ExplainedSample],
    injected: &[Injected],
    expected: Expected<'_>,
) -> TruthScore {
    let mut score = TruthScore { explained: samples.len() as u64, ..TruthScore::default() };
    let delays = whole_delays(injected);
    for sample in samples {
        let end = sample.at.saturating_add(sample.latency_ns);
        let overlap = overlap(injected, sample.at, end);
        let of = |is: &dyn Fn(&ExplainedPart) -> bool| -> i64 {
            sample.parts.iter().filter(|part| is(part)).map(|part| part.ns).sum()
        };
        let named = of(&|part| expected.is(part));
        let (largest, is_right) = largest_part(sample, expected);
        if !expected.affects(&delays, overlap, sample.at, end) {
            let met = touches(injected, sample.at, end);
            let is_false = is_right && !expected.is_shared && !met && named >= LEAST_NS;
            score.falsely_named += u64::from(is_false);
            continue;
        }
        score.affected += 1;
        score.latency_ns += sample.latency_ns;
        score.unknown_ns += of(&|part| part.cause == "unknown");
        score.time_ns += overlap;
        score.time_error_ns += error(named, overlap, perhaps(injected, sample.at, end));
        if is_right {
            score.right += 1;
        } else {
            score.examples.entry(largest.clone()).or_insert_with(|| example(sample));
            *score.confused.entry(largest).or_default() += 1;
        }
    }
    score
}

/// The score of the accounting of samples, each by when it was due and its latency. It has causes
/// without culprits, and samples by their latency, in narrow buckets: of a bucket, as many affected
/// samples are right as samples have the right cause as their longest part, and as many false as
/// have it beyond those that met an injection or who makes it. Times are of all samples of the
/// buckets in which one is affected.
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
        let overlap = overlap(injected, due, end);
        let met = met.entry(Account::lower_edge(*latency)).or_default();
        met.overlap += overlap;
        met.perhaps += perhaps(injected, due, end);
        met.latency += latency.ns();
        met.touched += u64::from(touches(injected, due, end));
        met.affected += u64::from(expected.affects(&delays, overlap, due, end));
    }
    let is_right =
        |part: MainPart| expected.causes.iter().any(|(cause, _)| *cause == part.cause().id());
    let all = || MainPart::ALL.iter().copied().enumerate();
    let named_in = |bucket: &AccountBucket| -> u64 {
        all().filter(|(_, part)| is_right(*part)).map(|(at, _)| bucket.parts[at]).sum()
    };
    // What delays samples without an injection too delays those with one as long.
    let untouched = account.buckets().filter(|(edge, _)| {
        expected.is_shared && met.get(edge).is_some_and(|met| met.touched == 0)
    });
    let (count, usual) = untouched.fold((0, 0), |(count, usual), (_, bucket)| {
        (count + bucket.count, usual + named_in(bucket))
    });
    let usual = usual.checked_div(count).unwrap_or_default() as i64;
    for (edge, bucket) in account.buckets() {
        let Some(met) = met.get(&edge) else { continue };
        let named = named_in(bucket) as i64 - usual * bucket.count as i64;
        let longest: u64 =
            all().filter(|(_, part)| is_right(*part)).map(|(at, _)| bucket.longest[at]).sum();
        let right = longest.min(met.affected);
        score.affected += met.affected;
        score.right += right;
        if met.affected > 0 {
            let unknown = all().find(|(_, part)| *part == MainPart::Unknown);
            score.unknown_ns += unknown.map_or(0, |(at, _)| bucket.parts[at] as i64);
            score.latency_ns += met.latency;
            score.time_ns += met.overlap;
            score.time_error_ns += error(named, met.overlap, met.perhaps);
        }
        if !expected.is_shared && edge as i64 >= LEAST_NS {
            score.falsely_named += longest.saturating_sub(met.touched);
        }
        if right < met.affected {
            let others = all().filter(|(_, part)| !is_right(*part));
            let other = others.max_by_key(|(at, _)| bucket.longest[*at]);
            let name = other.map_or(String::new(), |(_, part)| part.cause().id().to_owned());
            *score.confused.entry(name).or_default() += met.affected - right;
        }
    }
    score
}

/// What is known of the samples of a bucket.
#[derive(Default)]
struct Met {
    affected: u64,
    /// How much of them was injected, how much more perhaps, and how long they were.
    overlap: i64,
    perhaps: i64,
    latency: i64,
    /// Those that met an injection, or who makes it, however short.
    touched: u64,
}

/// How much of a time causes were injected.
fn overlap(injected: &[Injected], due: i64, end: i64) -> i64 {
    let delays = injected.iter().filter(|one| one.is_at_work());
    delays.map(|one| one.in_common(due, end)).sum()
}

/// And how much more perhaps.
fn perhaps(injected: &[Injected], due: i64, end: i64) -> i64 {
    let perhaps = injected.iter().filter(|one| one.role == Role::Perhaps);
    perhaps.map(|one| one.in_common(due, end)).sum()
}

/// By how much a time is wrong that is to be so long, and perhaps longer.
fn error(named: i64, overlap: i64, perhaps: i64) -> i64 {
    (overlap - named).max(named - overlap - perhaps).max(0)
}

/// Whether an injection, or who makes it, was at work in a time.
fn touches(injected: &[Injected], due: i64, end: i64) -> bool {
    injected.iter().any(|one| one.in_common(due, end) > 0)
}

/// The parts of a sample: `preempted hog 3000 ns (sched_switch 0, sched_switch 3000); …`, with the
/// instants of events from when the sample was due.
fn example(sample: &ExplainedSample) -> String {
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
