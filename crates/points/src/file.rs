//! The fields of a file of points, each checked before use.

use punctual_testpoint::counter::Pair;
use punctual_testpoint::layout::*;
use std::fs::File;
use std::io;
use std::mem::offset_of;
use std::os::unix::fs::FileExt;

/// Random access to bytes: a file, or memory in its place.
pub trait Access {
    /// Reads the requested length; less is an error.
    fn read(&self, at: u64, bytes: &mut [u8]) -> io::Result<()>;
    /// Writes within the existing length.
    fn write(&self, at: u64, bytes: &[u8]) -> io::Result<()>;
}

impl Access for File {
    fn read(&self, at: u64, bytes: &mut [u8]) -> io::Result<()> {
        self.read_exact_at(bytes, at)
    }
    fn write(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        // Writing beyond the end would extend the file. (A writer that shortens its file at this
        // moment gets a hole in it.)
        if self.metadata()?.len() < at + bytes.len() as u64 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.write_all_at(bytes, at)
    }
}

/// Read-only memory: writes are dropped.
impl Access for &[u8] {
    fn read(&self, at: u64, bytes: &mut [u8]) -> io::Result<()> {
        let place = usize::try_from(at).ok().and_then(|at| self.get(at..)?.get(..bytes.len()));
        bytes.copy_from_slice(place.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
    fn write(&self, _: u64, _: &[u8]) -> io::Result<()> {
        Ok(())
    }
}

/// Why a file is not read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Refused {
    /// Its process is just creating it; it becomes valid later.
    #[error("it is not ready")]
    NotReady,
    /// Not a file of points, or an inconsistent one.
    #[error("{0}")]
    Malformed(String),
    /// A system error.
    #[error("{0}")]
    Io(String),
}

impl From<io::Error> for Refused {
    fn from(error: io::Error) -> Refused {
        Refused::Io(error.to_string())
    }
}

/// The control page as of opening the file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileHeader {
    /// The process number in its own namespace.
    pub pid: u32,
    /// Its start time: field 22 of /proc/PID/stat; 0 if unknown.
    pub start_time: u64,
    pub namespace: u64,
    /// The clock of timestamps: `CLOCK_…` of the layout.
    pub clock: u32,
    /// The process's own reading of both clocks; `None` if points carry CLOCK_MONOTONIC.
    pub birth: Option<Pair>,
    /// A power of two within the limits of the layout.
    pub slots: u32,
    pub comm: String,
}

pub fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|four| four.try_into().ok()).map_or(0, u32::from_ne_bytes)
}

pub fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).and_then(|eight| eight.try_into().ok()).map_or(0, u64::from_ne_bytes)
}

/// A name of at most 16 bytes, terminated by 0 if shorter.
pub(crate) fn comm_at(bytes: &[u8], at: usize) -> String {
    let name = bytes.get(at..at + 16).unwrap_or_default();
    let end = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
    String::from_utf8_lossy(&name[..end]).into_owned()
}

/// The fields of the control page that change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ControlState {
    pub mode: u32,
    pub requested: u32,
    pub recording: bool,
    /// At most [`RINGS_MAX`].
    pub rings: u32,
    pub names_refused: u32,
    pub ringless: u64,
    pub ended: bool,
}

impl FileHeader {
    /// Reads and checks the constant fields.
    pub fn read(file: &impl Access) -> Result<FileHeader, Refused> {
        let mut page = [0; size_of::<Control>()];
        match file.read(0, &mut page) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                return Err(Refused::NotReady);
            }
            other => other?,
        }
        match u64_at(&page, offset_of!(Control, magic)) {
            MAGIC => {}
            0 => return Err(Refused::NotReady),
            _ => return Err(Refused::Malformed("it is not a test point file".to_owned())),
        }
        let version = u32_at(&page, offset_of!(Control, version));
        if version != VERSION {
            return Err(Refused::Malformed(format!(
                "its version is {version}; this program reads {VERSION}"
            )));
        }
        let slots = u32_at(&page, offset_of!(Control, ring_slots));
        if !slots.is_power_of_two() || !(SLOTS_MIN..=SLOTS_MAX).contains(&slots) {
            return Err(Refused::Malformed(format!(
                "its rings have {slots} slots: not a power of two from {SLOTS_MIN} to {SLOTS_MAX}"
            )));
        }
        let clock = u32_at(&page, offset_of!(Control, clock));
        let native_clock = if cfg!(target_arch = "aarch64") { CLOCK_CNTVCT } else { CLOCK_TSC };
        if clock != CLOCK_MONOTONIC && clock != native_clock {
            return Err(Refused::Malformed(format!(
                "its clock is {clock}, which does not exist on this machine"
            )));
        }
        let birth = Pair {
            ticks: u64_at(&page, offset_of!(Control, pair_ticks)),
            monotonic: u64_at(&page, offset_of!(Control, pair_monotonic)) as i64,
            error: u64_at(&page, offset_of!(Control, pair_error)),
        };
        Ok(FileHeader {
            pid: u32_at(&page, offset_of!(Control, pid)),
            start_time: u64_at(&page, offset_of!(Control, start_time)),
            namespace: u64_at(&page, offset_of!(Control, namespace)),
            clock,
            birth: (clock != CLOCK_MONOTONIC).then_some(birth),
            slots,
            comm: comm_at(&page, offset_of!(Control, comm)),
        })
    }

    /// Whether the points are those of kernel code.
    pub(crate) fn is_kernel(&self) -> bool {
        self.namespace == KERNEL
    }

    /// The offset of ring `number`.
    pub(crate) fn ring_at(&self, number: u32) -> u64 {
        RINGS_AT + u64::from(number) * ring_stride(self.slots)
    }
}

impl ControlState {
    pub fn read(file: &impl Access) -> io::Result<ControlState> {
        let mut page = [0; size_of::<Control>()];
        file.read(0, &mut page)?;
        Ok(ControlState {
            mode: u32_at(&page, offset_of!(Control, mode)),
            requested: u32_at(&page, offset_of!(Control, requested)),
            recording: u32_at(&page, offset_of!(Control, recording)) != 0,
            rings: u32_at(&page, offset_of!(Control, rings_used)).min(RINGS_MAX),
            names_refused: u32_at(&page, offset_of!(Control, names_refused)),
            ringless: u64_at(&page, offset_of!(Control, ringless)),
            ended: u32_at(&page, offset_of!(Control, ended)) != 0,
        })
    }
}

/// The name of a site's number; a missing or invalid name is replaced by a description.
pub fn read_name(file: &impl Access, id: u32) -> String {
    if !(1..=NAMES_MAX).contains(&id) {
        return "(no room for its name)".to_owned();
    }
    let mut entry = [0; size_of::<Name>()];
    let length = match file.read(NAMES_AT + u64::from(id - 1) * entry.len() as u64, &mut entry) {
        Ok(()) => (u32_at(&entry, offset_of!(Name, length)) as usize).min(NAME_BYTES),
        Err(_) => 0,
    };
    let bytes = &entry[offset_of!(Name, bytes)..][..length];
    if length == 0 {
        format!("(point {id}, whose name is missing)")
    } else {
        String::from_utf8_lossy(bytes).into_owned()
    }
}
