//! What a format's reader does; the rest is the same for all.

use crate::TraceError;
use crate::decoder::Decoder;
use punctual_core::event::Event;
use punctual_core::{Finding, Nanos};
use std::collections::VecDeque;

pub(crate) trait Reader {
    /// Appends some events; `false` when there are no more.
    fn fill(&mut self, out: &mut VecDeque<Event>) -> Result<bool, TraceError>;
    /// What was read so far.
    fn decoder(&self) -> &Decoder;
    fn decoder_mut(&mut self) -> &mut Decoder;
    /// What the file says of itself.
    fn about(&self) -> About;
}

/// What a file says of itself.
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
