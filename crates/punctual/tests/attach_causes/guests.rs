//! The same tests on other kernels: this program in guests, in virtual time, with programs compiled
//! here.

use crate::common::has_program;
use punctual_lab::{Accel, GuestFile, Job};
use punctual_testing as testing;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The directory of the compiled programs in the guest.
const THERE: &str = "/injector";
/// A guest's instructions take 8 ns each: its delays have fewer repetitions
/// (attach_causes/inject.c).
const FEWER: &str = "20";
/// A disk whose requests take 1.2 ms each, control groups with quotas, and the tests.
const SCRIPT: &str = "
mount -t configfs configfs /sys/kernel/config
disk=/sys/kernel/config/nullb/nullb1
mkdir $disk && echo 64 >$disk/size && echo 2 >$disk/irqmode && echo 1200000 >$disk/completion_nsec
echo 1 >$disk/power && while [ ! -e /dev/nullb1 ]; do usleep 1000; done
export INJECT_DATA=/dev/nullb1
echo +cpu >/sys/fs/cgroup/cgroup.subtree_control
";
/// Files that the interpreter opens before its first line; the rest is determined by its program.
const PYTHON: [&str; 5] = [
    "os.py",
    "encodings/__init__.py",
    "encodings/aliases.py",
    "encodings/utf_8.py",
    "encodings/latin_1.py",
];

/// The compiled programs: always in the same place, so that a saved boot can be resumed.
fn compiled() -> Option<&'static Path> {
    static PLACE: OnceLock<Option<PathBuf>> = OnceLock::new();
    let make = || {
        if !has_program("cc", "gcc") || !has_program("c++", "g++") {
            return None;
        }
        let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join("injector");
        std::fs::create_dir_all(&place).expect("a directory");
        super::build_injector(&place);
        super::build_executor(&place);
        Some(place)
    };
    PLACE.get_or_init(make).as_deref()
}

/// The system's interpreter, and its files.
fn python() -> Option<(PathBuf, Vec<GuestFile>)> {
    let says = "import os, sys; print(sys.executable, os.path.dirname(os.__file__))";
    let asked = Command::new("/usr/bin/python3").args(["-I", "-c", says]).output().ok()?;
    let said = String::from_utf8_lossy(&asked.stdout).into_owned();
    let (program, library) = said.trim().split_once(' ')?;
    let copy = |name: &&str| {
        let path = format!("{library}/{name}");
        GuestFile::from_host_file(&path, path.clone()).ok()
    };
    let files: Option<Vec<_>> = PYTHON.iter().map(copy).collect();
    Some((std::fs::canonicalize(program).ok()?, files?))
}

fn causes_are_named_on(kernel: &str, backend: &str) {
    let Some(place) = compiled() else { return };
    let Some(mut guest) = testing::guest(kernel) else { return };
    let program = testing::stripped(&std::env::current_exe().unwrap());
    (guest.cpus, guest.memory_mb, guest.accel) = (1, 1024, Accel::VirtualTime);
    guest.modules = vec!["configfs".into(), "null_blk".into()];
    let of = |name: &str| {
        GuestFile::from_host_file(place.join(name), format!("{THERE}/{name}")).unwrap()
    };
    guest.files = vec![of("inject.so"), of("executor")];
    // Programs, so that their libraries are copied.
    guest.programs = vec![program.clone(), place.join("executor")];
    if has_program("cyclictest", "rt-tests") {
        guest.programs.push("/usr/bin/cyclictest".into());
    }
    match python() {
        Some((python, files)) => {
            let link = ("/usr/bin/python3".to_owned(), python.to_string_lossy().into_owned());
            guest.links.push(link);
            guest.programs.push(python);
            guest.files.extend(files);
        }
        None => println!("SKIPPED: a loop in Python lacks /usr/bin/python3 (package python3)"),
    }
    guest.job = Job::Script(format!(
        "{SCRIPT}export PUNCTUAL_BACKEND={backend}\n\
         INJECT_FEWER={FEWER} PUNCTUAL_INJECTOR={THERE} exec {} --include-ignored \
         --test-threads=1 --nocapture attach_causes::what_delays_",
        program.display()
    ));
    let Some(result) = testing::run(&guest) else { return };
    let report = String::from_utf8_lossy(&result.stdout);
    let is_shown = |line: &&str| line.starts_with("| ") || line.starts_with("SKIPPED: ");
    report.lines().filter(is_shown).for_each(|line| println!("{line} (in a guest with {kernel})"));
    assert_eq!(result.exit_status, Some(0), "{}", testing::story(&result));
    assert!(report.contains("test result: ok. 3 passed"), "{report}");
}

#[test]
fn on_an_old_kernel() {
    causes_are_named_on("debian:6.1", "btf");
}

#[test]
fn on_a_real_time_kernel() {
    causes_are_named_on("debian:6.12-rt", "btf");
}

#[test]
fn injected_delays_are_attributed_by_events_on_an_old_kernel() {
    causes_are_named_on("debian:6.1", "tracefs");
}
