//! Lists of seeds: `1..100`, `7`, `1..10,42`.

use std::fmt;
use std::str::FromStr;

/// Seeds of a lab.
pub(crate) const MAX_SEEDS: usize = 10_000;

/// Seeds, each once, in the order written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Seeds(Vec<u64>);

impl Seeds {
    /// Each of them.
    pub fn iter(&self) -> impl Iterator<Item = u64> {
        self.0.iter().copied()
    }
    /// The number of seeds; never 0.
    pub fn count(&self) -> usize {
        self.0.len()
    }
    pub(crate) fn from_seed(seed: u64) -> Seeds {
        Seeds(vec![seed])
    }
}

/// Why a text is no list of seeds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SeedsError(String);

impl fmt::Display for SeedsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SeedsError {}

impl FromStr for Seeds {
    type Err = SeedsError;

    /// Ranges are inclusive.
    fn from_str(text: &str) -> Result<Seeds, SeedsError> {
        let mut seeds = Vec::new();
        for part in text.split(',').map(str::trim) {
            let wrong = || {
                SeedsError(format!(
                    "`{}` is not a list of seeds like `1..100` or `1..10,42`",
                    crate::escape::clip_text(part)
                ))
            };
            let seed = |text: &str| {
                let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
                let number =
                    text.parse::<u64>().ok().filter(|seed| digits && i64::try_from(*seed).is_ok());
                number.ok_or_else(wrong)
            };
            let (first, last) = match part.split_once("..") {
                Some((first, last)) => {
                    (seed(first.trim())?, seed(last.trim().trim_start_matches('='))?)
                }
                None => (seed(part)?, seed(part)?),
            };
            if last < first {
                return Err(SeedsError(format!(
                    "the range of seeds `{}` is empty",
                    crate::escape::clip_text(part)
                )));
            }
            if last - first >= (MAX_SEEDS - seeds.len()) as u64 {
                return Err(SeedsError(format!("these are too many seeds: at most {MAX_SEEDS}")));
            }
            seeds.extend(first..=last);
        }
        let seed_total = seeds.len();
        let mut sorted = seeds.clone();
        sorted.sort_unstable();
        sorted.dedup();
        if sorted.len() < seed_total {
            return Err(SeedsError(
                "a seed is twice in this list: to repeat a run, set `repeat`".to_owned(),
            ));
        }
        Ok(Seeds(seeds))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ranges_and_single_seeds_are_parsed() {
        let seeds =
            |text: &str| text.parse::<Seeds>().map(|seeds| seeds.iter().collect::<Vec<_>>());
        assert_eq!(seeds("1..3, 42"), Ok(vec![1, 2, 3, 42]));
        assert_eq!(seeds("7"), Ok(vec![7]));
        for bad in ["", "1..", "3..1", "1..20000", "a", "1,1", "-3", "18446744073709551615"] {
            assert!(seeds(bad).is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "[0-9., =a-]{0,30}") {
            let _ = text.parse::<Seeds>();
        }
    }
}
