//! A model of a writer against the reader: whatever the order of operations, each point is read
//! once or counted.

use crate::clock::ClockPairs;
use crate::file::Access;
use crate::process::{DrainOptions, PointProcess, ReadFrom};
use crate::reading::Gathered;
use crate::ring::Torn;
use proptest::prelude::*;
use punctual_core::event::{Event, EventKind};
use punctual_testpoint::counter::Pair;
use punctual_testpoint::layout::*;
use std::cell::{Cell, RefCell};
use std::io;
use std::mem::offset_of;

const SLOTS: u64 = SLOTS_MIN as u64;

/// A file in memory that both writer and reader change.
struct Memory(RefCell<Vec<u8>>);

impl Access for Memory {
    fn read(&self, at: u64, bytes: &mut [u8]) -> io::Result<()> {
        (&self.0.borrow()[..]).read(at, bytes)
    }
    fn write(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        // The fields that may be written: recording and mode, and of the ring its state and the
        // collector's line.
        let ring = at.checked_sub(RINGS_AT);
        assert!(
            matches!((at, ring), (12 | 16, _) | (_, Some(0 | 128))) && bytes.len() <= 24,
            "{} bytes at {at}",
            bytes.len()
        );
        self.0.borrow_mut()[at as usize..][..bytes.len()].copy_from_slice(bytes);
        Ok(())
    }
}

impl Memory {
    fn new(flight: bool) -> Memory {
        let memory = Memory(RefCell::new(vec![0; (RINGS_AT + ring_stride(SLOTS_MIN)) as usize]));
        for (at, number) in [
            (offset_of!(Control, version), VERSION),
            (offset_of!(Control, clock), CLOCK_MONOTONIC),
            (offset_of!(Control, ring_slots), SLOTS_MIN),
            (offset_of!(Control, rings_used), 1),
            (RINGS_AT as usize + offset_of!(Ring, state), RING_LIVE),
            (RINGS_AT as usize + offset_of!(Ring, generation), 1),
            (RINGS_AT as usize + offset_of!(Ring, slots), SLOTS_MIN),
        ] {
            memory.0.borrow_mut()[at..at + 4].copy_from_slice(&number.to_ne_bytes());
        }
        memory.set(offset_of!(Control, magic) as u64, MAGIC);
        memory.set_ring(offset_of!(Ring, mask), SLOTS - 1);
        memory.set_ring(offset_of!(Ring, limit), if flight { u64::MAX } else { SLOTS - MARGIN });
        memory
    }
    fn set(&self, at: u64, number: u64) {
        self.0.borrow_mut()[at as usize..][..8].copy_from_slice(&number.to_ne_bytes());
    }
    fn get_ring(&self, field: usize) -> u64 {
        let mut bytes = [0; 8];
        self.read(RINGS_AT + field as u64, &mut bytes).unwrap();
        u64::from_ne_bytes(bytes)
    }
    fn set_ring(&self, field: usize, number: u64) {
        self.set(RINGS_AT + field as u64, number);
    }
    /// Passes a point, up to `steps` of its stores. Returns whether it was recorded.
    fn pass(&self, value: u64, steps: u32) -> bool {
        let head = self.get_ring(offset_of!(Ring, head));
        if head >= self.get_ring(offset_of!(Ring, limit)) {
            self.set_ring(offset_of!(Ring, dropped), self.get_ring(offset_of!(Ring, dropped)) + 1);
            return false;
        }
        let slot = RINGS_AT + SLOTS_AT + (head & (SLOTS - 1)) * 32;
        let word = (head + 1) << 32 | u64::from(KIND_POINT | 1 << COUNT_SHIFT | ID_UNNAMED);
        let stores = [
            (RINGS_AT + offset_of!(Ring, head) as u64, head + 1),
            (slot + 16, value),
            (slot, 5),
            (slot + 8, word),
        ];
        stores.iter().take(steps as usize).for_each(|&(at, number)| self.set(at, number));
        true
    }
}

#[derive(Clone, Debug)]
enum Step {
    Pass(u32),
    Poll,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        (1_u32..40).prop_map(Step::Pass),
        (1_u32..1_500).prop_map(Step::Pass),
        Just(Step::Poll)
    ];
    prop::collection::vec(step, 1..40)
}

struct Reader {
    process: PointProcess,
    all: Gathered,
    values: Vec<i64>,
}

impl Reader {
    fn new(memory: &impl Access) -> Reader {
        let clock = ClockPairs::from_pair(Pair { ticks: 0, monotonic: 10, error: 0 });
        Reader {
            process: PointProcess::open(memory).unwrap(),
            all: Gathered::new(clock),
            values: Vec::new(),
        }
    }
    fn read(&mut self, memory: &impl Access, torn: Torn, claim: bool) -> bool {
        self.read_from(memory, torn, claim, ReadFrom::First)
    }
    fn read_from(
        &mut self,
        memory: &impl Access,
        torn: Torn,
        claim: bool,
        begin: ReadFrom,
    ) -> bool {
        let look = self.process.read_positions(memory).unwrap();
        let values = &mut self.values;
        let mut sink = |_: usize, events: &[Event]| {
            values.extend(events.iter().map(|event| match event.what {
                EventKind::Point { values, .. } => values[0],
                _ => unreachable!("only points"),
            }));
        };
        self.process.drain_rings(
            memory,
            &look,
            DrainOptions { torn, claim, begin },
            &mut self.all,
            &mut sink,
        )
    }
}

/// A writer that continues while its slots are read: by this many points, once.
struct Overtaking {
    memory: Memory,
    more: Cell<u64>,
}

impl Access for Overtaking {
    fn read(&self, at: u64, bytes: &mut [u8]) -> io::Result<()> {
        if at >= RINGS_AT + SLOTS_AT && !bytes.is_empty() {
            let first = self.memory.get_ring(offset_of!(Ring, head));
            (0..self.more.take()).for_each(|k| assert!(self.memory.pass(first + k, 4)));
        }
        self.memory.read(at, bytes)
    }
    fn write(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.memory.write(at, bytes)
    }
}

#[test]
fn what_is_overwritten_while_it_is_read_is_counted_as_that() {
    for more in [0, 1, 100, SLOTS] {
        let overtaking = Overtaking { memory: Memory::new(true), more: Cell::new(more) };
        (0..SLOTS).for_each(|value| assert!(overtaking.memory.pass(value, 4)));
        let mut reader = Reader::new(&overtaking);
        reader.read(&overtaking, Torn::Wait, false);
        let left: Vec<i64> = (more as i64..SLOTS as i64).collect();
        assert_eq!(reader.values, left, "{more} more");
        let source = &reader.all.sources[0];
        let counts = (source.recorded, source.overwritten, source.torn);
        assert_eq!(counts, (SLOTS - more, more, 0));
        // The next look finds the others.
        assert!(reader.read(&overtaking, Torn::Wait, false));
        assert_eq!(reader.values.len() as u64, SLOTS);
        assert_eq!(reader.all.sources[0].torn, 0);
    }
}

#[test]
fn what_was_dropped_before_the_reading_began_is_not_its_loss() {
    let memory = Memory::new(false);
    let full = SLOTS - MARGIN;
    let before = (0..full + 30).filter(|value| !memory.pass(*value, 4)).count();
    assert_eq!(before, 30);
    let mut reader = Reader::new(&memory);
    assert!(reader.read_from(&memory, Torn::Wait, true, ReadFrom::Now));
    let passed = (0..full + 7).filter(|value| memory.pass(*value, 4)).count();
    assert!(reader.read_from(&memory, Torn::Wait, true, ReadFrom::Now));
    let source = &reader.all.sources[0];
    assert_eq!((passed as u64, source.recorded, source.dropped), (full, full, 7));
}

proptest! {
    #[test]
    fn each_stream_point_is_read_once_or_dropped(steps in steps(), last in 0_u32..=4) {
        let memory = Memory::new(false);
        let mut reader = Reader::new(&memory);
        let (mut passed, mut recorded) = (0_u64, Vec::new());
        for step in steps {
            match step {
                Step::Pass(count) => {
                    for _ in 0..count {
                        if memory.pass(passed, 4) {
                            recorded.push(passed as i64);
                        }
                        passed += 1;
                    }
                }
                Step::Poll => prop_assert!(reader.read(&memory, Torn::Wait, true)),
            }
        }
        // Killed within a last point, after this number of its stores.
        let begun = last > 0 && memory.pass(passed, last);
        passed += u64::from(last > 0);
        if begun && last == 4 {
            recorded.push(passed as i64 - 1);
        }
        let torn = u64::from(begun && last < 4);
        prop_assert_eq!(
            reader.read(&memory, Torn::Wait, true),
            torn == 0,
            "one that may be completed yet is waited for"
        );
        prop_assert!(reader.read(&memory, Torn::Count, true));
        prop_assert_eq!(&reader.values, &recorded);
        if let Some(source) = reader.all.sources.first() {
            prop_assert_eq!((source.torn, source.overwritten), (torn, 0));
            prop_assert_eq!(source.recorded + source.dropped + torn, passed);
        }
    }

    #[test]
    fn a_flight_recorder_yields_the_last_points_and_counts_the_others(
        counts in prop::collection::vec(1_u64..1_500, 1..6),
        last in 0_u32..4,
    ) {
        let memory = Memory::new(true);
        let passed: u64 = counts.iter().sum();
        (0..passed).for_each(|value| assert!(memory.pass(value, 4)));
        memory.pass(passed, last);
        let torn = u64::from(last > 0);
        let mut reader = Reader::new(&memory);
        prop_assert!(reader.read(&memory, Torn::Count, false));
        let kept = (passed + torn).min(SLOTS) - torn;
        prop_assert_eq!(
            &reader.values,
            &(passed - kept..passed).map(|value| value as i64).collect::<Vec<_>>()
        );
        let source = &reader.all.sources[0];
        prop_assert_eq!(
            (source.recorded, source.overwritten, source.torn, source.dropped),
            (kept, passed - kept, torn, 0)
        );
    }

    #[test]
    fn reading_a_corrupted_file_terminates(
        spots in prop::collection::vec((0_usize..4_096, any::<u64>()), 1..20),
        cut in 0_usize..70_000,
    ) {
        let memory = Memory::new(false);
        (0..900).for_each(|value| {
            memory.pass(value, 4);
        });
        for (spot, number) in spots {
            // The fields of the control page and of the ring, and slots.
            let at = match spot % 3 {
                0 => spot % 130,
                1 => RINGS_AT as usize + spot % 190,
                _ => RINGS_AT as usize + spot,
            };
            memory.set(at as u64, number);
        }
        let length = memory.0.borrow().len();
        memory.0.borrow_mut().truncate(length.saturating_sub(cut));
        let clock = ClockPairs::from_pair(Pair { ticks: 0, monotonic: 10, error: 0 });
        let mut events = 0;
        if let Ok(whole) = super::read_whole(&&memory.0.borrow()[..], &clock, &mut |_, more| {
            events += more.len() as u64
        }) {
            prop_assert_eq!(
                whole.sources.iter().map(|source| source.recorded).sum::<u64>(),
                events
            );
        }
    }
}

/// The findings of a collector on a file in another user's directory, and the number of threads
/// read.
fn read_of_a_stranger(pid: u32, tid: u32) -> (String, usize) {
    use std::os::unix::fs::{PermissionsExt, chown};
    let place = tempfile::tempdir().unwrap();
    let memory = Memory::new(true);
    memory.pass(7, 4);
    memory.set(offset_of!(Control, namespace) as u64, crate::alive::pid_namespace());
    for (at, number) in [
        (offset_of!(Control, pid), pid),
        (offset_of!(Control, recording), 1),
        (RINGS_AT as usize + offset_of!(Ring, tid), tid),
    ] {
        memory.0.borrow_mut()[at..at + 4].copy_from_slice(&number.to_ne_bytes());
    }
    let file = place.path().join(format!("{pid}.1.0{SUFFIX}"));
    std::fs::write(&file, &memory.0.borrow()[..]).unwrap();
    std::fs::set_permissions(place.path(), PermissionsExt::from_mode(0o700)).unwrap();
    for path in [&file, place.path()] {
        chown(path, Some(65_534), Some(65_534)).unwrap();
    }
    let options = crate::Options::for_harvest().in_directory(place.path());
    let collected = crate::Collector::start(options).unwrap().finish(&mut |_, _| {});
    (format!("{:?}", collected.findings), collected.sources.len())
}

#[test]
fn another_users_file_does_not_speak_for_our_processes() {
    if !rustix::process::geteuid().is_root() {
        return println!("SKIPPED: lacks root: no file of another user is read");
    }
    // No process has such a number (PID_MAX_LIMIT).
    let (own, nobody) = (std::process::id(), 1 << 30);
    for (pid, tid) in [(own, nobody), (nobody, own)] {
        let (findings, threads) = read_of_a_stranger(pid, tid);
        let claim = format!("user 65534 claims process or thread {own}, which is of user 0");
        assert!(findings.contains(&claim) && threads == 0, "{findings} {threads}");
    }
    assert_eq!(read_of_a_stranger(nobody, nobody), ("[]".to_owned(), 1));
}
