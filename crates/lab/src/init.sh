#!/punctual/busybox sh
# The first process of a punctual guest: prepares the system, runs the job, hands back what came of it, powers off.
# It speaks to the lab through virtio ports or, on a board without, over a memory card; the console is for people.

export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/punctual/applets HOME=/root
set -o pipefail
box=/punctual/busybox
said=/punctual/said

# Runs a command; if it fails, keeps what it said for the lab.
try() {
    "$@" 2>$said && return
    echo "problem $*: $(tr '\n' ' ' <$said)" >>/punctual/problems
}

# What brings things back: open_way, tell, send.
. /punctual/way

$box mount -t proc proc /proc
$box --install -s /punctual/applets
try mount -t sysfs sysfs /sys
try mount -t devtmpfs devtmpfs /dev
mkdir -p /dev/pts /dev/shm
try mount -t devpts devpts /dev/pts
try mount -t tmpfs -o mode=1777 tmpfs /dev/shm
chmod 1777 /tmp
ln -s /proc/self/fd /dev/fd
ln -s /proc/self/fd/0 /dev/stdin
ln -s /proc/self/fd/1 /dev/stdout
ln -s /proc/self/fd/2 /dev/stderr

for module in /punctual/modules/*.ko; do
    [ -e "$module" ] && try insmod "$module"
done

# What a kernel does not offer is absent in the guest too, which is no problem of the lab's.
mount -t cgroup2 cgroup2 /sys/fs/cgroup 2>$said
mount -t tracefs tracefs /sys/kernel/tracing 2>$said
mount -t debugfs debugfs /sys/kernel/debug 2>$said
mount -t bpf bpf /sys/fs/bpf 2>$said
ip link set lo up 2>$said

# The host's files below, those of the job above them, and what is written on top: gone with the guest.
root=/
if [ -e /punctual/share-host ]; then
    root=/punctual/root
    mkdir -p /punctual/host /punctual/upper $root
    try mount -t 9p -o ro,trans=virtio,version=9p2000.L,cache=loose,msize=512000 host /punctual/host
    try mount -t tmpfs tmpfs /punctual/upper
    mkdir -p /punctual/upper/data /punctual/upper/work
    try mount -t overlay -o lowerdir=/punctual/payload:/punctual/host,upperdir=/punctual/upper/data,workdir=/punctual/upper/work overlay $root
    for dir in proc sys dev run; do
        mkdir -p $root/$dir
        try mount -o rbind /$dir $root/$dir
    done
fi
mkdir -p $root/results

# The boot is told in full on the console; from here on only what is urgent, so that printing does not disturb the job.
dmesg -n 4

# Here QEMU saves a guest in virtual time, at the instruction that writes to its device pvpanic (docs/specs/pvpanic.rst), and what goes on
# from there reads its job from QEMU.
if [ ! -e $root/punctual/job ]; then
    printf '\001' | dd of=/dev/port bs=1 seek=1285 conv=notrunc 2>$said
    try insmod /punctual/qemu_fw_cfg.ko
    cd / && cpio -i -d -u </sys/firmware/qemu_fw_cfg/by_name/opt/punctual/job/raw 2>$said ||
        echo "problem the job could not be read: $(tr '\n' ' ' <$said)" >>/punctual/problems
fi

open_way
tell "release $(uname -r)"
[ -e /punctual/problems ] && tell "$(cat /punctual/problems)"

tell "job-started"
# Whoever looks on can end the job as Ctrl-C does, and may wish it before there is one.
(read -r word && [ "$word" = end ] && while [ ! -s /run/job ]; do usleep 10000; done && kill -INT "$(cat /run/job)") <"$control" >$said 2>&1 3>&- &
PUNCTUAL_RESULTS=/results chroot $root /bin/sh -c 'echo $$ >/run/job; exec /bin/sh /punctual/job' </dev/null >"$out" 2>"$err" 3>&-
tell "job-ended $?"

tell "oom-kills $(sed -n 's/^oom_kill //p' /proc/vmstat)"
if cd $root/results && find . -type f -print0 | cpio -0 -o -H newc 2>$said | send; then
    tell "complete"
else
    tell "problem the results could not be sent: $(tr '\n' ' ' <$said)"
fi
sync
poweroff -f
sleep 1000000
