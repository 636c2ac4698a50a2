//! A cycle for tests.

use punctual_core::cycle::{Cycle, WaitingCall, WokenBy};
use punctual_core::{CauseKind, MonotonicNs, Nanos, Split};

/// A cycle released at `release` (ns) that takes 100 µs, all of it running.
pub fn cycle(release: i64) -> Cycle {
    let mut run = Split::default();
    run.add(CauseKind::OwnExecution, Nanos(100_000));
    Cycle {
        tid: 7,
        release: MonotonicNs(release),
        entered: MonotonicNs(release - 1_000_000),
        woken: MonotonicNs(release),
        returned: MonotonicNs(release),
        again: MonotonicNs(release + 100_000),
        call: WaitingCall { number: 1, operation: 1, argument: 1 },
        by: WokenBy::Sleep,
        wait_is: CauseKind::Waiting,
        syscalls: 1,
        run,
        ..Cycle::default()
    }
}
