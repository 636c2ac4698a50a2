//! An experiment as written in its file: the settings with their places, without defaults and
//! resolved names. Each section is declared in its own file, together with the part of the plan
//! that it becomes.

mod explain;
mod load;
mod measure;
mod partition;
mod record;
mod settings;

use crate::form::{SectionKey, text_form};
pub use crate::kinds::{TimerSpec, WorkloadSpec};
use crate::problem::Problem;
use crate::section::{FileSection, section};
pub use crate::target::TargetSpec;
use crate::text::{SourceFormat, SourceText};
use crate::values;
pub(crate) use explain::ExplainResolved;
pub use explain::{ExplainPlan, ExplainSpec};
pub(crate) use load::LoadResolved;
pub use load::{LoadPlan, LoadSpec, PhasePlan, PhaseSpec};
pub(crate) use measure::MeasureResolved;
pub use measure::{HistogramSpec, MeasurePlan, MeasureSpec, SystressFile, SystressSpec};
pub(crate) use partition::PartitionResolved;
pub use partition::{PartitionPlan, PartitionSpec};
use punctual_core::Term;
pub(crate) use record::RecordResolved;
pub use record::{RecordPlan, RecordSpec};
pub(crate) use settings::SettingsResolved;
pub use settings::{Plan, Settings};
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
    /// `[target]`; without it this system.
    pub target: Option<TargetSpec>,
    /// `[partition]`; without it no CPUs are isolated.
    pub partition: Option<PartitionSpec>,
    /// `[record]`; without it nothing is recorded besides the measures.
    pub record: Option<RecordSpec>,
    /// `[explain]`; without it no events around the worst samples are kept.
    pub explain: Option<ExplainSpec>,
    /// `[published]`, shown beside the figures of the run.
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

/// The keys of a section, for documents and editors.
#[derive(Clone, PartialEq, Debug)]
pub struct SectionKeys {
    /// Its header: `[experiment]`, or `[[measure]]` for one that can be repeated.
    pub header: &'static str,
    /// Its keys. Those of a single kind of measure are in
    /// [`WorkloadKind::kind_keys`](crate::WorkloadKind::kind_keys).
    pub keys: Vec<SectionKey>,
}

/// Every section of an experiment file.
pub fn experiment_sections() -> Vec<SectionKeys> {
    let section_list = [
        ("[experiment]", Settings::section_keys()),
        ("[partition]", PartitionSpec::section_keys()),
        ("[record]", RecordSpec::section_keys()),
        ("[explain]", ExplainSpec::section_keys()),
        ("[target]", TargetSpec::section_keys()),
        ("[published]", PublishedSpec::section_keys()),
        ("[[measure]]", MeasureSpec::section_keys()),
        ("[[load]]", LoadSpec::section_keys()),
        ("[[phase]]", PhaseSpec::section_keys()),
    ];
    section_list.into_iter().map(|(header, keys)| SectionKeys { header, keys }).collect()
}

section! {
    /// Published results of this experiment.
    PublishedSpec {
        /// Who published it, and for which system.
        key source: String,
            text_form("TEXT", values::check_remark),
            [needed "the source of this result is missing", "write `source = \"who, which \
             system\"`"];
        /// Each published result.
        sections result: ResultSpec, "`[[published.result]]`", [];
    }
}

section! {
    /// One published result.
    ResultSpec {
        /// A description of the value.
        key what: String,
            text_form("TEXT", values::check_remark),
            [needed "this result does not name what it is of", "write `what = \"…\"`"];
        /// As it was published, with its unit.
        key value: String,
            text_form("TEXT", values::check_remark),
            [needed "the published value is missing", "write `value = \"1,000 to 3,000 µs\"`"];
        /// Where the same figure is found in this run, as `"writes/open: p99"`: a measure or a
        /// series, a colon, and a figure of a series (as in `require`) or one that the measure
        /// states, like `futex-calls-round`. A `*` stands for any part of a series' name;
        /// `@`*PHASE* after it names the phase if it was measured in several. For several series:
        /// the smallest minimum, the largest maximum, the mean of all samples, the sum of counts,
        /// the median of other figures.
        key here: Term, text_form("FIGURE", values::parse_term), ["none"];
        /// The trend that must be reproduced on any machine: two figures, or a figure and a number,
        /// with `<`, `<=`, `>`, `>=` or `~` (within a tenth of) between them, as `"forces/whole:
        /// p50 > 2 * writes/whole: p50"`; or an order of several.
        key shape: String, text_form("TEXT", values::check_shape), ["none"];
    }
}
