#!/bin/sh
# cells.sh DIR [KERNEL...]: runs cells.toml on these kernels with every instruction traced, and
# prints a table of what the 20 worst samples of each cell waited for (docs/exact.md). It goes on
# where it stopped.
set -eu

here=$(dirname "$0")
dir=${1:?usage: cells.sh DIR [KERNEL...]}
shift
[ $# -gt 0 ] || set -- 6.1 6.1-rt 6.12 6.12-rt

mkdir -p "$dir"
names=$(printf '"%s", ' "$@")
sed "s/^kernel = .*/kernel = [${names%, }]/" "$here/cells.toml" >"$dir/cells.toml"
punctual lab run "$dir/cells.toml" --exact -o "$dir/lab" >"$dir/lab.txt" || true

echo "| cell | samples | worst, instructions | virtual µs | longest part | most of it | all of the worst: before the interrupt | interrupt | not preempted | scheduler | return |"
echo "|---|---|---|---|---|---|---|---|---|---|---|"
for exact in "$dir"/lab/cells/*/*/exact.json; do
    [ -e "$exact" ] || continue
    cell=$(basename "$(dirname "$(dirname "$exact")")")
    jq -r --arg cell "$cell" '
        .ns_per_instruction as $ns
        | .worst as $worst
        # Parts are the whole way, and functions the whole part: or nothing here is true.
        | [$worst[] | select(([.parts[].instructions] | add) != .instructions
            or any(.parts[]; ([.functions[][1]] | add) != .instructions))] as $wrong
        | if ($wrong | length) > 0 then error("\($cell): parts do not add up") else . end
        | $worst[0] as $one
        | ($one.parts | max_by(.instructions)) as $part
        | def all(kinds): [$worst[].parts[] | select(.kind as $k | kinds | index($k))
            | .instructions] | add // 0;
        "| \($cell) | \($worst | length) | \($one.instructions) | " +
        "\($one.instructions * $ns / 100 | round | . / 10) | \($part.kind) " +
        "\(100 * $part.instructions / $one.instructions | round) % | " +
        "`\($part.functions[0][0])` \(100 * $part.functions[0][1] / $part.instructions | round) % | " +
        "\(all(["timer", "irqs-disabled"])) | \(all(["interrupt"])) | \(all(["not-preempted"])) | " +
        "\(all(["schedule"])) | \(all(["return"])) |"' "$exact"
done
