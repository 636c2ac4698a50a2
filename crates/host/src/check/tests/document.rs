//! docs/reference/check.md is generated from the table of rules.

use super::*;
use std::path::Path;

const REGENERATE: &str =
    "PUNCTUAL_WRITE_DOCS=1 cargo test -p punctual-host the_document_is_up_to_date";

/// The text above the command.
const HEAD: &str = "\
# The rules of `punctual check`

Reference, made from the program.

`punctual check [--cpus LIST]` judges whether a system is ready for real time. The CPUs that it
judges are the named ones, else the isolated ones, else all. The verdict of each rule is `ok`,
`advice`, `warning`, `bad` or `unknown` (a required file cannot be read), with its evidence; a rule
that does not apply is `ok`, with the reason. `--fix` applies what can be fixed by writing files,
through the journal of `punctual isolate`; `punctual isolate undo --fixes` takes it back. The rest
is a command or a boot parameter that is shown. No fix sets all CPUs apart.

The output begins with the number of rules of each verdict. What to do follows, the worst first,
each rule with its evidence, its reason and its fix. Rules that are content, and those that do not
apply, are folded to their names at the end; `--json` has the evidence of all. In a list of
`--cpus`, `N` is the last CPU of the machine.

How to add a rule: write a function over `Context` in the file of its group in
`crates/host/src/check/rules/`, add its entry to the table `RULES` there, its files to
`check/testing/ideal.txt`, a bad case to `check/tests/cases.rs`, and regenerate this page:

";

/// The text below the table.
const TAIL: &str = include_str!("kinds.md");

fn document() -> String {
    let mut text = String::from(HEAD);
    text += &format!("    {REGENERATE}\n\n");
    text += &format!(
        "{} rules:\n\n| group | rule | expected | why | source |\n|---|---|---|---|---|\n",
        all_rules().count()
    );
    for Rule { id, group, title, why, source, .. } in all_rules() {
        text += &format!("| {group} | `{id}` | {title} | {why} | {source} |\n");
    }
    text + "\n" + TAIL
}

#[test]
fn the_document_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/check.md");
    if std::env::var_os("PUNCTUAL_WRITE_DOCS").is_some() {
        std::fs::write(&path, document()).expect("docs/ can be written");
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(written == document(), "docs/reference/check.md is stale: {REGENERATE}");
}
