//! The record of injected delays, from one process to another: a line for each segment of time.

use super::names::DEVICE;
use super::score::{Injected, Role};
use std::fs::File;
use std::io::{self, Read, Write};

/// The role of a segment, by its word.
const ROLES: [(&str, Role); 4] = [
    ("delay", Role::Delay),
    ("goes-on", Role::GoesOn),
    ("perhaps", Role::Perhaps),
    ("around", Role::Around),
];
/// The maximum output of the module.
const LINE: usize = 1024;

pub fn write(record: &[Injected], out: &mut dyn Write) -> io::Result<()> {
    record.iter().try_for_each(|one| {
        let role = ROLES.iter().find(|(_, role)| *role == one.role);
        writeln!(out, "{} {} {}", one.begin, one.end, role.map_or("", |(word, _)| word))
    })
}

pub fn read(text: &str) -> Result<Vec<Injected>, String> {
    let record: Option<_> = text.lines().map(parse).collect();
    record.ok_or_else(|| "its record cannot be read".to_owned())
}

fn parse(line: &str) -> Option<Injected> {
    let mut words = line.split(' ');
    let mut next = || words.next();
    let (begin, end, word) = (next()?.parse().ok()?, next()?.parse().ok()?, next()?);
    let (_, role) = ROLES.iter().find(|(known, _)| *known == word)?;
    Some(Injected { begin, end, role: *role })
}

/// The module's last delay: the first and the last instant of each of its segments.
pub fn read_device(device: &mut File) -> io::Result<Vec<Injected>> {
    let mut line = [0; LINE];
    let read = device.read(&mut line)?;
    let line = std::str::from_utf8(&line[..read]).unwrap_or_default();
    parse_stretches(line).ok_or_else(|| io::Error::other(format!("{DEVICE} gave `{line}`")))
}

fn parse_stretches(line: &str) -> Option<Vec<Injected>> {
    let instants: Option<Vec<i64>> =
        line.split_whitespace().map(|word| word.parse().ok()).collect();
    let (pairs, rest) = instants.as_deref()?.as_chunks::<2>();
    if pairs.is_empty() || !rest.is_empty() {
        return None;
    }
    Some(in_order(pairs.iter().copied()))
}

/// The segments of one delay, each from its first instant to its last.
pub fn in_order(stretches: impl Iterator<Item = [i64; 2]>) -> Vec<Injected> {
    let role = |place| if place == 0 { Role::Delay } else { Role::GoesOn };
    let one = |(place, [begin, end]): (usize, [i64; 2])| Injected { begin, end, role: role(place) };
    stretches.enumerate().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn injection_records_are_read_back_as_written() {
        let delay = parse_stretches("10 20 25 40\n").expect("two stretches");
        assert_eq!(delay[0], Injected::new(10, 20));
        assert_eq!(delay[1], Injected { begin: 25, end: 40, role: Role::GoesOn });
        let mut record = delay.clone();
        record.push(Injected { begin: 5, end: 50, role: Role::Around });
        let mut text = Vec::new();
        write(&record, &mut text).expect("memory");
        assert_eq!(read(&String::from_utf8_lossy(&text)), Ok(record));
        assert!(
            read("1 2\n").is_err()
                && parse_stretches("1 2 3").is_none()
                && parse_stretches("").is_none()
        );
    }
}
