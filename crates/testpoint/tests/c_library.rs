//! The C library as users build and link it: by pkg-config, dynamically and statically, with CMake,
//! in C++, with points disabled.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository")
}

fn run(command: &mut Command) -> String {
    let Output { status, stdout, stderr } =
        command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(
        status.success(),
        "{command:?}\n{}{}",
        String::from_utf8_lossy(&stdout),
        String::from_utf8_lossy(&stderr)
    );
    String::from_utf8_lossy(&stdout).into_owned()
}

fn lacks(tools: &[&str]) -> bool {
    let missing: Vec<_> = tools
        .iter()
        .filter(|tool| Command::new(tool).arg("--version").output().is_err())
        .copied()
        .collect();
    if !missing.is_empty() {
        println!("SKIPPED: the C library's test lacks {}", missing.join(", "));
    }
    !missing.is_empty()
}

/// Installs the library in a directory of this test.
fn install(root: &Path) -> PathBuf {
    let prefix = root.join("prefix");
    run(Command::new(repository().join("crates/testpoint/c/install")).arg(&prefix));
    prefix
}

fn pkg_config(prefix: &Path, what: &[&str]) -> Vec<String> {
    let path = prefix.join("lib/pkgconfig");
    let flags = run(Command::new("pkg-config")
        .args(what)
        .arg("punctual-testpoint")
        .env("PKG_CONFIG_PATH", path));
    flags.split_whitespace().map(str::to_owned).collect()
}

/// Runs a program under the flight recorder: returns the beginning of its file of points, with its
/// names.
fn points_of(program: &Path, prefix: &Path) -> Vec<u8> {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().expect("a directory");
    std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o700))
        .expect("our own");
    let mut command = Command::new(program);
    command.env("PUNCTUAL_POINTS_DIR", directory.path()).env("PUNCTUAL_POINTS", "flight");
    run(command.arg("5").env("LD_LIBRARY_PATH", prefix.join("lib")));
    let mut files = std::fs::read_dir(directory.path()).expect("a directory");
    let bytes =
        files.next().map(|file| std::fs::read(file.expect("an entry").path()).expect("our own"));
    bytes.unwrap_or_default()
}

fn names(file: &[u8]) -> Vec<String> {
    let entry = |place: usize| &file[65_536 + 128 * place..][..128];
    let used = u32::from_ne_bytes(file[64..68].try_into().expect("four")) as usize;
    let name = |entry: &[u8]| {
        String::from_utf8_lossy(
            &entry[8..8 + u32::from_ne_bytes(entry[..4].try_into().expect("four")) as usize],
        )
        .into_owned()
    };
    (0..used).map(|place| name(entry(place))).collect()
}

fn head(file: &[u8]) -> u64 {
    u64::from_ne_bytes(file[196_608 + 64..][..8].try_into().expect("eight"))
}

const NETIO: [&str; 5] =
    ["netio.period", "netio.task", "netio.receive", "netio.encrypt", "netio.sent"];

#[test]
fn c_programs_link_with_the_library_in_every_way() {
    if lacks(&["cc", "pkg-config", "nm"]) {
        return;
    }
    let root = tempfile::tempdir().expect("a directory");
    let prefix = install(root.path());
    let source = repository().join("examples/testpoint-c/netio.c");
    let out = |name: &str| root.path().join(name);
    let compile = |name: &str, flags: &[String]| {
        let mut command = Command::new("cc");
        run(command
            .args(["-O2", "-Wall", "-Wextra", "-Werror", "-pedantic", "-o"])
            .arg(out(name))
            .arg(&source)
            .args(flags));
        out(name)
    };
    let nm = |program: &Path| run(Command::new("nm").arg(program));

    let dynamic = compile("dynamic", &pkg_config(&prefix, &["--cflags", "--libs"]));
    assert!(nm(&dynamic).contains("U punctual_testpoint_slow"), "the shared library has it");
    let archive = prefix.join("lib/libpunctual-testpoint.a").display().to_string();
    let mut flags = pkg_config(&prefix, &["--cflags", "--static", "--libs"]);
    flags.iter_mut().for_each(|flag| {
        if flag == "-lpunctual-testpoint" {
            flag.clone_from(&archive);
        }
    });
    let with_archive = compile("with-archive", &flags);
    flags.push("-static".to_owned());
    let all_static = compile("all-static", &flags);
    for program in [&dynamic, &with_archive, &all_static] {
        let file = points_of(program, &prefix);
        assert_eq!(names(&file), NETIO, "{}", program.display());
        assert_eq!(head(&file), 5 * 8);
    }

    let mut off = pkg_config(&prefix, &["--cflags"]);
    off.push("-DPUNCTUAL_TESTPOINT_OFF".to_owned());
    let off = compile("off", &off);
    assert!(!nm(&off).contains("punctual"), "nothing of the library");
    assert_eq!(points_of(&off, &prefix), b"");
}

#[test]
fn cmake_finds_the_library_and_cpp_scopes_end_on_exceptions() {
    if lacks(&["cc", "c++", "cmake"]) {
        return;
    }
    let root = tempfile::tempdir().expect("a directory");
    let prefix = install(root.path());
    let build = root.path().join("build");
    let prefix_path = format!("-DCMAKE_PREFIX_PATH={}", prefix.display());
    run(Command::new("cmake")
        .arg("-S")
        .arg(repository().join("examples/testpoint-c"))
        .arg("-B")
        .arg(&build)
        .arg(prefix_path));
    run(Command::new("cmake").arg("--build").arg(&build));
    for program in ["netio", "netio-static"] {
        assert_eq!(names(&points_of(&build.join(program), &prefix)), NETIO);
    }
    has_steps(&build, &prefix);
    let file = points_of(&build.join("scope"), &prefix);
    assert_eq!(names(&file), ["half", "refused"]);
    assert_eq!(head(&file), 10 * 2 + 5, "ten scopes begun and ended, five refusals");
}

/// All points of this program without editing have the name of the program.
fn has_steps(build: &Path, prefix: &Path) {
    let steps = names(&points_of(&build.join("steps"), prefix));
    assert!(steps[0].starts_with("punctual.steps:") && steps.len() == 1, "{steps:?}");
}

#[test]
fn a_line_of_meson_makes_every_step_a_point() {
    if lacks(&["cc", "meson", "ninja", "pkg-config"]) {
        return;
    }
    let root = tempfile::tempdir().expect("a directory");
    let (prefix, build) = (install(root.path()), root.path().join("build"));
    let mut meson = Command::new("meson");
    meson.arg("setup").arg(&build).arg(repository().join("examples/testpoint-c"));
    run(meson.env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig")));
    run(Command::new("ninja").arg("-C").arg(&build));
    has_steps(&build, &prefix);
}
