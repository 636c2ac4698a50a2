#![forbid(unsafe_code)]
//! Experiment files: parsed ([`Experiment`], as written), then resolved ([`Plan`], without open
//! options). Pure: facts about the system are passed in as a [`ResolveContext`].

pub mod calibration;
mod context;
mod describe;
mod escape;
pub mod experiment;
mod form;
mod kind;
pub mod kinds;
pub mod lab;
pub mod limits;
mod load;
mod notes;
pub mod overrides;
mod parameter;
pub mod plan;
pub mod problem;
mod render;
mod resolve;
mod scheduling;
mod section;
pub mod seeding;
mod systress;
mod table;
pub mod target;
pub mod text;
mod to_experiment;
mod to_toml;
mod toml_file;
mod values;
pub mod words;

pub use context::{FindProgram, LoadOptions, ResolveContext};
pub use experiment::{Experiment, SectionKeys, experiment_sections};
pub use form::{DefaultValue, SectionKey, ValueType};
pub use kinds::WorkloadKind;
pub use limits::MAX_FILE_BYTES;
pub use load::{load_and_resolve, load_experiment, read_target};
pub use plan::{
    DeadlineParameters, ExplainPlan, HistogramPlan, Length, LoadPlan, MeasurePlan, PartitionPlan,
    PhasePlan, Plan, RecordPlan, SchedulingSpec, SystressFile, ThreadPlan, TimerPlan, Workload,
};
pub use problem::{Problem, ProblemKind, ProblemRow, Problems, Weight};
pub use resolve::{Resolved, resolve_experiment};
pub use target::{
    Acceleration, Architecture, Board, Device, KernelChoice, SshBoot, SshPlan, TargetKind,
    TargetPlan, TargetSpec, VmPlan,
};
pub use text::{At, Setting, SourceFormat, SourceText, Span, TextPlace};
pub use words::{
    ByteSize, CommandLine, CpuChoice, Frequency, LoadOutput, Nice, OnExit, Placement, SshAddress,
    SystressFormat, Temperature, TimerMethod, Word,
};
