//! A process that is killed at its k-th change, to the kernel or to the journal.

#![allow(dead_code)] // each test program uses its share

use punctual_core::CpuSet;
use punctual_host::files::{FileError, Files};
use punctual_host::journal::{JournalLock, Store};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io;

/// How a process of these tests dies.
pub trait Death {
    /// Never returns.
    fn die(&self) -> !;
}

/// Counts changes and dies at one of them.
pub struct Fate<'a> {
    /// Changes left before the fatal one; `None`: never killed.
    left: Cell<Option<usize>>,
    /// Changes so far.
    pub count: Cell<usize>,
    death: &'a dyn Death,
}

impl<'a> Fate<'a> {
    /// Dies at the change after `survived` others.
    pub fn new(survived: Option<usize>, death: &'a dyn Death) -> Fate<'a> {
        Fate { left: Cell::new(survived), count: Cell::new(0), death }
    }
    /// Called before one change. `half` does half of it if the process dies now.
    fn meet(&self, half: impl FnOnce()) {
        self.count.set(self.count.get() + 1);
        match self.left.get() {
            Some(0) => {
                half();
                self.death.die()
            }
            left => self.left.set(left.map(|n| n - 1)),
        }
    }
}

/// Files whose user can be killed.
pub struct MortalFiles<'a> {
    pub inner: &'a dyn Files,
    pub fate: &'a Fate<'a>,
}

impl Files for MortalFiles<'_> {
    fn read(&self, path: &str) -> Result<String, FileError> {
        self.inner.read(path)
    }
    fn list(&self, path: &str) -> Result<Vec<String>, FileError> {
        self.inner.list(path)
    }
    fn exists(&self, path: &str) -> bool {
        self.inner.exists(path)
    }
    fn read_link(&self, path: &str) -> Result<String, FileError> {
        self.inner.read_link(path)
    }
    fn write(&self, path: &str, text: &str) -> Result<(), FileError> {
        self.fate.meet(|| {});
        self.inner.write(path, text)
    }
    fn create_dir(&self, path: &str) -> Result<(), FileError> {
        self.fate.meet(|| {});
        self.inner.create_dir(path)
    }
    fn remove_dir(&self, path: &str) -> Result<(), FileError> {
        self.fate.meet(|| {});
        self.inner.remove_dir(path)
    }
    fn set_affinity(&self, tid: i32, cpus: &CpuSet) -> Result<(), FileError> {
        self.fate.meet(|| {});
        self.inner.set_affinity(tid, cpus)
    }
}

/// A journal whose writer can be killed; it may leave half a line.
pub struct MortalStore<'a> {
    pub inner: &'a dyn Store,
    pub fate: &'a Fate<'a>,
    /// Whether half of a line reaches the disk when the writer dies.
    pub torn: bool,
}

impl Store for MortalStore<'_> {
    fn store_path(&self) -> String {
        self.inner.store_path()
    }
    fn try_lock(&self) -> io::Result<Option<JournalLock>> {
        self.inner.try_lock()
    }
    fn file_names(&self) -> io::Result<Vec<String>> {
        self.inner.file_names()
    }
    fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        self.inner.read(name)
    }
    fn append(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let half = || {
            if self.torn {
                let _ = self.inner.append(name, &bytes[..bytes.len() / 2]);
            }
        };
        self.fate.meet(half);
        self.inner.append(name, bytes)
    }
    fn truncate_file(&self, name: &str, length: u64) -> io::Result<()> {
        self.fate.meet(|| {});
        self.inner.truncate_file(name, length)
    }
    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.fate.meet(|| {});
        self.inner.rename(from, to)
    }
    fn remove(&self, name: &str) -> io::Result<()> {
        self.fate.meet(|| {});
        self.inner.remove(name)
    }
}

/// A journal in memory, for the many runs of a test. It keeps appended data like a disk, and has no
/// lock.
#[derive(Default)]
pub struct Memory {
    pub files: RefCell<BTreeMap<String, Vec<u8>>>,
    /// The maximum number of bytes in all; beyond it, half of a line fits.
    pub room: Cell<Option<usize>>,
}

impl Memory {
    fn missing() -> io::Error {
        io::ErrorKind::NotFound.into()
    }
}

impl Store for Memory {
    fn store_path(&self) -> String {
        "memory".into()
    }
    fn try_lock(&self) -> io::Result<Option<JournalLock>> {
        Ok(Some(JournalLock::without_file()))
    }
    fn file_names(&self) -> io::Result<Vec<String>> {
        Ok(self.files.borrow().keys().cloned().collect())
    }
    fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        self.files.borrow().get(name).cloned().ok_or_else(Memory::missing)
    }
    fn append(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let mut files = self.files.borrow_mut();
        let used: usize = files.values().map(Vec::len).sum();
        let fits = self.room.get().is_none_or(|room| used + bytes.len() <= room);
        let taken = if fits { bytes } else { &bytes[..bytes.len() / 2] };
        files.entry(name.to_owned()).or_default().extend_from_slice(taken);
        if fits { Ok(()) } else { Err(io::Error::from_raw_os_error(libc::ENOSPC)) }
    }
    fn truncate_file(&self, name: &str, length: u64) -> io::Result<()> {
        self.files
            .borrow_mut()
            .get_mut(name)
            .ok_or_else(Memory::missing)?
            .truncate(length as usize);
        Ok(())
    }
    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut files = self.files.borrow_mut();
        let bytes = files.remove(from).ok_or_else(Memory::missing)?;
        files.insert(to.to_owned(), bytes);
        Ok(())
    }
    fn remove(&self, name: &str) -> io::Result<()> {
        self.files.borrow_mut().remove(name).map(drop).ok_or_else(Memory::missing)
    }
}
