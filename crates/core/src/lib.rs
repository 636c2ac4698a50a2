#![forbid(unsafe_code)]
//! The basic types of punctual, without I/O: units, CPU sets, scheduling names, samples, events,
//! histograms, losses and findings.
//!
//! All other crates use these types; this one depends on none of them.

pub mod account;
pub mod binned_counter;
pub mod bytes;
pub mod call_path;
pub mod cause;
pub mod cpuset;
pub mod cycle;
pub mod digest;
pub mod entry;
pub mod equivalence;
pub mod event;
pub mod fact;
pub mod finding;
pub mod format;
pub mod heat;
pub mod histogram;
pub mod limit;
pub mod made_of;
pub mod merge;
pub mod missing;
pub mod notes;
pub mod perf_event;
pub mod published;
pub mod requirement;
pub mod sample;
pub mod sched;
pub mod series;
pub mod series_requirement;
pub mod units;
pub mod words;

pub use account::{Account, AccountBucket, AccountCost, MAIN_PARTS, Split};
pub use binned_counter::BinnedCounter;
pub use bytes::Bytes;
pub use call_path::CallPath;
pub use cause::CauseKind;
pub use cpuset::CpuSet;
pub use digest::{DigestOf, Sha256Digest, encode_hex};
pub use entry::EntryKind;
pub use equivalence::{BlockFigure, Equivalence, Margin};
pub use event::{Event, EventKind, Names, Tid};
pub use fact::Fact;
pub use finding::{Finding, Severity};
pub use heat::{Heat, Sensor, SensorKind};
pub use histogram::LinearHistogram;
pub use limit::{Limit, LimitError};
pub use made_of::MadeOf;
pub use missing::Missing;
pub use notes::{
    Cell, ClockCost, Column, Figure, Notes, PLACES, STACKS, Table, Tolerance, Validation,
};
pub use perf_event::PerfEvent;
pub use published::{PublishedResult, PublishedResults, PublishedShape, ShapeError, Term};
pub use requirement::{BoundComparison, Metric, Requirement};
pub use sample::{Losses, Sample, SampleWindow, Unfinished};
pub use sched::{Clock, MAX_RT_PRIO, Policy, Priority};
pub use series::{SeriesData, SeriesShape};
pub use series_requirement::{NamedSeries, SeriesRequirement, cpu_label};
pub use units::{ClockNs, MonotonicNs, Nanos};
