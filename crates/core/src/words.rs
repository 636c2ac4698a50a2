//! Suggestions for misspelled words.

/// The end of a message about an unknown word.
pub fn format_suggestion(near: Option<impl std::fmt::Display>) -> String {
    near.map_or_else(String::new, |near| format!(": did you mean `{near}`?"))
}

/// The candidate nearest to `word`, if it is near enough for a likely typing error.
///
/// By Damerau–Levenshtein distance (Damerau 1964): at most a third of the longer word's length, and
/// at least one edit.
pub fn nearest_word<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    // A hostile key can be megabytes long; no known word is.
    if word.len() > 64 {
        return None;
    }
    let lower = word.to_lowercase();
    candidates
        .into_iter()
        .map(|c| (strsim::damerau_levenshtein(&lower, &c.to_lowercase()), c))
        .filter(|(distance, c)| {
            *distance <= (word.chars().count().max(c.chars().count()) / 3).max(1)
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, c)| c)
}

#[cfg(test)]
mod tests {
    use super::nearest_word;

    #[test]
    fn only_similar_words_are_suggested() {
        assert_eq!(nearest_word("priorty", ["policy", "priority"]), Some("priority"));
        assert_eq!(nearest_word("FIFO", ["fifo", "rr"]), Some("fifo"));
        assert_eq!(nearest_word("banana", ["policy", "priority"]), None);
        assert_eq!(nearest_word(&"x".repeat(1 << 20), ["x"]), None);
    }
}
