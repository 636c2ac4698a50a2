//! The interface of a format's reader.

use crate::TraceError;
use crate::decoder::Decoder;
use crate::input::Input;
use punctual_core::event::Event;
use punctual_core::{Finding, Nanos};
use std::collections::VecDeque;

pub(crate) trait FormatReader {
    /// Appends some events; `false` if there are no more.
    fn fill_events(&mut self, out: &mut VecDeque<Event>) -> Result<bool, TraceError>;
    /// The decoder with everything read so far.
    fn decoder(&self) -> &Decoder;
    fn decoder_mut(&mut self) -> &mut Decoder;
    /// The file's statements about itself.
    fn file_statements(&self) -> FileStatements;
    /// The trace's clock minus CLOCK_MONOTONIC, if the file states it.
    fn clock_distance(&self) -> Option<i64> {
        None
    }
    /// The number of events to hold back, because a late one may belong before them.
    fn held_back(&self) -> usize {
        0
    }
}

/// A format, declared in the file of its reader.
pub(crate) struct Format {
    pub(crate) word: &'static str,
    /// Whether a file begins like this: by its magic, else by its content.
    pub(crate) recognizes: fn(&[u8]) -> bool,
    pub(crate) open: fn(Input) -> Result<Box<dyn FormatReader>, TraceError>,
}

/// The statements of a file about itself.
#[derive(Clone, Debug, Default)]
pub(crate) struct FileStatements {
    pub(crate) producer: Option<String>,
    pub(crate) kernel: Option<String>,
    pub(crate) machine: Option<String>,
    pub(crate) clock: Option<String>,
    pub(crate) resolution: Option<Nanos>,
    pub(crate) states_enabled: bool,
    pub(crate) findings: Vec<Finding>,
}
