//! A directory, file by file: sent unchanged, received without trust.

use super::wire::{self, FrameKind, PAYLOAD_MAX, WireFrame};
use punctual_core::encode_hex;
use sha2::{Digest, Sha256};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Component, Path, PathBuf};

/// The maximum number of files in a bundle.
const FILES_MAX: u64 = 100_000;
/// The maximum depth and length of a path in a bundle.
const DEPTH_MAX: usize = 8;
const PATH_MAX: usize = 512;

/// The SHA-256 of the input, in hexadecimal digits.
pub fn digest_of(mut from: impl Read) -> io::Result<String> {
    let mut digest = Sha256::new();
    let mut chunk = vec![0; 64 << 10];
    loop {
        match from.read(&mut chunk)? {
            0 => return Ok(encode_hex(&digest.finalize())),
            n => digest.update(&chunk[..n]),
        }
    }
}

/// Sends all regular files below `root`, then the end.
pub(crate) fn send_files(root: &Path, out: &mut impl Write) -> io::Result<()> {
    let (mut files, mut bytes) = (0u64, 0);
    let mut waiting = vec![PathBuf::new()];
    while let Some(below) = waiting.pop() {
        let mut entries: Vec<_> = fs::read_dir(root.join(&below))?.collect::<Result<_, _>>()?;
        entries.sort_by_key(|entry| entry.file_name());
        for entry in entries {
            let (kind, path) = (entry.file_type()?, below.join(entry.file_name()));
            if kind.is_dir() {
                waiting.push(path);
            } else if kind.is_file() {
                bytes += send_file(&root.join(&path), &path, out)?;
                files += 1;
            }
        }
    }
    wire::write(out, FrameKind::BundleEnd, &[files.to_le_bytes(), bytes.to_le_bytes()].concat())
}

fn send_file(from: &Path, path: &Path, out: &mut impl Write) -> io::Result<u64> {
    let file = File::open(from)?;
    let length = file.metadata()?.len();
    // No more than announced, should it still grow.
    let mut file = file.take(length);
    let name = path
        .to_str()
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "a name that is not UTF-8"))?;
    wire::write(out, FrameKind::File, &[&length.to_le_bytes()[..], name.as_bytes()].concat())?;
    let mut digest = Sha256::new();
    let mut chunk = vec![0; PAYLOAD_MAX / 4];
    loop {
        match file.read(&mut chunk)? {
            0 => break,
            n => {
                digest.update(&chunk[..n]);
                wire::write(out, FrameKind::Data, &chunk[..n])?;
            }
        }
    }
    wire::write(out, FrameKind::FileEnd, &digest.finalize())?;
    Ok(length)
}

/// Receives files from another system below a separate directory: plain relative names, each once,
/// with the announced length and checksum, up to the limit in total.
#[derive(Debug)]
pub struct FileReceiver {
    root: PathBuf,
    limit: u64,
    files: u64,
    bytes: u64,
    open: Option<OpenFile>,
}

#[derive(Debug)]
struct OpenFile {
    file: File,
    path: PathBuf,
    left: u64,
    digest: Sha256,
}

impl FileReceiver {
    /// Creates the receiver for this directory, which must be new, with the limit in bytes.
    pub fn new(root: &Path, limit: u64) -> io::Result<FileReceiver> {
        fs::create_dir(root)?;
        Ok(FileReceiver { root: root.to_owned(), limit, files: 0, bytes: 0, open: None })
    }

    /// Handles the next frame; true for the last one. The error is about the received data, or
    /// about writing it.
    pub(crate) fn on_frame(&mut self, frame: &WireFrame) -> Result<bool, String> {
        match (frame.kind, self.open.is_some()) {
            (FrameKind::File, false) => self.begin_file(&frame.payload)?,
            (FrameKind::Data, true) => self.write_data(&frame.payload)?,
            (FrameKind::FileEnd, true) => self.file_ends(&frame.payload)?,
            (FrameKind::BundleEnd, false) => {
                return self.check_totals(&frame.payload).map(|()| true);
            }
            (kind, _) => return Err(format!("unexpected frame {kind:?}")),
        }
        Ok(false)
    }

    fn begin_file(&mut self, payload: &[u8]) -> Result<(), String> {
        let (length, name) = payload.split_first_chunk().ok_or("a file without a length")?;
        let path = tame_path(name)?;
        let left = u64::from_le_bytes(*length);
        self.files += 1;
        if self.files > FILES_MAX {
            return Err(format!("more than {FILES_MAX} files"));
        }
        if self.bytes.checked_add(left).is_none_or(|all| all > self.limit) {
            return Err(format!("more than {} MiB", self.limit >> 20));
        }
        let whole = self.root.join(&path);
        let cannot = |why: io::Error| format!("cannot write {}: {why}", whole.display());
        if let Some(parent) = whole.parent() {
            fs::create_dir_all(parent).map_err(cannot)?;
        }
        // Everything below the root was created here: no link is followed, and no file is written
        // twice.
        let file = File::options().write(true).create_new(true).open(&whole).map_err(cannot)?;
        self.open = Some(OpenFile { file, path, left, digest: Sha256::new() });
        Ok(())
    }

    fn write_data(&mut self, data: &[u8]) -> Result<(), String> {
        let Some(open) = &mut self.open else { return Ok(()) };
        let longer = || format!("{} is longer than announced", open.path.display());
        open.left = open.left.checked_sub(data.len() as u64).ok_or_else(longer)?;
        open.digest.update(data);
        self.bytes += data.len() as u64;
        let root = &self.root;
        open.file
            .write_all(data)
            .map_err(|why| format!("cannot write {}: {why}", root.join(&open.path).display()))
    }

    fn file_ends(&mut self, digest: &[u8]) -> Result<(), String> {
        let Some(open) = self.open.take() else { return Ok(()) };
        match open.left == 0 && open.digest.finalize()[..] == *digest {
            true => Ok(()),
            false => Err(format!("{} has a wrong checksum", open.path.display())),
        }
    }

    fn check_totals(&self, payload: &[u8]) -> Result<(), String> {
        match *payload == [self.files.to_le_bytes(), self.bytes.to_le_bytes()].concat() {
            true => Ok(()),
            false => Err("the number of files is wrong".to_owned()),
        }
    }
}

/// A path of plain names, none of which leads up or to the root.
fn tame_path(name: &[u8]) -> Result<PathBuf, String> {
    let refuse = || {
        format!(
            "an invalid file name {:?}",
            String::from_utf8_lossy(&name[..name.len().min(PATH_MAX)])
        )
    };
    let text = std::str::from_utf8(name).map_err(|_| refuse())?;
    let path = Path::new(text);
    let depth = path.components().count();
    let plain = path.components().all(|part| matches!(part, Component::Normal(_)));
    let tame = !text.is_empty()
        && text.len() <= PATH_MAX
        && !text.chars().any(char::is_control)
        && !text.ends_with('/');
    if tame && plain && depth <= DEPTH_MAX { Ok(path.to_owned()) } else { Err(refuse()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn receive(stream: &[u8], root: &Path, limit: u64) -> Result<bool, String> {
        let mut receiver = FileReceiver::new(root, limit).map_err(|why| why.to_string())?;
        let mut stream = stream;
        while let Some(frame) = wire::read(&mut stream).map_err(|why| why.to_string())? {
            if receiver.on_frame(&frame)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn sent(files: &[(&str, &[u8])]) -> Vec<u8> {
        let place = tempfile::tempdir().unwrap();
        for (path, bytes) in files {
            let path = place.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
        // Anything but files and directories is not sent.
        std::os::unix::fs::symlink("/etc/passwd", place.path().join("link")).unwrap();
        let mut stream = Vec::new();
        send_files(place.path(), &mut stream).unwrap();
        stream
    }

    #[test]
    fn sent_files_arrive_unchanged() {
        let large = vec![7; 700_000];
        let stream =
            sent(&[("bundle.json", b"{}"), ("phases/000/0000.log", &large), ("empty", b"")]);
        let place = tempfile::tempdir().unwrap();
        let root = place.path().join("b");
        assert_eq!(receive(&stream, &root, 1 << 20), Ok(true));
        assert_eq!(fs::read(root.join("phases/000/0000.log")).unwrap(), large);
        assert_eq!(fs::read(root.join("empty")).unwrap(), b"");
        assert!(!root.join("link").exists());
        // A truncated stream never counts as complete.
        for end in (0..stream.len()).step_by(50_001) {
            let part = receive(&stream[..end], &place.path().join(format!("part{end}")), 1 << 20);
            assert_ne!(part, Ok(true), "{end}");
        }
        assert!(
            receive(&stream, &place.path().join("small"), 1000).unwrap_err().contains("more than")
        );
    }

    #[test]
    fn hostile_file_names_and_wrong_lengths_are_refused() {
        let begin = |name: &str, length: u64| {
            let mut stream = Vec::new();
            wire::write(
                &mut stream,
                FrameKind::File,
                &[&length.to_le_bytes()[..], name.as_bytes()].concat(),
            )
            .unwrap();
            stream
        };
        let deep = "a/".repeat(9) + "b";
        let place = tempfile::tempdir().unwrap();
        let names = [
            "",
            "/etc/x",
            "../x",
            "a/../../x",
            "a\u{1b}[2J",
            "a\nb",
            "a/",
            ".",
            &deep,
            &"x".repeat(600),
        ];
        for (number, name) in names.iter().enumerate() {
            let refused = receive(&begin(name, 1), &place.path().join(format!("n{number}")), 100);
            assert!(refused.is_err(), "{name:?}");
        }
        let mut twice = begin("a", 0);
        wire::write(&mut twice, FrameKind::FileEnd, &Sha256::digest([])).unwrap();
        twice.extend(begin("a", 0));
        assert!(receive(&twice, &place.path().join("twice"), 100).unwrap_err().contains("exists"));
        let mut longer = begin("a", 1);
        wire::write(&mut longer, FrameKind::Data, b"ab").unwrap();
        assert!(
            receive(&longer, &place.path().join("longer"), 100).unwrap_err().contains("longer")
        );
        let mut other = begin("a", 1);
        wire::write(&mut other, FrameKind::Data, b"a").unwrap();
        wire::write(&mut other, FrameKind::FileEnd, &Sha256::digest(b"b")).unwrap();
        assert!(
            receive(&other, &place.path().join("other"), 100)
                .unwrap_err()
                .contains("wrong checksum")
        );
        assert!(receive(&begin("a", u64::MAX), &place.path().join("huge"), 100).is_err());
    }
}
