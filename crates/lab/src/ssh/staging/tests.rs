//! The scripts, run by every POSIX shell of this machine, with a program in place of punctual that
//! records its calls.

use super::*;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use tempfile::TempDir;

/// The user without any rights.
const NOBODY: u32 = 65_534;

fn directory(place: &TempDir, name: &str) -> RemoteDirectory {
    let path = place.path().canonicalize().unwrap().join(name);
    RemoteDirectory::from_words(&format!("{} abc123", path.display())).unwrap()
}

/// Puts the other system's program into a directory; `file` is its log.
fn plant(directory: &Path, file: &Path, nonce: &str) {
    fs::create_dir(directory).unwrap();
    let program = format!("#!/bin/sh\necho \"$@\" >>{}\n", file.display());
    fs::write(directory.join("punctual"), program).unwrap();
    fs::write(directory.join("nonce"), format!("{nonce}\n")).unwrap();
    fs::set_permissions(directory.join("punctual"), Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(directory, Permissions::from_mode(0o700)).unwrap();
}

fn shells() -> Vec<Vec<&'static str>> {
    let all: [&[&str]; 3] = [&["dash", "-c"], &["bash", "-c"], &["busybox", "sh", "-c"]];
    let runs = |shell: &&&[&str]| {
        Command::new(shell[0])
            .args(&shell[1..])
            .arg("true")
            .output()
            .is_ok_and(|ran| ran.status.success())
    };
    all.iter().filter(runs).map(|shell| shell.to_vec()).collect()
}

/// The text between the single quotes, run by one of the shells.
fn run(shell: &[&str], script: &str) -> (Option<i32>, String, String) {
    let inner = script.strip_prefix("sh -c '").and_then(|script| script.strip_suffix('\''));
    let inner = inner.unwrap_or_else(|| panic!("{script}"));
    let ran = Command::new(shell[0]).args(&shell[1..]).arg(inner).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (ran.status.code(), text(&ran.stdout), text(&ran.stderr))
}

#[test]
fn only_valid_staging_paths_are_accepted() {
    let directory = RemoteDirectory::from_words("/run/punctual-ssh-aB3 00ff").unwrap();
    assert_eq!(directory.run_id(), "aB3");
    let command = directory.agent_command("attach", 7);
    let end = "; ./punctual __remote attach /run/punctual-ssh-aB3 7'";
    assert!(command.ends_with(end), "{command}");
    for words in [
        "/run/punctual-ssh-aB3",
        "punctual-ssh-a 0",
        "/tmp/other 0",
        "/tmp/punctual-ssh- 0",
        "/tmp/punctual-ssh-a;b 0",
        "/t mp/punctual-ssh-a 0",
        "/tmp/$(x)/punctual-ssh-a 0",
        "/tmp/punctual-ssh-a/.. 0",
        "/tmp/punctual-ssh-a $(x)",
        "/tmp/punctual-ssh-a ",
    ] {
        assert_eq!(RemoteDirectory::from_words(words), None, "{words}");
    }
}

#[test]
fn scripts_are_one_line_in_single_quotes() {
    let directory = RemoteDirectory::from_words("/run/punctual-ssh-aB3 00ff").unwrap();
    for script in [
        staging_script("/root/.cache", "00ff", &"0".repeat(64)),
        listing_script("/run"),
        removal_script(&directory),
        directory.agent_command("attach", 7),
    ] {
        assert!(
            !script.contains(['\n', '\\', '!']) && script.matches('\'').count() == 2,
            "{script}"
        );
    }
}

#[test]
fn a_staging_directory_is_found_and_removed() {
    for shell in shells() {
        let place = tempfile::tempdir().unwrap();
        let base = place.path().canonicalize().unwrap().join("home/.cache");
        let (base, started) = (base.display().to_string(), place.path().join("started"));
        let program = format!("#!/bin/sh\necho \"$@\" >>{}\n", started.display());
        fs::write(place.path().join("program"), &program).unwrap();
        let digest = files::digest_of(program.as_bytes()).unwrap();
        let make = |digest: &str| {
            let script = staging_script(&base, "00ff", digest);
            let inner = script.strip_prefix("sh -c '").unwrap().strip_suffix('\'').unwrap();
            let program = File::open(place.path().join("program")).unwrap();
            let mut command = Command::new(shell[0]);
            command.args(&shell[1..]).arg(inner).stdin(program).output().unwrap()
        };
        let made = make(&digest);
        let answer = String::from_utf8_lossy(&made.stdout).into_owned();
        let words = answer.lines().find_map(|line| line.strip_prefix("punctual-placed "));
        let directory = words.and_then(RemoteDirectory::from_words).unwrap_or_else(|| {
            panic!("{shell:?}: {answer} {}", String::from_utf8_lossy(&made.stderr))
        });
        assert_eq!(fs::metadata(&directory.path).unwrap().mode() & 0o7777, 0o700);
        let (code, listed, _) = run(&shell, &listing_script(&base));
        assert_eq!(code, Some(0));
        assert_eq!(listed, format!("punctual-found {} 00ff\n", directory.path), "{shell:?}");
        assert_eq!(run(&shell, &directory.agent_command("attach", 7)).0, Some(0));
        let said = fs::read_to_string(&started).unwrap();
        let path = &directory.path;
        let asked = format!(
            "--version\n__remote begin {path}\n__remote status {path}\n__remote attach {path} 7\n"
        );
        assert_eq!(said, asked, "{shell:?}");
        // Removing works without the program there.
        fs::remove_file(Path::new(path).join("punctual")).unwrap();
        assert_eq!(run(&shell, &removal_script(&directory)).0, Some(0));
        assert!(!Path::new(path).exists());
        assert_eq!(run(&shell, &directory.agent_command("attach", 7)).0, Some(127));
        // A program received with another digest is neither started nor left.
        assert_eq!(make(&"0".repeat(64)).status.code(), Some(64));
        assert_eq!(fs::read_dir(&base).unwrap().count(), 0, "{shell:?}");
        assert_eq!(fs::read_to_string(&started).unwrap(), said);
    }
}

#[test]
fn a_replaced_staging_directory_is_not_entered() {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        println!("SKIPPED: lacks root: no directory of another user is tried");
    }
    for shell in shells() {
        let place = tempfile::tempdir().unwrap();
        let base = place.path().canonicalize().unwrap();
        let started = base.join("started");
        let at = |name: &str| base.join(name);
        plant(&at("punctual-ssh-foreign"), &started, "abc123");
        plant(&at("punctual-ssh-open"), &started, "abc123");
        plant(&at("punctual-ssh-another"), &started, "def456");
        plant(&at("elsewhere"), &started, "abc123");
        symlink(at("elsewhere"), at("punctual-ssh-link")).unwrap();
        fs::set_permissions(at("punctual-ssh-open"), Permissions::from_mode(0o770)).unwrap();
        let mut names = vec!["punctual-ssh-open", "punctual-ssh-link"];
        if is_root {
            chown(at("punctual-ssh-foreign"), Some(NOBODY), Some(NOBODY)).unwrap();
            names.push("punctual-ssh-foreign");
        }
        let listed = run(&shell, &listing_script(&base.display().to_string())).1;
        names.iter().for_each(|name| assert!(!listed.contains(name), "{shell:?}: {listed}"));
        let _ = fs::remove_file(&started);
        for name in names.into_iter().chain(["punctual-ssh-another"]) {
            let directory = directory(&place, name);
            for script in [directory.agent_command("attach", 0), removal_script(&directory)] {
                let (code, _, stderr) = run(&shell, &script);
                assert_eq!(code, Some(NOT_OURS), "{shell:?} {name}: {stderr}");
                assert!(stderr.contains("is not the directory that punctual made"), "{stderr}");
            }
            assert!(!started.exists() && at(name).exists(), "{shell:?} {name}");
        }
    }
}

/// Another user exchanges directory and link continuously: between check and start, too.
#[test]
fn a_directory_that_is_exchanged_meanwhile_starts_nothing_of_others() {
    let place = tempfile::tempdir().unwrap();
    let base = place.path().canonicalize().unwrap();
    let (own, planted) = (base.join("own"), base.join("planted"));
    let (real, fake) = (base.join("punctual-ssh-run"), base.join("punctual-ssh-fake"));
    plant(&real, &own, "abc123");
    plant(&fake, &planted, "abc123");
    match rustix::process::geteuid().is_root() {
        true => chown(&fake, Some(NOBODY), Some(NOBODY)).unwrap(),
        false => fs::set_permissions(&fake, Permissions::from_mode(0o755)).unwrap(),
    }
    let (over, directory) = (AtomicBool::new(false), directory(&place, "punctual-ssh-run"));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                renameat_with(CWD, &real, CWD, &fake, RenameFlags::EXCHANGE).unwrap();
            }
        });
        let shells = shells();
        for shell in shells.iter().cycle().take(120) {
            run(shell, &directory.agent_command("attach", 0));
        }
        over.store(true, Ordering::Relaxed);
    });
    assert!(own.exists(), "it was never the own one's turn");
    assert!(!planted.exists(), "{}", fs::read_to_string(planted).unwrap());
}

#[test]
fn a_base_directory_writable_by_others_is_refused() {
    let is_root = rustix::process::geteuid().is_root();
    for shell in shells() {
        let place = tempfile::tempdir().unwrap();
        let base = place.path().canonicalize().unwrap().join("above/base");
        fs::create_dir_all(&base).unwrap();
        let made = || run(&shell, &staging_script(&base.display().to_string(), "00ff", "0")).0;
        let change = |path: PathBuf, mode| {
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            let code = made();
            fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
            code
        };
        let above = || base.parent().unwrap().to_owned();
        // Created in it, and the program has another digest.
        assert_eq!(made(), Some(64), "{shell:?}");
        for mode in [0o775, 0o757, 0o1777] {
            assert_eq!(change(base.clone(), mode), Some(60), "{shell:?} {mode:o}");
        }
        // Like /tmp: only the owner and root can exchange files in it.
        assert_eq!(change(above(), 0o1777), Some(if is_root { 64 } else { 60 }), "{shell:?}");
        assert_eq!(change(above(), 0o777), Some(60), "{shell:?}");
        if is_root {
            chown(above(), Some(NOBODY), None).unwrap();
            assert_eq!(made(), Some(60), "{shell:?}");
        }
        assert_eq!(fs::read_dir(&base).unwrap().count(), 0);
    }
}
