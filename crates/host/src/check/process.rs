//! What this process may do: its limits and its capabilities.

use crate::environment::text;
use crate::files::Files;
pub use crate::rights::Capability;
use punctual_core::Fact;

/// A limit: `None` is unlimited.
pub type Limit = Option<u64>;

/// /proc/self/limits and /proc/self/status.
#[derive(Clone, Debug)]
pub struct Process {
    limits: Fact<String>,
    capabilities: Fact<u64>,
}

impl Process {
    pub fn read(files: &dyn Files) -> Process {
        let path = "/proc/self/status";
        let effective = |status: String| {
            let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
            line.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
                .ok_or(format!("{path} has no line `CapEff`"))
        };
        let capabilities =
            files.read(path).map_err(|why| why.to_string()).and_then(effective).into();
        Process { limits: text(files, "/proc/self/limits"), capabilities }
    }

    /// The soft limit of a line, like `Max realtime priority`.
    pub fn soft_limit(&self, name: &str) -> Fact<Limit> {
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

    /// Whether a capability is in force.
    pub fn has(&self, capability: Capability) -> Fact<bool> {
        self.capabilities.clone().map(|mask| mask >> capability as u32 & 1 == 1)
    }
}
