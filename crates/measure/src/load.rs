//! Loads: programs that keep the system busy, supervised, respawned, and terminated at the end even
//! if punctual dies.
//!
//! A small process, the [`guard`], is the parent of all loads. It adopts their orphans, respawns
//! them, and terminates them all when punctual requests it or dies: the socket between the two
//! closes with its last holder, also on kill -9. If the guard itself is killed, the kernel kills
//! the loads (their parent-death signal) and punctual, which adopts orphans as well, terminates the
//! rest.

mod client;
pub mod guard;
pub mod launch;
mod outbox;
mod protocol;

pub use client::{GuardError, Guarded};
pub use protocol::{GuardEvent, LoadExitAction, LoadSpec};
use std::time::Duration;

/// A shorter run counts as an immediate end.
const IMMEDIATE_END: Duration = Duration::from_secs(1);
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// The pause before the next start: 0, or doubling from 100 ms to 5 s over successive immediate
/// failures. A load that succeeds quickly (a short program, respawned for ever) is not slowed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct BackOff {
    pause: Duration,
}

impl BackOff {
    /// The pause after a run of this length.
    pub(crate) fn next_pause(&mut self, ran: Duration, success: bool) -> Duration {
        self.pause = match success || ran >= IMMEDIATE_END {
            true => Duration::ZERO,
            false => (self.pause * 2).clamp(FIRST_PAUSE, LONGEST_PAUSE),
        };
        self.pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_respawn_delay_doubles_until_a_run_succeeds() {
        let mut back_off = BackOff::default();
        let mut after = |millis, success| {
            back_off.next_pause(Duration::from_millis(millis), success).as_millis()
        };
        let failing: Vec<u128> = (0..8).map(|_| after(3, false)).collect();
        assert_eq!(failing, [100, 200, 400, 800, 1600, 3200, 5000, 5000]);
        assert_eq!(after(3, true), 0);
        assert_eq!(after(3, false), 100);
        assert_eq!(after(2_000, false), 0);
    }
}
