//! Failures of trials: a kernel that panics, hangs or runs out of memory is a separate finding.

use super::search::Tried;
use punctual_bundle::Bundle;
use punctual_bundle::hunt::{HuntFailure, HuntTrial};
use std::collections::BTreeMap;

/// The beginning of a guest's outcome (`punctual_lab::GuestOutcome`), and the kind.
const KINDS: [(&str, &str); 5] = [
    ("the guest's kernel panicked", "panic"),
    ("the guest was still running", "hang"),
    ("the guest printed nothing", "hang"),
    ("the guest ran out of memory", "out-of-memory"),
    ("the guest powered off or reset", "ended-early"),
];
/// The finding of a run that reached its end although its kernel killed tasks.
const MEMORY: &str = "guest-out-of-memory";

/// The kind of a failure, by its message.
pub fn kind(why: &str) -> &'static str {
    let known = KINDS.iter().find(|(words, _)| why.contains(words));
    known.map_or("other", |(_, kind)| kind)
}

/// The message of a run that ran out of memory but reached its end.
pub(crate) fn memory_ran_out(bundle: &Bundle) -> Option<String> {
    let finding = bundle.findings.iter().find(|finding| finding.id == MEMORY)?;
    Some(finding.message.clone())
}

/// The failures of all trials, the most frequent first, before experiments are written; `ran_out`
/// has the messages of [`memory_ran_out`].
pub fn of(tried: &[Tried], trials: &[HuntTrial], ran_out: &[Option<String>]) -> Vec<HuntFailure> {
    let mut all: BTreeMap<(&str, &str), Vec<usize>> = BTreeMap::new();
    for (number, (tried, ran_out)) in tried.iter().zip(ran_out).enumerate() {
        let failed = tried.shown.failure.as_deref().map(|why| (kind(why), why));
        // The number of killed tasks differs from trial to trial.
        let ran_out = ran_out.as_deref().map(|why| ("out-of-memory", without_count(why)));
        if let Some(key) = failed.or(ran_out) {
            all.entry(key).or_default().push(number);
        }
    }
    let mut failures: Vec<HuntFailure> = all
        .into_iter()
        .map(|((what, why), met)| {
            let size = |number: &usize| {
                let input = &tried[*number].input;
                let instances: u32 = input.parts.iter().map(|part| part.instances).sum();
                (input.parts.len(), instances, input.quarters)
            };
            let least = met.iter().copied().min_by_key(size).unwrap_or_default();
            HuntFailure {
                what: what.to_owned(),
                why: why.to_owned(),
                trials: met.len() as u64,
                trial: trials[least].number,
                loads: trials[least].loads.clone(),
                file: None,
                console: trials[least].console.clone(),
            }
        })
        .collect();
    failures.sort_by_key(|failure| std::cmp::Reverse(failure.trials));
    failures
}

fn without_count(why: &str) -> &str {
    why.split_once(": its kernel killed").map_or(why, |(before, _)| before)
}

#[cfg(test)]
mod tests {
    use super::super::archive::TrialResults;
    use super::super::search::SearchStage;
    use super::super::space::Input;
    use super::*;
    use punctual_bundle::hunt::TrialState;
    use punctual_lab::{GuestOutcome, GuestPhase};
    use std::time::Duration;

    #[test]
    fn outcomes_of_trials_are_classified_by_their_text() {
        let after = Duration::from_secs(300);
        for (outcome, expected) in [
            (GuestOutcome::Panicked("sysrq".into()), "panic"),
            (GuestOutcome::Hung { after, phase: GuestPhase::Booting }, "hang"),
            (GuestOutcome::Silent { after }, "hang"),
            (GuestOutcome::OutOfMemory("killed".into()), "out-of-memory"),
            (GuestOutcome::EndedEarly(GuestPhase::Booting), "ended-early"),
            (GuestOutcome::QemuFailed("no such file".into()), "other"),
        ] {
            assert_eq!(kind(&outcome.to_string()), expected, "{outcome}");
        }
    }

    #[test]
    fn trials_with_the_same_message_are_grouped_as_one_failure() {
        let panic = "the guest's kernel panicked: a";
        let ran_out = "memory ran out: its kernel killed 2 task(s)";
        let shows = [
            (2, Some(panic), None),
            (1, Some(panic), None),
            (1, None, None),
            (1, None, Some(ran_out.to_owned())),
        ];
        let tried = shows.iter().map(|(loads, why, _)| Tried {
            input: Input::simple(0..*loads, 1),
            stage: SearchStage::Survey,
            shown: TrialResults { failure: why.map(str::to_owned), ..TrialResults::default() },
        });
        let tried: Vec<Tried> = tried.collect();
        let trial = |number: u64| HuntTrial {
            number,
            stage: "survey".into(),
            loads: vec![format!("load {number}")],
            seed: 1,
            state: TrialState::Failed,
            why: None,
            worst_ns: None,
            irqs_disabled: None,
            bundle: None,
            console: Some(format!("{number}.log")),
        };
        let trials: Vec<HuntTrial> = (1..=4).map(trial).collect();
        let memory: Vec<Option<String>> = shows.iter().map(|(_, _, out)| out.clone()).collect();
        let found = of(&tried, &trials, &memory);
        let short: Vec<_> = found.iter().map(|f| (f.what.as_str(), f.trials, f.trial)).collect();
        assert_eq!(short, [("panic", 2, 2), ("out-of-memory", 1, 4)]);
        assert_eq!(found[0].loads, ["load 2"]);
        assert_eq!(found[0].console.as_deref(), Some("2.log"));
        assert_eq!(found[1].why, "memory ran out");
    }
}
