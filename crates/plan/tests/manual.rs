//! The man page is complete, and its examples run.

mod markdown;
mod roff;

use crate::support;
use punctual_core::CpuSet;
use punctual_plan::{
    DefaultValue, LoadOptions, ResolveContext, SectionKey, ValueType, Word, WorkloadKind,
    experiment_sections, load_and_resolve,
};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

const REGENERATE: &str = "PUNCTUAL_WRITE_DOCS=1 cargo test -p punctual-plan --test pure manual::";
/// The markers around the entries of some keys.
const BEGIN: &str = ".\\\" keys: ";
const END: &str = ".\\\" end of keys\n";

fn path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/man/punctual-experiment.5")
}

fn manual() -> String {
    std::fs::read_to_string(path()).unwrap()
}

/// Every place of the page with the keys that it documents: a section, or a kind of measure.
fn places() -> Vec<(String, Vec<SectionKey>)> {
    let mut places = Vec::new();
    for section in experiment_sections() {
        for key in &section.keys {
            if let ValueType::Sections(keys) = &key.value {
                let outer = section.header.trim_matches(['[', ']']);
                places.push((format!("[[{outer}.{}]]", key.name), keys.clone()));
            }
        }
        let is_value = |key: &SectionKey| !matches!(key.value, ValueType::Sections(_));
        places.push((section.header.into(), section.keys.into_iter().filter(is_value).collect()));
    }
    let kinds = WorkloadKind::WORDS.iter().map(|(word, kind)| ((*word).to_owned(), kind.keys()));
    places.extend(kinds);
    places
}

/// The page with all entries regenerated, and the keys that it documents.
fn generated(page: &str) -> (String, BTreeSet<(String, &'static str)>) {
    let places = places();
    let (mut text, mut documented) = (String::new(), BTreeSet::new());
    let mut rest = page;
    while let Some((before, after)) = rest.split_once(BEGIN) {
        let (header, after) = after.split_once('\n').unwrap();
        let (_, after) = after.split_once(END).unwrap_or_else(|| panic!("no end of {header}"));
        let mut words = header.split(' ');
        let place = words.next().unwrap();
        let (_, keys) = places.iter().find(|(name, _)| name == place).expect(place);
        let named: Vec<&str> = words.collect();
        let keys: Vec<&SectionKey> =
            keys.iter().filter(|key| named.is_empty() || named.contains(&key.name)).collect();
        documented.extend(keys.iter().map(|key| (place.to_owned(), key.name)));
        text += &format!("{before}{BEGIN}{header}\n{}{END}", roff::entries(keys));
        rest = after;
    }
    (text + rest, documented)
}

#[test]
fn every_key_is_documented() {
    let page = manual();
    let (text, documented) = generated(&page);
    for (place, keys) in places() {
        for key in keys {
            assert!(documented.contains(&(place.clone(), key.name)), "{place}: {}", key.name);
        }
    }
    if std::env::var_os("PUNCTUAL_WRITE_DOCS").is_some() {
        std::fs::write(path(), text).unwrap();
        return;
    }
    assert!(page == text, "the man page is out of date; regenerate it: {REGENERATE}");
}

/// The text before and after the rows of the keys of lab files.
const ROWS: [&str; 2] = ["| key of `[lab]` | |\n|---|---|\n", "\n[lab.schema.json]"];

#[test]
fn every_key_of_labs_is_documented() {
    let sections = punctual_plan::lab::lab_sections();
    let rows: String =
        sections.iter().map(|section| markdown::rows(&section.keys, section.header)).collect();
    check_rows("lab.md", ROWS, &rows);
}

#[test]
fn every_kind_of_workload_is_in_its_table() {
    let row = |(word, kind): &(&str, WorkloadKind)| {
        let validated_by = kind.validated_by();
        format!("| `{word}` | {} | {validated_by} |\n", kind.sampled_by().as_words())
    };
    let rows: String = WorkloadKind::WORDS.iter().map(row).collect();
    let around =
        ["| kind | samples taken by | counts compared with |\n|---|---|---|\n", "\n**Validated"];
    check_rows("workloads.md", around, &rows);
}

/// Compares the rows of a table of a reference page, between these texts; writes them on request.
fn check_rows(page: &str, [begin, end]: [&str; 2], rows: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference").join(page);
    let text = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once(begin).expect("the table's head");
    let (_, after) = rest.split_once(end).expect("the text after the table");
    let made = format!("{before}{begin}{rows}{end}{after}");
    if std::env::var_os("PUNCTUAL_WRITE_DOCS").is_some() {
        std::fs::write(path, made).unwrap();
        return;
    }
    assert!(text == made, "docs/reference/{page} is out of date; regenerate it: {REGENERATE}");
}

/// A file with every section that omits every optional key.
const SPARSE: &str = "[experiment]\n[record]\n[explain]\n[partition]\ncpus = '2'\n[target]\n\
                      kind = 'vm'\nkernel = '6.1'\n[[measure]]\nkind = 'timer'\nsystress = {}\n\
                      cpus = '2'\nphases = ['phase-1']\n[[load]]\ncommand = 'x'\n[[phase]]\n\
                      duration = '1s'\nloads = ['x']\n";

#[test]
fn documented_defaults_equal_those_of_plans() {
    let plan: toml::Table = support::plan(SPARSE).to_toml().parse().unwrap();
    let mut compared = 0;
    for section in experiment_sections() {
        let name = section.header.trim_matches(['[', ']']);
        let written = match plan.get(name) {
            Some(toml::Value::Array(several)) => several[0].as_table().unwrap(),
            Some(table) => table.as_table().unwrap(),
            None => continue,
        };
        for key in section.keys {
            let stated = match &key.default {
                DefaultValue::Value(value) => value,
                // Some defaults are words that contain the value.
                DefaultValue::Words(words) if words.starts_with('`') && words.ends_with("]`") => {
                    words.trim_matches('`')
                }
                _ => continue,
            };
            let stated: toml::Table = format!("value = {stated}").parse().unwrap();
            // Keys that a plan omits have an obvious value, or belong to another policy.
            if let Some(value) = written.get(key.name) {
                assert_eq!(*value, stated["value"], "{name}: {}", key.name);
                compared += 1;
            }
        }
    }
    assert!(compared >= 20, "{compared}");
}

#[test]
fn every_example_of_the_manual_is_valid() {
    let cpus: CpuSet = "0-3".parse().unwrap();
    let context = ResolveContext { online: cpus.clone(), present: cpus, ..support::context() };
    let manual = manual();
    let examples: Vec<&str> =
        manual.split("\n.EX\n").skip(1).filter_map(|rest| rest.split("\n.EE\n").next()).collect();
    assert!(examples.len() >= 4);
    for example in examples {
        let read = load_and_resolve(
            Path::new("example"),
            example.as_bytes(),
            &LoadOptions::default(),
            &context,
        );
        let (_, resolved) = read.unwrap_or_else(|problems| panic!("{problems}"));
        assert!(resolved.warnings.is_empty(), "{}", resolved.warnings);
    }
}
