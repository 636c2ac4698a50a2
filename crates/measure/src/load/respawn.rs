//! The delay before a load is restarted: none after a long run, growing while it fails at once.

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
    pub fn after(&mut self, ran: Duration, success: bool) -> Duration {
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
        let mut after =
            |millis, success| back_off.after(Duration::from_millis(millis), success).as_millis();
        let failing: Vec<u128> = (0..8).map(|_| after(3, false)).collect();
        assert_eq!(failing, [100, 200, 400, 800, 1600, 3200, 5000, 5000]);
        assert_eq!(after(3, true), 0);
        assert_eq!(after(3, false), 100);
        assert_eq!(after(2_000, false), 0);
    }
}
