//! The file of a process: created before `main`, created again in a forked child, marked at the
//! end.

use crate::counter;
use crate::directory::{self, RecordRefusal};
use crate::fast::CONTROL_PAGE;
use crate::layout::*;
use crate::sys::{self, Fd, Text};
use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

/// The state of this process's file.
pub struct OwnProcess {
    /// The mapped control page, once there is one.
    control: AtomicPtr<Control>,
    names: AtomicPtr<Name>,
    /// The rings of threads of this process.
    pub rings: [AtomicPtr<Ring>; RINGS_MAX as usize],
    path: UnsafeCell<Text>,
    device: AtomicU64,
    inode: AtomicU64,
    refusal: AtomicU32,
}

// SAFETY: `path` is written before any other thread can read it: before `main`, and in a forked
// child, which has one thread.
unsafe impl Sync for OwnProcess {}

/// This process.
pub static PROCESS: OwnProcess = OwnProcess {
    control: AtomicPtr::new(null_mut()),
    names: AtomicPtr::new(null_mut()),
    rings: [const { AtomicPtr::new(null_mut()) }; RINGS_MAX as usize],
    path: UnsafeCell::new(Text::new()),
    device: AtomicU64::new(0),
    inode: AtomicU64::new(0),
    refusal: AtomicU32::new(RecordRefusal::NotStarted as u32),
};

const NAMES_BYTES: usize = (RINGS_AT - NAMES_AT) as usize;

/// The settings of the environment.
struct RequestedSettings {
    mode: u32,
    slots: u32,
    clock: u32,
}

impl OwnProcess {
    /// Creates the file; must be called once, before there are threads. `page` is the memory of
    /// [`CONTROL_PAGE`] bytes that the fast path reads. Returns whether it could be created.
    pub fn create_file(&self, page: *mut Control) -> bool {
        let creation = read_request().and_then(|requested| self.first_file(page, &requested));
        self.refusal.store(creation.err().map_or(0, |refusal| refusal as u32), Ordering::Relaxed);
        creation.is_ok()
    }

    fn first_file(
        &self,
        page: *mut Control,
        requested: &RequestedSettings,
    ) -> Result<(), RecordRefusal> {
        // SAFETY: no pointers.
        if unsafe { libc::sysconf(libc::_SC_PAGESIZE) } > CONTROL_PAGE as libc::c_long {
            return Err(RecordRefusal::PageSize);
        }
        self.make_file(page, requested)
    }

    /// Creates a file, maps its control page over `page`, and records the mode that the process
    /// requests.
    fn make_file(
        &self,
        page: *mut Control,
        requested: &RequestedSettings,
    ) -> Result<(), RecordRefusal> {
        let mut path = Text::new();
        let directory = directory::open_directory(&mut path)?;
        let namespace = pid_namespace();
        directory::remove_dead_files(&directory, namespace);
        let pid = std::process::id();
        let start = directory::start_time(pid).unwrap_or(0);
        let file = create_numbered_file(&directory, &mut path, pid, start)?;
        let stat = sys::stat_of(&file).ok_or(RecordRefusal::NoFile)?;
        if !sys::allocate_space(&file, 0, CONTROL_PAGE as u64) {
            return Err(RecordRefusal::NoSpace);
        }
        sys::map_file(&file, 0, CONTROL_PAGE, page.cast()).ok_or(RecordRefusal::NoFile)?;
        // SAFETY: no thread reads the path meanwhile: see `Sync` above.
        unsafe { *self.path.get() = path };
        self.device.store(stat.st_dev as u64, Ordering::Relaxed);
        self.inode.store(stat.st_ino as u64, Ordering::Relaxed);
        self.control.store(page, Ordering::Release);
        // SAFETY: `page` is mapped, aligned, and consists of atomic integers.
        let control = unsafe { &*page };
        control.version.store(VERSION, Ordering::Relaxed);
        control.pid.store(pid, Ordering::Relaxed);
        control.start_time.store(start, Ordering::Relaxed);
        control.namespace.store(namespace, Ordering::Relaxed);
        control.ring_slots.store(requested.slots, Ordering::Relaxed);
        control.clock.store(requested.clock, Ordering::Relaxed);
        for (place, word) in control.comm.iter().zip(sys::thread_name()) {
            place.store(word, Ordering::Relaxed);
        }
        if requested.clock != CLOCK_MONOTONIC {
            let pair = counter::pair();
            control.pair_ticks.store(pair.ticks, Ordering::Relaxed);
            control.pair_monotonic.store(pair.monotonic, Ordering::Relaxed);
            control.pair_error.store(pair.error, Ordering::Relaxed);
        }
        if directory::has_collector(&directory) {
            control.mode.store(STREAM, Ordering::Relaxed);
            control.recording.store(1, Ordering::Relaxed);
        }
        control.magic.store(MAGIC, Ordering::Release);
        if requested.mode != 0 {
            self.set_requested_mode(requested.mode);
        }
        Ok(())
    }

    /// The control page, if there is one.
    pub fn control_page(&self) -> Option<&'static Control> {
        // SAFETY: null, or the page given to `start`, which stays mapped.
        unsafe { self.control.load(Ordering::Acquire).as_ref() }
    }

    /// The table of names, if it is mapped.
    pub fn name_table(&self) -> Option<&'static [Name]> {
        let table = self.names.load(Ordering::Acquire);
        // SAFETY: a permanent mapping of this many names, all atomic integers.
        (!table.is_null()).then(|| unsafe { std::slice::from_raw_parts(table, NAMES_MAX as usize) })
    }

    /// Maps the table of names, if it is not yet mapped.
    pub fn map_names(&self, file: &Fd) -> Option<()> {
        if !self.names.load(Ordering::Acquire).is_null() {
            return Some(());
        }
        if !sys::allocate_space(file, NAMES_AT, NAMES_BYTES as u64) {
            return None;
        }
        let table = sys::map_file(file, NAMES_AT, NAMES_BYTES, null_mut())?.cast();
        if self
            .names
            .compare_exchange(null_mut(), table, Ordering::AcqRel, Ordering::Relaxed)
            .is_err()
        {
            sys::unmap_memory(table.cast(), NAMES_BYTES);
        }
        Some(())
    }

    /// Opens the file again. No descriptor is kept open: programs close unknown ones, and open
    /// others with the same number.
    pub fn reopen_file(&self) -> Option<Fd> {
        // SAFETY: no thread writes the path meanwhile: see `Sync` above.
        let path = unsafe { &*self.path.get() };
        let file =
            sys::open_path(path.as_str()?, libc::O_RDWR | libc::O_NOFOLLOW | libc::O_NONBLOCK)?;
        let stat = sys::stat_of(&file)?;
        let same = stat.st_dev as u64 == self.device.load(Ordering::Relaxed)
            && stat.st_ino as u64 == self.inode.load(Ordering::Relaxed);
        same.then_some(file)
    }

    /// The file's path if the process records, or why it cannot.
    pub fn file_path(&self) -> Result<&'static std::ffi::CStr, u32> {
        match self.refusal.load(Ordering::Relaxed) {
            // SAFETY: no thread writes the path meanwhile: see `Sync` above.
            0 => unsafe { (*self.path.get()).as_str().ok_or(RecordRefusal::NoFile as u32) },
            refusal => Err(refusal),
        }
    }

    /// Sets the mode requested by the process itself: [`STREAM`], [`FLIGHT`], or 0 for the
    /// collector's.
    pub fn set_requested_mode(&self, mode: u32) {
        let Some(control) = self.control_page() else { return };
        control.requested.store(mode, Ordering::Relaxed);
        if mode == 0 {
            control.recording.store(0, Ordering::Relaxed);
            return;
        }
        control.mode.store(mode, Ordering::Relaxed);
        for ring in &self.rings {
            // SAFETY: null, or a ring that is mapped until its thread ends; an ending thread
            // removes it first. (The documentation of `record` excludes that a thread ends now.)
            if let Some(ring) = unsafe { ring.load(Ordering::Acquire).as_ref() } {
                let room = ring.mask.load(Ordering::Relaxed) + 1 - MARGIN;
                let limit = if mode == FLIGHT {
                    u64::MAX
                } else {
                    ring.read.load(Ordering::Relaxed) + room
                };
                ring.limit.store(limit, Ordering::Relaxed);
            }
        }
        control.recording.store(1, Ordering::Release);
    }

    /// Creates a new file in a forked child, whose thread has no ring, with the names whose numbers
    /// its sites already have.
    pub fn renew_in_child(&self) {
        let Some(parent) = self.control_page() else { return };
        let page = (&raw const *parent).cast_mut();
        let recording = parent.recording.load(Ordering::Relaxed) != 0;
        let mode = parent.mode.load(Ordering::Relaxed);
        let requested = parent.requested.load(Ordering::Relaxed);
        let request = RequestedSettings {
            mode: 0,
            slots: parent.ring_slots.load(Ordering::Relaxed),
            clock: parent.clock.load(Ordering::Relaxed),
        };
        let (used, refused) = (
            parent.names_used.load(Ordering::Relaxed),
            parent.names_refused.load(Ordering::Relaxed),
        );
        let stride = ring_stride(request.slots) as usize;
        for ring in &self.rings {
            let ring = ring.swap(null_mut(), Ordering::Relaxed);
            if !ring.is_null() {
                sys::unmap_memory(ring.cast(), stride);
            }
        }
        let names = self.name_table();
        self.names.store(null_mut(), Ordering::Relaxed);
        let renewal = self.make_file(page, &request).and_then(|()| match names {
            Some(names) => self.copy_names(names, used, refused).ok_or(RecordRefusal::NoSpace),
            None => Ok(()),
        });
        if let Some(names) = names {
            sys::unmap_memory(names.as_ptr().cast_mut().cast(), NAMES_BYTES);
        }
        match renewal {
            Ok(()) => {
                let control = self.control_page().filter(|_| recording);
                if let Some(control) = control {
                    control.requested.store(requested, Ordering::Relaxed);
                    control.mode.store(mode, Ordering::Relaxed);
                    control.recording.store(1, Ordering::Relaxed);
                }
            }
            Err(refusal) => {
                // Its page must no longer be the parent's.
                sys::unmap_to_zero(page.cast(), CONTROL_PAGE);
                self.control.store(null_mut(), Ordering::Relaxed);
                self.refusal.store(refusal as u32, Ordering::Relaxed);
            }
        }
    }

    fn copy_names(&self, from: &[Name], used: u32, refused: u32) -> Option<()> {
        self.map_names(&self.reopen_file()?)?;
        let (control, to) = (self.control_page()?, self.name_table()?);
        let used = used.min(NAMES_MAX);
        for (from, to) in from.iter().zip(to).take(used as usize) {
            for (from, to) in from.bytes.iter().zip(&to.bytes) {
                to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
            }
            to.length.store(from.length.load(Ordering::Relaxed), Ordering::Release);
        }
        control.names_refused.store(refused, Ordering::Relaxed);
        control.names_used.store(used, Ordering::Release);
        Some(())
    }
}

fn read_request() -> Result<RequestedSettings, RecordRefusal> {
    let mode = match sys::environment_variable(c"PUNCTUAL_POINTS") {
        None | Some(b"" | b"on") => 0,
        Some(b"stream") => STREAM,
        Some(b"flight") => FLIGHT,
        Some(b"off") => return Err(RecordRefusal::SwitchedOff),
        Some(_) => return Err(RecordRefusal::BadSetting),
    };
    let slots = match sys::environment_variable(c"PUNCTUAL_POINTS_SLOTS") {
        None | Some(b"") => SLOTS_DEFAULT,
        Some(text) => {
            let wanted: u32 = std::str::from_utf8(text)
                .ok()
                .and_then(|text| text.parse().ok())
                .ok_or(RecordRefusal::BadSetting)?;
            wanted.clamp(SLOTS_MIN, SLOTS_MAX).next_power_of_two()
        }
    };
    let mut buffer = [0; 64];
    let source = sys::read_file(
        c"/sys/devices/system/clocksource/clocksource0/current_clocksource",
        &mut buffer,
    );
    let clock = match sys::environment_variable(c"PUNCTUAL_POINTS_CLOCK") {
        None | Some(b"") => counter::trusted(source.unwrap_or_default()),
        Some(b"monotonic") => CLOCK_MONOTONIC,
        Some(_) => return Err(RecordRefusal::BadSetting),
    };
    Ok(RequestedSettings { mode, slots, clock })
}

fn create_numbered_file(
    directory: &Fd,
    path: &mut Text,
    pid: u32,
    start: u64,
) -> Result<Fd, RecordRefusal> {
    // A process has several files if it holds the library twice, or executed another program.
    for attempt in 0..64 {
        let mut name = Text::new();
        name.push_number(u64::from(pid))
            .push(b".")
            .push_number(start)
            .push(b".")
            .push_number(attempt)
            .push(SUFFIX.as_bytes());
        let name = name.as_str().ok_or(RecordRefusal::NoFile)?;
        let flags = libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_NOFOLLOW;
        if let Some(file) = sys::open_at(directory.0, name, flags) {
            path.push(b"/").push(name.to_bytes()).as_str().ok_or(RecordRefusal::NoFile)?;
            return Ok(file);
        }
        if sys::errno() != libc::EEXIST {
            break;
        }
    }
    Err(RecordRefusal::NoFile)
}

fn pid_namespace() -> u64 {
    let mut stat = MaybeUninit::<libc::stat>::zeroed();
    // SAFETY: a path that ends with 0, and a valid stat to write to; zeroes are one in any case.
    unsafe {
        libc::stat(c"/proc/self/ns/pid".as_ptr(), stat.as_mut_ptr());
        stat.assume_init().st_ino as u64
    }
}
