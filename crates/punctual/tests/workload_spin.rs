//! `punctual measure spin`: every gap has a cause, and the causes add up to the gaps.

use crate::common::measured::{measured, rows};
use crate::common::{Place, text};
use serde_json::Value;

/// The rows of causes, without the one for unobserved time.
fn causes(summary: &Value) -> Vec<&Value> {
    rows(summary, "gaps-by-cause")
        .iter()
        .filter(|row| !row[1].as_str().unwrap().contains("not watched"))
        .collect()
}

#[test]
fn the_times_by_cause_add_up_to_the_gaps() {
    let place = Place::with("");
    let summary = measured(&place, "spin --policy other --duration 1s --cpus 0");
    let series = &summary["phases"][0]["series"][0];
    let gaps: f64 = causes(&summary).iter().map(|row| row[2].as_f64().unwrap()).sum();
    assert_eq!(gaps, series["count"].as_f64().unwrap());
    let longest = rows(&summary, "longest-gaps");
    assert_eq!(
        longest[0][1].as_f64(),
        series["max"].as_f64(),
        "the worst sample is the longest gap"
    );
    assert!(series["min"].as_i64().unwrap() >= 1_000, "none is below the threshold");
    let findings = summary["findings"].to_string();
    if findings.contains("gaps-not-attributed") {
        println!("SKIPPED: gaps are not attributed here: {findings}");
    } else {
        // The tick, or its replacement in the kernel, occurs within a second on a busy CPU.
        let known = causes(&summary).iter().any(|row| row[1] != "not attributed");
        assert!(known, "{summary}");
        // The parts of a gap add up to it.
        for gap in longest {
            let parts: f64 = (3..7).map(|part| gap[part].as_f64().unwrap()).sum();
            assert_eq!(Some(parts), gap[1].as_f64(), "{gap}");
        }
        if findings.contains("gaps-not-divided") {
            println!("SKIPPED: gaps are not divided here: {findings}");
        }
        // The figure beside those from outside.
        let figures = summary["phases"][0]["measures"][0]["notes"]["figures"].to_string();
        assert!(figures.contains("\"steal\""), "{figures}");
    }
}

#[test]
fn real_time_spinning_on_every_cpu_is_refused() {
    let place = Place::with("");
    let refused = place.punctual(&["measure", "spin", "--quiet", "--cpus", "all"]);
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused));
    assert!(
        text(&refused).contains("lock the system up") && text(&refused).contains("--force"),
        "{}",
        text(&refused)
    );
    let in_file = "[[measure]]\nkind = 'spin'\ncpus = 'all'\n";
    for (head, code) in [("", 2), ("[experiment]\nforce = true\n", 0)] {
        place.write("experiment.toml", format!("{head}{in_file}").as_bytes());
        let planned = place.punctual(&["run", "--plan", "experiment.toml"]);
        assert_eq!(planned.status.code(), Some(code), "{}", text(&planned));
    }
}
