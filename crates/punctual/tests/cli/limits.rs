//! Tight limits on common resources: open files, stack, size of files, and a full disk.

use crate::common::{Place, is_root, text};
use std::process::{Command, Output, Stdio};

/// `punctual ARGUMENTS` under a limit: `-n 8`. Its output is a pipe, as files are limited too.
fn limited(place: &Place, limit: &str, arguments: &str) -> Output {
    let line = format!("ulimit {limit} && exec \"$0\" {arguments}");
    let mut shell = Command::new("sh");
    shell.args(["-c", &line]).arg(env!("CARGO_BIN_EXE_punctual")).current_dir(place.path());
    shell.stdin(Stdio::null()).output().expect("a shell")
}

#[test]
fn too_few_open_files_are_refused() {
    let place = Place::with("");
    let refused = limited(&place, "-n 12", "measure timer --duration 1s --output bundle");
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused));
    assert!(text(&refused).contains("ulimit -n"), "{}", text(&refused));
    assert!(!place.bundle().exists());
}

#[test]
fn a_small_stack_is_enough() {
    let place = Place::with("");
    let good = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/bundles/good");
    let shown = limited(&place, "-s 64", &format!("show {good}"));
    assert_eq!(shown.status.code(), Some(0), "{:?} {}", shown.status, text(&shown));
    assert_eq!(shown.stdout, super::ask("show", good).stdout);
}

/// A directory without a manifest is not a bundle, and would block the next one.
#[test]
fn no_bundle_is_left_if_nothing_can_be_written() {
    let place = Place::with("");
    for command in ["trace --events none --duration 1s", "measure timer --duration 1s"] {
        let failed = limited(&place, "-f 0", &format!("{command} --output bundle"));
        assert_eq!(
            failed.status.code(),
            Some(2),
            "{command}: {:?} {}",
            failed.status,
            text(&failed)
        );
        assert!(text(&failed).contains("ulimit -f"), "{command}: {}", text(&failed));
        assert!(!place.bundle().exists(), "{command}");
    }
}

/// A separate file system; unmounted on drop.
struct Small(Place);

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path().join("small")).status();
    }
}

#[test]
fn a_full_disk_is_what_the_bundle_says() {
    if !is_root("a_full_disk_is_what_the_bundle_says") {
        return;
    }
    let small = Small(Place::with(""));
    std::fs::create_dir(small.0.path().join("small")).unwrap();
    let mut mount = Command::new("mount");
    mount.args(["-t", "tmpfs", "-o", "size=400k", "tmpfs"]).arg(small.0.path().join("small"));
    if !mount.status().is_ok_and(|status| status.success()) {
        return println!("SKIPPED: lacks the right to mount a tmpfs");
    }
    // Ten times as many samples as there is room for.
    let period = ["measure", "timer", "--set", "period=\"100us\"", "--duration", "20s", "--quiet"];
    let measured = small.0.punctual(&[&period[..], &["--output", "small/bundle"]].concat());
    assert_eq!(measured.status.code(), Some(1), "{}", text(&measured));
    let json = small.0.punctual(&["show", "--json", "small/bundle"]);
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).expect("a summary");
    let findings = json["findings"].as_array().unwrap();
    let of = |id: &str| {
        findings.iter().find(|finding| finding["id"] == id).unwrap_or(&serde_json::Value::Null)
    };
    assert!(
        of("bundle-incomplete")["evidence"].as_str().unwrap_or_default().contains("No space"),
        "{json:#}"
    );
    let remedy = of("samples-not-kept")["remedy"].as_str().unwrap_or("--output");
    assert!(remedy.contains("--output") && !remedy.contains("keep_samples"), "{remedy}");
    assert_ne!(json["ending"]["outcome"], "completed", "{json:#}");
}
