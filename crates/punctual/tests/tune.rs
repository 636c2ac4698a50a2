//! `punctual tune`: refusals, repeated reports of findings, and the files of findings.

use crate::common::{Place, text};
use std::fs;
use std::path::{Path, PathBuf};

/// A tuning that has ended, on a virtual machine (fixtures/tune/README.md).
fn found(place: &Place) -> PathBuf {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/tune/found");
    let to = place.path().join("found");
    fs::create_dir_all(&to).unwrap();
    for name in ["request.json", "tuning.json"] {
        fs::copy(from.join(name), to.join(name)).unwrap();
    }
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
    assert_eq!(json["schema"], "punctual-tuning/1");
}

#[test]
fn what_was_found_is_written_below_a_root_and_removed_again() {
    let place = Place::with("");
    found(&place);
    let root = place.path().join("root");
    fs::create_dir(&root).unwrap();
    let applied = place.punctual(&["tune", "apply", "found", "--root", "root"]);
    assert_eq!(applied.status.code(), Some(0), "{}", text(&applied));
    insta::assert_snapshot!(String::from_utf8_lossy(&applied.stdout));
    let twice = place.punctual(&["tune", "apply", "found", "--root", "root"]);
    assert_eq!(twice.status.code(), Some(2), "{}", text(&twice));
    let undone = place.punctual(&["tune", "apply", "found", "--undo"]);
    assert_eq!(undone.status.code(), Some(0), "{}", text(&undone));
    assert_eq!(fs::read_dir(&root).unwrap().count(), 0);
    let tuned = place.punctual(&["tune", "apply", "found", "--root", "root", "--tuned"]);
    assert_eq!(tuned.status.code(), Some(0), "{}", text(&tuned));
    assert!(root.join("etc/tuned/punctual-tune/tuned.conf").exists());
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
    // Without an experiment, too; and boot parameters of this machine.
    let place = Place::with("");
    let vm = ["--list", "--target", "vm:6.12,cpus=2", "--cpus", "1"];
    let here = ["--list", "--across-reboots"];
    for (arguments, word) in [(&vm[..], "isolcpus=1"), (&here[..], "skew_tick=1")] {
        let listed = place.punctual(&[&["tune"], arguments].concat());
        assert_eq!(listed.status.code(), Some(0), "{}", text(&listed));
        assert!(text(&listed).contains(word), "{arguments:?}: {}", text(&listed));
    }
}

#[test]
fn impossible_tunings_are_refused_before_any_change() {
    let elsewhere = "[target]\nkind = \"ssh\"\nhost = \"other\"\n[[measure]]\nkind = \"timer\"\n\
                     duration = \"1s\"\n";
    let endless = "[[measure]]\nkind = \"timer\"\n";
    let sound = "[[measure]]\nkind = \"timer\"\nduration = \"1s\"\n";
    let cases: [(&str, &[&str], &str); 11] = [
        (elsewhere, &["experiment.toml"], "over ssh"),
        (sound, &["experiment.toml", "--target", "vm:6.12", "--cost", "true"], "--cost"),
        (endless, &["experiment.toml"], "give --block"),
        (sound, &["experiment.toml", "--require", "skipped == 0"], "not a figure of latencies"),
        (sound, &["experiment.toml", "--only", "no-such"], "no such setting"),
        (sound, &["experiment.toml", "--smallest", "0.5"], "--smallest"),
        (sound, &[], "what is to be measured?"),
        (sound, &["experiment.toml", "--yes"], "--across-reboots"),
        (sound, &["experiment.toml", "--settle", "1s"], "--across-reboots"),
        (sound, &["experiment.toml", "--across-reboots", "--target", "vm:6.12"], "--target"),
        (
            sound,
            &["experiment.toml", "--across-reboots", "--blocks-per-boot", "0"],
            "--blocks-per-boot",
        ),
    ];
    for (experiment, arguments, why) in cases {
        let place = Place::with(experiment);
        let words: Vec<&str> = std::iter::once("tune").chain(arguments.iter().copied()).collect();
        let refused = place.punctual(&words);
        assert_eq!(refused.status.code(), Some(2), "{words:?}: {}", text(&refused));
        assert!(text(&refused).contains(why), "{words:?}: {}", text(&refused));
    }
    // A tuning of run-time settings has no boot entry to remove.
    let place = Place::with("");
    found(&place);
    let refused = place.punctual(&["tune", "undo", "found"]);
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused));
    assert!(text(&refused).contains("punctual isolate undo"), "{}", text(&refused));
    let each: [&[&str]; 4] = [&["report"], &["--resume"], &["apply"], &["undo"]];
    for arguments in each {
        let refused = place.punctual(&[&["tune"], arguments, &["."]].concat());
        assert_eq!(refused.status.code(), Some(2), "{arguments:?}: {}", text(&refused));
    }
}
