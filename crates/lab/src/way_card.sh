# The way back over a memory card, for a board without virtio. Read by the init. In blocks of 64 KiB: the first holds the
# lines that are told, the second a table of what comes after (name, first block, length, SHA-256), written last.

card=/dev/mmcblk0
place=2
heard=/punctual/heard

open_way() {
    tries=0
    while [ ! -b $card ]; do
        if [ $tries -ge 200 ]; then
            echo "punctual: the board has no memory card at $card" >/dev/console
            poweroff -f
        fi
        tries=$((tries + 1))
        usleep 50000
    done
    out=/punctual/stdout
    err=/punctual/stderr
    control=/dev/console
    # QEMU's mini UART has no divisor latch (hw/char/bcm2835_aux.c: "DLAB bit set means access baudrate register" is not implemented), so
    # what the driver means for the divisor's high byte, a zero, switches the receiver's interrupt off when the line is opened. Whatever is
    # written to the line has the driver set it anew; without, no word ever comes in.
    echo "punctual: listening" >$control
}

tell() {
    echo "$1" >>/punctual/status
    dd if=/punctual/status of=$card bs=64k count=1 conv=fsync 2>$heard
}

# Standard input onto the card under a name. The archive is never in memory: there its files are already.
put() {
    mkfifo /punctual/summed /punctual/counted
    sha256sum </punctual/summed >/punctual/sum &
    summing=$!
    wc -c </punctual/counted >/punctual/length &
    counting=$!
    tee /punctual/summed /punctual/counted | dd of=$card bs=64k seek=$place conv=fsync 2>$heard
    sent=$?
    wait $summing $counting
    rm /punctual/summed /punctual/counted
    length=$(cat /punctual/length)
    echo "$1 $place $length $(cut -d ' ' -f 1 /punctual/sum)" >>/punctual/table
    place=$((place + (length + 65535) / 65536))
    return $sent
}

# The archive from standard input, then the job's outputs.
send() {
    put results && put stdout <$out && put stderr <$err &&
        dd if=/punctual/table of=$card bs=64k seek=1 count=1 conv=fsync 2>$heard && return
    cat $heard >>$said
    return 1
}
