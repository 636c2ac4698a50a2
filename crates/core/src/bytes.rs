//! Sizes of memory and files, always whole bytes.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A size in bytes.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Bytes(pub u64);

/// The units that a size may be written in: those of IEC 80000-13, and powers of ten.
pub const UNITS: [(&str, u64); 8] = [
    ("B", 1),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("kB", 1_000),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
];

impl Bytes {
    /// `n` KiB.
    pub const fn kib(n: u64) -> Bytes {
        Bytes(n << 10)
    }
    /// `n` MiB.
    pub const fn mib(n: u64) -> Bytes {
        Bytes(n << 20)
    }
    pub const fn get(self) -> u64 {
        self.0
    }
}

/// The size in the largest binary unit that holds it exactly: `4KiB`, `1000B`. [`FromStr`] parses
/// it.
impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let exact = UNITS[..4]
            .iter()
            .rev()
            .find(|(_, size)| self.0 >= *size && self.0.is_multiple_of(*size));
        let (unit, size) = exact.copied().unwrap_or(("B", 1));
        f.pad(&format!("{}{unit}", self.0 / size))
    }
}

/// Why a text is not a size.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BytesError {
    /// No leading whole number.
    #[error("`{0}` is not a size: write a whole number and a unit, like `4KiB`")]
    NotANumber(String),
    /// An unknown unit after the number.
    #[error("`{0}` is not a unit of size: B, KiB, MiB, GiB, kB, MB or GB")]
    UnknownUnit(String),
    /// Beyond 64 bits.
    #[error("`{0}` is too large a size")]
    TooLarge(String),
}

impl FromStr for Bytes {
    type Err = BytesError;

    /// Parses `4KiB`, `40 B`, `16MiB`, or a bare number of bytes.
    fn from_str(text: &str) -> Result<Bytes, BytesError> {
        let text = text.trim();
        let short = || text.chars().take(40).collect::<String>();
        let split = text.find(|c: char| !(c.is_ascii_digit() || c == '_')).unwrap_or(text.len());
        let (number, unit) = (text[..split].replace('_', ""), text[split..].trim());
        if number.is_empty() {
            return Err(BytesError::NotANumber(short()));
        }
        let unit_size = UNITS.iter().find(|(name, _)| *name == unit).map(|(_, size)| *size);
        let size = if unit.is_empty() { Some(1) } else { unit_size };
        let size = size.ok_or_else(|| BytesError::UnknownUnit(unit.chars().take(40).collect()))?;
        let number: u64 = number.parse().map_err(|_| BytesError::TooLarge(short()))?;
        number.checked_mul(size).map(Bytes).ok_or_else(|| BytesError::TooLarge(short()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sizes_in_bytes_are_parsed_exactly() {
        for (text, size) in
            [("0", 0), ("40 B", 40), ("4KiB", 4_096), ("1_000kB", 1_000_000), ("16MiB", 16 << 20)]
        {
            assert_eq!(text.parse(), Ok(Bytes(size)), "{text}");
        }
        let wrong = |text: &str| text.parse::<Bytes>().unwrap_err();
        assert_eq!(wrong("x"), BytesError::NotANumber("x".into()));
        assert_eq!(wrong("1.5KiB"), BytesError::UnknownUnit(".5KiB".into()));
        assert_eq!(wrong("99999999999GiB"), BytesError::TooLarge("99999999999GiB".into()));
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read_back(n: u64) {
            prop_assert_eq!(Bytes(n).to_string().parse(), Ok(Bytes(n)));
        }
        #[test]
        fn no_text_panics(text in "\\PC{0,40}") {
            let _ = text.parse::<Bytes>();
        }
    }
}
