//! The events of several recorders in order of time.

use crate::recorder::Recorder;
use crate::wire::decode;
use punctual_core::Event;
use punctual_sys::clock;

/// Drained events that are newer than the last round.
#[derive(Default)]
pub(crate) struct Merged {
    later: Vec<Event>,
}

impl Merged {
    /// Returns the events until now. Newer ones are left for the next round: the buffer of another
    /// CPU, drained before, may contain earlier ones.
    pub(crate) fn take_events<'r>(
        &mut self,
        recorders: impl IntoIterator<Item = &'r mut Recorder>,
    ) -> Vec<Event> {
        let until = clock::monotonic_now();
        let mut events = std::mem::take(&mut self.later);
        for recorder in recorders {
            recorder.drain(&mut |_, bytes| events.extend(decode(bytes).flatten()));
        }
        events.sort_by_key(|event| event.at);
        self.later = events.split_off(events.partition_point(|event| event.at < until));
        events
    }
}
