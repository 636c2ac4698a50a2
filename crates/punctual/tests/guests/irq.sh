# Interrupts of QEMU's edu device, and those that every machine has, on the kernel of this guest.
status=0

refused() {
    punctual measure irq --quiet --count 10 --set source=edu --output /unbound >/results/unbound 2>&1
    echo $? >/results/unbound-status
}

measured() {
    name=$1
    shift
    cat /proc/interrupts >/results/before-"$name"
    punctual measure irq --quiet --json --count 200 --set period=2ms --output /"$name" "$@" >/results/"$name" 2>/results/said-"$name" || {
        status=1
        cat /results/said-"$name" >&2
    }
    cat /proc/interrupts >/results/after-"$name"
}

refused
echo 1234 11e8 >/sys/bus/pci/drivers/uio_pci_generic/new_id
measured edu --set source=edu
measured parport --set source=parport
measured timer --set source=timer
measured self-ipi --set source=self-ipi
measured membarrier --set source=membarrier
punctual run --quiet --json /p2.toml --output /p2 >/results/p2 2>/results/said-p2 || status=1
# Killed in the middle, it leaves nothing that stands in the way of the next.
punctual measure irq --quiet --set source=edu --duration 1h --output /killed >/dev/null 2>&1 &
sleep 2
kill -9 $!
wait $! 2>/dev/null
measured again --set source=edu
# Somebody else raises it, and acknowledges it some time later.
base=$(sed -n '1s/ .*//p' /sys/bus/pci/devices/*/uio/uio0/device/resource)
raise() {
    while :; do
        devmem $((base + 0x60)) 32 1
        usleep 2000
        devmem $((base + 0x64)) 32 1
        usleep 10000
    done
}
raise &
raiser=$!
measured uio --set source=uio --set device=/dev/uio0
kill $raiser
exit $status
