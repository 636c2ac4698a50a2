#!/bin/sh
# compare.sh ROUNDS FILE...: how fast traces are read, beside the tool that each belongs to: `perf
# script`, `trace-cmd report` or babeltrace2. Both print nothing to a terminal, by turns, and the
# median of each is printed, with how many events were counted. `count` reads, decodes and orders
# all events; the tools also print each, which is what one waits for where they are the reader.
#
#     cargo build --release -p punctual-traces --example count
#     bench/reading/compare.sh 5 perf.data trace.dat kernel/
set -eu

rounds=${1:?usage: compare.sh ROUNDS FILE...}
shift
here=$(dirname "$0")
count=${COUNT:-$here/../../target/release/examples/count}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# now: nanoseconds
now() { date +%s%N; }

# theirs FILE: the events as their own tool prints them
theirs() {
    if [ -d "$1" ]; then
        babeltrace2 "$1"
    elif [ "$(head -c 8 "$1")" = PERFILE2 ]; then
        perf script -i "$1"
    else
        trace-cmd report -i "$1"
    fi
}

name_of() {
    if [ -d "$1" ]; then
        echo babeltrace2
    elif [ "$(head -c 8 "$1")" = PERFILE2 ]; then
        echo perf script
    else
        echo trace-cmd report
    fi
}

median() { sort -n "$1" | awk '{ all[NR] = $1 } END { print all[int((NR + 1) / 2)] }'; }

echo "| file | bytes | events | punctual, ms | events a second | tool | events | ms | events a second |"
echo "|---|---|---|---|---|---|---|---|---|"
for file; do
    : >"$scratch/ours"
    : >"$scratch/theirs"
    for round in $(seq "$rounds"); do
        # Who is first changes from round to round.
        turns="ours theirs"
        [ $((round % 2)) -eq 0 ] && turns="theirs ours"
        for turn in $turns; do
            began=$(now)
            case $turn in
            ours) "$count" "$file" >"$scratch/count" ;;
            theirs) theirs "$file" >"$scratch/printed" 2>"$scratch/errors" ;;
            esac
            ended=$(now)
            echo $((ended - began)) >>"$scratch/$turn"
        done
    done
    # Every tracepoint, used or not: the tool prints all of them.
    ours=$(awk '/^  [a-z_0-9:]+ [0-9]+ [0-9]+$/ { sum += $2 } END { print sum + 0 }' "$scratch/count")
    theirs=$(grep -c '[a-z_0-9]: ' "$scratch/printed" || true)
    bytes=$(du -sb "$file" | cut -f1)
    awk -v file="$(basename "$file")" -v bytes="$bytes" -v ours="$ours" -v theirs="$theirs" \
        -v a="$(median "$scratch/ours")" -v b="$(median "$scratch/theirs")" \
        -v tool="$(name_of "$file")" 'BEGIN {
        printf "| %s | %d | %d | %.1f | %.0f | %s | %d | %.1f | %.0f |\n", file, bytes, ours,
            a / 1e6, ours / a * 1e9, tool, theirs, b / 1e6, theirs / b * 1e9 }'
done
