//! An experiment as written in its file: what is set, with its place; no defaults, no names
//! resolved. Each section is declared in a file of its own.

mod explain;
mod load;
mod measure;
mod partition;
mod published;
mod record;
mod settings;

pub use crate::kinds::TimerSpec;
pub use crate::target::TargetSpec;
pub use crate::workload::WorkloadSpec;
pub use explain::ExplainSpec;
pub use load::{LoadSpec, PhaseSpec};
pub use measure::{HistogramSpec, MeasureSpec, SystressSpec};
pub use partition::PartitionSpec;
pub use published::{PublishedSpec, ResultSpec};
pub use record::RecordSpec;
pub use settings::Settings;

use crate::problem::Problem;
use crate::text::{SourceFormat, SourceText};
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
