//! `testpoint-cost`: two consecutive test points; their distance is the cost of writing one.

use crate::form::{bytes_form, list_form, word_form};
use crate::kind::{HistogramPlan, Kind, KindFacts, ParameterProblems, parameters, words};
use crate::words::Word;
use punctual_core::{Bytes, Nanos};

words! {
    /// The way in which a test point is written.
    PointMechanism {
        /// Only two readings of the clock, which every other mechanism includes.
        Clock = "clock",
        /// The ring of punctual's own test points.
        Ring = "ring",
        /// A system call without effect.
        Syscall = "syscall",
        /// write(2) to a file of procfs.
        Procfs = "procfs",
        /// write(2) to a device file.
        Device = "device",
        /// write(2) to a device of punctual's own kernel module, which stores the point.
        ModuleDevice = "module-device",
        /// ioctl(2) on that device.
        ModuleIoctl = "module-ioctl",
        /// write(2) to a file of that module in procfs.
        ModuleProcfs = "module-procfs",
        /// write(2) to a file of that module in debugfs.
        ModuleDebugfs = "module-debugfs",
        /// write(2) to a file of tracefs (debugfs): trace_marker.
        Tracefs = "tracefs",
        /// write(2) to trace_marker_raw.
        TraceMarkerRaw = "trace_marker_raw",
        /// pwrite(2) to a memfd.
        Memfd = "memfd",
        /// write(2) to a pipe.
        Pipe = "pipe",
        /// A write to a memfd through io_uring(7).
        IoUring = "io_uring",
        /// A uprobe with a BPF program.
        Uprobe = "uprobe",
        /// user_events of tracefs.
        UserEvents = "user_events",
        /// LTTng-UST.
        Lttng = "lttng",
    }
}

parameters! {
    /// Ways to write a test point, in turn.
    TestpointCostPlan, TestpointCostSpec {
        /// Which ways to write a test point, one after the other in turn; those that this system
        /// lacks are listed with the reason.
        mechanisms: Vec<PointMechanism> = all_mechanisms(), list_form(1, 32,
            word_form("a way to write a test point"));
        /// What a point carries beside its time.
        payload: Bytes = Bytes(16), bytes_form(Bytes(1), Bytes::kib(4));
    }
}

fn all_mechanisms() -> Vec<PointMechanism> {
    PointMechanism::WORDS.iter().map(|(_, mechanism)| *mechanism).collect()
}

impl TestpointCostPlan {
    pub(crate) const FACTS: KindFacts = KindFacts {
        validated_by: "heads of rings, counters of the module and of BPF, calls by tracepoint",
        times_calls: true,
        ..KindFacts::new("testpoint-cost", "the cost of a test point, by mechanism")
    };
}

impl Kind for TestpointCostPlan {
    fn series_parts(&self) -> Vec<String> {
        self.mechanisms.iter().map(|mechanism| mechanism.word().to_owned()).collect()
    }
    fn default_histogram(&self) -> HistogramPlan {
        HistogramPlan { range: Nanos::from_micros(100), resolution: Nanos(10) }
    }
}

impl TestpointCostSpec {
    pub(crate) fn check_conflicts(
        &self,
        plan: &TestpointCostPlan,
        problems: &mut ParameterProblems,
    ) {
        if problems.threads != 1 {
            problems.report_conflict(
                &self.mechanisms,
                "one thread writes the points",
                "leave `threads` out",
            );
        }
        let repeated = |(k, one): (usize, &PointMechanism)| plan.mechanisms[..k].contains(one);
        if plan.mechanisms.iter().enumerate().any(repeated) {
            problems.report_conflict(
                &self.mechanisms,
                "a mechanism is listed twice",
                "name each once",
            );
        }
    }
}
