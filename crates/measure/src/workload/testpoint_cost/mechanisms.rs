//! The mechanisms that write a test point, each opened separately: those that this system lacks are
//! reported, and the others are measured.

use super::lttng::Lttng;
use super::module::{StoredCount, ioctl_number};
use super::ring::OwnRing;
use crate::workload::counter::CycleCounter;
use crate::workload::io_uring::Uring;
use punctual_core::CpuSet;
use punctual_plan::kinds::PointMechanism;
use punctual_record::probe::OwnProbe;
use punctual_record::tracefs::Tracefs;
use punctual_sys::call::RawSyscall;
use punctual_sys::descriptor::{self, create_pipe};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

/// The size at which a memfd's offset restarts.
pub(crate) const MEMFD_SIZE: libc::off_t = 1 << 20;

pub enum OpenMechanism {
    Clock,
    /// The ring of test points.
    Ring(OwnRing),
    /// A system call, with an untimed call before it.
    Raw {
        timed: RawSyscall,
        before: Option<RawSyscall>,
        /// In use by number.
        _open: Vec<OwnedFd>,
        /// For punctual's own module: the number of points that it stored.
        stored: Option<StoredCount>,
    },
    /// pwrite(2) at an advancing offset.
    Memfd(File),
    /// io_uring, and its file.
    Uring(Box<Uring>, File),
    Uprobe(Box<OwnProbe>),
    /// A program with LTTng's tracepoints.
    Lttng(Box<Lttng>),
}

impl OpenMechanism {
    /// Opens a mechanism; `payload` is the written data and must outlive it. The error names what
    /// is missing.
    pub fn open(
        mechanism: PointMechanism,
        payload: &mut [u8],
        cpus: &CpuSet,
        ticks: &CycleCounter,
    ) -> Result<OpenMechanism, String> {
        let failed = |what: &'static str| move |why: io::Error| format!("{what}: {why}");
        match mechanism {
            PointMechanism::Clock => Ok(OpenMechanism::Clock),
            PointMechanism::Ring => OwnRing::open().map(OpenMechanism::Ring),
            PointMechanism::Syscall => {
                Ok(raw_mechanism(RawSyscall::new(libc::SYS_getpid, &[]), None, Vec::new()))
            }
            PointMechanism::Procfs => {
                // Writes the name of this thread again.
                let path =
                    format!("/proc/self/task/{}/comm", punctual_sys::attributes::thread_id());
                let file = File::options()
                    .write(true)
                    .open(path)
                    .map_err(failed("/proc/self/task/TID/comm"))?;
                Ok(write_mechanism(file, payload))
            }
            PointMechanism::Device => Ok(write_mechanism(
                File::options().write(true).open("/dev/null").map_err(failed("/dev/null"))?,
                payload,
            )),
            PointMechanism::ModuleDevice => stored_mechanism(
                StoredCount::open("/dev/punctual-point", "stored_device", payload)?,
                payload,
            ),
            PointMechanism::ModuleIoctl => {
                let (file, counter) =
                    StoredCount::open("/dev/punctual-point", "stored_ioctl", payload)?;
                let number = ioctl_number(payload.len());
                let arguments = [file.as_raw_fd().into(), number, payload.as_ptr() as libc::c_long];
                let timed = RawSyscall::new(libc::SYS_ioctl, &arguments);
                Ok(OpenMechanism::Raw {
                    timed,
                    before: None,
                    _open: vec![file.into()],
                    stored: Some(counter),
                })
            }
            PointMechanism::ModuleProcfs => stored_mechanism(
                StoredCount::open("/proc/punctual-point", "stored_procfs", payload)?,
                payload,
            ),
            PointMechanism::ModuleDebugfs => stored_mechanism(
                StoredCount::open("/sys/kernel/debug/punctual-point", "stored_debugfs", payload)?,
                payload,
            ),
            PointMechanism::Tracefs => {
                Ok(write_mechanism(Tracefs::open()?.open_file("trace_marker", true)?, payload))
            }
            PointMechanism::TraceMarkerRaw => {
                Ok(write_mechanism(Tracefs::open()?.open_file("trace_marker_raw", true)?, payload))
            }
            PointMechanism::Memfd => {
                create_memfd().map(OpenMechanism::Memfd).map_err(failed("memfd_create"))
            }
            PointMechanism::Pipe => {
                let (from, to) = create_pipe().map_err(failed("pipe"))?;
                let (at, length) =
                    (payload.as_mut_ptr() as libc::c_long, payload.len() as libc::c_long);
                let take = RawSyscall::new(libc::SYS_read, &[from.as_raw_fd().into(), at, length]);
                let give = RawSyscall::new(libc::SYS_write, &[to.as_raw_fd().into(), at, length]);
                // The data that the first untimed call takes out.
                give.make_call();
                Ok(raw_mechanism(give, Some(take), vec![from, to]))
            }
            PointMechanism::IoUring => {
                let uring = Uring::new()
                    .map_err(failed("io_uring_setup (sysctl kernel.io_uring_disabled?)"))?;
                Ok(OpenMechanism::Uring(
                    Box::new(uring),
                    create_memfd().map_err(failed("memfd_create"))?,
                ))
            }
            PointMechanism::Uprobe => OwnProbe::start(cpus)
                .map(|probe| OpenMechanism::Uprobe(Box::new(probe)))
                .map_err(|why| why.to_string()),
            PointMechanism::UserEvents => {
                let found = Tracefs::open()?.open_file("user_events_data", true);
                let lacks =
                    |why| format!("this kernel has no user events (CONFIG_USER_EVENTS): {why}");
                found
                    .map_err(lacks)
                    .and(Err("user events are not measured by this version".to_owned()))
            }
            PointMechanism::Lttng if !ticks.is_counter() => {
                Err("the program with LTTng's tracepoints stamps with the processor's counter, \
                     which is not trusted here"
                    .to_owned())
            }
            PointMechanism::Lttng => Lttng::open(cpus.first_cpu().unwrap_or(0))
                .map(|lttng| OpenMechanism::Lttng(Box::new(lttng))),
        }
    }
}

fn raw_mechanism(
    timed: RawSyscall,
    before: Option<RawSyscall>,
    open: Vec<OwnedFd>,
) -> OpenMechanism {
    OpenMechanism::Raw { timed, before, _open: open, stored: None }
}

fn stored_mechanism(
    (file, counter): (File, StoredCount),
    payload: &[u8],
) -> Result<OpenMechanism, String> {
    match write_mechanism(file, payload) {
        OpenMechanism::Raw { timed, before, _open, .. } => {
            Ok(OpenMechanism::Raw { timed, before, _open, stored: Some(counter) })
        }
        way => Ok(way),
    }
}

fn write_mechanism(file: File, payload: &[u8]) -> OpenMechanism {
    let arguments =
        [file.as_raw_fd().into(), payload.as_ptr() as libc::c_long, payload.len() as libc::c_long];
    raw_mechanism(RawSyscall::new(libc::SYS_write, &arguments), None, vec![file.into()])
}

fn create_memfd() -> io::Result<File> {
    let file = descriptor::create_memfd(c"punctual", 0)?;
    file.set_len(MEMFD_SIZE as u64 + (1 << 13))?;
    Ok(file)
}
