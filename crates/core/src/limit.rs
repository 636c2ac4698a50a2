//! Design limits on intervals: `A->B < 100us`.

use crate::Nanos;
use crate::units::DurationError;
use std::fmt;

/// The limit of an interval: `< 100us` or `<= 100us`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limit {
    /// The bound of an interval.
    pub bound: Nanos,
    /// Whether the bound itself is allowed.
    pub inclusive: bool,
}

/// Why a text is not a limit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LimitError {
    /// No comparison with a duration.
    #[error("`{0}` has no limit: write one like `{0} < 100us`")]
    NoBound(String),
    /// No limited interval.
    #[error("`{0}` is a limit without an interval: write `A->B{0}`")]
    NoSubject(String),
    /// The bound is not a duration.
    #[error("the limit in `{text}`: {why}")]
    BadBound { text: String, why: DurationError },
}

impl Limit {
    /// Whether an interval of this length is within the limit.
    pub fn is_met_by(self, span: Nanos) -> bool {
        span < self.bound || self.inclusive && span == self.bound
    }

    /// Splits `A->B < 100us` into `A->B` and the limit.
    pub fn parse_with_subject(text: &str) -> Result<(&str, Limit), LimitError> {
        let text = text.trim();
        // Names contain `<` (C++ and Rust generics): the last one begins the limit.
        let (subject, bound) =
            text.rsplit_once('<').ok_or_else(|| LimitError::NoBound(clip_input(text)))?;
        if subject.trim().is_empty() {
            return Err(LimitError::NoSubject(clip_input(text)));
        }
        let (bound, inclusive) =
            bound.strip_prefix('=').map_or((bound, false), |bound| (bound, true));
        let bound = bound
            .trim()
            .parse()
            .map_err(|why| LimitError::BadBound { text: clip_input(text), why })?;
        Ok((subject.trim(), Limit { bound, inclusive }))
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", if self.inclusive { "<=" } else { "<" }, self.bound)
    }
}

/// Shortens hostile input before it is quoted in an error.
fn clip_input(text: &str) -> String {
    let mut short: String = text.chars().take(60).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_last_comparison_is_the_limit() {
        let limit = |bound, inclusive| Limit { bound: Nanos(bound), inclusive };
        assert_eq!(Limit::parse_with_subject("a->b<100us"), Ok(("a->b", limit(100_000, false))));
        assert_eq!(
            Limit::parse_with_subject(" Vec<u8>::push <= 1 ms"),
            Ok(("Vec<u8>::push", limit(1_000_000, true)))
        );
        let wrong = |text: &str| Limit::parse_with_subject(text).unwrap_err().to_string();
        assert!(wrong("a->b").contains("a->b < 100us"));
        assert!(wrong("< 5us").contains("a limit without an interval"));
        assert!(wrong("a < 5").contains("no unit"));
    }

    #[test]
    fn the_bound_itself_is_allowed_or_not() {
        let (_, less) = Limit::parse_with_subject("a<10ns").unwrap();
        let (_, equal) = Limit::parse_with_subject("a<=10ns").unwrap();
        assert_eq!([9, 10, 11].map(|ns| less.is_met_by(Nanos(ns))), [true, false, false]);
        assert_eq!([9, 10, 11].map(|ns| equal.is_met_by(Nanos(ns))), [true, true, false]);
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "\\PC{0,40}") {
            let _ = Limit::parse_with_subject(&text);
        }
    }
}
