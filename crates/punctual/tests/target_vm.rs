//! `punctual run --target vm:…`: real kernels in QEMU (docs/targets.md). A boot takes some seconds,
//! so there are few.

use crate::common::{self, Place, text};
use punctual_lab::{Arch, BootKernel};
use punctual_testing as testing;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::LazyLock;

const KERNEL: &str = "6.1-rt";

/// The binary under test without its symbols.
static BINARY: LazyLock<PathBuf> =
    LazyLock::new(|| testing::stripped(Path::new(env!("CARGO_BIN_EXE_punctual"))));

/// Whether a guest can be booted here; prints the missing prerequisite if not.
fn can_boot() -> bool {
    testing::or_skip(BootKernel::by_name(KERNEL, Arch::Amd64)).is_some()
        && testing::guest(KERNEL).is_some()
}

fn run(place: &Place, target: &str, more: &[&str]) -> Output {
    let target = format!("--target=vm:{target},binary={}", BINARY.display());
    place.punctual(&[&["run", "experiment.toml", "--quiet", &target], more].concat())
}

fn summary(place: &Place, bundle: &str) -> Value {
    let shown = place.punctual(&["show", "--json", bundle]);
    serde_json::from_slice(&shown.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", text(&shown)))
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
fn seeds_differ_and_a_seed_repeats_to_the_last_digit() {
    if !can_boot() {
        return;
    }
    let place = Place::with(LOADED);
    let mut digests = Vec::new();
    // Testing the repeat of the second too would take one more boot, for the same code.
    for (seed, repeats) in [("1", "2"), ("2", "1")] {
        let ran = run(&place, KERNEL, &["--repeat", repeats, "--seed", seed, "--output", seed]);
        assert_eq!(ran.status.code(), Some(0), "{}", text(&ran));
        let summary = summary(&place, seed);
        let digest = summary["digest"].as_str().expect("a digest").to_owned();
        if repeats == "2" {
            assert_eq!(summary["target"]["repeats"], serde_json::json!([digest, digest]));
            assert!(text(&ran).contains("the same in all 2 repeats"), "{}", text(&ran));
        }
        assert!(
            text(&ran).contains("virtual time: 1 instruction = 8 ns; no caches"),
            "{}",
            text(&ran)
        );
        assert_eq!(summary["phases"][0]["series"][0]["count"], 100, "{summary}");
        digests.push(digest);
    }
    assert_ne!(digests[0], digests[1]);

    let target = &summary(&place, "1")["target"];
    let fact = |name: &str| {
        let mut all = target["facts"].as_array().into_iter().flatten();
        all.find(|fact| fact[0] == name).map_or("", |fact| fact[1].as_str().unwrap_or_default())
    };
    assert!(fact("kernel").starts_with("6.1."), "{target}");
    assert!(fact("preemption").starts_with("real-time"), "{target}");
    assert!(fact("command line").contains("nokaslr") && !fact("QEMU").is_empty(), "{target}");
    assert!(fact("time").contains("icount shift=3"), "{target}");
    // Operations that work on any bundle.
    let report = place.punctual(&["report", "1", "--output", "report.html"]);
    assert!(report.status.success(), "{}", text(&report));
    let html = std::fs::read_to_string(place.path().join("report.html")).unwrap();
    assert!(
        html.contains("1 instruction = 8 ns"),
        "the report does not say the limits of virtual time"
    );
}

#[test]
fn a_kernel_panic_is_reported_in_the_bundle() {
    if !can_boot() {
        return;
    }
    let place = Place::with(
        &LOADED.replace("while :; do cat /proc/self/stat; done", "echo c >/proc/sysrq-trigger"),
    );
    let ran = run(&place, KERNEL, &["--output", "bundle"]);
    assert_eq!(ran.status.code(), Some(1), "{}", text(&ran));
    let summary = place.summary();
    let why = summary["ending"]["outcome"]["failed"]["why"].as_str().unwrap_or_default();
    assert_eq!(
        why, "the guest's kernel panicked: Kernel panic - not syncing: sysrq triggered crash",
        "{summary}"
    );
    assert!(findings(&summary).contains("target-failed"), "{summary}");
    let console = std::fs::read_to_string(place.bundle().join("console.log")).unwrap();
    assert!(console.contains("sysrq_handle_crash"), "{console}");
    assert_eq!(summary["target"]["kind"], "vm");
}

#[test]
fn out_of_memory_of_a_guest_is_a_finding() {
    if !can_boot() {
        return;
    }
    let hungry = LOADED.replace(
        "while :; do cat /proc/self/stat; done",
        // Pages of this file system cannot be taken back.
        "mkdir /m; mount -t ramfs m /m; cat /dev/zero >/m/x",
    );
    let hungry = hungry
        .replace("\"100ms\"", "\"20s\"")
        .replace("[[phase]]", "on_failure = \"stop\"\n[[phase]]");
    let place = Place::with(&hungry);
    let boot =
        |mib: &str| run(&place, &format!("{KERNEL},memory={mib}MiB"), &["--output", "bundle"]);
    // The minimum for any guest, or else that of one with a program of this size.
    let mut ran = boot("256");
    let why = text(&ran);
    if let Some((_, rest)) = why.split_once("give it at least ") {
        ran = boot(rest.split(' ').next().unwrap_or_default());
    }
    assert_eq!(ran.status.code(), Some(1), "{}", text(&ran));
    let summary = place.summary();
    let found = findings(&summary);
    assert!(found.contains("guest-out-of-memory") || found.contains("target-failed"), "{summary}");
    assert!(summary["findings"].to_string().contains("memory"), "{summary}");
}

#[test]
fn a_hanging_guest_is_killed_at_its_timeout() {
    if !can_boot() {
        return;
    }
    // A priority above the measuring threads and punctual itself, for ever: throttling is disabled.
    let hang = "sh -c 'echo -1 >/proc/sys/kernel/sched_rt_runtime_us; exec chrt -f 99 sh -c \
                \\\"while :; do :; done\\\"'";
    let place = Place::with(&LOADED.replace("sh -c 'while :; do cat /proc/self/stat; done'", hang));
    // A busy machine needs longer for the boot: a guest that does not reach its job is ended too,
    // and reports it.
    for seconds in [10, 40, 160] {
        let _ = std::fs::remove_dir_all(place.bundle());
        let ran = run(&place, &format!("{KERNEL},timeout={seconds}s"), &["--output", "bundle"]);
        assert_eq!(ran.status.code(), Some(1), "{}", text(&ran));
        let summary = place.summary();
        let why = summary["ending"]["outcome"]["failed"]["why"].as_str().unwrap_or_default();
        let said = |phase: &str| {
            why == format!(
                "the guest was still running {phase} when its limit of {seconds} s was reached"
            )
        };
        let measured = said("while the job ran");
        assert!(measured || said("while booting"), "{summary}");
        assert!(findings(&summary).contains("target-failed"), "{summary}");
        assert!(text(&ran).contains(why), "{}", text(&ran));
        assert!(
            summary["target"]["elapsed"].as_i64() >= Some(seconds * 1_000_000_000),
            "{summary}"
        );
        if measured {
            let console = std::fs::read_to_string(place.bundle().join("console.log")).unwrap();
            assert!(console.contains("Run /init as init process"), "{console}");
            break;
        }
    }
}

#[test]
fn a_kernel_by_path_boots_with_its_modules() {
    let Some((image, modules)) = common::kernel_files(KERNEL) else { return };
    if !can_boot() {
        return;
    }
    let place = Place::with("[[measure]]\nkind = \"irq\"\nsource = \"edu\"\nsamples = 100\n");
    let target = format!("{},modules={},devices=edu", image.display(), modules.display());
    let ran = run(&place, &target, &["--output", "bundle"]);
    assert_eq!(ran.status.code(), Some(0), "{}", text(&ran));
    let summary = place.summary();
    assert_eq!(summary["phases"][0]["series"][0]["count"], 100, "{summary}");
    let (target, release) = (&summary["target"], modules.file_name().unwrap().to_string_lossy());
    assert!(target["name"].as_str().unwrap().contains(image.to_str().unwrap()), "{target}");
    // A kernel by path has no package.
    assert!(
        target["facts"].as_array().unwrap().contains(&serde_json::json!(["kernel", release])),
        "{target}"
    );
}

#[test]
fn differing_repeats_fail_with_the_first_difference() {
    if !can_boot() || !common::has_program("taskset", "util-linux") {
        return;
    }
    let place = Place::with("");
    let load = place.path().join("load");
    let file =
        LOADED.replace("sh -c 'while :; do cat /proc/self/stat; done'", &load.to_string_lossy());
    place.write("experiment.toml", file.replace("\"sh\"", "\"load\"").as_bytes());
    // With one CPU they run one after the other.
    let cpu = std::fs::read_to_string("/proc/self/status").unwrap();
    let cpu = cpu.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap();
    let cpu = cpu.trim().split([',', '-']).next().unwrap();
    let target = format!("--target=vm:{KERNEL},binary={}", BINARY.display());
    let ran = common::with_changing_load(&load, || {
        let mut command = Command::new("taskset");
        command.args([
            "-c",
            cpu,
            env!("CARGO_BIN_EXE_punctual"),
            "run",
            "experiment.toml",
            "--quiet",
            &target,
        ]);
        command.args(["--repeat=2", "--output=bundle"]).current_dir(place.path()).output().unwrap()
    });
    let said = text(&ran);
    assert_eq!(ran.status.code(), Some(1), "{said}");
    assert!(
        said.contains("repeat 2 differs from the first: ") && said.contains("timer/cpu0"),
        "{said}"
    );
    assert!(said.contains("NOT the same in all 2 repeats"), "{said}");
    let (first, second) = (place.summary(), summary(&place, "bundle.repeat-2"));
    assert_ne!(first["digest"], second["digest"]);
    assert_eq!(first["target"]["repeats"], serde_json::json!([first["digest"], second["digest"]]));
    assert!(findings(&first).contains("repeats-differ"), "{first}");
}

#[test]
fn what_cannot_be_is_refused_before_anything_boots() {
    let place = Place::with(LOADED);
    for (target, why) in [
        ("4.19", "the kernel series 4.19"),
        ("6.1,cpus=2,accel=virtual-time", "virtual time needs 1 CPU"),
        ("6.1,machine=raspi3b,devices=edu", "no PCI bus"),
        ("6.1,machine=raspi3b,memory=2GiB", "1 GiB of memory"),
        ("./no-such-image", "there is no kernel image at ./no-such-image"),
        ("./experiment.toml,modules=./none", "there is no directory of kernel modules at ./none"),
    ] {
        let ran = run(&place, target, &["--output", "bundle"]);
        let lacks = text(&ran).contains("this machine lacks");
        assert!(lacks || text(&ran).contains(why), "{target}: {}", text(&ran));
        assert_ne!(ran.status.code(), Some(0), "{target}");
        assert!(!place.bundle().exists(), "{target}");
    }
    let here = place.punctual(&["run", "experiment.toml", "--repeat", "2"]);
    assert_eq!(here.status.code(), Some(2), "{}", text(&here));
    assert!(text(&here).contains("--repeat needs virtual time"), "{}", text(&here));
    // A plan for a machine has its CPU, not this one's.
    let plan = place.line("run experiment.toml --plan --target=vm:6.1,memory=512MiB --seed=7");
    assert!(text(&plan).contains("timer/cpu0  0 "), "{}", text(&plan));
    assert!(text(&plan).contains("accel              virtual-time"), "{}", text(&plan));
}

/// Tasks that wait by yielding must let a grace period of RCU end while perf counts are set up,
/// which PREEMPT_RT needs ktimers for.
#[test]
fn a_sleeping_real_time_pair_completes_on_one_cpu_with_preempt_rt() {
    if !can_boot() {
        return;
    }
    let place = Place::with(
        "[[measure]]\nkind = \"switch\"\nmechanism = \"sleep\"\npolicy = \"rr\"\npriority = \
         98\nsamples = 300\n",
    );
    let ran = run(&place, KERNEL, &["--output", "bundle"]);
    assert_eq!(ran.status.code(), Some(0), "{}", text(&ran));
    let summary = place.summary();
    assert_eq!(summary["phases"][0]["series"][0]["count"], 300, "{summary}");
}

/// punctual for arm64; `None`, with how to get it printed, if it was not built.
pub fn arm64_program() -> Option<PathBuf> {
    let built = "target/aarch64-unknown-linux-musl/release/punctual";
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(built);
    if !program.is_file() {
        eprintln!("SKIPPED: there is no {built} (./x build --arch aarch64)");
        return None;
    }
    Some(program)
}

/// A Raspberry Pi as target, unless this machine lacks a prerequisite.
fn raspberry_pi() -> Option<String> {
    let binary = arm64_program()?;
    testing::guest_for(Arch::Arm64, KERNEL)?;
    Some(format!("--target=vm:{KERNEL},arch=aarch64,machine=raspi3b,binary={}", binary.display()))
}

#[test]
fn a_raspberry_pi_measures_and_repeats() {
    let Some(target) = raspberry_pi() else { return };
    // The shell is Debian's for arm64: this machine's own cannot run there.
    let place = Place::with(LOADED);
    let ran =
        place.line(&format!("run experiment.toml --quiet {target} --repeat=2 --output=bundle"));
    assert_eq!(ran.status.code(), Some(0), "{}", text(&ran));
    assert!(text(&ran).contains(", the same in all 2 repeats"), "{}", text(&ran));
    assert_eq!(summary(&place, "bundle")["phases"][0]["series"][0]["count"], 100);
}
