//! What is injected: the ways, each with the cause that is right, and its lengths.

use punctual_core::{Nanos, Policy, Priority};
use std::path::Path;

/// How a delay is made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Way {
    /// Its name in those of cases.
    pub name: &'static str,
    /// The causes that are right, each with its culprit.
    causes: &'static [(&'static str, &'static str)],
    /// The policy and priority of the task that makes it.
    pub policy: Policy,
    /// See `policy`.
    pub priority: Option<u8>,
    /// The policy of the measured thread.
    measured: &'static str,
    /// What it does, one after the other: the words of the kernel module, or `spin`.
    pub steps: &'static [&'static str],
}

/// The priority of the measured thread.
const PRIORITY: u8 = 80;
/// The device of the kernel module (truth/module).
pub const DEVICE: &str = "/dev/punctual-truth";
/// The name of the thread that makes the delays.
pub const CULPRIT: &str = "truth-culprit";

const LOW: Option<u8> = Some(1);

const IRQS: (&str, &str) = ("timer-irq-delay", CULPRIT);
const PREEMPTION: (&str, &str) = ("non-preemptible", CULPRIT);
/// The names of the interrupt and of the softirq that the module takes.
const IRQ: (&str, &str) = ("irq", "irq_work");
const SOFTIRQ: (&str, &str) = ("softirq", "TASKLET");
/// The timer interrupt, of which the tick is one.
const TICK: (&str, &str) = ("irq", "local_timer");
const THREAD: (&str, &str) = ("preempted", "truth-kthread");

const fn kernel(
    name: &'static str,
    causes: &'static [(&'static str, &'static str)],
    steps: &'static [&'static str],
) -> Way {
    Way { name, causes, policy: Policy::Fifo, priority: LOW, measured: "fifo", steps }
}

const WAYS: &[Way] = &[
    Way {
        name: "higher-priority",
        causes: &[("preempted", CULPRIT)],
        policy: Policy::Fifo,
        priority: Some(PRIORITY + 10),
        measured: "fifo",
        steps: &["spin"],
    },
    Way {
        name: "same-priority",
        causes: &[("runqueue", CULPRIT)],
        policy: Policy::Fifo,
        priority: Some(PRIORITY),
        measured: "fifo",
        steps: &["spin"],
    },
    Way {
        name: "deadline",
        causes: &[("preempted", CULPRIT)],
        policy: Policy::Deadline,
        priority: None,
        measured: "fifo",
        steps: &["spin"],
    },
    // Round robin among equals is another policy of the same class.
    Way {
        name: "round-robin",
        causes: &[("runqueue", CULPRIT)],
        policy: Policy::Rr,
        priority: Some(PRIORITY),
        measured: "fifo",
        steps: &["spin"],
    },
    // A real-time task is above every task with a time-sharing policy.
    Way {
        name: "above-time-sharing",
        causes: &[("preempted", CULPRIT)],
        policy: Policy::Fifo,
        priority: LOW,
        measured: "other",
        steps: &["spin"],
    },
    kernel("irqs-disabled", &[IRQS], &["irqs"]),
    kernel("preemption-disabled", &[PREEMPTION], &["preempt"]),
    kernel("irq", &[IRQ], &["irq"]),
    kernel("softirq", &[SOFTIRQ], &["softirq"]),
    kernel("irqs-then-preemption", &[IRQS, PREEMPTION], &["irqs", "preempt"]),
    kernel("softirq-then-irq", &[SOFTIRQ, IRQ], &["softirq", "irq"]),
    kernel("preemption-then-softirq", &[PREEMPTION, SOFTIRQ], &["preempt", "softirq"]),
    kernel("irq-then-irqs", &[IRQ, IRQS], &["irq", "irqs"]),
    kernel("timer-softirq", &[("softirq", "TIMER")], &["timer"]),
    kernel("rcu-softirq", &[("softirq", "RCU")], &["rcu"]),
    kernel("timer-irq", &[TICK], &["hrtimer"]),
    Way {
        name: "kernel-thread",
        causes: &[THREAD],
        policy: Policy::Fifo,
        priority: LOW,
        measured: "other",
        steps: &["kthread"],
    },
    Way {
        name: "task-then-irqs",
        causes: &[("preempted", CULPRIT), ("timer-irq-delay", CULPRIT)],
        policy: Policy::Fifo,
        priority: Some(PRIORITY + 10),
        measured: "fifo",
        steps: &["spin", "irqs"],
    },
];

/// In µs.
const LENGTHS: [i64; 6] = [60, 150, 400, 1_000, 3_000, 8_000];
const SHORT: [i64; 2] = [400, 3_000];
/// The name of the case in which nothing is injected.
const NOTHING: &str = "nothing";

/// A way with a length.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Case {
    /// None: nothing is injected.
    pub way: Option<Way>,
    /// How long it lasts each time.
    pub length: Nanos,
}

impl Case {
    /// All cases.
    pub fn every() -> Vec<Case> {
        let of = |way: &Way| LENGTHS.map(|us| Case { way: Some(*way), length: Nanos(us * 1_000) });
        let nothing = Case { way: None, length: Nanos::ZERO };
        WAYS.iter().flat_map(of).chain([nothing]).collect()
    }

    /// What [`Case::matches`] takes.
    pub fn words() -> impl Iterator<Item = &'static str> {
        WAYS.iter().map(|way| way.name).chain([NOTHING])
    }

    /// `higher-priority-3ms`.
    pub fn name(&self) -> String {
        match self.way {
            Some(way) => format!("{}-{}", way.name, self.length),
            None => NOTHING.to_owned(),
        }
    }

    /// Whether it is meant by its name or that of its way.
    pub fn matches(&self, name: &str) -> bool {
        name == self.name() || self.way.is_some_and(|way| way.name == name)
    }

    /// Whether it belongs to the few that run by default.
    pub fn is_short(&self) -> bool {
        self.way.is_none() || SHORT.contains(&(self.length.0 / 1_000))
    }

    /// The causes that are right.
    pub fn causes(&self) -> &'static [(&'static str, &'static str)] {
        self.way.map_or(&[], |way| way.causes)
    }

    /// Whether samples without an injection have the same culprit.
    pub fn is_shared(&self) -> bool {
        self.causes().contains(&TICK)
    }

    /// Their ids in one word; none where nothing is injected.
    pub fn cause(&self) -> Option<String> {
        let ids: Vec<&str> = self.causes().iter().map(|(id, _)| *id).collect();
        (!ids.is_empty()).then(|| ids.join("+"))
    }

    /// The policy and priority of the measured thread.
    pub fn scheduling(&self) -> (&'static str, Option<Priority>) {
        match self.way.map_or("fifo", |way| way.measured) {
            "fifo" => ("fifo", Priority::new(PRIORITY)),
            other => (other, None),
        }
    }

    /// What this system lacks for it.
    pub fn missing(&self) -> Option<String> {
        let needs_module = self.way.is_some_and(|way| way.steps.iter().any(|step| *step != "spin"));
        (needs_module && !Path::new(DEVICE).exists()).then(|| {
            format!(
                "lacks {DEVICE}, the device of a kernel module: it is tried in guests (--kernel)"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_core::CauseKind;

    #[test]
    fn there_are_enough_cases_and_their_causes_exist() {
        let every = Case::every();
        assert!(every.len() > 60, "{}", every.len());
        let known: Vec<&str> = CauseKind::ALL.iter().map(|cause| cause.id()).collect();
        for case in &every {
            assert!(case.causes().iter().all(|(cause, _)| known.contains(cause)), "{case:?}");
        }
        let mut names: Vec<String> = every.iter().map(Case::name).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), every.len());
    }
}
