//! Parses the text of a lab file.

use super::axis::read_selection;
use super::change::{LabChange, nested_table};
use super::settings::LabSettings;
use super::{Axis, AxisValue, CellSelection, Lab, MAX_AXES, MAX_CELLS, MAX_VALUES, ReadFile};
use crate::context::LoadOptions;
use crate::escape::clip_text;
use crate::limits::MAX_FILE_BYTES;
use crate::notes::{ProblemNotes, Read, Wrong};
use crate::problem::{Problem, ProblemKind, Problems};
use crate::section::FileSection;
use crate::table::{TomlTable, type_mismatch};
use crate::text::{At, SourceText, Span};
use crate::values;
use punctual_core::CpuSet;
use punctual_core::words::nearest_word;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use toml::Value;
use toml::de::{DeTable, DeValue};

/// The sections that only a lab file has.
const LAB_SECTIONS: [&str; 3] = ["lab", "axes", "exclude"];
/// The axes with predefined values, which are not paths of keys.
const KNOWN_AXES: [&str; 9] = [
    "kernel",
    "cmdline",
    "preemption",
    "isolation",
    "governor",
    "frequency",
    "smt",
    "load",
    "policy",
];

/// Reads as much as possible and notes every problem.
pub(super) fn read(
    source: Arc<SourceText>,
    options: &LoadOptions,
    read_file: &ReadFile,
) -> (Option<Lab>, Problems) {
    let mut notes = ProblemNotes::new(source.clone(), options);
    let (document, errors) = DeTable::parse_recoverable(&source.text);
    for error in errors {
        let span = error.span().map(Span::from);
        notes.problems.push(Problem::error(ProblemKind::Syntax, span, error.message()));
    }
    // Consequences of a syntax error are not reported.
    let Ok(whole) = source.text.parse::<toml::Table>() else { return (None, notes.problems) };
    let mut file = TomlTable::new(document.get_ref(), Span::default(), "a lab file");
    let settings = file
        .take_table(&mut notes, "lab", "`[lab]`")
        .map(|table| LabSettings::read_whole(&mut notes, table))
        .unwrap_or_default();
    let axes = match file.take_table(&mut notes, "axes", "`[axes]`") {
        Some(table) => read_axes(
            &mut notes,
            &table,
            whole.get("axes"),
            settings.isolated.as_ref().map(|at| &at.value),
        ),
        None => Vec::new(),
    };
    let excludes = file.take_sections(&mut notes, "exclude", "`[[exclude]]`");
    let excludes: Vec<(Span, CellSelection)> = excludes
        .iter()
        .take(MAX_CELLS)
        .map(|table| (table.span, read_selection(&mut notes, table)))
        .collect();
    excludes.iter().for_each(|(span, exclude)| check_selection(&mut notes, *span, exclude, &axes));
    let mut base = read_base(&mut notes, &source, whole, settings.experiment.as_ref(), read_file);
    let name = lab_name(settings.name.as_ref(), &base, &source.path);
    name_experiment(&mut base, &name);
    let lab = Lab {
        name,
        source,
        axes,
        excludes: excludes.into_iter().map(|(_, exclude)| exclude).collect(),
        repeat: settings.repeat(),
        published: settings.all_published(),
        seeds: settings.seeds.map(|at| at.value),
        requirements: settings.require.map(|at| at.value.0).unwrap_or_default(),
        parallel: settings.parallel.map(|at| at.value as usize),
        experiment: settings.experiment.map(|at| PathBuf::from(at.value)),
        base,
    };
    (Some(lab), notes.problems)
}

/// The axes; their values come from the same document parsed without places.
fn read_axes(
    notes: &mut ProblemNotes,
    table: &TomlTable,
    plain: Option<&Value>,
    isolated: Option<&CpuSet>,
) -> Vec<Axis> {
    let entries = table.sorted_entries();
    if let Some((_, span, _)) = entries.get(MAX_AXES) {
        notes.report_wrong_value(
            *span,
            Wrong::new(format!("more than {MAX_AXES} axes are too many")),
        );
    }
    let mut axes = Vec::new();
    for (name, at, value) in entries.into_iter().take(MAX_AXES) {
        let Some(plain) = plain.and_then(|axes| axes.get(name)) else { continue };
        let span = Span::from(value.span());
        // A table of named settings may have any name.
        if matches!(value.get_ref(), DeValue::Array(_)) && !is_known(name) {
            notes.report_wrong_value(at, unknown_axis(name));
            continue;
        }
        let values = match (value.get_ref(), plain) {
            (DeValue::Array(places), Value::Array(items)) => {
                let spans = places.iter().map(|item| Span::from(item.span()));
                spans
                    .zip(items)
                    .filter_map(|(span, item)| read_listed_value(notes, name, span, item, isolated))
                    .collect()
            }
            (DeValue::Table(entries), Value::Table(items)) => read_variants(notes, entries, items),
            (other, _) => {
                let help = format!("write `{name} = [\"…\", \"…\"]`, or a table of named settings");
                notes.report_wrong_value(
                    span,
                    type_mismatch(other, "an array of values").with_key(name).with_help(help),
                );
                continue;
            }
        };
        let written = value.get_ref().as_array().map_or(values.len(), |items| items.len());
        if let Some(axis) = check_axis(notes, span, written, Axis { name: name.to_owned(), values })
        {
            axes.push(axis);
        }
    }
    axes
}

/// Whether values of this axis have a meaning without a table.
fn is_known(axis: &str) -> bool {
    KNOWN_AXES.contains(&axis) || axis.contains('.')
}

fn unknown_axis(axis: &str) -> Wrong {
    let near = nearest_word(axis, KNOWN_AXES)
        .map(|near| format!("did you mean `{near}`? "))
        .unwrap_or_default();
    let help = format!(
        "{near}known are {}; any other is the path of a key, as in `\"measure.timer.period\"`, or \
         a table of named settings",
        KNOWN_AXES.join(", ")
    );
    Wrong::new("no axis is known by this name").with_key(axis).with_help(help)
}

/// Checks an axis with `written` values; errors of single values have already been reported.
fn check_axis(notes: &mut ProblemNotes, span: Span, written: usize, axis: Axis) -> Option<Axis> {
    if axis.values.is_empty() && written > 0 {
        return None;
    }
    if written == 0 || written > MAX_VALUES {
        let message = format!("an axis has 1 to {MAX_VALUES} values, not {written}");
        notes.report_wrong_value(span, Wrong::new(message).with_key(&axis.name));
        return None;
    }
    let twice = |k: usize| axis.values[..k].iter().any(|other| other.label == axis.values[k].label);
    if let Some(k) = (0..axis.values.len()).find(|k| twice(*k)) {
        let message = format!("the value `{}` stands twice", clip_text(&axis.values[k].label));
        notes.report_wrong_value(span, Wrong::new(message).with_key(&axis.name));
    }
    Some(axis)
}

/// A value in an array: of an axis known by its name, or of the key whose path is the axis' name.
fn read_listed_value(
    notes: &mut ProblemNotes,
    axis: &str,
    span: Span,
    value: &Value,
    isolated: Option<&CpuSet>,
) -> Option<AxisValue> {
    let label = value_label(value);
    match read_steps(axis, value, isolated) {
        Ok(steps) => match values::check_name(&label.replace('/', "-")) {
            Ok(_) => Some(AxisValue { label, steps }),
            Err(wrong) => {
                notes.report_wrong_value(
                    span,
                    wrong.with_help("give it a name: `[axes.AXIS]` with `NAME = { … }`"),
                );
                None
            }
        },
        Err(wrong) => {
            notes.report_wrong_value(span, wrong.with_key(axis));
            None
        }
    }
}

fn read_steps(axis: &str, value: &Value, isolated: Option<&CpuSet>) -> Read<Vec<LabChange>> {
    let word = || value.as_str().ok_or_else(|| Wrong::new("expected a string"));
    let one_of = |words: &str| {
        Wrong::new(format!("`{}` is not a value of this axis", clip_text(&value_label(value))))
            .with_help(format!("one of {words}"))
    };
    match axis {
        "kernel" => Ok(vec![LabChange::Set(nested_table(&["target", "kernel"], word()?.into()))]),
        "cmdline" => Ok(vec![LabChange::CommandLine(word()?.to_owned())]),
        "preemption" => match word()? {
            "default" => Ok(Vec::new()),
            "rt" => Ok(vec![LabChange::RealTimeKernel]),
            model @ ("none" | "voluntary" | "full" | "lazy") => {
                Ok(vec![LabChange::CommandLine(format!("preempt={model}"))])
            }
            _ => Err(one_of("`default`, `none`, `voluntary`, `full`, `lazy`, `rt`")),
        },
        "isolation" => {
            let cpus = || {
                let help = "write `isolated = \"3\"` into `[lab]`";
                isolated
                    .map(CpuSet::to_string)
                    .ok_or_else(|| Wrong::new("isolated CPUs are not specified").with_help(help))
            };
            match word()? {
                "none" => Ok(Vec::new()),
                "isolcpus" => Ok(vec![LabChange::CommandLine(format!("isolcpus={}", cpus()?))]),
                "cpuset" => {
                    Ok(vec![LabChange::Set(nested_table(&["partition", "cpus"], cpus()?.into()))])
                }
                _ => Err(one_of("`none`, `isolcpus`, `cpuset`")),
            }
        }
        "load" => match value {
            Value::String(word) if word == "idle" => Ok(vec![LabChange::Loads(Some(Vec::new()))]),
            Value::String(word) if word == "loaded" => Ok(vec![LabChange::Loads(None)]),
            Value::String(name) => Ok(vec![LabChange::Loads(Some(vec![name.clone()]))]),
            Value::Array(names) => {
                let name = |name: &Value| {
                    name.as_str()
                        .map(str::to_owned)
                        .ok_or_else(|| Wrong::new("expected names of loads"))
                };
                Ok(vec![LabChange::Loads(Some(names.iter().map(name).collect::<Read<_>>()?))])
            }
            _ => Err(Wrong::new(
                "expected `idle`, `loaded`, a load's name, or an array of such names",
            )),
        },
        "policy" => Ok(vec![LabChange::Policy(word()?.to_owned())]),
        "governor" | "frequency" | "smt" => {
            Ok(vec![LabChange::Set(nested_table(&["experiment", axis], value.clone()))])
        }
        path if path.contains('.') => {
            let keys: Vec<&str> = path.split('.').map(str::trim).collect();
            match keys.iter().any(|key| key.is_empty()) {
                true => Err(Wrong::new("this is not a path of keys")),
                false => Ok(vec![LabChange::Set(nested_table(&keys, value.clone()))]),
            }
        }
        _ => Err(unknown_axis(axis)),
    }
}

/// `NAME = { … }`: the settings added to the experiment.
fn read_variants(
    notes: &mut ProblemNotes,
    places: &DeTable,
    items: &toml::Table,
) -> Vec<AxisValue> {
    let mut ordered: Vec<(Span, &str, Span)> = places
        .iter()
        .map(|(key, value)| {
            (Span::from(key.span()), key.get_ref().as_ref(), Span::from(value.span()))
        })
        .collect();
    ordered.sort_by_key(|(span, _, _)| span.start);
    let mut values = Vec::new();
    for (at, name, span) in ordered {
        if let Err(wrong) = values::check_name(name) {
            notes.report_wrong_value(at, wrong);
            continue;
        }
        match items.get(name) {
            Some(Value::Table(settings)) => {
                values.push(AxisValue {
                    label: name.to_owned(),
                    steps: vec![LabChange::Set(settings.clone())],
                });
            }
            _ => notes.report_wrong_value(
                span,
                Wrong::new("expected a table of settings")
                    .with_key(name)
                    .with_help("write `NAME = { … }`"),
            ),
        }
    }
    values
}

fn value_label(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(value_label).collect::<Vec<_>>().join("+"),
        other => other.to_string(),
    }
}

/// Rejects unknown names in an exclusion, which would silently exclude nothing.
fn check_selection(notes: &mut ProblemNotes, span: Span, selection: &CellSelection, axes: &[Axis]) {
    for (name, labels) in &selection.0 {
        match axes.iter().find(|axis| axis.name == *name) {
            None => notes.report_wrong_value(
                span,
                Wrong::new(format!("there is no axis `{}`", clip_text(name))),
            ),
            Some(axis) => {
                for label in
                    labels.iter().filter(|label| !axis.value_labels().any(|known| known == *label))
                {
                    notes.report_wrong_value(
                        span,
                        Wrong::new(format!(
                            "the axis `{name}` has no value `{}`",
                            clip_text(label)
                        )),
                    );
                }
            }
        }
    }
}

/// The experiment that the axes change: the rest of the file, or the file that it names.
fn read_base(
    notes: &mut ProblemNotes,
    source: &SourceText,
    whole: toml::Table,
    file: Option<&At<String>>,
    read_file: &ReadFile,
) -> toml::Table {
    let mut inline = whole;
    LAB_SECTIONS.iter().for_each(|own| drop(inline.remove(*own)));
    let Some(At { span, value: path }) = file else {
        if inline.is_empty() {
            let help = "write the experiment's sections into this file, or `experiment = \
                        \"FILE\"` into `[lab]`";
            notes.report_missing(Span::default(), "this lab has no experiment", help);
        }
        return inline;
    };
    if let Some(section) = inline.keys().next() {
        let message = format!("the experiment is in `{path}`, and `{section}` of one stands here");
        notes.report_wrong_value(*span, Wrong::new(message).with_help("leave one of them out"));
    }
    let directory = source.path.parent().unwrap_or(Path::new(""));
    let read =
        read_file(&directory.join(path)).and_then(|bytes| match bytes.len() > MAX_FILE_BYTES {
            true => Err("it is too large for an experiment".to_owned()),
            false => String::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned()),
        });
    match read.and_then(|text| text.parse::<toml::Table>().map_err(|why| why.message().to_owned()))
    {
        Ok(table) => table,
        Err(why) => {
            notes.report_wrong_value(
                *span,
                Wrong::new(format!("the experiment `{}` cannot be read: {why}", clip_text(path))),
            );
            toml::Table::new()
        }
    }
}

/// Names the experiment; otherwise each cell would be named like its file.
fn name_experiment(base: &mut toml::Table, name: &str) {
    let settings = base.entry("experiment").or_insert_with(|| Value::Table(toml::Table::new()));
    if let Value::Table(settings) = settings {
        settings.entry("name").or_insert_with(|| Value::String(name.to_owned()));
    }
}

fn lab_name(set: Option<&At<String>>, base: &toml::Table, path: &Path) -> String {
    let of_experiment =
        || base.get("experiment").and_then(|settings| settings.get("name")).and_then(Value::as_str);
    let of_file = || path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let candidate = set
        .map(|at| at.value.clone())
        .or_else(|| of_experiment().map(str::to_owned))
        .or_else(of_file);
    candidate.filter(|name| values::check_name(name).is_ok()).unwrap_or_else(|| "lab".to_owned())
}
