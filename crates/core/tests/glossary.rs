//! The table of causes in docs/reference/glossary.md is that of `core::cause`, and the table of
//! kinds of entries in docs/reference/attach-cpus.md that of `core::entry`.

use punctual_core::{CauseKind, EntryKind};
use std::path::Path;

const REGENERATE: &str = "PUNCTUAL_WRITE_DOCS=1 cargo test --workspace --test glossary";

/// A bar within a cell would end it.
fn cells(texts: &[&str]) -> String {
    texts.iter().map(|text| text.replace('|', "\\|")).collect::<Vec<_>>().join(" | ")
}

fn rules(rules: &[&str]) -> String {
    rules.iter().map(|rule| format!("`{rule}`")).collect::<Vec<_>>().join(", ")
}

fn causes() -> String {
    let mut text = String::from(
        "\n| cause | in words | meaning | what to do | `punctual check` | source \
         |\n|---|---|---|---|---|---|\n",
    );
    for cause in CauseKind::ALL {
        let (id, words) = (cause.id(), cause.words());
        let row = cells(&[cause.meaning(), cause.advice(), &rules(cause.rules()), cause.source()]);
        text += &format!("| `{id}` | {words} | {row} |\n");
    }
    text + "\n"
}

fn entries() -> String {
    let mut text = String::from(
        "\n| kind | in words | originator | what to do | `punctual check` \
         |\n|---|---|---|---|---|\n",
    );
    for kind in EntryKind::ALL {
        let (id, words) = (kind.id(), kind.words());
        let row = cells(&[kind.originator(), kind.advice(), &rules(kind.rules())]);
        text += &format!("| `{id}` | {words} | {row} |\n");
    }
    text + "\n"
}

/// Compares the part of the page between the marks, or writes it.
fn assert_up_to_date(page: &str, what: &str, table: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(page);
    let text = std::fs::read_to_string(&path).expect("the page can be read");
    let (begin, end) = (format!("<!-- {what} -->\n"), format!("<!-- end of {what} -->\n"));
    let (before, rest) = text.split_once(&begin).expect("the page has the mark of the table");
    let (found, after) = rest.split_once(&end).expect("the page has the end of the table");
    if std::env::var_os("PUNCTUAL_WRITE_DOCS").is_some() {
        let text = format!("{before}{begin}{table}{end}{after}");
        std::fs::write(&path, text).expect("the page can be written");
        return;
    }
    assert!(found == table, "docs/{page} is out of date; regenerate it: {REGENERATE}");
}

#[test]
fn the_table_of_causes_is_up_to_date() {
    assert_up_to_date("reference/glossary.md", "causes", &causes());
}

#[test]
fn the_table_of_entries_is_up_to_date() {
    assert_up_to_date("reference/attach-cpus.md", "entries", &entries());
}
