//! Numbers in text.

use super::Malformed;

/// Numbers separated by white space.
pub fn numbers(text: &str, line: usize) -> Result<Vec<u64>, Malformed> {
    text.split_ascii_whitespace().map(|word| number(word, line)).collect()
}

/// One number with white space around it.
pub fn number_of(text: &str, line: usize) -> Result<u64, Malformed> {
    number(text.trim(), line)
}

/// A word that is a number.
pub fn number(word: &str, line: usize) -> Result<u64, Malformed> {
    let shown = || word.chars().take(40).collect::<String>();
    let digits = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    if !digits {
        return Err(Malformed::at(line, format!("{:?} is not a number", shown())));
    }
    word.parse().map_err(|_| Malformed::at(line, format!("{} is too large a number", shown())))
}

/// A number with up to three decimals, in thousandths.
pub fn thousandths(word: &str) -> Option<u64> {
    let (whole, decimals) = word.split_once('.').unwrap_or((word, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty()
        || whole.len() > 15
        || decimals.len() > 3
        || !digits(whole)
        || !digits(decimals)
    {
        return None;
    }
    let parts = (whole.parse::<u64>().ok()?, format!("{decimals:0<3}").parse::<u64>().ok()?);
    Some(parts.0 * 1_000 + parts.1)
}

/// The greatest common divisor; of 0 and `b` it is `b`.
pub fn common_divisor(a: u64, b: u64) -> u64 {
    let (mut a, mut b) = (a, b);
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// The text of a line of a live display: what follows the last escape sequence (`ESC [ 2 A`), with
/// which it goes back to its first line.
pub fn without_cursor_moves(line: &str) -> &str {
    let Some(at) = line.rfind('\u{1b}') else { return line };
    let rest =
        line[at + 1..].trim_start_matches(|c: char| c == '[' || c == ';' || c.is_ascii_digit());
    rest.strip_prefix(|c: char| c.is_ascii_alphabetic()).unwrap_or(rest)
}
