use super::*;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

const PERIOD: i64 = 1_000_000;
const WAKE: i64 = 3_000;

/// A constant bandwidth server with its own clock (kernel/sched/deadline.c), and the delay of each
/// wake-up.
struct Simulated<'s, const KNOWS: bool> {
    now: &'s Cell<i64>,
    deadline: i64,
    delays: RefCell<VecDeque<i64>>,
}

impl<const KNOWS: bool> DeadlineKernel for Simulated<'_, KNOWS> {
    const KNOWS: bool = KNOWS;
    fn end_period(&mut self) -> WaitResult {
        let delay = self.delays.borrow_mut().pop_front().unwrap_or(WAKE);
        let release = self.deadline;
        let waits = release > self.now.get();
        self.now.set(self.now.get().max(release) + delay);
        self.deadline += PERIOD;
        if self.deadline < self.now.get() {
            // "DL replenish lagged too much".
            self.deadline = self.now.get() - WAKE + PERIOD;
        }
        match KNOWS {
            true if waits => WaitResult::Until(release),
            true => WaitResult::NotAtAll,
            false => WaitResult::Unknown,
        }
    }
    fn now(&self) -> i64 {
        self.now.get()
    }
}

/// Samples of such a server, as (due, latency, missed). The loop reads the simulated clock.
fn simulate<const KNOWS: bool>(
    delays: &[i64],
    samples: u64,
) -> (Vec<(i64, i64, u64)>, ReleaseCounts) {
    let now = Cell::new(0);
    let plan = plan(0, samples);
    let server = Simulated::<KNOWS> {
        now: &now,
        deadline: PERIOD,
        delays: RefCell::new(delays.iter().copied().collect()),
    };
    let mut book = ReleaseCounts::default();
    let mut wakeups = Yield::new(&plan, server, &mut book);
    let (mut wakeups, mut taken) = (&mut wakeups, Vec::new());
    while taken.len() < samples as usize {
        let Ok(due) = wakeups.await_expiry() else { continue };
        let woke = now.get();
        taken.push((due, woke - due, wakeups.arm_next(due, woke)));
    }
    (taken, book)
}

fn plan(first_due: i64, samples: u64) -> LoopPlan {
    LoopPlan {
        method: crate::timer::SleepMethod::Deadline,
        clock: libc::CLOCK_MONOTONIC,
        period: Nanos(PERIOD),
        first_due,
        end_due: i64::MAX,
        samples,
        stop_above: None,
        only_cpu: None,
        series: 0,
    }
}

/// Every 50th wake-up is delayed by 2.6 periods, which changes the phase each time.
fn overruns() -> Vec<i64> {
    (0..400).map(|at| if at % 50 == 49 { PERIOD * 26 / 10 } else { WAKE + at % 7 * 100 }).collect()
}

#[test]
fn releases_reported_by_the_kernel_yield_exactly_the_injected_delays() {
    let delays = overruns();
    let (taken, book) = simulate::<true>(&delays, 400);
    let latencies: Vec<i64> = taken.iter().map(|(_, latency, _)| *latency).collect();
    assert_eq!(latencies, delays);
    assert!(taken.iter().all(|(_, latency, missed)| *missed == (*latency / PERIOD) as u64));
    assert_eq!(book.phases, 7, "the eighth overrun is the last wake-up");
}

#[test]
fn the_estimate_of_a_release_restarts_after_a_missed_period() {
    let (taken, book) = simulate::<false>(&overruns(), 100);
    for (due, latency, missed) in &taken {
        let injected = *latency >= 2 * PERIOD && *missed == 2;
        assert!(injected || (0..WAKE).contains(latency), "{due} {latency} {missed}");
    }
    assert!(book.estimate.format_finding("m").message.contains("not latencies"));
    let ReleaseCounts { estimate, waits, .. } = book;
    assert!(estimate != estimate::Quality::default() && waits > 100);
}
