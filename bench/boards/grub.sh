#!/usr/bin/env bash
# A board that boots for itself: a disk with GRUB (BIOS), Debian's kernel for the cloud, busybox, sshd, and its root
# file system in memory. What boots is decided by /boot alone, an ext4 file system that a GRUB reads and writes.
#
#     bench/boards/grub.sh DIRECTORY KEY
#
# Writes DIRECTORY/disk (for `qemu-system-x86_64 -drive file=disk,format=raw,if=virtio` with a virtio network card) and
# DIRECTORY/host.pub. KEY is the public key of who may log in as root.
# Packages are fetched by apt-get into CACHE (default: ~/.cache/punctual-boards); nothing is installed. It needs
# openssh-server, e2fsprogs, python3 and the libraries of GRUB's tools (Debian: grub-common).
set -euo pipefail
mkdir -p "$1"
place=$(realpath "$1") key=$(realpath "$2")
cache=${CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/punctual-boards}
mkdir -p "$cache"

# The newest kernel of the series that apt knows.
series=${SERIES:-6.1}
image=$(apt-cache search --names-only "^linux-image-$series[0-9.+a-z-]*-[0-9]+-cloud-amd64\$" | sort -V | tail -n 1)
image=${image%% *} release=${image#linux-image-}
for package in "$image" grub-common grub-pc-bin busybox-static; do
    version=$(apt-cache policy "$package" | sed -n 's/^  Candidate: //p')
    # A directory is whole when it has its name.
    [ -d "$cache/$package=$version" ] && { declare "at_${package//[^a-z0-9]/_}=$cache/$package=$version"; continue; }
    part=$(mktemp -d "$cache/.part-XXXXXX")
    (cd "$part" && apt-get -q download "$package=$version" >/dev/null 2>&1 && dpkg -x ./*.deb . && rm ./*.deb)
    mv -T "$part" "$cache/$package=$version" 2>/dev/null || rm -rf "$part"
    declare "at_${package//[^a-z0-9]/_}=$cache/$package=$version"
done
kernel_at=at_${image//[^a-z0-9]/_}
kernel=${!kernel_at} busybox=$at_busybox_static/bin/busybox modules=$at_grub_pc_bin/usr/lib/grub/i386-pc
mkimage=$(command -v grub-mkimage || echo "$at_grub_common/usr/bin/grub-mkimage")

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root
mkdir -p "$root"/{bin,boot,dev,etc/ssh,proc,root/.ssh,run/sshd,sys,tmp,usr/bin,usr/sbin,var/log,var/empty,lib/modules}
chmod 700 "$root/root" "$root/root/.ssh"
cp "$busybox" "$root/bin/busybox"
cp /usr/sbin/sshd "$root/usr/sbin/sshd"
ldd /usr/sbin/sshd | grep -o '/[^ )]*' | sort -u | while read -r library; do
    mkdir -p "$root$(dirname "$library")"
    cp -L "$library" "$root$library"
done
ssh-keygen -q -t ed25519 -N '' -f "$root/etc/ssh/host"
cp "$root/etc/ssh/host.pub" "$place/host.pub"
install -m 600 "$key" "$root/root/.ssh/authorized_keys"
printf 'root:x:0:0:root:/root:/bin/sh\nsshd:x:100:65534::/run/sshd:/bin/false\n' >"$root/etc/passwd"
printf 'root:x:0:\nnogroup:x:65534:\n' >"$root/etc/group"
cat >"$root/etc/ssh/sshd_config" <<'CONF'
HostKey /etc/ssh/host
UsePAM no
PidFile none
StrictModes no
MaxStartups 100
CONF
number=10
for module in virtio_ring virtio virtio_pci_modern_dev virtio_pci_legacy_dev virtio_pci virtio_blk failover \
    net_failover virtio_net; do
    find "$kernel/lib/modules" -name "$module.ko" -exec cp {} "$root/lib/modules/$number-$module.ko" \;
    number=$((number + 1))
done
cat >"$root/init" <<'INIT'
#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/usr/sbin:/usr/bin:/bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mkdir -p /dev/pts /dev/shm
mount -t devpts devpts /dev/pts
mount -t tmpfs tmpfs /dev/shm
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mount -t tracefs tracefs /sys/kernel/tracing
for module in /lib/modules/*.ko; do insmod "$module"; done
mount -t ext4 /dev/vda1 /boot
ip link set lo up
ip link set eth0 up
ip addr add 10.0.2.15/24 dev eth0
ip route add default via 10.0.2.2
dmesg -n 3
echo "READY $(cat /proc/cmdline)" >/dev/console
/usr/sbin/sshd -f /etc/ssh/sshd_config
# What busybox's reboot asks of the first process.
trap 'sync; umount /boot; /bin/busybox reboot -f' TERM
while :; do sleep 1000 & wait $!; done
INIT
chmod 755 "$root/init"

disk=$work/disk
mkdir -p "$disk/grub"
cp "$kernel/boot/vmlinuz-$release" "$disk/"
(cd "$root" && find . | "$busybox" cpio -o -H newc 2>/dev/null) >"$disk/initrd.img-$release"
printf '# GRUB Environment Block\n' >"$disk/grub/grubenv"
head -c 999 /dev/zero | tr '\0' '#' >>"$disk/grub/grubenv"
# As grub-mkconfig's 00_header, 10_linux and 41_custom have it.
cat >"$disk/grub/grub.cfg" <<CFG
serial --unit=0
terminal_output serial
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
menuentry 'Linux' {
	linux	/vmlinuz-$release console=ttyS0 quiet
	initrd	/initrd.img-$release
}
menuentry 'Linux that cannot start a program' {
	linux	/vmlinuz-$release console=ttyS0 quiet rdinit=/nowhere init=/nowhere
	initrd	/initrd.img-$release
}
set config_directory=\$prefix
if [ -f  \${config_directory}/custom.cfg ]; then
  source \${config_directory}/custom.cfg
fi
CFG
truncate -s 100M "$work/partition"
PATH=$PATH:/usr/sbin mkfs.ext4 -q -d "$disk" "$work/partition"
"$mkimage" -O i386-pc -d "$modules" -o "$work/core.img" -p '(hd0,msdos1)/grub' \
    biosdisk part_msdos ext2 normal linux search loadenv echo test configfile serial terminal
python3 - "$work" "$modules/boot.img" "$place/disk" <<'PY'
import struct, sys
work = sys.argv[1]
core = open(f"{work}/core.img", "rb").read()
partition = open(f"{work}/partition", "rb").read()
assert len(core) < 2047 * 512
entry = struct.pack("<B3sB3sII", 0x80, b"", 0x83, b"", 2048, len(partition) // 512)
first = open(sys.argv[2], "rb").read()[:440].ljust(446, b"\0") + entry
first = first.ljust(510, b"\0") + b"\x55\xaa"
with open(sys.argv[3], "wb") as out:
    out.write((first + core).ljust(2048 * 512, b"\0") + partition)
PY
echo "$release" >"$place/release"
