//! Bundles with members replaced by links, FIFOs and devices, under every command that opens them.

use super::fixtures;
use crate::common::text;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Commands that open bundles, with the bundle as the last argument.
const COMMANDS: [&str; 12] = [
    "show",
    "show --json",
    "show --published",
    "report",
    "export --format csv",
    "export --format perfetto",
    "pairs",
    "occupancy",
    "steps",
    "explain",
    "compare GOOD",
    "lab report",
];

const SECRET: &str = "nobody's business";

/// Runs a command that must end by itself. A hanging one is killed after a generous timeout.
fn ends(line: &str, bundle: &Path) -> Output {
    let good = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/bundles/good");
    let words = line.split(' ').map(|word| if word == "GOOD" { good } else { word });
    let mut command = Command::new("timeout");
    command.args(["--signal=KILL", "120", env!("CARGO_BIN_EXE_punctual")]).args(words).arg(bundle);
    command.output().unwrap()
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).unwrap();
        }
    }
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

fn fifo(path: &Path) {
    let _ = fs::remove_file(path);
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

fn link(to: &Path, path: &Path) {
    let _ = fs::remove_file(path);
    symlink(to, path).unwrap();
}

/// Makes a bundle hostile in one way.
type Make = fn(bundle: &Path, secret: &Path);

fn but_the_manifest(bundle: &Path) -> impl Iterator<Item = PathBuf> {
    files(bundle).into_iter().filter(|path| !path.ends_with("bundle.json"))
}

const WAYS: [(&str, Make); 6] = [
    ("bundle.json is a FIFO", |bundle, _| fifo(&bundle.join("bundle.json"))),
    ("bundle.json is a link", |bundle, secret| link(secret, &bundle.join("bundle.json"))),
    ("lab.json and all others are FIFOs", |bundle, _| {
        fifo(&bundle.join("lab.json"));
        but_the_manifest(bundle).for_each(|file| fifo(&file));
    }),
    ("all others are links to /dev/zero", |bundle, _| {
        link(Path::new("/dev/zero"), &bundle.join("lab.json"));
        but_the_manifest(bundle).for_each(|file| link(Path::new("/dev/zero"), &file));
    }),
    ("directories are links", |bundle, _| {
        for name in ["phases", "recording", "windows"] {
            let (there, away) = (bundle.join(name), bundle.with_file_name(name));
            if there.exists() {
                fs::rename(&there, &away).unwrap();
                symlink(&away, &there).unwrap();
            }
        }
    }),
    ("what is written is a link", |bundle, secret| {
        for name in ["report.html", "report.new", "summary.json", "bundle.new"] {
            link(secret, &bundle.join(name));
        }
    }),
];

#[test]
fn no_member_of_a_bundle_is_followed_or_waited_for() {
    let known = fixtures();
    for (way, make) in WAYS {
        for name in ["recorded", "explained"] {
            let fixture = known.iter().find(|path| path.ends_with(name)).unwrap();
            let place = tempfile::tempdir().unwrap();
            let (bundle, secret) = (place.path().join("b"), place.path().join("secret"));
            copy(fixture, &bundle);
            fs::write(&secret, SECRET).unwrap();
            make(&bundle, &secret);
            for line in COMMANDS {
                let ended = ends(line, &bundle);
                let said = text(&ended);
                let code = ended.status.code();
                assert!(matches!(code, Some(0..=4)), "{way}, {line}: {code:?} {said}");
                assert!(
                    !said.contains("panicked") && !said.contains(SECRET),
                    "{way}, {line}: {said}"
                );
                assert_eq!(fs::read_to_string(&secret).unwrap(), SECRET, "{way}, {line}");
            }
        }
    }
}

/// The report would have been written to the link's target.
#[test]
fn a_report_is_not_written_through_a_link() {
    let place = tempfile::tempdir().unwrap();
    let (bundle, secret) = (place.path().join("b"), place.path().join("secret"));
    copy(fixtures().iter().find(|path| path.ends_with("good")).unwrap(), &bundle);
    fs::write(&secret, SECRET).unwrap();
    symlink(&secret, bundle.join("report.html")).unwrap();
    let refused = ends("report", &bundle);
    assert_eq!(refused.status.code(), Some(1), "{}", text(&refused));
    assert!(
        text(&refused).contains("report.html: a symbolic link is on its way"),
        "{}",
        text(&refused)
    );
    assert_eq!(fs::read_to_string(&secret).unwrap(), SECRET);
    fs::remove_file(bundle.join("report.html")).unwrap();
    assert_eq!(ends("report", &bundle).status.code(), Some(0));
    assert!(bundle.join("report.html").is_file() && !bundle.join("report.new").exists());
}
