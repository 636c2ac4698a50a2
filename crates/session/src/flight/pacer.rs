//! Decides when to poll new samples: before the events around them are overwritten, and no earlier.
//!
//! A thread that wakes fifty times a second adds a microsecond to the median wake-up of another,
//! idle CPU (docs/reference/explain.md, what is kept). So threads that are awake anyway check how
//! full the buffers are, and the flight thread sleeps as long as possible.

use punctual_record::BufferProgress;
use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

/// The part of a buffer that may be written between two polls.
const POLL_FRACTION: f64 = 0.2;
/// The longest time between polls: rings hold two seconds, and a killed process keeps only polled
/// data.
const IDLE_POLL_INTERVAL: Duration = Duration::from_millis(450);
/// How long the flight thread sleeps without a wake-up.
const POLL_INTERVAL_RANGE: RangeInclusive<Duration> =
    Duration::from_millis(20)..=Duration::from_secs(1);

/// The buffers' progress since the last poll.
pub struct Pacer {
    buffer_progress: BufferProgress,
    polled_at: Instant,
    laps: Vec<f64>,
}

impl Pacer {
    pub fn new(buffer_progress: BufferProgress) -> Pacer {
        let laps = buffer_progress.completed_laps().collect();
        Pacer { buffer_progress, polled_at: Instant::now(), laps }
    }

    /// Whether a poll is due; if so, counts as one.
    pub fn is_time(&mut self) -> bool {
        let is_time = self.polled_at.elapsed() >= IDLE_POLL_INTERVAL
            || self.written_fraction() >= POLL_FRACTION;
        if is_time {
            self.restart();
        }
        is_time
    }

    /// After a poll: the time until the next, at the rate since the last one.
    pub(crate) fn next_interval(&mut self) -> Duration {
        let interval = time_until_poll(self.polled_at.elapsed(), self.written_fraction());
        self.restart();
        interval
    }

    fn restart(&mut self) {
        self.polled_at = Instant::now();
        self.laps.clear();
        self.laps.extend(self.buffer_progress.completed_laps());
    }

    /// The largest written part of any buffer.
    fn written_fraction(&self) -> f64 {
        self.buffer_progress
            .completed_laps()
            .zip(&self.laps)
            .map(|(now, then)| now - then)
            .fold(0.0, f64::max)
    }
}

/// The time until the next poll, if this part of a buffer was written in the elapsed time.
fn time_until_poll(elapsed: Duration, written: f64) -> Duration {
    let lasts = Duration::try_from_secs_f64(elapsed.as_secs_f64() * POLL_FRACTION / written);
    lasts.map_or(*POLL_INTERVAL_RANGE.end(), |lasts| {
        lasts.clamp(*POLL_INTERVAL_RANGE.start(), *POLL_INTERVAL_RANGE.end())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_poll_interval_shortens_with_the_fill_rate() {
        let second = Duration::from_secs(1);
        assert_eq!(time_until_poll(second, 0.0), *POLL_INTERVAL_RANGE.end());
        // Not a number.
        assert_eq!(time_until_poll(Duration::ZERO, 0.0), *POLL_INTERVAL_RANGE.end());
        assert_eq!(time_until_poll(second, 0.1), *POLL_INTERVAL_RANGE.end());
        assert_eq!(time_until_poll(second, 0.4), Duration::from_millis(500));
        assert_eq!(time_until_poll(second, 4.0), Duration::from_millis(50));
        assert_eq!(time_until_poll(second, 1e9), *POLL_INTERVAL_RANGE.start());
        assert_eq!(time_until_poll(Duration::ZERO, 1.0), *POLL_INTERVAL_RANGE.start());
    }
}
