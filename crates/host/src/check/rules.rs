//! The table of rules, one file per group.

mod clock;
mod debugging;
mod housekeeping;
mod interrupts;
mod isolation;
mod kernel;
mod memory;
mod platform;
mod power;
mod rights;
mod sharing;
mod threads;
mod tools;
mod workload;

use super::context::Context;
use super::outcome::Conclusion;
use std::fmt;

/// The subject of a rule.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RuleGroup {
    Kernel,
    Clock,
    /// Frequency, idle states and other power saving.
    Power,
    Isolation,
    /// Interrupts and their CPUs.
    Interrupts,
    Workload,
    /// The kernel's own periodic work.
    Housekeeping,
    Memory,
    /// Checks and tracers that take time.
    Debugging,
    Platform,
    /// The rights of this user.
    Rights,
    /// Facilities that punctual can use.
    Tools,
}

impl fmt::Display for RuleGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            RuleGroup::Kernel => "kernel",
            RuleGroup::Clock => "clock",
            RuleGroup::Power => "power",
            RuleGroup::Isolation => "isolation",
            RuleGroup::Interrupts => "interrupts",
            RuleGroup::Workload => "workload",
            RuleGroup::Housekeeping => "housekeeping",
            RuleGroup::Memory => "memory",
            RuleGroup::Debugging => "debugging",
            RuleGroup::Platform => "platform",
            RuleGroup::Rights => "rights",
            RuleGroup::Tools => "tools",
        })
    }
}

pub struct Rule {
    /// Its name, in kebab case; never changed once released.
    pub id: &'static str,
    pub group: RuleGroup,
    /// The expected state.
    pub title: &'static str,
    /// Why it matters, in one sentence.
    pub why: &'static str,
    /// Kernel documentation, source file or man page with the reason.
    pub source: &'static str,
    pub evaluate: fn(&Context) -> Conclusion,
}

/// All rules, in display order.
pub fn all_rules() -> impl Iterator<Item = &'static Rule> {
    [
        kernel::RULES,
        clock::RULES,
        power::RULES,
        isolation::RULES,
        sharing::RULES,
        interrupts::RULES,
        workload::RULES,
        threads::RULES,
        housekeeping::RULES,
        memory::RULES,
        debugging::RULES,
        platform::RULES,
        rights::RULES,
        tools::RULES,
    ]
    .into_iter()
    .flatten()
}
