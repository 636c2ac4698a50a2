//! docs/reference/json.md is complete: it has every key of every fixture's summary, and every
//! finding about figures.

use punctual_bundle::Bundle;
use punctual_stats::findings::IDS;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Every key of every object, except those of maps by number (percentiles, CPUs) and of a
/// workload's parameters.
fn keys(value: &Value, all: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => map.iter().for_each(|(key, value)| {
            if key.parse::<f64>().is_err() {
                all.insert(key.clone());
            }
            // Parameters are named by their kinds, or hostile.
            if key != "parameters" {
                keys(value, all);
            }
        }),
        Value::Array(list) => list.iter().for_each(|value| keys(value, all)),
        _ => {}
    }
}

#[test]
fn every_json_key_and_finding_is_documented() {
    let documents = ["docs/reference/json.md", "docs/reference/bundle.md"]
        .map(|path| std::fs::read_to_string(root().join(path)).unwrap());
    let described = |word: &str| {
        documents.iter().any(|text| {
            text.contains(&format!("`{word}`")) || text.contains(&format!("\"{word}\""))
        })
    };
    let mut all = BTreeSet::new();
    for name in ["good", "cut-off", "lossy", "hostile", "imported", "workloads"] {
        let bundle = Bundle::open(&root().join("fixtures/bundles").join(name)).unwrap();
        keys(&serde_json::to_value(punctual_stats::summarize_bundle(&bundle)).unwrap(), &mut all);
    }
    for key in all {
        assert!(described(&key), "docs/reference/json.md does not tell of the key {key:?}");
    }
    for (id, meaning) in IDS {
        assert!(
            documents[0].contains(&format!("| `{id}` | {meaning} |")),
            "docs/reference/json.md does not tell of the finding {id}"
        );
    }
}

#[test]
fn a_saved_summary_equals_the_summary_computed_from_its_bundle() {
    for name in ["good", "lossy", "hostile", "imported", "workloads"] {
        let bundle = Bundle::open(&root().join("fixtures/bundles").join(name)).unwrap();
        let saved: punctual_bundle::summary::Summary =
            bundle.read_document("summary").unwrap().unwrap();
        assert!(
            saved == punctual_stats::summarize_bundle(&bundle),
            "{name}: run `cargo run -p punctual-analyze --example fixtures`"
        );
    }
}
