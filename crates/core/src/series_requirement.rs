//! Requirements on the series of a program's threads: `response p99.9 < 800us`, of every thread or
//! of one: `servo/response p99.9 < 800us`.

use crate::Requirement;
use crate::cycle::SeriesKind;
use crate::requirement::RequirementError;
use std::fmt;
use std::str::FromStr;

/// A requirement, and the series that it is about.
#[derive(Clone, PartialEq, Debug)]
pub struct SeriesRequirement {
    /// The thread, by the name that its series have; `None`: every one.
    pub thread: Option<String>,
    /// Which, of the series of a program; `None`: the response times. Measures that are no programs
    /// have no such series.
    pub kind: Option<SeriesKind>,
    pub requirement: Requirement,
}

impl SeriesRequirement {
    /// Whether it is about this series of the thread with this name.
    pub fn is_about(&self, thread: &str, kind: SeriesKind) -> bool {
        self.kind.unwrap_or(SeriesKind::Response) == kind
            && self.thread.as_ref().is_none_or(|name| name == thread)
    }
}

/// As it is written; [`FromStr`] reads it back.
impl fmt::Display for SeriesRequirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(thread) = &self.thread {
            write!(f, "{thread}/")?;
        }
        if let Some(kind) = self.kind {
            write!(f, "{} ", kind.word())?;
        }
        self.requirement.fmt(f)
    }
}

impl FromStr for SeriesRequirement {
    type Err = RequirementError;

    fn from_str(text: &str) -> Result<SeriesRequirement, RequirementError> {
        let (thread, text) = match thread_of(text.trim()) {
            Some((thread, rest)) => (Some(thread.to_owned()), rest),
            None => (None, text.trim()),
        };
        let (first, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let kind = SeriesKind::from_word(first);
        let requirement = if kind.is_some() { rest } else { text }.parse()?;
        Ok(SeriesRequirement { thread, kind, requirement })
    }
}

/// The thread before `/SERIES`, and the rest from the series on. Names of threads may hold spaces.
fn thread_of(text: &str) -> Option<(&str, &str)> {
    text.match_indices('/').map(|(at, _)| (&text[..at], &text[at + 1..])).find(|(_, rest)| {
        SeriesKind::from_word(rest.split(char::is_whitespace).next().unwrap_or_default()).is_some()
    })
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
        let (response, wakeup) = (Some(SeriesKind::Response), Some(SeriesKind::Wakeup));
        assert_eq!(read("response p99.9 < 800us"), is(response, "p99.9 < 800us"));
        assert_eq!(read("wakeup max<1ms"), is(wakeup, "max < 1ms"));
        assert_eq!(read("overruns == 0"), is(None, "overruns == 0"));
        assert_eq!(read("opt cgu.0/wakeup p99 < 1ms"), is(wakeup, "p99 < 1ms"));
        assert_eq!(thread("opt cgu.0/wakeup p99 < 1ms").as_deref(), Some("opt cgu.0"));
        assert_eq!(thread("response p99 < 1ms"), None);
        assert!(read("servo/respnse max < 1us").is_err());
        assert!(read("response").is_err() && read("respnse max < 1us").is_err());
    }

    #[test]
    fn without_a_series_it_is_about_response_times() {
        let of: SeriesRequirement = "max < 1ms".parse().unwrap();
        assert!(of.is_about("servo", SeriesKind::Response));
        assert!(!of.is_about("servo", SeriesKind::Wakeup));
        let of: SeriesRequirement = "servo/period max < 1ms".parse().unwrap();
        assert!(of.is_about("servo", SeriesKind::Period));
        assert!(!of.is_about("other", SeriesKind::Period));
    }
}
