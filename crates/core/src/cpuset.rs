//! Sets of CPUs in the kernel's notations: lists (`0-2,4`) and hexadecimal masks (`0x8`,
//! `ff,ffffffff`).

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The largest CPU number accepted, plus one. The kernel's own limit is CONFIG_NR_CPUS, at most
/// 8192 (arch/x86/Kconfig).
pub const MAX_CPUS: usize = 8192;

/// A set of CPU numbers below [`MAX_CPUS`].
#[derive(Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CpuSet {
    /// One bit per CPU, lowest first, without trailing zero words: equal sets are equal vectors.
    words: Vec<u64>,
}

/// Why a text is not a set of CPUs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CpuSetError {
    /// A part of a list that is not a number or a range.
    #[error("`{0}` is not a CPU number or a range like `0-3`")]
    NotACpu(String),
    /// A descending range.
    #[error("the range `{0}` runs backwards")]
    Backwards(String),
    /// A CPU number beyond that of any kernel.
    #[error("CPU {0} is beyond the largest that Linux can have ({max})", max = MAX_CPUS - 1)]
    TooLarge(String),
    /// A mask that is not hexadecimal.
    #[error("`{0}` is not a hexadecimal CPU mask like `0x8` or `ff,ffffffff`")]
    NotAMask(String),
}

fn clip_input(text: &str) -> String {
    text.chars().take(40).collect()
}

impl CpuSet {
    pub fn new() -> CpuSet {
        CpuSet::default()
    }
    /// The set of one CPU. Numbers from [`MAX_CPUS`] on are ignored, here and in
    /// [`CpuSet::insert`].
    pub fn from_cpu(cpu: usize) -> CpuSet {
        [cpu].into_iter().collect()
    }
    pub fn insert(&mut self, cpu: usize) {
        if cpu >= MAX_CPUS {
            return;
        }
        if self.words.len() <= cpu / 64 {
            self.words.resize(cpu / 64 + 1, 0);
        }
        self.words[cpu / 64] |= 1 << (cpu % 64);
    }
    /// Whether the CPU is in the set.
    pub fn contains(&self, cpu: usize) -> bool {
        self.words.get(cpu / 64).is_some_and(|word| word >> (cpu % 64) & 1 == 1)
    }
    /// The number of CPUs.
    pub fn len(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }
    /// The CPUs in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.words.len() * 64).filter(|cpu| self.contains(*cpu))
    }
    pub fn first_cpu(&self) -> Option<usize> {
        self.iter().next()
    }
    pub fn intersection(&self, other: &CpuSet) -> CpuSet {
        self.iter().filter(|cpu| other.contains(*cpu)).collect()
    }
    /// The CPUs in this set but not in the other.
    pub fn difference(&self, other: &CpuSet) -> CpuSet {
        self.iter().filter(|cpu| !other.contains(*cpu)).collect()
    }
    pub fn union(&self, other: &CpuSet) -> CpuSet {
        self.iter().chain(other.iter()).collect()
    }
    /// Whether every CPU of this set is in the other.
    pub fn is_subset(&self, other: &CpuSet) -> bool {
        self.iter().all(|cpu| other.contains(cpu))
    }

    /// Parses a hexadecimal mask: `8`, `0x8`, or 32-bit words separated by commas, the highest
    /// first (as in /proc/irq).
    pub fn from_mask(text: &str) -> Result<CpuSet, CpuSetError> {
        let bad = || CpuSetError::NotAMask(clip_input(text));
        let body = text.trim();
        let body = body.strip_prefix("0x").or_else(|| body.strip_prefix("0X")).unwrap_or(body);
        let grouped = body.contains(',');
        let mut digits = String::new();
        for (i, word) in body.split(',').enumerate() {
            let sized = if grouped { (1..=8).contains(&word.len()) } else { !word.is_empty() };
            if !sized || !word.bytes().all(|b| b.is_ascii_hexdigit()) {
                return Err(bad());
            }
            digits.push_str(&if i == 0 { word.to_owned() } else { format!("{word:0>8}") });
        }
        let digits = digits.trim_start_matches('0');
        if digits.len() > MAX_CPUS / 4 {
            return Err(CpuSetError::TooLarge(format!("{}", digits.len() * 4 - 1)));
        }
        let mut set = CpuSet::new();
        for (place, digit) in digits.chars().rev().enumerate() {
            let digit = digit.to_digit(16).ok_or_else(bad)?;
            (0..4).filter(|bit| digit >> bit & 1 == 1).for_each(|bit| set.insert(place * 4 + bit));
        }
        Ok(set)
    }

    /// The mask in the kernel's notation: 32-bit words in hexadecimal, the highest first, separated
    /// by commas.
    pub fn to_mask(&self) -> String {
        let halves = self.words.iter().flat_map(|word| [*word as u32, (word >> 32) as u32]);
        let mut halves: Vec<u32> = halves.collect();
        while halves.len() > 1 && halves.last() == Some(&0) {
            halves.pop();
        }
        let mut words = halves.iter().rev();
        let mut mask = format!("{:x}", words.next().copied().unwrap_or(0));
        words.for_each(|word| mask.push_str(&format!(",{word:08x}")));
        mask
    }
}

impl FromIterator<usize> for CpuSet {
    fn from_iter<I: IntoIterator<Item = usize>>(cpus: I) -> CpuSet {
        let mut set = CpuSet::new();
        cpus.into_iter().for_each(|cpu| set.insert(cpu));
        set
    }
}

impl FromStr for CpuSet {
    type Err = CpuSetError;

    /// Parses a list: `3`, `0-2,4`; the empty text is the empty set, as in the kernel's files.
    fn from_str(text: &str) -> Result<CpuSet, CpuSetError> {
        let mut set = CpuSet::new();
        for part in text.trim().split(',').map(str::trim).filter(|_| !text.trim().is_empty()) {
            let cpu = |number: &str| {
                let number = number.trim();
                if number.is_empty() || !number.bytes().all(|b| b.is_ascii_digit()) {
                    return Err(CpuSetError::NotACpu(clip_input(part)));
                }
                number
                    .parse()
                    .ok()
                    .filter(|cpu| *cpu < MAX_CPUS)
                    .ok_or_else(|| CpuSetError::TooLarge(clip_input(number)))
            };
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last): (usize, usize) = (cpu(first)?, cpu(last)?);
            if first > last {
                return Err(CpuSetError::Backwards(clip_input(part)));
            }
            (first..=last).for_each(|cpu| set.insert(cpu));
        }
        Ok(set)
    }
}

/// The list in the kernel's notation: `0-2,4`.
impl fmt::Display for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        let mut cpus = self.iter().peekable();
        while let Some(first) = cpus.next() {
            let mut last = first;
            while cpus.next_if_eq(&(last + 1)).is_some() {
                last += 1;
            }
            let comma = if text.is_empty() { "" } else { "," };
            text += &if first == last {
                format!("{comma}{first}")
            } else {
                format!("{comma}{first}-{last}")
            };
        }
        f.pad(&text)
    }
}

impl fmt::Debug for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CpuSet({self})")
    }
}

impl TryFrom<String> for CpuSet {
    type Error = CpuSetError;
    fn try_from(text: String) -> Result<CpuSet, CpuSetError> {
        text.parse()
    }
}

impl From<CpuSet> for String {
    fn from(set: CpuSet) -> String {
        set.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn cpu_lists_and_masks_match_the_format_of_the_kernel() {
        let set: CpuSet = "0-2,4, 33".parse().unwrap();
        assert_eq!(set.to_string(), "0-2,4,33");
        assert_eq!(set.to_mask(), "2,00000017");
        assert_eq!(CpuSet::from_mask("0x8"), Ok(CpuSet::from_cpu(3)));
        assert_eq!(CpuSet::from_mask("ff,ffffffff").unwrap().to_string(), "0-39");
        assert_eq!("".parse(), Ok(CpuSet::new()));
        assert_eq!(CpuSet::new().to_mask(), "0");
    }

    #[test]
    fn an_invalid_cpu_set_is_refused_with_the_reason() {
        let wrong = |text: &str| text.parse::<CpuSet>().unwrap_err();
        assert_eq!(wrong("3-1"), CpuSetError::Backwards("3-1".into()));
        assert_eq!(wrong("1,,2"), CpuSetError::NotACpu("".into()));
        assert_eq!(wrong("a"), CpuSetError::NotACpu("a".into()));
        assert_eq!(wrong("9000"), CpuSetError::TooLarge("9000".into()));
        assert_eq!(CpuSet::from_mask("0x").unwrap_err(), CpuSetError::NotAMask("0x".into()));
        assert_eq!(
            CpuSet::from_mask("1,123456789").unwrap_err(),
            CpuSetError::NotAMask("1,123456789".into())
        );
    }

    proptest! {
        #[test]
        fn lists_and_masks_parse_as_printed(cpus in proptest::collection::vec(0..MAX_CPUS, 0..50)) {
            let set: CpuSet = cpus.iter().copied().collect();
            prop_assert_eq!(set.to_string().parse::<CpuSet>().unwrap(), set.clone());
            prop_assert_eq!(CpuSet::from_mask(&set.to_mask()).unwrap(), set.clone());
            prop_assert!(cpus.iter().all(|cpu| set.contains(*cpu)));
            prop_assert_eq!(set.len(), set.iter().count());
        }
        #[test]
        fn no_text_panics(text in "\\PC{0,40}") {
            let _ = text.parse::<CpuSet>();
            let _ = CpuSet::from_mask(&text);
        }
    }
}
