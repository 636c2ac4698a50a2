//! Required contents of a `punctual measure irq` summary, wherever it was measured.

#![allow(dead_code)] // each test file uses its share

use serde_json::Value;

pub fn series<'a>(summary: &'a Value, name: &str) -> &'a Value {
    let all = summary["phases"][0]["series"].as_array().unwrap();
    let found =
        all.iter().find(|series| series["name"].as_str().is_some_and(|full| full.ends_with(name)));
    found.unwrap_or_else(|| panic!("no {name}: {summary}"))
}

pub fn notes(summary: &Value) -> &Value {
    &summary["phases"][0]["measures"][0]["notes"]
}

pub fn figure(summary: &Value, name: &str) -> f64 {
    let figures = notes(summary)["figures"].as_array().unwrap();
    figures
        .iter()
        .find(|figure| figure["name"] == name)
        .map_or(0.0, |figure| figure["value"].as_f64().unwrap())
}

/// Every hop exists, the hops add up to the whole, and every count agrees.
pub fn whole_and_counted(summary: &Value, hops: &[&str], count: u64) {
    whole_and_counted_but(summary, hops, count, 0);
}

/// Like [`whole_and_counted`], with up to `hidden` interrupts in one count alone, because the
/// machine hides them from BPF programs (`punctual_testing::HiddenSamples`).
pub fn whole_and_counted_but(summary: &Value, hops: &[&str], count: u64, hidden: usize) {
    assert_eq!(series(summary, "/whole")["count"].as_u64(), Some(count), "{summary}");
    let unresolved =
        figure(summary, "mixed") + figure(summary, "served-early") + figure(summary, "unstamped");
    if figure(summary, "interrupts") > unresolved {
        let mean = |name: &str| series(summary, name)["mean"].as_f64().unwrap();
        for hop in hops {
            assert!(
                series(summary, hop)["count"].as_f64().unwrap() >= count as f64 - unresolved,
                "{hop}: {summary}"
            );
            assert!(series(summary, hop)["min"].as_i64().unwrap() > 0, "{hop}: {summary}");
        }
        if unresolved == 0.0 {
            let sum: f64 = hops.iter().map(|hop| mean(hop)).sum();
            assert!(
                (sum - mean("/whole")).abs() < 0.01 * mean("/whole") + 10.0,
                "{sum} of {}",
                mean("/whole")
            );
        }
    }
    let validations = notes(summary)["validations"].as_array().unwrap();
    assert!(validations.len() >= 2, "{validations:#?}");
    for validation in validations {
        match validation["counted"].get("known") {
            Some(counted) => {
                // Seen while other tests enable and disable the same tracepoints: some entries
                // reach one count alone, and the result reports it.
                let (claimed, counted) =
                    (validation["claimed"].as_f64().unwrap(), counted.as_f64().unwrap());
                let near = (claimed - counted).abs() <= claimed / 10.0 + hidden as f64;
                assert!(
                    validation["agrees"] == true || near,
                    "{hidden} may be hidden: {validation:#}"
                );
            }
            None => println!("SKIPPED: not counted here: {}", validation["counted"]),
        }
    }
}
