# CPU 1 is disturbed from CPU 0, and who does it is measured meanwhile.
/punctual/busybox ip link set lo up || exit 2
/usr/bin/disturb all 1 0 3 >/tmp/begun 2>/results/disturb-errors & disturb=$!
for i in $(seq 200); do
    grep -q begun /tmp/begun && break
    sleep 0.1
done
grep -q begun /tmp/begun || exit 3
# On a busy host a CPU takes seconds to be unplugged: the measurement lasts for several times that.
until_unplugged() {
    for i in $(seq 600); do
        [ "$(grep -c unplugged /tmp/begun)" -ge "$1" ] && break
        sleep 0.1
    done
    cut -d . -f 1 /proc/uptime
}
began=$(until_unplugged 1)
took=$(($(until_unplugged 2) - began))
punctual attach --cpus 1 --duration $((4 + 3 * took))s --quiet --output /tmp/disturbed >/results/shown 2>&1 ||
    # Of a busy host the guest's controller waits, which makes the run invalid, not its entries.
    { [ $? = 4 ] && grep -q "controller of" /results/shown; } || exit 4
punctual show --json /tmp/disturbed >/results/disturbed || exit 5
kill $disturb
true
