//! The same tests on other kernels: this program runs itself in guests.

use punctual_lab::{Accel, Guest, Job};
use punctual_testing as testing;

/// The differences between kernels: arguments and fields of tracepoints, and the loss of records.
const THERE: &[&str] = &[
    "btf::switches",
    "btf::system_calls",
    "btf::a_stalled_reader",
    "btf::every_group",
    "tracepoint::switches",
    "tracefs::switches",
    "flight::a_window",
    "counting::system_calls",
    "accounting::",
    "attach::an_absolute_sleeper",
];

/// On one CPU in virtual time: an emulator that alternates between several delays them itself, and
/// so does a busy host.
const ALONE: &[&str] = &["injected::a_section_without_preemption"];

fn tests_pass_on(kernel: &str, tests: &[&str], accel: Accel) {
    let Some(mut guest) = testing::guest(kernel) else { return };
    let program = testing::stripped(&std::env::current_exe().unwrap());
    // A few tests, one after the other: guests without hardware support are slow.
    let mut words = vec![program.to_string_lossy().into_owned()];
    words.extend(
        ["--include-ignored", "--test-threads=1", "--nocapture"]
            .iter()
            .chain(tests)
            .map(|word| (*word).to_owned()),
    );
    guest.job = Job::Command(words);
    let cpus = if accel == Accel::VirtualTime { 1 } else { 2 };
    guest = Guest { cpus, accel, memory_mb: 1024, programs: vec![program], ..guest };
    let Some(result) = testing::run(&guest) else { return };
    assert_eq!(result.exit_status, Some(0), "{}", testing::story(&result));
    let report = String::from_utf8_lossy(&result.stdout);
    assert!(report.contains("test result: ok") && !report.contains("ok. 0 passed"), "{report}");
    report
        .lines()
        .filter(|line| line.contains(" late samples, ") || line.contains("preemptible: "))
        .for_each(|line| println!("{line}"));
    report
        .lines()
        .filter(|line| line.starts_with("SKIPPED: "))
        .for_each(|line| println!("{line} (in a guest with {kernel})"));
}

#[test]
fn on_an_old_kernel() {
    tests_pass_on("debian:6.1", THERE, Accel::Tcg);
}

#[test]
fn on_a_real_time_kernel() {
    tests_pass_on("debian:6.12-rt", THERE, Accel::Tcg);
}

#[test]
fn non_preemptible_sections_are_detected_in_standard_and_rt_guests() {
    tests_pass_on("debian:6.1", ALONE, Accel::VirtualTime);
    tests_pass_on("debian:6.12-rt", ALONE, Accel::VirtualTime);
}
