//! What was injected when, from one process to another: a line for each delay.

use super::names::DEVICE;
use punctual_analyze::truth::Injected;
use std::fs::File;
use std::io::{self, Read, Write};

/// Writes a record.
pub fn write(record: &[Injected], out: &mut dyn Write) -> io::Result<()> {
    record.iter().try_for_each(|one| writeln!(out, "{} {}", one.begin, one.end))
}

/// Reads it.
pub fn read(text: &str) -> Result<Vec<Injected>, String> {
    let record: Option<_> = text.lines().map(parse).collect();
    record.ok_or_else(|| "its record cannot be read".to_owned())
}

/// When the module's last delay was.
pub fn read_device(device: &mut File) -> io::Result<Injected> {
    let mut line = [0; 64];
    let read = device.read(&mut line)?;
    let line = std::str::from_utf8(&line[..read]).unwrap_or_default();
    parse(line).ok_or_else(|| io::Error::other(format!("{DEVICE} gave `{line}`")))
}

fn parse(line: &str) -> Option<Injected> {
    let (begin, end) = line.trim_end().split_once(' ')?;
    Some(Injected { begin: begin.parse().ok()?, end: end.parse().ok()? })
}
