//! A trace of LTTng from elsewhere (data/lttng/README.md), compared with the reading of
//! babeltrace2.

use punctual_core::EventKind;
use punctual_traces::{ReadAt, Trace, TraceFormat};

pub(super) const METADATA: &[u8] = include_bytes!("data/lttng/metadata");
pub(super) const STREAMS: [&[u8]; 2] =
    [include_bytes!("data/lttng/mychan_1_2"), include_bytes!("data/lttng/mychan_2_2")];
/// For each switch: ns, CPU, thread and priority before and after it.
const SWITCHES: &str = include_str!("data/lttng/switches.txt");
/// LTTng counts priorities from here on.
const LOWEST: i64 = 100;

#[test]
fn events_match_those_read_by_babeltrace() {
    let streams = STREAMS.map(|bytes| Box::new(bytes.to_vec()) as Box<dyn ReadAt>);
    let mut trace = Trace::open_ctf(METADATA.to_vec(), streams.into()).unwrap();
    let mut found = Vec::new();
    for event in trace.by_ref().map(Result::unwrap) {
        if let EventKind::Switch { prev_prio, next, next_prio, .. } = event.what {
            let prios = (i64::from(prev_prio) - LOWEST, i64::from(next_prio) - LOWEST);
            let (before, next) = (i64::from(event.tid.0), i64::from(next.0));
            let (at, cpu) = (event.at.ns(), i64::from(event.cpu));
            found.push(vec![at, cpu, before, prios.0, next, prios.1]);
        }
    }
    let words =
        |line: &str| -> Vec<i64> { line.split(' ').map(|word| word.parse().unwrap()).collect() };
    let expected: Vec<Vec<i64>> = SWITCHES.lines().map(words).collect();
    assert_eq!(found.len(), 222);
    assert_eq!(found, expected);
    let facts = trace.facts();
    assert_eq!((facts.format, facts.unreadable, facts.out_of_order), (TraceFormat::Ctf, 0, 0));
    let seen = facts.tracepoints.iter().map(|(name, count)| (name.as_str(), count.seen));
    let counts = [
        ("sched_migrate_task", 11),
        ("sched_process_exit", 1),
        ("sched_stat_runtime", 118),
        ("sched_switch", 222),
        ("sched_wakeup", 94),
        ("sched_waking", 94),
    ];
    assert_eq!(seen.filter(|(_, count)| *count > 0).collect::<Vec<_>>(), counts);
}
