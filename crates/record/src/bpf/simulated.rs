//! The BPF programs on a simulated kernel (`tests/simulated/world.h`): compiled for this machine,
//! called as by tracepoints, and compared with the results that the events must give. A wrong line
//! shows here in a second, without privileges and for any number of CPUs.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The program of this test, and the directory that it lies in.
pub(crate) fn compile_test(name: &str) -> Option<(PathBuf, tempfile::TempDir)> {
    let crate_directory = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (tests, place) =
        (crate_directory.join("tests/simulated"), tempfile::tempdir().expect("a directory"));
    let program = place.path().join(name);
    let mut compiler = Command::new("cc");
    // Without `const`, which the loader's relocations represent, much of the source causes
    // warnings.
    compiler
        .args(["-std=gnu11", "-O1", "-w", "-I"])
        .arg(crate_directory.join("bpf"))
        .arg("-I")
        .arg(&tests);
    compiler.arg(tests.join(format!("{name}.c"))).arg("-o").arg(&program);
    let Ok(compiled) = compiler.output() else {
        println!("SKIPPED: {name} on a simulated kernel lacks a C compiler (cc)");
        return None;
    };
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    Some((program, place))
}

fn assert_passes(name: &str) {
    let Some((program, _place)) = compile_test(name) else { return };
    let ran = Command::new(&program).output().expect("it was just compiled");
    let said = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success(), "{name}.c: {}\n{said}", ran.status);
}

#[test]
fn the_simulated_cycles_program_passes_its_tests() {
    assert_passes("cycles");
}

#[test]
fn the_simulated_accounting_program_passes_its_tests() {
    assert_passes("account");
}

#[test]
fn the_simulated_recording_program_passes_its_tests() {
    assert_passes("events");
}

#[test]
fn the_simulated_kernel_entries_program_passes_its_tests() {
    assert_passes("cpus");
}
