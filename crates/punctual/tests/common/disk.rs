//! A disk for a test, which blocks all requests as long as requested.

use super::{has_program, is_root, text};
use std::path::Path;
use std::process::Command;

/// An ext4 file system in a file; thawed and removed at the end in any case.
pub struct Disk(String);

fn run(program: &str, arguments: &[&str]) -> bool {
    let done = Command::new(program)
        .args(arguments)
        .output()
        .expect("a program of util-linux or e2fsprogs");
    if !done.status.success() {
        println!("{program} {arguments:?}: {}", text(&done));
    }
    done.status.success()
}

impl Disk {
    /// Creates the disk in this directory; prints the missing prerequisite if impossible.
    pub fn at(place: &Path) -> Option<Disk> {
        let test = "a file system that freezes";
        if !is_root(test)
            || !has_program("fsfreeze", "util-linux")
            || !has_program("mkfs.ext4", "e2fsprogs")
        {
            return None;
        }
        let (image, at) = (place.join("image"), place.join("disk"));
        std::fs::File::create(&image)
            .and_then(|file| file.set_len(64 << 20))
            .expect("a sparse file");
        std::fs::create_dir(&at).expect("a directory");
        let (image, at) = (image.to_string_lossy().into_owned(), at.to_string_lossy().into_owned());
        if run("mkfs.ext4", &["-q", &image]) && run("mount", &["-o", "loop", &image, &at]) {
            return Some(Disk(at));
        }
        println!("SKIPPED: {test} lacks loop devices and mounts");
        None
    }
    /// The disk's mount point.
    pub fn path(&self) -> &str {
        &self.0
    }
    /// Blocks all writes from now on.
    pub fn freeze(&self) {
        assert!(run("fsfreeze", &["-f", &self.0]));
    }
    /// Unblocks the writes.
    pub fn thaw(&self) {
        assert!(run("fsfreeze", &["-u", &self.0]));
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("fsfreeze").args(["-u", &self.0]).output();
        run("umount", &[&self.0]);
    }
}
