//! Names of several bundles beside each other, from the properties that differ between them.

use std::collections::HashSet;
use std::path::Path;

/// A name without information about the run ends in the start time: `-20261103-141500`.
const STAMP: [usize; 2] = [8, 6];

/// Properties that can name a bundle, or several runs of the same.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct BundleIdentity {
    /// The directory, as it was given.
    pub path: String,
    /// The release of its kernel, if recorded.
    pub kernel: Option<String>,
    /// The machine, if recorded.
    pub machine: Option<String>,
    /// The phase, if a single one represents the bundle.
    pub phase: Option<String>,
}

impl BundleIdentity {
    /// The properties that several runs of one side share.
    pub fn from_runs(runs: &[BundleIdentity]) -> BundleIdentity {
        let [first, rest @ ..] = runs else { return BundleIdentity::default() };
        let shared = |of: fn(&BundleIdentity) -> &Option<String>| {
            of(first).clone().filter(|value| rest.iter().all(|one| of(one).as_ref() == Some(value)))
        };
        let path = match rest {
            [] => first.path.clone(),
            _ => common_path(runs),
        };
        BundleIdentity {
            path,
            kernel: shared(|of| &of.kernel),
            machine: shared(|of| &of.machine),
            phase: shared(|of| &of.phase),
        }
    }

    fn file_name(&self) -> String {
        path_parts(&self.path).pop().unwrap_or_else(|| self.path.clone())
    }
}

/// A name for each, all different: their own names if these were chosen and differ; else kernel,
/// machine or phase; else the parts of their paths that differ. The same bundle twice is numbered.
pub fn distinct_names(all: &[BundleIdentity]) -> Vec<String> {
    let own_names: Vec<String> = all.iter().map(BundleIdentity::file_name).collect();
    if all.len() < 2 || (are_distinct(&own_names) && !own_names.iter().any(|name| is_stamped(name)))
    {
        return own_names;
    }
    let recorded = |of: &dyn Fn(&BundleIdentity) -> Option<String>| {
        all.iter().map(of).collect::<Option<Vec<String>>>().filter(|names| are_distinct(names))
    };
    let kernel_and_machine =
        |of: &BundleIdentity| Some(format!("{}, {}", of.kernel.as_ref()?, of.machine.as_ref()?));
    recorded(&|of| of.kernel.clone())
        .map(without_shared_end)
        .or_else(|| recorded(&|of| of.machine.clone()))
        .or_else(|| recorded(&kernel_and_machine))
        .or_else(|| recorded(&|of| of.phase.clone()))
        .or_else(|| are_distinct(&own_names).then(|| own_names.clone()))
        .or_else(|| by_path(all))
        .unwrap_or_else(|| number_duplicates(&own_names))
}

/// Strips shared trailing words while every name keeps some text and they differ: of two Debian
/// kernels, `-amd64` distinguishes nothing.
fn without_shared_end(names: Vec<String>) -> Vec<String> {
    let end = |name: &String| name.rsplit_once('-').map(|(_, end)| end.to_owned());
    let cut = |name: &String| name.rsplit_once('-').map(|(begin, _)| begin.to_owned());
    match end(&names[0]) {
        Some(first) if names.iter().all(|name| end(name).as_ref() == Some(&first)) => {
            let shorter: Vec<String> = names.iter().filter_map(cut).collect();
            match are_distinct(&shorter) && shorter.iter().all(|name| !name.is_empty()) {
                true => without_shared_end(shorter),
                false => names,
            }
        }
        _ => names,
    }
}

fn are_distinct(names: &[String]) -> bool {
    names.iter().collect::<HashSet<_>>().len() == names.len()
}

/// Whether it is the default name of a command: it ends in a date and a time.
fn is_stamped(name: &str) -> bool {
    let mut parts = name.rsplit('-');
    let [time, date] = [parts.next(), parts.next()];
    let digits = |part: Option<&str>, n| {
        part.is_some_and(|part| part.len() == n && part.bytes().all(|b| b.is_ascii_digit()))
    };
    digits(date, STAMP[0]) && digits(time, STAMP[1])
}

fn path_parts(path: &str) -> Vec<String> {
    let named = Path::new(path).components().filter_map(|part| match part {
        std::path::Component::Normal(name) => Some(name.to_string_lossy().into_owned()),
        _ => None,
    });
    named.collect()
}

/// The ends of the paths without their common parts: `6.1` and `6.1-rt` of `cells/6.1/r1` and
/// `cells/6.1-rt/r1`.
fn by_path(all: &[BundleIdentity]) -> Option<Vec<String>> {
    let mut path_ends: Vec<Vec<String>> = all.iter().map(|of| path_parts(&of.path)).collect();
    while path_ends.iter().all(|path| path.len() > 1)
        && path_ends.iter().all(|path| path.last() == path_ends[0].last())
    {
        path_ends.iter_mut().for_each(|path| {
            path.pop();
        });
    }
    let longest = path_ends.iter().map(Vec::len).max()?;
    (1..=longest).find_map(|parts| {
        let ends = path_ends.iter().map(|path| path[path.len().saturating_sub(parts)..].join("/"));
        let ends: Vec<String> = ends.collect();
        (are_distinct(&ends) && ends.iter().all(|end| !end.is_empty())).then_some(ends)
    })
}

/// Appends numbers to duplicates.
fn number_duplicates(names: &[String]) -> Vec<String> {
    let mut used_names: Vec<String> = Vec::new();
    for name in names {
        let number = |n: usize| if n == 1 { name.clone() } else { format!("{name} ({n})") };
        let free = (1..).map(number).find(|name| !used_names.contains(name));
        used_names.extend(free);
    }
    used_names
}

/// The common beginning of the paths of several runs: `before` of `before1 before2`, `cells/6.1` of
/// `cells/6.1/r1 cells/6.1/r2`. The first path if the beginning is meaningless.
fn common_path(runs: &[BundleIdentity]) -> String {
    let first = &runs[0].path;
    let shared = runs.iter().fold(first.chars().count(), |least, one| {
        let same = first.chars().zip(one.path.chars()).take_while(|(a, b)| a == b);
        least.min(same.count())
    });
    let shared: String = first.chars().take(shared).collect();
    // `cells/6.1/r` is cut: numbers distinguish the runs.
    let (above, name) = shared.rsplit_once('/').unwrap_or(("", &shared));
    let name = name.trim_end_matches(|c: char| c.is_ascii_digit() || "-_. ".contains(c));
    match (above, name) {
        (_, name) if name.chars().count() > 1 => format!("{above}/{name}"),
        ("", _) => first.clone(),
        (above, _) => above.to_owned(),
    }
    .trim_start_matches(if first.starts_with('/') { "" } else { "/" })
    .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(path: &str) -> BundleIdentity {
        BundleIdentity { path: path.to_owned(), ..BundleIdentity::default() }
    }

    fn on(path: &str, kernel: &str, machine: &str) -> BundleIdentity {
        BundleIdentity {
            kernel: Some(kernel.to_owned()),
            machine: Some(machine.to_owned()),
            ..at(path)
        }
    }

    #[test]
    fn names_that_were_chosen_stay() {
        let all = [on("runs/standard", "6.1", "a"), on("rt", "6.1-rt", "a")];
        assert_eq!(distinct_names(&all), ["standard", "rt"]);
        assert_eq!(
            distinct_names(&[on("punctual-x-20261103-141500", "6.1", "a")]),
            ["punctual-x-20261103-141500"]
        );
    }

    #[test]
    fn default_names_are_replaced_by_distinguishing_properties() {
        let stamped = ["punctual-x-20261103-141500", "punctual-x-20261103-141700"];
        let [a, b] = stamped;
        assert_eq!(distinct_names(&[on(a, "6.1", "m"), on(b, "6.1-rt", "m")]), ["6.1", "6.1-rt"]);
        assert_eq!(distinct_names(&[on(a, "6.1", "m"), on(b, "6.1", "n")]), ["m", "n"]);
        let debian = [on(a, "6.1.0-43-rt-amd64", "m"), on(b, "6.1.0-43-amd64", "m")];
        assert_eq!(distinct_names(&debian), ["6.1.0-43-rt", "6.1.0-43"]);
        assert_eq!(distinct_names(&[on(a, "6.1-rt", "m"), on(b, "6.12-rt", "m")]), ["6.1", "6.12"]);
        let four = [on("r", "5", "m"), on("r", "5", "n"), on("r", "6", "m"), on("r", "6", "n")];
        assert_eq!(distinct_names(&four), ["5, m", "5, n", "6, m", "6, n"]);
        // Only the start times differ.
        assert_eq!(distinct_names(&[on(a, "6.1", "m"), on(b, "6.1", "m")]), stamped);
    }

    #[test]
    fn duplicate_names_are_distinguished_by_path_or_number() {
        assert_eq!(
            distinct_names(&[at("lq/cells/6.1/r1"), at("lq/cells/6.1-rt/r1")]),
            ["6.1", "6.1-rt"]
        );
        assert_eq!(
            distinct_names(&[at("a/x/r1"), at("a/y/r2"), at("b/x/r1")]),
            ["a/x/r1", "a/y/r2", "b/x/r1"]
        );
        assert_eq!(distinct_names(&[at("r"), at("r"), at("r")]), ["r", "r (2)", "r (3)"]);
        let phase = |name: &str| BundleIdentity { phase: Some(name.to_owned()), ..at("r") };
        assert_eq!(distinct_names(&[phase("idle"), phase("loaded")]), ["idle", "loaded"]);
        assert_eq!(distinct_names(&[at("r1"), at("x/r1")]), ["r1", "x/r1"]);
    }

    #[test]
    fn several_runs_are_named_by_their_common_prefix() {
        let of = |paths: &[&str]| {
            BundleIdentity::from_runs(&paths.iter().map(|p| at(p)).collect::<Vec<_>>())
        };
        assert_eq!(of(&["before1", "before2"]).path, "before");
        assert_eq!(of(&["cells/6.1/r1", "cells/6.1/r2"]).path, "cells/6.1");
        assert_eq!(of(&["/r/rt-1", "/r/rt-12"]).path, "/r/rt");
        assert_eq!(of(&["x", "y"]).path, "x");
        let mixed = BundleIdentity::from_runs(&[on("a1", "6.1", "m"), on("a2", "6.1", "n")]);
        assert_eq!((mixed.kernel.as_deref(), mixed.machine), (Some("6.1"), None));
    }
}
