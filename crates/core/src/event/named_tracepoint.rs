//! Tracepoints by name.

use crate::PerfEvent;
use std::fmt;
use std::str::FromStr;

/// A tracepoint, as under `events/` of tracefs.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct NamedTracepoint {
    /// `kmem`.
    pub group: String,
    /// `kmalloc`.
    pub name: String,
}

impl NamedTracepoint {
    /// The maximum number recorded at once: each is a separate program in the kernel.
    pub const MAX: usize = 32;
}

impl FromStr for NamedTracepoint {
    type Err = String;
    fn from_str(text: &str) -> Result<NamedTracepoint, String> {
        match text.parse::<PerfEvent>() {
            Ok(PerfEvent::Tracepoint { group, name }) => Ok(NamedTracepoint { group, name }),
            _ => Err(format!("`{}` is not GROUP:NAME of a tracepoint", text.escape_debug())),
        }
    }
}

impl fmt::Display for NamedTracepoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.group, self.name)
    }
}
