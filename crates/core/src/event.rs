//! Events: kernel events and test points on one clock.
//!
//! Every recorder and every recording yields one stream of [`Event`]s, the only input of pairing,
//! timeline and attribution. The names of the numbers in events are in [`Names`].

mod context;
mod coverage;
mod group;
mod kind;
mod names;
mod trace_moment;
mod tracepoint;

use crate::{MonotonicNs, PerfEvent};
pub use context::CpuContext;
pub use coverage::{Recorded, RecordedSource};
pub use group::Group;
pub use kind::{EventKind, Futex, PointKind, TaskState, signal};
pub use names::{CallCounts, FunctionName, LineName, Names, ProbeCost, TaskName};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
pub use trace_moment::{
    LateTimer, MomentSource, Noise, NoiseKind, TraceMoment, marker_of_cyclictest,
};
pub use tracepoint::{FieldKind, RecordBytes, RecordField, TracepointFormat, TracepointId};

/// A thread, by the kernel's id in the initial PID namespace. Idle tasks are 0 on every CPU.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Tid(pub u32);

impl Tid {
    /// The idle task of any CPU.
    pub const IDLE: Tid = Tid(0);
    /// A task that is not known. The kernel's ids are smaller.
    pub const UNKNOWN: Tid = Tid(u32::MAX);
}

/// The index of a test point in [`Names::points`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PointId(pub u32);

/// The index of a probed function in [`Names::functions`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct FunctionId(pub u32);

/// The index of a kernel stack in [`Names::stacks`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct StackId(pub u32);

/// An event.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Event {
    pub at: MonotonicNs,
    /// The CPU; [`Event::NO_CPU`] if the source does not know it (test points).
    pub cpu: u16,
    /// The thread that ran there: for an interrupt, the interrupted one.
    pub tid: Tid,
    pub what: EventKind,
}

impl Event {
    /// Test points do not know their CPU: reading it would cost more than the point.
    pub const NO_CPU: u16 = u16::MAX;
}

/// The name of a network device, of at most 15 bytes (IFNAMSIZ). Untrusted: escape it for output.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct InterfaceName(pub [u8; 16]);

impl InterfaceName {
    /// The name in these bytes, up to the first NUL.
    pub fn from_bytes(bytes: &[u8]) -> InterfaceName {
        let mut name = InterfaceName::default();
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len()).min(15);
        name.0[..end].copy_from_slice(&bytes[..end]);
        name
    }
}

impl fmt::Display for InterfaceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = self.0.iter().position(|byte| *byte == 0).unwrap_or(self.0.len());
        f.write_str(&String::from_utf8_lossy(&self.0[..end]))
    }
}

/// A tracepoint, as under `events/` of tracefs.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct NamedTracepoint {
    /// `kmem`.
    pub group: String,
    /// `kmalloc`.
    pub name: String,
    /// Which of its records are wanted, in the kernel's language for filters on its fields
    /// (Documentation/trace/events.rst): `bytes_req > 4096`; empty: all.
    pub filter: String,
}

impl NamedTracepoint {
    /// The maximum number recorded at once: each is a separate program in the kernel.
    pub const MAX: usize = 32;

    /// `kmem:kmalloc`.
    pub fn full_name(&self) -> String {
        format!("{}:{}", self.group, self.name)
    }
}

impl FromStr for NamedTracepoint {
    type Err = String;
    fn from_str(text: &str) -> Result<NamedTracepoint, String> {
        let (whole, filter) = match text.strip_suffix('/').and_then(|text| text.split_once('/')) {
            Some((whole, filter)) => (whole, filter.trim()),
            None => (text, ""),
        };
        let is_filter = whole.len() == text.len() || !filter.is_empty();
        match whole.parse::<PerfEvent>() {
            Ok(PerfEvent::Tracepoint { group, name })
                if is_filter && !filter.contains(char::is_control) =>
            {
                Ok(NamedTracepoint { group, name, filter: filter.to_owned() })
            }
            _ => Err(format!(
                "`{}` is not GROUP:NAME of a tracepoint, or GROUP:NAME/FILTER/",
                text.escape_debug()
            )),
        }
    }
}

impl fmt::Display for NamedTracepoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.filter.as_str() {
            "" => f.write_str(&self.full_name()),
            filter => write!(f, "{}/{filter}/", self.full_name()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tracepoints_are_parsed_with_their_filters_and_printed_so_that_they_parse_again() {
        let filtered = "kmem:kmalloc/bytes_req > 4096 && gfp_flags & 0x10/";
        let parsed: NamedTracepoint = filtered.parse().unwrap();
        assert_eq!(parsed.filter, "bytes_req > 4096 && gfp_flags & 0x10");
        assert_eq!(
            (parsed.full_name(), parsed.to_string()),
            ("kmem:kmalloc".into(), filtered.into())
        );
        for wrong in
            ["kmem:kmalloc//", "kmem:kmalloc/ /", "kmem:kmalloc/a\nb/", "kmem/a/", "kmem:a/b"]
        {
            assert!(wrong.parse::<NamedTracepoint>().is_err(), "{wrong}");
        }
    }
}
