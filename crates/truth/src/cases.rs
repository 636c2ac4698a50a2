//! The injected delays: the ways, each with its lengths.

use super::block;
use super::names::{DEVICE, PRIORITY};
use super::operation::Operation;
use super::score::Placing;
use super::ways::{ExpectedCauses, TICK, WAYS, Way};
use punctual_core::{Nanos, Priority};
use std::path::Path;

/// The lengths of delays in µs.
const LENGTHS: [i64; 6] = [60, 150, 400, 1_000, 3_000, 8_000];
const SHORT: [i64; 2] = [400, 3_000];
/// The name of the case in which nothing is injected.
const NOTHING: &str = "nothing";

/// A way with a length.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InjectedCase {
    /// None: nothing is injected.
    pub way: Option<Way>,
    /// The length of each delay.
    pub length: Nanos,
}

impl InjectedCase {
    pub fn all_cases() -> Vec<InjectedCase> {
        let cases_of_way = |way: &'static Way| {
            let lengths = LENGTHS.into_iter().filter(|us| *us >= way.shortest);
            lengths.map(|us| InjectedCase { way: Some(*way), length: Nanos(us * 1_000) })
        };
        let nothing = InjectedCase { way: None, length: Nanos::ZERO };
        WAYS.iter().flat_map(cases_of_way).chain([nothing]).collect()
    }

    /// The words that [`InjectedCase::matches_name`] accepts.
    pub fn accepted_names() -> impl Iterator<Item = &'static str> {
        WAYS.iter().map(|way| way.name).chain([NOTHING])
    }

    /// The name, such as `higher-priority-3ms`.
    pub fn name(&self) -> String {
        match self.way {
            Some(way) => format!("{}-{}", way.name, self.length),
            None => NOTHING.to_owned(),
        }
    }

    /// Whether this is the case's name or that of its way.
    pub fn matches_name(&self, name: &str) -> bool {
        name == self.name() || self.way.is_some_and(|way| way.name == name)
    }

    /// Whether the case is one of the few that run by default.
    pub fn is_short(&self) -> bool {
        self.way.is_none() || SHORT.contains(&(self.length.0 / 1_000))
    }

    /// The true causes.
    pub fn expected_causes(&self) -> ExpectedCauses {
        self.way.map_or(&[], |way| way.causes)
    }

    pub fn placing(&self) -> Placing {
        match self.way {
            Some(way) if way.operation.is_some() || way.steps.contains(&"switch") => {
                Placing::Within
            }
            Some(way) if way.steps.contains(&"hog") => Placing::DueAtAll,
            _ => Placing::DueWithin,
        }
    }

    /// Whether the measured program meets the delay in its own operation.
    pub fn is_of_subject(&self) -> bool {
        self.way.is_some_and(|way| way.operation.is_some())
    }

    /// Whether the measured program has its own control group.
    pub fn is_confined(&self) -> bool {
        let own_group_steps = ["sigstop", "freeze"];
        self.way.is_some_and(|way| way.steps.iter().any(|step| own_group_steps.contains(step)))
    }

    /// Whether samples without an injection have the same culprit.
    pub fn is_shared(&self) -> bool {
        // A program's own operation is in every cycle.
        self.expected_causes().contains(&TICK) || self.is_of_subject()
    }

    /// Whether the case's cause also delays samples without an injection, if culprits are ignored:
    /// the timer's interrupt does, and any task may be in the kernel.
    pub fn is_usual(&self) -> bool {
        let of_the_kernel = ["irq", "softirq", "timer-irq-delay", "non-preemptible"];
        self.expected_causes().iter().any(|(cause, _)| of_the_kernel.contains(cause))
    }

    /// The ids of its causes in one word; none if nothing is injected.
    pub fn cause_ids(&self) -> Option<String> {
        let ids: Vec<&str> = self.expected_causes().iter().map(|(id, _)| *id).collect();
        (!ids.is_empty()).then(|| ids.join("+"))
    }

    /// The policy and priority of the measured thread.
    pub fn measured_scheduling(&self) -> (&'static str, Option<Priority>) {
        match self.way.map_or("fifo", |way| way.measured) {
            "fifo" => ("fifo", Priority::new(PRIORITY)),
            other => (other, None),
        }
    }

    /// Whether the case changes settings of the system, or needs the kernel module.
    fn needs_guest(&self) -> bool {
        let alone = ["spin", "thread", "sigstop"];
        self.way.is_some_and(|way| {
            way.steps.iter().any(|step| !alone.contains(step))
                || way.operation.is_some_and(|operation| operation.needs_guest())
        })
    }

    /// The missing prerequisite of this system.
    pub fn missing_prerequisite(&self) -> Option<String> {
        if self.needs_guest() && !Path::new(DEVICE).exists() {
            return Some(format!(
                "lacks {DEVICE}, the device of a kernel module: it is tried in guests (--kernel)"
            ));
        }
        (self.needs_disk() && !Path::new(block::MODULE).exists())
            .then(|| "lacks the kernel module null_blk".to_owned())
    }

    /// Whether the case needs a disk of a known speed.
    pub fn needs_disk(&self) -> bool {
        self.way.and_then(|way| way.operation).is_some_and(Operation::needs_disk)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_core::CauseKind;

    #[test]
    fn injection_cases_are_unique_with_known_causes() {
        let every = InjectedCase::all_cases();
        assert!(every.len() > 250, "{}", every.len());
        assert!(every.iter().filter(|case| case.is_short()).count() > 80);
        let known: Vec<&str> = CauseKind::ALL.iter().map(|cause| cause.id()).collect();
        for case in &every {
            assert!(
                case.expected_causes().iter().all(|(cause, _)| known.contains(cause)),
                "{case:?}"
            );
        }
        let mut names: Vec<String> = every.iter().map(InjectedCase::name).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), every.len());
    }
}
