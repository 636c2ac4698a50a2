#![forbid(unsafe_code)]
//! Experiment files: read ([`Experiment`], as written), then resolved ([`Plan`], no options left). Pure: what must be
//! known of the system is handed in as a [`ResolveContext`].

mod context;
mod escape;
pub mod experiment;
pub mod limits;
pub mod plan;
pub mod problem;
mod render;
pub mod text;
pub mod words;

pub use context::{FindProgram, LoadOptions, ResolveContext};
pub use experiment::Experiment;
pub use limits::MAX_FILE_BYTES;
pub use plan::{
    DeadlineParameters, HistogramPlan, Length, LoadPlan, MeasurePlan, PartitionPlan, PhasePlan, Plan, Scheduling,
    SystressFile, ThreadPlan, TimerPlan, Workload,
};
pub use problem::{Problem, ProblemKind, ProblemRow, Problems, Weight};
pub use text::{At, Place, Setting, SourceFormat, SourceText, Span};
pub use words::{Nice, OnExit, Output, Placement, SystressFormat, TimerMethod, Word};
