//! A file tree in memory, for tests of rules and readers.

use crate::files::{FileError, Files};
use std::collections::{BTreeMap, BTreeSet};
use std::io;

/// The answer of a path of a [`FakeFiles`].
#[derive(Clone, Debug)]
enum FakeAnswer {
    Bytes(Vec<u8>),
    Errno(i32),
}

/// Files by path; all parent directories exist. Nothing can be written.
#[derive(Clone, Debug, Default)]
pub struct FakeFiles(BTreeMap<String, FakeAnswer>);

impl FakeFiles {
    /// A tree without a file.
    pub fn new() -> FakeFiles {
        FakeFiles::default()
    }
    /// Adds a file with this text.
    pub(crate) fn with_file(self, path: &str, text: &str) -> FakeFiles {
        self.with_bytes(path, text.as_bytes())
    }
    pub(crate) fn with_bytes(mut self, path: &str, bytes: &[u8]) -> FakeFiles {
        self.0.insert(path.to_owned(), FakeAnswer::Bytes(bytes.to_vec()));
        self
    }
    /// Adds a file that exists but cannot be read.
    pub(crate) fn with_refusal(mut self, path: &str, errno: i32) -> FakeFiles {
        self.0.insert(path.to_owned(), FakeAnswer::Errno(errno));
        self
    }
    /// Removes a file, or a whole directory.
    pub(crate) fn without_path(mut self, path: &str) -> FakeFiles {
        let below = format!("{path}/");
        self.0.retain(|p, _| p != path && !p.starts_with(&below));
        self
    }
    /// This tree, overlaid with the files of another.
    pub(crate) fn overlay_with(mut self, upper: FakeFiles) -> FakeFiles {
        self.0.extend(upper.0);
        self
    }
    /// The paths of the files.
    pub fn file_paths(&self) -> Vec<String> {
        self.0.keys().cloned().collect()
    }

    fn names_in(&self, path: &str) -> BTreeSet<String> {
        let below = format!("{}/", path.trim_end_matches('/'));
        let name = |p: &String| p.strip_prefix(&below)?.split('/').next().map(str::to_owned);
        self.0.keys().filter_map(name).collect()
    }
}

/// The tree of `testing/ideal.txt`, which satisfies every rule.
pub(crate) fn ideal_files() -> FakeFiles {
    let mut files = FakeFiles::new();
    for line in include_str!("testing/ideal.txt").lines().filter(|line| line.starts_with('/')) {
        let (path, value) = line.split_once(" =").expect("path and value");
        for cpu in 0..4 {
            let with_cpu = |text: &str| text.replace("{cpu}", &cpu.to_string());
            let value = with_cpu(value.trim_start()).replace("\\n", "\n").replace("\\t", "\t");
            files = files.with_file(&with_cpu(path), &value);
        }
    }
    // The SMI count is at 0x34 in each CPU's registers; a latency request of 2,000 s permits sleep.
    let files = (0..4)
        .fold(files, |files, cpu| files.with_bytes(&format!("/dev/cpu/{cpu}/msr"), &[0; 0x40]));
    files.with_bytes("/dev/cpu_dma_latency", &2_000_000_000i32.to_ne_bytes())
}

fn file_error(action: &'static str, path: &str, errno: i32) -> FileError {
    FileError { action, path: path.to_owned(), source: io::Error::from_raw_os_error(errno) }
}

impl Files for FakeFiles {
    fn read(&self, path: &str) -> Result<String, FileError> {
        self.read_bytes(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    }
    fn read_bytes(&self, path: &str) -> Result<Vec<u8>, FileError> {
        match self.0.get(path) {
            Some(FakeAnswer::Bytes(bytes)) => Ok(bytes.clone()),
            Some(FakeAnswer::Errno(errno)) => Err(file_error("read", path, *errno)),
            None => Err(file_error("read", path, libc::ENOENT)),
        }
    }
    fn write(&self, path: &str, _text: &str) -> Result<(), FileError> {
        Err(file_error("write", path, libc::EROFS))
    }
    fn list(&self, path: &str) -> Result<Vec<String>, FileError> {
        let names = self.names_in(path);
        if names.is_empty() {
            Err(file_error("list", path, libc::ENOENT))
        } else {
            Ok(names.into_iter().collect())
        }
    }
    fn exists(&self, path: &str) -> bool {
        self.0.contains_key(path) || !self.names_in(path).is_empty()
    }
    fn read_link(&self, path: &str) -> Result<String, FileError> {
        // A text that begins like this is a link.
        match self.read(path) {
            Ok(text) if text.starts_with("-> ") => Ok(text[3..].to_owned()),
            Ok(_) => Err(file_error("read the link", path, libc::EINVAL)),
            Err(_) => Err(file_error("read the link", path, libc::ENOENT)),
        }
    }
    fn create_dir(&self, path: &str) -> Result<(), FileError> {
        Err(file_error("create the directory", path, libc::EROFS))
    }
    fn remove_dir(&self, path: &str) -> Result<(), FileError> {
        Err(file_error("remove the directory", path, libc::EROFS))
    }
}
