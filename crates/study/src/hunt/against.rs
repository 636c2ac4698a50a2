//! The same inputs on two kernels: longer, shorter, new, and missing causes.

use super::archive::{ArchiveKey, LengthKind, TrialResults};
use punctual_bundle::hunt::{CauseChange, Changed};
use std::collections::BTreeMap;

/// Lengths that differ by at most this percentage are equal.
const SAME_PERCENT: u64 = 10;

/// The causes of both, the largest difference first. Both have results of the same inputs.
pub fn compare(here: &[TrialResults], there: &[TrialResults]) -> Vec<CauseChange> {
    let mut all: BTreeMap<ArchiveKey, (u64, u64)> = BTreeMap::new();
    for (key, length) in here.iter().flat_map(|shown| &shown.lengths) {
        let both = all.entry(key.clone()).or_default();
        both.0 = both.0.max(*length);
    }
    for (key, length) in there.iter().flat_map(|shown| &shown.lengths) {
        let both = all.entry(key.clone()).or_default();
        both.1 = both.1.max(*length);
    }
    let mut changes: Vec<CauseChange> = all
        .into_iter()
        .map(|((kind, function), (here, there))| CauseChange {
            kind: kind_word(kind).to_owned(),
            function,
            here,
            there,
            change: judge(here, there),
        })
        .collect();
    changes.sort_by_key(|change| std::cmp::Reverse(change.here.abs_diff(change.there)));
    changes
}

fn judge(here: u64, there: u64) -> Changed {
    let beyond =
        |a: u64, b: u64| u128::from(a) * 100 > u128::from(b) * u128::from(100 + SAME_PERCENT);
    match (here, there) {
        (_, 0) => Changed::New,
        (0, _) => Changed::Gone,
        _ if beyond(here, there) => Changed::Longer,
        _ if beyond(there, here) => Changed::Shorter,
        _ => Changed::Same,
    }
}

/// A kind of cause in documents.
pub(crate) fn kind_word(kind: LengthKind) -> &'static str {
    match kind {
        LengthKind::Sample => "sample",
        LengthKind::IrqsDisabled => "irqs-disabled",
        LengthKind::NotPreempted => "not-preempted",
        LengthKind::PreemptionDisabled => "preemption-disabled",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(lengths: &[(&str, u64)]) -> TrialResults {
        let lengths =
            lengths.iter().map(|(f, l)| ((LengthKind::IrqsDisabled, (*f).to_owned()), *l));
        TrialResults { lengths: lengths.collect(), failure: None }
    }

    #[test]
    fn functions_of_two_kernels_are_classified_by_change() {
        let here = [shown(&[("a", 500), ("b", 100), ("c", 10), ("e", 105)]), shown(&[("c", 90)])];
        let there = [shown(&[("a", 100), ("b", 300), ("d", 70), ("e", 100)])];
        let changes = compare(&here, &there);
        let short: Vec<(&str, Changed)> =
            changes.iter().map(|change| (change.function.as_str(), change.change)).collect();
        assert_eq!(
            short,
            [
                ("a", Changed::Longer),
                ("b", Changed::Shorter),
                ("c", Changed::New),
                ("d", Changed::Gone),
                ("e", Changed::Same)
            ]
        );
        assert_eq!((changes[2].here, changes[2].there), (90, 0));
    }
}
