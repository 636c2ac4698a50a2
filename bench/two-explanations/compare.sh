#!/bin/sh
# compare.sh DIR [KERNEL...]: explains the same worst samples twice, by kernel events in the guest
# (run --explain) and by instructions from outside (--exact), and compares part by part
# (docs/notes/exact.md). What is in DIR already is not run again.
set -eu

here=$(dirname "$0")
dir=${1:?usage: compare.sh DIR [KERNEL...]}
shift
[ $# -gt 0 ] || set -- 6.1 6.12 6.12-rt

mkdir -p "$dir"
for kernel; do
    bundle=$dir/$kernel
    [ -e "$bundle/exact.json" ] ||
        punctual run "$here/timer.toml" --target "vm:$kernel" --explain --exact --quiet \
            -o "$bundle" >"$bundle.txt"
    punctual explain "$bundle" --json >"$bundle.json"
    echo "| $kernel | samples | exact, µs | in the guest, µs | mean difference | largest |"
    echo "|---|---|---|---|---|---|"
    jq -nr --slurpfile guest "$bundle.json" --slurpfile exact "$bundle/exact.json" '
        def parts(causes; kinds): {causes: causes, kinds: kinds};
        def sum_of(name; wanted; value): [.parts[] | select(name as $n | wanted | index($n))
            | value] | add // 0;
        def abs: if . < 0 then -. else . end;
        def micros: . / 10 | round | . / 100;
        $exact[0].ns_per_instruction as $ns
        | [["timer", "irqs-disabled"], ["timer-irq-delay"]] as $before
        | [["interrupt"], ["irq", "softirq", "wakeup"]] as $interrupt
        | [["not-preempted", "schedule"], ["non-preemptible", "preempted", "runqueue"]] as $waits
        | [["return"], ["self"]] as $returns
        | [["interrupt", "not-preempted", "schedule"],
           ["irq", "softirq", "wakeup", "non-preemptible", "preempted", "runqueue"]] as $both
        | {"before the interrupt": $before, "interrupt": $interrupt, "not preempted": $waits,
           "both of these": $both, "return": $returns, "not attributed": [[], ["unknown"]]}
        | to_entries[] as $row
        | [$guest[0].samples[] as $sample | $exact[0].worst[]
           | select(.due == $sample.at and .latency_ns == $sample.latency_ns)
           | {exact: (sum_of(.kind; $row.value[0]; .instructions) * $ns),
              guest: ($sample | sum_of(.cause; $row.value[1]; .ns))}]
        | (map(.guest - .exact | abs)) as $differences
        | "| \($row.key) | \(length) | \(map(.exact) | add | micros) | " +
          "\(map(.guest) | add | micros) | \($differences | add / length | micros) | " +
          "\($differences | max | micros) |"'
    echo
done
