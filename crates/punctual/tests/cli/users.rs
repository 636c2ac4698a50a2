//! Every command once, as root and as a plain user: it ends by itself, with its documented status.
//! `./x test` links the released form of the program, statically (.ci/rustc); operations impossible
//! in it, such as loading name services, end it by a signal.

use super::COMMANDS;
use crate::common::{Place, has_program, text};
use punctual_testing as testing;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Another user without any rights or files.
const NOBODY: u32 = 65_534;
const EXPERIMENT: &str = "[[measure]]\nkind = 'timer'\ncpus = '0'\npolicy = 'other'\nperiod = \
                          '1ms'\nsamples = 20\n";
const LAB: &str = "[lab]\nname = 'one'\n[axes]\n'measure.timer.period' = ['1ms']\n";
const SYSTRESS: &str = include_str!("../../../../examples/systress-demo.cfg");
const CYCLICTEST: &str =
    include_str!("../../../bundle/src/import/testdata/rt-tests-2.6/break.json");

/// Allowed exit codes: 2 for commands that need BPF, if it is not available.
const DONE: &[i32] = &[0];
/// The exit code of a lab without any run yet.
const FAILED: &[i32] = &[1];
const REFUSED: &[i32] = &[2];
const WITH_BPF: &[i32] = &[0, 2];

/// A command line, with the allowed exit codes for root and for a plain user.
const LINES: &[(&str, &[i32], &[i32])] = &[
    ("demo --plan", DONE, DONE),
    ("new -", DONE, DONE),
    ("run -q experiment.toml -o run", DONE, DONE),
    ("measure timer -q --cpus 0 --count 20 --set policy=other -o measured", DONE, DONE),
    ("show run", DONE, DONE),
    ("watch --once run", DONE, DONE),
    ("report run -o page.html", DONE, DONE),
    ("compare run measured", DONE, DONE),
    ("lab run lab.toml -o lab --on none", FAILED, FAILED),
    ("lab cell lab 0", DONE, DONE),
    ("lab report lab", FAILED, FAILED),
    ("lab restore none.toml", REFUSED, REFUSED),
    ("lab replay lab 1ms", WITH_BPF, WITH_BPF),
    ("pairs recorded", DONE, DONE),
    ("occupancy recorded", DONE, DONE),
    ("steps recorded", REFUSED, REFUSED),
    ("explain explained", DONE, DONE),
    ("trend kept", DONE, DONE),
    ("export good --format json", DONE, DONE),
    ("hunt none.toml", REFUSED, REFUSED),
    ("hunt report none", REFUSED, REFUSED),
    ("sections good", REFUSED, REFUSED),
    ("boot status", DONE, DONE),
    // The machine of the tests may have a boot loader and a pending trial.
    ("boot once --kernel no-such-release", REFUSED, REFUSED),
    ("boot verify --help", DONE, DONE),
    ("boot restore --help", DONE, DONE),
    ("tune --list", DONE, DONE),
    ("tune report none", REFUSED, REFUSED),
    ("tune apply none", REFUSED, REFUSED),
    ("tune undo none", REFUSED, REFUSED),
    ("truth no-such-case", REFUSED, REFUSED),
    ("import cyclictest.json -o imported", DONE, DONE),
    ("trace -q --duration 50ms -o trace -- true", WITH_BPF, WITH_BPF),
    ("recipe trace-cmd", DONE, DONE),
    ("probe -q -o probed libc:malloc -- true", WITH_BPF, REFUSED),
    ("count -- true", DONE, DONE),
    ("attach -q -o a --user nobody -- ./punctual LOOP -o a-loop", WITH_BPF, REFUSED),
    ("attach -q -o b --user 65534 -- ./punctual LOOP -o b-loop", WITH_BPF, REFUSED),
    ("attach -q -o c --user no-such-user -- true", REFUSED, REFUSED),
    ("check", &[0, 3], &[0, 3]),
    ("isolate create 0 --dry-run", WITH_BPF, WITH_BPF),
    // CPUs isolated before these tests stay so.
    ("isolate undo --help", DONE, DONE),
    ("isolate status", DONE, WITH_BPF),
    ("isolate list", DONE, DONE),
    ("isolate run none -- true", REFUSED, REFUSED),
    ("isolate move 1 none", REFUSED, REFUSED),
    ("isolate tweaks", DONE, DONE),
    // With one CPU none would be left.
    ("isolate unit 0", WITH_BPF, WITH_BPF),
    ("cpus all", DONE, DONE),
    ("ssh list nobody@localhost:1", REFUSED, REFUSED),
    ("ssh fetch nobody@localhost:1 x8Kq02LmPz", REFUSED, REFUSED),
    ("ssh clean nobody@localhost:1 x8Kq02LmPz", REFUSED, REFUSED),
    ("convert systress.cfg", DONE, DONE),
    ("names links", DONE, DONE),
    ("completions bash", DONE, DONE),
    ("man pages", DONE, DONE),
];
/// A program with cycles.
const LOOP: &str = "measure timer -q --cpus 0 --count 300 --set policy=other";

/// A world-accessible directory, with the program and the files of the lines.
fn place() -> Place {
    let place = Place::with(EXPERIMENT);
    place.write("lab.toml", format!("{LAB}{EXPERIMENT}").as_bytes());
    place.write("systress.cfg", SYSTRESS.as_bytes());
    place.write("cyclictest.json", CYCLICTEST.as_bytes());
    fs::create_dir(place.path().join("kept")).expect("a directory");
    let bundles = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/bundles");
    let of_fixtures = ["good", "recorded", "explained"].map(|name| bundles.join(name));
    let copied = Command::new("cp").arg("-r").args(of_fixtures).arg(place.path()).status();
    assert!(copied.is_ok_and(|status| status.success()));
    let program = testing::stripped(Path::new(env!("CARGO_BIN_EXE_punctual")));
    fs::copy(program, place.path().join("punctual")).expect("a copy that anybody may run");
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o1777)).expect("its own");
    place
}

/// Runs as the user who runs the tests, or as another one.
fn ran(place: &Place, line: &str, user: Option<u32>) -> Output {
    let line = line.replace("LOOP", LOOP);
    let mut command = Command::new(place.path().join("punctual"));
    command.args(line.split_whitespace()).current_dir(place.path()).stdin(Stdio::null());
    command.env("HOME", place.path()).env_remove("XDG_CACHE_HOME");
    if let Some(user) = user {
        command.uid(user).gid(user);
    }
    command.output().expect("it starts")
}

fn is_root() -> bool {
    std::os::unix::fs::MetadataExt::uid(&fs::metadata("/proc/self").expect("/proc")) == 0
}

#[test]
fn every_command_ends_by_itself_for_root_and_for_a_plain_user() {
    let users: &[(bool, Option<u32>)] =
        if is_root() { &[(true, None), (false, Some(NOBODY))] } else { &[(false, None)] };
    for &(root, user) in users {
        let place = place();
        for (line, of_root, of_user) in LINES {
            let done = ran(&place, line, user);
            let expected = if root { of_root } else { of_user };
            let said = format!("root {root}: {line}: {:?}: {}", done.status, text(&done));
            assert_eq!(done.status.signal(), None, "{said}");
            assert!(done.status.code().is_some_and(|code| expected.contains(&code)), "{said}");
            assert_eq!(line.contains("no-such-user") && root, said.contains("no user"), "{said}");
        }
    }
    let begins = |name: &&str| LINES.iter().any(|(line, ..)| line.starts_with(*name));
    let groups = ["", "boot", "lab", "ssh", "isolate"];
    let missing: Vec<&str> =
        COMMANDS.into_iter().filter(|name| !groups.contains(name) && !begins(name)).collect();
    assert_eq!(missing, [""; 0]);
}

/// The C library's entry points to its name services, its locales and its character sets. Functions
/// below them are linked anyway, by fork(2) and by wide characters, and load nothing in locale C.
const ENTRIES: [&str; 13] = [
    "getpwnam",
    "getpwuid",
    "getpwent",
    "getgrnam",
    "getgrgid",
    "getgrouplist",
    "initgroups",
    "getaddrinfo",
    "getnameinfo",
    "gethostby",
    "getservby",
    "iconv_open",
    "setlocale",
];

#[test]
fn the_static_program_contains_no_name_service_or_dlopen() {
    let program = env!("CARGO_BIN_EXE_punctual");
    if !has_program("nm", "binutils") || !has_program("readelf", "binutils") {
        return;
    }
    let output = |tool: &str, option: &str| {
        let done = Command::new(tool).args([option, program]).output().expect("it starts");
        String::from_utf8_lossy(&done.stdout).into_owned()
    };
    if output("readelf", "-lW").contains("INTERP") {
        return println!("SKIPPED: lacks a program that is linked as it ships (./x test links it)");
    }
    let symbols = output("nm", "--defined-only");
    let is_entry = |symbol: &&str| {
        let mut words = symbol.split_whitespace().skip(1);
        let (kind, name) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let name = name.trim_start_matches('_');
        ["T", "W"].contains(&kind) && ENTRIES.iter().any(|entry| name.starts_with(entry))
    };
    let found: Vec<&str> = symbols.lines().filter(is_entry).collect();
    assert_eq!(found, [""; 0]);
}
