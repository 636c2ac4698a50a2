//! A stored lab: `show`, `report` with the pages of its cells, `lab replay`.

use crate::common::{Place, text};
use std::path::{Path, PathBuf};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(name)
}

/// A writable copy.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().flatten() {
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        match from.is_dir() {
            true => copy(&from, &to),
            false => drop(std::fs::copy(&from, &to).unwrap()),
        }
    }
}

/// A page, with unescaped slashes in its links.
fn read(place: &Place, name: &str) -> String {
    std::fs::read_to_string(place.path().join(name)).unwrap().replace("&#x2f;", "/")
}

#[test]
fn a_saved_lab_has_a_page_for_each_cell() {
    let place = Place::with("");
    copy(&fixture("labs/quick"), &place.path().join("quick"));
    let shown = place.punctual(&["show", "quick"]);
    assert_eq!(shown.status.code(), Some(0), "{}", text(&shown));
    let which = "; meet it: 6.1-rt; not: 6.1";
    for words in ["NOT MET in 1 of 2 cells", which, "__free_one_page", "calls in 6.1: __mmdrop › "]
    {
        assert!(text(&shown).contains(words), "{words}: {}", text(&shown));
    }
    let json = place.punctual(&["show", "quick", "--json"]);
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json["cells"][0]["worst"]["cause"]["who"], "__free_one_page");
    let report = place.punctual(&["report", "quick"]);
    assert_eq!(report.status.code(), Some(0), "{}", text(&report));
    let page = read(&place, "quick/report.html");
    for cell in ["6.1", "6.1-rt"] {
        let own = format!("cells/{cell}/r1/report.html");
        assert!(page.contains(&format!("href=\"{own}\"")), "{own}");
        assert!(place.path().join("quick").join(own).exists());
    }
    // In another place it links to the same pages.
    let elsewhere = place.punctual(&["report", "quick", "-o", "lab.html"]);
    assert_eq!(elsewhere.status.code(), Some(0), "{}", text(&elsewhere));
    let page = read(&place, "lab.html");
    assert!(page.contains("href=\"quick/cells/6.1/r1/report.html\""));
}

#[test]
fn the_same_sample_of_a_lab_is_replayed() {
    let place = Place::with("");
    copy(&fixture("labs/quick"), &place.path().join("quick"));
    let replay = place.punctual(&["lab", "replay", "quick", "6.1"]);
    assert_eq!(replay.status.code(), Some(0), "{}", text(&replay));
    for words in ["__free_one_page", "the samples are those of the lab: worst 27,159 virtual µs"] {
        assert!(text(&replay).contains(words), "{words}: {}", text(&replay));
    }
    // An explanation of other samples does not count: a replay is tried, which is impossible.
    let change = |name: &str, from: &str, to: &str| {
        let path = place.path().join("quick/cells/6.1/r1").join(name);
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "{name}");
        std::fs::write(&path, text.replace(from, to)).unwrap();
    };
    change("exact.json", "cd2f355f93056c61", "0000000000000000");
    change("bundle.json", "\"memory_mb\": 1024", "\"memory_mb\": 99999999");
    let gone = place.punctual(&["lab", "replay", "quick", "6.1"]);
    assert_eq!(gone.status.code(), Some(2), "{}", text(&gone));
    assert!(text(&gone).contains("--exact` runs the experiment again"), "{}", text(&gone));
}
