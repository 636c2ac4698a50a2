//! `punctual tune`: refusals, lists, and repeated reports of findings.

use crate::common::{Place, text};
use std::fs;
use std::path::{Path, PathBuf};

/// A tuning that has ended, on a virtual machine (fixtures/tune/README.md).
fn found(place: &Place) -> PathBuf {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/tune/found");
    let to = place.path().join("found");
    fs::create_dir_all(&to).unwrap();
    fs::copy(from.join("tuning.json"), to.join("tuning.json")).unwrap();
    to
}

#[test]
fn what_was_found_is_shown_and_has_a_page() {
    let place = Place::with("");
    found(&place);
    let shown = place.punctual(&["tune", "report", "found"]);
    assert_eq!(shown.status.code(), Some(0), "{}", text(&shown));
    insta::assert_snapshot!(String::from_utf8_lossy(&shown.stdout));
    let page = fs::read_to_string(place.path().join("found/report.html")).unwrap();
    assert!(page.contains("class=\"forest\"") && !page.contains("<script"));
    let json = place.punctual(&["tune", "report", "found", "--json"]);
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).expect("JSON");
    assert_eq!(json["schema"], "punctual-tuning/2");
}

/// Nothing is booted for the list.
#[test]
fn a_virtual_machine_offers_kernel_parameters_for_tuning() {
    let list = |cpus: &str, more: &[&str]| {
        let text_of =
            format!("[[measure]]\nkind = \"timer\"\nduration = \"1s\"\ncpus = \"{cpus}\"\n");
        let place = Place::with(&text_of);
        let listed = place.punctual(&[&["tune", "experiment.toml", "--list"], more].concat());
        assert_eq!(listed.status.code(), Some(0), "{}", text(&listed));
        text(&listed)
    };
    let one = list("0", &["--target", "vm:6.12,cpus=1"]);
    assert!(one.contains("threadirqs") && !one.contains("isolcpus"), "{one}");
    let two = list("1", &["--target", "vm:6.12,cpus=2", "--without", "threaded-irqs"]);
    assert!(two.contains("isolcpus=1") && two.contains("irqaffinity=0"), "{two}");
    assert!(two.contains("--without"), "{two}");
    // Without an experiment, too.
    let place = Place::with("");
    let listed = place.line("tune --list --target vm:6.12,cpus=2 --cpus 1");
    assert_eq!(listed.status.code(), Some(0), "{}", text(&listed));
    assert!(text(&listed).contains("isolcpus=1"), "{}", text(&listed));
}

#[test]
fn impossible_tunings_are_refused_before_any_change() {
    let elsewhere = "[target]\nkind = \"ssh\"\nhost = \"other\"\n[[measure]]\nkind = \"timer\"\n\
                     duration = \"1s\"\n";
    let endless = "[[measure]]\nkind = \"timer\"\n";
    let sound = "[[measure]]\nkind = \"timer\"\nduration = \"1s\"\n";
    let cases: [(&str, &[&str], &str); 5] = [
        (elsewhere, &["experiment.toml"], "over ssh"),
        (endless, &["experiment.toml"], "give --block"),
        (sound, &["experiment.toml", "--require", "skipped == 0"], "not a figure of latencies"),
        (sound, &["experiment.toml", "--only", "no-such"], "no such setting"),
        (sound, &[], "what is to be measured?"),
    ];
    for (experiment, arguments, why) in cases {
        let place = Place::with(experiment);
        let words: Vec<&str> = std::iter::once("tune").chain(arguments.iter().copied()).collect();
        let refused = place.punctual(&words);
        assert_eq!(refused.status.code(), Some(2), "{words:?}: {}", text(&refused));
        assert!(text(&refused).contains(why), "{words:?}: {}", text(&refused));
    }
    let place = Place::with("");
    let each: [&[&str]; 2] = [&["report"], &["--resume"]];
    for arguments in each {
        let refused = place.punctual(&[&["tune"], arguments, &["."]].concat());
        assert_eq!(refused.status.code(), Some(2), "{arguments:?}: {}", text(&refused));
    }
}
