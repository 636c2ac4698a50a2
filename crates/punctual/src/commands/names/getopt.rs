//! Options of another tool, read as getopt_long(3) does: the tool has a table of them.

use punctual_core::{CpuSet, Nanos};

/// How an option takes its value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Takes {
    Nothing,
    Value,
    /// Only one that is attached, or a number that follows.
    Perhaps,
}

/// An option: a letter, or a space, the long name, and what it sets.
pub struct Known<O>(pub char, pub &'static str, pub Takes, pub fn(&mut O, &str));

/// The options of a tool, and the names of those that are refused as if they did not exist.
pub struct Options<O: 'static>(pub &'static [Known<O>], pub &'static [&'static str]);

/// getopt's message about an option that does not exist, or lacks its value.
#[derive(PartialEq, Eq, Debug)]
pub struct Unknown(pub String);

fn unknown_option<T>(why: String) -> Result<T, Unknown> {
    Err(Unknown(why))
}

/// Reads the words after the name of the program.
pub fn read<O: Default>(table: &Options<O>, words: &[String]) -> Result<O, Unknown> {
    let mut options = O::default();
    let mut words = words.iter().peekable();
    while let Some(word) = words.next() {
        if word == "--" {
            break;
        }
        // The value that is attached, or else the next word; `None`: it is missing.
        let mut value = |takes: Takes, attached: Option<&str>| match (takes, attached) {
            (Takes::Nothing, _) => Some(String::new()),
            (_, Some(attached)) => Some(attached.trim().to_owned()),
            (Takes::Value, None) => words.next().map(|word| word.trim().to_owned()),
            (Takes::Perhaps, None) => {
                let place = |word: &&String| word.starts_with(|c: char| c.is_ascii_digit());
                Some(words.next_if(place).cloned().unwrap_or_default())
            }
        };
        if let Some(long) = word.strip_prefix("--") {
            let (name, attached) = match long.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (long, None),
            };
            let Known(_, name, takes, set) = find_long_option(table, name, word)?;
            if *takes == Takes::Nothing && attached.is_some() {
                return unknown_option(format!("option '--{name}' doesn't allow an argument"));
            }
            match value(*takes, attached) {
                Some(value) => set(&mut options, &value),
                None => return unknown_option(format!("option '--{name}' requires an argument")),
            }
            continue;
        }
        // Arguments that are no options have no meaning, as there.
        let mut rest = word.strip_prefix('-').unwrap_or_default().chars();
        while let Some(letter) = rest.next() {
            let is_it = |Known(known, ..): &&Known<O>| *known == letter && letter != ' ';
            let Some(Known(_, _, takes, set)) = table.0.iter().find(is_it) else {
                return unknown_option(format!("invalid option -- '{letter}'"));
            };
            match value(*takes, Some(rest.as_str()).filter(|text| !text.is_empty())) {
                Some(value) => set(&mut options, &value),
                None => {
                    return unknown_option(format!("option requires an argument -- '{letter}'"));
                }
            }
            if *takes != Takes::Nothing {
                break;
            }
        }
    }
    Ok(options)
}

/// The option with this long name, which may be shortened as far as it is the only one.
fn find_long_option<O>(
    table: &Options<O>,
    name: &str,
    word: &str,
) -> Result<&'static Known<O>, Unknown> {
    let find = |name: &str| table.0.iter().find(|Known(_, known, ..)| *known == name);
    if let Some(found) = find(name) {
        return Ok(found);
    }
    let long_names =
        table.0.iter().map(|Known(_, known, ..)| *known).chain(table.1.iter().copied());
    let fits: Vec<&str> = long_names.filter(|known| known.starts_with(name)).collect();
    match (fits.as_slice(), fits.first().and_then(|only| find(only))) {
        ([_], Some(found)) => Ok(found),
        ([_, _, ..], _) => unknown_option(format!("option '{word}' is ambiguous")),
        _ => unknown_option(format!("unrecognized option '{word}'")),
    }
}

/// The number at the beginning, as atoi(3) reads it; 0 without one.
pub fn leading_number(text: &str) -> u64 {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text[..end].parse().unwrap_or_default()
}

/// A list of CPUs.
pub fn parse_cpus(text: &str) -> Result<CpuSet, String> {
    text.parse().map_err(|_| format!("'{text}' is not a list of CPUs"))
}

/// Seconds, or a number of minutes, hours or days; `None`: no time.
pub fn parse_duration(text: &str) -> Option<Nanos> {
    let unit = match text.chars().last() {
        Some('m' | 'M') => 60,
        Some('h' | 'H') => 3_600,
        Some('d' | 'D') => 86_400,
        _ => 1,
    };
    let seconds = leading_number(text).saturating_mul(unit).min(u64::from(u32::MAX));
    (seconds > 0).then(|| Nanos::from_secs(seconds as i64))
}
