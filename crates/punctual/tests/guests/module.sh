# Every way of the module, then without it.
mount -t debugfs debugfs /sys/kernel/debug 2>/dev/null
ways="mechanisms=['syscall', 'procfs', 'device', 'module-device', 'module-ioctl', 'module-procfs', 'module-debugfs']"
measure() {
    /usr/bin/punctual measure testpoint-cost --quiet --json --count 1000 -s "$ways" -o "/tmp/$1" >"/results/$1" 2>"/results/said-$1"
    echo $? >"/results/status-$1"
}
insmod /punctual_point.ko || echo "insmod failed" >/results/insmod
cat /dev/punctual-point >/dev/null
measure with
# What the buffer holds is whole records, the newest 16,384.
cat /dev/punctual-point | wc -c >/results/drained
cat /dev/punctual-point | wc -c >/results/drained-again
rmmod punctual_point
measure without
grep -cE " (sys_call_table)$" /proc/kallsyms >/results/table
grep -cE " __ksymtab_sys_call_table$" /proc/kallsyms >/results/exported
grep -cE " x64_sys_call$" /proc/kallsyms >/results/switch
