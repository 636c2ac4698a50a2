//! Devices of a machine for workloads, and their preparation by its init.

use punctual_lab::exact::PARPORT;
use punctual_lab::{Guest, GuestFile, LabError, disk};
use punctual_plan::{Acceleration, Device, VmPlan};
use std::path::Path;

/// The size of a disk in the host's time: a sparse file.
const DISK_BYTES: u64 = 1 << 30;
/// The size of a disk in virtual time: it is in the machine's memory.
const MEMORY_DISK_BYTES: u64 = 64 << 20;
/// The path of the image in the machine until it is copied.
const IMAGE: &str = "/storage.img";

/// Adds the plan's devices, with their files in `place`. Returns commands for the machine's shell.
pub fn add(vm: &VmPlan, place: &Path, guest: &mut Guest) -> Result<String, LabError> {
    let mut script = String::new();
    for device in &vm.devices {
        script += &match device {
            Device::Edu => add_edu(guest),
            Device::Parport => add_parport(guest),
            Device::Storage if vm.accel == Acceleration::VirtualTime => {
                storage_in_memory(place, guest)?
            }
            Device::Storage => add_storage(place, guest)?,
        };
    }
    Ok(script)
}

/// A description of the device.
pub(crate) fn device_title(device: Device, accel: Acceleration) -> &'static str {
    match device {
        Device::Edu => "QEMU's edu, bound to uio_pci_generic at /dev/uio0",
        Device::Parport => "QEMU's parallel port at /dev/parport0",
        Device::Storage if accel == Acceleration::VirtualTime => {
            "ext4 on a disk in memory (brd) at /mnt/storage: a real disk answers in the host's time"
        }
        Device::Storage => "ext4 on a virtio disk at /mnt/storage",
    }
}

/// The ids of hw/misc/edu.c in QEMU.
fn add_edu(guest: &mut Guest) -> String {
    guest.qemu_args.extend(["-device".to_owned(), "edu".to_owned()]);
    guest.modules.push("uio_pci_generic".to_owned());
    "echo 1234 11e8 >/sys/bus/pci/drivers/uio_pci_generic/new_id || exit 1\n".to_owned()
}

/// Adds a parallel port. Its arguments are among those that `lab::exact` accepts.
fn add_parport(guest: &mut Guest) -> String {
    guest.qemu_args.extend(PARPORT.map(str::to_owned));
    guest.modules.extend(["parport_pc".to_owned(), "ppdev".to_owned()]);
    "[ -e /dev/parport0 ] || exit 1\n".to_owned()
}

fn add_storage(place: &Path, guest: &mut Guest) -> Result<String, LabError> {
    let image = std::path::absolute(place.join("storage.img"));
    let image =
        image.map_err(|source| LabError::Io { action: "find", path: place.to_owned(), source })?;
    disk::ext4_image(&image, DISK_BYTES)?;
    // A comma in a path is doubled in QEMU's options.
    let drive = format!(
        "file={},if=none,id=storage,format=raw",
        image.to_string_lossy().replace(',', ",,")
    );
    guest.qemu_args.extend(["-drive".to_owned(), drive]);
    guest.qemu_args.extend(["-device".to_owned(), "virtio-blk-pci,drive=storage".to_owned()]);
    guest.modules.extend(["virtio_blk".to_owned(), "ext4".to_owned()]);
    Ok("mkdir -p /mnt/storage && mount -t ext4 /dev/vda /mnt/storage || { dmesg | tail -n 5 >&2; \
        exit 1; }\n"
        .to_owned())
}

/// QEMU answers a disk's requests when this system has completed them, at another instruction each
/// time. The memory disk's answers depend on instructions alone.
fn storage_in_memory(place: &Path, guest: &mut Guest) -> Result<String, LabError> {
    let image = place.join("storage.img");
    disk::ext4_image(&image, MEMORY_DISK_BYTES)?;
    guest.files.push(GuestFile::from_host_file(image, IMAGE)?);
    guest.modules.extend(["brd".to_owned(), "ext4".to_owned()]);
    let mount = "mkdir -p /mnt/storage && mount -t ext4 /dev/ram0 /mnt/storage || { dmesg | tail \
                 -n 5 >&2; exit 1; }\n";
    // The module's disks have 16 MiB by default.
    let loaded = format!(
        "rmmod brd; insmod /punctual/modules/*-brd.ko rd_nr=1 rd_size={} || exit 1\n",
        MEMORY_DISK_BYTES >> 10
    );
    Ok(format!("{loaded}cat {IMAGE} >/dev/ram0 && rm {IMAGE} || exit 1\n{mount}"))
}
