//! `uio` and `edu`: interrupts of a device under /dev/uioN
//! (Documentation/driver-api/uio-howto.rst). QEMU's `edu` (docs/specs/edu.rst of QEMU) raises its
//! interrupt on a write to a register; other devices raise theirs by themselves.
//!
//! Nothing is bound or unbound here: that is left to the administrator.

use super::raiser::AwaitableInterrupt;
use punctual_sys::descriptor::poll_readable;
use punctual_sys::mapping::{Mapping, READ_WRITE};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// A signal is no error.
pub(crate) fn ignore_interrupted(why: io::Error) -> io::Result<bool> {
    if why.kind() == io::ErrorKind::Interrupted { Ok(false) } else { Err(why) }
}

/// An open UIO device.
pub struct Uio {
    file: File,
    /// `uio0`.
    pub node: String,
    /// Its driver's name for itself: the name in /proc/interrupts.
    pub driver: String,
    /// Its interrupt, if sysfs or /proc/interrupts show it.
    pub irq: Option<u32>,
    /// The high byte of the PCI command register, if the handler masks there and nothing else
    /// unmasks (drivers/uio/uio_pci_generic.c).
    command: Option<File>,
    count: AtomicU64,
    registers: Option<Registers>,
}

const COMMAND_HIGH: u64 = 5;
const INTX_DISABLE: u8 = 1 << 2;

impl Uio {
    /// Opens `/dev/uioN`. The error names what is missing.
    pub fn open(device: &Path) -> Result<Uio, String> {
        let at = device.display();
        let help = "is the device there and bound to a UIO driver? `ls /sys/class/uio` lists them";
        let meta = fs::metadata(device).map_err(|why| format!("{at}: {why} ({help})"))?;
        let not = || format!("{at} is not a UIO device ({help})");
        if !meta.file_type().is_char_device() {
            return Err(not());
        }
        let number = meta.rdev();
        let link = format!("/sys/dev/char/{}:{}", libc::major(number), libc::minor(number));
        let class = fs::canonicalize(&link).map_err(|why| format!("{link}: {why}"))?;
        if class.parent().and_then(Path::file_name).is_none_or(|parent| parent != "uio") {
            return Err(not());
        }
        let node =
            class.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let driver = read_text(&class.join("name")).unwrap_or_default();
        let mut options = OpenOptions::new();
        options.read(true).write(true).custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC);
        let file = options.open(device).map_err(|why| format!("{at}: {why}"))?;
        // A device without an interrupt returns EIO (drivers/uio/uio.c, uio_read).
        match (&file).read(&mut [0; 4]) {
            Err(why) if why.raw_os_error() == Some(libc::EIO) => {
                return Err(format!("{at}: this device has no interrupt ({driver} gave it none)"));
            }
            Err(why) if why.kind() != io::ErrorKind::WouldBlock => {
                return Err(format!("{at}: {why}"));
            }
            _ => {}
        }
        // SAFETY: takes only numbers. If the flag cannot be cleared, a wait returns EAGAIN.
        unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETFL, 0) };
        let parent = class.join("device");
        let listed =
            read_text(&parent.join("irq")).and_then(|irq| irq.parse().ok()).filter(|irq| *irq > 0);
        let irq = listed.or_else(|| super::rows::number_of(&driver));
        let generic = fs::read_link(parent.join("driver"))
            .is_ok_and(|driver| driver.ends_with("uio_pci_generic"));
        let config = parent.join("config");
        let opened = || OpenOptions::new().read(true).write(true).open(&config);
        let command = generic.then(opened).transpose().map_err(|why| {
            format!(
                "{}: {why} (interrupts of uio_pci_generic are unmasked through it: root, and no \
                 lockdown)",
                config.display()
            )
        })?;
        Ok(Uio { file, node, driver, irq, command, count: AtomicU64::new(0), registers: None })
    }

    /// Opens the `edu` device: in this sysfs directory, or the only one present.
    pub(crate) fn open_edu(device: Option<&Path>) -> Result<Uio, String> {
        let found = device.map_or_else(find_edu, |device| Ok(device.to_owned()))?;
        let at = found.display();
        let ids = (read_text(&found.join("vendor")), read_text(&found.join("device")));
        if ids != (Some("0x1234".into()), Some("0x11e8".into())) {
            return Err(format!("{at} is not QEMU's edu device (vendor 0x1234, device 0x11e8)"));
        }
        let bind = "modprobe uio_pci_generic && echo 1234 11e8 > \
                    /sys/bus/pci/drivers/uio_pci_generic/new_id";
        let unbound = || format!("{at} is not bound to a UIO driver: as root, `{bind}`");
        let node = fs::read_dir(found.join("uio"))
            .ok()
            .and_then(|mut entries| entries.next()?.ok())
            .ok_or_else(unbound)?;
        let mut uio = Uio::open(&Path::new("/dev").join(node.file_name()))?;
        let registers = Registers::map_resource(&found.join("resource0"))?;
        // 0xRRrr00ed: version and name.
        let id = registers.read(0);
        if id & 0xffff != 0x00ed {
            return Err(format!(
                "{at}: the registers answer {id:#010x}, which is not an edu device's"
            ));
        }
        uio.registers = Some(registers);
        // A killed process may have left it pending.
        uio.acknowledge_edu();
        uio.unmask_interrupts()
            .map_err(|why| format!("{at}: its interrupt cannot be unmasked: {why}"))?;
        Ok(uio)
    }

    fn acknowledge_edu(&self) {
        if let Some(registers) = &self.registers {
            registers.write(EDU_ACKNOWLEDGE, registers.read(EDU_STATUS));
        }
    }

    /// Unmasks interrupts that the handler has masked.
    fn unmask_interrupts(&self) -> io::Result<()> {
        let Some(config) = &self.command else {
            // Drivers without such a switch need none.
            // SAFETY: four bytes of readable memory.
            unsafe { libc::write(self.file.as_raw_fd(), (&raw const ON).cast(), 4) };
            return Ok(());
        };
        let mut byte = [0];
        config.read_exact_at(&mut byte, COMMAND_HIGH)?;
        config.write_all_at(&[byte[0] & !INTX_DISABLE], COMMAND_HIGH)
    }
}

static ON: u32 = 1;
const EDU_STATUS: usize = 0x24;
const EDU_RAISE: usize = 0x60;
const EDU_ACKNOWLEDGE: usize = 0x64;

fn read_text(path: &Path) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

fn find_edu() -> Result<PathBuf, String> {
    let entries = fs::read_dir("/sys/bus/pci/devices")
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path());
    let mut found = entries.filter(|path| {
        read_text(&path.join("vendor")).as_deref() == Some("0x1234")
            && read_text(&path.join("device")).as_deref() == Some("0x11e8")
    });
    found.next().ok_or_else(|| "there is no edu device (QEMU: `-device edu`)".to_owned())
}

impl AwaitableInterrupt for Uio {
    fn is_raised(&self) -> bool {
        self.registers.is_some()
    }
    #[inline(always)]
    fn raise_interrupt(&self) -> io::Result<()> {
        if let Some(registers) = &self.registers {
            registers.write(EDU_RAISE, 1);
        }
        Ok(())
    }
    #[inline(always)]
    fn await_interrupt(&self) -> io::Result<bool> {
        let mut count = 0u32;
        // SAFETY: four bytes of writable memory.
        let read = unsafe { libc::read(self.file.as_raw_fd(), (&raw mut count).cast(), 4) };
        if read == 4 {
            self.count.store(count.into(), Ordering::Release);
            return Ok(true);
        }
        ignore_interrupted(io::Error::last_os_error())
    }
    fn discard_pending(&self) -> io::Result<()> {
        while poll_readable([self.file.as_fd()], 0)? == [true] {
            self.await_interrupt()?;
        }
        Ok(())
    }
    fn rearm(&self) -> io::Result<()> {
        self.acknowledge_edu();
        self.unmask_interrupts()
    }
    fn describe_state(&self) -> Option<String> {
        let status = self.registers.as_ref()?.read(EDU_STATUS);
        let mut byte = [0];
        let masked = match self.command.as_ref()?.read_exact_at(&mut byte, COMMAND_HIGH) {
            Ok(()) if byte[0] & INTX_DISABLE == 0 => "unmasked",
            Ok(()) => "masked",
            Err(_) => "unknown",
        };
        let counted = self.count.load(Ordering::Acquire);
        let waits = match poll_readable([self.file.as_fd()], 0) {
            Ok([true]) => ", one waits to be read",
            _ => "",
        };
        Some(format!(
            "the device's interrupt status is {status:#x}, its interrupt {masked}; {counted} were \
             read{waits}"
        ))
    }
    fn independent_count(&self) -> Option<(&'static str, u64)> {
        Some((
            "the device's own count of interrupts (read(2) of /dev/uioN)",
            self.count.load(Ordering::Acquire),
        ))
    }
}

/// The registers of a PCI device, mapped from `resource0`.
struct Registers(Mapping);

const REGISTERS: usize = 4096;

impl Registers {
    fn map_resource(resource: &Path) -> Result<Registers, String> {
        let describe_error = |why: io::Error| {
            format!("{}: {why} (root, and no lockdown of the kernel)", resource.display())
        };
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_CLOEXEC)
            .open(resource)
            .map_err(describe_error)?;
        if file.metadata().map_err(describe_error)?.len() < REGISTERS as u64 {
            return Err(format!("{} is too small for an edu device", resource.display()));
        }
        Mapping::of_file(file, 0, REGISTERS, READ_WRITE, 0).map(Registers).map_err(describe_error)
    }

    fn read(&self, offset: usize) -> u32 {
        assert!(offset < REGISTERS - 4 && offset.is_multiple_of(4));
        // SAFETY: within the mapping, which lives as long as self, and aligned.
        unsafe { self.0.start_address().as_ptr().add(offset).cast::<u32>().read_volatile() }
    }

    #[inline(always)]
    fn write(&self, offset: usize, value: u32) {
        assert!(offset < REGISTERS - 4 && offset.is_multiple_of(4));
        // SAFETY: as in `read`.
        unsafe { self.0.start_address().as_ptr().add(offset).cast::<u32>().write_volatile(value) }
    }
}
