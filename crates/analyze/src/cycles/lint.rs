//! What the cycles of a thread show that a real-time program does better otherwise.
//!
//! [`RULES`] has every rule. Each speaks where what was seen supports it, and says of how many
//! cycles.

mod files;
mod rules;
mod seen;

pub use files::{Opened, opened};
pub use rules::RULES;
pub use seen::{Delay, Seen};

use punctual_core::cycle::CycleKind;
use punctual_core::{Bytes, CpuSet, Fact, Finding, Nanos, Policy, Severity};
use std::collections::BTreeMap;

/// Everything that is known of a thread.
pub struct Subject<'a> {
    pub kind: CycleKind,
    pub seen: &'a Seen,
    pub facts: &'a ThreadFacts,
    pub host: &'a HostFacts,
    /// Who ran while it was ready, of the same or a higher priority, and for how long, the longest
    /// first.
    pub culprits: &'a [(String, Nanos)],
}

/// The settings of a thread.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ThreadFacts {
    /// As the kernel reports it while it runs.
    pub policy: Fact<Policy>,
    pub affinity: CpuSet,
    /// How much later its timers may expire (/proc/PID/timerslack_ns).
    pub timer_slack: Fact<Nanos>,
    /// The memory of its process.
    pub memory: Fact<Memory>,
    /// Its timerfd expires at times of CLOCK_REALTIME.
    pub realtime_timerfd: bool,
    /// What shows that it asks for its cycles.
    pub asks: Asks,
    /// What it writes into, by descriptor: the target of its link in /proc.
    pub files: BTreeMap<u32, String>,
    /// The system call that its cycles begin with; empty: not known.
    pub waits_in: String,
    /// The interpreter or virtual machine that it is a thread of: advice on calls of C fits none.
    pub runtime: Option<String>,
    /// Why the kernel refuses a real-time policy to it, where it does.
    pub refused: Option<String>,
    /// Kernel threads that ended its waits and have a lower priority, by id: their scheduling.
    pub lower: BTreeMap<u32, String>,
}

/// `VmSize` and `VmLck` of a process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Memory {
    pub mapped: Bytes,
    /// What of it is locked.
    pub locked: Bytes,
}

impl Memory {
    /// Whether it was locked as a whole: what is left are mappings that cannot be.
    pub fn is_locked(&self) -> bool {
        self.locked.get() >= self.mapped.get() / 2
    }
}

/// What of the system every thread is subject to.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct HostFacts {
    pub coarse_timers: Option<Violation>,
    /// Real-time threads may use this share of a CPU, and no more.
    pub limit: Option<(f64, Violation)>,
}

/// What a rule of `punctual check` found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Violation {
    pub message: String,
    pub evidence: String,
    pub remedy: Option<String>,
}

/// What is looked for in the cycles of a program, and what to do about it.
pub struct Rule {
    /// Its name, in kebab case; never changed once released.
    pub id: &'static str,
    /// How much it weighs, unless it is rare.
    pub severity: Severity,
    pub title: &'static str,
    /// What it finds of this thread.
    pub evaluate: fn(&Subject<'_>) -> Option<Violation>,
    /// Of how many cycles; `None` where it is about none.
    pub cycles: Option<fn(&Subject<'_>) -> u64>,
}

/// Below this share of the cycles a finding is advice.
const RARE: f64 = 0.01;

/// All findings about a thread.
pub fn lint(name: &str, thread: &Subject<'_>) -> Vec<Finding> {
    let finding = |rule: &Rule| {
        let found = (rule.evaluate)(thread)?;
        let cycles = rule.cycles.map(|cycles| cycles(thread) as f64);
        let rare = cycles.is_some_and(|cycles| cycles < RARE * thread.seen.cycles as f64);
        let severity = if rare { rule.severity.min(Severity::Advice) } else { rule.severity };
        let finding = Finding::new(rule.id, severity, name, found.message).evidence(found.evidence);
        Some(match found.remedy {
            Some(remedy) => finding.remedy(remedy),
            None => finding,
        })
    };
    if thread.seen.cycles == 0 { Vec::new() } else { RULES.iter().filter_map(finding).collect() }
}

/// What shows that a thread itself asks for its cycles.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Asks {
    /// It waits in a call for a timer or a sleep: not for an event with a timeout, as the helpers
    /// of runtimes do.
    pub for_timer: bool,
    /// It is the first of its process.
    pub first: bool,
}

/// Whether a thread is meant to be a real-time one: by its policy, by the deadline that the user
/// gave, or because it asks for a timer that releases its cycles at equal distances. One that
/// sleeps for a time may be a helper: it counts where it is the first thread of its process, and no
/// other one of the program is a real-time one.
pub fn is_meant_real_time(
    kind: CycleKind,
    policy: Option<Policy>,
    has_deadline: bool,
    others_are: bool,
    asks: Asks,
) -> bool {
    policy.is_some_and(Policy::is_real_time)
        || has_deadline
        || (kind.is_periodic() && asks.for_timer)
        || (kind == CycleKind::Relative && asks.for_timer && asks.first && !others_are)
}

#[cfg(test)]
mod tests;
