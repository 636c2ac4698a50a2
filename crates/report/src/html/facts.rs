//! A JSON document as lines "fact: value". Reads the environment of a run without knowledge of its
//! fields, so that the report also shows fields of later versions. Facts that are unavailable or
//! were not requested are marked.

use super::table::{Cell, Column, Table};
use super::text::clip_text;
use crate::format::span_text;
use punctual_core::{CpuSet, Nanos};
use serde_json::{Map, Value};

/// Lines beyond this are not shown.
pub const MAX_LINES: usize = 800;
/// A value is cut at this many characters.
const MAX_VALUE: usize = 1_500;
/// Entries of a list beyond this are not shown.
const MAX_ENTRIES: usize = 64;
/// Keys that identify the entries of a list; entries that otherwise agree are shown as one.
const IDENTITIES: [&str; 3] = ["cpu", "node", "shared"];

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct FactLine {
    /// The path of the fact: `Kernel`, `Tick`, `Hz`.
    pub path: Vec<String>,
    pub known: FactValue,
}

/// The value of a fact, or why there is none.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FactValue {
    Value(String),
    /// It could not be determined.
    Unavailable(String),
    NotAsked,
}

impl FactValue {
    /// The value as a table cell.
    pub(crate) fn to_cell(&self) -> Cell {
        match self {
            FactValue::Value(text) => Cell::text(text),
            FactValue::Unavailable(why) => Cell::missing_value("unavailable").sub(why),
            FactValue::NotAsked => Cell::missing_value("not recorded"),
        }
    }
}

/// A [`punctual_core::Fact`] in JSON.
enum JsonFact<'a> {
    Known(&'a Value),
    Unavailable(&'a str),
    NotAsked,
}

fn as_fact(value: &Value) -> Option<JsonFact<'_>> {
    match value {
        Value::String(word) if word == "not_asked" => Some(JsonFact::NotAsked),
        Value::Object(fields) if fields.len() == 1 => {
            let (name, inner) = fields.iter().next()?;
            match (name.as_str(), inner) {
                ("known", inner) => Some(JsonFact::Known(inner)),
                ("unavailable", Value::String(why)) => Some(JsonFact::Unavailable(why)),
                _ => None,
            }
        }
        _ => None,
    }
}

/// The value of a fact; any other value unchanged.
pub fn known_value(value: &Value) -> Option<&Value> {
    match as_fact(value) {
        Some(JsonFact::Known(inner)) => Some(inner),
        Some(_) => None,
        None => Some(value),
    }
}

/// The value at a path of field names, through facts.
pub(crate) fn value_at<'a>(document: &'a Value, path: &[&str]) -> Option<&'a Value> {
    path.iter().try_fold(known_value(document)?, |value, name| known_value(value.get(name)?))
}

/// The text at a path of field names, through facts.
pub(crate) fn text_at<'a>(document: &'a Value, path: &[&str]) -> Option<&'a str> {
    value_at(document, path)?.as_str()
}

/// A document as a table.
pub(crate) fn fact_table(caption: &str, document: &Value) -> Table {
    let row = |line: &FactLine| vec![Cell::text(line.path.join(" › ")), line.known.to_cell()];
    Table {
        caption: caption.to_owned(),
        columns: vec![Column::text("Fact"), Column::text("Value")],
        rows: fact_lines(document, &[]).iter().map(row).collect(),
        sortable: false,
    }
}

/// All facts of a document, by the names of their fields, without the top fields named.
pub(crate) fn fact_lines(document: &Value, without: &[&str]) -> Vec<FactLine> {
    let mut lines = Vec::new();
    match known_value(document) {
        Some(Value::Object(fields)) => {
            for (name, value) in fields.iter().filter(|(name, _)| !without.contains(&name.as_str()))
            {
                walk_value(&mut vec![field_label(name)], name, value, &mut lines);
            }
        }
        _ => walk_value(&mut vec!["Document".to_owned()], "", document, &mut lines),
    }
    lines
}

fn walk_value(path: &mut Vec<String>, field: &str, value: &Value, lines: &mut Vec<FactLine>) {
    if lines.len() >= MAX_LINES {
        return;
    }
    let mut say = |known: FactValue| lines.push(FactLine { path: path.clone(), known });
    let value = match as_fact(value) {
        Some(JsonFact::Unavailable(why)) => {
            return say(FactValue::Unavailable(clip_text(why, MAX_VALUE)));
        }
        Some(JsonFact::NotAsked) => return say(FactValue::NotAsked),
        Some(JsonFact::Known(inner)) => inner,
        None => value,
    };
    match value {
        Value::Object(fields) if is_long_list_of_words(fields) => {
            say(FactValue::Value(one_line(value, field)))
        }
        Value::Object(fields) if fields.is_empty() => say(FactValue::Value("none".to_owned())),
        Value::Object(fields) => {
            // A file path is shown as it is, not as a tree.
            for (name, inner) in fields {
                path.push(field_label(name));
                walk_value(path, name, inner, lines);
                path.pop();
            }
        }
        Value::Array(entries) if entries.iter().any(Value::is_object) => {
            walk_list(path, entries, lines)
        }
        other => say(FactValue::Value(one_line(other, field))),
    }
}

/// Whether it is `CONFIG_…` or similar: short values under many names.
fn is_long_list_of_words(fields: &Map<String, Value>) -> bool {
    let short = |value: &Value| {
        value.as_str().is_none_or(|text| text.len() < 24) && !value.is_object() && !value.is_array()
    };
    fields.len() > 12 && fields.values().all(short)
}

/// A list of objects: equal ones together, under their identities; others on a line each.
fn walk_list(path: &mut Vec<String>, entries: &[Value], lines: &mut Vec<FactLine>) {
    let mut groups: Vec<(Vec<String>, &str, Value)> = Vec::new();
    for entry in entries.iter().take(1_024) {
        let Some(identity) = IDENTITIES.iter().find(|name| entry.get(**name).is_some()) else {
            continue;
        };
        let id = one_line(&entry[*identity], identity);
        let rest = without_identity(entry, identity, &id);
        match groups.iter_mut().find(|(_, name, other)| name == identity && *other == rest) {
            Some((ids, ..)) => ids.push(id),
            None => groups.push((vec![id], identity, rest)),
        }
    }
    if groups.is_empty() {
        let texts: Vec<String> =
            entries.iter().take(MAX_ENTRIES).map(|entry| one_line(entry, "")).collect();
        let further_entries = entries.len().saturating_sub(MAX_ENTRIES);
        let further_note = if further_entries > 0 {
            format!("\nand {further_entries} more")
        } else {
            String::new()
        };
        lines.push(FactLine {
            path: path.clone(),
            known: FactValue::Value(clip_text(&(texts.join("\n") + &further_note), MAX_VALUE)),
        });
        return;
    }
    for (ids, identity, rest) in groups.iter().take(MAX_ENTRIES) {
        let what = if *identity == "shared" { "shared by CPU" } else { identity };
        let ids = ids.join(",");
        let ids = ids.parse::<CpuSet>().map_or(ids, |set| set.to_string());
        path.push(format!("{} {}", field_label(what), clip_text(&ids, 60)));
        match rest {
            Value::Object(fields)
                if fields
                    .values()
                    .all(|v| known_value(v).is_some_and(|v| !v.is_object() && !v.is_array())) =>
            {
                lines.push(FactLine {
                    path: path.clone(),
                    known: FactValue::Value(one_line(rest, "")),
                });
            }
            rest => walk_value(path, "", rest, lines),
        }
        path.pop();
    }
}

/// The entry without its identity field, and without its number in the paths of reasons.
fn without_identity(entry: &Value, identity: &str, id: &str) -> Value {
    let mut rest = entry.clone();
    if let Some(fields) = rest.as_object_mut() {
        fields.remove(identity);
    }
    fn replace_text(value: &mut Value, from: &str, to: &str) {
        match value {
            Value::String(text) if text.contains(from) => *text = text.replace(from, to),
            Value::Array(inner) => inner.iter_mut().for_each(|v| replace_text(v, from, to)),
            Value::Object(inner) => inner.values_mut().for_each(|v| replace_text(v, from, to)),
            _ => {}
        }
    }
    replace_text(&mut rest, &format!("/{identity}{id}/"), &format!("/{identity}N/"));
    rest
}

/// A value on one line: `level 1, kind Data, size 48K`.
fn one_line(value: &Value, field: &str) -> String {
    let text = match (as_fact(value), value) {
        (Some(JsonFact::Known(inner)), _) => one_line(inner, field),
        (Some(JsonFact::Unavailable(_)), _) => "unavailable".to_owned(),
        (Some(JsonFact::NotAsked), _) => "not recorded".to_owned(),
        (_, Value::Null) if field == "runtime" => "no limit".to_owned(),
        (_, Value::Null) => "none".to_owned(),
        (_, Value::Bool(yes)) => if *yes { "yes" } else { "no" }.to_owned(),
        (_, Value::Number(number)) => {
            number.as_i64().map_or(number.to_string(), |n| format_quantity(n, field))
        }
        (_, Value::String(text)) if text.is_empty() => "(empty)".to_owned(),
        (_, Value::String(text)) => text.clone(),
        (_, Value::Array(entries)) if entries.is_empty() => "none".to_owned(),
        (_, Value::Array(entries)) => entries
            .iter()
            .take(MAX_ENTRIES)
            .map(|v| one_line(v, field))
            .collect::<Vec<_>>()
            .join(", "),
        (_, Value::Object(fields)) => {
            let word = |(name, v): (&String, &Value)| match v {
                Value::String(text) if fields.len() > 12 => format!("{name}={text}"),
                v => format!("{} {}", name.replace('_', " "), one_line(v, name)),
            };
            fields.iter().take(256).map(word).collect::<Vec<_>>().join(if fields.len() > 12 {
                " "
            } else {
                ", "
            })
        }
    };
    clip_text(&text, MAX_VALUE)
}

/// A number with the unit of its field in punctual's documents (docs/reference/bundle.md).
fn format_quantity(n: i64, field: &str) -> String {
    let scaled = |base: f64, units: &[&str]| {
        let power = (0..units.len()).rev().find(|k| n as f64 >= base.powi(*k as i32)).unwrap_or(0);
        let value = n as f64 / base.powi(power as i32);
        format!("{} {}", (value * 100.0).round() / 100.0, units[power])
    };
    match field {
        "total" | "available" | "swap_total" | "swap_free" | "memory" => {
            scaled(1024.0, &["B", "KiB", "MiB", "GiB", "TiB"])
        }
        "min" | "max" | "hardware_max" | "current" => scaled(1000.0, &["kHz", "MHz", "GHz"]),
        "period" | "runtime" | "exit_latency" | "residency" => span_text(Nanos(n)),
        _ => n.to_string(),
    }
}

/// `command_line` → `Command line`; paths and the kernel's own names stay as they are.
pub(crate) fn field_label(field: &str) -> String {
    const KNOWN: [(&str, &str); 12] = [
        ("cpu", "CPU"),
        ("cpus", "CPUs"),
        ("cpu_model", "CPU model"),
        ("hz", "HZ"),
        ("tsc", "TSC"),
        ("smi", "SMIs"),
        ("rt_throttling", "Real-time throttling"),
        ("nohz_full", "nohz_full"),
        ("clock", "Clock source"),
        ("nodes", "Memory nodes"),
        ("id", "Rule"),
        ("os", "Operating system"),
    ];
    if let Some((_, label)) = KNOWN.iter().find(|(name, _)| *name == field) {
        return (*label).to_owned();
    }
    let is_field = field
        .chars()
        .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | '-' | ' '));
    let words =
        if is_field { field.replace(['_', '-'], " ") } else { return clip_text(field, 120) };
    let mut letters = words.chars();
    let first = letters.next().map(|c| c.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn printed(document: Value) -> String {
        let line = |line: &FactLine| format!("{} = {:?}", line.path.join(" › "), line.known);
        fact_lines(&document, &["before"]).iter().map(line).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn missing_values_are_shown_with_their_reason() {
        let document = json!({
            "kernel": {
                "release": {"known": "6.1"},
                "command_line": {"unavailable": "cannot read /proc/cmdline"}, "hz": "not_asked",
            },
            "isolated": {"known": ""}, "before": {"interrupts": "not_asked"},
            "rt_throttling": {"known": {"period": 1_000_000_000, "runtime": null}},
            "memory": {"total": {"known": 25_276_076_032u64}, "swap_total": {"known": 0}},
        });
        insta::assert_snapshot!(printed(document), @r#"
        Isolated = Value("(empty)")
        Kernel › Command line = Unavailable("cannot read /proc/cmdline")
        Kernel › HZ = NotAsked
        Kernel › Release = Value("6.1")
        Memory › Swap total = Value("0 B")
        Memory › Total = Value("23.54 GiB")
        Real-time throttling › Period = Value("1 s")
        Real-time throttling › Runtime = Value("no limit")
        "#);
    }

    #[test]
    fn cpus_with_equal_facts_are_merged() {
        let cpu = |n: u64, governor: Value| {
            let frequency = json!({"governor": governor, "max": {"known": 3_200_000}});
            json!({"cpu": n, "frequency": frequency})
        };
        let refused =
            |n: u64| json!({"unavailable": format!("cannot read /sys/cpu/cpu{n}/governor")});
        let list = json!({"cpus": {"known": [
            cpu(0, refused(0)), cpu(1, refused(1)), cpu(2, json!({"known": "performance"})),
        ]}});
        insta::assert_snapshot!(printed(list), @r#"
        CPUs › CPU 0-1 › Frequency › Governor = Unavailable("cannot read /sys/cpu/cpuN/governor")
        CPUs › CPU 0-1 › Frequency › Max = Value("3.2 GHz")
        CPUs › CPU 2 › Frequency › Governor = Value("performance")
        CPUs › CPU 2 › Frequency › Max = Value("3.2 GHz")
        "#);
    }
}
