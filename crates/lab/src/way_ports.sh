# The way back through virtio ports: what is told goes there at once. Read by the init.

# The device of the port with this name (drivers/char/virtio_console.c: the attribute `name`). Ports come one by one, after
# messages between driver and device that QEMU 10 answers later than QEMU 7.2: up to ten seconds are waited.
port() {
    tries=0
    while [ $tries -lt 200 ]; do
        for dir in /sys/class/virtio-ports/*; do
            if [ -e "$dir/name" ] && [ "$(cat "$dir/name")" = "punctual.$1" ]; then
                echo "/dev/${dir##*/}"
                return
            fi
        done
        tries=$((tries + 1))
        usleep 50000
    done
    echo "punctual: the guest has no port punctual.$1" >/dev/console
    poweroff -f
}

open_way() {
    exec 3>"$(port status)"
    out=$(port stdout)
    err=$(port stderr)
    results=$(port results)
    control=$(port control)
}

tell() {
    echo "$1" >&3
}

# The archive from standard input; the job's outputs went while it ran.
send() {
    cat >"$results"
}
