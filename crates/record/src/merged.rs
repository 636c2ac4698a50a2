//! The events of several recorders, in the order of time.

use crate::recorder::Recorder;
use crate::wire::decode;
use punctual_core::Event;
use punctual_sys::clock;

/// What was drained and is younger than the last round.
#[derive(Default)]
pub(crate) struct Merged {
    later: Vec<Event>,
}

impl Merged {
    /// What has happened until now. Events that come meanwhile are those of the next round: another
    /// CPU's buffer, drained before, may hold earlier ones.
    pub(crate) fn take<'r>(
        &mut self,
        recorders: impl IntoIterator<Item = &'r mut Recorder>,
    ) -> Vec<Event> {
        let until = clock::monotonic();
        let mut events = std::mem::take(&mut self.later);
        for recorder in recorders {
            recorder.drain(&mut |_, bytes| events.extend(decode(bytes).flatten()));
        }
        events.sort_by_key(|event| event.at);
        self.later = events.split_off(events.partition_point(|event| event.at < until));
        events
    }
}
