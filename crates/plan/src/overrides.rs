//! Keys of an experiment set on the command line: the file's text with other values.

use crate::load;
use crate::problem::Problems;
use crate::text::quote_toml;
use punctual_core::{BoundComparison, SeriesRequirement};
use std::path::Path;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A key of every `[[measure]]`, with its value in TOML.
pub type Override = (String, String);

/// A file with other values. A `duration` also applies to every phase, and replaces `samples`.
///
/// # Errors
/// It is not text, or no TOML with a `[[measure]]`: the reason, in words.
pub fn apply_overrides(
    path: &Path,
    bytes: &[u8],
    overrides: &[Override],
) -> Result<Vec<u8>, OverrideError> {
    if overrides.is_empty() {
        return Ok(bytes.to_vec());
    }
    let mut text = toml_of(path, bytes)?;
    for (key, value) in overrides {
        text = set_measure_key(&text, key, value).ok_or(OverrideError::NoMeasure)?;
    }
    Ok(text.into_bytes())
}

/// A file with these requirements added to its measures, by their names. One on the same figure is
/// replaced; everything else stays as it is.
///
/// # Errors
/// As [`apply_overrides`]; or no measure has the name.
pub fn add_requirements(
    path: &Path,
    bytes: &[u8],
    requirements: &[(String, String)],
) -> Result<Vec<u8>, OverrideError> {
    let mut text = toml_of(path, bytes)?;
    for (measure, requirement) in requirements {
        text = add_requirement(&text, measure, requirement)?;
    }
    Ok(text.into_bytes())
}

fn toml_of(path: &Path, bytes: &[u8]) -> Result<String, OverrideError> {
    if path.extension().is_some_and(|ending| ending == "cfg") {
        return Err(OverrideError::NotToml);
    }
    Ok(load::decode_text(path, bytes).map_err(OverrideError::NotText)?.text.clone())
}

fn add_requirement(text: &str, measure: &str, requirement: &str) -> Result<String, OverrideError> {
    let (document, _) = DeTable::parse_recoverable(text);
    let measures = find_tables(&document, "measure");
    let table = find_measure(&measures, measure)
        .ok_or_else(|| OverrideError::NoSuchMeasure(measure.to_owned()))?;
    let about = |text: &str| -> Option<SeriesRequirement> { text.parse().ok() };
    let is_same = |a: &SeriesRequirement, b: &SeriesRequirement| {
        let comparison = a.requirement.comparison;
        (&a.thread, a.kind, a.requirement.metric) == (&b.thread, b.kind, b.requirement.metric)
            && matches!(comparison, BoundComparison::Less | BoundComparison::LessOrEqual)
    };
    let new = about(requirement);
    let old = table.get("require").map(Spanned::get_ref);
    let stated: Vec<String> = match old {
        Some(DeValue::Array(all)) => {
            let texts = all.iter().filter_map(|one| one.get_ref().as_str().map(str::to_owned));
            texts.collect()
        }
        Some(DeValue::String(one)) => vec![one.to_string()],
        _ => Vec::new(),
    };
    let stays = |text: &String| match about(text).zip(new.as_ref()) {
        Some((other, new)) => !is_same(&other, new),
        None => true,
    };
    let requirement_texts = stated.into_iter().filter(stays).chain([requirement.to_owned()]);
    let quoted_texts: Vec<String> = requirement_texts.map(|one| quote_toml(&one)).collect();
    let value = format!("[{}]", quoted_texts.join(", "));
    let (place, new) = edit_key(table, "require", &value).ok_or(OverrideError::NoMeasure)?;
    let mut text = text.to_owned();
    text.replace_range(place, &new);
    Ok(text)
}

/// The measure with this name; one without a name is called by its kind, and a second one of it by
/// its number.
fn find_measure<'t, 'd>(measures: &[&'t DeTable<'d>], name: &str) -> Option<&'t DeTable<'d>> {
    let word = |table: &DeTable<'_>, key: &str| -> Option<String> {
        table.get(key).and_then(|value| value.get_ref().as_str()).map(str::to_owned)
    };
    if let Some(table) = measures.iter().find(|one| word(one, "name").as_deref() == Some(name)) {
        return Some(*table);
    }
    let unnamed = |one: &&&DeTable<'_>| word(one, "name").is_none();
    let of_kind = |one: &&&DeTable<'_>| word(one, "kind").as_deref() == Some(name);
    let unnamed_of_kind: Vec<&&DeTable<'_>> =
        measures.iter().filter(unnamed).filter(of_kind).collect();
    match (unnamed_of_kind.as_slice(), measures) {
        ([first, ..], _) => Some(**first),
        // The series of a program are called by its threads.
        ([], [only]) if word(only, "kind").as_deref() == Some("program") => Some(*only),
        _ => None,
    }
}

fn find_tables<'t, 'd>(document: &'t Spanned<DeTable<'d>>, name: &str) -> Vec<&'t DeTable<'d>> {
    let found = document.get_ref().get(name).map(Spanned::get_ref);
    let items = found.and_then(DeValue::as_array).into_iter().flatten();
    items.filter_map(|one| one.get_ref().as_table()).collect()
}

/// Why keys cannot be set.
#[derive(Debug, thiserror::Error)]
pub enum OverrideError {
    /// A systress file.
    #[error(
        "--set, --duration and the options of cyclictest change TOML files, not a systress .cfg: \
         convert it with `punctual convert`"
    )]
    NotToml,
    /// It has no measure.
    #[error("there is no `[[measure]]` whose keys could be set")]
    NoMeasure,
    /// No measure has this name.
    #[error("no `[[measure]]` has the name {}: give the measure one", quote_toml(.0))]
    NoSuchMeasure(String),
    /// It is not UTF-8, or too large.
    #[error("{0}")]
    NotText(Problems),
}

/// A text with one key of every measure set; `None` if there is no measure. Invalid TOML is
/// unchanged: the error is reported when the file is read.
fn set_measure_key(text: &str, key: &str, value: &str) -> Option<String> {
    let (document, mistakes) = DeTable::parse_recoverable(text);
    let measures = find_tables(&document, "measure");
    if measures.is_empty() {
        return (!mistakes.is_empty()).then(|| text.to_owned());
    }
    let phases = if key == "duration" { find_tables(&document, "phase") } else { Vec::new() };
    let mut edits: Vec<(std::ops::Range<usize>, String)> = Vec::new();
    for table in &phases {
        edits.extend(edit_key(table, key, value));
    }
    for table in measures {
        let instead = match key {
            "duration" if !table.contains_key(key) && table.contains_key("samples") => "samples",
            "samples" if !table.contains_key(key) && table.contains_key("duration") => "duration",
            _ => key,
        };
        match instead == key {
            // The phases' lengths are sufficient.
            true if !phases.is_empty() && !table.contains_key(key) => {}
            true => edits.extend(edit_key(table, key, value)),
            false => edits.extend(rename_key(table, instead, key, value)),
        }
    }
    edits.sort_by_key(|(place, _)| std::cmp::Reverse(place.start));
    let mut text = text.to_owned();
    for (place, new) in edits {
        text.replace_range(place, &new);
    }
    Some(text)
}

/// Replaces the value of a key, or inserts a line with it after the first plain one.
fn edit_key(
    table: &DeTable<'_>,
    key: &str,
    value: &str,
) -> Option<(std::ops::Range<usize>, String)> {
    if let Some(old) = table.get(key) {
        return Some((old.span(), value.to_owned()));
    }
    let is_plain = |value: &&Spanned<DeValue<'_>>| {
        !matches!(value.get_ref(), DeValue::Table(_) | DeValue::Array(_))
    };
    let first = table.iter().map(|(_, value)| value).filter(is_plain);
    let end = first.min_by_key(|value| value.span().start)?.span().end;
    Some((end..end, format!("\n{key} = {value}")))
}

/// Replaces a key by another.
fn rename_key(
    table: &DeTable<'_>,
    old: &str,
    key: &str,
    value: &str,
) -> Option<(std::ops::Range<usize>, String)> {
    let (name, held) = table.iter().find(|(name, _)| name.get_ref() == old)?;
    Some((name.span().start..held.span().end, format!("{key} = {value}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn applied(text: &str, key: &str, value: &str) -> String {
        let one = [(key.to_owned(), value.to_owned())];
        let bytes = apply_overrides(Path::new("x.toml"), text.as_bytes(), &one).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    const TWO: &str = "name = \"x\"\n[[measure]]\nkind = \"timer\" # one\nperiod = \"1ms\"\n\
                       [[measure]]\nkind = \"timer\"\nsamples = 10\n";

    #[test]
    fn a_key_is_replaced_or_added_in_every_measure() {
        let text = applied(TWO, "period", "\"200us\"");
        assert_eq!(text.matches("period = \"200us\"").count(), 2, "{text}");
        assert!(!text.contains("1ms") && text.contains("# one"), "{text}");
        assert!(toml::from_str::<toml::Table>(&text).is_ok(), "{text}");
    }

    #[test]
    fn requirements_are_added_to_the_measure_with_their_name() {
        let file = "# kept\n[[measure]]\nname = \"servo\" # why\nkind = \"timer\"\nrequire = \
                    [\"p99 < 9us\", \"max < 1ms\"]\n[[measure]]\nkind = \"syscall\"\n";
        let write = |all: &[(&str, &str)]| {
            let all: Vec<(String, String)> =
                all.iter().map(|(of, text)| ((*of).to_owned(), (*text).to_owned())).collect();
            add_requirements(Path::new("x.toml"), file.as_bytes(), &all)
        };
        let both = [("servo", "p99 < 43.1us"), ("syscall", "skipped <= 0"), ("servo", "p50 < 5us")];
        let text = String::from_utf8(write(&both).unwrap()).unwrap();
        let expected = file
            .replace(
                "[\"p99 < 9us\", \"max < 1ms\"]",
                "[\"max < 1ms\", \"p99 < 43.1us\", \"p50 < \
                     5us\"]",
            )
            .replace("\"syscall\"", "\"syscall\"\nrequire = [\"skipped <= 0\"]");
        assert_eq!(text, expected);
        let wrong = write(&[("motor", "p99 < 1us")]).unwrap_err().to_string();
        assert!(wrong.contains("motor"), "{wrong}");
    }

    #[test]
    fn an_overriding_duration_replaces_samples_and_phase_durations() {
        let text = applied(TWO, "duration", "\"3s\"");
        assert_eq!(text.matches("duration = \"3s\"").count(), 2, "{text}");
        assert!(!text.contains("samples"), "{text}");
        let phases = "[[phase]]\nname = \"a\"\nduration = \"9s\"\n[[measure]]\nkind = \"timer\"\n";
        let text = applied(phases, "duration", "\"3s\"");
        assert_eq!(text.matches("duration").count(), 1, "{text}");
        assert!(text.contains("\"3s\"") && !text.contains("9s"), "{text}");
    }

    #[test]
    fn an_override_is_refused_without_a_measure_or_outside_of_toml() {
        let one = [("period".to_owned(), "1".to_owned())];
        let apply =
            |path: &str, text: &str| apply_overrides(Path::new(path), text.as_bytes(), &one);
        assert!(matches!(apply("x.toml", "name = \"x\"\n"), Err(OverrideError::NoMeasure)));
        assert!(matches!(apply("x.cfg", ""), Err(OverrideError::NotToml)));
        assert_eq!(apply("x.toml", "[[measure]\n").unwrap(), b"[[measure]\n");
    }

    #[test]
    fn an_override_keeps_subtables_of_a_measure() {
        let text = "[[measure]]\nkind = \"timer\"\n[measure.histogram]\nrange = \"1ms\"\n";
        let text = applied(text, "priority", "80");
        let parsed: toml::Table = toml::from_str(&text).unwrap();
        assert_eq!(parsed["measure"][0]["priority"].as_integer(), Some(80));
    }
}
