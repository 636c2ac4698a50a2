//! `punctual run --forever`: until it is interrupted, with a long plot.

use crate::common::{self, Place, eventually, kill, text};
use punctual_bundle::Bundle;

const EXPERIMENT: &str = "[experiment]\nforever = true\n[[measure]]\nname = \"timer\"\n\
                          kind = \"timer\"\ncpus = \"0\"\nthreads = 2\nperiod = \"1ms\"\n\
                          duration = \"1s\"\n";

fn has_checkpoint(place: &Place) -> bool {
    Bundle::open(&place.bundle()).is_ok_and(|bundle| {
        let mut all = bundle.all_series();
        all.next().is_some_and(|(_, series)| series.state.data.sample_count() > 1_500)
    })
}

#[test]
fn killed_at_any_moment_its_bundle_opens_and_another_terminal_shows_it() {
    let place = Place::with(EXPERIMENT);
    let mut child = place.start();
    eventually("a second and a half", || has_checkpoint(&place));
    let watched = place.punctual(&["watch", "--once", "bundle"]);
    assert!(text(&watched).contains("running since"), "{}", text(&watched));
    assert!(text(&watched).contains("timer/1"), "{}", text(&watched));
    kill(child.id(), "KILL");
    child.wait().expect("it is gone");
    let shown = place.punctual(&["show", "bundle"]);
    assert_eq!(shown.status.code(), Some(0), "{}", text(&shown));
    let summary = place.summary();
    assert!(summary["phases"][0]["series"][0]["count"].as_u64().expect("a count") > 1_500);
    // The first line had not ended.
    let none = place.punctual(&["show", "--lines", "bundle"]);
    assert_eq!(none.status.code(), Some(2), "{}", text(&none));
    assert!(text(&none).contains("no long plot yet"), "{}", text(&none));
}

/// kill -9, and the same command again: one run, with a gap.
#[test]
fn after_kill_9_the_same_command_goes_on_in_its_bundle() {
    let place = Place::with(EXPERIMENT);
    let command = ["run", "--quiet", "experiment.toml", "--continue", "bundle"];
    let start = || {
        let mut run = common::punctual();
        run.args(command).current_dir(place.path()).stdin(std::process::Stdio::null());
        run.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
        run.spawn().expect("punctual starts")
    };
    let mut first = start();
    eventually("a second and a half", || has_checkpoint(&place));
    let again = place.punctual(&command);
    assert_eq!(again.status.code(), Some(2), "{}", text(&again));
    assert!(text(&again).contains("its run has not ended"), "{}", text(&again));
    kill(first.id(), "KILL");
    first.wait().expect("it is gone");
    let part = place.bundle().join("parts/001");
    let first = Bundle::open(&place.bundle()).expect("a bundle");
    let second = start();
    eventually("a second part", || {
        Bundle::open(&part)
            .is_ok_and(|part| part.all_series().any(|(_, of)| of.state.data.sample_count() > 0))
    });
    kill(second.id(), "TERM");
    let ended = second.wait_with_output().expect("it ended");
    assert_eq!(ended.status.code(), Some(0), "{}", text(&ended));
    assert!(text(&ended).contains("GAP: nothing was measured from "), "{}", text(&ended));
    let (whole, part) = (Bundle::open(&place.bundle()), Bundle::open(&part));
    let (whole, part) = (whole.expect("the bundle"), part.expect("its part"));
    assert_eq!((whole.damage.len(), whole.parts.len()), (0, 1), "{:?}", whole.damage);
    let all = whole.all_series().zip(first.all_series()).zip(part.all_series());
    for (((_, whole), (_, first)), (_, part)) in all {
        let [whole, first, part] = [whole, first, part].map(|series| &series.state.data);
        assert_eq!(whole.sample_count(), first.sample_count() + part.sample_count());
        assert_eq!((whole.min, whole.max), (first.min.min(part.min), first.max.max(part.max)));
        assert_eq!(whole.sum, first.sum + part.sum);
    }
    let summary = place.summary();
    assert!(summary["gaps"][0]["length_ns"].as_i64() > Some(0), "{}", summary["gaps"]);
    assert_eq!(summary["ending"]["outcome"], "interrupted");
    let header = std::fs::read(place.bundle().join("bundle.json")).expect("the header");
    let header: serde_json::Value = serde_json::from_slice(&header).expect("JSON");
    assert_eq!(header["ending"]["outcome"], "interrupted", "for who reads it alone");
    let report = place.punctual(&["report", "bundle"]);
    assert_eq!(report.status.code(), Some(0), "{}", text(&report));
    let page = std::fs::read_to_string(place.bundle().join("report.html")).expect("a page");
    assert!(page.contains("GAP: nothing was measured from "));
    // Another experiment cannot continue it.
    let other = EXPERIMENT.replace("threads = 2", "threads = 1");
    std::fs::write(place.path().join("experiment.toml"), other).expect("a file");
    let refused = place.punctual(&command);
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused));
    assert!(text(&refused).contains("another experiment"), "{}", text(&refused));
}

#[test]
fn more_than_one_phase_is_refused() {
    let file = format!("{EXPERIMENT}[[phase]]\nduration = \"1s\"\n[[phase]]\nduration = \"1s\"\n");
    let place = Place::with(&file);
    let ran = place.run();
    assert_eq!(ran.status.code(), Some(2), "{}", text(&ran));
    assert!(text(&ran).contains("has one phase"), "{}", text(&ran));
    let place = Place::with(&file.replace("forever = true", "forever = false"));
    let ran = place.punctual(&["run", "-q", "experiment.toml", "-o", "bundle", "--forever"]);
    assert_eq!(ran.status.code(), Some(2), "{}", text(&ran));
    assert!(!place.bundle().exists());
}
