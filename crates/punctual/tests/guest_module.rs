//! punctual's own module, built for a guest's kernel: experiment P5's entries into the kernel as in
//! the publication, measured in virtual time (docs/reference/workloads.md), and points of a driver.

use punctual_lab::{Accel, FileSource, Guest, GuestFile, GuestOutcome, Job};
use punctual_testing as testing;
use serde_json::Value;
use std::path::Path;
use std::process::Command;

const OWN: [&str; 4] = ["module-device", "module-ioctl", "module-procfs", "module-debugfs"];

/// A module of crates/measure/module, for a guest's kernel.
fn module(guest: &Guest, name: &str) -> Option<GuestFile> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../measure/module");
    let module = testing::or_skip(guest.kernel.build_module(&source, name))?;
    let source = FileSource::Bytes(module);
    Some(GuestFile { path: format!("/{name}.ko"), source, mode: 0o644 })
}

#[test]
fn points_are_stored_by_a_module_of_our_own() {
    let Some(mut guest) =
        testing::punctual_guest(env!("CARGO_BIN_EXE_punctual"), "debian:6.1", "", 1)
    else {
        return;
    };
    guest.accel = Accel::VirtualTime;
    guest.job = Job::Script(include_str!("guests/module.sh").into());
    let Some(module) = module(&guest, "punctual_point") else { return };
    guest.files = vec![module];
    let Some(result) = testing::or_skip(guest.run()) else { return };
    let report = |name: &str| {
        let bytes = result
            .results
            .get(name)
            .unwrap_or_else(|| panic!("no {name}: {}", testing::story(&result)));
        std::str::from_utf8(bytes).expect("text").trim().to_owned()
    };
    assert!(
        result.outcome == GuestOutcome::Finished && !result.results.contains_key("insmod"),
        "{}",
        testing::story(&result)
    );
    let summary = |name: &str| -> Value {
        serde_json::from_str(&report(name))
            .unwrap_or_else(|why| panic!("{why}: {}", report(&format!("said-{name}"))))
    };
    let (with, without) = (summary("with"), summary("without"));
    let of = |summary: &Value, name: &str| -> Value {
        let all = summary["mechanisms"].as_array().expect("mechanisms");
        all.iter()
            .find(|one| one["name"] == name)
            .unwrap_or_else(|| panic!("no {name}: {all:#?}"))
            .clone()
    };
    for name in OWN {
        let way = of(&with, name);
        println!("{name}: {way}");
        assert_eq!(way["count"], 1_000, "{way}");
        let absent = of(&without, name);
        assert_eq!(absent["count"], 0, "{absent}");
        assert!(
            absent["unavailable"].to_string().contains("punctual_point is not loaded"),
            "{absent}"
        );
    }
    let validations =
        with["phases"][0]["measures"][0]["notes"]["validations"].as_array().expect("validations");
    let stored =
        validations.iter().filter(|one| one["what"].to_string().contains("that the module stored"));
    assert_eq!(stored.filter(|one| one["agrees"] == true).count(), OWN.len(), "{validations:#?}");
    // The buffer holds its newest records, and returns each once.
    assert_eq!(
        (report("drained"), report("drained-again")),
        ((16_384 * 64).to_string(), "0".to_owned())
    );
    // Why there is no system call of our own: the table exists, no module may name it, and this
    // kernel does not use it.
    println!(
        "sys_call_table {}, exported {}, x64_sys_call {}",
        report("table"),
        report("exported"),
        report("switch")
    );
    assert_eq!(report("exported"), "0");
}

/// Writes to the driver.
const APPLICATION: &str = r#"
#include <fcntl.h>
#include <punctual/testpoint.h>
#include <unistd.h>
int main(void) {
    int file = open("/dev/punctual-example", O_WRONLY);
    for (int turn = 0; turn < 20; turn++) {
        PUNCTUAL_BEGIN("app.write");
        if (write(file, "x", 1) != 1) return 1;
        PUNCTUAL_END("app.write");
        usleep(2000);
    }
    return 0;
}
"#;

/// Each turn in the order in which it happens: the application calls its driver, which reads a
/// register, is interrupted, and wakes the application.
#[test]
fn points_of_an_application_and_its_driver_and_the_kernels_events_are_one_record() {
    let Some(mut guest) =
        testing::punctual_guest(env!("CARGO_BIN_EXE_punctual"), "debian:6.1", "", 2)
    else {
        return;
    };
    let place = tempfile::tempdir().unwrap();
    let library = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testpoint/c");
    let (source, program) = (place.path().join("app.c"), place.path().join("app"));
    std::fs::write(&source, APPLICATION).unwrap();
    let mut compile = Command::new("cc");
    compile.args(["-O2", "-static", "-pthread", "-I"]).arg(&library).arg(&source);
    compile.arg(library.join("punctual/testpoint.c")).arg("-o").arg(&program);
    assert!(compile.status().expect("cc").success());
    guest.job = Job::Script(include_str!("guests/driver-points.sh").into());
    guest.qemu_args = ["-device", "edu"].map(str::to_owned).into();
    let Some(modules) = ["punctual_point", "punctual_example"]
        .iter()
        .map(|name| module(&guest, name))
        .collect::<Option<Vec<_>>>()
    else {
        return;
    };
    guest.files = modules;
    guest.files.push(GuestFile::from_host_file(&program, "/app").unwrap());
    let Some(result) = testing::or_skip(guest.run()) else { return };
    assert!(
        result.outcome == GuestOutcome::Finished && result.exit_status == Some(0),
        "{}",
        testing::story(&result)
    );
    let section = |name: &str| testing::section(&result, name);
    for (by, pairs) in [("thread", 5), ("global", 2), ("cpu", 1)] {
        let answer: Value = serde_json::from_str(section(by))
            .unwrap_or_else(|why| panic!("{why}: {}", section("said")));
        let found = answer["pairs"].as_array().expect("pairs");
        assert_eq!(found.len(), pairs, "{answer:#}");
        for pair in found {
            let counts = (pair["count"].as_u64(), pair["unmatched_from"].as_u64());
            assert_eq!(counts, (Some(20), Some(0)), "{pair:#}\n{}", section("said"));
            assert!(pair["min"].as_i64().is_some_and(|min| min >= 0), "{pair:#}");
        }
    }
    // The kernel's own count of the device's interrupts.
    let row = section("interrupts").split_whitespace();
    let count: u64 = row.skip(1).map_while(|word| word.parse::<u64>().ok()).sum();
    assert_eq!(count, 20, "{}", section("interrupts"));
}
