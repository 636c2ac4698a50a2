//! `punctual run --target vm:…`: real kernels in QEMU (docs/targets.md). A boot takes some seconds, so there are few.

mod common;

use common::{Place, text};
use punctual_lab::{Arch, Kernel, testing};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::LazyLock;

const KERNEL: &str = "6.1-rt";

/// The binary under test without its symbols: a quarter of the time to boot goes with them.
static BINARY: LazyLock<(tempfile::TempDir, PathBuf)> = LazyLock::new(|| {
    let place = tempfile::tempdir().unwrap();
    let (own, stripped) = (Path::new(env!("CARGO_BIN_EXE_punctual")), place.path().join("punctual"));
    let done = Command::new("strip").arg("-o").arg(&stripped).arg(own).status().is_ok_and(|status| status.success());
    let binary = if done { stripped } else { own.to_owned() };
    (place, binary)
});

/// Whether a guest can be booted here; says what is lacking if not.
fn can_boot() -> bool {
    testing::or_skip(Kernel::by_name(KERNEL, Arch::Amd64)).is_some() && testing::guest(KERNEL).is_some()
}

fn run(place: &Place, target: &str, more: &[&str]) -> Output {
    let target = format!("--target=vm:{target},binary={}", BINARY.1.display());
    place.punctual(&[&["run", "experiment.toml", "--quiet", &target], more].concat())
}

fn summary(place: &Place, bundle: &str) -> Value {
    let shown = place.punctual(&["show", "--json", bundle]);
    serde_json::from_slice(&shown.stdout).unwrap_or_else(|error| panic!("{error}: {}", text(&shown)))
}

fn findings(summary: &Value) -> String {
    summary["findings"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|finding| finding["id"].as_str())
        .collect::<Vec<_>>()
        .join(" ")
}

const LOADED: &str = r#"
[[measure]]
kind = "timer"
duration = "100ms"
[[load]]
command = "sh -c 'while :; do cat /proc/self/stat; done'"
[[phase]]
loads = ["sh"]
"#;

#[test]
fn seeds_differ_and_each_repeats_to_the_last_digit() {
    if !can_boot() {
        return;
    }
    let place = Place::with(LOADED);
    let mut digests = Vec::new();
    // That the third repeats too would be one more boot, and is the same code.
    for (seed, repeats) in [("1", "2"), ("2", "2"), ("3", "1")] {
        let ran = run(&place, KERNEL, &["--repeat", repeats, "--seed", seed, "--output", seed]);
        assert_eq!(ran.status.code(), Some(0), "{}", text(&ran));
        let summary = summary(&place, seed);
        let digest = summary["digest"].as_str().expect("a digest").to_owned();
        if repeats == "2" {
            assert_eq!(summary["target"]["repeats"], serde_json::json!([digest, digest]));
            assert!(text(&ran).contains("the same in all 2 repeats"), "{}", text(&ran));
        }
        assert!(text(&ran).contains("virtual time: 1 instruction = 8 ns; no caches"), "{}", text(&ran));
        assert_eq!(summary["phases"][0]["series"][0]["count"], 100, "{summary}");
        digests.push(digest);
    }
    digests.sort();
    digests.dedup();
    assert_eq!(digests.len(), 3, "{digests:?}");

    let target = &summary(&place, "1")["target"];
    let fact = |name: &str| {
        let mut all = target["facts"].as_array().into_iter().flatten();
        all.find(|fact| fact[0] == name).map_or("", |fact| fact[1].as_str().unwrap_or_default())
    };
    assert!(fact("kernel").starts_with("6.1."), "{target}");
    assert!(fact("preemption").starts_with("real-time"), "{target}");
    assert!(fact("command line").contains("nokaslr") && !fact("QEMU").is_empty(), "{target}");
    assert!(fact("time").contains("icount shift=3"), "{target}");
    // What one may do with any bundle.
    let report = place.punctual(&["report", "1", "--output", "report.html"]);
    assert!(report.status.success(), "{}", text(&report));
    let html = std::fs::read_to_string(place.path().join("report.html")).unwrap();
    assert!(html.contains("1 instruction = 8 ns"), "the report does not say the limits of virtual time");
}

#[test]
fn a_kernel_that_panics_leaves_a_bundle_that_says_so() {
    if !can_boot() {
        return;
    }
    let place = Place::with(&LOADED.replace("while :; do cat /proc/self/stat; done", "echo c >/proc/sysrq-trigger"));
    let ran = run(&place, KERNEL, &["--output", "bundle"]);
    assert_eq!(ran.status.code(), Some(1), "{}", text(&ran));
    let summary = place.summary();
    let why = summary["ending"]["outcome"]["failed"]["why"].as_str().unwrap_or_default();
    assert_eq!(why, "the guest's kernel panicked: Kernel panic - not syncing: sysrq triggered crash", "{summary}");
    assert!(findings(&summary).contains("target-failed"), "{summary}");
    let console = std::fs::read_to_string(place.bundle().join("console.log")).unwrap();
    assert!(console.contains("sysrq_handle_crash"), "{console}");
    assert_eq!(summary["target"]["kind"], "vm");
}

#[test]
fn want_of_memory_is_a_finding() {
    if !can_boot() {
        return;
    }
    let hungry =
        LOADED.replace("while :; do cat /proc/self/stat; done", "x=0123456789abcdef; while :; do x=$x$x; done");
    let hungry = hungry.replace("\"100ms\"", "\"20s\"").replace("[[phase]]", "on_failure = \"stop\"\n[[phase]]");
    let place = Place::with(&hungry);
    let ran = run(&place, &format!("{KERNEL},memory=256MiB"), &["--output", "bundle"]);
    assert_eq!(ran.status.code(), Some(1), "{}", text(&ran));
    let summary = place.summary();
    let found = findings(&summary);
    assert!(found.contains("guest-out-of-memory") || found.contains("target-failed"), "{summary}");
    assert!(summary["findings"].to_string().contains("memory"), "{summary}");
}

#[test]
fn what_cannot_be_is_refused_before_anything_boots() {
    let place = Place::with(LOADED);
    for (target, why) in [
        ("5.10", "`5.10` is not a kernel known by name; known are 6.1, 6.1-rt"),
        ("6.1,cpus=2,accel=virtual-time", "virtual time needs 1 CPU"),
        ("6.1,machine=raspi3b,devices=edu", "no PCI bus"),
        ("6.1,machine=raspi3b,memory=2GiB", "1 GiB of memory"),
        ("./no-such-image", "no-such-image"),
    ] {
        let ran = run(&place, target, &["--output", "bundle"]);
        let lacks = text(&ran).contains("this machine lacks");
        assert!(lacks || text(&ran).contains(why), "{target}: {}", text(&ran));
        assert_ne!(ran.status.code(), Some(0), "{target}");
        assert!(!place.bundle().exists(), "{target}");
    }
    let here = place.punctual(&["run", "experiment.toml", "--repeat", "2"]);
    assert_eq!(here.status.code(), Some(2), "{}", text(&here));
    assert!(text(&here).contains("only virtual time repeats"), "{}", text(&here));
    // A plan for a machine has its CPU, not this one's.
    let plan = place.punctual(&["run", "experiment.toml", "--plan", "--target=vm:6.1,memory=512MiB", "--seed=7"]);
    assert!(text(&plan).contains("timer/cpu0  0 "), "{}", text(&plan));
    assert!(text(&plan).contains("virtual machine with the kernel 6.1, virtual time"), "{}", text(&plan));
}

/// Tasks that wait by yielding must let a grace period of RCU end while perf counts are set up, which PREEMPT_RT needs ktimers for.
#[test]
fn a_real_time_pair_that_sleeps_ends_on_one_cpu_with_preempt_rt() {
    if !can_boot() {
        return;
    }
    let place = Place::with(
        "[[measure]]\nkind = \"switch\"\nmechanism = \"sleep\"\npolicy = \"rr\"\npriority = 98\nsamples = 300\n",
    );
    let ran = run(&place, &format!("{KERNEL},timeout=300s"), &["--output", "bundle"]);
    assert_eq!(ran.status.code(), Some(0), "{}", text(&ran));
    let summary = place.summary();
    assert_eq!(summary["phases"][0]["series"][0]["count"], 300, "{summary}");
}

#[test]
fn a_raspberry_pi_measures_and_repeats() {
    let built = "target/aarch64-unknown-linux-musl/release/punctual";
    let binary = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(built);
    if !binary.is_file() {
        eprintln!("SKIPPED: there is no {built} (./x build --arch aarch64)");
        return;
    }
    if testing::guest_for(Arch::Arm64, KERNEL).is_none() {
        return;
    }
    let place = Place::with("[[measure]]\nkind = \"timer\"\nduration = \"100ms\"\n");
    let target = format!("--target=vm:{KERNEL},arch=aarch64,machine=raspi3b,binary={}", binary.display());
    let ran = place.punctual(&["run", "experiment.toml", "--quiet", &target, "--repeat=2", "--output=bundle"]);
    assert_eq!(ran.status.code(), Some(0), "{}", text(&ran));
    assert!(text(&ran).contains("the same in all 2 repeats"), "{}", text(&ran));
    assert_eq!(summary(&place, "bundle")["phases"][0]["series"][0]["count"], 100);
}
