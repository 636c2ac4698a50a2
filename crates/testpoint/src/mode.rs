//! Recording requested by the process itself.

use std::fmt;

/// Recording while no collector requests any.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// Nothing: points are recorded while a collector requests them. The default, unless the
    /// environment variable `PUNCTUAL_POINTS` sets another.
    OnDemand,
    /// Every point until the ring is full, then none until a collector has read some. Dropped
    /// points are counted.
    Stream,
    /// The last points of each thread, for analysis after a crash: new ones overwrite the oldest.
    /// Overwritten points are counted.
    Flight,
}

/// Why this process records no points.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Off(#[cfg_attr(not(feature = "enabled"), allow(dead_code))] u32);

impl fmt::Display for Off {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.reason_text())
    }
}
impl std::error::Error for Off {}

#[cfg(feature = "enabled")]
mod enabled {
    use super::{Mode, Off};
    use crate::directory::RecordRefusal;
    use crate::layout::{FLIGHT, STREAM};
    use crate::process::PROCESS;

    impl Off {
        pub(crate) fn new(refusal: u32) -> Off {
            Off(refusal)
        }
        pub(crate) fn reason_text(self) -> &'static str {
            const NOT_STARTED: u32 = RecordRefusal::NotStarted as u32;
            const SWITCHED_OFF: u32 = RecordRefusal::SwitchedOff as u32;
            const NO_DIRECTORY: u32 = RecordRefusal::NoDirectory as u32;
            const NOT_PRIVATE: u32 = RecordRefusal::NotPrivate as u32;
            const NO_SPACE: u32 = RecordRefusal::NoSpace as u32;
            const PAGE_SIZE: u32 = RecordRefusal::PageSize as u32;
            const BAD_SETTING: u32 = RecordRefusal::BadSetting as u32;
            match self.0 {
                NOT_STARTED => "the library was not started: its constructor did not run",
                SWITCHED_OFF => "PUNCTUAL_POINTS=off",
                NO_DIRECTORY => {
                    "no directory for points: /run/punctual/points (root), \
                     $XDG_RUNTIME_DIR/punctual/points; PUNCTUAL_POINTS_DIR names another"
                }
                NOT_PRIVATE => {
                    "the directory for points belongs to another user or is open to others: it \
                     must be the user's own, mode 0700"
                }
                NO_SPACE => {
                    "no space for the file of points (the file system is full, cannot allocate, or \
                     ulimit -f is too low)"
                }
                PAGE_SIZE => "this kernel's pages are larger than the library was built for",
                BAD_SETTING => {
                    "a setting was not understood: PUNCTUAL_POINTS (on, off, stream, flight), \
                     PUNCTUAL_POINTS_SLOTS (a number), PUNCTUAL_POINTS_CLOCK (monotonic)"
                }
                _ => "the file of points could not be made",
            }
        }
    }

    /// Sets the recording while no collector requests any; while one does, its request is in force
    /// until the next call or its end. Must be called by one thread at a time, and not while
    /// threads that have passed points are ending.
    pub fn record(mode: Mode) {
        PROCESS.set_requested_mode(match mode {
            Mode::OnDemand => 0,
            Mode::Stream => STREAM,
            Mode::Flight => FLIGHT,
        });
    }
}
#[cfg(feature = "enabled")]
pub use enabled::record;

#[cfg(not(feature = "enabled"))]
mod disabled {
    use super::{Mode, Off};
    use std::path::PathBuf;

    impl Off {
        pub(super) fn reason_text(self) -> &'static str {
            "the program was built without the feature `enabled` of punctual-testpoint"
        }
    }
    /// Does nothing: the feature `enabled` is off.
    pub fn record(_: Mode) {}
    /// There is no file: the feature `enabled` is off.
    pub fn status() -> Result<PathBuf, Off> {
        Err(Off(0))
    }
}
#[cfg(not(feature = "enabled"))]
pub use disabled::{record, status};
