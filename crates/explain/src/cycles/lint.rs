//! Advice from the cycles of a thread on what a real-time program should do differently.
//!
//! [`RULES`] lists the rules. Each reports only what the observations support, and in how many
//! cycles.

mod files;
mod rules;
mod statistics;

pub(crate) use files::{OutputKind, output_kind};
pub use rules::RULES;
pub use statistics::{CycleStatistics, DelaySum};

use punctual_core::cycle::CycleKind;
use punctual_core::{Bytes, CpuSet, Fact, Finding, Nanos, Policy, Severity};
use std::collections::BTreeMap;

/// All observations of a thread.
pub struct Subject<'a> {
    pub kind: CycleKind,
    pub seen: &'a CycleStatistics,
    pub facts: &'a ThreadFacts,
    pub host: &'a HostFacts,
    /// The tasks of the same or a higher priority that ran while it was ready, with their times,
    /// the longest first.
    pub culprits: &'a [(String, Nanos)],
}

/// The settings of a thread.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ThreadFacts {
    /// The policy reported by the kernel during the run.
    pub policy: Fact<Policy>,
    pub affinity: CpuSet,
    /// The maximum delay of its timers (/proc/PID/timerslack_ns).
    pub timer_slack: Fact<Nanos>,
    /// The memory of its process.
    pub memory: Fact<ProcessMemory>,
    /// Its timerfd expires at times of CLOCK_REALTIME.
    pub realtime_timerfd: bool,
    /// Evidence that it asks for its cycles.
    pub asks: Asks,
    /// Its output files, by descriptor: the target of the link in /proc.
    pub files: BTreeMap<u32, String>,
    /// The system call that its cycles begin with; empty: not known.
    pub waits_in: String,
    /// The interpreter or virtual machine that it is a thread of: advice on calls of C fits none.
    pub runtime: Option<String>,
    /// The refusal of a real-time policy to it, if there is one, and the change that grants it.
    pub refused: Option<LintViolation>,
    /// Kernel threads of lower priority that ended its waits, by id: their scheduling.
    pub lower: BTreeMap<u32, String>,
}

/// `VmSize` and `VmLck` of a process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ProcessMemory {
    pub mapped: Bytes,
    /// The locked part.
    pub locked: Bytes,
}

impl ProcessMemory {
    /// Whether it was locked as a whole: the rest are mappings that cannot be locked.
    pub fn is_locked(&self) -> bool {
        self.locked.get() >= self.mapped.get() / 2
    }
}

/// System settings that every thread is subject to.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct HostFacts {
    pub coarse_timers: Option<LintViolation>,
    /// The limit on real-time threads' share of a CPU.
    pub limit: Option<(f64, LintViolation)>,
}

/// A result of a rule of `punctual check`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LintViolation {
    pub message: String,
    pub evidence: String,
    pub remedy: Option<String>,
}

/// A rule on the cycles of a program, with its remedy.
pub struct CycleRule {
    /// Its name, in kebab case; never changed once released.
    pub id: &'static str,
    /// The severity, unless the finding is rare.
    pub severity: Severity,
    pub title: &'static str,
    /// Evaluates the rule for this thread.
    pub evaluate: fn(&Subject<'_>) -> Option<LintViolation>,
    /// The number of cycles concerned; `None` if the rule is not about cycles.
    pub cycles: Option<fn(&Subject<'_>) -> u64>,
}

/// Findings in a smaller share of the cycles are only advice.
const RARE: f64 = 0.01;

/// All findings about a thread.
pub fn lint_thread(name: &str, thread: &Subject<'_>) -> Vec<Finding> {
    let finding = |rule: &CycleRule| {
        let found = (rule.evaluate)(thread)?;
        let cycles = rule.cycles.map(|cycles| cycles(thread) as f64);
        let rare = cycles.is_some_and(|cycles| cycles < RARE * thread.seen.cycles as f64);
        let severity = if rare { rule.severity.min(Severity::Advice) } else { rule.severity };
        let finding =
            Finding::new(rule.id, severity, name, found.message).with_evidence(found.evidence);
        Some(match found.remedy {
            Some(remedy) => finding.with_remedy(remedy),
            None => finding,
        })
    };
    if thread.seen.cycles == 0 { Vec::new() } else { RULES.iter().filter_map(finding).collect() }
}

/// Evidence that a thread itself asks for its cycles.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Asks {
    /// It waits in a call for a timer or a sleep, not for an event with a timeout as helpers of
    /// runtimes do.
    pub for_timer: bool,
    /// It is the first thread of its process.
    pub first: bool,
}

/// Whether a thread is meant to be a real-time one: by its policy, by the deadline that the user
/// gave, or as it asks for a timer that releases its cycles at equal distances. A thread that
/// sleeps for a time may be a helper: it counts only if it is the first of its process and no other
/// thread of the program is a real-time one.
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
