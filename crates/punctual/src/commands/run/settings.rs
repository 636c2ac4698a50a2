//! Keys of a measure in the notation of a command line.

use punctual_plan::text::quoted;

/// A key and its value, written as KEY=VALUE.
pub fn pair(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("write KEY=VALUE")?;
    match !key.is_empty()
        && key.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
    {
        true => Ok((key.replace('-', "_"), value.to_owned())),
        false => Err("a key consists of letters, digits and `_`".to_owned()),
    }
}

/// A value that is TOML already (a number, a list, `true`), or a text to quote.
pub fn in_toml(value: &str) -> String {
    let bare = value.trim();
    let is_toml = bare.starts_with(['[', '{', '"', '\''])
        || matches!(bare, "true" | "false")
        || (!bare.is_empty()
            && bare
                .strip_prefix('-')
                .unwrap_or(bare)
                .bytes()
                .all(|b| b.is_ascii_digit() || b == b'_'))
        || bare.starts_with("0x");
    // A line break would begin another key.
    if is_toml && !bare.contains(['\n', '\r']) { bare.to_owned() } else { quoted(value) }
}
