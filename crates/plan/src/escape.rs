//! Makes hostile text safe for a terminal: files, names and arguments can hold anything.

use std::borrow::Cow;

/// Whether a character is invisible, moves the cursor, or reorders others (Unicode TR 36,
/// bidirectional spoofing).
pub(crate) fn is_unprintable(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{feff}' | '\u{200b}'..='\u{200f}')
        || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}')
        || matches!(c, '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// The text with each unprintable character written as an escape like `\n` or `\u{1b}`.
pub(crate) fn escape_unprintable(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_unprintable) {
        return Cow::Borrowed(text);
    }
    let escape = |c: char| match c {
        '\n' | '\r' | '\t' => c.escape_default().to_string(),
        c if is_unprintable(c) => c.escape_unicode().to_string(),
        c => c.to_string(),
    };
    Cow::Owned(text.chars().map(escape).collect())
}

/// The text with each unprintable character except the tab replaced by one printable character, so
/// that columns are unchanged.
pub(crate) fn replace_unprintable(text: &str) -> String {
    let picture = |c: char| match c {
        '\t' => '\t',
        // Control Pictures, from U+2400 on, are in ASCII order.
        c if c < ' ' => char::from_u32(0x2400 + u32::from(c)).unwrap_or('\u{fffd}'),
        '\u{7f}' => '\u{2421}',
        c if is_unprintable(c) => '\u{fffd}',
        c => c,
    };
    text.chars().map(picture).collect()
}

/// A value short enough to be quoted in a message.
pub(crate) fn clip_text(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(60) {
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
        None => Cow::Borrowed(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn control_and_bidi_characters_are_escaped() {
        assert_eq!(escape_unprintable("a\u{1b}[31m\n\u{202e}é"), "a\\u{1b}[31m\\n\\u{202e}é");
        assert_eq!(replace_unprintable("a\u{1b}\t\u{7f}\u{202e}"), "a␛\t␡\u{fffd}");
        assert_eq!(clip_text(&"é".repeat(61)).chars().count(), 61);
    }

    proptest! {
        #[test]
        fn escaped_text_has_no_unprintable_character(text in "\\PC*|(?s).{0,40}") {
            prop_assert!(!escape_unprintable(&text).chars().any(is_unprintable));
            prop_assert!(!replace_unprintable(&text).chars().any(|c| c != '\t'
                && is_unprintable(c)));
            prop_assert_eq!(replace_unprintable(&text).chars().count(), text.chars().count());
        }
    }
}
