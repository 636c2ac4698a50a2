//! A small ext4 of its own, on a loop device, that can be frozen.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Thawed and unmounted on drop.
pub struct Disk(PathBuf);

impl Disk {
    /// Mounts one at `disk` in this directory.
    pub fn at(place: &Path) -> Option<Disk> {
        let (image, disk) = (place.join("disk.img"), Disk(place.join("disk")));
        std::fs::create_dir(&disk.0).expect("a new directory");
        let file = std::fs::File::create(&image).expect("a new file");
        file.set_len(64 << 20).expect("a sparse file");
        let (image, at) = (image.to_string_lossy(), disk.0.to_string_lossy());
        let is_mounted = succeeds("mkfs.ext4", &["-q", "-F", &image])
            && succeeds("mount", &["-o", "loop", &image, &at]);
        if !is_mounted {
            println!("SKIPPED: lacks mkfs.ext4 or the right to mount a loop device");
        }
        is_mounted.then_some(disk)
    }

    /// From now on nothing is written to it.
    pub fn freeze(&self) {
        assert!(succeeds("fsfreeze", &["-f", &self.0.to_string_lossy()]));
    }

    pub fn thaw(&self) {
        assert!(succeeds("fsfreeze", &["-u", &self.0.to_string_lossy()]));
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let at = self.0.to_string_lossy();
        let _ = succeeds("fsfreeze", &["-u", &at]);
        let _ = succeeds("umount", &["-l", &at]);
    }
}

fn succeeds(program: &str, args: &[&str]) -> bool {
    let quiet =
        Command::new(program).args(args).stdout(Stdio::null()).stderr(Stdio::null()).status();
    quiet.is_ok_and(|status| status.success())
}
