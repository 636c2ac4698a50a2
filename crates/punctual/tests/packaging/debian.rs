//! The Debian packages: identical bytes of two builds, no complaint of lintian, installed in a
//! separate root, used and removed.

use crate::packaged::{files_below, lacks, program, repository, run};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const TOOLS: [&str; 7] =
    ["dpkg-deb", "dpkg-shlibdeps", "readelf", "strip", "cc", "cargo", "python3"];
/// A fixed time, not that of the last commit: a release's sources may not be a git checkout.
const EPOCH: &str = "1700000000";

/// The packages, uncompressed, by name.
fn make(directory: &Path) -> Vec<PathBuf> {
    let printed = run(Command::new(repository().join("packaging/deb"))
        .args([program(), directory])
        .env("DEB_LEVEL", "0")
        .env("SOURCE_DATE_EPOCH", EPOCH));
    printed.lines().map(PathBuf::from).collect()
}

#[test]
fn two_builds_give_equal_bytes_and_lintian_has_no_complaint() {
    let test = "two_builds_give_equal_bytes_and_lintian_has_no_complaint";
    if lacks(test, &TOOLS) {
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let once = make(&directory.path().join("once"));
    let again = make(&directory.path().join("again"));
    assert_eq!(once.len(), 3);
    for (first, second) in once.iter().zip(&again) {
        assert_eq!(first.file_name(), second.file_name());
        let (first_bytes, second_bytes) = (fs::read(first), fs::read(second));
        assert!(first_bytes.expect("read") == second_bytes.expect("read"), "{first:?} differs");
    }
    if lacks("the packages' check", &["lintian"]) {
        return;
    }
    let found = run(Command::new("lintian")
        .args(["--allow-root", "--fail-on", "warning,error", "--tag-display-limit", "0"])
        .args(&once));
    assert_eq!(found.trim(), "");
}

/// Copies the dynamic loader's files, so that the program runs in an otherwise empty root.
fn copy_libraries(of: &Path, root: &Path) {
    // A static program has none, and ldd(1) fails.
    let listed = Command::new("ldd").arg(of).output().expect("ldd runs").stdout;
    let listed = String::from_utf8_lossy(&listed);
    for library in listed.split_whitespace().filter(|word| word.starts_with('/')) {
        let to = root.join(&library[1..]);
        fs::create_dir_all(to.parent().expect("a directory")).expect("created");
        fs::copy(library, to).expect("a library");
    }
}

fn dpkg(root: &Path) -> Command {
    let mut command = Command::new("dpkg");
    // The system's libraries are not installed there as packages.
    command.arg(format!("--root={}", root.display())).arg("--force-depends");
    command
}

#[test]
fn packages_are_installed_in_a_root_of_their_own_used_and_removed() {
    let test = "packages_are_installed_in_a_root_of_their_own_used_and_removed";
    if lacks(test, &TOOLS) || lacks(test, &["dpkg", "ldd", "chroot", "pkg-config"]) {
        return;
    }
    if run(Command::new("id").arg("-u")).trim() != "0" {
        return println!("SKIPPED: {test} lacks the right to change its root directory");
    }
    let directory = tempfile::tempdir().expect("a directory");
    let packages = make(&directory.path().join("packages"));
    let root = directory.path().join("root");
    for part in ["var/lib/dpkg/info", "var/lib/dpkg/updates"] {
        fs::create_dir_all(root.join(part)).expect("created");
    }
    fs::write(root.join("var/lib/dpkg/status"), "").expect("written");
    fs::create_dir_all(root.join("lib")).expect("created");
    copy_libraries(program(), &root);
    let before = files_below(&root.join("lib"));

    run(dpkg(&root).arg("--install").args(&packages));
    let version = run(Command::new("chroot").arg(&root).args(["/usr/bin/punctual", "--version"]));
    assert_eq!(version.trim(), concat!("punctual ", env!("CARGO_PKG_VERSION")));
    let usr = root.join("usr");
    for file in [
        "share/man/man1/punctual-run.1.gz",
        "share/man/man5/punctual-experiment.5.gz",
        "share/bash-completion/completions/punctual",
        "share/zsh/vendor-completions/_punctual",
        "share/fish/vendor_completions.d/punctual.fish",
        "share/doc/punctual/README.md",
        "share/doc/punctual/docs/explain.md",
        "share/doc/punctual/sbom.cdx.json",
        "share/doc/punctual/THIRD-PARTY.gz",
        "include/punctual/testpoint.h",
    ] {
        assert!(usr.join(file).is_file(), "{file} is in no package");
    }
    let copyright = fs::read_to_string(usr.join("share/doc/punctual/copyright")).expect("read");
    for part in ["crates/record/bpf/*", "License: GPL-2.0-or-later", "License: Expat or Apache-2.0"]
    {
        assert!(copyright.contains(part), "{part} is not in\n{copyright}");
    }
    build_with_library(&root, directory.path());

    run(dpkg(&root)
        .args(["--purge", "punctual"])
        .args(["libpunctual-testpoint-dev", "libpunctual-testpoint0"]));
    let left = files_below(&root);
    let ours = |path: &&PathBuf| path.to_string_lossy().contains("punctual");
    assert_eq!(left.iter().filter(ours).collect::<Vec<_>>(), Vec::<&PathBuf>::new());
    assert_eq!(files_below(&root.join("lib")), before, "libraries of others are gone");
}

/// Builds a program with test points, with only the installed header and library.
fn build_with_library(root: &Path, directory: &Path) {
    let pc = files_below(root).into_iter().find(|file| file.ends_with("punctual-testpoint.pc"));
    let pc = root.join(pc.expect("a file for pkg-config"));
    let flags = run(Command::new("pkg-config")
        .args(["--cflags", "--libs", "punctual-testpoint"])
        .env("PKG_CONFIG_SYSROOT_DIR", root)
        .env("PKG_CONFIG_ALLOW_SYSTEM_CFLAGS", "1")
        .env("PKG_CONFIG_ALLOW_SYSTEM_LIBS", "1")
        .env("PKG_CONFIG_PATH", pc.parent().expect("a directory")));
    let source = directory.join("points.c");
    let text = "#include <punctual/testpoint.h>\nint main(void) { return 0; }\n";
    fs::write(&source, text).expect("written");
    let made = directory.join("points");
    run(Command::new("cc").arg(&source).arg("-o").arg(&made).args(flags.split_whitespace()));
    let libraries = pc.parent().and_then(Path::parent).expect("the libraries");
    run(Command::new(&made).env("LD_LIBRARY_PATH", libraries));
}
