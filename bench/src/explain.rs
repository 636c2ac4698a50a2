//! The speed of explaining late samples: events per second, and ten thousand windows, beside merely
//! decoding the same events.

use crate::Args;
use crate::figures::median;
use punctual_core::event::TaskState;
use punctual_core::{Event, EventKind, MonotonicNs, Tid};
use punctual_explain::explain::{LatencyInterval, StartKind, explain};
use punctual_explain::gaps::Gaps;
use punctual_explain::threads::Coverage;
use punctual_record::wire;
use serde_json::{Value, json};
use std::hint::black_box;
use std::time::Instant;

/// Windows of one size.
struct Size {
    name: &'static str,
    windows: usize,
    /// Events in each.
    events: usize,
}

/// The sizes: this many windows with the events of 1.5 ms on a machine that makes a million per
/// second; and a few large ones.
const SIZES: [Size; 2] = [
    Size { name: "10,000 windows", windows: 10_000, events: 1_500 },
    Size { name: "large windows", windows: 20, events: 200_000 },
];
/// The number of distinct windows; they are explained repeatedly.
const DIFFERENT: usize = 50;
const CPUS: u16 = 4;
const THREAD: Tid = Tid(7);

/// Seconds and rates.
pub fn measure(args: &Args) -> Result<Value, String> {
    let rounds = if args.quick { 1 } else { 5 };
    println!("explaining windows, {rounds} rounds:");
    let rows = SIZES
        .iter()
        .map(|size| measure_size(size, rounds))
        .collect::<Result<Vec<Value>, String>>()?;
    Ok(Value::Array(rows))
}

fn measure_size(size: &Size, rounds: usize) -> Result<Value, String> {
    let made: Vec<(LatencyInterval, Vec<Event>, Vec<u8>)> =
        (0..DIFFERENT.min(size.windows)).map(|seed| window(seed as u64, size.events)).collect();
    let coverage = Coverage::between(MonotonicNs(0), MonotonicNs(0));
    let (mut explaining, mut decoding) = (Vec::new(), Vec::new());
    let (mut events, mut parts) = (0u64, 0u64);
    for _ in 0..rounds {
        let start = Instant::now();
        events = 0;
        for (.., bytes) in made.iter().cycle().take(size.windows) {
            for event in wire::decode(bytes).flatten() {
                events += 1;
                black_box(event);
            }
        }
        decoding.push(start.elapsed().as_secs_f64());
        let start = Instant::now();
        parts = 0;
        for (interval, events, _) in made.iter().cycle().take(size.windows) {
            let explanation = explain(*interval, events, &coverage, &Gaps::default());
            if !explanation.adds_up() {
                return Err(format!("parts do not add up: {explanation:?}"));
            }
            parts += explanation.parts.len() as u64;
        }
        explaining.push(start.elapsed().as_secs_f64());
    }
    let (seconds, decode) = (median(&explaining), median(&decoding));
    let rate = events as f64 / seconds;
    println!(
        "  {:<16} {events:>9} events, {parts:>8} parts: {seconds:>6.2} s, {:>5.1} million events \
         a second, {:>4.1} times as long as decoding",
        size.name,
        rate / 1e6,
        seconds / decode
    );
    Ok(json!({
        "name": size.name, "windows": size.windows, "events": events, "parts": parts,
        "seconds": explaining, "seconds_decoding": decoding, "events_per_second": rate,
        "ratio_to_decoding": seconds / decode,
    }))
}

/// A busy machine: system calls, wake-ups, switches, interrupts and softirqs on every CPU, a
/// microsecond apart, and a real-time thread that is delayed, first by its timer interrupt, then by
/// another task.
fn window(seed: u64, count: usize) -> (LatencyInterval, Vec<Event>, Vec<u8>) {
    let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = move |below: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random % below
    };
    let mut machine = Machine {
        events: Vec::with_capacity(count + 64),
        now: 1_000_000,
        running: [100, 200, 300, 400],
    };
    // Two thirds before the due time: 1 ms of 1.5.
    while machine.events.len() < count * 2 / 3 {
        machine.goes_on(next(CPUS.into()) as u16, next(16));
    }
    let due = MonotonicNs(machine.now);
    while machine.events.len() < count * 5 / 6 {
        machine.goes_on(1 + next(u64::from(CPUS) - 1) as u16, next(16));
    }
    machine.add(0, EventKind::VectorEntry { vector: 0xec });
    machine.add(0, EventKind::Waking { task: THREAD, prio: 19, target: 0 });
    machine.add(0, EventKind::Wakeup { task: THREAD, prio: 19, target: 0, new: false });
    machine.add(0, EventKind::VectorExit { vector: 0xec });
    while machine.events.len() < count {
        // Interrupts and softirqs occur, but no switch.
        machine.goes_on(next(CPUS.into()) as u16, 4 + next(12));
    }
    machine.switch(0, THREAD);
    machine.now += 2_000;
    let interval = LatencyInterval {
        tid: THREAD,
        cpu: 0,
        due,
        woke: MonotonicNs(machine.now),
        kind: StartKind::Timer,
    };
    let mut bytes = Vec::new();
    machine.events.iter().for_each(|event| wire::encode(event, &mut bytes));
    (interval, machine.events, bytes)
}

struct Machine {
    events: Vec<Event>,
    now: i64,
    running: [u32; CPUS as usize],
}

impl Machine {
    fn add(&mut self, cpu: u16, what: EventKind) {
        self.now += 1_000;
        let tid = Tid(self.running[usize::from(cpu)]);
        self.events.push(Event { at: MonotonicNs(self.now), cpu, tid, what });
    }

    fn switch(&mut self, cpu: u16, to: Tid) {
        let next_prio = if to == THREAD { 19 } else { 120 };
        self.add(
            cpu,
            EventKind::Switch {
                prev_prio: 120,
                prev_state: TaskState::Sleeping,
                next: to,
                next_prio,
            },
        );
        self.running[usize::from(cpu)] = to.0;
    }

    fn goes_on(&mut self, cpu: u16, what: u64) {
        match what {
            0..4 => {
                let other =
                    (self.running[usize::from(cpu)] / 100) * 100 + (self.now / 1_000 % 8) as u32;
                let task = Tid(other);
                self.add(cpu, EventKind::Waking { task, prio: 120, target: cpu });
                self.add(cpu, EventKind::Wakeup { task, prio: 120, target: cpu, new: false });
                self.switch(cpu, task);
            }
            4..8 => {
                self.add(cpu, EventKind::VectorEntry { vector: 0xec });
                self.add(cpu, EventKind::VectorExit { vector: 0xec });
                self.add(cpu, EventKind::SoftirqEntry { vector: 1 });
                self.add(cpu, EventKind::SoftirqExit { vector: 1 });
            }
            _ => {
                self.add(cpu, EventKind::SyscallEnter { number: what as u32, args: [0; 2] });
                self.add(cpu, EventKind::SyscallExit { number: what as u32, result: 0 });
            }
        }
    }
}
