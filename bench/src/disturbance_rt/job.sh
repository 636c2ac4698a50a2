# Runs in the guest. Before these lines stand the words that start each program (punctual, rtla, cyclictest, stress), the measured seconds
# ($seconds) and the period of what is measured ($period, in microseconds); after them, what to run in which order.
tracing=/sys/kernel/tracing
# What the flight recorder keeps for a timer (docs/reference/recorder.md, docs/reference/explain.md).
events="sched/sched_switch sched/sched_wakeup sched/sched_wakeup_new sched/sched_migrate_task sched/sched_process_fork
    sched/sched_process_exec sched/sched_process_exit sched/sched_pi_setprio irq/irq_handler_entry irq/irq_handler_exit irq_vectors
    irq/softirq_entry irq/softirq_exit ipi/ipi_send_cpu timer/hrtimer_expire_entry
    exceptions/page_fault_user exceptions/page_fault_kernel power/cpu_idle"

# The trace buffers that `cyclictest --breaktrace` keeps until it breaks, with those events, overwriting.
buffers_on() {
    mkdir $tracing/instances/bench
    echo 4096 >$tracing/instances/bench/buffer_size_kb
    for event in $events; do echo 1 >$tracing/instances/bench/events/$event/enable; done
}
buffers_off() {
    [ -d $tracing/instances/bench ] || return 0
    echo 0 >$tracing/instances/bench/events/enable
    grep entries $tracing/instances/bench/per_cpu/cpu0/stats >"$1.buffers"
    rmdir $tracing/instances/bench
}

# What each tool does: tool_KIND WHERE PRIORITY PERIOD SECONDS.
experiment() { # where priority period seconds explain
    printf '[experiment]\nname = "bench"\ncalibrate = false\n%b[[measure]]\nname = "timer"\nkind = "timer"\ncpus = "0"\nperiod = "%sus"\npolicy = "fifo"\npriority = %s\nduration = "%ss"\n' \
        "$5" "$3" "$2" "$4" >"$1.toml"
    $punctual run --quiet "$1.toml" --output "$1.bundle" >"$1.said" 2>&1
    cp "$1.bundle/summary.json" "$1.json"
    rm -rf "$1.bundle" "$1.toml"
}
tool_punctual() { experiment "$@" ''; }
tool_flight() { experiment "$@" '[explain]\naccount = false\n'; }
tool_account() { experiment "$@" '[explain]\nworst = 0\n'; }
tool_both() { experiment "$@" '[explain]\n'; }
tool_cyclictest() {
    $cyclictest -m -q -N -t 1 -a 0 -h 400000 -p "$2" -i "$3" -D "$4" --json="$1.json" $5 $6 >/dev/null 2>"$1.said"
}
tool_breaktrace() {
    buffers_on
    # It never breaks: what is kept until then is what costs.
    tool_cyclictest "$@" -b 100000000
    buffers_off "$1"
}
timerlat() { # where priority period seconds options
    where=$1 priority=$2 every=$3 lasting=$4
    shift 4
    $rtla timerlat hist -c 0 -P "f:$priority" -p "$every" -d "${lasting}s" -n -b 8 -E 50000 "$@" >"$where.rtla" 2>"$where.said"
}
tool_rtla() { timerlat "$@" --no-aa; }
# They stop at 900 ms, which never come: what is kept until then is what costs.
tool_rtla_analysis() { timerlat "$@" -T 900000; }
tool_rtla_auto() { timerlat "$@" -a 900000; }

# Waits until a thread of that priority has slept and been woken for a while: all is set up then.
sampling() { # priority
    for try in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30; do
        sleep 1
        for task in /proc/[0-9]*/task/[0-9]*; do
            read -r line <"$task/stat" 2>/dev/null || continue
            set -- "$1" ${line##*) }
            [ "${39}" = "$1" ] || continue
            switches=$(sed -n 's/^voluntary_ctxt_switches:[^0-9]*//p' "$task/status" 2>/dev/null)
            [ "${switches:-0}" -ge 500 ] && return
        done
    done
    echo "no thread of priority $1 is sampling" >&2
    return 1
}

# What a tool says of its own samples.
own() { # load tool
    mkdir -p "/results/$1/own"
    "tool_$2" "/results/$1/own/$2" 80 "$period" "$seconds"
    sleep 0.3
}

# What an independent thread of higher priority says while the tool is at work on the same CPU, with a thread of its own each millisecond.
beside() { # load tool
    mkdir -p "/results/$1/beside" "/run/tool"
    if [ "$2" != nobody ]; then
        "tool_$2" "/results/$1/beside/$2-itself" 70 1000 $((seconds + 60)) &
        if sampling 70; then
            tool_cyclictest "/results/$1/beside/$2" 80 "$period" "$seconds"
        fi
        # The tool is the only child of the shell that waits for it.
        for task in /proc/[0-9]*; do
            read -r line <"$task/stat" 2>/dev/null || continue
            set -- "$1" "$2" ${line##*) }
            [ "$4" = "$!" ] && kill -INT "${task#/proc/}"
        done
        wait $!
    else
        tool_cyclictest "/results/$1/beside/nobody" 80 "$period" "$seconds"
    fi
    sleep 0.3
}
