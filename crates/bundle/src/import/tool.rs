//! The supported tools with their properties.

use crate::meta::TIMER_WORKLOAD;

macro_rules! tools {
    ($($(#[$doc:meta])* $tool:ident: $name:literal,)*) => {
        /// A tool whose results can be imported.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        pub enum Tool {
            $($(#[$doc])* $tool,)*
        }

        impl Tool {
            pub const ALL: [Tool; [$($name),*].len()] = [$(Tool::$tool),*];

            /// Its name on the command line.
            pub fn name(self) -> &'static str {
                match self { $(Tool::$tool => $name,)* }
            }
        }
    };
}

tools! {
    /// Wake-up latency of timers (rt-tests).
    Cyclictest: "cyclictest",
    /// The same for SCHED_DEADLINE tasks (rt-tests).
    Cyclicdeadline: "cyclicdeadline",
    /// Round trips of signals between threads (rt-tests).
    Signaltest: "signaltest",
    /// POSIX mutexes passed between two threads (rt-tests).
    Ptsematest: "ptsematest",
    Svsematest: "svsematest",
    Pmqtest: "pmqtest",
    /// sigwait(3) (rt-tests).
    Sigwaittest: "sigwaittest",
    /// Gaps seen by a busy loop (rt-tests).
    Oslat: "oslat",
    /// Gaps seen by the kernel's hwlat tracer (rt-tests).
    Hwlatdetect: "hwlatdetect",
    /// The output of rtla, and of the kernel's tracers of the same names.
    Timerlat: "rtla-timerlat",
    Osnoise: "rtla-osnoise",
    /// Wake-up latency of timers, with a thread on each CPU (jitterdebugger 0.1 to 0.3).
    Jitterdebugger: "jitterdebugger",
    /// Latency of Xenomai's timers (its `latency`), and of those of EVL.
    Xenomai: "xenomai-latency",
    Latmus: "latmus",
    /// cyclictest or timerlat beside loads.
    Rteval: "rteval",
    /// Scheduling delays of all threads (`perf sched timehist` and `latency`).
    PerfSched: "perf-sched",
    Schbench: "schbench",
    /// Gaps seen by a busy loop.
    Sysjitter: "sysjitter",
}

impl Tool {
    /// The tool with this name; rtla's two also under their own names.
    pub fn from_name(name: &str) -> Option<Tool> {
        let bare = name.strip_prefix("rtla-").unwrap_or(name);
        let own_kind = |tool: &Tool| tool.kind() == bare && tool.kind() != TIMER_WORKLOAD;
        Tool::ALL.into_iter().find(|tool| tool.name() == name || own_kind(tool))
    }

    /// The workload of its series. cyclictest and jitterdebugger measure the same as punctual's
    /// timer; all others have their own.
    pub fn kind(self) -> &'static str {
        match self {
            Tool::Cyclictest | Tool::Jitterdebugger => TIMER_WORKLOAD,
            Tool::Timerlat => "timerlat",
            Tool::Osnoise => "osnoise",
            other => other.name(),
        }
    }

    /// The tool's option for a histogram, or for a larger one.
    pub fn histogram_option(self) -> &'static str {
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
    pub fn breaks(self) -> bool {
        self.is_pairs()
            || matches!(self, Tool::Cyclictest | Tool::Cyclicdeadline | Tool::Signaltest)
    }

    /// Whether its results are of pairs: a sender and a receiver.
    pub fn is_pairs(self) -> bool {
        matches!(self, Tool::Ptsematest | Tool::Svsematest | Tool::Pmqtest | Tool::Sigwaittest)
    }
}

pub fn all_names() -> String {
    Tool::ALL.map(Tool::name).join(", ")
}
