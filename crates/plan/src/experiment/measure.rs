//! `[[measure]]`: the keys that every measure has.

use crate::form::{
    count_form, duration_form, number_form, path_text, placement_form, policy_form, text_form,
    text_or, word_form,
};
use crate::kinds::HistogramPlan;
use crate::kinds::{Workload, WorkloadSpec};
use crate::limits::{
    MAX_DURATION, MAX_LATENCY, MAX_PERIOD, MAX_SAMPLES, MAX_SYSTRESS_INDEX, MAX_THREADS,
    MIN_RUNTIME,
};
use crate::scheduling::{Length, ThreadPlan};
use crate::section::section;
use crate::text::Setting;
use crate::values;
use crate::words::{CpuChoice, Placement, SystressFormat};
use punctual_core::{CpuSet, Equivalence, Nanos, PerfEvent, Policy, Priority, SeriesRequirement};
use std::path::PathBuf;

section! {
    /// Something to measure.
    MeasureSpec {
        /// Unique in the file.
        key name: String,
            text_form("NAME", values::check_name),
            ["the kind; of several measures without a name the second is `timer-2`, and so on"];
        /// The CPUs that it measures on.
        key cpus: CpuChoice,
            text_or("CPUS", "all", values::cpu_choice),
            ["the CPUs of the `[partition]`, or `\"all\"` without one; of most other kinds the \
             last of them"];
        /// `"per-cpu"` is one thread on each of the `cpus`, pinned to it; their series are called
        /// *NAME*`/cpu0`, *NAME*`/cpu1`, … A number is the number of threads, each allowed on all
        /// of the `cpus`; their series are called *NAME*`/0`, *NAME*`/1`, …, or just *NAME* if
        /// there is one.
        key threads: Placement,
            placement_form(MAX_THREADS as u64),
            ["`\"per-cpu\"`; with the policy `deadline` `1`, because the kernel refuses that \
             policy to a thread that may not run on all CPUs"];
        /// The scheduling policy of the threads, see sched(7). The kernel's own spelling
        /// (`"SCHED_FIFO"`) is taken too.
        key policy: Policy,
            policy_form(),
            ["`\"fifo\"`; with the method `deadline` the policy `\"deadline\"`"];
        /// 1 is the lowest; only with `fifo` and `rr`. The default is above the
        /// interrupt threads of PREEMPT_RT, which have 50.
        key priority: Priority,
            number_form(1, 99, values::check_priority),
            [= Priority::new(80).expect("80 is a priority")];
        /// The budget of each period, only with the policy `deadline`; at most `deadline`.
        key runtime: Nanos,
            duration_form(MIN_RUNTIME, MAX_PERIOD),
            ["a tenth of the period, at least 10us, at most `deadline`"];
        /// The time in each period by which the budget is granted, only with the policy `deadline`;
        /// at most the period. Of a measure of the kind `program`: response times above it are
        /// counted.
        key deadline: Nanos, duration_form(MIN_RUNTIME, MAX_PERIOD),
            ["the period; of a `program` none"];
        /// How long each thread measures; at most as long as the phase.
        key duration: Nanos, duration_form(Nanos::MICRO, MAX_DURATION), [];
        /// How many samples each thread takes; instead of `duration`. At one sample a period they
        /// must fit into the phase.
        ///
        /// With neither it lasts as long as the phase; if that has no `duration` either, until
        /// somebody ends the run.
        key samples: u64, count_form(1, MAX_SAMPLES), [];
        /// The exact histogram of each series: bins of the width `resolution` from zero up to the
        /// one that holds `range`. Samples outside are counted, and are in all statistics and in
        /// the HDR histogram, which covers all samples. At most 16777216 bins per series, and all
        /// series of the run together at most a quarter of the memory.
        table histogram: HistogramSpec,
            "`histogram`",
            ["`{ range = \"1ms\", resolution = \"1us\" }`"];
        /// A latency above this ends the run; the results up to then are complete.
        key stop_above: Nanos, duration_form(Nanos(1), MAX_LATENCY), ["never"] => plan;
        /// Events of perf-list(1) that are counted of each measuring thread while it measures, at
        /// most 16: `cycles`, `instructions`, `cache-misses`, `context-switches`, or *GROUP*:*NAME*
        /// of a tracepoint. The kernel saves the counters at each context switch of the thread, and
        /// the latency includes that. What this machine cannot count is shown as unavailable, with
        /// the reason.
        list counters: PerfEvent, text_form("EVENT", values::perf_event), ["none"] => plan;
        /// Requirements that each series must meet, at most 64: a figure, a comparison (`<`, `<=`,
        /// `==`, `>=`, `>`) and a bound. Figures that are times are `min`, `mean` (`avg`), `max`,
        /// `stddev`, `median`, percentiles like `p99.9`, and `corrected p99.9`, the percentile
        /// corrected for coordinated omission; their bounds are durations. Figures that are counts
        /// are `count`, `skipped` (releases without a sample: missed periods), `overruns` (releases
        /// of a program that passed while the cycle before still ran; of other measures the skipped
        /// ones), `lost`, `faults` (page faults of the thread) and `switches` (its involuntary
        /// context switches); their bounds are whole numbers.
        ///
        /// If a requirement is not met, the exit status is 3. If the evidence does not decide one,
        /// it is 4: samples were lost, a percentile needs more samples than there are, or the run
        /// was interrupted before its end and nothing had violated the requirement by then. It is 4
        /// too if the run is invalid, which means that it was not measured as requested: policy,
        /// affinity or clock changed, memory was not locked, a load died or idled, another punctual
        /// measured on the same CPU.
        ///
        /// Of a measure of the kind `program` a requirement is about the response times of each
        /// thread. `wakeup`, `response`, `execution` or `period` before it names another series,
        /// *THREAD*`/response` that of one thread: `"servo/response p99.9 < 800us"`. If no such
        /// thread is seen, it is undecided. Of the kind `entries` it is about the interruptions of
        /// each CPU; `entry` names the other series, `cpu3/` one CPU: `"cpu3/entry p99 < 20us"`,
        /// `"entries < 10"`.
        list require: SeriesRequirement,
            text_form("REQUIREMENT", values::series_requirement),
            ["none"] => plan;
        /// By how much each series may differ from the same series of another run, or of another
        /// cell of a lab, and still be called equivalent: `median` or `block-max` (the worst of a
        /// block: a part of a run where there is one run a side, else a run), a colon, and a time
        /// or a percentage of the first side's, like `"median:10%"`. `punctual compare` and
        /// `punctual lab` then judge whether the 90 % interval of the difference lies within this
        /// margin. Where it is not stated before the measurement, nothing is called equivalent.
        list equivalence: Equivalence,
            text_form("FIGURE:MARGIN", values::parse_equivalence),
            ["none"] => plan;
        /// The phases in which it measures.
        list phases: String, text_form("NAME", values::check_name), ["all"];
        /// Writes an additional result file in the layout of systress. Only a measure with a single
        /// thread and in a single phase can have one. `file` is by default `timer_thread`*NN*`.txt`
        /// with the index in two digits, `format` is `"txt"`, `index` is what the file's first
        /// column shows, by default the place of the measure in the file, from 0.
        table systress: SystressSpec, "`systress`", ["none"];
    }
    beside {
        /// `kind`, with the keys that only this kind has.
        workload: WorkloadSpec;
    }
    resolved {
        /// Something to measure in a phase.
        MeasurePlan, MeasureResolved {
            /// Unique in the plan, except for the same measure in another phase.
            name: String;
            /// The work of the threads.
            workload: Workload;
            /// All measured CPUs.
            cpus: CpuSet;
            /// The placement of the threads on them.
            placement: Placement;
            /// The measuring threads, at least one, or the CPUs of `entries`: each has the series
            /// that [`Workload::series_of`] gives for its name.
            threads: Vec<ThreadPlan>;
            /// The end of each thread.
            length: Length;
            /// The exact histogram of each series.
            histogram: HistogramPlan;
            /// For a program: response times above this are counted.
            deadline: Option<Nanos>;
            /// The result file in systress format; only with a single thread.
            systress: Option<SystressFile>;
        }
    }
}

section! {
    /// The exact histogram of each series of a measure.
    HistogramSpec {
        /// The largest latency that it holds.
        key range: Nanos, duration_form(Nanos(1), MAX_LATENCY), ["that of the kind"];
        /// The width of a bin.
        key resolution: Nanos, duration_form(Nanos(1), MAX_LATENCY), ["that of the kind"];
    }
}

section! {
    /// A result file in the layout of systress.
    SystressSpec {
        /// Where it is written.
        key file: String, path_text(), ["`timer_thread`*NN*`.txt`"];
        /// How its columns are separated.
        key format: SystressFormat, word_form("a layout of systress"), [= SystressFormat::Txt];
        /// What the file's first column shows.
        key index: u32,
            count_form(0, MAX_SYSTRESS_INDEX.into()),
            ["the place of the measure in the file, from 0"];
    }
}

/// A result file in the layout of systress.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SystressFile {
    /// Relative to the current directory.
    pub path: PathBuf,
    /// Its layout.
    pub format: SystressFormat,
    /// The value of its first column.
    pub index: u32,
}

impl MeasureSpec {
    /// `range` of `histogram`.
    pub(crate) fn histogram_range(&self) -> Setting<Nanos> {
        self.histogram.as_ref().and_then(|histogram| histogram.range)
    }
    /// `resolution` of `histogram`.
    pub(crate) fn histogram_resolution(&self) -> Setting<Nanos> {
        self.histogram.as_ref().and_then(|histogram| histogram.resolution)
    }
}
