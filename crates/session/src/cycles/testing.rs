//! Cycles for tests.

use super::source::{CycleRecorder, EventCycles};
use super::{CycleOptions, Cycles};
use punctual_core::cycle::{Cycle, WaitingCall, WokenBy};
use punctual_core::{CauseKind, MonotonicNs, Nanos, Split};
use punctual_explain::cycles::CallNames;
use punctual_explain::cycles::stream::{CycleStream, ShownKinds, SyscallNumbers};
use punctual_explain::gaps::Gaps;

/// A recorder of events, of which there are none yet.
pub(crate) fn empty_recorder() -> CycleRecorder {
    let calls = SyscallNumbers::from_names(&CallNames::default());
    let stream = CycleStream::new(calls, ShownKinds::from_groups(&[], false), Gaps::default());
    CycleRecorder::of_recording(EventCycles::new(stream, None), Vec::new())
}

/// The cycles of a program of which nothing was seen yet.
pub(crate) fn empty_cycles() -> Cycles {
    Cycles::of_recording(CycleOptions::default(), empty_recorder(), CallNames::default())
}

/// A cycle released at `release` (ns) that takes 100 µs, all of it running.
pub(crate) fn cycle_at(release: i64) -> Cycle {
    let mut run = Split::default();
    run.add(CauseKind::OwnExecution, Nanos(100_000));
    Cycle {
        tid: 7,
        release: MonotonicNs(release),
        entered: MonotonicNs(release - 1_000_000),
        woken: MonotonicNs(release),
        returned: MonotonicNs(release),
        again: MonotonicNs(release + 100_000),
        call: WaitingCall { number: 1, operation: 1, argument: 1, place: 0 },
        by: WokenBy::Sleep,
        wait_is: CauseKind::Waiting,
        syscalls: 1,
        run,
        ..Cycle::default()
    }
}
