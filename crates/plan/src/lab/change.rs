//! The changes of an experiment by a value of an axis.

use crate::escape::clip_text;
use toml::{Table, Value};

/// One change.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum LabChange {
    /// Sets keys; those of a named `[[measure]]`, `[[load]]` or `[[phase]]` by a table of its name,
    /// those of all by `*`.
    Set(Table),
    /// Appends these words to the kernel's command line.
    CommandLine(String),
    /// Selects the -rt flavour of the kernel, which is named without it.
    RealTimeKernel,
    /// Keeps only these loads; `None`: all of them.
    Loads(Option<Vec<String>>),
    /// Sets the policy of every measure.
    Policy(String),
}

/// The repeatable sections, identified by name.
const SECTIONS: [&str; 3] = ["measure", "load", "phase"];

impl LabChange {
    /// Whether it depends on settings of other steps, and must follow them.
    pub(crate) fn is_late(&self) -> bool {
        matches!(self, LabChange::RealTimeKernel | LabChange::Loads(_) | LabChange::Policy(_))
    }

    /// Applies it. The error completes "the value … of the axis … cannot be applied: ".
    pub(crate) fn apply(&self, experiment: &mut Table) -> Result<(), String> {
        match self {
            LabChange::Set(table) => merge_tables(experiment, table, true),
            LabChange::CommandLine(words) => append_cmdline(target_table(experiment)?, words),
            LabChange::RealTimeKernel => real_time_kernel(target_table(experiment)?),
            LabChange::Loads(chosen) => select_loads(experiment, chosen.as_deref()),
            LabChange::Policy(policy) => {
                let every =
                    Table::from_iter([("policy".to_owned(), Value::String(policy.clone()))]);
                let every = Table::from_iter([("*".to_owned(), Value::Table(every))]);
                merge_tables(
                    experiment,
                    &Table::from_iter([("measure".to_owned(), Value::Table(every))]),
                    true,
                )
            }
        }
    }
}

/// An experiment whose virtual machine boots with these further words on its command line.
///
/// # Errors
/// It is not TOML, or its target has no such key: the reason, in words.
pub fn with_command_line(text: &str, words: &str) -> Result<String, String> {
    let mut experiment: Table = text.parse().map_err(|why: toml::de::Error| why.to_string())?;
    append_cmdline(target_table(&mut experiment)?, words)?;
    Ok(experiment.to_string())
}

/// The table of the path `a.b.c = value`.
pub(crate) fn nested_table(path: &[&str], value: Value) -> Table {
    match path {
        [] => Table::new(),
        [last] => Table::from_iter([((*last).to_owned(), value)]),
        [first, rest @ ..] => {
            Table::from_iter([((*first).to_owned(), Value::Table(nested_table(rest, value)))])
        }
    }
}

fn target_table(experiment: &mut Table) -> Result<&mut Table, String> {
    let target = experiment.entry("target").or_insert_with(|| Value::Table(Table::new()));
    target.as_table_mut().ok_or_else(|| "`target` of the experiment is not a table".to_owned())
}

fn append_cmdline(target: &mut Table, words: &str) -> Result<(), String> {
    let line = target.entry("cmdline").or_insert_with(|| Value::String(String::new()));
    let Value::String(line) = line else {
        return Err("`cmdline` of the target is not a string".to_owned());
    };
    *line = [line.as_str(), words].map(str::trim).join(" ").trim().to_owned();
    Ok(())
}

fn real_time_kernel(target: &mut Table) -> Result<(), String> {
    match target.get_mut("kernel") {
        Some(Value::String(kernel)) if kernel.contains('/') => Err(format!(
            "the real-time kernel of `{}` cannot be determined: give the axis a table",
            clip_text(kernel)
        )),
        Some(Value::String(kernel)) if kernel.ends_with("-rt") => Ok(()),
        // A release as Debian names it: the flavour is before the architecture.
        Some(Value::String(kernel)) => {
            match split_release(kernel) {
                Some((before, after)) => *kernel = format!("{before}-rt-{after}"),
                None => kernel.push_str("-rt"),
            }
            Ok(())
        }
        _ => Err("the target has no `kernel` to take the -rt flavour of".to_owned()),
    }
}

/// The parts of a release before and after `-rt` in Debian's name of it.
fn split_release(kernel: &str) -> Option<(String, String)> {
    let (before, architecture) = kernel.rsplit_once('-')?;
    let is_known = ["amd64", "arm64", "armmp", "686"].contains(&architecture);
    let before = before.strip_suffix("-rt").unwrap_or(before);
    is_known.then(|| (before.to_owned(), architecture.to_owned()))
}

/// The name of a section; the default of a measure's name is its kind.
fn name_of(section: &Value) -> Option<&str> {
    section.get("name").or_else(|| section.get("kind")).and_then(Value::as_str)
}

fn select_loads(experiment: &mut Table, chosen: Option<&[String]>) -> Result<(), String> {
    let Some(chosen) = chosen else { return Ok(()) };
    let all_loads = experiment.get("load").and_then(Value::as_array).cloned().unwrap_or_default();
    let is_known = |wanted: &&String| all_loads.iter().any(|load| name_of(load) == Some(wanted));
    if let Some(unknown) = chosen.iter().find(|wanted| !is_known(wanted)) {
        return Err(format!("the experiment has no load called `{}`", clip_text(unknown)));
    }
    let is_chosen =
        |load: &Value| name_of(load).is_some_and(|name| chosen.iter().any(|wanted| wanted == name));
    let kept: Vec<Value> = all_loads.into_iter().filter(is_chosen).collect();
    if kept.is_empty() {
        experiment.remove("load");
    } else {
        experiment.insert("load".to_owned(), Value::Array(kept));
    }
    for phase in experiment.get_mut("phase").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(Value::Array(names)) = phase.get_mut("loads") {
            names.retain(|name| {
                name.as_str().is_some_and(|name| chosen.iter().any(|wanted| wanted == name))
            });
        }
    }
    Ok(())
}

/// Applies the patch; tables are merged, words of a command line are appended, everything else is
/// replaced.
fn merge_tables(into: &mut Table, patch: &Table, top: bool) -> Result<(), String> {
    for (key, value) in patch {
        match (into.get_mut(key), value) {
            (Some(Value::Array(sections)), Value::Table(by_name))
                if top && SECTIONS.contains(&key.as_str()) =>
            {
                merge_by_name(key, sections, by_name)?;
            }
            (None, Value::Table(_)) if top && SECTIONS.contains(&key.as_str()) => {
                return Err(format!("the experiment has no `[[{key}]]`"));
            }
            (Some(Value::Table(there)), Value::Table(patch)) if top && key == "target" => {
                let mut patch = patch.clone();
                if let Some(Value::String(words)) = patch.remove("cmdline") {
                    append_cmdline(there, &words)?;
                }
                merge_tables(there, &patch, false)?;
            }
            (Some(Value::Table(there)), Value::Table(patch)) => merge_tables(there, patch, false)?,
            _ => {
                into.insert(key.clone(), value.clone());
            }
        }
    }
    Ok(())
}

fn merge_by_name(key: &str, sections: &mut [Value], by_name: &Table) -> Result<(), String> {
    for (name, patch) in by_name {
        let Value::Table(patch) = patch else {
            return Err(format!("`{key}.{}` must be a table of settings", clip_text(name)));
        };
        let mut found = false;
        for section in
            sections.iter_mut().filter(|section| name == "*" || name_of(section) == Some(name))
        {
            if let Value::Table(section) = section {
                merge_tables(section, patch, false)?;
                found = true;
            }
        }
        if !found {
            return Err(format!("the experiment has no `[[{key}]]` called `{}`", clip_text(name)));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_added_to_the_command_line_of_a_virtual_machine() {
        let of = |target: &str| -> Table {
            let text = format!("[[measure]]\nkind = \"timer\"\n{target}");
            let text = with_command_line(&text, "threadirqs a=1,2").expect("an experiment");
            let whole: Table = text.parse().expect("TOML");
            assert_eq!(whole["measure"][0]["kind"].as_str(), Some("timer"));
            whole["target"].as_table().expect("a table").clone()
        };
        let target = of("[target]\nkind = \"vm\"\nkernel = \"6.12\"\ncmdline = \"quiet\"\n");
        assert_eq!(target["cmdline"].as_str(), Some("quiet threadirqs a=1,2"));
        assert_eq!(target["kernel"].as_str(), Some("6.12"));
        assert_eq!(of("[target]\nkind = \"vm\"\n")["cmdline"].as_str(), Some("threadirqs a=1,2"));
        assert!(with_command_line("[target\n", "x").is_err());
    }
}
