//! `[record]`.

use crate::form::{flag_form, pid_list_form, size_form, text_form, text_or};
use crate::limits::{DEFAULT_RECORDING, MAX_PIDS, MIN_RECORDING};
use crate::section::section;
use crate::values;
use crate::words::{ByteSize, CpuChoice, RecordedEvents};
use punctual_core::CpuSet;
use punctual_core::event::{Group, NamedTracepoint};

section! {
    /// Kernel events and test points to record while the experiment runs.
    RecordSpec {
        /// Groups of kernel events, which `punctual trace --events list` shows, and tracepoints by
        /// name, `"kmem:kmalloc"`, at most 32. An empty list records test points alone.
        list events: RecordedEvents,
            text_form("EVENTS", values::recorded_events),
            ["`[\"sched\", \"irq\", \"vectors\", \"softirq\", \"ipi\"]`"];
        /// The CPUs whose kernel events are recorded.
        key cpus: CpuChoice, text_or("CPUS", "all", values::cpu_choice), ["`\"all\"`"];
        /// Processes that kernel events are limited to; with none, all are recorded.
        key pids: Vec<u32>, pid_list_form(MAX_PIDS), [= Vec::new()] => plan;
        /// Whether test points of running applications are recorded.
        key points: bool, flag_form(), [= true] => plan;
        /// The maximum size of the recording. When it is reached, recording ends, the measures go
        /// on, and a finding reports since when events are missing.
        key max_size: ByteSize,
            size_form(MIN_RECORDING, u64::MAX, values::recording_size),
            [= ByteSize(DEFAULT_RECORDING)] => plan;
        /// How long intervals in the recording may take: `"request->reply < 500us"`, `"frame <=
        /// 2ms"`, `"sched_waking:worker->sched_switch < 100us"`. An interval beyond a limit ends
        /// the run with exit code 3; a limit that the recording does not decide, with 4.
        /// punctual-pairs(1) lists what can be named.
        list limits: String, text_form("LIMIT", values::design_limit), ["none"] => plan;
    }
    resolved {
        /// Events to record besides the measures.
        RecordPlan, RecordResolved {
            /// Groups of kernel events; empty if only test points are recorded.
            events: Vec<Group>;
            /// Tracepoints by name, outside of these groups.
            tracepoints: Vec<NamedTracepoint>;
            /// The CPUs whose kernel events are recorded.
            cpus: CpuSet;
        }
    }
}
