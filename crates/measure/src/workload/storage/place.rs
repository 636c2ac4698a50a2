//! The place of a file: the file system, its device, and the kernel's counts for that device.

use punctual_core::{Cell, Column, Table};
use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A file system, as the kernel describes it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FileSystem {
    /// Its type: `ext4`.
    pub kind: String,
    /// The mounted device: `/dev/vda`; as the kernel writes it, with spaces as \040.
    pub source: String,
    pub mount_point: String,
    /// The mount's and the super block's options.
    pub options: String,
}

pub struct StoragePlace {
    /// The requested directory.
    directory: PathBuf,
    pub file_system: FileSystem,
    /// `major:minor` of a block device that counts writes.
    device: Option<(u32, u32)>,
}

/// The activity of a block device since the system started, for all users
/// (Documentation/block/stat.rst).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct DeviceCounts {
    pub writes: u64,
    pub bytes: u64,
    /// Since Linux 5.5.
    pub flushes: Option<u64>,
}

impl StoragePlace {
    pub fn from_file(file: &File, directory: &Path) -> StoragePlace {
        let file_system = mount_of(file).unwrap_or_default();
        let metadata = file.metadata().ok();
        let own_device = metadata.map(|metadata| split_device(metadata.dev()));
        // Btrfs and others give every file its own device number: then the mounted device is used.
        let mounted =
            fs::metadata(&file_system.source).ok().map(|metadata| split_device(metadata.rdev()));
        let device = [own_device, mounted]
            .into_iter()
            .flatten()
            .find(|device| device_counts(*device).is_some());
        StoragePlace { directory: directory.to_owned(), file_system, device }
    }

    /// Whether the file system is in memory, where nothing can be forced to a disk.
    pub(crate) fn is_memory(&self) -> bool {
        matches!(self.file_system.kind.as_str(), "tmpfs" | "ramfs")
    }

    /// The counts of the device, or why there are none.
    pub(crate) fn read_counts(&self) -> Result<DeviceCounts, String> {
        let no_device = || format!("{} has no block device that counts", self.file_system_kind());
        self.device.and_then(device_counts).ok_or_else(no_device)
    }

    pub(crate) fn counts_file(&self) -> String {
        self.device.map_or_else(|| "no device".to_owned(), stat_file)
    }

    /// The type of the file system, for messages.
    pub(crate) fn file_system_kind(&self) -> &str {
        if self.file_system.kind.is_empty() {
            "an unknown file system"
        } else {
            &self.file_system.kind
        }
    }

    /// The description, in one row.
    pub(crate) fn place_table(&self) -> Table {
        let names =
            ["directory", "file system", "mount point", "source", "options", "device number"];
        let device =
            self.device.map_or(Cell::Nothing, |(major, minor)| format!("{major}:{minor}").into());
        let FileSystem { kind, source, mount_point, options } = &self.file_system;
        let text =
            |text: &String| if text.is_empty() { Cell::Nothing } else { text.clone().into() };
        let directory = self.directory.to_string_lossy().into_owned();
        Table {
            name: "file-system".to_owned(),
            title: "Where the file was (mountinfo of /proc/self)".to_owned(),
            columns: names.iter().map(|name| Column::new(name, "")).collect(),
            rows: vec![vec![
                directory.into(),
                text(kind),
                text(mount_point),
                text(source),
                text(options),
                device,
            ]],
        }
    }
}

fn split_device(device: u64) -> (u32, u32) {
    (libc::major(device), libc::minor(device))
}

fn stat_file((major, minor): (u32, u32)) -> String {
    format!("/sys/dev/block/{major}:{minor}/stat")
}

fn device_counts(device: (u32, u32)) -> Option<DeviceCounts> {
    parse_stat(&fs::read_to_string(stat_file(device)).ok()?)
}

fn parse_stat(text: &str) -> Option<DeviceCounts> {
    let fields: Vec<u64> = text.split_whitespace().map_while(|field| field.parse().ok()).collect();
    // Sectors have 512 bytes here, whatever the device uses.
    let bytes = fields.get(6)?.saturating_mul(512);
    Some(DeviceCounts { writes: *fields.get(4)?, bytes, flushes: fields.get(15).copied() })
}

/// The mount through which a file was opened.
fn mount_of(file: &File) -> Option<FileSystem> {
    let info = fs::read_to_string(format!("/proc/self/fdinfo/{}", file.as_raw_fd())).ok()?;
    let id = info.lines().find_map(|line| line.strip_prefix("mnt_id:"))?.trim();
    find_mount(&fs::read_to_string("/proc/self/mountinfo").ok()?, id)
}

/// proc_pid_mountinfo(5): id, parent, device, root, mount point, options, optional fields, `-`,
/// type, source, super options.
fn find_mount(mountinfo: &str, id: &str) -> Option<FileSystem> {
    let line = mountinfo.lines().find(|line| line.split(' ').next() == Some(id))?;
    let (mount, system) = line.split_once(" - ")?;
    let mount: Vec<&str> = mount.split(' ').collect();
    let mut system = system.split(' ');
    let (kind, source) = (system.next()?.to_owned(), system.next()?.to_owned());
    let options =
        [mount.get(5).copied(), system.next()].into_iter().flatten().collect::<Vec<_>>().join("; ");
    Some(FileSystem { kind, source, mount_point: (*mount.get(4)?).to_owned(), options })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_is_found_by_its_number() {
        let text = "22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw,discard\n220 22 0:40 \
                    /a /mnt/with\\040space ro - tmpfs none rw,size=1k\n";
        let found = find_mount(text, "220").unwrap();
        assert_eq!(
            (found.kind.as_str(), found.mount_point.as_str()),
            ("tmpfs", "/mnt/with\\040space")
        );
        assert_eq!(found.options, "ro; rw,size=1k");
        assert_eq!(find_mount(text, "22").unwrap().source, "/dev/vda");
        assert_eq!(find_mount(text, "2"), None);
        assert_eq!(find_mount("22 - ext4", "22"), None);
    }

    #[test]
    fn block_statistics_of_old_and_new_kernels_are_parsed() {
        let old = parse_stat("1 2 3 4 5 6 7 8 9 10 11").unwrap();
        assert_eq!(old, DeviceCounts { writes: 5, bytes: 7 * 512, flushes: None });
        assert_eq!(
            parse_stat("1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17").unwrap().flushes,
            Some(16)
        );
        assert_eq!(parse_stat("1 2 x"), None);
    }
}
