//! A run of a lab by its name: the path of its bundle below `cells/`, as `6.1_rt_idle/s7-r1`.

use std::fmt;
use std::str::FromStr;

/// The run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunName {
    pub cell: String,
    /// The seed; none: the experiment's own.
    pub seed: Option<u64>,
    /// The repetition, from 1.
    pub number: u32,
}

impl RunName {
    /// The path of the run's experiment, relative to the lab's directory.
    pub(crate) fn experiment_path(&self) -> String {
        let name = self.seed.map_or("cell".to_owned(), |seed| format!("s{seed}"));
        format!("cells/{}/{name}.toml", self.cell)
    }

    /// The path of the run's bundle, relative to the lab's directory.
    pub(crate) fn bundle_path(&self) -> String {
        format!("cells/{self}")
    }

    pub(crate) fn leaf_name(&self) -> String {
        let seed = self.seed.map_or(String::new(), |seed| format!("s{seed}-"));
        format!("{seed}r{}", self.number)
    }
}

impl fmt::Display for RunName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.cell, self.leaf_name())
    }
}

impl FromStr for RunName {
    type Err = String;

    fn from_str(text: &str) -> Result<RunName, String> {
        let name = || {
            let (cell, leaf) = text.split_once('/')?;
            let (seed, number) = match leaf.strip_prefix('s') {
                Some(rest) => {
                    let (seed, number) = rest.split_once('-')?;
                    (Some(seed.parse().ok()?), number)
                }
                None => (None, leaf),
            };
            let number = number.strip_prefix('r')?.parse().ok()?;
            let name = RunName { cell: cell.to_owned(), seed, number };
            // Hidden files and `..` are not cells; and a name has only one form.
            (!cell.starts_with('.') && !cell.is_empty() && name.to_string() == text).then_some(name)
        };
        name().ok_or_else(|| format!("`{text}` is not a run of a lab, as 6.1_rt_idle/s7-r1 is"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_names_are_parsed_as_printed_without_path_traversal() {
        for good in ["a/r1", "6.1_rt_idle/s7-r12"] {
            assert_eq!(good.parse::<RunName>().expect("a name").to_string(), good);
        }
        let run: RunName = "a/s7-r2".parse().expect("a name");
        assert_eq!(
            (run.experiment_path().as_str(), run.bundle_path().as_str()),
            ("cells/a/s7.toml", "cells/a/s7-r2")
        );
        for bad in ["", "a", "a/r", "../r1", ".a/r1", "/r1", "a/b/r1", "a/r+1", "a/s07-r1"] {
            assert!(bad.parse::<RunName>().is_err(), "{bad}");
        }
    }
}
