//! The limits and capabilities of a process.

use crate::environment::read_text;
use crate::files::Files;
use punctual_core::Fact;
use punctual_sys::rights::{Capabilities, Capability};

/// A limit: `None` is unlimited.
pub(crate) type ProcessLimit = Option<u64>;

/// /proc/PID/limits and /proc/PID/status.
#[derive(Clone, Debug)]
pub struct ProcessFacts {
    process: String,
    limits: Fact<String>,
    capabilities: Fact<Capabilities>,
}

impl ProcessFacts {
    /// Those of this process.
    pub fn read(files: &dyn Files) -> ProcessFacts {
        ProcessFacts::from_process(files, "self")
    }

    /// Those of a process, by its directory in /proc.
    pub(super) fn from_process(files: &dyn Files, process: &str) -> ProcessFacts {
        let path = format!("/proc/{process}/status");
        let effective = |status: String| {
            Capabilities::parse(&status).ok_or(format!("{path} has no line `CapEff`"))
        };
        let capabilities =
            files.read(&path).map_err(|why| why.to_string()).and_then(effective).into();
        let limits = read_text(files, &format!("/proc/{process}/limits"));
        ProcessFacts { process: process.to_owned(), limits, capabilities }
    }

    /// The soft limit of a line, like `Max realtime priority`.
    pub(crate) fn soft_limit(&self, name: &str) -> Fact<ProcessLimit> {
        self.read_limit(name, 0)
    }

    /// The hard limit, up to which the process may raise the soft one itself.
    pub(super) fn hard_limit(&self, name: &str) -> Fact<ProcessLimit> {
        self.read_limit(name, 1)
    }

    fn read_limit(&self, name: &str, column: usize) -> Fact<ProcessLimit> {
        let read = |text: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name))?;
            let value = line.split_whitespace().nth(column)?;
            if value == "unlimited" { Some(None) } else { value.parse().ok().map(Some) }
        };
        match &self.limits {
            Fact::Known(text) => read(text).map(Fact::Known).unwrap_or_else(|| {
                let process = &self.process;
                Fact::Unavailable(format!("/proc/{process}/limits has no line `{name}`"))
            }),
            Fact::Unavailable(why) => Fact::Unavailable(why.clone()),
            Fact::NotAsked => Fact::NotAsked,
        }
    }

    /// Whether a capability is effective.
    pub fn has_capability(&self, capability: Capability) -> Fact<bool> {
        self.capabilities.clone().map(|rights| rights.has_capability(capability))
    }
}
