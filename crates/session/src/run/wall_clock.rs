//! Detects steps of the wall clock while it measures latencies: the scheduler would be blamed.

use punctual_core::{Clock, Finding, Nanos, Severity};
use punctual_sys::clock;

/// A slower change is the normal adjustment by a time service (at most 500 ppm, see adjtimex(2)).
const STEP: i64 = 1_000_000;
/// Readings further apart than this are ignored: the thread was preempted between them.
const CLOSE: i64 = 100_000;

/// The offset of the wall clock from CLOCK_MONOTONIC at the last look.
pub struct WallClock {
    offset: Option<i64>,
}

impl WallClock {
    pub fn new() -> WallClock {
        WallClock { offset: read_offset() }
    }

    /// The step since the last look, if any. To be called at least each second.
    pub(crate) fn detect_step(&mut self) -> Option<Nanos> {
        let now = read_offset()?;
        let before = self.offset.replace(now)?;
        ((now - before).abs() > STEP).then_some(Nanos(now - before))
    }
}

fn read_offset() -> Option<i64> {
    let before = clock::monotonic_now().ns();
    let wall = clock::read_clock(Clock::Realtime).ns();
    let after = clock::monotonic_now().ns();
    (after - before < CLOSE).then_some(wall - before)
}

/// The finding about a step.
pub(crate) fn step_finding(phase: &str, step: Nanos) -> Finding {
    let message = "the wall clock was set while latencies were measured on it: some latencies and \
                   missed periods result from that";
    Finding::new("clock-set", Severity::Bad, phase, message)
        .with_evidence(format!("CLOCK_REALTIME moved by {step} against CLOCK_MONOTONIC"))
        .with_remedy(
            "stop time services (chronyd, systemd-timesyncd) while measuring, or measure on \
             CLOCK_MONOTONIC",
        )
}
