# SCHED_DEADLINE's releases as a program and the kernel's events see them.
tracing=/sys/kernel/tracing
echo mono >$tracing/trace_clock
echo 16384 >$tracing/buffer_size_kb
echo 'next_prio < 0 || prev_prio < 0' >$tracing/events/sched/sched_switch/filter

traced() {
    name=$1
    shift
    # What a thread had of the CPU that ended before is given back at its zero-lag time.
    sleep 1
    echo >$tracing/trace
    echo 1 >$tracing/events/sched/sched_switch/enable
    echo 1 >$tracing/events/timer/hrtimer_start/enable
    "$@" >/results/"$name" 2>/results/said-"$name" || echo "$?" >/results/failed-"$name"
    echo 0 >$tracing/events/enable
    grep -E 'function=dl_task_timer|sched_switch' $tracing/trace >/results/trace-"$name"
}

measured() {
    traced punctual-"$1" punctual measure timer --quiet --json --duration 1s --output /punctual-"$1" \
        --set method=deadline --set policy=deadline --set period=1ms --set runtime=600us
}

# Idle, and loaded where there is a load.
both() {
    measured idle
    [ -x /usr/bin/stress-ng ] || return 0
    /usr/bin/stress-ng --fork 1 --vm 1 --vm-bytes 16M --quiet &
    sleep 1
    measured loaded
    kill $!
}
both
