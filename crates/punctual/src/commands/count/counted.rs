//! Counters of a command, from being opened to being read.

use super::wanted::Wanted;
use punctual_bundle::{Count, CountSource};
use punctual_core::Fact;
use punctual_record::perf::{Counter, Whom};
use punctual_session::counted;
use punctual_sys::children::Used;

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
    let mut count = match (&wanted.event, counter) {
        (Some(event), Some(counter)) => {
            counted::count(event, &counter.as_ref().map_err(String::clone).and_then(Counter::total))
        }
        _ => Count::new(&wanted.name, CountSource::PerfEvent, Fact::NotAsked),
    };
    wanted.name.clone_into(&mut count.name);
    // Seen once in thousands: a tracepoint that others switch off and on at the same time stays
    // off. No program ends without a system call.
    if wanted.name == "system-calls" && count.count == Fact::Known(0) {
        let why = "its tracepoint was disabled by another process at the same time";
        count.count = Fact::Unavailable(why.to_owned());
    }
    if count.count.known().is_none()
        && let Some(known) = from_wait4(&wanted.name, used)
    {
        count =
            Count { source: CountSource::Wait4, count: Fact::Known(known), event: None, ..count };
    }
    count
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
