//! What a trace is, holds and lacks.

use crate::TraceClock;
use punctual_core::event::{Names, Recorded};
use std::collections::BTreeMap;

/// The finding that names of system calls are not known, as their numbers are of a machine that the
/// trace does not name.
pub const NO_MACHINE: &str = "trace-machine";

/// A format of traces.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TraceFormat {
    /// Text of ftrace: `trace`, `trace_pipe`, `trace-cmd report`, `perf script`.
    FtraceText,
    TraceDat,
    PerfData,
    /// A protobuf trace of Perfetto.
    Perfetto,
    /// The Common Trace Format 1.8, as LTTng writes it.
    Ctf,
}

impl TraceFormat {
    pub fn word(self) -> &'static str {
        match self {
            TraceFormat::FtraceText => "ftrace text",
            TraceFormat::TraceDat => "trace.dat",
            TraceFormat::PerfData => "perf.data",
            TraceFormat::Perfetto => "Perfetto",
            TraceFormat::Ctf => "CTF",
        }
    }
}

/// How often a tracepoint is in a trace.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct TracepointCount {
    pub seen: u64,
    /// Those that became an event of ours.
    pub used: u64,
}

/// What a trace is, holds and lacks. Names and counts are complete when its last event was read.
#[derive(Clone, PartialEq, Debug)]
pub struct TraceFacts {
    /// What it was recognised as.
    pub format: TraceFormat,
    /// Who wrote it, in the file's own words: `trace-cmd 3.1.6`.
    pub producer: Option<String>,
    /// The kernel that was traced: `6.12.0-rt`.
    pub kernel: Option<String>,
    /// Its architecture: `x86_64`.
    pub machine: Option<String>,
    pub clock: TraceClock,
    /// What it covers and lost, in the same form as our own recordings. `groups` has those of which
    /// the events are there, or were switched on, without which an absence means nothing.
    pub recorded: Recorded,
    /// What numbers in its events are called.
    pub names: Names,
    /// Its tracepoints by name, `SYSTEM:NAME` where the file has the system. The file may hold a
    /// tracepoint that was on and never hit: it is here with none seen.
    pub tracepoints: BTreeMap<String, TracepointCount>,
    /// Whether the file states which tracepoints were on. Otherwise one that was not seen may have
    /// been on or off.
    pub states_enabled: bool,
    /// Lines or records that could not be read.
    pub unreadable: u64,
    /// Records that were older than one already given out, and are left out.
    pub out_of_order: u64,
}

impl TraceFacts {
    /// Whether the tracepoint was on: it was seen, or the file says so.
    pub fn has(&self, name: &str) -> bool {
        self.tracepoints.keys().any(|full| full.rsplit(':').next() == Some(name))
    }
}
