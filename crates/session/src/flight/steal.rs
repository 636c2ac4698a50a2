//! The steal time of each CPU between two polls, by the kernel's steal clock.

use punctual_core::{MonotonicNs, Nanos};
use punctual_host::cpu_time::CpuTimes;
use punctual_host::files::Root;
use punctual_sys::clock;

/// The maximum age of a reading to be about one sample.
const OLDEST: Nanos = Nanos::from_secs(2);

/// The steal clocks of all CPUs, in ticks of /proc/stat: at the last poll, and now.
pub struct StealClock {
    files: Root,
    before: StealReading,
    now: Option<StealReading>,
}

#[derive(Clone)]
struct StealReading {
    at: MonotonicNs,
    times: CpuTimes,
}

impl StealClock {
    pub fn new() -> StealClock {
        let files = Root::from_system();
        let before = StealReading::read(&files);
        StealClock { files, before, now: None }
    }

    /// Reads the clocks to compare with, as a poll begins in which windows of long waits are
    /// copied.
    pub fn read(&mut self) {
        self.now = Some(StealReading::read(&self.files));
    }

    /// Called after a poll: the next one's samples are later. Without any steal so far there is
    /// nothing to read.
    pub(crate) fn poll_ended(&mut self) {
        match self.now.take() {
            Some(now) => self.before = now,
            None if self.before.times.all.steal > 0 => {
                self.before = StealReading::read(&self.files)
            }
            None => self.before.at = clock::monotonic_now(),
        }
    }

    /// The growth of a CPU's steal time around a sample that began then; `None` if it was not read,
    /// or too long before.
    pub(crate) fn steal_growth(&self, cpu: u16, since: MonotonicNs) -> Option<Nanos> {
        let now = self.now.as_ref()?;
        let steal = |reading: &StealReading| Some(reading.times.cpus.get(&u32::from(cpu))?.steal);
        let covers = self.before.at <= since && now.at - self.before.at <= OLDEST;
        let ticks = steal(now)?.saturating_sub(steal(&self.before)?);
        covers.then(|| Nanos(CpuTimes::TICK.ns().saturating_mul(ticks as i64)))
    }
}

impl StealReading {
    fn read(files: &Root) -> StealReading {
        StealReading {
            at: clock::monotonic_now(),
            times: CpuTimes::read(files).unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_host::cpu_time::CpuTicks;

    #[test]
    fn steal_between_polls_is_not_attributed_to_earlier_samples() {
        let reading = |at, steal| StealReading {
            at: MonotonicNs(at),
            times: CpuTimes {
                cpus: [(1, CpuTicks { steal, ..CpuTicks::default() })].into(),
                ..CpuTimes::default()
            },
        };
        let files = Root::from_system();
        let clock =
            StealClock { files, before: reading(1_000, 7), now: Some(reading(500_000_000, 9)) };
        assert_eq!(clock.steal_growth(1, MonotonicNs(2_000)), Some(Nanos::from_millis(20)));
        assert_eq!(clock.steal_growth(1, MonotonicNs(999)), None);
        assert_eq!(clock.steal_growth(0, MonotonicNs(2_000)), None);
        let late = StealClock { now: Some(reading(3_000_000_000, 9)), ..clock };
        assert_eq!(late.steal_growth(1, MonotonicNs(2_000)), None);
    }
}
