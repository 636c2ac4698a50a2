//! The rights of this process: its limits and its capabilities.

use crate::environment::text;
use crate::files::Files;
use punctual_core::Fact;
use punctual_sys::rights::Capabilities;
pub use punctual_sys::rights::Capability;

/// A limit: `None` is unlimited.
pub(crate) type ProcessLimit = Option<u64>;

/// /proc/self/limits and /proc/self/status.
#[derive(Clone, Debug)]
pub struct ProcessFacts {
    limits: Fact<String>,
    capabilities: Fact<Capabilities>,
}

impl ProcessFacts {
    pub fn read(files: &dyn Files) -> ProcessFacts {
        let path = "/proc/self/status";
        let effective = |status: String| {
            Capabilities::parse(&status).ok_or(format!("{path} has no line `CapEff`"))
        };
        let capabilities =
            files.read(path).map_err(|why| why.to_string()).and_then(effective).into();
        ProcessFacts { limits: text(files, "/proc/self/limits"), capabilities }
    }

    /// The soft limit of a line, like `Max realtime priority`.
    pub(crate) fn soft_limit(&self, name: &str) -> Fact<ProcessLimit> {
        let soft = |text: &str| {
            let value = text
                .lines()
                .find_map(|line| line.strip_prefix(name))?
                .split_whitespace()
                .next()?
                .to_owned();
            if value == "unlimited" { Some(None) } else { value.parse().ok().map(Some) }
        };
        match &self.limits {
            Fact::Known(text) => soft(text).map(Fact::Known).unwrap_or_else(|| {
                Fact::Unavailable(format!("/proc/self/limits has no line `{name}`"))
            }),
            Fact::Unavailable(why) => Fact::Unavailable(why.clone()),
            Fact::NotAsked => Fact::NotAsked,
        }
    }

    /// Whether a capability is effective.
    pub fn has(&self, capability: Capability) -> Fact<bool> {
        self.capabilities.clone().map(|rights| rights.has(capability))
    }
}
