//! Calculates with sets of CPUs: lists and masks with operators between them.

use super::request::parse_cpus_on;
use crate::files::Files;
use punctual_core::CpuSet;
use punctual_core::cpuset::CpuSetError;
use punctual_core::words::{format_suggestion, nearest_word};

/// An operator between two sets.
type Operator = fn(&CpuSet, &CpuSet) -> CpuSet;

const OPERATORS: [(&str, Operator); 4] = [
    ("and", CpuSet::intersection),
    ("or", CpuSet::union),
    ("xor", |a, b| a.union(b).difference(&a.intersection(b))),
    ("minus", CpuSet::difference),
];

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
pub enum CalculationError {
    #[error("`{}` is no set of CPUs: {why}", word.escape_default())]
    NoSet { word: String, why: CpuSetError },
    #[error(
        "`{}` is no operator (and, or, xor, minus){}",
        word.escape_default(),
        format_suggestion(*near)
    )]
    NoOperator { word: String, near: Option<&'static str> },
    #[error("behind `{0}` a set of CPUs is missing")]
    Unfinished(&'static str),
    #[error("which CPUs?")]
    Nothing,
}

/// The result of sets with operators between them, from left to right. A set is a list, a mask, or
/// `all` for the online CPUs.
pub fn calculate_set(files: &dyn Files, words: &[String]) -> Result<CpuSet, CalculationError> {
    let set = |word: &String| {
        let text = match word.as_str() {
            "all" => files.read_trimmed("/sys/devices/system/cpu/online").unwrap_or_default(),
            list => list.to_owned(),
        };
        parse_cpus_on(files, &text)
            .map_err(|why| CalculationError::NoSet { word: word.clone(), why })
    };
    let mut words = words.iter();
    let mut result = set(words.next().ok_or(CalculationError::Nothing)?)?;
    while let Some(word) = words.next() {
        let found = OPERATORS.iter().find(|(name, _)| name == word);
        let (name, operator) = found.ok_or_else(|| CalculationError::NoOperator {
            word: word.clone(),
            near: nearest_word(word, OPERATORS.iter().map(|(name, _)| *name)),
        })?;
        result = operator(&result, &set(words.next().ok_or(CalculationError::Unfinished(name))?)?);
    }
    Ok(result)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::testing::FakeFiles;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn result(line: &str) -> Result<String, String> {
        let files = FakeFiles::new()
            .with_file("/sys/devices/system/cpu/present", "0-7\n")
            .with_file("/sys/devices/system/cpu/online", "0-6\n");
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let set = calculate_set(&files, &words).map_err(|why| why.to_string())?;
        Ok(format!("{set} = {}", set.to_mask()))
    }

    #[test]
    fn lists_and_masks_are_combined_from_left_to_right() {
        let of = |line| result(line).expect("a result");
        assert_eq!(of("4-7"), "4-7 = f0");
        assert_eq!(of("0xff305050,10404020 and 32-40"), "36,38 = 50,00000000");
        assert_eq!(of("0-7 and 0x33"), "0-1,4-5 = 33");
        assert_eq!(of("0-3 or 0x30 minus 1"), "0,2-5 = 3d");
        assert_eq!(of("0-3 xor 2-5"), "0-1,4-5 = 33");
        assert_eq!(of("all minus 2-3"), "0-1,4-6 = 73");
        assert_eq!(of("1,00000000 or N"), "7,32 = 1,00000080");
    }

    #[test]
    fn wrong_words_are_named() {
        let why = |line| result(line).expect_err("no result");
        assert_eq!(why(""), "which CPUs?");
        assert_eq!(why("0-3 and"), "behind `and` a set of CPUs is missing");
        assert!(why("0-3 minos 1").contains("did you mean `minus`"), "{}", why("0-3 minos 1"));
        assert!(why("c").starts_with("`c` is no set of CPUs"), "{}", why("c"));
    }

    proptest! {
        #[test]
        fn operators_are_those_of_sets(
            a in proptest::collection::btree_set(0usize..200, 0..20),
            b in proptest::collection::btree_set(0usize..200, 0..20),
        ) {
            let set = |of: &BTreeSet<usize>| of.iter().copied().collect::<CpuSet>();
            let [and, or, xor, minus] =
                OPERATORS.map(|(_, operator)| operator(&set(&a), &set(&b)));
            prop_assert_eq!(and, set(&(&a & &b)));
            prop_assert_eq!(or, set(&(&a | &b)));
            prop_assert_eq!(xor, set(&(&a ^ &b)));
            prop_assert_eq!(minus, set(&(&a - &b)));
        }
    }
}
