#!/usr/bin/env bash
# A board that boots for itself: GRUB (BIOS) with grub-mkconfig's configuration, and Debian's kernels, on ext4.
#
#     bench/boards/grub.sh DIRECTORY KEY PACKAGES KERNEL...      # arguments: see common
#
# PACKAGES has grub-pc-bin, too. It needs grub-mkimage (grub-common) and mkfs.ext4.
#
#     qemu-system-x86_64 -m 768 -smp 2 -drive file=disk,format=raw,if=virtio \
#         -netdev user,id=n0,hostfwd=tcp:127.0.0.1:PORT-:22 -device virtio-net-pci,netdev=n0,romfile= \
#         -display none -serial file:console
. "$(dirname "$0")/common"
disk=$work/disk
kernels "$disk" ext4
mkdir "$disk/grub"
{
    echo '# GRUB Environment Block'
    head -c 999 /dev/zero | tr '\0' '#'
} >"$disk/grub/grubenv"
# As grub-mkconfig's 00_header, 10_linux and 41_custom have it.
{
    cat <<'CFG'
serial --unit=0
terminal_output serial
if [ -s $prefix/grubenv ]; then
  load_env
fi
if [ "${next_entry}" ] ; then
   set default="${next_entry}"
   set next_entry=
   save_env next_entry
   set boot_once=true
else
   set default="0"
fi
set timeout=0
CFG
    for release in "${releases[@]}"; do
        printf "menuentry 'Linux %s' {\n\tlinux\t/vmlinuz-%s console=ttyS0 quiet\n" "$release" "$release"
        printf '\tinitrd\t/initrd.img-%s\n}\n' "$release"
    done
    cat <<'CFG'
set config_directory=$prefix
if [ -f  ${config_directory}/custom.cfg ]; then
  source ${config_directory}/custom.cfg
fi
CFG
} >"$disk/grub/grub.cfg"
truncate -s "$((20 + 32 * ${#kernels[@]}))M" "$work/partition"
PATH=$PATH:/usr/sbin mkfs.ext4 -q -d "$disk" "$work/partition"
modules=$packages/usr/lib/grub/i386-pc
grub-mkimage -O i386-pc -d "$modules" -o "$work/core.img" -p '(hd0,msdos1)/grub' \
    biosdisk part_msdos ext2 normal linux search loadenv echo test configfile serial terminal
disk "$work/partition" 83 "$modules/boot.img" "$work/core.img"
