//! The files of punctual's own kernel module, which store points (crates/measure/module).

use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// The maximum number of payload bytes that the module stores (PAYLOAD_MAX of punctual_point.c).
const PAYLOAD_MAX: usize = 40;
const PARAMETERS: &str = "/sys/module/punctual_point/parameters";

/// The module's count of points that came by one way.
pub struct StoredCount {
    counter: PathBuf,
    before: u64,
}

impl StoredCount {
    /// Opens a file of the module; the error names what is missing.
    pub fn open(path: &str, counter: &str, payload: &[u8]) -> Result<(File, StoredCount), String> {
        let counter = Path::new(PARAMETERS).join(counter);
        if !counter.exists() {
            return Err(format!(
                "the kernel module punctual_point is not loaded, which would store the point \
                 ({path}); its source and how to build it: crates/measure/module"
            ));
        }
        if payload.len() > PAYLOAD_MAX {
            return Err(format!(
                "the module stores at most {PAYLOAD_MAX} bytes besides the time: set `payload`"
            ));
        }
        let file =
            File::options().write(true).open(path).map_err(|why| format!("{path}: {why}"))?;
        let before = read(&counter)?;
        Ok((file, StoredCount { counter, before }))
    }

    /// Points that it has stored since this was opened.
    pub(crate) fn read_stored(&self) -> Result<u64, String> {
        read(&self.counter).map(|now| now.saturating_sub(self.before))
    }

    pub(crate) fn count_source(&self) -> String {
        format!("the module's own counter, {}", self.counter.display())
    }
}

fn read(counter: &Path) -> Result<u64, String> {
    let text =
        fs::read_to_string(counter).map_err(|why| format!("{}: {why}", counter.display()))?;
    text.trim().parse().map_err(|_| format!("{} holds no number", counter.display()))
}

/// The number of the module's ioctl(2) for a payload of this length: `_IOC(_IOC_WRITE, 'p', 0x70,
/// length)` of asm-generic/ioctl.h, which x86 and arm64 use.
pub(crate) fn ioctl_number(length: usize) -> libc::c_long {
    1 << 30 | (length as libc::c_long & 0x3fff) << 16 | libc::c_long::from(b'p') << 8 | 0x70
}
