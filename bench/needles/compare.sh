#!/bin/sh
# compare.sh DIR [TRIALS]: the search against random inputs with as many trials: in which trial each
# of the five needles was met first (docs/notes/hunts.md). It goes on where it was interrupted.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
dir=${1:?usage: compare.sh DIR [TRIALS]}
trials=${2:-64}

mkdir -p "$dir"
gcc -O2 -o "$dir/poke" "$here/poke.c"
PATH=$(cd "$dir" && pwd):$PATH
for strategy in search random; do
    sed -e "s#^drivers = .*#drivers = [\"$here/needles.c\"]#" \
        -e "s#^trials = .*#trials = $trials\nstrategy = \"$strategy\"#" "$here/hunt.toml" \
        >"$dir/$strategy.toml"
    punctual hunt "$dir/$strategy.toml" --budget 100h -o "$dir/$strategy" >"$dir/$strategy.txt"
done

# A section of the needle's function, or with it among the functions that took most of it; the
# storm, which is only interrupts, as part of a worst sample.
met='def met($n): any(.irqs_disabled[], .preemption_disabled[], .not_preempted[];
        .longest >= 2000 and (.function == $n or any(.functions[]?; .[0] == $n))) or
    ($n == "needle_storm" and any(.worst[].functions[]; .name == $n and .total >= 2000));
    met($needle)'
first() { # search needle
    jq -r '.trials[] | select(.bundle) | "\(.number) \(.bundle)"' "$dir/$1/hunt.json" |
        while read -r number bundle; do
            if jq -e --arg needle "$2" "$met" "$dir/$1/$bundle/exact.json" >/dev/null; then
                echo "$number"
                return
            fi
        done
}
for strategy in search random; do
    echo "$strategy: $(jq '.trials | length' "$dir/$strategy/hunt.json") trials"
done
echo "| needle | search | random |"
echo "|---|---|---|"
for needle in needle_ioctl needle_write needle_walk needle_lock needle_storm; do
    search=$(first search $needle) random=$(first random $needle)
    echo "| $needle | ${search:-not met} | ${random:-not met} |"
done
