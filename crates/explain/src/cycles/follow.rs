//! The consecutive cycles of a thread, once the wait that begins them is known.

use super::{Inferred, WaitSite};
use punctual_core::cycle::{Cycle, CycleKind, OpenCycle, SeriesKind, WaitingCall, WokenBy};
use punctual_core::{ClockNs, MonotonicNs, Nanos, Unfinished};
use std::collections::VecDeque;

/// A cycle with its relation to the previous ones.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MeasuredCycle {
    /// From its release to its end.
    pub cycle: Cycle,
    /// How the start of a cycle is determined: by a due time, or, for cycles that another thread
    /// releases, by the return of the wait.
    pub begins: Begins,
    /// The time from the previous release to its own; `None` for the first cycle, and if one of the
    /// two is unknown.
    pub period: Option<Nanos>,
    /// Releases between the two without a cycle.
    pub skipped: u64,
    /// Its release is the first that passed while a previous cycle ran.
    pub overrun: bool,
    /// A wait is within it that may be its end: in an unrecorded call, with another end, or one
    /// that looks like its end and came too early for that.
    pub may_have_ended: bool,
}

/// An unfinished cycle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NotEnded {
    pub release: MonotonicNs,
    /// When its waiting call returned; `None`: not yet.
    pub returned: Option<MonotonicNs>,
    /// The end of observation.
    pub now: MonotonicNs,
    /// Releases that passed since its own, if they are periodic.
    pub passed: u64,
}

impl MeasuredCycle {
    /// Whether its response time is known: its release and its end.
    pub fn is_response_known(&self) -> bool {
        self.begins != Begins::Unknown && !self.may_have_ended
    }
}

impl NotEnded {
    /// Its lower bound in a series. Neither its execution time nor the start of the next cycle is
    /// known.
    pub fn of_series(&self, kind: SeriesKind) -> Unfinished {
        let (due, passed) = (ClockNs(self.release.ns()), self.passed);
        let lasted = Nanos((self.now - self.release).ns().max(0));
        let open = Unfinished { due, at_least: lasted, lasted, passed, ended: false };
        match (kind, self.returned) {
            (SeriesKind::Wakeup, Some(returned)) => {
                let took = Nanos((returned - self.release).ns().max(0));
                Unfinished { at_least: took, lasted: took, ended: true, ..open }
            }
            (SeriesKind::Wakeup | SeriesKind::Response, _) => open,
            (SeriesKind::Execution | SeriesKind::Period | SeriesKind::Gap, _) => {
                Unfinished { at_least: Nanos::ZERO, ..open }
            }
        }
    }
}

/// The known start of a cycle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Begins {
    Released,
    /// Its waker was not seen: it began no later than its wait returned.
    Returned,
    /// A timer released it at an unseen instant.
    Unknown,
}

/// Combines the records of one thread into cycles.
#[derive(Clone, Debug)]
pub struct CycleFollower {
    site: WaitSite,
    has_others: bool,
    timed: bool,
    period: Option<Nanos>,
    /// The time of a sleep, if constant.
    sleep: Option<Nanos>,
    distance: Option<Nanos>,
    pending: Option<Cycle>,
    last: Option<MonotonicNs>,
    /// Later cycles of unknown release.
    unknown: u64,
    /// The pending cycle has a wait within it that may be its end.
    may_have_ended: bool,
    /// Waits that look like the end of a cycle, and came too early.
    odd: u64,
    /// Its place was given up here.
    moved: Option<MonotonicNs>,
    runs: CycleRuns,
}

impl CycleFollower {
    /// A follower for the inferred cycles.
    pub fn new(inferred: &Inferred) -> CycleFollower {
        CycleFollower {
            site: inferred.site,
            has_others: inferred.has_others,
            timed: inferred.kind != CycleKind::Event,
            period: inferred.period.filter(|_| inferred.kind.is_periodic()),
            sleep: inferred.sleep,
            distance: inferred.distance,
            pending: None,
            last: None,
            unknown: 0,
            may_have_ended: false,
            odd: 0,
            moved: None,
            runs: CycleRuns::default(),
        }
    }

    /// Takes the next record; returns a cycle once the next one begins. Waits that begin no cycle
    /// become part of it.
    pub fn push(&mut self, record: Cycle) -> Option<MeasuredCycle> {
        if self.moved.is_some_and(|moved| record.entered < moved) {
            return None;
        }
        let is_site = self.site.has_wait(record.call);
        let is_elsewhere = self.has_others && record.call.place != self.site.call.place;
        let is_odd = is_site && !is_elsewhere && self.is_odd(&record);
        self.odd += u64::from(is_odd);
        if !is_site || is_elsewhere || is_odd {
            let may_be_end = is_site || !is_recorded(record.call);
            self.may_have_ended |= self.pending.is_some() && may_be_end;
            self.pending = self.pending.map(|pending| pending.followed_by(&record));
            return None;
        }
        let ended = self.pending.replace(record)?;
        Some(self.follow_cycle(ended))
    }

    /// Whether a wait of its site is none of its period: it asks for another time to sleep, or its
    /// release follows the one before too early, as another wait within the cycle does.
    fn is_odd(&self, record: &Cycle) -> bool {
        let Some(last) = self.pending.filter(|last| last.again == record.entered) else {
            return false;
        };
        if let Some(usual) = self.sleep.filter(|_| record.by == WokenBy::Sleep) {
            let asked_sleep = (record.release - record.entered).ns();
            // Until its timer is started it may be preempted.
            let is_other = asked_sleep < usual.ns() - usual.ns() / ODD
                || asked_sleep > usual.ns() + usual.ns() / 2;
            // Some sleep for the rest of a period.
            let near = |distance: &Nanos| {
                (record.release - last.release - *distance).ns().abs() <= distance.ns() / ODD
            };
            return is_other && !self.distance.as_ref().is_some_and(near);
        }
        // Timers and others may end a wait for several.
        let is_same_end = last.by == record.by
            && match record.by {
                WokenBy::Sleep | WokenBy::Period => true,
                WokenBy::Timer => last.timer == record.timer,
                _ => false,
            };
        let distance = (record.release - last.release).ns();
        self.period.is_some_and(|usual| is_same_end && distance < usual.ns() - usual.ns() / EARLY)
    }

    /// Whether a cycle may be several: it waits elsewhere again and again in its call, and lasts
    /// for more than two periods.
    fn may_be_several(&self, elsewhere: u32, lasted: Nanos) -> bool {
        let usual = self.period.or(self.distance);
        elsewhere >= SEVERAL && usual.is_some_and(|usual| lasted.ns() > 2 * usual.ns())
    }

    /// Whether its thread seems to wait for its cycles elsewhere by now: no cycle has ended there
    /// for many waits.
    pub fn has_moved(&self, open: &OpenCycle, now: MonotonicNs) -> bool {
        let lasted = open.release.map_or(Nanos::ZERO, |release| now - release);
        let is_long =
            self.period.or(self.distance).is_none() || self.may_be_several(SEVERAL, lasted);
        open.elsewhere >= MANY && is_long && self.site.has_wait(open.call)
    }

    /// From now on waits in its call at any place begin cycles, of no known period; it returns the
    /// last one before that, and skips the one under way.
    pub fn give_up_place(&mut self, now: MonotonicNs) -> Option<MeasuredCycle> {
        self.site = self.site.without_place();
        (self.period, self.sleep, self.distance, self.has_others) = (None, None, None, false);
        self.moved = Some(now);
        self.break_off()
    }

    /// How many waits looked like the end of a cycle, and came too early for that.
    pub fn odd_waits(&self) -> u64 {
        self.odd
    }

    /// Returns the last cycle before a gap in the records: the number of releases before the next
    /// one is unknown.
    pub fn break_off(&mut self) -> Option<MeasuredCycle> {
        let last = self.finish();
        self.last = None;
        last
    }

    /// The unfinished cycle at `now`, by the thread's open call. A wait that begins no cycle
    /// belongs to the previous cycle, if that was the last one seen.
    pub fn not_ended(&self, open: &OpenCycle, now: MonotonicNs) -> Option<NotEnded> {
        let (release, returned) = match self.site.has_wait(open.call) {
            true => (open.release?, open.returned),
            // Its call may have ended the cycle.
            false if !is_recorded(open.call) => return None,
            false => {
                let last = self.pending.filter(|last| last.again == open.entered)?;
                (last.release, Some(last.returned))
            }
        };
        let now = open.until.map_or(now, |until| until.min(now));
        Some(self.observe_until(NotEnded { release, returned, now, passed: 0 }, now))
    }

    /// The same cycle, observed until `now`.
    pub fn observe_until(&self, cycle: NotEnded, now: MonotonicNs) -> NotEnded {
        let period = self.period.filter(|period| period.ns() > 0);
        let passed_releases =
            period.map_or(0, |period| (now - cycle.release).ns().max(0) / period.ns());
        NotEnded { now, passed: passed_releases as u64, ..cycle }
    }

    /// The next due cycle, if the period determines it and has passed.
    pub fn due_cycle(&self, now: MonotonicNs) -> Option<NotEnded> {
        let release = self.pending?.release + self.period?;
        let due = self.observe_until(NotEnded { release, returned: None, now, passed: 0 }, now);
        (due.passed > 0).then_some(due)
    }

    /// Returns the last cycle.
    pub fn finish(&mut self) -> Option<MeasuredCycle> {
        let last = self.pending.take()?;
        Some(self.follow_cycle(last))
    }

    fn follow_cycle(&mut self, cycle: Cycle) -> MeasuredCycle {
        let begins = match (cycle.is_release_known(), self.timed) {
            (true, _) => Begins::Released,
            (false, false) => Begins::Returned,
            (false, true) => Begins::Unknown,
        };
        let may_have_ended = std::mem::take(&mut self.may_have_ended)
            || self.may_be_several(cycle.elsewhere, cycle.response_time());
        let overrun = self.runs.passed_in(&cycle, begins != Begins::Unknown);
        if begins == Begins::Unknown {
            self.unknown += 1;
            let (period, skipped, overrun) = (None, 0, false);
            return MeasuredCycle { cycle, begins, period, skipped, overrun, may_have_ended };
        }
        let distance = self.last.map(|last| cycle.release - last);
        let between = std::mem::take(&mut self.unknown);
        self.last = Some(cycle.release);
        let skipped = match (distance, self.period) {
            // The releases between them had cycles.
            (Some(distance), Some(period)) => {
                skipped_releases(distance, period).saturating_sub(between)
            }
            _ => 0,
        };
        let period = distance.filter(|_| between == 0);
        MeasuredCycle { cycle, begins, period, skipped, overrun, may_have_ended }
    }
}

/// A sleep that is shorter than usual by more than this fraction is another one, and so is a
/// release that comes earlier by more than this fraction of the usual distance.
const ODD: i64 = 10;
const EARLY: i64 = 3;
/// From this many waits elsewhere on, a cycle that lasts for several periods may be several, and
/// from that many on it is rather one elsewhere.
const SEVERAL: u32 = 3;
const MANY: u32 = 32;

fn is_recorded(call: WaitingCall) -> bool {
    call.number != WaitingCall::NOT_RECORDED
}

/// The maximum number of cycles kept that ran during a release still to come: a permanently
/// overloaded thread falls behind without limit.
const BEHIND: usize = 4_096;

/// The cycles' run times in order of time: those that may contain a later release.
#[derive(Clone, Default, Debug)]
struct CycleRuns {
    all: VecDeque<CycleRun>,
    any: bool,
}

#[derive(Clone, Copy, Debug)]
struct CycleRun {
    from: MonotonicNs,
    to: MonotonicNs,
    /// It is known to have run too long.
    overran: bool,
}

impl CycleRuns {
    /// Whether the release of this cycle passed during a previous one, as the first such release. A
    /// release that passed before the start of that cycle was late already. Adds the cycle to the
    /// previous ones.
    fn passed_in(&mut self, cycle: &Cycle, is_release_known: bool) -> bool {
        let first = !std::mem::replace(&mut self.any, true);
        let is_release_passed = is_release_known && cycle.entered > cycle.release;
        if is_release_known {
            while self.all.front().is_some_and(|run| run.to < cycle.release) {
                self.all.pop_front();
            }
        }
        let run_at_release =
            self.all.front_mut().filter(|run| is_release_passed && run.from <= cycle.release);
        let overrun = run_at_release.is_some_and(|run| !std::mem::replace(&mut run.overran, true));
        if self.all.len() >= BEHIND {
            self.all.pop_front();
        }
        self.all.push_back(CycleRun { from: cycle.returned, to: cycle.again, overran: false });
        overrun || first && is_release_passed
    }
}

/// The periodic releases that passed within this one: 0 if the distance is no multiple, as the
/// thread restarted.
pub(crate) fn skipped_releases(distance: Nanos, period: Nanos) -> u64 {
    if period.ns() <= 0 {
        return 0;
    }
    let times = (distance.ns() + period.ns() / 2) / period.ns();
    let off = (distance.ns() - times * period.ns()).abs();
    if times > 1 && off <= period.ns() / 10 { times as u64 - 1 } else { 0 }
}
