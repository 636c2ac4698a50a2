//! The kinds of releases of a thread's cycles.

use crate::words::nearest_word;
use std::str::FromStr;

/// The kind of release of a thread's cycles.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum CycleKind {
    /// It sleeps until a computed instant.
    Absolute,
    /// It sleeps for a time, so every cycle is delayed by the duration of the previous ones.
    Relative,
    /// The expiry of a timer read through timerfd_create(2).
    Timerfd,
    /// A POSIX timer or an interval timer, by a signal.
    PosixTimer,
    Deadline,
    /// Another thread or an interrupt.
    Event,
}

impl CycleKind {
    /// All kinds, in the order of listing.
    pub const ALL: [CycleKind; 6] = [
        CycleKind::Absolute,
        CycleKind::Relative,
        CycleKind::Timerfd,
        CycleKind::PosixTimer,
        CycleKind::Deadline,
        CycleKind::Event,
    ];

    /// Its name on the command line and in files.
    pub fn as_str(self) -> &'static str {
        match self {
            CycleKind::Absolute => "absolute",
            CycleKind::Relative => "relative",
            CycleKind::Timerfd => "timerfd",
            CycleKind::PosixTimer => "posix-timer",
            CycleKind::Deadline => "deadline",
            CycleKind::Event => "event",
        }
    }

    /// The release, in words.
    pub fn release_description(self) -> &'static str {
        match self {
            CycleKind::Absolute => "the time it sleeps until",
            CycleKind::Relative => "call plus duration of its sleep",
            CycleKind::Timerfd => "expiry of its timerfd",
            CycleKind::PosixTimer => "expiry of its timer",
            CycleKind::Deadline => "begin of its SCHED_DEADLINE period",
            CycleKind::Event => "wake-up by another thread or an interrupt",
        }
    }

    /// Whether releases are periodic independently of the thread.
    pub fn is_periodic(self) -> bool {
        !matches!(self, CycleKind::Relative | CycleKind::Event)
    }
}

impl FromStr for CycleKind {
    type Err = String;

    fn from_str(word: &str) -> Result<CycleKind, String> {
        let found = CycleKind::ALL.into_iter().find(|kind| kind.as_str() == word);
        found.ok_or_else(|| match nearest_word(word, CycleKind::ALL.map(CycleKind::as_str)) {
            Some(near) => format!(
                "there is no kind of cycle `{}`; did you mean `{near}`?",
                word.escape_debug()
            ),
            None => {
                format!("a cycle is one of {}", CycleKind::ALL.map(CycleKind::as_str).join(", "))
            }
        })
    }
}
