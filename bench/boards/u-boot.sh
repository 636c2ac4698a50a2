#!/usr/bin/env bash
# A board that boots for itself: U-Boot's usual environment, extlinux.conf, Debian's kernels, on a disk with FAT.
#
#     bench/boards/u-boot.sh DIRECTORY KEY PACKAGES KERNEL...      # arguments: see common
#
# PACKAGES has u-boot-qemu, too. It needs mtools. Writes DIRECTORY/u-boot.bin and environment, too:
#
#     qemu-system-aarch64 -M virt -cpu cortex-a72 -smp 2 -m 512 -bios u-boot.bin \
#         -drive if=pflash,unit=1,format=raw,file=environment -drive if=none,id=d0,format=raw,file=disk \
#         -device virtio-blk-pci,drive=d0 -netdev user,id=n0,hostfwd=tcp:127.0.0.1:PORT-:22 \
#         -device virtio-net-pci,netdev=n0,romfile= -display none -serial file:console
. "$(dirname "$0")/common"
boot=$work/disk/boot
kernels "$boot" vfat
mkdir "$boot/extlinux"
{
    echo "DEFAULT ${releases[0]}"
    echo "TIMEOUT 1"
    for release in "${releases[@]}"; do
        printf 'LABEL %s\n\tLINUX /boot/vmlinuz-%s\n\tINITRD /boot/initrd.img-%s\n' "$release" "$release" "$release"
        printf '\tAPPEND console=ttyAMA0 quiet\n'
    done
} >"$boot/extlinux/extlinux.conf"
truncate -s "$((40 + 48 * ${#kernels[@]}))M" "$work/partition"
mformat -i "$work/partition" -F ::
mcopy -i "$work/partition" -s -m "$boot" ::
disk "$work/partition" c

# The environment that is in U-Boot itself, without its pause and without looking for other disks.
cp "$packages/usr/lib/u-boot/qemu_arm64/u-boot.bin" "$place/u-boot.bin"
python3 - "$place/u-boot.bin" "$place/environment" <<'PY'
import re, sys, zlib
usual = re.search(rb"\0((?:[a-z_0-9]+=[^\0]*\0){20,})\0", open(sys.argv[1], "rb").read()).group(1)
changed = {b"bootdelay": b"0", b"boot_targets": b"virtio0"}
entries = [entry for entry in usual.split(b"\0") if entry and entry.split(b"=")[0] not in changed]
data = b"\0".join(entries + [b"=".join(pair) for pair in changed.items()]).ljust(0x40000 - 4, b"\0")
with open(sys.argv[2], "wb") as out:
    out.write(zlib.crc32(data).to_bytes(4, "little") + data)
    out.truncate(64 << 20)
PY
