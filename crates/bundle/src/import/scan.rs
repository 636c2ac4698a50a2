//! The scanner of all importers: lines, words, numbers with their units and bounds.

use super::Malformed;
use crate::state::MAX_BINS;
use punctual_core::Nanos;
use punctual_core::cpuset::MAX_CPUS;
use std::borrow::Cow;

/// The largest plausible latency, in the tool's unit: 1000 s in µs.
pub(crate) const MAX_LATENCY: u64 = 1_000_000_000;
/// The largest plausible count: 30 years at 1 kHz. The sum over all bins still fits in 64 bits.
pub(crate) const MAX_COUNT: u64 = 1_000_000_000_000;

/// Reads a text line by line, and returns their number. A defect that names no line is of the line
/// being read.
pub(crate) fn scan_lines(
    text: &str,
    mut read: impl FnMut(&str) -> Result<(), Malformed>,
) -> Result<usize, Malformed> {
    let mut lines = 0;
    for line in text.lines() {
        lines += 1;
        read(line).map_err(|defect| defect.or_at(lines))?;
    }
    Ok(lines.max(1))
}

/// A word that is a number.
pub(crate) fn read_number(word: &str) -> Result<u64, Malformed> {
    let digits = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    if !digits {
        return Err(not_a_number(word));
    }
    word.parse().map_err(|_| format!("{} is too large a number", clip_text(word, 40)).into())
}

fn not_a_number(word: &str) -> Malformed {
    format!("{:?} is not a number", clip_text(word, 40)).into()
}

/// Numbers separated by white space.
pub(crate) fn read_numbers(text: &str) -> Result<Vec<u64>, Malformed> {
    text.split_ascii_whitespace().map(read_number).collect()
}

/// A word that is a number up to a bound.
pub(crate) fn read_bounded(word: &str, bound: u64, what: &str) -> Result<u64, Malformed> {
    check_bound(read_number(word)?, bound, what)
}

pub(crate) fn read_count(word: &str) -> Result<u64, Malformed> {
    read_bounded(word, MAX_COUNT, "the count")
}

pub(crate) fn read_latency(word: &str) -> Result<u64, Malformed> {
    read_bounded(word, MAX_LATENCY, "the latency")
}

/// Checks a number of the file against its bound.
pub(crate) fn check_bound(number: u64, bound: u64, what: &str) -> Result<u64, Malformed> {
    match number > bound {
        true => Err(format!("{what} {number} is implausible (more than {bound})").into()),
        false => Ok(number),
    }
}

/// Checks the lower edge of a bin.
pub(crate) fn check_bin(number: u64) -> Result<u64, Malformed> {
    check_bound(number, MAX_BINS as u64 - 1, "the latency")
}

pub(crate) fn read_cpu(word: &str) -> Option<u32> {
    word.parse().ok().filter(|cpu| (*cpu as usize) < MAX_CPUS)
}

pub(crate) fn read_priority(word: &str) -> Option<u8> {
    word.parse().ok().filter(|priority| *priority <= 99)
}

/// A period in µs.
pub(crate) fn read_interval(word: &str) -> Option<u64> {
    word.parse().ok().filter(|us| (1..=MAX_LATENCY).contains(us))
}

/// Adds a bin of a histogram, unless it is empty.
pub(crate) fn add_bin(bins: &mut Vec<(u64, u64)>, lower: u64, count: u64) -> Result<(), Malformed> {
    if check_bound(count, MAX_COUNT, "the count")? > 0 {
        bins.push((lower, count));
    }
    Ok(())
}

/// The beginning of a text, as much as may be kept of it.
pub(crate) fn clip_text(text: &str, length: usize) -> String {
    text.chars().take(length).collect()
}

/// Refuses several runs in one text.
pub(crate) fn refuse_second_run(is_second: bool) -> Result<(), Malformed> {
    match is_second {
        true => Err("a second run begins here: give one run at a time".into()),
        false => Ok(()),
    }
}

/// A number with up to three decimals, in thousandths.
pub(crate) fn read_thousandths(word: &str) -> Option<u64> {
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
pub(crate) struct ThreadProgress {
    pub tid: Option<i32>,
    pub cycles: Option<u64>,
    pub max: Option<i64>,
}

impl ThreadProgress {
    /// Rejects a second run, which would replace the first.
    pub(crate) fn check_same_run(&self, before: &ThreadProgress) -> Result<(), Malformed> {
        let fewer = before.cycles.zip(self.cycles).is_some_and(|(before, now)| now < before);
        // Before the first cycle, the maximum and the id are meaningless.
        let measured = before.cycles.is_none_or(|cycles| cycles > 0);
        let tasks = before.tid.zip(self.tid).filter(|_| measured);
        let other_task = tasks.is_some_and(|(before, now)| before != now);
        let maxima = before.max.zip(self.max).filter(|_| measured);
        let smaller = maxima.is_some_and(|(before, now)| now < before);
        refuse_second_run(other_task || fewer || smaller)
    }
}

/// A number with decimals after a point, or after the comma of other languages.
pub(crate) fn read_decimal(word: &str) -> Result<f64, Malformed> {
    let number = word.replacen(',', ".", 1).parse::<f64>().ok();
    let number = number.filter(|number| number.is_finite() && *number >= 0.0);
    number.ok_or_else(|| not_a_number(word))
}

/// A time in µs with decimals; `None` if it is not a time or implausible.
pub(crate) fn read_microseconds(word: &str) -> Option<Nanos> {
    let us = read_decimal(word).ok().filter(|us| *us <= MAX_LATENCY as f64)?;
    Some(Nanos((us * 1_000.0).round() as i64))
}

/// The same, which may be negative.
pub(crate) fn read_signed_microseconds(word: &str) -> Option<Nanos> {
    match word.strip_prefix('-') {
        Some(rest) => read_microseconds(rest).map(|time| Nanos(-time.ns())),
        None => read_microseconds(word),
    }
}
