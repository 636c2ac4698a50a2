#!/usr/bin/env bash
# A board that boots for itself: UEFI, systemd-boot, and Debian's kernels, on an EFI system partition.
#
#     bench/boards/systemd-boot.sh DIRECTORY KEY PACKAGES KERNEL...      # arguments: see common
#
# PACKAGES has ovmf and systemd-boot, too. It needs mtools. Writes DIRECTORY/firmware and variables, too:
#
#     qemu-system-x86_64 -M q35 -m 768 -smp 2 -drive if=pflash,unit=0,format=raw,readonly=on,file=firmware \
#         -drive if=pflash,unit=1,format=raw,file=variables -drive file=disk,format=raw,if=virtio \
#         -netdev user,id=n0,hostfwd=tcp:127.0.0.1:PORT-:22 -device virtio-net-pci,netdev=n0,romfile= \
#         -display none -serial file:console
. "$(dirname "$0")/common"
# bootctl and the libraries that it needs.
more() { # root
    local library
    cp "$packages/usr/bin/bootctl" "$1/usr/bin/"
    for library in libsystemd-shared-252 libacl libapparmor libaudit libblkid libcap libcap-ng libcrypto libgcrypt \
        libgpg-error libip4tc libkmod liblz4 liblzma libm libmount libpam libpcre2-8 libseccomp libselinux libzstd; do
        find "$packages/lib" "$packages/usr/lib" -name "$library.so*" -exec cp -L {} "$1/lib/" \;
    done
}
boot=$work/disk
kernels "$boot" vfat
mkdir -p "$boot/EFI/BOOT" "$boot/loader/entries"
cp "$packages/usr/lib/systemd/boot/efi/systemd-bootx64.efi" "$boot/EFI/BOOT/BOOTX64.EFI"
printf 'default %s.conf\ntimeout 0\n' "${releases[0]}" >"$boot/loader/loader.conf"
for release in "${releases[@]}"; do
    {
        printf 'title Linux\nversion %s\nlinux /vmlinuz-%s\n' "$release" "$release"
        printf 'initrd /initrd.img-%s\noptions console=ttyS0 quiet\n' "$release"
    } >"$boot/loader/entries/$release.conf"
done
truncate -s "$((40 + 56 * ${#kernels[@]}))M" "$work/partition"
mformat -i "$work/partition" -F ::
mcopy -i "$work/partition" -s -m "$boot"/* ::
disk "$work/partition" ef
cp "$packages/usr/share/OVMF/OVMF_CODE_4M.fd" "$place/firmware"
cp "$packages/usr/share/OVMF/OVMF_VARS_4M.fd" "$place/variables"
