#![forbid(unsafe_code)]
//! The results directory ("bundle"): written during a run, opened complete or cut off.
//! docs/reference/bundle.md describes it for readers in other languages.
//!
//! ```text
//! bundle.json              kind, version, whether it ended ([`manifest::Manifest`])
//! experiment.toml|.cfg     the experiment as written, byte for byte
//! plan.toml                the plan as run, every default explicit
//! environment.json         the system before the run; environment-end.json: after it
//! findings.json            warnings about the figures
//! summary.json             the figures (see [`summary::Summary`])
//! phases/000/phase.json     name, times, CPU load
//! phases/000/0000.meta.json  the description of the series
//! phases/000/0000.checkpoint its statistics during the run ([`checkpoint`]); at the end instead:
//! phases/000/0000.state.json its statistics for every reader
//! phases/000/0000.account.json the breakdown of its samples' time, if requested ([`account`])
//! phases/000/0000.log        its samples and one-second windows, appended block by block
//! phases/000/0000.old.log    the log before it, in a run for weeks
//! phases/000/0000.lines      its long plot, in a run for weeks (see [`lines`])
//! exact.json                 the worst samples by function, in virtual time (see [`exact`])
//! windows/                   events around the worst samples (see [`windows`])
//! recording/                 events of the kernel and of applications (see [`recording`])
//! ```

pub mod account;
pub mod amend;
pub mod answer;
pub mod baseline;
pub mod calibration;
pub mod checkpoint;
pub mod comparison;
pub mod counts;
mod error;
pub mod evidence;
pub mod exact;
mod exit;
pub mod explanation;
mod hdr;
pub mod import;
pub mod intervals;
mod judged;
pub mod lab;
pub mod lines;
pub mod load;
pub mod log;
pub mod manifest;
mod member;
pub mod meta;
pub mod observed;
pub mod openmetrics;
pub mod planned;
pub mod ran_on;
mod ran_under;
pub mod reader;
pub mod recording;
pub mod sections;
pub mod state;
pub mod steps;
pub mod summary;
mod timebase;
pub mod tune;
mod varint;
pub mod verdict;
pub mod windows;
pub mod writer;

pub use account::SeriesAccount;
pub use calibration::Calibration;
pub use counts::{CommandCounts, CountShare, CountSource, CpuTime, EventCount};
pub use error::BundleError;
pub use evidence::PhaseEvidence;
pub use exit::{CommandEnd, Exit, HowEnded, ProgramEnd};
pub use lines::{LineKeeper, SampleLine};
pub use manifest::{Manifest, Outcome, RunEnding};
pub use member::{Member, Pinned, is_private};
pub use meta::{PhaseMeta, SeriesMeta};
pub use planned::PlannedRequests;
pub use ran_on::{KernelEvidence, RanOn};
pub use ran_under::RanUnder;
pub use reader::{Bundle, Completeness, Phase, Series};
pub use recording::{RecordingDocument, RecordingReader, RecordingWriter};
pub use timebase::Timebase;
pub use verdict::{LeftOut, LeftOutKind, Reason, Verdict};
pub use windows::{WindowsDocument, WindowsReader, WindowsWriter};
pub use writer::{BundleWriter, PhasePlace, SeriesWriter};

/// The version of the format written; this and all earlier ones can be read.
pub(crate) const FORMAT_VERSION: u32 = 1;
