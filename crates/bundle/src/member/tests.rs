//! Hostile members one by one, for both ways of opening.

use super::*;
use std::fs;
use std::os::unix::fs::symlink;
use tempfile::TempDir;

/// A results directory, and a file outside with text that must not be read or changed.
fn scene() -> (TempDir, Member, PathBuf) {
    let place = tempfile::tempdir().unwrap();
    let outside = place.path().join("outside");
    fs::create_dir_all(place.path().join("bundle/phases")).unwrap();
    fs::write(&outside, "secret").unwrap();
    fs::write(place.path().join("bundle/plan.toml"), "plan").unwrap();
    let root = Member::from_root(&place.path().join("bundle"));
    (place, root, outside)
}

fn refusal(read: Result<impl Sized, BundleError>) -> String {
    read.map(drop).unwrap_err().to_string()
}

#[test]
fn a_regular_file_is_read_also_through_a_link_to_the_bundle() {
    let (place, root, _) = scene();
    assert_eq!(root.join("plan.toml").read_text().unwrap(), "plan");
    symlink("bundle", place.path().join("latest")).unwrap();
    let latest = Member::from_root(&place.path().join("latest"));
    assert_eq!(latest.join("plan.toml").read_text().unwrap(), "plan");
    latest.join("plan.toml").replace_bytes(b"new").unwrap();
    assert_eq!(root.join("plan.toml").read_text().unwrap(), "new");
}

#[test]
fn links_are_followed_neither_for_reading_nor_for_writing() {
    let (_place, root, outside) = scene();
    symlink(&outside, root.join("link.json").path()).unwrap();
    symlink(outside.parent().unwrap(), root.join("there").path()).unwrap();
    symlink("plan.toml", root.join("inner.toml").path()).unwrap();
    for name in ["link.json", "there/outside", "inner.toml"] {
        assert!(refusal(root.join(name).read()).contains("symbolic link"), "{name}");
        assert!(
            refusal(root.join(name).replace_bytes(b"overwritten")).contains("symbolic link"),
            "{name}"
        );
        assert!(root.join(name).create_new().is_err(), "{name}");
    }
    // The temporary file of the new text.
    symlink(&outside, root.join("report.new").path()).unwrap();
    root.join("report.html").replace_bytes(b"page").unwrap();
    assert!(refusal(root.join("there").list_entries("")).contains("symbolic link"));
    assert!(root.join("there/new").create_directory().is_err());
    assert_eq!(fs::read_to_string(&outside).unwrap(), "secret");
    assert_eq!(root.join("report.html").read_text().unwrap(), "page");
}

#[test]
fn what_is_added_to_or_locked_is_no_link() {
    let (_place, root, outside) = scene();
    symlink(&outside, root.join("on-violation.log").path()).unwrap();
    symlink(outside.parent().unwrap().join("made"), root.join("lab.lock").path()).unwrap();
    for name in ["on-violation.log", "lab.lock"] {
        for opened in [root.join(name).open_to_append(), root.join(name).open_to_lock()] {
            assert!(opened.unwrap_err().to_string().contains("symbolic link"), "{name}");
        }
    }
    assert_eq!(fs::read_to_string(&outside).unwrap(), "secret");
    assert!(!outside.parent().unwrap().join("made").exists());
    for text in [b"one ", b"more"] {
        root.join("log").open_to_append().unwrap().write_all(text).unwrap();
    }
    drop(root.join("log").open_to_lock().unwrap());
    assert_eq!(root.join("log").read_text().unwrap(), "one more");
}

#[test]
fn a_pinned_directory_is_not_affected_by_renames() {
    let (_place, root, outside) = scene();
    let phases = root.join("phases").open_directory().unwrap();
    fs::rename(root.join("phases").path(), root.join("moved").path()).unwrap();
    symlink(outside.parent().unwrap(), root.join("phases").path()).unwrap();
    fs::write(phases.proc_path().join("new"), "x").unwrap();
    assert!(root.join("moved/new").exists() && root.join("phases").open_directory().is_err());
}

#[test]
fn private_members_are_accessible_to_their_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    let (_place, root, _) = scene();
    let recording = root.join("recording").to_private();
    recording.create_directory().unwrap();
    drop(recording.join("segment").create_new().unwrap());
    recording.join("document").replace_bytes(b"x").unwrap();
    drop(recording.join("log").open_to_append().unwrap());
    let mode = |member: &Member| fs::metadata(member.path()).unwrap().mode() & 0o7777;
    assert_eq!(mode(&recording), 0o700);
    for name in ["segment", "document", "log"] {
        assert_eq!(mode(&recording.join(name)), 0o600, "{name}");
    }
    // What is made of it too; not where others may read it, and no figures of a run.
    assert!(is_private(root.path()) && is_private(recording.path()));
    fs::set_permissions(recording.path(), PermissionsExt::from_mode(0o755)).unwrap();
    fs::set_permissions(root.path(), PermissionsExt::from_mode(0o755)).unwrap();
    assert!(!is_private(root.path()) && !is_private(recording.path()));
    assert!(!is_private(&root.path().join("missing")));
}

#[test]
fn only_regular_files_are_opened() {
    let (_place, root, _) = scene();
    let fifo = root.join("fifo");
    rustix::fs::mkfifoat(CWD, fifo.path(), Mode::from_raw_mode(0o600)).unwrap();
    // Reading it would block forever.
    assert!(refusal(fifo.read()).contains("FIFO"));
    assert!(refusal(fifo.replace_bytes(b"x")).contains("FIFO"));
    assert!(refusal(root.join("phases").read()).contains("directory"));
    fifo.sync_to_disk().unwrap();
    root.sync_to_disk().unwrap();
}

#[test]
fn a_name_does_not_lead_out() {
    let (_place, root, _) = scene();
    for name in ["../outside", "/etc/hostname", "phases/../plan.toml"] {
        assert!(refusal(root.join(name).read()).contains("leads out"), "{name}");
        assert!(refusal(root.join(name).replace_bytes(b"x")).contains("leads out"), "{name}");
    }
}

#[test]
fn oversized_members_are_not_read() {
    let (_place, root, _) = scene();
    let sparse = root.join("sparse.log").create_new().unwrap();
    sparse.set_len(MAX_FILE + 1).unwrap();
    assert!(refusal(root.join("sparse.log").read()).contains("too many"));
}

/// Kernels before 5.6 have no openat2, and the filters of older container engines refuse it.
#[test]
fn without_openat2_symbolic_links_are_refused_too() {
    let (_place, root, outside) = scene();
    symlink(&outside, root.join("link").path()).unwrap();
    symlink(outside.parent().unwrap(), root.join("there").path()).unwrap();
    let (opened, _) = root.open_root().unwrap();
    let walk = |path: &str| {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        walk_by_steps(&opened, Path::new(path), flags)
    };
    assert!(walk("plan.toml").is_ok() && walk("phases").is_ok() && walk(".").is_ok());
    assert_eq!(walk("nothing").unwrap_err().kind(), io::ErrorKind::NotFound);
    for path in ["link", "there/outside", "there/bundle/plan.toml"] {
        assert!(walk(path).unwrap_err().to_string().contains("symbolic link"), "{path}");
    }
}
