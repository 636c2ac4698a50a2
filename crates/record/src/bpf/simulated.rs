//! The BPF programs on a simulated kernel (`tests/simulated/world.h`): compiled for this machine,
//! called as by tracepoints, and compared with the results that the events must give. A wrong line
//! shows here in a second, without privileges and for any number of CPUs.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The program of this test, and the directory that it lies in.
pub(crate) fn compiled(name: &str) -> Option<(PathBuf, tempfile::TempDir)> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (tests, place) = (here.join("tests/simulated"), tempfile::tempdir().expect("a directory"));
    let program = place.path().join(name);
    let mut compiler = Command::new("cc");
    // Without `const`, which the loader's relocations represent, much of the source causes
    // warnings.
    compiler.args(["-std=gnu11", "-O1", "-w", "-I"]).arg(here.join("bpf")).arg("-I").arg(&tests);
    compiler.arg(tests.join(format!("{name}.c"))).arg("-o").arg(&program);
    let Ok(compiled) = compiler.output() else {
        println!("SKIPPED: {name} on a simulated kernel lacks a C compiler (cc)");
        return None;
    };
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    Some((program, place))
}

fn passes(name: &str) {
    let Some((program, _place)) = compiled(name) else { return };
    let ran = Command::new(&program).output().expect("it was just compiled");
    let said = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success(), "{name}.c: {}\n{said}", ran.status);
}

#[test]
fn cycles_of_threads() {
    passes("cycles");
}

#[test]
fn sums_of_threads_that_are_ready_and_losses() {
    passes("account");
}

#[test]
fn events_of_recordings() {
    passes("events");
}

#[test]
fn entries_into_the_kernel_and_their_originators() {
    passes("cpus");
}
