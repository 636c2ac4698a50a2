//! Values of the kernel's files: whether two texts are equivalent, one formatted by the kernel and
//! one by us.

use punctual_core::CpuSet;

/// The meaning of a file's text: without surrounding white space, and of a choice (`always
/// [madvise] never`) the word in brackets, which selects it again when written.
pub fn normalize_value(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let chosen = |word: &&&str| word.len() > 2 && word.starts_with('[') && word.ends_with(']');
    let mut choices = words.iter().filter(chosen);
    match (choices.next(), choices.next()) {
        (Some(word), None) if words.len() > 1 => word[1..word.len() - 1].to_owned(),
        _ => words.join(" "),
    }
}

/// Whether two texts of one file are equivalent: equal words, or equal masks (`7` and
/// `00000000,00000007`).
pub fn is_same_value(one: &str, other: &str) -> bool {
    let (one, other) = (normalize_value(one), normalize_value(other));
    one == other || parse_mask(&one).is_some_and(|set| parse_mask(&other) == Some(set))
}

/// A text as a CPU mask, if it has only hexadecimal words (a list such as `0-3` is none).
fn parse_mask(text: &str) -> Option<CpuSet> {
    CpuSet::from_mask(text).ok().filter(|_| text.starts_with(|c: char| c.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_choice_means_its_chosen_word() {
        assert_eq!(normalize_value("always [madvise] never\n"), "madvise");
        assert_eq!(normalize_value("[one] [two]"), "[one] [two]");
        assert_eq!(normalize_value("[x]"), "[x]");
        assert_eq!(normalize_value("4096\t131072\t6291456\n"), "4096 131072 6291456");
    }

    #[test]
    fn masks_are_the_same_however_many_words_they_are_written_in() {
        assert!(is_same_value("7", "00000000,00000007\n"));
        assert!(is_same_value("", "\n"));
        assert!(!is_same_value("7", "f"));
        assert!(!is_same_value("0-3", "0-2"));
        assert!(!is_same_value("1", "-1"));
    }

    proptest! {
        #[test]
        fn equality_of_values_is_reflexive_and_symmetric(
            text in "\\PC{0,40}",
            other in "\\PC{0,40}",
        ) {
            prop_assert!(is_same_value(&text, &text));
            prop_assert_eq!(is_same_value(&text, &other), is_same_value(&other, &text));
        }
    }
}
