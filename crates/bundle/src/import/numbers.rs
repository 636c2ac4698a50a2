//! Numbers in text.

use super::Malformed;
use super::recorded::MAX_LATENCY;
use punctual_core::Nanos;
use std::borrow::Cow;

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
pub(crate) fn thousandths(word: &str) -> Option<u64> {
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
pub(crate) fn common_divisor(a: u64, b: u64) -> u64 {
    let (mut a, mut b) = (a, b);
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// The text of a line of a live display: after the last cursor movement (`ESC [ 2 A`) to its first
/// line, without sequences that erase or colour.
pub(crate) fn without_cursor_moves(line: &str) -> Cow<'_, str> {
    if !line.contains('\u{1b}') {
        return Cow::Borrowed(line);
    }
    let mut parts = line.split('\u{1b}');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let rest = part.trim_start_matches(|c: char| c == '[' || c == ';' || c.is_ascii_digit());
        let letter = rest.chars().next().filter(char::is_ascii_alphabetic);
        // K erases to the end of the line, m sets a colour (ECMA-48).
        if !matches!(letter, Some('K' | 'm')) {
            text.clear();
        }
        text.push_str(letter.map_or(rest, |letter| &rest[letter.len_utf8()..]));
    }
    Cow::Owned(text)
}

/// The figures of a thread in two lines of one text. They are of the same run only if the cycles
/// and the maximum did not decrease and the kernel's id is the same. The minimum shows nothing, as
/// cyclicdeadline resets it.
#[derive(Clone, Copy, Default)]
pub struct ThreadProgress {
    pub tid: Option<i32>,
    pub cycles: Option<u64>,
    pub max: Option<i64>,
}

impl ThreadProgress {
    /// Rejects a second run, which would replace the first.
    pub fn follows(&self, before: &ThreadProgress, line: usize) -> Result<(), Malformed> {
        let fewer = before.cycles.zip(self.cycles).is_some_and(|(before, now)| now < before);
        // Before the first cycle, the maximum and the id are meaningless.
        let measured = before.cycles.is_none_or(|cycles| cycles > 0);
        let tasks = before.tid.zip(self.tid).filter(|_| measured);
        let other_task = tasks.is_some_and(|(before, now)| before != now);
        let maxima = before.max.zip(self.max).filter(|_| measured);
        let smaller = maxima.is_some_and(|(before, now)| now < before);
        match other_task || fewer || smaller {
            true => Err(second_run(line)),
            false => Ok(()),
        }
    }
}

/// Several runs in one text.
pub(crate) fn second_run(line: usize) -> Malformed {
    Malformed::at(line, "a second run begins here: give one run at a time")
}

/// A number with decimals after a point, or after the comma of other languages.
pub fn decimal(word: &str, line: usize) -> Result<f64, Malformed> {
    let number = word.replacen(',', ".", 1).parse::<f64>().ok();
    number.filter(|number| number.is_finite() && *number >= 0.0).ok_or_else(|| {
        let shown = word.chars().take(40).collect::<String>();
        Malformed::at(line, format!("{shown:?} is not a number"))
    })
}

/// A time in µs with decimals; `None` if it is not a time or implausible.
pub(crate) fn microseconds(word: &str) -> Option<Nanos> {
    let us = decimal(word, 0).ok().filter(|us| *us <= MAX_LATENCY as f64)?;
    Some(Nanos((us * 1_000.0).round() as i64))
}

/// The same, which may be negative.
pub(crate) fn signed_microseconds(word: &str) -> Option<Nanos> {
    match word.strip_prefix('-') {
        Some(rest) => microseconds(rest).map(|time| Nanos(-time.ns())),
        None => microseconds(word),
    }
}
