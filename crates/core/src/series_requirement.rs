//! Requirements on the series of a program's threads: `response p99.9 < 800us`, for every thread or
//! for one: `servo/response p99.9 < 800us`; and on those of CPUs: `interruption max < 50us`,
//! `entries < 10`, `cpu3/entry p99 < 20us`.

use crate::cycle::SeriesKind;
use crate::entry::EntrySeries;
use crate::requirement::RequirementError;
use crate::{Metric, Requirement};
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

/// The number of entries as a figure: `entries < 10`.
const ENTRIES: &str = "entries";

/// A series that only some measures have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NamedSeries {
    /// A series of a program's thread.
    Cycle(SeriesKind),
    /// A series of a CPU whose entries into the kernel are measured.
    Entry(EntrySeries),
}

impl NamedSeries {
    pub fn as_str(self) -> &'static str {
        match self {
            NamedSeries::Cycle(kind) => kind.as_str(),
            NamedSeries::Entry(series) => series.as_str(),
        }
    }

    /// The series of a program's thread or of a CPU with this name.
    pub fn from_word(word: &str) -> Option<NamedSeries> {
        let entry = || EntrySeries::from_word(word).map(NamedSeries::Entry);
        SeriesKind::from_word(word).map(NamedSeries::Cycle).or_else(entry)
    }

    /// The series at the start of a requirement, and the requirement on it.
    fn parse_prefix(text: &str) -> Option<(NamedSeries, Cow<'_, str>)> {
        let is_end = |rest: &&str| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '-');
        if let Some(rest) = text.strip_prefix(ENTRIES).filter(is_end) {
            let number = format!("{}{rest}", Metric::Count);
            return Some((NamedSeries::Entry(EntrySeries::Entry), Cow::Owned(number)));
        }
        let (first, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        Some((NamedSeries::from_word(first)?, Cow::Borrowed(rest)))
    }
}

/// A requirement with the series concerned.
#[derive(Clone, PartialEq, Debug)]
pub struct SeriesRequirement {
    /// The thread, by the name of its series, or the CPU, as `cpu3`; `None`: all.
    pub thread: Option<String>,
    /// The series of a program or of a CPU; `None`: the response times or the interruptions. Other
    /// measures have no such series.
    pub kind: Option<NamedSeries>,
    pub requirement: Requirement,
}

impl SeriesRequirement {
    /// Whether it concerns this series of the thread with this name.
    pub fn is_about(&self, thread: &str, kind: SeriesKind) -> bool {
        self.is_for_series(
            thread,
            NamedSeries::Cycle(kind),
            NamedSeries::Cycle(SeriesKind::Response),
        )
    }

    /// Whether it concerns this series of this CPU.
    pub fn is_about_cpu(&self, cpu: usize, series: EntrySeries) -> bool {
        let usual = NamedSeries::Entry(EntrySeries::Interruption);
        self.is_for_series(&cpu_label(cpu), NamedSeries::Entry(series), usual)
    }

    fn is_for_series(&self, owner: &str, series: NamedSeries, usual: NamedSeries) -> bool {
        self.kind.unwrap_or(usual) == series
            && self.thread.as_ref().is_none_or(|name| name == owner)
    }
}

/// The name of a measured CPU.
pub fn cpu_label(cpu: usize) -> String {
    format!("cpu{cpu}")
}

/// As written; [`FromStr`] parses it.
impl fmt::Display for SeriesRequirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(thread) = &self.thread {
            write!(f, "{thread}/")?;
        }
        let requirement = self.requirement.to_string();
        let number = requirement.strip_prefix(&Metric::Count.to_string());
        match (self.kind, number) {
            (Some(NamedSeries::Entry(EntrySeries::Entry)), Some(rest)) => {
                write!(f, "{ENTRIES}{rest}")
            }
            (Some(kind), _) => write!(f, "{} {requirement}", kind.as_str()),
            (None, _) => f.write_str(&requirement),
        }
    }
}

impl FromStr for SeriesRequirement {
    type Err = RequirementError;

    fn from_str(text: &str) -> Result<SeriesRequirement, RequirementError> {
        let (thread, text) = match thread_of(text.trim()) {
            Some((thread, rest)) => (Some(thread.to_owned()), rest),
            None => (None, text.trim()),
        };
        let (kind, requirement) = match NamedSeries::parse_prefix(text) {
            Some((kind, requirement)) => (Some(kind), requirement.parse()?),
            None => (None, text.parse()?),
        };
        Ok(SeriesRequirement { thread, kind, requirement })
    }
}

/// The thread before `/SERIES`, and the rest from the series on. Names of threads may contain
/// spaces.
fn thread_of(text: &str) -> Option<(&str, &str)> {
    text.match_indices('/')
        .map(|(at, _)| (&text[..at], &text[at + 1..]))
        .find(|(_, rest)| NamedSeries::parse_prefix(rest).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_may_be_named() {
        let read = |text: &str| {
            let read = text.parse::<SeriesRequirement>();
            read.map(|of| {
                assert_eq!(of.to_string().parse(), Ok(of.clone()), "{of}");
                (of.kind, of.requirement.to_string())
            })
        };
        let thread = |text: &str| text.parse::<SeriesRequirement>().unwrap().thread;
        let is = |kind, text: &str| Ok((kind, text.to_owned()));
        let cycle = |kind| Some(NamedSeries::Cycle(kind));
        let (response, wakeup) = (cycle(SeriesKind::Response), cycle(SeriesKind::Wakeup));
        assert_eq!(read("response p99.9 < 800us"), is(response, "p99.9 < 800us"));
        assert_eq!(read("wakeup max<1ms"), is(wakeup, "max < 1ms"));
        assert_eq!(read("overruns == 0"), is(None, "overruns == 0"));
        assert_eq!(read("opt cgu.0/wakeup p99 < 1ms"), is(wakeup, "p99 < 1ms"));
        assert_eq!(thread("opt cgu.0/wakeup p99 < 1ms").as_deref(), Some("opt cgu.0"));
        assert_eq!(thread("response p99 < 1ms"), None);
        assert!(read("servo/respnse max < 1us").is_err());
        assert!(read("response").is_err() && read("respnse max < 1us").is_err());
        let entry = |series| Some(NamedSeries::Entry(series));
        let (interruption, entry) = (entry(EntrySeries::Interruption), entry(EntrySeries::Entry));
        assert_eq!(read("interruption max < 50us"), is(interruption, "max < 50us"));
        assert_eq!(read("entries < 10"), is(entry, "count < 10"));
        assert_eq!(read("cpu1/entries==0"), is(entry, "count == 0"));
        assert_eq!(thread("cpu1/entries==0").as_deref(), Some("cpu1"));
        for wrong in ["interruptions max < 1us", "entry", "entries-idle < 3", "entries"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_requirement_without_series_applies_to_responses_or_interruptions() {
        let of: SeriesRequirement = "max < 1ms".parse().unwrap();
        assert!(of.is_about("servo", SeriesKind::Response));
        assert!(!of.is_about("servo", SeriesKind::Wakeup));
        assert!(of.is_about_cpu(3, EntrySeries::Interruption));
        assert!(!of.is_about_cpu(3, EntrySeries::Entry));
        let of: SeriesRequirement = "servo/period max < 1ms".parse().unwrap();
        assert!(of.is_about("servo", SeriesKind::Period));
        assert!(!of.is_about("other", SeriesKind::Period));
        let of: SeriesRequirement = "cpu3/entry max < 1ms".parse().unwrap();
        assert!(of.is_about_cpu(3, EntrySeries::Entry) && !of.is_about_cpu(1, EntrySeries::Entry));
        assert!(!of.is_about_cpu(3, EntrySeries::Interruption));
        assert!(!of.is_about("cpu3", SeriesKind::Response));
    }
}
