//! Events as text.
//!
//! An event stands on a line, or between semicolons: time, CPU, task, word, fields. For example,
//! the interrupt of a timer wakes a real-time thread while another task runs:
//!
//! ```
//! let events = punctual_testing::events!("
//!     50 cpu0 loop:7/19 switch S -> hog:5
//!     1us vector_entry 0xec; +5 waking 7/19; +4 wakeup 7/19; +6 vector_exit 0xec
//!     1.5us switch R -> 7/19; 2us sys_exit 230 result=-4
//! ");
//! assert_eq!((events.len(), events[6].tid.0, events[6].at.ns()), (7, 7, 2_000));
//! ```
//!
//! - A time is in ns or has a unit. `+5` is 5 ns after the event before.
//! - `cpu0` stays until another CPU is named; of events on `nocpu` the CPU is not known.
//! - A task is a number, with a name before it for the reader, and its priority after a slash (the
//!   kernel's `prio`; 120 if none was given). It runs on its CPU until another task is named or
//!   switched to; at first the idle task 0.
//! - Words are those of the tracepoints, shortened; their fields follow in the order of
//!   [`EventKind`], or as `name=value`. Fields that are omitted are 0, `None` or false.
//! - `switch` is followed by the state of the leaving task: `R` preempted, `Y` yielded, `Q` out of
//!   quota, `S`, `D`, `L` waits for a lock of PREEMPT_RT, `T` stopped, `X` dead.

use punctual_core::event::{
    FunctionId, Futex, InterfaceName, PointId, PointKind, RecordBytes, StackId, TaskState, Tid,
    TracepointId,
};
use punctual_core::{Event, EventKind, MonotonicNs};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::num::NonZeroU32;

/// [`parse_events`] of a text that is formatted as by `format!`.
#[macro_export]
macro_rules! events {
    ($($text:tt)*) => { $crate::parse_events(&format!($($text)*)) };
}

/// Checks that values are printed as these lines by `{:?}`.
///
/// # Panics
/// They are not.
#[track_caller]
pub fn assert_lines<T: Debug>(values: impl IntoIterator<Item = T>, expected: &str) {
    let printed: Vec<String> = values.into_iter().map(|value| format!("{value:?}")).collect();
    let lines: Vec<&str> =
        expected.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    assert!(printed == lines, "printed:\n{}\nexpected:\n{}", printed.join("\n"), lines.join("\n"));
}

/// The events of a text, see the module.
///
/// # Panics
/// A line is none of an event.
pub fn parse_events(text: &str) -> Vec<Event> {
    let (mut at, mut cpu) = (0, 0);
    let mut running = BTreeMap::<u16, (Tid, i16)>::new();
    let lines = text.split(['\n', ';']).map(|line| line.split('#').next().unwrap_or_default());
    let mut events = Vec::new();
    for line in lines.filter(|line| !line.trim().is_empty()) {
        let mut fields = Fields(line.split_whitespace().filter(|word| *word != "->").collect());
        let time = fields.take_first().expect("a time");
        at = time.strip_prefix('+').map_or(0, |_| at) + parse_time(time);
        if let Some(number) = fields.0[0].strip_prefix("cpu") {
            cpu = number.parse().expect(line);
            fields.0.remove(0);
        } else if fields.0[0] == "nocpu" {
            cpu = Event::NO_CPU;
            fields.0.remove(0);
        }
        let (mut tid, mut prio) = running.get(&cpu).copied().unwrap_or((Tid::IDLE, 120));
        if let Some((named, new_prio)) = parse_task(fields.0[0]) {
            fields.0.remove(0);
            prio = new_prio.unwrap_or(if named == tid { prio } else { 120 });
            tid = named;
        }
        let what = fields.parse_kind(prio).unwrap_or_else(|| panic!("no event: {line}"));
        assert!(fields.0.is_empty(), "more than an event: {line}");
        events.push(Event { at: MonotonicNs(at), cpu, tid, what });
        let next = match what {
            EventKind::Switch { next, next_prio, .. } => (next, next_prio),
            _ => (tid, prio),
        };
        running.insert(cpu, next);
    }
    events
}

/// In ns.
fn parse_time(text: &str) -> i64 {
    let units = [("us", 1_000), ("ms", 1_000_000), ("ns", 1), ("s", 1_000_000_000), ("", 1)];
    let (number, scale) = units
        .iter()
        .find_map(|(unit, scale)| Some((text.strip_suffix(unit)?, *scale)))
        .expect("any text ends with nothing");
    let number = number.trim_start_matches('+').replace('_', "");
    match number.parse::<i64>() {
        Ok(whole) => whole * scale,
        Err(_) => (number.parse::<f64>().expect(text) * scale as f64).round() as i64,
    }
}

fn parse_number<T: TryFrom<i128>>(text: &str) -> T {
    let digits = text.replace('_', "");
    let number = match digits.strip_prefix("0x") {
        Some(digits) => i128::from_str_radix(digits, 16),
        None => digits.parse(),
    };
    let number = number.ok().and_then(|number| T::try_from(number).ok());
    number.unwrap_or_else(|| panic!("{text} is no such number"))
}

fn parse_task(text: &str) -> Option<(Tid, Option<i16>)> {
    let task = text.rsplit(':').next()?;
    let (tid, prio) = task.split_once('/').map_or((task, None), |(tid, prio)| (tid, Some(prio)));
    Some((Tid(tid.parse().ok()?), prio.map(parse_number)))
}

fn parse_state(text: &str) -> TaskState {
    match text {
        "R" => TaskState::Preempted,
        "Y" => TaskState::Yielded,
        "Q" => TaskState::Throttled,
        "S" => TaskState::Sleeping,
        "D" => TaskState::Blocked,
        "L" => TaskState::LockWait,
        "T" => TaskState::Stopped,
        "X" => TaskState::Dead,
        _ => TaskState::Other,
    }
}

/// The words of a line that are not yet parsed.
struct Fields<'t>(Vec<&'t str>);

impl<'t> Fields<'t> {
    fn take_first(&mut self) -> Option<&'t str> {
        let place = self.0.iter().position(|word| !word.contains('='))?;
        Some(self.0.remove(place))
    }
    fn take_named(&mut self, name: &str) -> Option<&'t str> {
        let value = |word: &&'t str| word.strip_prefix(name)?.strip_prefix('=');
        let place = self.0.iter().position(|word| value(word).is_some())?;
        value(&self.0.remove(place))
    }
    fn has(&mut self, flag: &str) -> bool {
        let place = self.0.iter().position(|word| *word == flag);
        place.map(|place| self.0.remove(place)).is_some()
    }
    fn number<T: TryFrom<i128>>(&mut self, name: &str) -> T {
        let text = self.take_named(name).or_else(|| self.take_first());
        parse_number(text.unwrap_or("0"))
    }
    fn optional<T: TryFrom<i128>>(&mut self, name: &str) -> Option<T> {
        self.take_named(name).map(parse_number)
    }
    fn time(&mut self, name: &str) -> Option<MonotonicNs> {
        self.take_named(name).map(|text| MonotonicNs(parse_time(text)))
    }
    fn slack(&mut self) -> Option<NonZeroU32> {
        NonZeroU32::new(self.optional("slack")?)
    }
    fn task(&mut self) -> (Tid, i16) {
        let (task, prio) = self.take_first().and_then(parse_task).expect("a task");
        (task, prio.unwrap_or(120))
    }
    fn target(&mut self) -> u16 {
        let word = self.0.iter().position(|word| word.starts_with("cpu"));
        word.map_or(0, |place| parse_number(&self.0.remove(place)[3..]))
    }

    fn parse_kind(&mut self, prev_prio: i16) -> Option<EventKind> {
        let word = self.take_first()?;
        Some(match word {
            "switch" => {
                let prev_state = parse_state(self.take_first()?);
                let (next, next_prio) = self.task();
                EventKind::Switch { prev_prio, prev_state, next, next_prio }
            }
            "waking" => {
                let (task, prio) = self.task();
                EventKind::Waking { task, prio, target: self.target() }
            }
            "wakeup" | "wakeup_new" => {
                let (task, prio) = self.task();
                let new = word == "wakeup_new";
                EventKind::Wakeup { task, prio, target: self.target(), new }
            }
            "migrate" => {
                EventKind::Migrate { task: self.task().0, from: self.target(), to: self.target() }
            }
            "fork" => EventKind::Fork { child: self.task().0 },
            "exec" => EventKind::Exec,
            "exit" => EventKind::Exit,
            "setprio" => EventKind::PiSetPrio {
                task: self.task().0,
                old: self.number("old"),
                new: self.number("new"),
            },
            "signal" => EventKind::Signal { signal: self.number("signal"), task: self.task().0 },
            "irq_entry" => EventKind::IrqEntry { irq: self.number("irq") },
            "irq_exit" => {
                EventKind::IrqExit { handled: !self.has("unhandled"), irq: self.number("irq") }
            }
            "vector_entry" => EventKind::VectorEntry { vector: self.number("vector") },
            "vector_exit" => EventKind::VectorExit { vector: self.number("vector") },
            "softirq_raise" => EventKind::SoftirqRaise { vector: self.number("vector") },
            "softirq_entry" => EventKind::SoftirqEntry { vector: self.number("vector") },
            "softirq_exit" => EventKind::SoftirqExit { vector: self.number("vector") },
            "ipi_send" => EventKind::IpiSend { target: self.target() },
            "hrtimer_start" => EventKind::HrtimerStart {
                timer: self.number("timer"),
                expires: self.time("expires")?,
                slack: self.slack(),
            },
            "hrtimer_cancel" => EventKind::HrtimerCancel { timer: self.number("timer") },
            "hrtimer_entry" => EventKind::HrtimerExpireEntry {
                timer: self.number("timer"),
                now: self.time("now"),
                expires: self.time("expires"),
                slack: self.slack(),
            },
            "hrtimer_exit" => EventKind::HrtimerExpireExit { timer: self.number("timer") },
            "timer_start" => EventKind::TimerStart {
                timer: self.number("timer"),
                expires: self.number("expires"),
            },
            "sys_enter" => EventKind::SyscallEnter {
                number: self.number("number"),
                args: [self.number("first"), self.number("second")],
            },
            "sys_exit" => EventKind::SyscallExit {
                number: self.number("number"),
                result: self.number("result"),
            },
            "futex_enter" => {
                EventKind::FutexEnter { op: self.futex()?, address: self.number("address") }
            }
            "futex_exit" => {
                EventKind::FutexExit { op: self.futex()?, result: self.number("result") }
            }
            "contention_begin" => EventKind::ContentionBegin {
                lock: self.number("lock"),
                flags: self.number("flags"),
            },
            "contention_end" => EventKind::ContentionEnd {
                lock: self.number("lock"),
                result: self.number("result"),
            },
            "page_fault" => EventKind::PageFault {
                user: !self.has("kernel"),
                address: self.number("address"),
                ip: self.number("ip"),
            },
            "page_alloc" => {
                EventKind::PageAlloc { order: self.number("order"), page: self.number("page") }
            }
            "reclaim_begin" => EventKind::ReclaimBegin { order: self.number("order") },
            "reclaim_end" => EventKind::ReclaimEnd { reclaimed: self.number("reclaimed") },
            "kmalloc" => EventKind::Kmalloc {
                requested: self.number("requested"),
                allocated: self.number("allocated"),
                object: self.number("object"),
            },
            "cache_alloc" => EventKind::CacheAlloc {
                requested: self.number("requested"),
                allocated: self.number("allocated"),
                object: self.number("object"),
            },
            "kfree" => EventKind::Kfree { object: self.number("object") },
            "cache_free" => EventKind::CacheFree { object: self.number("object") },
            "block_issue" => EventKind::BlockIssue {
                write: self.has("write"),
                device: self.number("device"),
                sector: self.number("sector"),
                bytes: self.number("bytes"),
            },
            "block_complete" => EventKind::BlockComplete {
                device: self.number("device"),
                sector: self.number("sector"),
                bytes: self.number("bytes"),
                error: self.number("error"),
            },
            "journal_start" => EventKind::JournalStart {
                device: self.number("device"),
                transaction: self.number("transaction"),
            },
            "work_start" => EventKind::WorkStart { function: self.number("function") },
            "work_end" => EventKind::WorkEnd { function: self.number("function") },
            "napi_poll" => {
                EventKind::NapiPoll { work: self.number("work"), budget: self.number("budget") }
            }
            "packet" => EventKind::PacketReceived {
                device: InterfaceName::from_bytes(self.take_first()?.as_bytes()),
                bytes: self.number("bytes"),
            },
            "socket" => EventKind::SocketReady {
                family: self.number("family"),
                protocol: self.number("protocol"),
            },
            "idle_enter" => EventKind::IdleEnter { state: self.number("state") },
            "idle_exit" => EventKind::IdleExit,
            "frequency" => EventKind::Frequency { khz: self.number("khz") },
            "tracepoint" => {
                let tracepoint = TracepointId(self.number("id"));
                let values =
                    self.0.drain(..).flat_map(|value| parse_number::<u64>(value).to_le_bytes());
                let bytes: Vec<u8> = values.collect();
                EventKind::Tracepoint { tracepoint, record: RecordBytes::new(&bytes) }
            }
            "interrupted" => EventKind::Interrupted { call: self.optional("call") },
            "unthrottled" => EventKind::Unthrottled { task: self.task().0 },
            "stack" => EventKind::Stack { stack: StackId(self.number("stack")) },
            "point" | "begin" | "end" => {
                let point = PointId(self.number("point"));
                let kind = match word {
                    "begin" => PointKind::Begin,
                    "end" => PointKind::End,
                    _ => PointKind::Point,
                };
                let count = self.0.len() as u8;
                EventKind::Point {
                    point,
                    kind,
                    count,
                    values: [self.number("a"), self.number("b")],
                }
            }
            "call" => EventKind::Call {
                left: self.has("left"),
                function: FunctionId(self.number("function")),
                began: self.time("began")?,
                argument: self.optional("argument"),
                depth: self.number("depth"),
            },
            "sample" => EventKind::Sample { series: self.number("series"), due: self.time("due")? },
            "lost" => EventKind::Lost { count: self.number("count"), since: self.time("since")? },
            _ => return None,
        })
    }

    fn futex(&mut self) -> Option<Futex> {
        Some(match self.take_first()? {
            "wait" => Futex::Wait,
            "lock_pi" => Futex::LockPi,
            "wake" => Futex::Wake,
            "unlock_pi" => Futex::UnlockPi,
            "other" => Futex::Other,
            _ => return None,
        })
    }
}
