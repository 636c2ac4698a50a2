//! The gate of the tutorial docs/tutorials/late-loop.md, in virtual time: it fails on the program
//! with three faults and passes on the repaired one, independent of this machine's load.

use crate::common::{has_program, text};
use punctual_lab::{Arch, BootKernel};
use punctual_testing as testing;
use std::fs;
use std::path::Path;
use std::process::Command;

/// The lines of the tutorial that measure a program in a guest.
fn gates(page: &str) -> Vec<&str> {
    let lines = page.lines().filter_map(|line| line.strip_prefix("    "));
    let lines = lines.map(|line| line.trim_start_matches("$ "));
    lines.filter(|line| line.contains("--target vm:6.1")).collect()
}

#[test]
fn the_gate_fails_for_the_late_loop_and_passes_for_the_fixed_one() {
    let bootable = testing::or_skip(BootKernel::by_name("6.1", Arch::Amd64)).is_some()
        && testing::guest("6.1").is_some();
    if !bootable || !has_program("g++", "g++") {
        return;
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    let page = fs::read_to_string(root.join("docs/tutorials/late-loop.md")).unwrap();
    let place = tempfile::tempdir().unwrap();
    for name in ["late-loop", "repaired"] {
        let source = root.join("examples/late-loop").join(name).with_extension("cpp");
        let mut compiler = Command::new("g++");
        compiler.args(["-O2", "-g", "-pthread", "-o", name]).arg(source).current_dir(&place);
        let compiled = compiler.output().unwrap();
        assert!(compiled.status.success(), "{}", text(&compiled));
    }
    let binary = testing::stripped(Path::new(env!("CARGO_BIN_EXE_punctual")));
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_punctual"), place.path().join("punctual"))
        .unwrap();
    let target = format!("vm:6.1,binary={}", binary.display());
    let run = |line: &str| {
        let line = line.replace("vm:6.1", &target);
        let path = format!("{}:{}", place.path().display(), env!("PATH"));
        let mut shell = Command::new("sh");
        shell.args(["-c", &line]).current_dir(&place).env("PATH", path);
        shell.output().unwrap()
    };
    let [late, repaired] = gates(&page)[..] else { panic!("two lines: {:?}", gates(&page)) };
    assert!(late.contains("late-loop 2") && repaired.contains("repaired 2"), "{late}\n{repaired}");

    let late = run(late);
    assert_eq!(late.status.code(), Some(3), "{}", text(&late));
    assert!(text(&late).contains("NOT MET: max < 2ms on control/response"), "{}", text(&late));
    let repaired = run(repaired);
    assert_eq!(repaired.status.code(), Some(0), "{}", text(&repaired));
    assert!(text(&repaired).contains("✓ met: max < 2ms"), "{}", text(&repaired));
}
