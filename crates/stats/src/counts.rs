//! Values derived from counts: rates and shares.

use punctual_bundle::{CommandCounts, CountShare, EventCount};
use punctual_core::Nanos;

/// Each count with the one that it is a share of.
const SHARES: [(&str, &str); 8] = [
    ("voluntary-switches", "context-switches"),
    ("involuntary-switches", "context-switches"),
    ("minor-faults", "page-faults"),
    ("major-faults", "page-faults"),
    ("futex-calls", "system-calls"),
    ("instructions", "cycles"),
    ("cache-misses", "cache-references"),
    ("branch-misses", "branches"),
];

/// Fills in rates and shares, if both numbers are known.
pub fn derive_rates(counts: &mut CommandCounts) {
    let (cpu, wall) = (counts.cpu.total, counts.wall);
    for one in counts.counts.iter_mut().filter(|one| !one.is_time) {
        let count = one.count.known_value().map(|count| *count as f64);
        let rate_over = |time: Nanos| count.filter(|_| time.0 > 0).map(|n| n * 1e9 / time.0 as f64);
        (one.per_second, one.per_cpu_second) = (rate_over(wall), rate_over(cpu));
    }
    derive_shares(&mut counts.counts);
}

/// Fills in shares, if both numbers are known.
pub fn derive_shares(counts: &mut [EventCount]) {
    let shares: Vec<_> = counts.iter().map(|one| share_of(one, counts)).collect();
    counts.iter_mut().zip(shares).for_each(|(one, share)| one.share = share);
}

/// Counts of two sources can begin at different instants: those are divided by the sum of their own
/// kind.
fn share_of(one: &EventCount, all: &[EventCount]) -> Option<CountShare> {
    let count = *one.count.known_value()? as f64;
    let (_, of) = SHARES.iter().find(|(name, _)| *name == one.name)?;
    let is_comparable =
        |other: &&EventCount| other.source == one.source && other.user_only == one.user_only;
    let value = |name: &str| {
        let found_count = all.iter().rfind(|other| other.name == name).filter(is_comparable);
        found_count.and_then(|other| other.count.known_value()).map(|count| *count as f64)
    };
    let parts = || {
        SHARES
            .iter()
            .filter(|(_, whole)| whole == of)
            .map(|(name, _)| value(name))
            .sum::<Option<f64>>()
    };
    let whole = value(of).or_else(|| is_divided(of).then(parts).flatten())?;
    (whole > 0.0).then(|| CountShare { of: (*of).to_owned(), share: count / whole })
}

/// Whether the parts of a count add up to it.
fn is_divided(name: &str) -> bool {
    matches!(name, "context-switches" | "page-faults")
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_bundle::counts::COUNTS_SCHEMA;
    use punctual_bundle::{CountSource, CpuTime};
    use punctual_core::Fact;

    #[test]
    fn rates_and_shares_are_computed_if_both_counts_are_known() {
        let (perf, wait4) = (CountSource::PerfEvent, CountSource::Wait4);
        let cpu = CpuTime { total: Nanos(500_000_000), user: Nanos(0), system: Nanos(500_000_000) };
        let mut counts = CommandCounts {
            schema: COUNTS_SCHEMA.to_owned(),
            command: vec!["x".to_owned()],
            pid: None,
            exit_code: Some(0),
            wall: Nanos(2_000_000_000),
            cpu,
            counts: vec![
                EventCount::new("context-switches", perf, Fact::Known(7)),
                EventCount::new("voluntary-switches", wait4, Fact::Known(6)),
                EventCount::new("involuntary-switches", wait4, Fact::Known(2)),
                EventCount::new("system-calls", perf, Fact::Known(100)),
                EventCount::new("futex-calls", perf, Fact::Known(25)),
                EventCount::new("cycles", perf, Fact::Unavailable("no PMU".to_owned())),
                EventCount::new("instructions", perf, Fact::Known(5)),
            ],
        };
        derive_rates(&mut counts);
        let rates: Vec<Option<f64>> = counts.counts.iter().map(|one| one.per_cpu_second).collect();
        assert_eq!(rates[0], Some(14.0));
        assert_eq!(counts.counts[0].per_second, Some(3.5));
        assert_eq!(rates[5], None);
        let shares: Vec<Option<f64>> =
            counts.counts.iter().map(|one| one.share.as_ref().map(|share| share.share)).collect();
        assert_eq!(shares, [None, Some(0.75), Some(0.25), None, Some(0.25), None, None]);
    }
}
