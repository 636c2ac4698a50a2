//! Estimates releases that the kernel does not report: a grid through the earliest of some
//! wake-ups, restarted whenever the kernel may have begun its periods at another phase, which it
//! does for a thread that is a period late.

use punctual_core::{Finding, Nanos, Severity};

/// Wake-ups that determine a grid.
const LEARNING: u32 = 32;
/// The maximum number of restarts for wake-ups that may have been the first of another phase.
const RESTARTS_MAX: u32 = 8;

pub struct ReleaseEstimate {
    period: i64,
    due: Option<i64>,
    learning: Learning,
    pub quality: Quality,
}

/// The wake-ups of a grid under construction.
#[derive(Clone, Copy, Default)]
struct Learning {
    taken: u32,
    restarts: u32,
    origin: i64,
    last: i64,
    /// The two smallest distances from multiples of the period after the origin.
    earliest: i64,
    second: i64,
}

/// The quality of an estimate.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Quality {
    grids: u64,
    /// Wake-ups that determined the grids: they are not samples.
    unmeasured: u64,
    /// The maximum distance between a grid and its second-earliest wake-up, or a later wake-up
    /// that came before the grid.
    apart: i64,
}

impl ReleaseEstimate {
    pub fn new(period: i64) -> ReleaseEstimate {
        ReleaseEstimate {
            period,
            due: None,
            learning: Learning::default(),
            quality: Quality::default(),
        }
    }

    /// The next release, once the grid is known.
    #[inline(always)]
    pub(crate) fn next_release(&self) -> Option<i64> {
        self.due
    }

    /// Takes in a wake-up that is not a sample.
    pub(crate) fn learn_wakeup(&mut self, now: i64) {
        self.quality.unmeasured += 1;
        if let Some(due) = self.due {
            // Before the start: the grid is known, and advances with time.
            self.due = Some(due + self.period * (1 + (now - due).max(0) / self.period));
            return;
        }
        let Learning { taken, restarts, origin, last, earliest, second } = self.learning;
        let moved = now - last > self.period * 3 / 2 && restarts < RESTARTS_MAX;
        if taken == 0 || moved {
            let restarts = restarts + u32::from(taken > 0);
            self.learning = Learning {
                taken: 1,
                restarts,
                origin: now,
                last: now,
                earliest: 0,
                second: i64::MAX,
            };
            return;
        }
        // Into (-period/2, period/2]: a wake-up slightly before the grid must not count as almost a
        // period late.
        let offset = (now - origin + self.period / 2).rem_euclid(self.period) - self.period / 2;
        let (earliest, second) = (earliest.min(offset), second.min(offset.max(earliest)));
        self.learning =
            Learning { taken: taken + 1, restarts, origin, last: now, earliest, second };
        if taken == LEARNING {
            let grid = origin + earliest;
            self.due = Some(grid + ((now - grid) / self.period + 1) * self.period);
            self.quality.grids += 1;
            self.quality.apart = self.quality.apart.max(second - earliest);
        }
    }

    /// Advances after a sample.
    #[inline(always)]
    pub(crate) fn advance_grid(&mut self, due: i64, woke: i64) {
        let late = woke - due;
        if late >= self.period || late < -self.period / 4 {
            self.due = None;
            self.learning = Learning::default();
            return;
        }
        // No thread wakes before its release: the grid was too late.
        self.quality.apart = self.quality.apart.max(-late);
        self.due = Some(due.min(woke) + self.period);
    }
}

impl Quality {
    /// The finding that releases are estimated, with the quality.
    pub(crate) fn format_finding(&self, measure: &str) -> Finding {
        let Quality { grids, unmeasured, apart } = *self;
        let message = format!(
            "the kernel does not report when it releases this thread: figures are not latencies \
             but distances from the earliest of {LEARNING} wake-ups, taken anew after each miss \
             ({grids} times, {unmeasured} wake-ups without a sample); what all wake-ups have in \
             common is missing, and the earliest ones were up to {} apart",
            Nanos(apart)
        );
        Finding::new("deadline-release-estimated", Severity::Warning, measure, message).with_remedy(
            "run as root on a kernel that describes its types (CONFIG_DEBUG_INFO_BTF), or on \
             Linux 7.1 or newer",
        )
    }
}
