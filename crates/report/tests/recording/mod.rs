//! A recording written by hand: two CPUs, a periodic real-time thread, a hog, a disk, and the usual
//! defects of recordings.
#![allow(dead_code)]

use punctual_core::event::{Group, Recorded, RecordedSource};
use punctual_core::{CpuSet, Event, MonotonicNs, Names, Nanos, Tid};
use punctual_testing::{events, parse_names};

pub const CONTROL: Tid = Tid(1_000);
pub const HELPER: Tid = Tid(1_001);
pub const HOG: Tid = Tid(2_000);
pub const KWORKER: Tid = Tid(40);

/// An instant: microseconds since the recording began, which was at 5,000 s.
pub fn us(at: i64) -> MonotonicNs {
    MonotonicNs(5_000_000_000_000 + at * 1_000)
}

pub struct Recording {
    pub recorded: Recorded,
    pub names: Names,
    pub events: Vec<Event>,
}

/// The names of a well-behaved system.
pub fn names() -> Names {
    let names = parse_names(
        "task 1000 in 1000 control SCHED_FIFO 80; task 1001 in 1000 helper; task 2000 in 2000 hog
        task 40 in 40 kworker/1:2
        point cycle; point load; point outlier
        function /usr/bin/control parse(char const*); function /lib/libc.so.6 fopen
        irq 24 virtio0-req.0; vector 236 local_timer; vector 253 reschedule
        softirq 1 TIMER; softirq 3 NET_RX; syscall 230 clock_nanosleep; syscall 0 read
        device 266338304 vda
        idle_state 0 POLL; idle_state 1 C1; idle_latency 0 0; idle_latency 1 2000",
    );
    Names {
        symbols: [(0xffff_8000, "wb_workfn".to_owned())].into(),
        stacks: vec![vec![0xffff_8000, 0xffff_9000]],
        ..names
    }
}

/// `cycles` periods of a millisecond: the control thread wakes on CPU 0, every seventh time 300 µs
/// late; a hog, a worker and a disk interrupt run on CPU 1.
pub fn recording(cycles: i64) -> Recording {
    let source = |name: &str, cpu, recorded, lost, torn| RecordedSource {
        name: name.to_owned(),
        cpu,
        recorded,
        lost,
        torn,
    };
    let sources = [
        source("cpu 0", Some(0), 20 * cycles as u64, 0, 0),
        source("cpu 1", Some(1), 10 * cycles as u64, 12, 0),
        source("points of control (tid 1000)", None, 40, 3, 1),
    ];
    let mut events = events!("5000.000001s cpu1 0 switch R -> 2000");
    for cycle in 0..cycles {
        let due = 100 + cycle * 1_000;
        events.extend(control(due, if cycle % 7 == 6 { 300 } else { 0 }));
        events.extend(disturb(due, cycle));
    }
    let (since, ended) = (us(cycles * 1_000 + 550).0, us(cycles * 1_000 + 600).0);
    events.extend(events!("{ended} cpu1 2000 lost 12 since={since}; +100us switch X -> 0"));
    events.sort_by_key(|event| event.at);
    Recording {
        recorded: Recorded {
            recorder: "BPF (BTF tracepoints)".to_owned(),
            began: us(0),
            ended: us(cycles * 1_000 + 900),
            cpus: CpuSet::from_mask("3").unwrap_or_default(),
            groups: Group::ALL.to_vec(),
            sources: sources.to_vec(),
            point_clock_error: Some(Nanos(40)),
            ..Recorded::default()
        },
        names: names(),
        events,
    }
}

/// One cycle that is due at `due` and wakes up `late` µs later than usual.
fn control(due: i64, late: i64) -> Vec<Event> {
    let at = |after: i64| us(due + late + after).0;
    events!(
        "{} cpu0 0 idle_enter 1
        {} idle_exit; +1us vector_entry 236
        +1us hrtimer_entry 0xbeef now={} expires={}
        +1us waking 1000/19; +1us wakeup 1000/19; +1us hrtimer_exit 0xbeef; +1us vector_exit 236
        +3us switch R -> 1000/19
        +1us sys_exit 230; +1us sample 0 due={}
        +1us nocpu 1000 begin 0 {due}; +1us point 1 {} -5
        +26us cpu0 call 1 began={} depth=1 argument=7; +10us call 0 began={} argument=7
        +10us nocpu end 0
        +1us cpu0 sys_enter 230 1
        +1us hrtimer_start 0xbeef expires={}
        +2us switch S -> 0",
        us(due - 40).0,
        at(1),
        at(3),
        us(due).0,
        us(due).0,
        late + due % 13,
        at(20),
        at(15),
        us(due + 1_000).0
    )
}

/// The hog on CPU 1 is interrupted by the disk and preempted by a worker, which waits for a lock.
fn disturb(at: i64, cycle: i64) -> Vec<Event> {
    let sector = 100 + cycle;
    events!(
        "{} cpu1 2000 block_issue 0xfe00000 {sector} 4096 write
        +195us irq_entry 24
        +10us block_complete 0xfe00000 {sector} 4096
        +1us waking 40 cpu1
        +1us irq_exit 24; +1us softirq_entry 3; +17us softirq_exit 3
        +10us switch R -> 40
        +2us work_start 0xffff8000
        +8us contention_begin 0xabc 2; +10us contention_end 0xabc
        +2us page_fault 0x7000 0x4000 kernel; +1us stack 0
        +7us work_end 0xffff8000
        +10us switch other -> 2000
        +20us futex_enter wake 0x10; +1us futex_exit wake 1",
        us(at + 5).0
    )
}
