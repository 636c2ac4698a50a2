//! Extracts the kernel proper from a bzImage: its own decompressor costs emulated instructions
//! (half of the time to boot).

use std::io::Read;

/// The maximum size of a decompressed kernel.
const KERNEL_BYTES_MAX: u64 = 1 << 30;
/// The magic number of xz; fast compressions (zstd since Debian's 6.12) are left to the kernel
/// itself.
const XZ_MAGIC: &[u8] = b"\xfd7zXZ\0";

/// The ELF file inside a bzImage, which QEMU boots by its PVH entry; `None` for another image, or
/// one that is better left unchanged.
///
/// The offsets are those of the x86 boot protocol (Documentation/arch/x86/boot.rst): `setup_sects`
/// at 0x1f1, `HdrS` at 0x202, `version` at 0x206, `payload_offset` at 0x248 and `payload_length` at
/// 0x24c, since version 2.08.
pub(crate) fn elf_of(image: &[u8]) -> Option<Vec<u8>> {
    let u32_at = |place: usize| {
        Some(u32::from_le_bytes(image.get(place..place + 4)?.try_into().ok()?) as usize)
    };
    let version = u16::from_le_bytes(image.get(0x206..0x208)?.try_into().ok()?);
    if image.get(0x202..0x206)? != b"HdrS" || version < 0x208 {
        return None;
    }
    // 0 means 4, for loaders before 1993.
    let setup_sectors = usize::from(*image.get(0x1f1)?);
    let setup_bytes = (if setup_sectors == 0 { 4 } else { setup_sectors } + 1) * 512;
    let start = setup_bytes.checked_add(u32_at(0x248)?)?;
    let payload = image.get(start..start.checked_add(u32_at(0x24c)?)?)?;
    if !payload.starts_with(XZ_MAGIC) {
        return None;
    }
    let mut elf = Vec::new();
    // One stream: the kernel's build appends the decompressed size after it.
    let xz = lzma_rust2::XzReader::new(payload, false);
    xz.take(KERNEL_BYTES_MAX).read_to_end(&mut elf).ok()?;
    elf.starts_with(b"\x7fELF").then_some(elf)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_kernel_images_are_not_unpacked() {
        let mut image = vec![0; 4096];
        assert_eq!(elf_of(&image), None);
        image[0x202..0x206].copy_from_slice(b"HdrS");
        image[0x206..0x208].copy_from_slice(&0x20fu16.to_le_bytes());
        image[0x248..0x250].copy_from_slice(&[0xff; 8]);
        assert_eq!(elf_of(&image), None);
        assert_eq!(elf_of(&image[..0x20]), None);
    }
}
