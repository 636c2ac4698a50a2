#![forbid(unsafe_code)]
//! Targets other than this process: virtual machines with a chosen kernel.
//!
//! A [`Guest`] describes what to boot and what to run; [`Guest::run`] boots it in QEMU and returns
//! a [`GuestResult`]. The steps, in the order of the files below:
//!
//! 1. [`BootKernel`]: by name, fetched and verified by apt into the cache, or by path.
//! 2. The initramfs: init, the job, the files given with the shared libraries they need, the
//!    modules.
//! 3. QEMU, its console and the virtio ports into files (or a memory card, on a board without),
//!    supervised until it ends or must be killed.
//! 4. [`GuestOutcome`]: how the guest ended, and the results from the ports.
//!
//! A missing prerequisite of the machine is [`LabError::Missing`]; the crate `testing` shows how a
//! test skips then.

mod accel;
mod apt;
mod arch;
mod artefacts;
mod board;
mod cache;
mod card;
mod contents;
pub mod disk;
mod emulator;
mod error;
pub mod exact;
mod foreign;
mod foreign_program;
mod guest;
mod headers;
mod image;
mod initramfs;
mod kernel;
mod libraries;
mod modules;
mod monitor;
mod outcome;
mod own_time;
mod ports;
mod private;
mod progress;
mod qemu;
mod results;
mod rights;
mod run;
mod saved_boot;
pub mod ssh;
mod toolchain;
mod tools;
mod waiting;

pub use accel::Accel;
pub use arch::Arch;
pub use board::GuestBoard;
pub use cache::PackageCache;
pub use emulator::check_emulator;
pub use error::{LabError, MissingPrerequisite};
pub use foreign_program::{debian_program, debian_tree};
pub use guest::{FileSource, Guest, GuestFile, Job};
pub use kernel::BootKernel;
pub use libraries::Libraries;
pub use outcome::GuestOutcome;
pub use progress::{GuestControl, GuestPhase, GuestProgress};
pub use results::GuestResult;
pub use waiting::{announce_waits, end_waits_when};
