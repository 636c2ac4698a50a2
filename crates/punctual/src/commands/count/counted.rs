//! Counters of a command, from being opened to being read.

use super::wanted::Wanted;
use punctual_bundle::{Count, CountSource};
use punctual_core::{Fact, PerfEvent};
use punctual_host::task::children::Used;
use punctual_record::perf::{Counter, Whom};

/// What is wanted, with its counter or the reason why there is none.
pub struct Counters(Vec<(Wanted, Option<Result<Counter, String>>)>);

impl Counters {
    /// For the next programs that this thread starts.
    pub fn open(wanted: Vec<Wanted>) -> Counters {
        let open = |one: Wanted| {
            let counter = one.event.as_ref().map(|event| Counter::of(event, Whom::Programs));
            (one, counter)
        };
        Counters(wanted.into_iter().map(open).collect())
    }

    /// What they hold, with what wait4(2) knows beside.
    pub fn read(&self, used: &Used) -> Vec<Count> {
        self.0.iter().map(|(wanted, counter)| count(wanted, counter.as_ref(), used)).collect()
    }
}

fn count(wanted: &Wanted, counter: Option<&Result<Counter, String>>, used: &Used) -> Count {
    let mut count = Count::new(&wanted.name, CountSource::PerfEvent, Fact::NotAsked);
    count.event = wanted.event.as_ref().map(PerfEvent::to_string);
    count.is_time = wanted.event.as_ref().is_some_and(PerfEvent::is_time);
    match counter {
        Some(Ok(counter)) => read(counter, wanted, &mut count),
        Some(Err(why)) => count.count = Fact::Unavailable(why.clone()),
        None => {}
    }
    if count.count.known().is_none()
        && let Some(known) = from_wait4(&wanted.name, used)
    {
        count = Count { source: CountSource::Wait4, count: Fact::Known(known), event: None, ..count };
    }
    count
}

fn read(counter: &Counter, wanted: &Wanted, count: &mut Count) {
    count.user_only = counter.is_user_only();
    let reading = match counter.reading() {
        Ok(reading) => reading,
        Err(why) => return count.count = Fact::Unavailable(format!("reading its counter failed: {why}")),
    };
    (count.enabled, count.running) = (Some(reading.enabled), Some(reading.running));
    count.scaled = reading.running < reading.enabled;
    count.count = match reading.scaled() {
        // Seen once in thousands: a tracepoint that others switch off and on at the same time stays off. No program
        // ends without a system call.
        Some(0) if wanted.name == "system-calls" => {
            Fact::Unavailable("its tracepoint stayed off, as others switched it at the same instant".to_owned())
        }
        Some(value) => Fact::Known(value),
        None if reading.enabled.0 <= 0 => Fact::Unavailable(
            "its counter never began: the kernel takes counters from set-user-ID programs, and from those that this \
             user may not read"
                .to_owned(),
        ),
        None => Fact::Unavailable("its counter never had its turn on the PMU".to_owned()),
    };
}

/// What the kernel counts of every process.
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
