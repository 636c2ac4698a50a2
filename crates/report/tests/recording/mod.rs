//! A recording written by hand: two CPUs, a periodic real-time thread, a hog, a disk, and the usual
//! defects of recordings.
#![allow(dead_code)]

use punctual_core::event::{
    FunctionId, FunctionName, PointId, PointKind, Recorded, RecordedSource, TaskName, TaskState,
};
use punctual_core::event::{Futex, Group, StackId};
use punctual_core::{CpuSet, Event, EventKind, MonotonicNs, Names, Nanos, Tid};

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

impl Recording {
    pub fn add(&mut self, at: i64, cpu: u16, tid: Tid, what: EventKind) {
        self.events.push(Event { at: us(at), cpu, tid, what });
    }

    /// Adds a switch: the leaving thread and its state, and the next thread.
    pub fn switch(&mut self, at: i64, cpu: u16, prev: Tid, prev_state: TaskState, next: Tid) {
        self.add(
            at,
            cpu,
            prev,
            EventKind::Switch { prev_prio: prio(prev), prev_state, next, next_prio: prio(next) },
        );
    }

    pub fn point(&mut self, at: i64, tid: Tid, point: u32, kind: PointKind, values: &[i64]) {
        let mut both = [0; 2];
        both[..values.len()].copy_from_slice(values);
        let what = EventKind::Point {
            point: PointId(point),
            kind,
            count: values.len() as u8,
            values: both,
        };
        self.add(at, Event::NO_CPU, tid, what);
    }
}

fn prio(tid: Tid) -> i16 {
    if tid == CONTROL { 19 } else { 120 }
}

/// The names of a well-behaved system.
pub fn names() -> Names {
    let task =
        |process: u32, comm: &str| TaskName { process, comm: comm.to_owned(), scheduling: None };
    let control =
        TaskName { scheduling: Some("SCHED_FIFO 80".to_owned()), ..task(1_000, "control") };
    let functions = [("parse(char const*)", "/usr/bin/control"), ("fopen", "/lib/libc.so.6")];
    let function = |(name, object): (&str, &str)| FunctionName {
        name: name.to_owned(),
        object: object.to_owned(),
        offset: 0x1000,
        site: "push".to_owned(),
    };
    Names {
        tasks: [
            (CONTROL, control),
            (HELPER, task(1_000, "helper")),
            (HOG, task(2_000, "hog")),
            (KWORKER, task(40, "kworker/1:2")),
        ]
        .into(),
        observers: Default::default(),
        points: ["cycle", "load", "outlier"].map(str::to_owned).into(),
        functions: functions.map(function).into(),
        calls: Vec::new(),
        probe_costs: Vec::new(),
        lines: Vec::new(),
        irqs: [(24, "virtio0-req.0".to_owned())].into(),
        vectors: [(236, "local_timer".to_owned()), (253, "reschedule".to_owned())].into(),
        softirqs: [(1, "TIMER".to_owned()), (3, "NET_RX".to_owned())].into(),
        syscalls: [(230, "clock_nanosleep".to_owned()), (0, "read".to_owned())].into(),
        devices: [(254 << 20, "vda".to_owned())].into(),
        idle_states: [(0, "POLL".to_owned()), (1, "C1".to_owned())].into(),
        idle_latencies: [(0, punctual_core::Nanos(0)), (1, punctual_core::Nanos(2_000))].into(),
        symbols: [(0xffff_8000, "wb_workfn".to_owned())].into(),
        stacks: vec![vec![0xffff_8000, 0xffff_9000]],
        tracepoints: Vec::new(),
    }
}

/// `cycles` periods of a millisecond: the control thread wakes on CPU 0, every seventh time 300 µs
/// late; a hog, a worker and a disk interrupt run on CPU 1.
pub fn recording(cycles: i64) -> Recording {
    let sources = [
        RecordedSource {
            name: "cpu 0".to_owned(),
            cpu: Some(0),
            recorded: 20 * cycles as u64,
            lost: 0,
            torn: 0,
        },
        RecordedSource {
            name: "cpu 1".to_owned(),
            cpu: Some(1),
            recorded: 10 * cycles as u64,
            lost: 12,
            torn: 0,
        },
        RecordedSource {
            name: "points of control (tid 1000)".to_owned(),
            cpu: None,
            recorded: 40,
            lost: 3,
            torn: 1,
        },
    ];
    let mut all = Recording {
        recorded: Recorded {
            recorder: "BPF (BTF tracepoints)".to_owned(),
            began: us(0),
            ended: us(cycles * 1_000 + 900),
            cpus: CpuSet::from_mask("3").unwrap_or_default(),
            groups: Group::ALL.to_vec(),
            tracepoints: Vec::new(),
            pids: Vec::new(),
            comms: Vec::new(),
            sources: sources.to_vec(),
            missing: Vec::new(),
            point_clock_error: Some(Nanos(40)),
            moments: Vec::new(),
            findings: Vec::new(),
        },
        names: names(),
        events: Vec::new(),
    };
    all.switch(1, 1, Tid::IDLE, TaskState::Preempted, HOG);
    for cycle in 0..cycles {
        control(&mut all, 100 + cycle * 1_000, if cycle % 7 == 6 { 300 } else { 0 });
        disturb(&mut all, 100 + cycle * 1_000, cycle);
    }
    all.add(
        cycles * 1_000 + 600,
        1,
        HOG,
        EventKind::Lost { count: 12, since: us(cycles * 1_000 + 550) },
    );
    all.switch(cycles * 1_000 + 700, 1, HOG, TaskState::Dead, Tid::IDLE);
    all.events.sort_by_key(|event| event.at);
    all
}

/// One cycle that is due at `due` and wakes up `late` µs later than usual.
fn control(all: &mut Recording, due: i64, late: i64) {
    let t = due + late;
    let idle = Tid::IDLE;
    all.add(due - 40, 0, idle, EventKind::IdleEnter { state: 1 });
    all.add(t + 1, 0, idle, EventKind::IdleExit);
    all.add(t + 2, 0, idle, EventKind::VectorEntry { vector: 236 });
    all.add(
        t + 3,
        0,
        idle,
        EventKind::HrtimerExpireEntry {
            timer: 0xbeef,
            now: Some(us(t + 3)),
            expires: Some(us(due)),
            slack: None,
        },
    );
    all.add(t + 4, 0, idle, EventKind::Waking { task: CONTROL, prio: 19, target: 0 });
    all.add(t + 5, 0, idle, EventKind::Wakeup { task: CONTROL, prio: 19, target: 0, new: false });
    all.add(t + 6, 0, idle, EventKind::HrtimerExpireExit { timer: 0xbeef });
    all.add(t + 7, 0, idle, EventKind::VectorExit { vector: 236 });
    all.switch(t + 10, 0, idle, TaskState::Preempted, CONTROL);
    all.add(t + 11, 0, CONTROL, EventKind::SyscallExit { number: 230, result: 0 });
    all.add(t + 12, 0, CONTROL, EventKind::Sample { series: 0, due: us(due) });
    all.point(t + 13, CONTROL, 0, PointKind::Begin, &[due]);
    all.point(t + 14, CONTROL, 1, PointKind::Point, &[late + due % 13, -5]);
    let call = |function, began, depth| EventKind::Call {
        function: FunctionId(function),
        began: us(began),
        depth,
        left: false,
        argument: Some(7),
    };
    all.add(t + 40, 0, CONTROL, call(1, t + 20, 1));
    all.add(t + 50, 0, CONTROL, call(0, t + 15, 0));
    all.point(t + 60, CONTROL, 0, PointKind::End, &[]);
    all.add(t + 61, 0, CONTROL, EventKind::SyscallEnter { number: 230, args: [1, 0] });
    all.add(
        t + 62,
        0,
        CONTROL,
        EventKind::HrtimerStart { timer: 0xbeef, expires: us(due + 1_000), slack: None },
    );
    all.switch(t + 64, 0, CONTROL, TaskState::Sleeping, idle);
}

/// The hog on CPU 1 is interrupted by the disk and preempted by a worker, which waits for a lock.
fn disturb(all: &mut Recording, t: i64, cycle: i64) {
    all.add(
        t + 5,
        1,
        HOG,
        EventKind::BlockIssue {
            device: 254 << 20,
            sector: 100 + cycle as u64,
            bytes: 4096,
            write: true,
        },
    );
    all.add(t + 200, 1, HOG, EventKind::IrqEntry { irq: 24 });
    all.add(
        t + 210,
        1,
        HOG,
        EventKind::BlockComplete {
            device: 254 << 20,
            sector: 100 + cycle as u64,
            bytes: 4096,
            error: 0,
        },
    );
    all.add(t + 211, 1, HOG, EventKind::Waking { task: KWORKER, prio: 120, target: 1 });
    all.add(t + 212, 1, HOG, EventKind::IrqExit { irq: 24, handled: true });
    all.add(t + 213, 1, HOG, EventKind::SoftirqEntry { vector: 3 });
    all.add(t + 230, 1, HOG, EventKind::SoftirqExit { vector: 3 });
    all.switch(t + 240, 1, HOG, TaskState::Preempted, KWORKER);
    all.add(t + 242, 1, KWORKER, EventKind::WorkStart { function: 0xffff_8000 });
    all.add(t + 250, 1, KWORKER, EventKind::ContentionBegin { lock: 0xabc, flags: 2 });
    all.add(t + 260, 1, KWORKER, EventKind::ContentionEnd { lock: 0xabc, result: 0 });
    all.add(t + 262, 1, KWORKER, EventKind::PageFault { address: 0x7000, ip: 0x4000, user: false });
    all.add(t + 263, 1, KWORKER, EventKind::Stack { stack: StackId(0) });
    all.add(t + 270, 1, KWORKER, EventKind::WorkEnd { function: 0xffff_8000 });
    all.switch(t + 280, 1, KWORKER, TaskState::Other, HOG);
    all.add(t + 300, 1, HOG, EventKind::FutexEnter { op: Futex::Wake, address: 0x10 });
    all.add(t + 301, 1, HOG, EventKind::FutexExit { op: Futex::Wake, result: 1 });
}
