//! `--require 'response p99.9 < 800us'`: a requirement with the series that it is about, of every
//! thread or of one: `servo/response p99.9 < 800us`.

use super::series::Kind;
use punctual_core::Requirement;
use std::str::FromStr;

/// A requirement on one series of every thread, or of the one with a name.
#[derive(Clone, Debug)]
pub struct SeriesRequirement {
    /// The thread, by the name that its series have; `None`: every one.
    pub thread: Option<String>,
    /// Which.
    pub kind: Kind,
    /// What must hold.
    pub requirement: Requirement,
}

impl SeriesRequirement {
    /// Whether it is about this series of the thread with this name.
    pub fn is_about(&self, thread: &str, kind: Kind) -> bool {
        self.kind == kind && self.thread.as_ref().is_none_or(|name| name == thread)
    }
}

impl FromStr for SeriesRequirement {
    type Err = String;

    fn from_str(text: &str) -> Result<SeriesRequirement, String> {
        let (thread, text) = match thread_of(text.trim()) {
            Some((thread, rest)) => (Some(thread.to_owned()), rest),
            None => (None, text.trim()),
        };
        let (first, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let (kind, requirement) = match Kind::from_word(first) {
            Some(kind) => (kind, rest),
            None => (Kind::Response, text),
        };
        let requirement = requirement.parse::<Requirement>().map_err(|why| why.to_string())?;
        Ok(SeriesRequirement { thread, kind, requirement })
    }
}

/// The thread before `/SERIES`, and the rest from the series on. Names of threads may hold spaces.
fn thread_of(text: &str) -> Option<(&str, &str)> {
    text.match_indices('/').map(|(at, _)| (&text[..at], &text[at + 1..])).find(|(_, rest)| {
        Kind::from_word(rest.split(char::is_whitespace).next().unwrap_or_default()).is_some()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_may_be_named() {
        let read = |text: &str| {
            text.parse::<SeriesRequirement>().map(|of| (of.kind, of.requirement.to_string()))
        };
        let thread = |text: &str| text.parse::<SeriesRequirement>().unwrap().thread;
        assert_eq!(
            read("response p99.9 < 800us"),
            Ok((Kind::Response, "p99.9 < 800us".to_owned()))
        );
        assert_eq!(read("wakeup max<1ms"), Ok((Kind::Wakeup, "max < 1ms".to_owned())));
        assert_eq!(read("overruns == 0"), Ok((Kind::Response, "overruns == 0".to_owned())));
        assert_eq!(read("opt cgu.0/wakeup p99 < 1ms"), Ok((Kind::Wakeup, "p99 < 1ms".to_owned())));
        assert_eq!(thread("opt cgu.0/wakeup p99 < 1ms").as_deref(), Some("opt cgu.0"));
        assert_eq!(thread("response p99 < 1ms"), None);
        assert!(read("servo/respnse max < 1us").is_err());
        assert!(read("response").is_err() && read("respnse max < 1us").is_err());
    }
}
