//! An experiment as written in its file: what is set, with its place; no defaults, no names
//! resolved.

pub use crate::kinds::TimerSpec;
use crate::problem::Problem;
pub use crate::target::TargetSpec;
use crate::text::{At, Setting, SourceFormat, SourceText, Span};
use crate::words::{
    ByteSize, CpuChoice, Nice, OnExit, Output, Placement, RecordedEvents, SystressFormat,
};
pub use crate::workload::WorkloadSpec;
use punctual_core::event::Group;
use punctual_core::{CpuSet, Nanos, PerfEvent, Policy, Priority, Requirement, Term};
use std::sync::Arc;

/// A whole file, from [`crate::load()`].
#[derive(Clone, Debug)]
pub struct Experiment {
    /// The file's name and text, as read.
    pub source: Arc<SourceText>,
    /// Its language.
    pub format: SourceFormat,
    /// `[experiment]`.
    pub settings: Settings,
    /// `[target]`.
    pub target: Option<TargetSpec>,
    /// `[partition]`.
    pub partition: Option<PartitionSpec>,
    /// `[record]`.
    pub record: Option<RecordSpec>,
    /// `[explain]`.
    pub explain: Option<ExplainSpec>,
    /// `[published]`.
    pub published: Option<PublishedSpec>,
    /// Every `[[measure]]`, in order.
    pub measures: Vec<MeasureSpec>,
    /// Every `[[load]]`, in order.
    pub loads: Vec<LoadSpec>,
    /// Every `[[phase]]`, in order.
    pub phases: Vec<PhaseSpec>,
    /// The warnings about the file; [`crate::resolve()`] passes them on.
    pub warnings: Vec<Problem>,
}

/// What is set for the whole experiment.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// `name`
    pub name: Setting<String>,
    /// `cpus`: where the controller thread runs.
    pub cpus: Setting<CpuChoice>,
    /// `refresh` of the live view.
    pub refresh: Setting<Nanos>,
    /// `memory_lock`
    pub memory_lock: Setting<bool>,
    /// `dma_latency`; `None` inside: do not touch it.
    pub dma_latency: Setting<Option<Nanos>>,
    /// `seed` of everything random.
    pub seed: Setting<u64>,
    /// `output`: the bundle's directory.
    pub output: Setting<String>,
    /// `cpu_load`: show and record the load of each CPU.
    pub cpu_load: Setting<bool>,
    /// `keep_samples`: raw samples kept of each series.
    pub keep_samples: Setting<u64>,
    /// `require_real_time`
    pub require_real_time: Setting<bool>,
    /// `force`: what could make the system unusable is let through, as by `--force`.
    pub force: Setting<bool>,
    /// `on_violation`: what sh(1) runs when a requirement is violated.
    pub on_violation: Setting<String>,
    /// `forever`: until it is interrupted, within bounds of memory and disk.
    pub forever: Setting<bool>,
}

/// CPUs to set apart while the experiment runs.
#[derive(Clone, Debug)]
pub struct PartitionSpec {
    /// The section's header.
    pub span: Span,
    /// `cpus`
    pub cpus: Setting<CpuSet>,
    /// `name`
    pub name: Setting<String>,
    /// `disable`: names of tweaks not to make.
    pub disable: Vec<At<String>>,
}

/// Kernel events and test points to record while the experiment runs.
#[derive(Clone, Debug)]
pub struct RecordSpec {
    /// The section's header.
    pub span: Span,
    /// `events`: groups of kernel events, and tracepoints by name.
    pub events: Setting<Vec<At<RecordedEvents>>>,
    /// `cpus` whose kernel events are recorded.
    pub cpus: Setting<CpuChoice>,
    /// `pids`: the processes that kernel events are limited to.
    pub pids: Setting<Vec<u32>>,
    /// `points`: whether applications' test points are recorded.
    pub points: Setting<bool>,
    /// `max_size` of the recording.
    pub max_size: Setting<ByteSize>,
    /// `limits`: how long intervals in it may take, `A->B < 100us`.
    pub limits: Setting<Vec<At<String>>>,
}

/// What is kept to explain the worst samples.
#[derive(Clone, Debug)]
pub struct ExplainSpec {
    /// The section's header.
    pub span: Span,
    /// `worst`: of how many samples of a series.
    pub worst: Setting<u32>,
    /// `above`: from which latency on.
    pub above: Setting<Nanos>,
    /// `before`: how much before a sample's begin.
    pub before: Setting<Nanos>,
    /// `account`: whether the kernel counts what the time of every sample went to.
    pub account: Setting<bool>,
    /// `buffer` of each CPU.
    pub buffer: Setting<ByteSize>,
    /// `events`: groups of kernel events.
    pub events: Setting<Vec<At<Group>>>,
    /// `stacks` of the kernel.
    pub stacks: Setting<bool>,
}

/// What was published of this experiment.
#[derive(Clone, Debug)]
pub struct PublishedSpec {
    /// The section's header.
    pub span: Span,
    /// `source`: by whom, of which system.
    pub source: Setting<String>,
    /// Every `[[published.result]]`, in order.
    pub results: Vec<ResultSpec>,
}

/// One published result.
#[derive(Clone, Debug)]
pub struct ResultSpec {
    /// The section's header.
    pub span: Span,
    /// `what`
    pub what: Setting<String>,
    /// `value`, as published.
    pub value: Setting<String>,
    /// `here`: the same figure of this run.
    pub here: Setting<Term>,
    /// `shape`: what must come out anywhere, as written.
    pub shape: Setting<String>,
}

/// Something to measure.
#[derive(Clone, Debug)]
pub struct MeasureSpec {
    /// The section's header.
    pub span: Span,
    /// `name`
    pub name: Setting<String>,
    /// `kind`, with the keys that only this kind has.
    pub workload: WorkloadSpec,
    /// `cpus`
    pub cpus: Setting<CpuChoice>,
    /// `threads`
    pub threads: Setting<Placement>,
    /// `policy`
    pub policy: Setting<Policy>,
    /// `priority`
    pub priority: Setting<Priority>,
    /// `runtime` of SCHED_DEADLINE.
    pub runtime: Setting<Nanos>,
    /// `deadline` of SCHED_DEADLINE.
    pub deadline: Setting<Nanos>,
    /// `duration`
    pub duration: Setting<Nanos>,
    /// `samples`
    pub samples: Setting<u64>,
    /// `histogram.range`
    pub range: Setting<Nanos>,
    /// `histogram.resolution`
    pub resolution: Setting<Nanos>,
    /// `stop_above`
    pub stop_above: Setting<Nanos>,
    /// `counters`: events of perf-list(1) that are counted of each measuring thread.
    pub counters: Vec<At<PerfEvent>>,
    /// `require`
    pub require: Vec<At<Requirement>>,
    /// `phases`, by name.
    pub phases: Setting<Vec<At<String>>>,
    /// `systress`: the result file that systress would leave.
    pub systress: Option<SystressSpec>,
}

/// A result file in the layout of systress.
#[derive(Clone, Debug)]
pub struct SystressSpec {
    /// The whole setting.
    pub span: Span,
    /// `file`
    pub file: Setting<String>,
    /// `format`
    pub format: Setting<SystressFormat>,
    /// `index`, as the file's first column shows it.
    pub index: Setting<u32>,
}

/// A program that loads the system.
#[derive(Clone, Debug)]
pub struct LoadSpec {
    /// The section's header.
    pub span: Span,
    /// `name`
    pub name: Setting<String>,
    /// `command`, split into arguments; never empty.
    pub command: Setting<Vec<String>>,
    /// `cpus`
    pub cpus: Setting<CpuChoice>,
    /// `policy`
    pub policy: Setting<Policy>,
    /// `priority`
    pub priority: Setting<Priority>,
    /// `nice`
    pub nice: Setting<Nice>,
    /// `stdout`
    pub stdout: Setting<Output>,
    /// `stderr`
    pub stderr: Setting<Output>,
    /// `on_success`
    pub on_success: Setting<OnExit>,
    /// `on_failure`
    pub on_failure: Setting<OnExit>,
    /// `start_delay`
    pub start_delay: Setting<Nanos>,
    /// `may_rest`
    pub may_rest: Setting<bool>,
}

/// A part of the experiment with its own loads.
#[derive(Clone, Debug)]
pub struct PhaseSpec {
    /// The section's header.
    pub span: Span,
    /// `name`
    pub name: Setting<String>,
    /// `duration`
    pub duration: Setting<Nanos>,
    /// `loads`, by name.
    pub loads: Vec<At<String>>,
}
