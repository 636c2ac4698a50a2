//! A systemd unit: the settings that grant or take rights (systemd.exec(5)).

use crate::check::systemd::read_assignments;
use crate::files::Files;

const PLACES: [&str; 5] = [
    "/etc/systemd/system",
    "/run/systemd/system",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
];
const MAX_DROP_INS: usize = 64;

/// A unit's files and what they say.
pub(super) struct Unit {
    /// The unit's file and drop-ins; empty if none is found.
    pub paths: Vec<String>,
    texts: Vec<String>,
}

impl Unit {
    /// `robot.service`, `robot@left.service`.
    pub(super) fn read(files: &dyn Files, name: &str) -> Unit {
        let template = name.split_once('@').and_then(|(stem, rest)| {
            rest.rsplit_once('.').map(|(_, kind)| format!("{stem}@.{kind}"))
        });
        let names: Vec<String> = [name.to_owned()].into_iter().chain(template).collect();
        let unit_paths =
            || names.iter().flat_map(|name| PLACES.map(|place| format!("{place}/{name}")));
        let mut paths: Vec<String> =
            unit_paths().find(|path| files.read(path).is_ok()).into_iter().collect();
        for directory in unit_paths().map(|path| format!("{path}.d")) {
            let drop_ins = files.list(&directory).unwrap_or_default();
            let drop_ins = drop_ins.into_iter().filter(|name| name.ends_with(".conf"));
            paths.extend(drop_ins.take(MAX_DROP_INS).map(|name| format!("{directory}/{name}")));
        }
        let texts = paths.iter().map(|path| files.read(path).unwrap_or_default()).collect();
        Unit { paths, texts }
    }

    /// The last value of a setting of `[Service]`, and the file.
    pub(super) fn last_value(&self, key: &str) -> Option<(String, &str)> {
        let value_in_file = |(text, path): (&String, &String)| {
            read_assignments(text, "Service", key).pop().map(|value| (value, path.clone()))
        };
        let found_values: Vec<(String, String)> =
            self.texts.iter().zip(&self.paths).filter_map(value_in_file).collect();
        let (value, path) = found_values.last()?;
        let path = self.paths.iter().find(|known| *known == path)?;
        Some((value.clone(), path))
    }

    /// A setting of the unit that installs a seccomp filter which refuses real-time policies.
    pub(super) fn filter_setting(&self) -> Option<String> {
        let is_set =
            |key: &&str| self.last_value(key).is_some_and(|(value, _)| is_filter(key, &value));
        let key = ["RestrictRealtime", "SystemCallFilter"].into_iter().find(is_set)?;
        let (value, path) = self.last_value(key)?;
        Some(format!("{path}: {key}={value}"))
    }
}

/// `RestrictRealtime=` is a boolean; of the groups of calls, `@resources` has sched_setscheduler.
fn is_filter(key: &str, value: &str) -> bool {
    match key {
        "RestrictRealtime" => ["yes", "true", "1", "on"].contains(&value),
        _ => value.contains("@resources") || !value.starts_with('~') && !value.is_empty(),
    }
}
