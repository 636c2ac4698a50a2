//! The words of experiment files, besides those of [`punctual_core`].

use crate::escape::clip_text;
use punctual_core::cycle::CycleKind;
use punctual_core::event::{Group, NamedTracepoint};
use punctual_core::{CpuSet, Nanos};
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// A closed list of words, each with its meaning. One table serves parsing and writing.
pub trait Word: Copy + PartialEq + 'static {
    /// Every word; the first one with a meaning is written.
    const WORDS: &'static [(&'static str, Self)];

    /// The word for this meaning.
    fn word(self) -> &'static str {
        Self::WORDS.iter().find(|(_, meaning)| *meaning == self).map_or("?", |(word, _)| *word)
    }
}

/// A size in bytes: `4GiB`, `512 MiB`, `1000000`. Units are powers of 1024 (`K`, `KiB`, …), or of
/// 1000 (`KB`, …).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ByteSize(pub u64);

const SIZES: [(&str, u64); 9] = [
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("KB", 1_000),
    ("G", 1 << 30),
    ("M", 1 << 20),
    ("K", 1 << 10),
];

impl FromStr for ByteSize {
    type Err = String;

    fn from_str(text: &str) -> Result<ByteSize, String> {
        let text = text.trim();
        let unit = SIZES.iter().find(|(unit, _)| text.ends_with(unit));
        let (number, unit) = unit
            .map_or((text, 1), |(word, size)| (text[..text.len() - word.len()].trim_end(), *size));
        let digits = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        let bytes = number
            .parse::<u64>()
            .ok()
            .filter(|_| digits)
            .and_then(|number| number.checked_mul(unit));
        bytes
            .map(ByteSize)
            .ok_or_else(|| format!("`{}` is not a size like `512MiB` or `4GiB`", clip_text(text)))
    }
}

/// Formats in the largest unit that is exact; [`FromStr`] parses it.
impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match SIZES[..3].iter().find(|(_, size)| self.0 != 0 && self.0.is_multiple_of(*size)) {
            Some((unit, size)) => write!(f, "{}{unit}", self.0 / size),
            None => write!(f, "{}", self.0),
        }
    }
}

/// A temperature in thousandths of a degree Celsius, as the kernel counts them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Temperature(pub i64);

impl FromStr for Temperature {
    type Err = String;

    fn from_str(text: &str) -> Result<Temperature, String> {
        let number = text.trim().strip_suffix('C').unwrap_or_default().trim_end();
        let number = number.strip_suffix('°').unwrap_or(number).trim_end();
        let (whole, part) = number.split_once('.').unwrap_or((number, "0"));
        let is_number = |text: &str| {
            (1..=3).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
        };
        let value = (is_number(whole) && is_number(part))
            .then(|| format!("{whole}{part:0<3}").parse::<i64>().ok())
            .flatten();
        value
            .map(Temperature)
            .ok_or_else(|| format!("`{}` is not a temperature like `60C`", clip_text(text)))
    }
}

/// Formats as [`FromStr`] parses it.
impl fmt::Display for Temperature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        let (whole, part) = (self.0.unsigned_abs() / 1_000, self.0.unsigned_abs() % 1_000);
        let part = format!("{part:03}");
        match part.trim_end_matches('0') {
            "" => f.pad(&format!("{sign}{whole}C")),
            part => f.pad(&format!("{sign}{whole}.{part}C")),
        }
    }
}

/// A frequency of a CPU in kHz, as the kernel counts it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Frequency(pub u64);

/// The units of frequencies in kHz, the smallest last.
const FREQUENCIES: [(&str, u64); 3] = [("GHz", 1_000_000), ("MHz", 1_000), ("kHz", 1)];

impl FromStr for Frequency {
    type Err = String;

    fn from_str(text: &str) -> Result<Frequency, String> {
        let wrong =
            || format!("`{}` is not a frequency like `1.5GHz` or `600MHz`", clip_text(text));
        let split = |(unit, khz): &(&str, u64)| Some((text.trim().strip_suffix(unit)?, *khz));
        let (number, unit) = FREQUENCIES.iter().find_map(split).ok_or_else(wrong)?;
        let (whole, part) = number.trim_end().split_once('.').unwrap_or((number.trim_end(), "0"));
        let is_number = |text: &str| {
            (1..=7).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
        };
        let value = |text: &str| text.parse::<u64>().ok().filter(|_| is_number(text));
        let (whole, digits) = (value(whole).ok_or_else(wrong)?, part.len() as u32);
        let part = value(part).ok_or_else(wrong)? * unit;
        match part % 10u64.pow(digits) {
            0 => Ok(Frequency(whole * unit + part / 10u64.pow(digits))),
            _ => Err(wrong()),
        }
    }
}

/// Formats as [`FromStr`] parses it.
impl fmt::Display for Frequency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fits =
            |(_, khz): &&(&str, u64)| self.0 >= *khz && (self.0 * 1_000).is_multiple_of(*khz);
        let (unit, khz) = FREQUENCIES.iter().find(fits).copied().unwrap_or(("kHz", 1));
        match (self.0 % khz) * 1_000 / khz {
            0 => f.pad(&format!("{}{unit}", self.0 / khz)),
            part => {
                let part = format!("{part:03}");
                f.pad(&format!("{}.{}{unit}", self.0 / khz, part.trim_end_matches('0')))
            }
        }
    }
}

/// The CPUs that a file requests.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CpuChoice {
    /// `all`: every online CPU.
    All,
    /// Only these: `0-2,4`.
    Listed(CpuSet),
}

/// An element of `events` in `[record]`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RecordedEvents {
    /// A group of kernel events.
    Group(Group),
    /// `GROUP:NAME`.
    Tracepoint(NamedTracepoint),
}

/// The value held in /dev/cpu_dma_latency; `None`: it is not touched (`leave`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DmaLatency(pub Option<Nanos>);

/// The placement of a measure's threads on its CPUs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Placement {
    /// One thread per CPU, pinned to it.
    PerCpu,
    /// This many threads, each allowed on all the CPUs.
    Shared(u32),
}

/// The way in which a timer thread waits for its next expiry.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum TimerMethod {
    /// clock_nanosleep(2) with TIMER_ABSTIME.
    NanosleepAbsolute,
    /// clock_nanosleep(2) for one period from now.
    NanosleepRelative,
    /// timerfd_create(2) and read(2).
    Timerfd,
    /// timer_create(2) and a signal.
    PosixTimer,
    /// The period of SCHED_DEADLINE, waited for with sched_yield(2).
    Deadline,
}

impl Word for TimerMethod {
    const WORDS: &'static [(&'static str, TimerMethod)] = &[
        ("nanosleep-absolute", TimerMethod::NanosleepAbsolute),
        ("nanosleep-relative", TimerMethod::NanosleepRelative),
        ("timerfd", TimerMethod::Timerfd),
        ("posix-timer", TimerMethod::PosixTimer),
        ("deadline", TimerMethod::Deadline),
    ];
}

/// The action when a load ends by itself.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum OnExit {
    /// Start it again.
    Respawn,
    /// Continue without it.
    Ignore,
    /// End the run.
    Stop,
}

impl Word for OnExit {
    const WORDS: &'static [(&'static str, OnExit)] =
        &[("respawn", OnExit::Respawn), ("ignore", OnExit::Ignore), ("stop", OnExit::Stop)];
}

/// A program with its arguments.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CommandLine(pub Vec<String>);

/// The destination of a load's output.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LoadOutput {
    /// To /dev/null.
    Null,
    /// To a file, truncated first; relative to the current directory.
    File(PathBuf),
}

/// The layout of a systress result file.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SystressFormat {
    /// Columns aligned with blanks.
    Txt,
    /// Columns separated by commas.
    Csv,
}

impl Word for SystressFormat {
    const WORDS: &'static [(&'static str, SystressFormat)] =
        &[("txt", SystressFormat::Txt), ("csv", SystressFormat::Csv)];
}

impl Word for CycleKind {
    const WORDS: &'static [(&'static str, CycleKind)] = &[
        ("absolute", CycleKind::Absolute),
        ("relative", CycleKind::Relative),
        ("timerfd", CycleKind::Timerfd),
        ("posix-timer", CycleKind::PosixTimer),
        ("deadline", CycleKind::Deadline),
        ("event", CycleKind::Event),
    ];
}

/// A nice value, −20 (greedy) to 19 (yielding); see sched(7).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Nice(i8);

impl Nice {
    /// The nice value, if it is −20 to 19.
    pub const fn new(value: i8) -> Option<Nice> {
        if value >= -20 && value <= 19 { Some(Nice(value)) } else { None }
    }
    /// The number.
    pub const fn get(self) -> i8 {
        self.0
    }
}

impl std::fmt::Display for Nice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// The address of a board: `[USER@]HOST[:PORT]`, with brackets around IPv6 with a port.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct SshAddress {
    /// The user; `None`: ssh's default.
    pub user: Option<String>,
    /// Its name or address.
    pub host: String,
    /// The port; `None`: ssh's default.
    pub port: Option<u16>,
}

impl fmt::Display for SshAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SshAddress { user, host, port } = self;
        user.iter().try_for_each(|user| write!(f, "{user}@"))?;
        match port {
            Some(port) if host.contains(':') => write!(f, "[{host}]:{port}"),
            Some(port) => write!(f, "{host}:{port}"),
            None => f.write_str(host),
        }
    }
}

/// The user, host and port of `[user@]host[:port]`; an IPv6 address with a port is in brackets.
pub(crate) fn split_address(text: &str) -> (Option<&str>, &str, Option<&str>) {
    let (user, host) =
        text.rsplit_once('@').map_or((None, text), |(user, host)| (Some(user), host));
    let bracketed = host.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    let (host, port) = match bracketed {
        Some((host, rest)) => (host, rest.strip_prefix(':')),
        None if host.matches(':').count() == 1 => {
            host.split_once(':').map_or((host, None), |(h, p)| (h, Some(p)))
        }
        None => (host, None),
    };
    (user, host, port)
}
