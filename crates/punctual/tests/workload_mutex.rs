//! `punctual measure mutex`: locks exclude, the integral is π, and the shapes hold on any machine.

use crate::common::measured::{agrees, figure, measured, notes};
use crate::common::{Place, text};
use serde_json::Value;

fn all_agree(summary: &Value, what: &str) {
    assert!(agrees(summary, what) >= 3, "{what}");
}

#[test]
fn every_lock_excludes_and_gives_pi() {
    let place = Place::with("");
    for lock in ["normal", "pi", "robust", "adaptive", "spin", "ticket", "rwlock"] {
        // Spinning threads delay each other if there are fewer CPUs than threads: few rounds.
        let line = "mutex --threads 3 -s rounds=4 -s terms=600 --duration 60s";
        let summary = measured(&place, &format!("{line} -s lock={lock}"));
        let series = summary["phases"][0]["series"].as_array().unwrap();
        assert_eq!(
            series.iter().map(|series| series["count"].as_u64().unwrap()).collect::<Vec<_>>(),
            [800; 3],
            "{lock}"
        );
        all_agree(&summary, lock);
        assert_eq!(notes(&summary)["validations"][0]["claimed"], 4, "{lock}: rounds");
        assert_eq!(notes(&summary)["validations"][1]["claimed"], 2_400, "{lock}: acquisitions");
        assert_eq!(figure(&summary, "jain-index"), Some(1.0), "{lock}");
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let place = Place::with("");
    for (settings, said) in [
        (&["lock=pthread"][..], "not a lock"),
        (&["terms=3"], "are fewer than"),
        (&["priorities=[1, 2, 3, 4, 5]"], "5 priorities for 4 threads"),
        (&["priorities=[2, 1]"], "only policies fifo and rr"),
        (&["terms=99999999999999999999"], ""),
        (&["hold=2s"], "hold"),
    ] {
        let settings: Vec<&str> = settings.iter().flat_map(|setting| ["-s", setting]).collect();
        let refused = place.punctual(&[&["measure", "mutex", "-q"], &settings[..]].concat());
        assert_eq!(refused.status.code(), Some(2), "{settings:?}: {}", text(&refused));
        assert!(text(&refused).contains(said), "{settings:?}: {}", text(&refused));
    }
    let line = "measure mutex -q --policy fifo -s lock=spin --cpus all --threads per-cpu";
    let refused = place.line(line);
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused));
    assert!(text(&refused).contains("keep every CPU busy"), "{}", text(&refused));
}
