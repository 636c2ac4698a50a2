//! Differences between the boards of guests: the return path, the console, and QEMU's options.

use crate::{Arch, BootKernel, LabError};
use std::path::PathBuf;

/// The board of a guest.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum GuestBoard {
    /// QEMU's best board for the architecture: `pc`, or `virt` of arm64. Results return through
    /// virtio ports.
    #[default]
    Usual,
    /// A Raspberry Pi 3 Model B, with Debian's own device tree. It has neither PCI nor virtio:
    /// results return on its memory card at the end.
    Raspi3b,
}

/// The device tree of the Raspberry Pi 3 in Debian's packages.
const RASPI_TREE: &str = "broadcom/bcm2837-rpi-3-b.dtb";
pub(crate) const RASPI_CPUS: u32 = 4;
pub(crate) const RASPI_MEMORY_MB: u32 = 1024;

impl GuestBoard {
    /// The modules of the return path. The Pi's are those of its card's controller (sdhost), and of
    /// the watchdog, which powers it off and resets it after a panic; without it, it halts while
    /// QEMU continues.
    pub(crate) fn required_modules(self) -> &'static [&'static str] {
        match self {
            GuestBoard::Usual => &["virtio_pci", "virtio_console"],
            GuestBoard::Raspi3b => &["mmc_block", "bcm2835", "bcm2835_wdt"],
        }
    }

    /// The init's functions for this board.
    pub(crate) fn init_functions(self) -> &'static str {
        match self {
            GuestBoard::Usual => include_str!("way_ports.sh"),
            GuestBoard::Raspi3b => include_str!("way_card.sh"),
        }
    }

    /// The kernel's name for the serial line of its console. On the Pi it is the second: the first
    /// belongs to Bluetooth in the device tree.
    pub(crate) fn console_device(self, arch: Arch) -> &'static str {
        match self {
            GuestBoard::Usual => arch.console_device(),
            GuestBoard::Raspi3b => "ttyS1",
        }
    }

    /// The device tree, if QEMU does not make it itself.
    ///
    /// # Errors
    /// [`LabError::Missing`] if the kernel came without.
    pub(crate) fn device_tree(self, kernel: &BootKernel) -> Result<Option<PathBuf>, LabError> {
        if self == GuestBoard::Usual {
            return Ok(None);
        }
        let below = kernel
            .kernel_release()
            .map(|release| format!("usr/lib/linux-image-{release}/{RASPI_TREE}"));
        let above = kernel.modules.iter().flat_map(|modules| modules.ancestors());
        let mut places = above.filter_map(|dir| Some(dir.join(below.as_ref()?)));
        places.find(|path| path.is_file()).map(Some).ok_or_else(|| {
            LabError::missing(
                format!("the device tree {RASPI_TREE} beside the modules of {}", kernel.name),
                "use one of Debian's kernels by name",
            )
        })
    }

    /// Additional words for the kernel's command line.
    pub(crate) fn kernel_words(self, cpus: u32) -> Option<String> {
        (self == GuestBoard::Raspi3b).then(|| format!("maxcpus={cpus}"))
    }

    /// QEMU's options for the machine, its CPUs and memory, without the console. The Pi always has
    /// four CPUs: unused ones stay off, as they would otherwise loop and take three quarters of the
    /// time.
    pub(crate) fn machine_options(self, arch: Arch, cpus: u32, memory_mb: u32) -> String {
        match self {
            GuestBoard::Usual => {
                format!("-machine {} -smp {cpus} -m {memory_mb}", arch.qemu_machine())
            }
            GuestBoard::Raspi3b => {
                format!(
                    "-machine raspi3b -smp {RASPI_CPUS} -m {memory_mb} -global \
                     bcm2837.enabled-cpus={cpus}"
                )
            }
        }
    }
}
