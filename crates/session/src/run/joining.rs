//! Matches the samples of one series to the kernel's records of them.

use punctual_bundle::SeriesAccount;
use punctual_core::{AccountCost, CauseKind, Clock, Fact, MonotonicNs, Nanos, Sample, Split};
use punctual_plan::{TimerMethod, TimerPlan};
use punctual_record::account::AccountRecord;
use punctual_sys::clock;
use std::collections::VecDeque;

/// The maximum number of samples and records that wait for one another, or two seconds of them if
/// that is more, up to the second bound; further samples count as unattributed.
const WAITING: std::ops::RangeInclusive<usize> = 1 << 16..=1 << 18;
const WAITING_SPAN: Nanos = Nanos::from_secs(2);
/// The accuracy of the known offset of another clock from CLOCK_MONOTONIC.
const CLOCK_ERROR: Nanos = Nanos::from_micros(3);
/// A timer that waits longer does not wait for an idle CPU: the deepest idle states take some
/// hundred microseconds.
const LONG: Nanos = Nanos::MILLI;

/// A timer of a thread that waited long.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Overdue {
    cpu: u16,
    from: MonotonicNs,
    to: MonotonicNs,
}

impl Overdue {
    pub(crate) fn from_record(record: &AccountRecord) -> Option<Overdue> {
        let waited = record.overdue_time();
        (waited >= LONG).then(|| Overdue {
            cpu: record.cpu,
            from: record.begin,
            to: record.begin + waited,
        })
    }

    /// The wait of the sample itself: for its timer, or, if the machine stopped in the middle of
    /// something else, in that one part.
    fn of_sample(record: &AccountRecord, split: &Split) -> Option<Overdue> {
        let longest = split.longest_part().map_or(Nanos::ZERO, |part| split.time_of(part));
        // For one that was moved to another CPU, the CPU of the wait is unknown.
        let almost_all = !record.moved && longest >= LONG && longest * 10 >= split.total_time() * 9;
        let whole = || {
            almost_all.then(|| Overdue {
                cpu: record.cpu,
                from: record.begin,
                to: record.begin + split.total_time(),
            })
        };
        Overdue::from_record(record).or_else(whole)
    }

    /// Whether both waited for the same reason: the timers of two CPUs were due while neither was
    /// served, and were served together: within half of their waiting time, because a hypervisor
    /// returns CPUs one by one. One CPU may have its interrupts disabled; both at once were not
    /// running.
    fn has_same_cause(&self, other: &Overdue) -> bool {
        let distance = Nanos((self.to - other.to).ns().abs());
        let shorter = (self.to - self.from).min(other.to - other.from);
        self.cpu != other.cpu && distance * 2 <= shorter
    }
}

/// A series whose samples are broken down.
pub struct Joining {
    pub tid: u32,
    clock: Clock,
    relative: bool,
    most: usize,
    samples: VecDeque<Sample>,
    records: VecDeque<AccountRecord>,
    /// The breakdown of the settled samples.
    pub account: SeriesAccount,
}

impl Joining {
    /// Creates it empty. Samples of a relative sleep begin before their timer is armed.
    pub fn new(tid: u32, clock: Clock, timer: &TimerPlan, cost: Fact<AccountCost>) -> Joining {
        let account = SeriesAccount { cost, ..SeriesAccount::default() };
        let relative = timer.method == TimerMethod::NanosleepRelative;
        let waiting_periods = WAITING_SPAN.ns() / timer.period.ns().max(1);
        let max_waiting = (waiting_periods as usize).clamp(*WAITING.start(), *WAITING.end());
        Joining {
            tid,
            clock,
            relative,
            most: max_waiting,
            samples: VecDeque::new(),
            records: VecDeque::new(),
            account,
        }
    }

    /// Adds samples, in order.
    pub(crate) fn add_samples(&mut self, samples: &[Sample]) {
        self.samples.extend(samples);
        while self.samples.len() > self.most {
            let Some(sample) = self.samples.pop_front() else { break };
            self.add_unattributed(sample.latency());
        }
    }

    /// Adds a record. Those of a migrating thread come from several CPUs, each in its order.
    pub fn add_record(&mut self, record: AccountRecord) {
        if self.records.len() == self.most {
            self.records.pop_front();
        }
        let earlier = self.records.iter().rposition(|other| other.begin <= record.begin);
        self.records.insert(earlier.map_or(0, |place| place + 1), record);
    }

    /// Settles the samples seen until then; without an instant, all of them.
    pub(crate) fn settle_samples(&mut self, until: Option<MonotonicNs>, overdue: &[Overdue]) {
        let clock_lead = self.clock_lead();
        let error = if self.clock == Clock::Monotonic { Nanos::ZERO } else { CLOCK_ERROR };
        while let Some(sample) = self.samples.front().copied() {
            let due = MonotonicNs(sample.due.ns() - clock_lead.ns());
            let woke = MonotonicNs(sample.woke.ns() - clock_lead.ns());
            if until.is_some_and(|until| woke > until) {
                return;
            }
            // Records of the warm-up, and of samples that the ring dropped.
            while self.records.front().is_some_and(|record| record.begin + error < due) {
                self.records.pop_front();
            }
            // An absolute timer is due when its sample is; a relative one slightly later, when it
            // was armed.
            let latest = if self.relative { woke } else { due + error };
            match self.records.front().filter(|record| record.begin <= latest) {
                Some(record) => {
                    let due = if self.relative { due } else { record.begin };
                    let mut split = record.split_latency(due, due + sample.latency());
                    if let Some(own) = Overdue::of_sample(record, &split)
                        && overdue.iter().any(|other| own.has_same_cause(other))
                    {
                        let served = if Overdue::from_record(record).is_some() {
                            None
                        } else {
                            split.longest_part()
                        };
                        let stolen = served
                            .map_or(vec![CauseKind::TimerIrqDelay, CauseKind::IdleExit], |part| {
                                vec![part]
                            });
                        stolen.into_iter().for_each(|part| split.move_part(part, CauseKind::Steal));
                    }
                    self.account.account.record_split(&split);
                    self.records.pop_front();
                }
                // The record is emitted with the next sample, which may be far off.
                None if self.records.is_empty() && until.is_some() && self.samples.len() == 1 => {
                    return;
                }
                None => self.add_unattributed(sample.latency()),
            }
            self.samples.pop_front();
        }
    }

    fn add_unattributed(&mut self, latency: Nanos) {
        let mut split = Split::default();
        split.add(CauseKind::Unknown, latency);
        self.account.account.record_split(&split);
        self.account.unattributed += 1;
    }

    /// How far the clock of the samples is ahead of CLOCK_MONOTONIC.
    fn clock_lead(&self) -> Nanos {
        if self.clock == Clock::Monotonic {
            return Nanos::ZERO;
        }
        // The closest of several readings, so that a preemption in between does not count.
        let readings = (0..5).map(|_| {
            let before = clock::monotonic_now();
            let other_time = clock::read_clock(self.clock);
            let after = clock::monotonic_now();
            (after - before, Nanos(other_time.ns() - (before.ns() + (after - before).ns() / 2)))
        });
        readings.min().map_or(Nanos::ZERO, |(_, ahead)| ahead)
    }
}
