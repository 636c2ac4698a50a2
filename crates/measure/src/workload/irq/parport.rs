//! `parport`: a parallel port whose strobe raises its interrupt, as QEMU's `isa-parallel` does when
//! the strobe ends (hw/char/parallel.c), and a port with a wire from pin 1 to pin 10
//! (Documentation/admin-guide/parport.rst; include/uapi/linux/ppdev.h).
//!
//! The port is released when its descriptor is closed, in any case.

use super::raiser::AwaitableInterrupt;
use punctual_sys::check_result;
use punctual_sys::descriptor::poll_readable;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

const READ_STATUS: libc::c_ulong = 0x8001_7081;
const WRITE_CONTROL: libc::c_ulong = 0x4001_7084;
const CLAIM: libc::c_ulong = 0x708b;
const FROB_CONTROL: libc::c_ulong = 0x4002_708e;
const CLEAR_INTERRUPTS: libc::c_ulong = 0x8004_7093;

/// Bits of the control register.
const STROBE: u8 = 1 << 0;
const INIT: u8 = 1 << 2;
const SELECT: u8 = 1 << 3;

/// `struct ppdev_frob_struct`.
#[repr(C)]
struct Frob {
    mask: u8,
    value: u8,
}

pub struct Parport {
    file: File,
    pub irq: u32,
    interrupts: AtomicU64,
}

impl Parport {
    /// Claims `/dev/parportN`. The error names what is missing.
    pub fn open(device: &Path) -> Result<Parport, String> {
        let at = device.display();
        let missing = "is the port there, and its driver? `modprobe parport_pc; modprobe ppdev`";
        let mut options = OpenOptions::new();
        options.read(true).write(true).custom_flags(libc::O_CLOEXEC);
        let file = options.open(device).map_err(|why| format!("{at}: {why} ({missing})"))?;
        let port = device.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut parport = Parport { file, irq: 0, interrupts: AtomicU64::new(0) };
        parport.claim_port().map_err(|why| match why.raw_os_error() {
            Some(libc::ENOTTY) => format!("{at} is not a parallel port ({missing})"),
            _ => format!("{at} cannot be claimed: {why} (lp, or another program, may have it)"),
        })?;
        // A number; "none" or "auto" without an interrupt.
        let listed = fs::read_to_string(format!("/proc/sys/dev/parport/{port}/irq"));
        let irq = listed.ok().and_then(|irq| irq.trim().parse().ok());
        parport.irq = irq.ok_or_else(|| {
            format!("{at} has no interrupt: `modprobe parport_pc io=0x378 irq=7` gives it one")
        })?;
        Ok(parport)
    }

    fn claim_port(&self) -> io::Result<()> {
        // Enables the interrupt of the port.
        // SAFETY: takes no argument.
        check_result(unsafe { libc::ioctl(self.file.as_raw_fd(), CLAIM as _) })?;
        let control = INIT | SELECT | STROBE;
        // SAFETY: a byte of readable memory.
        check_result(unsafe {
            libc::ioctl(self.file.as_raw_fd(), WRITE_CONTROL as _, &raw const control)
        })
        .map(drop)
    }

    /// Allows the port to raise the next one: a read of its status acknowledges it. QEMU's port
    /// would raise this one again if the strobe began before.
    fn acknowledge_interrupt(&self) -> io::Result<()> {
        let mut status = 0u8;
        // SAFETY: a byte of writable memory.
        check_result(unsafe {
            libc::ioctl(self.file.as_raw_fd(), READ_STATUS as _, &raw mut status)
        })
        .map(drop)
    }

    /// The number since the last call.
    fn take_count(&self) -> io::Result<u64> {
        let mut count = 0i32;
        // SAFETY: four bytes of writable memory.
        check_result(unsafe {
            libc::ioctl(self.file.as_raw_fd(), CLEAR_INTERRUPTS as _, &raw mut count)
        })?;
        let count = u64::try_from(count).unwrap_or_default();
        self.interrupts.fetch_add(count, Ordering::AcqRel);
        Ok(count)
    }

    #[inline(always)]
    fn set_strobe(&self, on: bool) -> io::Result<()> {
        let mut frob = Frob { mask: STROBE, value: if on { STROBE } else { 0 } };
        // SAFETY: the structure has the size encoded in the request; the kernel only reads it.
        check_result(unsafe {
            libc::ioctl(self.file.as_raw_fd(), FROB_CONTROL as _, &raw mut frob)
        })
        .map(drop)
    }
}

impl AwaitableInterrupt for Parport {
    #[inline(always)]
    fn raise_interrupt(&self) -> io::Result<()> {
        self.set_strobe(false)
    }
    #[inline(always)]
    fn await_interrupt(&self) -> io::Result<bool> {
        poll_readable([self.file.as_fd()], -1).map(|[came]| came)
    }
    fn discard_pending(&self) -> io::Result<()> {
        self.rearm()?;
        while self.take_count()? > 0 {}
        Ok(())
    }
    fn rearm(&self) -> io::Result<()> {
        self.acknowledge_interrupt()?;
        self.set_strobe(true)?;
        self.take_count().map(drop)
    }
    fn independent_count(&self) -> Option<(&'static str, u64)> {
        Some((
            "the driver's own count of interrupts (PPCLRIRQ of /dev/parportN)",
            self.interrupts.load(Ordering::Acquire),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_that_is_no_parallel_port_is_refused_with_a_remedy() {
        for (device, expected) in
            [("/dev/null", "is not a parallel port"), ("/dev/parport99", "No such file")]
        {
            let why = Parport::open(Path::new(device)).err().unwrap();
            assert!(why.contains(expected) && why.contains("modprobe ppdev"), "{why}");
        }
    }
}
