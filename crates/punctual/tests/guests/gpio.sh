# A loop of two GPIO lines, simulated by the kernel; the wire between them is a process that carries each change over (built-in commands alone: it
# must be faster than the period).
mount -t configfs configfs /sys/kernel/config
bank=/sys/kernel/config/gpio-sim/punctual/bank0
mkdir -p $bank && echo 8 >$bank/num_lines && echo 1 >${bank%/*}/live || exit 3
chip=$(cat $bank/chip_name)
lines=/sys/devices/platform/$(cat ${bank%/*}/dev_name)/$chip

wire() {
    last=
    while :; do
        read -r level <"$lines/sim_gpio1/value"
        if [ "$level" != "$last" ]; then
            last=$level
            if [ "$level" = 1 ]; then echo pull-up; else echo pull-down; fi >"$lines/sim_gpio2/pull"
        fi
    done
}

measured() {
    name=$1
    shift
    punctual measure irq --quiet --json --count 10 --set source=gpio --set period=200ms --set device="/dev/$chip" --output /"$name" "$@" \
        >/results/"$name" 2>/results/said-"$name"
    echo $? >/results/status-"$name"
}

# Nothing connects them yet.
measured unwired --set out_line=1 --set in_line=2
measured beyond --set out_line=1 --set in_line=8
wire &
measured gpio --set out_line=1 --set in_line=2
kill $!
# Zephyr's latmon in its stead, played by a program: it raises line 2 and times when line 1 falls.
/latmon "$lines" >/results/latmon 2>&1 &
sleep 1
measured witness --set out_line=1 --set in_line=2 --set witness=127.0.0.1
measured no-witness --set out_line=1 --set in_line=2 --set witness=127.0.0.1:9
