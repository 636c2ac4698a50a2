#!/bin/sh
# driver.sh DIR: 16 commits to a driver, of which one disables interrupts for long, one does not
# build and one panics; `git bisect run` finds the first with `punctual hunt --bisect`
# (docs/bisect.md). Needs git and what `drivers` needs (docs/targets.md); some minutes.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
dir=${1:?usage: driver.sh DIR}
rm -rf "$dir/tree"
mkdir -p "$dir/tree/src"
cd "$dir/tree"
git init -q
git config user.name bisect
git config user.email bisect@localhost
git config advice.detachedHead false
cp "$here/driver.c" src/
echo "obj-m := driver.o" >src/Makefile
cp "$here/driver.toml" .

number=0
commit() { # subject
    git add .
    git commit -q -m "$1"
    git tag "step-$number"
    number=$((number + 1))
}
edit() { # sed's commands
    sed -i "$1" src/driver.c
}
# A function more, which each write calls.
harmless() {
    edit "s/^static ssize_t bisected_write/static u64 sum_$number;\n\n&/; s/^\tremember();/&\n\tsum_$number += count;/"
    commit "count once more, $number"
}

commit "a driver"
harmless
harmless
harmless
# Long, and harmless: it lets others run.
edit 's/^\tremember();/\tfor (int i = 0; i < 40; i++) {\n\t\tfor (int k = 0; k < 1000; k++)\n\t\t\tbarrier();\n\t\tcond_resched();\n\t}\n&/'
commit "work before each write, preemptible"
harmless
harmless
harmless
edit '1i #error "this commit does not build"'
commit "does not build"
edit 1d
commit "builds again"
harmless
# The fault.
edit 's/^\thistory\[written++ .*/\tfor (int i = ARRAY_SIZE(history) - 1; i > 0; i--)\n\t\tWRITE_ONCE(history[i], READ_ONCE(history[i - 1]));\n\thistory[0] = ++written;/'
commit "remember in order, the newest first"
edit 's/^\treturn misc_register/\tpanic("step 12");\n&/'
commit "panics"
edit '/panic("step 12")/d'
commit "panics no more"
harmless
harmless
harmless

cat >../step.sh <<'STEP'
#!/bin/sh
place=$(mktemp -d)
punctual hunt driver.toml --output "$place/hunt" --require 'max < 50000 instructions' --bisect --quiet \
    >"$place/out" 2>&1
code=$?
echo "step: $(git log -1 --format=%s): exit code $code"
grep -E '^(error|  max)' "$place/out" || true
rm -rf "$place"
# A mistake in the command line itself ends before --bisect is read.
[ "$code" = 2 ] && exit 128
exit "$code"
STEP
chmod +x ../step.sh
git bisect start HEAD step-0
git bisect run ../step.sh
