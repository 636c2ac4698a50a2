//! Time: spans and instants, always integer nanoseconds.

use crate::words::{format_suggestion, nearest_word};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::{Add, AddAssign, Mul, Neg, Sub};
use std::str::FromStr;

/// A span of time in integer nanoseconds. Signed, because a stepped clock can make a latency
/// negative.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Nanos(pub i64);

/// An instant on CLOCK_MONOTONIC, in nanoseconds since that clock's origin.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct MonotonicNs(pub i64);

/// An instant on the clock that its series names (see [`crate::Clock`]), in nanoseconds since that
/// clock's origin.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct ClockNs(pub i64);

/// The units that a duration may be written in, with their size in nanoseconds.
pub const UNITS: [(&str, i64); 14] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("sec", 1_000_000_000),
    ("m", 60_000_000_000),
    ("min", 60_000_000_000),
    ("h", 3_600_000_000_000),
    ("hour", 3_600_000_000_000),
    ("hours", 3_600_000_000_000),
    ("d", 86_400_000_000_000),
    ("days", 86_400_000_000_000),
];

impl Nanos {
    /// No time at all.
    pub const ZERO: Nanos = Nanos(0);
    /// One microsecond.
    pub const MICRO: Nanos = Nanos(1_000);
    /// One millisecond.
    pub const MILLI: Nanos = Nanos(1_000_000);
    /// One second.
    pub const SECOND: Nanos = Nanos(1_000_000_000);

    /// `n` microseconds.
    pub const fn from_micros(n: i64) -> Nanos {
        Nanos(n * 1_000)
    }
    /// `n` milliseconds.
    pub const fn from_millis(n: i64) -> Nanos {
        Nanos(n * 1_000_000)
    }
    /// `n` seconds.
    pub const fn from_secs(n: i64) -> Nanos {
        Nanos(n * 1_000_000_000)
    }
    /// The span in nanoseconds.
    pub const fn ns(self) -> i64 {
        self.0
    }
    /// The span in microseconds as a float: for presentation only.
    pub fn as_micros_f64(self) -> f64 {
        self.0 as f64 / 1_000.0
    }
    /// The span in seconds as a float: for presentation only.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }
    /// The span for display, in the unit in which it is from 1 to 999, with four digits: `10.87
    /// ms`, `992 ns`, `-1.5 us`. [`Display`](fmt::Display) is exact.
    pub fn to_readable(self) -> String {
        const UNITS: [(&str, f64); 3] = [("ms", 1e6), ("us", 1e3), ("ns", 1.0)];
        let ns = self.0 as f64;
        // A value that rounds up to 1000 belongs to the next unit.
        let fits = |(_, size): &(&str, f64)| ns.abs() >= size * 0.99995;
        let (unit, size) = match ns.abs() >= 1e9 * 0.99995 {
            true => ("s", 1e9),
            false => UNITS.into_iter().find(fits).unwrap_or(("ns", 1.0)),
        };
        let number = ns / size;
        let decimals =
            if size == 1.0 { 0 } else { 3 - (number.abs().log10().floor() as i32).clamp(0, 3) };
        let text = format!("{number:.*}", decimals as usize);
        let text = if text.contains('.') {
            text.trim_end_matches('0').trim_end_matches('.')
        } else {
            &text
        };
        format!("{text} {unit}")
    }
    /// The same span in the standard library's type; a negative span becomes zero.
    pub fn to_std(self) -> std::time::Duration {
        std::time::Duration::from_nanos(self.0.max(0) as u64)
    }
}

/// The span in the largest unit that holds it exactly: `1ms`, `1500us`, `90s`. [`FromStr`] parses
/// it.
impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const EXACT: [(&str, i64); 4] =
            [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000), ("ns", 1)];
        let (unit, size) =
            EXACT.into_iter().find(|(_, size)| self.0 % size == 0).unwrap_or(("ns", 1));
        f.pad(&format!("{}{unit}", self.0 / size))
    }
}

impl fmt::Debug for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}ns", self.0)
    }
}

impl Add for Nanos {
    type Output = Nanos;
    fn add(self, other: Nanos) -> Nanos {
        Nanos(self.0.saturating_add(other.0))
    }
}
impl AddAssign for Nanos {
    fn add_assign(&mut self, other: Nanos) {
        *self = *self + other;
    }
}
impl Sub for Nanos {
    type Output = Nanos;
    fn sub(self, other: Nanos) -> Nanos {
        Nanos(self.0.saturating_sub(other.0))
    }
}
impl Neg for Nanos {
    type Output = Nanos;
    fn neg(self) -> Nanos {
        Nanos(self.0.saturating_neg())
    }
}
impl Mul<i64> for Nanos {
    type Output = Nanos;
    fn mul(self, n: i64) -> Nanos {
        Nanos(self.0.saturating_mul(n))
    }
}

macro_rules! instant {
    ($name:ident) => {
        impl $name {
            /// Nanoseconds since the clock's origin.
            pub const fn ns(self) -> i64 {
                self.0
            }
        }
        impl Add<Nanos> for $name {
            type Output = $name;
            fn add(self, span: Nanos) -> $name {
                $name(self.0.saturating_add(span.0))
            }
        }
        impl Sub for $name {
            type Output = Nanos;
            fn sub(self, earlier: $name) -> Nanos {
                Nanos(self.0.saturating_sub(earlier.0))
            }
        }
    };
}
instant!(MonotonicNs);
instant!(ClockNs);

/// Why a text is not a duration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    /// Empty.
    #[error("a duration is missing: write a number and a unit, like `10ms`")]
    Empty,
    /// A number without a unit.
    #[error(
        "`{0}` has no unit: write `{0}ns`, `{0}us`, `{0}ms`, `{0}s`, `{0}min`, `{0}h` or `{0}d`"
    )]
    NoUnit(String),
    /// An unknown unit after the number.
    #[error("`{unit}` is not a unit of time (ns, us, ms, s, min, h, d){}",
        format_suggestion(*near))]
    UnknownUnit {
        /// As written.
        unit: String,
        /// The most similar known unit.
        near: Option<&'static str>,
    },
    /// Below zero.
    #[error("a duration cannot be negative")]
    Negative,
    /// Not a decimal number.
    #[error("`{0}` is not a number")]
    NotANumber(String),
    /// Finer than a nanosecond.
    #[error("`{0}` is finer than one nanosecond")]
    TooFine(String),
    /// Beyond 292 years.
    #[error("`{0}` is longer than 292 years")]
    TooLong(String),
}

/// Shortens hostile input before it is quoted in an error.
fn clip_input(text: &str) -> String {
    let mut short: String = text.chars().take(40).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

impl FromStr for Nanos {
    type Err = DurationError;

    /// Parses `20us`, `1500 ms`, `0.5s`, `10 min`: a decimal number and one of [`UNITS`]. A bare
    /// `0` needs no unit.
    fn from_str(text: &str) -> Result<Nanos, DurationError> {
        let text = text.trim();
        if text.is_empty() {
            return Err(DurationError::Empty);
        }
        if text == "0" {
            return Ok(Nanos::ZERO);
        }
        if text.starts_with('-') {
            return Err(DurationError::Negative);
        }
        let split = text
            .find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_'))
            .unwrap_or(text.len());
        let (number, unit) = (text[..split].replace('_', ""), text[split..].trim());
        if number.is_empty() {
            return Err(DurationError::NotANumber(clip_input(text)));
        }
        if unit.is_empty() {
            return Err(DurationError::NoUnit(clip_input(&number)));
        }
        let size = UNITS.iter().find(|(name, _)| *name == unit).map(|(_, size)| *size).ok_or_else(
            || DurationError::UnknownUnit {
                unit: clip_input(unit),
                near: nearest_word(unit, UNITS.iter().map(|(name, _)| *name)),
            },
        )?;
        exact_product(&number, size, text)
    }
}

/// `number × size` without floating point, so that `0.1s` is exactly 100 ms.
fn exact_product(number: &str, size: i64, text: &str) -> Result<Nanos, DurationError> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole) || (number.contains('.') && !digits(fraction)) {
        return Err(DurationError::NotANumber(clip_input(number)));
    }
    let too_long = || DurationError::TooLong(clip_input(text));
    let whole: i64 = whole.parse().map_err(|_| too_long())?;
    let mut total = whole.checked_mul(size).ok_or_else(too_long)?;
    let mut place = size;
    for digit in fraction.trim_end_matches('0').bytes() {
        if place % 10 != 0 {
            return Err(DurationError::TooFine(clip_input(text)));
        }
        place /= 10;
        total = total.checked_add(place * i64::from(digit - b'0')).ok_or_else(too_long)?;
    }
    Ok(Nanos(total))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn durations_are_parsed_exactly() {
        for (text, ns) in [
            ("0", 0),
            ("20us", 20_000),
            ("1500 ms", 1_500_000_000),
            ("0.1s", 100_000_000),
            ("1.5 µs", 1_500),
            ("10 min", 600_000_000_000),
            ("2h", 7_200_000_000_000),
            ("1d", 86_400_000_000_000),
            ("1_000us", 1_000_000),
        ] {
            assert_eq!(text.parse(), Ok(Nanos(ns)), "{text}");
        }
    }

    #[test]
    fn readable_durations_have_four_digits() {
        for (ns, text) in [
            (0, "0 ns"),
            (992, "992 ns"),
            (-1_500, "-1.5 us"),
            (999_999, "1 ms"),
            (10_873_000, "10.87 ms"),
            (123_456_789, "123.5 ms"),
            (90_000_000_000, "90 s"),
            (i64::MIN, "-9223372037 s"),
        ] {
            assert_eq!(Nanos(ns).to_readable(), text);
        }
    }

    #[test]
    fn an_invalid_duration_is_refused_with_the_reason() {
        let wrong = |text: &str| text.parse::<Nanos>().unwrap_err();
        assert_eq!(wrong(""), DurationError::Empty);
        assert_eq!(wrong("5"), DurationError::NoUnit("5".into()));
        assert_eq!(wrong("-5ms"), DurationError::Negative);
        assert_eq!(
            wrong("5 msec"),
            DurationError::UnknownUnit { unit: "msec".into(), near: Some("sec") }
        );
        assert_eq!(wrong("1.2.3s"), DurationError::NotANumber("1.2.3".into()));
        assert_eq!(wrong("0.5ns"), DurationError::TooFine("0.5ns".into()));
        assert_eq!(wrong("99999999999d"), DurationError::TooLong("99999999999d".into()));
        assert_eq!(
            wrong("99999999999999999999s"),
            DurationError::TooLong("99999999999999999999s".into())
        );
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read_back(ns in 0..i64::MAX) {
            prop_assert_eq!(Nanos(ns).to_string().parse(), Ok(Nanos(ns)));
        }
        #[test]
        fn no_text_panics(text in "\\PC{0,40}") {
            let _ = text.parse::<Nanos>();
        }
    }
}
