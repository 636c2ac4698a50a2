#!/bin/sh
# digests.sh DIR [SEEDS]: runs 100 seeds of digests.toml in virtual time, without and with
# instruction tracing, and counts equal digests (docs/notes/exact.md). It goes on where it stopped.
set -eu

here=$(dirname "$0")
dir=${1:?usage: digests.sh DIR [SEEDS]}
seeds=${2:-1..100}

mkdir -p "$dir"
punctual lab run "$here/digests.toml" --seeds "$seeds" -o "$dir/plain" >"$dir/plain.txt"
punctual lab run "$here/digests.toml" --seeds "$seeds" --exact -o "$dir/exact" >"$dir/exact.txt"
for lab in plain exact; do
    jq -r '.cells[].seeds[] | "\(.seed) \(.runs[0].digest)"' "$dir/$lab/lab.json" |
        sort >"$dir/$lab.digests"
done
join -a 1 -a 2 -e none -o 0,1.2,2.2 "$dir/plain.digests" "$dir/exact.digests" | awk '
    $2 == $3 && $2 != "null" { equal++; next }
    { unequal++; print "seed " $1 ": " $2 " without, " $3 " with" }
    END { printf "%d seeds equal, %d not, %d runs\n", equal, unequal, 2 * (equal + unequal)
          exit unequal > 0 }'
