//! The fields of a file of points, each checked before it is believed.

use punctual_testpoint::counter::Pair;
use punctual_testpoint::layout::*;
use std::fs::File;
use std::io;
use std::mem::offset_of;
use std::os::unix::fs::FileExt;

/// Bytes at places: a file, or memory that stands for one.
pub trait Access {
    /// Reads as much as there is; less than was asked for is an error.
    fn read(&self, at: u64, bytes: &mut [u8]) -> io::Result<()>;
    /// Writes within what is there.
    fn write(&self, at: u64, bytes: &[u8]) -> io::Result<()>;
}

impl Access for File {
    fn read(&self, at: u64, bytes: &mut [u8]) -> io::Result<()> {
        self.read_exact_at(bytes, at)
    }
    fn write(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        // Writing behind the end would make the file longer. (A writer that shortens its file right
        // now gets a hole in it.)
        if self.metadata()?.len() < at + bytes.len() as u64 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.write_all_at(bytes, at)
    }
}

/// Memory that is only read: what would be written is dropped.
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
    /// Its process is just making it; later it will be one.
    #[error("it is not ready")]
    NotReady,
    /// Not a file of points, or one that contradicts itself.
    #[error("{0}")]
    Malformed(String),
    /// The system refuses.
    #[error("{0}")]
    Io(String),
}

impl From<io::Error> for Refused {
    fn from(error: io::Error) -> Refused {
        Refused::Io(error.to_string())
    }
}

/// The control page, as it was when the file was opened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Header {
    /// The process, as it sees itself.
    pub pid: u32,
    /// When it began: field 22 of /proc/PID/stat; 0 if unknown.
    pub start_time: u64,
    pub namespace: u64,
    /// What time stamps count: `CLOCK_…` of the layout.
    pub clock: u32,
    /// The process's own reading of both clocks; `None` where points carry CLOCK_MONOTONIC.
    pub birth: Option<Pair>,
    /// A power of two within the bounds of the layout.
    pub slots: u32,
    pub comm: String,
}

pub fn four(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|four| four.try_into().ok()).map_or(0, u32::from_ne_bytes)
}

pub fn eight(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).and_then(|eight| eight.try_into().ok()).map_or(0, u64::from_ne_bytes)
}

/// A name of at most 16 bytes that 0 ends.
pub fn comm(bytes: &[u8], at: usize) -> String {
    let name = bytes.get(at..at + 16).unwrap_or_default();
    let end = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
    String::from_utf8_lossy(&name[..end]).into_owned()
}

/// What stands in the control page and changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct State {
    pub mode: u32,
    pub requested: u32,
    pub recording: bool,
    /// At most [`RINGS_MAX`].
    pub rings: u32,
    pub names_refused: u32,
    pub ringless: u64,
    pub ended: bool,
}

impl Header {
    /// Reads and checks what does not change.
    pub fn read(file: &impl Access) -> Result<Header, Refused> {
        let mut page = [0; size_of::<Control>()];
        match file.read(0, &mut page) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                return Err(Refused::NotReady);
            }
            other => other?,
        }
        match eight(&page, offset_of!(Control, magic)) {
            MAGIC => {}
            0 => return Err(Refused::NotReady),
            _ => return Err(Refused::Malformed("it is not a test point file".to_owned())),
        }
        let version = four(&page, offset_of!(Control, version));
        if version != VERSION {
            return Err(Refused::Malformed(format!(
                "its version is {version}; this program reads {VERSION}"
            )));
        }
        let slots = four(&page, offset_of!(Control, ring_slots));
        if !slots.is_power_of_two() || !(SLOTS_MIN..=SLOTS_MAX).contains(&slots) {
            return Err(Refused::Malformed(format!(
                "its rings have {slots} slots: not a power of two from {SLOTS_MIN} to {SLOTS_MAX}"
            )));
        }
        let clock = four(&page, offset_of!(Control, clock));
        let here = if cfg!(target_arch = "aarch64") { CLOCK_CNTVCT } else { CLOCK_TSC };
        if clock != CLOCK_MONOTONIC && clock != here {
            return Err(Refused::Malformed(format!(
                "its clock is {clock}, which does not exist on this machine"
            )));
        }
        let birth = Pair {
            ticks: eight(&page, offset_of!(Control, pair_ticks)),
            monotonic: eight(&page, offset_of!(Control, pair_monotonic)) as i64,
            error: eight(&page, offset_of!(Control, pair_error)),
        };
        Ok(Header {
            pid: four(&page, offset_of!(Control, pid)),
            start_time: eight(&page, offset_of!(Control, start_time)),
            namespace: eight(&page, offset_of!(Control, namespace)),
            clock,
            birth: (clock != CLOCK_MONOTONIC).then_some(birth),
            slots,
            comm: comm(&page, offset_of!(Control, comm)),
        })
    }

    /// Where ring `number` begins.
    pub fn ring_at(&self, number: u32) -> u64 {
        RINGS_AT + u64::from(number) * ring_stride(self.slots)
    }
}

impl State {
    pub fn read(file: &impl Access) -> io::Result<State> {
        let mut page = [0; size_of::<Control>()];
        file.read(0, &mut page)?;
        Ok(State {
            mode: four(&page, offset_of!(Control, mode)),
            requested: four(&page, offset_of!(Control, requested)),
            recording: four(&page, offset_of!(Control, recording)) != 0,
            rings: four(&page, offset_of!(Control, rings_used)).min(RINGS_MAX),
            names_refused: four(&page, offset_of!(Control, names_refused)),
            ringless: eight(&page, offset_of!(Control, ringless)),
            ended: four(&page, offset_of!(Control, ended)) != 0,
        })
    }
}

/// The name of a site's number; what the process left out or wrote wrongly gets a name that says
/// so.
pub fn name(file: &impl Access, id: u32) -> String {
    if !(1..=NAMES_MAX).contains(&id) {
        return "(no room for its name)".to_owned();
    }
    let mut entry = [0; size_of::<Name>()];
    let length = match file.read(NAMES_AT + u64::from(id - 1) * entry.len() as u64, &mut entry) {
        Ok(()) => (four(&entry, offset_of!(Name, length)) as usize).min(NAME_BYTES),
        Err(_) => 0,
    };
    let bytes = &entry[offset_of!(Name, bytes)..][..length];
    if length == 0 {
        format!("(point {id}, whose name is missing)")
    } else {
        String::from_utf8_lossy(bytes).into_owned()
    }
}
