#!/usr/bin/env bash
# A real GRUB boots what `punctual tune --across-reboots` writes for it: once the entry with the parameters, whose
# kernel panics, then by itself the usual one. Prints the command lines of the two boots; fails if they are others.
#
#     bench/reboots/grub.sh KERNEL [DIRECTORY OF i386-pc] [STATIC BUSYBOX]
#
# KERNEL is a bzImage. It needs grub-mkimage and i386-pc (Debian: grub-common, grub-pc-bin), busybox-static, e2fsprogs,
# python3, cargo and qemu-system-x86_64. Nothing is installed, and no disk but a file is written.
set -euo pipefail
kernel=$(realpath "$1") modules=$(realpath "${2:-/usr/lib/grub/i386-pc}") busybox=$(realpath "${3:-/bin/busybox}")
cd "$(dirname "$0")/../.."
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
uuid=12345678-1234-1234-1234-123456789abc
grub=$place/disk/boot/grub
mkdir -p "$grub"
PUNCTUAL_TREE=$grub cargo test -q -p punctual-study --lib files_of_a_boot_for_grub -- --ignored >/dev/null
[ -s "$grub/custom.cfg" ] && [ -s "$grub/grubenv" ]
# The kernel and the disk of the tree in tests_of_files.rs.
sed -i "s/11-22/$uuid/" "$grub/custom.cfg"
cp "$kernel" "$place/disk/boot/vmlinuz-6.1.0-56-amd64"

# As grub-mkconfig's 00_header and 41_custom have it.
cat >"$grub/grub.cfg" <<CFG
if [ -s \$prefix/grubenv ]; then
  load_env
fi
if [ "\${next_entry}" ] ; then
   set default="\${next_entry}"
   set next_entry=
   save_env next_entry
   set boot_once=true
else
   set default="0"
fi
set timeout=0
menuentry 'usual' {
	search --no-floppy --fs-uuid --set=root $uuid
	linux	/boot/vmlinuz-6.1.0-56-amd64 root=UUID=$uuid ro quiet
	initrd	/boot/initrd.img-6.1.0-56-amd64
}
set config_directory=\$prefix
if [ -f  \${config_directory}/custom.cfg ]; then
  source \${config_directory}/custom.cfg
fi
CFG

# An initramfs that says its command line, and panics where it is of a tuning.
python3 - "$busybox" >"$place/disk/boot/initrd.img-6.1.0-56-amd64" <<'PY'
import sys
def entry(name, data, mode, device=(0, 0)):
    name = name.encode() + b"\0"
    entry.inode += 1
    fields = [entry.inode, mode, 0, 0, 1, 0, len(data), 0, 0, *device, len(name), 0]
    head = b"070701" + b"".join(b"%08x" % field for field in fields) + name
    return head + b"\0" * (-len(head) % 4) + data + b"\0" * (-len(data) % 4)
entry.inode = 0
init = b"""#!/bin/busybox sh
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t devtmpfs dev /dev
line=$(/bin/busybox cat /proc/cmdline)
echo "BOOTED $line" >/dev/ttyS0
case $line in *punctual.tune=*) echo c >/proc/sysrq-trigger ;; esac
/bin/busybox poweroff -f
"""
out = b"".join(entry(name, b"", 0o40755) for name in ["bin", "proc", "dev"])
out += entry("dev/console", b"", 0o20600, (5, 1))
out += entry("bin/busybox", open(sys.argv[1], "rb").read(), 0o100755)
sys.stdout.buffer.write(out + entry("init", init, 0o100755) + entry("TRAILER!!!", b"", 0))
PY

# One partition with ext4, and GRUB's core between it and the boot sector, whose block list begins at sector 1.
truncate -s 60M "$place/partition"
mkfs.ext4 -q -U $uuid -d "$place/disk" "$place/partition"
"${GRUB_MKIMAGE:-grub-mkimage}" -O i386-pc -d "$modules" -o "$place/core.img" -p '(hd0,msdos1)/boot/grub' \
    biosdisk part_msdos ext2 normal linux search search_fs_uuid loadenv echo test configfile
python3 - "$place" "$modules/boot.img" <<'PY'
import struct, sys
place = sys.argv[1]
core, partition = (open(f"{place}/{name}", "rb").read() for name in ["core.img", "partition"])
assert len(core) < 2047 * 512
entry = struct.pack("<B3sB3sII", 0x80, b"", 0x83, b"", 2048, len(partition) // 512)
first = open(sys.argv[2], "rb").read()[:440].ljust(446, b"\0") + entry
first = first.ljust(510, b"\0") + b"\x55\xaa"
open(f"{place}/image", "wb").write((first + core).ljust(2048 * 512, b"\0") + partition)
PY

timeout 300 qemu-system-x86_64 -m 512 -display none -serial "file:$place/console" \
    -drive "file=$place/image,format=raw" </dev/null
booted=$(tr -d '\r' <"$place/console" | grep -a '^BOOTED ')
echo "$booted"
[ "$(wc -l <<<"$booted")" -eq 2 ]
head -n 1 <<<"$booted" | grep -q ' quiet panic=10 punctual.tune=1 threadirqs$'
tail -n 1 <<<"$booted" | grep -q ' quiet$'
# GRUB has cleared it.
! grep -qa 'next_entry=punctual-once' "$place/image"
echo "the entry booted once, and the usual one after the panic"
