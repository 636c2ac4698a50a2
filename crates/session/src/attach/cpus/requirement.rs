//! What `--require` says of CPUs: `interruption max < 50us`, `entries < 10`, `cpu3/entry p99 <
//! 20us`.

use punctual_core::{Metric, Requirement};
use std::str::FromStr;

/// What is measured of a CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A task of the CPU was interrupted.
    Interruption,
    /// An entry into the kernel.
    Entry,
}

impl Kind {
    pub const ALL: [Kind; 2] = [Kind::Interruption, Kind::Entry];

    /// The last part of its series' name.
    pub fn word(self) -> &'static str {
        match self {
            Kind::Interruption => "interruption",
            Kind::Entry => "entry",
        }
    }
}

/// A requirement on one series of every CPU, or of one.
#[derive(Clone, Debug)]
pub struct EntryRequirement {
    /// The CPU; `None`: every one.
    pub cpu: Option<usize>,
    kind: Kind,
    requirement: Requirement,
}

impl EntryRequirement {
    /// As the series has it, if it is about this series of this CPU.
    pub fn on(&self, cpu: usize, kind: Kind) -> Option<String> {
        let is_about = self.kind == kind && self.cpu.is_none_or(|one| one == cpu);
        is_about.then(|| self.requirement.to_string())
    }
}

impl FromStr for EntryRequirement {
    type Err = String;

    fn from_str(text: &str) -> Result<EntryRequirement, String> {
        let text = text.trim();
        let (cpu, text) = match text.strip_prefix("cpu").and_then(|rest| rest.split_once('/')) {
            Some((number, rest)) => {
                let number = number.parse().map_err(|_| format!("`cpu{number}` is no CPU"))?;
                (Some(number), rest)
            }
            None => (None, text),
        };
        let words = Kind::ALL.map(|kind| (kind.word(), kind));
        let named = words.into_iter().find_map(|(word, kind)| {
            let rest = text.strip_prefix(word)?;
            rest.starts_with(char::is_whitespace).then_some((kind, rest.to_owned()))
        });
        let (kind, text) = match (named, text.strip_prefix("entries")) {
            (Some(named), _) => named,
            (None, Some(rest)) => (Kind::Entry, format!("count{rest}")),
            (None, None) => (Kind::Interruption, text.to_owned()),
        };
        let requirement = text.parse::<Requirement>().map_err(|why| why.to_string())?;
        if matches!(requirement.metric, Metric::Faults | Metric::Switches | Metric::Overruns) {
            return Err(format!("{} have no `{}`", kind.word(), requirement.metric));
        }
        Ok(EntryRequirement { cpu, kind, requirement })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cpu_and_a_series_may_be_named() {
        let read = |text: &str| {
            let of = text.parse::<EntryRequirement>()?;
            Ok::<_, String>((of.cpu, of.kind, of.requirement.to_string()))
        };
        let max = "max < 50us".to_owned();
        assert_eq!(read("interruption max < 50us"), Ok((None, Kind::Interruption, max.clone())));
        assert_eq!(read("max<50us"), Ok((None, Kind::Interruption, max.clone())));
        assert_eq!(read("cpu3/entry max < 50us"), Ok((Some(3), Kind::Entry, max)));
        assert_eq!(read("entries < 10"), Ok((None, Kind::Entry, "count < 10".to_owned())));
        assert_eq!(read("cpu1/entries==0"), Ok((Some(1), Kind::Entry, "count == 0".to_owned())));
        for wrong in ["interruptions max < 1us", "cpux/entry max < 1us", "entry", "overruns == 0"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
