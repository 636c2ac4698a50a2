//! `--require 'response p99.9 < 800us'`: a requirement with the series that it is about.

use super::series::Kind;
use punctual_core::Requirement;
use std::str::FromStr;

/// A requirement on one series of every thread.
#[derive(Clone, Debug)]
pub struct SeriesRequirement {
    /// Which.
    pub kind: Kind,
    /// What must hold.
    pub requirement: Requirement,
}

impl FromStr for SeriesRequirement {
    type Err = String;

    fn from_str(text: &str) -> Result<SeriesRequirement, String> {
        let text = text.trim();
        let (first, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let (kind, requirement) = match Kind::from_word(first) {
            Some(kind) => (kind, rest),
            None => (Kind::Response, text),
        };
        let requirement = requirement.parse::<Requirement>().map_err(|why| why.to_string())?;
        Ok(SeriesRequirement { kind, requirement })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_may_be_named() {
        let read = |text: &str| {
            text.parse::<SeriesRequirement>().map(|of| (of.kind, of.requirement.to_string()))
        };
        assert_eq!(
            read("response p99.9 < 800us"),
            Ok((Kind::Response, "p99.9 < 800us".to_owned()))
        );
        assert_eq!(read("wakeup max<1ms"), Ok((Kind::Wakeup, "max < 1ms".to_owned())));
        assert_eq!(read("overruns == 0"), Ok((Kind::Response, "overruns == 0".to_owned())));
        assert!(read("response").is_err() && read("respnse max < 1us").is_err());
    }
}
