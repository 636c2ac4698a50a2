//! `gpio`: two lines of a chip, one driven, the other watched for its rising edge
//! (include/uapi/linux/gpio.h, version 2). They are wired together, or to a witness, which raises
//! the one and times when the other falls.
//!
//! The kernel records an edge in the handler of its interrupt. The lines are released when their
//! descriptors are closed, in any case.

use super::raiser::AwaitableInterrupt;
use super::uio::ignore_interrupted;
use punctual_sys::check_result;
use std::ffi::CStr;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

/// `struct gpiochip_info`.
#[repr(C)]
struct ChipInfo {
    name: [u8; 32],
    label: [u8; 32],
    lines: u32,
}

/// `struct gpio_v2_line_config_attribute`.
#[repr(C)]
#[derive(Clone, Copy)]
struct GpioLineAttribute {
    id: u32,
    padding: u32,
    values: u64,
    mask: u64,
}

/// `struct gpio_v2_line_request`, its `struct gpio_v2_line_config` included.
#[repr(C)]
struct LineRequest {
    offsets: [u32; 64],
    consumer: [u8; 32],
    flags: u64,
    num_attrs: u32,
    config_padding: [u32; 5],
    attrs: [GpioLineAttribute; 10],
    num_lines: u32,
    event_buffer_size: u32,
    padding: [u32; 5],
    fd: i32,
}

/// `struct gpio_v2_line_event`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct LineEvent {
    timestamp_ns: u64,
    id: u32,
    offset: u32,
    seqno: u32,
    line_seqno: u32,
    padding: [u32; 6],
}

/// `struct gpio_v2_line_values`.
#[repr(C)]
struct LineValues {
    bits: u64,
    mask: u64,
}

const GET_CHIPINFO: libc::c_ulong = 0x8044_B401;
const GET_LINE: libc::c_ulong = 0xC250_B407;
const SET_VALUES: libc::c_ulong = 0xC010_B40F;
const INPUT: u64 = 1 << 2;
const OUTPUT: u64 = 1 << 3;
const EDGE_RISING: u64 = 1 << 4;

const _: () = assert!(size_of::<ChipInfo>() == 0x44 && size_of::<LineRequest>() == 0x250);
const _: () = assert!(size_of::<LineEvent>() == 48 && size_of::<LineValues>() == 16);

pub struct Gpio {
    output: OwnedFd,
    input: OwnedFd,
    /// The name of the input's interrupt in /proc/interrupts.
    pub consumer: String,
    /// Name and label of the chip, for display.
    pub chip: String,
    handled: AtomicI64,
    edges: AtomicU64,
    /// How long the driven line falls to answer each edge; `None`: it drives the edges.
    answers: Option<Duration>,
}

impl Gpio {
    /// Requests both lines. The error names what is missing.
    pub fn open(
        device: &Path,
        out_line: u32,
        in_line: u32,
        answers: Option<Duration>,
    ) -> Result<Gpio, String> {
        let at = device.display();
        let mut options = OpenOptions::new();
        options.read(true).write(true).custom_flags(libc::O_CLOEXEC);
        let missing = "is there a GPIO controller? `ls /dev/gpiochip*` lists them";
        let chip = options.open(device).map_err(|why| format!("{at}: {why} ({missing})"))?;
        let mut info = ChipInfo { name: [0; 32], label: [0; 32], lines: 0 };
        // SAFETY: the structure has the size encoded in the request; the kernel fills it.
        if unsafe { libc::ioctl(chip.as_raw_fd(), GET_CHIPINFO as _, &raw mut info) } < 0 {
            return Err(format!("{at} is not a GPIO chip ({missing})"));
        }
        for (what, line) in [("out_line", out_line), ("in_line", in_line)] {
            if line >= info.lines {
                return Err(format!(
                    "{at} has {} lines, from 0 on: there is no {what} {line}",
                    info.lines
                ));
            }
        }
        let consumer = format!("punctual-{}", std::process::id());
        let take = |line, flags, what: &str| {
            request_line(&chip, line, flags, &consumer).map_err(|why| match why.raw_os_error() {
                Some(libc::EBUSY) => {
                    format!("{at}: {what} {line} is in use (`gpioinfo` shows by whom)")
                }
                Some(libc::ENXIO | libc::EOPNOTSUPP) => {
                    format!("{at}: {what} {line} cannot raise interrupts: {why}")
                }
                _ => {
                    format!("{at}: {what} {line}: {why} (kernels before 5.10 lack this interface)")
                }
            })
        };
        let output = take(out_line, OUTPUT, "out_line")?;
        let input = take(in_line, INPUT | EDGE_RISING, "in_line")?;
        let chip = format!("{} ({})", decode_name(&info.name), decode_name(&info.label));
        Ok(Gpio {
            output,
            input,
            consumer,
            chip,
            handled: AtomicI64::new(0),
            edges: AtomicU64::new(0),
            answers,
        })
    }

    #[inline(always)]
    fn set_output(&self, high: bool) -> io::Result<()> {
        let mut values = LineValues { bits: high.into(), mask: 1 };
        // SAFETY: the structure has the size encoded in the request.
        check_result(unsafe {
            libc::ioctl(self.output.as_raw_fd(), SET_VALUES as _, &raw mut values)
        })
        .map(drop)
    }
}

fn decode_name(bytes: &[u8]) -> String {
    let text = CStr::from_bytes_until_nul(bytes).map(CStr::to_string_lossy).unwrap_or_default();
    text.escape_debug().to_string()
}

fn request_line(chip: &File, line: u32, flags: u64, consumer: &str) -> io::Result<OwnedFd> {
    let mut request = LineRequest {
        offsets: [0; 64],
        consumer: [0; 32],
        flags,
        num_attrs: 0,
        config_padding: [0; 5],
        attrs: [GpioLineAttribute { id: 0, padding: 0, values: 0, mask: 0 }; 10],
        num_lines: 1,
        event_buffer_size: 0,
        padding: [0; 5],
        fd: -1,
    };
    request.offsets[0] = line;
    request.consumer.iter_mut().zip(consumer.bytes().take(31)).for_each(|(to, from)| *to = from);
    // SAFETY: the structure has the size encoded in the request; the kernel reads it and fills in
    // `fd`.
    check_result(unsafe { libc::ioctl(chip.as_raw_fd(), GET_LINE as _, &raw mut request) })?;
    // SAFETY: the kernel just gave this descriptor to us alone.
    Ok(unsafe { OwnedFd::from_raw_fd(request.fd) })
}

impl AwaitableInterrupt for Gpio {
    fn is_raised(&self) -> bool {
        self.answers.is_none()
    }
    #[inline(always)]
    fn raise_interrupt(&self) -> io::Result<()> {
        self.set_output(true)
    }
    #[inline(always)]
    fn await_interrupt(&self) -> io::Result<bool> {
        let mut event = LineEvent::default();
        let size = size_of::<LineEvent>();
        // SAFETY: as many bytes of writable memory.
        let read = unsafe { libc::read(self.input.as_raw_fd(), (&raw mut event).cast(), size) };
        if read == size as isize {
            if self.answers.is_some() {
                self.set_output(false)?;
            }
            self.handled.store(event.timestamp_ns as i64, Ordering::Release);
            self.edges.store(event.line_seqno.into(), Ordering::Release);
            return Ok(true);
        }
        ignore_interrupted(io::Error::last_os_error())
    }
    /// An edge that follows too closely is not seen if there is more than a wire between the lines.
    fn is_slow(&self) -> bool {
        true
    }
    fn rearm(&self) -> io::Result<()> {
        self.answers.into_iter().for_each(std::thread::sleep);
        self.set_output(self.answers.is_some())
    }
    fn handler_entry(&self) -> Option<i64> {
        Some(self.handled.load(Ordering::Acquire)).filter(|at| *at > 0)
    }
    fn independent_count(&self) -> Option<(&'static str, u64)> {
        Some((
            "the kernel's own number of the last edge (line_seqno)",
            self.edges.load(Ordering::Acquire),
        ))
    }
}
