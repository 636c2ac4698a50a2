//! The names of scheduling: policies, priorities, clocks.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Kernel priorities below this are real-time, lower numbers first; deadline tasks have −1
/// (include/linux/sched/prio.h).
pub const MAX_RT_PRIO: i16 = 100;

/// A scheduling policy (sched(7)).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Policy {
    /// SCHED_FIFO: fixed priority, runs until it blocks.
    Fifo,
    /// SCHED_RR: fixed priority, round robin among equals.
    Rr,
    /// SCHED_OTHER: the default time sharing.
    Other,
    /// SCHED_BATCH: time sharing for work that is not urgent.
    Batch,
    /// SCHED_IDLE: runs only on an otherwise idle CPU.
    Idle,
    /// SCHED_DEADLINE: earliest deadline first, with a budget.
    Deadline,
}

impl Policy {
    /// Every policy with its name in files.
    pub const WORDS: [(&'static str, Policy); 6] = [
        ("fifo", Policy::Fifo),
        ("rr", Policy::Rr),
        ("other", Policy::Other),
        ("batch", Policy::Batch),
        ("idle", Policy::Idle),
        ("deadline", Policy::Deadline),
    ];

    /// The policy with this name, case-insensitive, with or without `SCHED_`.
    pub fn from_word(word: &str) -> Option<Policy> {
        let lower = word.to_ascii_lowercase();
        let bare = lower.strip_prefix("sched_").unwrap_or(&lower);
        let bare = if bare == "normal" { "other" } else { bare };
        Policy::WORDS.iter().find(|(name, _)| *name == bare).map(|(_, policy)| *policy)
    }
    /// Its name in files.
    pub fn as_str(self) -> &'static str {
        Policy::WORDS.iter().find(|(_, policy)| *policy == self).map_or("other", |(name, _)| *name)
    }
    /// Whether it precedes every time-sharing task.
    pub fn is_real_time(self) -> bool {
        matches!(self, Policy::Fifo | Policy::Rr | Policy::Deadline)
    }
    /// Whether it takes a fixed priority of 1 to 99.
    pub fn has_priority(self) -> bool {
        matches!(self, Policy::Fifo | Policy::Rr)
    }
}

/// Its name in the kernel: `SCHED_FIFO`.
impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("SCHED_{}", self.as_str().to_ascii_uppercase()))
    }
}

/// A fixed real-time priority, 1 (low) to 99 (high).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(try_from = "u8", into = "u8")]
pub struct Priority(u8);

impl Priority {
    /// The priority, if it is 1 to 99.
    pub const fn new(value: u8) -> Option<Priority> {
        if value >= 1 && value <= 99 { Some(Priority(value)) } else { None }
    }
    pub const fn get(self) -> u8 {
        self.0
    }
}

impl TryFrom<u8> for Priority {
    type Error = String;
    fn try_from(value: u8) -> Result<Priority, String> {
        Priority::new(value).ok_or_else(|| format!("{value} is not a priority (1 to 99)"))
    }
}

impl From<Priority> for u8 {
    fn from(priority: Priority) -> u8 {
        priority.0
    }
}

impl fmt::Display for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A clock that a timer can be armed on (clock_gettime(2)).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Clock {
    /// CLOCK_MONOTONIC: never stepped.
    #[default]
    Monotonic,
    /// CLOCK_REALTIME: wall-clock time; can be stepped.
    Realtime,
    /// CLOCK_TAI: wall-clock time without leap seconds; can be stepped.
    Tai,
}

impl Clock {
    /// Every clock with its name in files.
    pub const WORDS: [(&'static str, Clock); 3] =
        [("monotonic", Clock::Monotonic), ("realtime", Clock::Realtime), ("tai", Clock::Tai)];

    /// The clock with this name.
    pub fn from_word(word: &str) -> Option<Clock> {
        let lower = word.to_ascii_lowercase();
        let bare = lower.strip_prefix("clock_").unwrap_or(&lower);
        Clock::WORDS.iter().find(|(name, _)| *name == bare).map(|(_, clock)| *clock)
    }
    /// Its name in files.
    pub fn as_str(self) -> &'static str {
        Clock::WORDS.iter().find(|(_, clock)| *clock == self).map_or("monotonic", |(name, _)| *name)
    }
}

/// Its name in the kernel: `CLOCK_MONOTONIC`.
impl fmt::Display for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("CLOCK_{}", self.as_str().to_ascii_uppercase()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_in_every_usual_spelling() {
        assert_eq!(Policy::from_word("SCHED_FIFO"), Some(Policy::Fifo));
        assert_eq!(Policy::from_word("normal"), Some(Policy::Other));
        assert_eq!(Policy::Rr.to_string(), "SCHED_RR");
        assert_eq!(Clock::from_word("CLOCK_TAI"), Some(Clock::Tai));
        assert_eq!(Priority::new(0), None);
        assert_eq!(Priority::new(100), None);
    }
}
