//! Events counted together.

use super::attr::PerfType;
use super::counter::{IN_GROUP, PerfCounter, Whom};
use super::refusal;
use crate::tracefs::Tracefs;
use punctual_core::PerfEvent;
use std::ffi::CStr;
use std::os::fd::AsRawFd;

/// The maximum number of members in a group.
pub const GROUP_MAX: usize = 24;

/// Tracepoints counted together and read in one system call.
#[derive(Debug)]
pub struct TracepointGroup {
    leader: PerfCounter,
    /// Active while they live.
    _members: Vec<PerfCounter>,
    size: usize,
}

impl TracepointGroup {
    /// Opens those of the tracepoints (`group`, `event`) that this kernel has, with their indices
    /// in the list; at most [`GROUP_MAX`].
    pub fn open_tracepoints(
        events: &[(&str, &str)],
        whom: Whom,
    ) -> Result<(TracepointGroup, Vec<usize>), String> {
        TracepointGroup::open_filtered(events, &[], whom)
    }

    /// The same, with a filter for some of them: their indices, and an expression over the
    /// tracepoint's fields. One that cannot be filtered here is dropped.
    pub fn open_filtered(
        events: &[(&str, &str)],
        filters: &[(usize, &CStr)],
        whom: Whom,
    ) -> Result<(TracepointGroup, Vec<usize>), String> {
        let tracefs = Tracefs::open()?;
        let (mut counters, mut places): (Vec<PerfCounter>, Vec<usize>) = (Vec::new(), Vec::new());
        for (place, (group, event)) in events.iter().enumerate().take(GROUP_MAX) {
            // One of another architecture or configuration.
            let Ok(id) = tracefs.tracepoint_id(group, event) else { continue };
            let counter =
                PerfCounter::open_in(PerfType::Tracepoint, id, whom, IN_GROUP, counters.first());
            let counter = counter.map_err(|why| {
                refusal::describe_refusal(&PerfEvent::from_tracepoint(group, event), &why)
            })?;
            let mut of_it = filters.iter().filter(|(of, _)| *of == place);
            if !of_it.all(|(_, expression)| counter.set_filter(expression).is_ok()) {
                continue;
            }
            counters.push(counter);
            places.push(place);
        }
        let size = counters.len();
        if size == 0 {
            return Err("none of the tracepoints is there".to_owned());
        }
        let members = counters.split_off(1);
        let leader = counters.pop().ok_or("none of the tracepoints is there")?;
        Ok((TracepointGroup { leader, _members: members, size }, places))
    }

    pub fn enable(&self) {
        self.leader.enable();
    }

    pub fn disable(&self) {
        self.leader.disable();
    }

    /// The counts so far, in the order of the indices. One system call, no allocation; zeros on
    /// failure.
    #[inline]
    pub fn read(&self) -> [u64; GROUP_MAX] {
        // The number of members is first.
        let mut words = [0u64; GROUP_MAX + 1];
        let bytes = (self.size + 1) * 8;
        // SAFETY: the array has room for the bytes asked for.
        unsafe { libc::read(self.leader.fd().as_raw_fd(), words.as_mut_ptr().cast(), bytes) };
        let mut counts = [0; GROUP_MAX];
        counts.copy_from_slice(&words[1..]);
        counts
    }
}
