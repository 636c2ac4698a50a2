//! The supported tools with their properties.

use super::Tool;
use crate::meta::TIMER_WORKLOAD;

impl Tool {
    /// The tool with this name; rtla's two also under their own names.
    pub fn from_name(name: &str) -> Option<Tool> {
        let bare = name.strip_prefix("rtla-").unwrap_or(name);
        let own_kind =
            |tool: &Tool| tool.workload_kind() == bare && tool.workload_kind() != TIMER_WORKLOAD;
        Tool::ALL.into_iter().find(|tool| tool.name() == name || own_kind(tool))
    }

    /// The workload of its series. cyclictest and jitterdebugger measure the same as punctual's
    /// timer; all others have their own.
    pub(crate) fn workload_kind(self) -> &'static str {
        match self {
            Tool::Cyclictest | Tool::Jitterdebugger => TIMER_WORKLOAD,
            Tool::Timerlat => "timerlat",
            Tool::Osnoise => "osnoise",
            other => other.name(),
        }
    }

    /// The tool's option for a histogram, or for a larger one.
    pub(crate) fn histogram_option(self) -> &'static str {
        match self {
            Tool::Cyclictest => "cyclictest: -h",
            Tool::Oslat => "oslat: -b",
            Tool::Timerlat | Tool::Osnoise => "rtla: -E and -b",
            Tool::Jitterdebugger => "jitterdebugger has one size: keep its samples, -s",
            Tool::Xenomai => "latency: -h and -H",
            Tool::Latmus => "latmus: -g and -H",
            _ => "this tool has none: cyclictest -h, or punctual itself",
        }
    }

    /// Whether `-b` ends a run at the first latency above it (for oslat it is the size of the
    /// histogram).
    pub(crate) fn can_break_run(self) -> bool {
        matches!(self, Tool::Cyclictest | Tool::Cyclicdeadline)
    }
}

pub(crate) fn all_names() -> String {
    Tool::ALL.map(Tool::name).join(", ")
}
