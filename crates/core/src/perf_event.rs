//! The events of perf_event_open(2), by the names that perf uses (perf-list(1)).

use crate::words::nearest_word;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The counter of an event.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CountedEvent {
    /// The CPU, in a performance monitoring unit (PERF_TYPE_HARDWARE).
    Hardware,
    /// The CPU, an event of its caches (PERF_TYPE_HW_CACHE).
    Cache,
    Software,
}

/// An event with a name of its own.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct NamedEvent {
    /// The name, as perf prints it.
    pub name: &'static str,
    /// Another name accepted by perf; empty without one.
    pub alias: &'static str,
    pub counted: CountedEvent,
    /// `perf_event_attr::config` (include/uapi/linux/perf_event.h).
    pub config: u64,
}

/// An event that can be counted.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum PerfEvent {
    /// One with a name of its own.
    Named(NamedEvent),
    /// A tracepoint, as under `events/` of tracefs.
    Tracepoint {
        /// `sched`.
        group: String,
        /// `sched_switch`.
        name: String,
    },
    /// An event of a performance monitoring unit, which only its machine knows: `r1a8` (the number
    /// of a raw event in hexadecimal), `cpu/event=0x3c,umask=1/`, `msr/tsc/`.
    OfPmu(String),
}

const fn software_event(name: &'static str, alias: &'static str, config: u64) -> NamedEvent {
    NamedEvent { name, alias, counted: CountedEvent::Software, config }
}

const fn hardware_event(name: &'static str, alias: &'static str, config: u64) -> NamedEvent {
    NamedEvent { name, alias, counted: CountedEvent::Hardware, config }
}

/// Loads of a cache (PERF_COUNT_HW_CACHE_OP_READ), all of them or only misses.
const fn cache_event(name: &'static str, cache: u64, missed: bool) -> NamedEvent {
    NamedEvent {
        name,
        alias: "",
        counted: CountedEvent::Cache,
        config: cache | (missed as u64) << 16,
    }
}

/// All events with a name of their own.
pub const NAMED: &[NamedEvent] = &[
    software_event("cpu-clock", "", 0),
    software_event("task-clock", "", 1),
    software_event("page-faults", "faults", 2),
    software_event("context-switches", "cs", 3),
    software_event("cpu-migrations", "migrations", 4),
    software_event("minor-faults", "", 5),
    software_event("major-faults", "", 6),
    software_event("alignment-faults", "", 7),
    software_event("emulation-faults", "", 8),
    hardware_event("cycles", "cpu-cycles", 0),
    hardware_event("instructions", "", 1),
    hardware_event("cache-references", "", 2),
    hardware_event("cache-misses", "", 3),
    hardware_event("branches", "branch-instructions", 4),
    hardware_event("branch-misses", "", 5),
    hardware_event("bus-cycles", "", 6),
    hardware_event("stalled-cycles-frontend", "idle-cycles-frontend", 7),
    hardware_event("stalled-cycles-backend", "idle-cycles-backend", 8),
    hardware_event("ref-cycles", "", 9),
    cache_event("L1-dcache-loads", 0, false),
    cache_event("L1-dcache-load-misses", 0, true),
    cache_event("L1-icache-load-misses", 1, true),
    cache_event("LLC-loads", 2, false),
    cache_event("LLC-load-misses", 2, true),
    cache_event("dTLB-loads", 3, false),
    cache_event("dTLB-load-misses", 3, true),
    cache_event("iTLB-load-misses", 4, true),
];

impl PerfEvent {
    /// Minor and major page faults of the thread.
    pub const PAGE_FAULTS: PerfEvent = PerfEvent::Named(NAMED[2]);
    /// Voluntary and involuntary context switches of the thread.
    pub const CONTEXT_SWITCHES: PerfEvent = PerfEvent::Named(NAMED[3]);
    pub const CPU_MIGRATIONS: PerfEvent = PerfEvent::Named(NAMED[4]);
    /// Page faults without I/O.
    pub const MINOR_FAULTS: PerfEvent = PerfEvent::Named(NAMED[5]);
    /// Page faults with I/O.
    pub const MAJOR_FAULTS: PerfEvent = PerfEvent::Named(NAMED[6]);
    pub const CYCLES: PerfEvent = PerfEvent::Named(NAMED[9]);

    /// The event that counts the hits of a tracepoint.
    pub fn from_tracepoint(group: &str, name: &str) -> PerfEvent {
        PerfEvent::Tracepoint { group: group.to_owned(), name: name.to_owned() }
    }
    /// Whether the CPU counts it.
    pub fn is_hardware(&self) -> bool {
        matches!(
            self,
            PerfEvent::OfPmu(_)
                | PerfEvent::Named(NamedEvent {
                    counted: CountedEvent::Hardware | CountedEvent::Cache,
                    ..
                })
        )
    }
    /// Whether its count is a time in ns.
    pub fn is_time(&self) -> bool {
        matches!(self, PerfEvent::Named(NamedEvent { name: "cpu-clock" | "task-clock", .. }))
    }
}

/// A text that is not the name of an event.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{0}` is not an event{1}", text.escape_debug(), format_hint(near))]
pub struct UnknownEvent {
    pub text: String,
    /// A similar event.
    pub near: Option<&'static str>,
}

fn format_hint(near: &Option<&'static str>) -> String {
    match near {
        Some(near) => format!("; did you mean `{near}`?"),
        None => "; a tracepoint is GROUP:NAME, an event of a PMU r1a8 or PMU/TERMS/, other \
                 events have the names of perf-list(1), such as context-switches or cycles"
            .to_owned(),
    }
}

impl FromStr for PerfEvent {
    type Err = UnknownEvent;
    fn from_str(text: &str) -> Result<PerfEvent, UnknownEvent> {
        let named = NAMED
            .iter()
            .find(|event| text == event.name || (!text.is_empty() && text == event.alias));
        if let Some(event) = named {
            return Ok(PerfEvent::Named(*event));
        }
        if is_of_pmu(text) {
            return Ok(PerfEvent::OfPmu(text.to_owned()));
        }
        match text.split_once(':') {
            Some((group, name)) if is_word(group) && is_word(name) => {
                Ok(PerfEvent::from_tracepoint(group, name))
            }
            _ => Err(UnknownEvent {
                text: text.to_owned(),
                near: nearest_word(text, NAMED.iter().map(|event| event.name)),
            }),
        }
    }
}

/// Restricted to the kernel's names of groups and tracepoints, as they become parts of a path.
fn is_word(word: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    (1..=128).contains(&word.len()) && word.bytes().all(plain)
}

/// `rNNN` or `PMU/TERMS/`, as perf takes them. Its parts become those of a path.
fn is_of_pmu(text: &str) -> bool {
    let raw = text.strip_prefix('r').is_some_and(|digits| {
        (1..=16).contains(&digits.len()) && digits.bytes().all(|digit| digit.is_ascii_hexdigit())
    });
    let term = |term: &str| {
        let (name, value) = term.split_once('=').unwrap_or((term, "1"));
        let digits = value.strip_prefix("0x").unwrap_or(value);
        is_word(name) && is_word(digits)
    };
    let parts = text.strip_suffix('/').and_then(|text| text.split_once('/'));
    raw || parts.is_some_and(|(pmu, terms)| is_word(pmu) && terms.split(',').all(term))
}

impl TryFrom<String> for PerfEvent {
    type Error = UnknownEvent;
    fn try_from(text: String) -> Result<PerfEvent, UnknownEvent> {
        text.parse()
    }
}

impl From<PerfEvent> for String {
    fn from(event: PerfEvent) -> String {
        event.to_string()
    }
}

impl fmt::Display for PerfEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PerfEvent::Named(event) => f.write_str(event.name),
            PerfEvent::Tracepoint { group, name } => write!(f, "{group}:{name}"),
            PerfEvent::OfPmu(text) => f.write_str(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn events_have_the_names_of_perf() {
        for event in NAMED {
            assert_eq!(event.name.parse(), Ok(PerfEvent::Named(*event)));
            assert!(event.alias.is_empty() || event.alias.parse() == Ok(PerfEvent::Named(*event)));
        }
        assert_eq!("cs".parse(), Ok(PerfEvent::CONTEXT_SWITCHES));
        assert_eq!("migrations".parse(), Ok(PerfEvent::CPU_MIGRATIONS));
        assert_eq!(
            "sched:sched_switch".parse(),
            Ok(PerfEvent::from_tracepoint("sched", "sched_switch"))
        );
        for text in ["r1a8", "cpu/event=0x3c,umask=1/", "msr/tsc/"] {
            assert_eq!(text.parse(), Ok(PerfEvent::OfPmu(text.to_owned())));
        }
        for wrong in ["r", "rxyz", "../x/y/", "cpu//", "cpu/a=/", "cpu/a"] {
            assert!(wrong.parse::<PerfEvent>().is_err(), "{wrong}");
        }
        let names = [
            (PerfEvent::PAGE_FAULTS, "page-faults"),
            (PerfEvent::MINOR_FAULTS, "minor-faults"),
            (PerfEvent::MAJOR_FAULTS, "major-faults"),
            (PerfEvent::CYCLES, "cycles"),
        ];
        names.iter().for_each(|(event, name)| assert_eq!(event.to_string(), *name));
    }

    #[test]
    fn a_misspelled_event_is_refused_with_a_suggestion() {
        let near = |text: &str| text.parse::<PerfEvent>().unwrap_err().near;
        assert_eq!(near("cylces"), Some("cycles"));
        assert_eq!(near("page-fault"), Some("page-faults"));
        assert_eq!(near(""), None);
        assert_eq!(near("../x:y"), None);
    }

    proptest! {
        #[test]
        fn parsed_perf_events_are_printed_so_that_they_parse_again(text in "[a-z0-9:_/,=-]{0,20}") {
            if let Ok(event) = text.parse::<PerfEvent>() {
                prop_assert_eq!(event.to_string().parse::<PerfEvent>(), Ok(event));
            }
        }
    }
}
