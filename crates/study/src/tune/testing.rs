//! A machine of files in memory, whose tuning can be killed at any change, and blocks that depend
//! on the settings.

use super::blocks::{BlockMeasurement, BlockRunner};
use super::directory::TuningSpec;
use super::setting::Setting;
use punctual_core::Nanos;
use punctual_host::files::{FileError, Files};
use punctual_host::journal::record::KernelWrite;
use punctual_host::journal::{JournalLock, Store};
use punctual_session::exit::Failure;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io;

/// The panic payload of a killed process.
pub struct Killed;

/// Counts changes, and kills at one of them.
#[derive(Default)]
pub struct Fate {
    /// The number of changes to survive; `None`: all.
    pub left: Cell<Option<usize>>,
    pub count: Cell<usize>,
}

impl Fate {
    /// Called before each change.
    pub(crate) fn count_change(&self) {
        self.count.set(self.count.get() + 1);
        match self.left.get() {
            // No message, and nothing beyond the kernel's work at the end of a process.
            Some(0) => std::panic::resume_unwind(Box::new(Killed)),
            left => self.left.set(left.map(|n| n - 1)),
        }
    }
}

/// A machine made of files.
#[derive(Default)]
pub(crate) struct World {
    pub files: RefCell<BTreeMap<String, String>>,
    /// Files that refuse values.
    pub refusing: Vec<String>,
    journals: RefCell<BTreeMap<String, Vec<u8>>>,
    pub fate: Fate,
}

const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

fn format_stat(pid: i32) -> String {
    let after = "S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0";
    format!("{pid} (punctual) {after} {} 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0", pid * 10)
}

impl World {
    pub(crate) fn from_files(files: &[(&str, &str)]) -> World {
        let world = World::default();
        for (path, value) in files {
            world.put_file(path, value);
        }
        world.put_file(BOOT_ID, "this boot");
        world.start_process(100);
        world
    }

    pub(crate) fn put_file(&self, path: &str, value: &str) {
        self.files.borrow_mut().insert(path.to_owned(), format!("{value}\n"));
    }

    /// Replaces the process by a new one.
    pub fn start_process(&self, pid: i32) {
        self.files.borrow_mut().retain(|path, _| !path.ends_with("/stat"));
        self.put_file("/proc/self/stat", &format_stat(pid));
        self.put_file(&format!("/proc/{pid}/stat"), &format_stat(pid));
        self.fate.left.set(None);
    }

    pub(crate) fn setting_values(&self) -> BTreeMap<String, String> {
        let files = self.files.borrow();
        let settings = files.iter().filter(|(path, _)| !path.ends_with("/stat"));
        settings.map(|(path, value)| (path.clone(), value.clone())).collect()
    }

    pub(crate) fn journal_count(&self) -> usize {
        self.journals.borrow().len()
    }
}

fn file_error(action: &'static str, path: &str, errno: i32) -> FileError {
    FileError { action, path: path.to_owned(), source: io::Error::from_raw_os_error(errno) }
}

impl Files for World {
    fn read(&self, path: &str) -> Result<String, FileError> {
        let found = self.files.borrow().get(path).cloned();
        found.ok_or_else(|| file_error("read", path, libc::ENOENT))
    }
    fn write(&self, path: &str, text: &str) -> Result<(), FileError> {
        self.fate.count_change();
        if self.refusing.iter().any(|refusing| refusing == path) {
            return Err(file_error("write", path, libc::EINVAL));
        }
        self.put_file(path, text);
        Ok(())
    }
    fn list(&self, path: &str) -> Result<Vec<String>, FileError> {
        Err(file_error("list", path, libc::ENOENT))
    }
    fn exists(&self, path: &str) -> bool {
        self.files.borrow().contains_key(path)
    }
    fn read_link(&self, path: &str) -> Result<String, FileError> {
        Err(file_error("read the link", path, libc::EINVAL))
    }
    fn create_dir(&self, path: &str) -> Result<(), FileError> {
        Err(file_error("create the directory", path, libc::EROFS))
    }
    fn remove_dir(&self, path: &str) -> Result<(), FileError> {
        Err(file_error("remove the directory", path, libc::EROFS))
    }
}

impl Store for World {
    fn store_path(&self) -> String {
        "memory".to_owned()
    }
    fn try_lock(&self) -> io::Result<Option<JournalLock>> {
        Ok(Some(JournalLock::without_file()))
    }
    fn file_names(&self) -> io::Result<Vec<String>> {
        Ok(self.journals.borrow().keys().cloned().collect())
    }
    fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        self.journals.borrow().get(name).cloned().ok_or(io::ErrorKind::NotFound.into())
    }
    fn append(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let half = self.fate.left.get() == Some(0) && self.fate.count.get().is_multiple_of(2);
        if half {
            let torn = &bytes[..bytes.len() / 2];
            self.journals.borrow_mut().entry(name.to_owned()).or_default().extend(torn);
        }
        self.fate.count_change();
        self.journals.borrow_mut().entry(name.to_owned()).or_default().extend(bytes);
        Ok(())
    }
    fn truncate_file(&self, name: &str, length: u64) -> io::Result<()> {
        self.fate.count_change();
        let mut journals = self.journals.borrow_mut();
        journals.entry(name.to_owned()).or_default().truncate(length as usize);
        Ok(())
    }
    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.fate.count_change();
        let mut journals = self.journals.borrow_mut();
        let bytes = journals.remove(from).ok_or(io::ErrorKind::NotFound)?;
        journals.insert(to.to_owned(), bytes);
        Ok(())
    }
    fn remove(&self, name: &str) -> io::Result<()> {
        self.fate.count_change();
        self.journals.borrow_mut().remove(name);
        Ok(())
    }
}

/// Blocks of 10 s whose figure depends on the real settings, and on their number.
pub(crate) struct ScriptedBlocks<'a> {
    pub world: &'a World,
    pub settings: &'a [Setting],
    /// The factor of each setting.
    pub effects: &'a [f64],
    pub elapsed: Nanos,
    /// The block at which the user interrupts it.
    pub interrupted_at: Option<u64>,
}

impl BlockRunner for ScriptedBlocks<'_> {
    fn measure_block(&mut self, number: u64, on: &[bool]) -> Result<BlockMeasurement, Failure> {
        // During the block, and after it before it is stored.
        self.world.fate.count_change();
        if self.interrupted_at == Some(number) {
            return Err(punctual_session::interrupts::interruption_failure());
        }
        let mut figure = 100_000.0;
        for ((setting, on), effect) in self.settings.iter().zip(on).zip(self.effects) {
            for write in &setting.writes {
                let wanted = if *on { &write.new } else { &write.old };
                let held_value = Files::read(self.world, &write.path).expect("a file of the world");
                assert_eq!(held_value.trim(), wanted, "block {number}: {}", write.path);
            }
            figure *= if *on { *effect } else { 1.0 };
        }
        // Within 4 %, and reproducible.
        let noise = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        figure *= 1.0 + 0.04 * (noise as f64 / f64::from(1 << 24) - 0.5);
        self.elapsed += Nanos::from_secs(10);
        self.world.fate.count_change();
        Ok(BlockMeasurement { figure: Some(figure), why: None })
    }
    fn wait(&mut self, time: Nanos) -> Result<(), Failure> {
        self.elapsed += time;
        Ok(())
    }
    fn elapsed(&self) -> Nanos {
        self.elapsed
    }
}

/// A setting that changes these files from the first values to the second.
pub(crate) fn test_setting(name: &str, writes: &[(&str, &str, &str)]) -> Setting {
    Setting {
        name: name.to_owned(),
        why: "for a test".to_owned(),
        source: String::new(),
        writes: writes
            .iter()
            .map(|(path, old, new)| KernelWrite::new(path, (*old).into(), new))
            .collect(),
        boot: String::new(),
    }
}

/// The request of a tuning with these.
pub(crate) fn test_spec(settings: Vec<Setting>, seconds: i64) -> TuningSpec {
    TuningSpec {
        version: TuningSpec::current_version(),
        experiment: "loop".to_owned(),
        figure: "p99.9".to_owned(),
        require: Some("p99.9 < 80us".to_owned()),
        within: Nanos::from_secs(seconds),
        block: Nanos::from_secs(10),
        guest: None,
        seed: 1,
        kernel: Some("6.12.1".to_owned()),
        settings,
        left_out: Vec::new(),
    }
}
