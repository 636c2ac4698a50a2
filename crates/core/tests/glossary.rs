//! docs/glossary.md: its table of causes is that of `core::cause`.

use punctual_core::CauseKind;
use std::path::Path;

const REGENERATE: &str = "PUNCTUAL_WRITE_DOCS=1 cargo test --workspace --test glossary";
const BEGIN: &str = "<!-- causes -->\n";
const END: &str = "<!-- end of causes -->\n";

fn table() -> String {
    let mut text = String::from(
        "\n| cause | in words | meaning | what to do | `punctual check` | source \
         |\n|---|---|---|---|---|---|\n",
    );
    for cause in CauseKind::ALL {
        let rules: Vec<String> = cause.rules().iter().map(|rule| format!("`{rule}`")).collect();
        let (id, words) = (cause.id(), cause.words());
        let (meaning, advice, source) = (cause.meaning(), cause.advice(), cause.source());
        let rules = rules.join(", ");
        // A bar within a cell would end it.
        let row =
            [meaning, advice, &rules, source].map(|text| text.replace('|', "\\|")).join(" | ");
        text += &format!("| `{id}` | {words} | {row} |\n");
    }
    text + "\n"
}

#[test]
fn the_table_of_causes_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/glossary.md");
    let page = std::fs::read_to_string(&path).expect("docs/glossary.md can be read");
    let (before, rest) = page.split_once(BEGIN).expect("the page has the mark of the table");
    let (found, after) = rest.split_once(END).expect("the page has the end of the table");
    if std::env::var_os("PUNCTUAL_WRITE_DOCS").is_some() {
        let page = format!("{before}{BEGIN}{}{END}{after}", table());
        std::fs::write(&path, page).expect("docs/glossary.md can be written");
        return;
    }
    assert!(found == table(), "docs/glossary.md is out of date; regenerate it: {REGENERATE}");
}
