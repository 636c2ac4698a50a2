//! The report in a headless browser: plots are drawn, nothing fails, no hostile text runs, no
//! request is made.

use crate::browser::{Bait, assert_drawn, open};
use crate::support::synthetic::{Load, Recipe, write};
use crate::support::{fixtures, hostile_bundle, page_of};

#[test]
fn plots_are_drawn() {
    let directory = tempfile::tempdir().unwrap();
    let bundle = write(&directory.path().join("b"), &Recipe::default());
    let Some(seen) = open(&page_of(&[&bundle]), directory.path()) else { return };
    assert_drawn(&seen, 3);
    let chips = seen.document.matches("aria-pressed=\"true\"").count();
    assert_eq!(chips, 16, "two legends of eight series");
    assert!(seen.document.contains("aria-sort=\"none\""), "tables can be sorted");
}

#[test]
fn series_of_64_cpus_are_merged_into_one_curve_per_phase() {
    let directory = tempfile::tempdir().unwrap();
    let phases = vec![("idle".into(), Load::Idle), ("loaded".into(), Load::Overloaded)];
    let recipe = Recipe { cpus: 64, samples: 500, phases, ..Recipe::default() };
    let bundle = write(&directory.path().join("b"), &recipe);
    let Some(seen) = open(&page_of(&[&bundle]), directory.path()) else { return };
    assert_drawn(&seen, 3);
    assert_eq!(seen.document.matches("aria-pressed=\"true\"").count(), 4);
}

#[test]
fn every_fixture_page_draws_its_plots_in_a_browser() {
    for (name, bundle) in fixtures() {
        println!("{name}");
        let directory = tempfile::tempdir().unwrap();
        let Some(seen) = open(&page_of(&[&bundle]), directory.path()) else { return };
        let timed = bundle.all_series().any(|(_, series)| {
            !series.state.data.worst.is_empty()
                || series
                    .load_log()
                    .is_ok_and(|log| !(log.samples.is_empty() && log.windows.is_empty()))
        });
        let accounted =
            bundle.all_series().any(|(_, series)| series.account.known_value().is_some());
        assert_drawn(&seen, 2 + usize::from(timed) + usize::from(accounted));
    }
}

#[test]
fn nothing_hostile_runs_and_nothing_is_asked_for() {
    let directory = tempfile::tempdir().unwrap();
    let bait = Bait::laid();
    let bundle = hostile_bundle(&directory.path().join("b"), &bait.url);
    let page = page_of(&[&bundle]);
    bait.assert_in(&page);
    let Some(seen) = open(&page, directory.path()) else { return };
    assert_drawn(&seen, 3);
    bait.assert_untouched(&seen);
}

/// The histogram by cause is a plot of its own, whose legend toggles causes.
#[test]
fn the_histogram_by_cause_is_drawn() {
    let directory = tempfile::tempdir().unwrap();
    write(&directory.path().join("b"), &Recipe::default());
    let parts = ["irq", "non-preemptible", "<script>later</script>"];
    let row = |from: u64, count: u64| {
        let ns = [count * from / 2, count * from / 4, count * from / 4];
        serde_json::json!({
            "from": from, "width": (1u64 << from.ilog2()) / 64, "count": count, "ns": ns,
            "longest": [count, 0, 0],
        })
    };
    let account = serde_json::json!({"known": {
        "schema": "punctual-account/2", "complete": true, "unattributed": 0, "lost": 0,
        "cost": "not_asked", "parts": parts,
        "buckets": [row(4_096, 900), row(8_192, 90), row(65_536, 9), row(1_048_576, 1)],
    }});
    std::fs::write(directory.path().join("b/phases/000/0000.account.json"), account.to_string())
        .unwrap();
    let bundle = punctual_bundle::Bundle::open(&directory.path().join("b")).unwrap();
    assert_eq!(bundle.damage, Vec::<String>::new());
    let Some(seen) = open(&page_of(&[&bundle]), directory.path()) else { return };
    assert_drawn(&seen, 4);
    let chips = seen.document.matches("aria-pressed=\"true\"").count();
    assert_eq!(chips, 16 + 3, "two legends of eight series, and three causes");
    assert!(seen.document.contains("p99.9 – max"), "the bands are in a table");
}

/// Windows begin at whole seconds of the clock: the first begins before its phase, and a phase may
/// be shorter than one. Its plot begins and ends with the phase, and has a line.
#[test]
fn the_plot_over_time_of_a_short_phase_contains_a_line() {
    let directory = tempfile::tempdir().unwrap();
    let phases = vec![("short".into(), Load::Idle)];
    let recipe = Recipe { cpus: 1, samples: 600, keep: 0, phases, ..Recipe::default() };
    write(&directory.path().join("b"), &recipe);
    // A phase that began 0.2 s after a whole second.
    let path = directory.path().join("b/phases/000/phase.json");
    let mut phase: serde_json::Value =
        serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    let began = phase["started_monotonic"].as_i64().unwrap();
    phase["started_monotonic"] = (began + 200_000_000).into();
    phase["duration"] = 400_000_000.into();
    std::fs::write(&path, phase.to_string()).unwrap();
    let bundle = punctual_bundle::Bundle::open(&directory.path().join("b")).unwrap();
    let Some(seen) = open(&page_of(&[&bundle]), directory.path()) else { return };
    assert_drawn(&seen, 3);
    let value = |name: &str| -> f64 {
        let after = seen
            .document
            .split(&format!("data-{name}=\""))
            .nth(1)
            .unwrap_or_else(|| panic!("no {name}"));
        after.split('"').next().unwrap().parse().unwrap_or_else(|why| panic!("{name}: {why}"))
    };
    assert_eq!((value("from"), value("to")), (0.0, 0.4));
    assert!(value("points") >= 2.0, "a line needs two points");
}
