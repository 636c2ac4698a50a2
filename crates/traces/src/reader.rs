//! The interface of a format's reader.

use crate::TraceError;
use crate::decoder::Decoder;
use punctual_core::event::Event;
use punctual_core::{Finding, Nanos};
use std::collections::VecDeque;

pub(crate) trait Reader {
    /// Appends some events; `false` if there are no more.
    fn fill(&mut self, out: &mut VecDeque<Event>) -> Result<bool, TraceError>;
    /// The decoder with everything read so far.
    fn decoder(&self) -> &Decoder;
    fn decoder_mut(&mut self) -> &mut Decoder;
    /// The file's statements about itself.
    fn about(&self) -> About;
}

/// The statements of a file about itself.
#[derive(Clone, Debug, Default)]
pub(crate) struct About {
    pub(crate) producer: Option<String>,
    pub(crate) kernel: Option<String>,
    pub(crate) machine: Option<String>,
    pub(crate) clock: Option<String>,
    pub(crate) resolution: Option<Nanos>,
    pub(crate) states_enabled: bool,
    pub(crate) findings: Vec<Finding>,
}
