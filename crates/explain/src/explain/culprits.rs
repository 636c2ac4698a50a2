//! The culprits over many samples.

use super::{Cause, Explanation, Part};
use punctual_core::{Names, Nanos};
use std::collections::BTreeMap;

/// A culprit: the same cause with the same name.
#[derive(Clone, PartialEq, Debug)]
pub struct Culprit {
    /// The cause in the part where it took longest, with that part's numbers (thread, system call).
    pub cause: Cause,
    /// The priority of its task there, as the kernel's `prio`, if a switch shows it.
    pub prio: Option<i16>,
    /// The culprit's name: see [`Cause::culprit_name`].
    pub who: Option<String>,
    /// Its time in all samples.
    pub time: Nanos,
    /// The share of the time of all samples.
    pub share: f64,
    /// The number of samples in which it took any time.
    pub samples: u64,
    /// The number of samples in which it took the most time.
    pub leads: u64,
    /// Its longest time in one sample.
    pub longest: Nanos,
}

/// The culprits of some worst samples.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Ranking {
    pub samples: u64,
    /// The sum of their latencies, which is also the sum of the culprits' times.
    pub latency: Nanos,
    /// The worst first; ties by their words.
    pub culprits: Vec<Culprit>,
}

/// Ranks the culprits of the samples with at least this latency. A sample counts in full or not at
/// all, so that a threshold removes samples without changing others.
pub fn rank_culprits<'a>(
    explained: impl IntoIterator<Item = &'a Explanation>,
    names: &Names,
    at_least: Nanos,
) -> Ranking {
    let mut ranking = Ranking::default();
    let mut culprit_sums: BTreeMap<(&'static str, Option<String>), CulpritSums> = BTreeMap::new();
    for explanation in explained.into_iter().filter(|one| one.latency() >= at_least) {
        ranking.samples += 1;
        ranking.latency += explanation.latency();
        let mut own_times: BTreeMap<(&'static str, Option<String>), (Nanos, &Part)> =
            BTreeMap::new();
        for part in &explanation.parts {
            let entry =
                own_times.entry(culprit_key(part.cause, names)).or_insert((Nanos::ZERO, part));
            entry.0 += part.duration();
            if part.duration() > entry.1.duration() {
                entry.1 = part;
            }
        }
        let longest_time = own_times.values().map(|(time, _)| *time).max().unwrap_or_default();
        for (key, (time, part)) in own_times {
            let leads = time == longest_time;
            culprit_sums
                .entry(key)
                .or_insert_with(|| CulpritSums::new(part))
                .add(time, part, leads);
        }
    }
    let whole = ranking.latency.ns().max(1) as f64;
    ranking.culprits = culprit_sums
        .into_iter()
        .map(|((_, who), CulpritSums { cause, prio, time, samples, leads, longest })| {
            let share = time.ns() as f64 / whole;
            Culprit { cause, prio, who, time, share, samples, leads, longest }
        })
        .collect();
    // Stable: equal times stay in the order of their words.
    ranking.culprits.sort_by_key(|culprit| std::cmp::Reverse(culprit.time));
    ranking
}

/// Parts with the same key have the same culprit.
fn culprit_key(cause: Cause, names: &Names) -> (&'static str, Option<String>) {
    (cause.id(), cause.culprit_name(names))
}

struct CulpritSums {
    cause: Cause,
    prio: Option<i16>,
    time: Nanos,
    samples: u64,
    leads: u64,
    longest: Nanos,
}

impl CulpritSums {
    fn new(part: &Part) -> CulpritSums {
        let (cause, prio) = (part.cause, part.prio);
        CulpritSums { cause, prio, time: Nanos::ZERO, samples: 0, leads: 0, longest: Nanos::ZERO }
    }

    fn add(&mut self, time: Nanos, part: &Part, leads: bool) {
        self.time += time;
        self.samples += 1;
        self.leads += u64::from(leads);
        if time > self.longest {
            (self.cause, self.prio, self.longest) = (part.cause, part.prio, time);
        }
    }
}
