//! A disk with a configurable request time: the kernel's null_blk with completion by a timer.

use punctual_core::Nanos;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// The disk's name; the module creates `nullb0` by itself.
pub const NAME: &str = "nullb1";
/// Exists if the module is loaded.
pub const MODULE: &str = "/sys/module/null_blk";
const CONFIG: &str = "/sys/kernel/config";
/// The disk's size, and how requests complete: 2 is by a timer (Documentation/block/null_blk.rst).
const SETTINGS: [(&str, &str); 4] =
    [("size", "64"), ("irqmode", "2"), ("queue_mode", "2"), ("memory_backed", "0")];
/// How long its device file may take to appear.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The disk, until it is dropped.
pub struct Disk(PathBuf);

impl Disk {
    pub fn new(takes: Nanos) -> io::Result<Disk> {
        let disk = Disk(Path::new(CONFIG).join("nullb").join(NAME));
        fs::create_dir(&disk.0)?;
        for (key, value) in SETTINGS {
            fs::write(disk.0.join(key), value)?;
        }
        fs::write(disk.0.join("completion_nsec"), takes.0.to_string())?;
        fs::write(disk.0.join("power"), "1")?;
        let begin = Instant::now();
        while !Disk::device_path().exists() {
            if begin.elapsed() > TIMEOUT {
                return Err(io::Error::other(format!("no {} came", Disk::device_path().display())));
            }
            thread::sleep(Duration::from_millis(1));
        }
        Ok(disk)
    }

    /// The disk's name where only the number is recorded, in the notation of [`punctual_explain`].
    pub fn device_number() -> io::Result<String> {
        let number = fs::read_to_string(Path::new("/sys/class/block").join(NAME).join("dev"))?;
        Ok(format!("device {}", number.trim()))
    }

    pub fn device_path() -> PathBuf {
        Path::new("/dev").join(NAME)
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // An active user keeps it: the next disk then fails with an error.
        let _ = fs::write(self.0.join("power"), "0").and_then(|()| fs::remove_dir(&self.0));
    }
}
