//! The table of rules, a file a group.

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
mod tools;
mod workload;

use super::context::Context;
use super::outcome::Conclusion;
use std::fmt;

/// What a rule is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Group {
    Kernel,
    Clock,
    /// Frequency, idle states and other savings of power.
    Power,
    Isolation,
    /// Interrupts and where they go.
    Interrupts,
    Workload,
    /// The kernel's own periodic work.
    Housekeeping,
    Memory,
    /// Checks and tracers that cost time.
    Debugging,
    Platform,
    /// What this user may do.
    Rights,
    /// What punctual itself can use here.
    Tools,
}

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Group::Kernel => "kernel",
            Group::Clock => "clock",
            Group::Power => "power",
            Group::Isolation => "isolation",
            Group::Interrupts => "interrupts",
            Group::Workload => "workload",
            Group::Housekeeping => "housekeeping",
            Group::Memory => "memory",
            Group::Debugging => "debugging",
            Group::Platform => "platform",
            Group::Rights => "rights",
            Group::Tools => "tools",
        })
    }
}

pub struct Rule {
    /// Its name, in kebab case; never changed once released.
    pub id: &'static str,
    pub group: Group,
    /// What should be the case.
    pub title: &'static str,
    /// Why it matters, in one sentence.
    pub why: &'static str,
    /// Kernel documentation, source file or man page that says so.
    pub source: &'static str,
    pub evaluate: fn(&Context) -> Conclusion,
}

/// All rules, in the order in which they are shown.
pub fn rules() -> impl Iterator<Item = &'static Rule> {
    [
        kernel::RULES,
        clock::RULES,
        power::RULES,
        isolation::RULES,
        sharing::RULES,
        interrupts::RULES,
        workload::RULES,
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
