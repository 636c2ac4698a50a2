//! Counters of a command or a process, from opening to reading.

use super::process::CountedProcess;
use super::request::WantedCount;
use punctual_bundle::{CountSource, EventCount};
use punctual_core::{Fact, PerfEvent};
use punctual_record::perf::{CounterReading, PerfCounter, Total, Whom};
use punctual_session::counting;
use punctual_sys::children::Used;

/// The requested counts, with counters or the reason why there are none.
pub struct RequestedCounters(Vec<(WantedCount, Option<OpenedCounter>)>);

/// A counter for each thread, or why there is none.
type OpenedCounter = Result<Vec<PerfCounter>, String>;

/// Counts of the kernel without perf events.
pub enum KernelCounts<'a> {
    /// For a command that has ended.
    Wait4(&'a Used),
    /// For a process.
    Proc(&'a CountedProcess),
}

impl RequestedCounters {
    /// Opens counters for the next programs that this thread starts.
    pub fn open_for_programs(wanted: Vec<WantedCount>) -> RequestedCounters {
        RequestedCounters::open_each(wanted, |event| {
            PerfCounter::open_event(event, Whom::Programs).map(|one| vec![one])
        })
    }

    /// Opens counters for the threads of a process and those that they start from now on.
    pub fn attach_to_process(
        wanted: Vec<WantedCount>,
        process: &CountedProcess,
    ) -> RequestedCounters {
        let counters = RequestedCounters::open_each(wanted, |event| {
            let mut opened = Vec::new();
            for thread in process.thread_ids() {
                match PerfCounter::open_event(event, Whom::ThreadAndChildren(thread)) {
                    Ok(counter) => opened.push(counter),
                    Err(why) if process.has_thread(thread) => return Err(why),
                    // The thread has ended since the list was read.
                    Err(_) => {}
                }
            }
            Ok(opened)
        });
        counters
            .0
            .iter()
            .filter_map(|(_, opened)| opened.as_ref()?.as_ref().ok())
            .flatten()
            .for_each(PerfCounter::enable);
        counters
    }

    fn open_each(
        wanted: Vec<WantedCount>,
        open: impl Fn(&PerfEvent) -> OpenedCounter,
    ) -> RequestedCounters {
        let open = |one: WantedCount| {
            let counters = one.event.as_ref().map(&open);
            (one, counters)
        };
        RequestedCounters(wanted.into_iter().map(open).collect())
    }

    /// The requests with the current values of their counters; those without counters are left out.
    pub fn current_values(&self) -> impl Iterator<Item = (&WantedCount, Option<u64>)> {
        self.0.iter().filter_map(|(wanted, counters)| {
            let counters = counters.as_ref()?.as_ref().ok()?;
            Some((
                wanted,
                sum_counters(counters).ok().map(|total| total.reading.scaled_count().unwrap_or(0)),
            ))
        })
    }

    /// The final counts, including those without perf events.
    pub fn read(&self, beside: &KernelCounts) -> Vec<EventCount> {
        self.0
            .iter()
            .map(|(wanted, counters)| count_event(wanted, counters.as_ref(), beside))
            .collect()
    }
}

/// The sum over threads.
fn sum_counters(counters: &[PerfCounter]) -> Result<Total, String> {
    let nothing = Total { reading: CounterReading::default(), user_only: false };
    counters.iter().try_fold(nothing, |sum, counter| {
        let Total { reading, user_only } = counter.final_total()?;
        Ok(Total {
            reading: CounterReading {
                value: sum.reading.value.saturating_add(reading.value),
                enabled: sum.reading.enabled + reading.enabled,
                running: sum.reading.running + reading.running,
            },
            user_only: sum.user_only || user_only,
        })
    })
}

fn count_event(
    wanted: &WantedCount,
    counters: Option<&OpenedCounter>,
    beside: &KernelCounts,
) -> EventCount {
    let mut count = match (&wanted.event, counters) {
        (Some(event), Some(counters)) => {
            let total = counters.as_ref().map_err(String::clone).and_then(|all| sum_counters(all));
            let mut count = counting::event_count(event, &total);
            // Threads that did not run while they were counted.
            if let (Ok(total), KernelCounts::Proc(_)) = (&total, beside)
                && total.reading == CounterReading::default()
            {
                count.count = Fact::Known(0);
            }
            count
        }
        _ => EventCount::new(&wanted.name, CountSource::PerfEvent, Fact::NotAsked),
    };
    wanted.name.clone_into(&mut count.name);
    // Seen once in thousands: a tracepoint that others disable and enable at the same time stays
    // disabled. No program ends without a system call.
    if wanted.name == "system-calls"
        && count.count == Fact::Known(0)
        && matches!(beside, KernelCounts::Wait4(_))
    {
        let reason = "its tracepoint was disabled by another process at the same time";
        count.count = Fact::Unavailable(reason.to_owned());
    }
    if count.count.known_value().is_some() {
        return count;
    }
    match beside {
        KernelCounts::Wait4(used) => match from_wait4(&wanted.name, used) {
            Some(known) => EventCount {
                source: CountSource::Wait4,
                count: Fact::Known(known),
                event: None,
                ..count
            },
            None => count,
        },
        KernelCounts::Proc(process) => match process.switch_count(&wanted.name) {
            Some(switches) => {
                EventCount { source: CountSource::Proc, count: switches, event: None, ..count }
            }
            None => count,
        },
    }
}

/// Counts that the kernel has for every process.
fn from_wait4(name: &str, used: &Used) -> Option<u64> {
    let usage = used.usage;
    Some(match name {
        "context-switches" => usage.voluntary_switches + usage.involuntary_switches,
        "voluntary-switches" => usage.voluntary_switches,
        "involuntary-switches" => usage.involuntary_switches,
        "page-faults" => usage.minor_faults + usage.major_faults,
        "minor-faults" => usage.minor_faults,
        "major-faults" => usage.major_faults,
        _ => return None,
    })
}
