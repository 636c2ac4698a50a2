//! What works on which kernel, and how: the tour of docs/where-it-runs.md, in guests. Kernels that
//! take too long for `./x test` are in `.ci/all-only`. Boards need their program first: `./x build
//! --arch riscv64 --board`, `./x build --arch armv7 --board`.

use crate::common;
use crate::common::has_program;
use punctual_lab::{Arch, FileSource, Guest, GuestFile, GuestResult, Job};
use punctual_testing as testing;
use punctual_testing::section;
use punctual_testpoint::{begin, end};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const SCRIPT: &str = include_str!("guests/tour.sh");
const ROUNDS: u64 = 50;
/// The unmodified kernel.
const NOTHING: &str = "nothing";

/// An application with test points.
#[test]
#[ignore = "a part of another test"]
fn the_application() {
    for round in 0..ROUNDS {
        begin!("cycle", round);
        std::thread::sleep(Duration::from_millis(1));
        end!("cycle", round);
    }
}

/// The program, compiled here; `None` if impossible.
fn without_bpf() -> Option<PathBuf> {
    if !has_program("cc", "gcc") {
        return None;
    }
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/guests/without_bpf.c");
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("without-bpf");
    let mut cc = Command::new("cc");
    cc.args(["-O1", "-static", "-o"]).arg(&program).arg(&source);
    let built = cc.output().expect("cc starts");
    assert!(built.status.success(), "{}", common::text(&built));
    Some(program)
}

/// Boots the kernel, takes the tour unmodified and without each of these, and compares the results
/// with the page.
fn tour(kernel: &str, lacks: &[&str]) {
    let each: Vec<&str> = [NOTHING].iter().chain(lacks).copied().collect();
    tour_of(kernel, &each);
}

/// Takes the tour without each of these, and unmodified only if `NOTHING` is among them.
fn tour_of(kernel: &str, each: &[&str]) {
    let lacks: Vec<&str> = each.iter().copied().filter(|lacks| *lacks != NOTHING).collect();
    let only = if lacks.len() == each.len() { "1" } else { "" };
    let binary = env!("CARGO_BIN_EXE_punctual");
    let name = format!("debian:{kernel}");
    let Some(mut guest) = testing::punctual_guest(binary, &name, "", 2) else { return };
    let application = testing::stripped(&std::env::current_exe().expect("this program"));
    let words = format!(
        "export PUNCTUAL_POINTS_DIR=/run/points \
         APPLICATION='{} --ignored --exact guest_tour::the_application' LACKS='{}' ONLY='{only}'\n\
         mkdir -m 700 /run/points\n",
        application.display(),
        lacks.join(" ")
    );
    guest.programs.push(application);
    if !lacks.is_empty() {
        let Some(program) = without_bpf() else { return };
        let (path, source) = ("/usr/bin/without-bpf".into(), FileSource::Host(program));
        guest.files.push(GuestFile { path, source, mode: 0o755 });
    }
    let guest = Guest { job: Job::Script(words + SCRIPT), memory_mb: 2048, ..guest };
    judge("x86_64", kernel, each, &guest);
}

/// Takes the tour on a board of another architecture, with the program built for it.
fn tour_of_board(arch: Arch, triple: &str, kernel: &str) {
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target").join(triple);
    let programs =
        ["board", "release", "quick"].map(|profile| built.join(profile).join("punctual"));
    let Some(program) = programs.into_iter().find(|program| program.is_file()) else {
        return println!("SKIPPED: the tour lacks punctual for {triple} (./x build --arch)");
    };
    let Some(mut guest) = testing::guest_for(arch, &format!("debian:{kernel}")) else { return };
    let (path, source) = ("/usr/bin/punctual".into(), FileSource::Host(program));
    guest.files.push(GuestFile { path, source, mode: 0o755 });
    guest.job = Job::Script(SCRIPT.to_owned());
    judge(arch.debian_name(), kernel, &[NOTHING], &Guest { memory_mb: 1024, ..guest });
}

fn judge(architecture: &str, kernel: &str, each: &[&str], guest: &Guest) {
    let Some(result) = testing::run(guest) else { return };
    assert_eq!(result.exit_status, Some(0), "{}", testing::story(&result));
    let row = |lacks: &&str| row(architecture, kernel, lacks, &result);
    let rows: Vec<String> = each.iter().map(row).collect();
    compare_with_page(&rows);
}

/// Every row is in the page verbatim.
fn compare_with_page(rows: &[String]) {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/where-it-runs.md");
    let page = std::fs::read_to_string(page).expect("the page");
    rows.iter().for_each(|row| println!("{row}"));
    let missing: Vec<&String> = rows.iter().filter(|row| !page.contains(row.as_str())).collect();
    assert!(missing.is_empty(), "docs/where-it-runs.md has other rows than {missing:#?}");
}

/// The results of a tour, as a row of the table.
fn row(architecture: &str, kernel: &str, lacks: &str, result: &GuestResult) -> String {
    let read = |name: &str| section(result, &format!("{lacks}/{name}")).to_owned();
    let done = |name: &str| {
        let code = read(&format!("{name}.code"));
        if code != "0" {
            println!("{kernel} without {lacks}: {name}: {code}: {}", read(&format!("{name}.said")));
        }
        // 4: it works, and says that a busy host did not let it measure as requested.
        ["0", "4"].contains(&code.as_str())
    };
    let shown = |name: &str| -> Value {
        serde_json::from_str(&read(&format!("{name}.shown"))).expect("JSON of a bundle")
    };
    let by = |name: &str| match read(&format!("{name}.way")).as_str() {
        "BPF (BTF tracepoints)" => "BPF, BTF",
        "BPF (tracepoint formats)" => "BPF",
        "tracefs" => "tracefs",
        other => panic!("{name} by {other}"),
    };
    let all = ["timer", "syscall", "switch", "spin"];
    let measures = all.iter().filter(|name| !done(name)).collect::<Vec<_>>();
    assert!(measures.is_empty(), "{measures:?} do not work on {kernel} without {lacks}");
    let check = read("check.code");
    assert!(["0", "3"].contains(&check.as_str()), "check: {check}: {}", read("check.said"));
    // No application is built for a board.
    if result.results.contains_key(&format!("{lacks}/points.code")) {
        assert!(done("points"), "test points do not work on {kernel} without {lacks}");
        assert_eq!(shown("points")["recording"]["points"], 2 * ROUNDS);
    }
    let trace = if done("trace") { by("trace") } else { "–" };
    let (mut explain, mut account) = ("–".to_owned(), "–");
    if done("explained") {
        explain = by("explained").to_owned();
        assert!(done("explain"));
        let explained: Value = serde_json::from_str(&read("explain")).expect("JSON");
        assert!(explained["samples"].as_array().is_some_and(|all| !all.is_empty()), "{explained}");
        if explained["source"] == "recording" {
            explain += ", recorded";
        }
        let findings = shown("explained")["findings"].to_string();
        account = match () {
            () if findings.contains("account-unavailable") => "–",
            () if findings.contains("account-untyped") => "BPF",
            () => "BPF, BTF",
        };
    }
    let attach = match done("attach") {
        false => "–",
        true if shown("attach")["findings"].to_string().contains("cycles-without-bpf") => "tracefs",
        true => "BPF, BTF",
    };
    let cpus = match done("cpus") {
        false => "–",
        true if shown("cpus")["findings"].to_string().contains("entries-without-bpf") => "tracefs",
        true => "BPF, BTF",
    };
    format!(
        "| {architecture} | {kernel} | {lacks} | yes | {trace} | {explain} | {account} | {attach} \
         | {cpus} |"
    )
}

#[test]
fn on_5_10() {
    tour("5.10", &[]);
}

#[test]
fn on_6_1_without_btf() {
    tour_of("6.1", &["btf"]);
}

#[test]
fn on_5_10_rt() {
    tour("5.10-rt", &[]);
}

#[test]
fn on_6_1_and_without_btf_bpf_and_tracefs() {
    tour("6.1", &["btf", "bpf", "tracefs"]);
}

#[test]
fn on_7_2() {
    tour("7.2", &[]);
}

#[test]
fn on_6_1_rt() {
    tour("6.1-rt", &[]);
}

#[test]
fn on_6_12() {
    tour("6.12", &[]);
}

#[test]
fn on_6_12_rt() {
    tour("6.12-rt", &[]);
}

#[test]
fn on_7_2_rt() {
    tour("7.2-rt", &[]);
}

#[test]
fn on_riscv64() {
    tour_of_board(Arch::Riscv64, "riscv64gc-unknown-linux-gnu", "7.2");
}

#[test]
fn on_armhf() {
    tour_of_board(Arch::Armhf, "armv7-unknown-linux-gnueabihf", "6.1");
}
