//! BPF programs and a recording of the same run find the same cycles.

use super::{CYCLES, OWN, compiled, measure, series, text};
use serde_json::Value;

/// The recording has the programs of other tests, too.
const NAME: &str = "recorded-too";
const EVENTS: &str = "sched,irq,vectors,softirq,hrtimer,syscall";
/// A thread may be in its first or its last wait when one of the two begins or ends.
const ENDS: u64 = 2;

#[test]
fn cycles_found_in_a_recording_match_those_of_attach() {
    let Some(place) = compiled() else { return };
    std::fs::copy(place.path().join("periodic"), place.path().join(NAME)).unwrap();
    for mode in ["absolute", "timerfd"] {
        let recording = format!("recording-{mode}");
        let attached = format!("attached-{mode}");
        let found = format!("found-{mode}");
        let recorded = place.punctual(
            &[
                &["trace", "--quiet", "--output", &recording, "--events", EVENTS, "--"][..],
                &[env!("CARGO_BIN_EXE_punctual"), "attach", "--quiet", "--output", &attached, "--"],
                &[&format!("./{NAME}"), mode, CYCLES],
            ]
            .concat(),
        );
        assert_eq!(recorded.status.code(), OWN, "{}", text(&recorded));
        let import = ["import", &recording, "--output", &found, "--thread", NAME];
        let imported = place.punctual(&import);
        assert_eq!(imported.status.code(), Some(0), "{}", text(&imported));
        let summary = |directory: &str| -> Value {
            let json = std::fs::read(place.path().join(directory).join("summary.json")).unwrap();
            serde_json::from_slice(&json).unwrap()
        };
        let (by_kernel, by_events) = (summary(&attached), summary(&found));
        let lost = place.punctual(&["show", "--json", &recording]);
        let lost: Value = serde_json::from_slice(&lost.stdout).unwrap();
        if lost["recording"]["lost"] != 0 {
            println!("SKIPPED: the recording has lost events: {}", lost["recording"]["lost"]);
            continue;
        }
        for name in [format!("{NAME}/response"), format!("{NAME}/wakeup")] {
            let count = |summary| series(summary, &name)["count"].as_u64().unwrap();
            let (kernel, events) = (count(&by_kernel), count(&by_events));
            assert!(kernel.abs_diff(events) <= ENDS, "{name}: {kernel} and {events}");
        }
        let kind = |summary| measure(summary, NAME)["parameters"]["cycle"].clone();
        assert_eq!(kind(&by_kernel), kind(&by_events));
    }
}
