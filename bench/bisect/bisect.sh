#!/bin/sh
# bisect.sh DIR: a tree of Linux 6.1 (Debian's linux-source-6.1) with a small configuration, 16
# commits on top of it, of which one disables interrupts for long, and `git bisect run` that finds it
# with `punctual hunt --bisect` (docs/bisect.md). It needs linux-source-6.1, git, make, gcc, bc, flex,
# bison, libelf-dev and stress-ng, 2 GB, and more than ten minutes of CPU for the first build. It was
# not run to its end yet.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
dir=${1:?usage: bisect.sh DIR}
mkdir -p "$dir"
cd "$dir"
if [ ! -e linux/Makefile ]; then
    tar -xf /usr/src/linux-source-6.1.tar.xz
    mv linux-source-6.1 linux
fi
cd linux

# Only what the commits change is tracked: to add 80,000 files takes minutes, and shows nothing more.
files="fs/eventfd.c kernel/range.c lib/bcd.c lib/bsearch.c lib/clz_ctz.c lib/cmdline.c lib/ctype.c
    lib/dec_and_lock.c lib/extable.c lib/hexdump.c lib/is_single_threaded.c lib/kasprintf.c
    lib/llist.c"
rm -rf .git
for file in $files; do
    [ -e "$file.before" ] || cp "$file" "$file.before"
    cp "$file.before" "$file"
done
git init -q
git config user.name bisect
git config user.email bisect@localhost
git config status.showUntrackedFiles no
git config advice.detachedHead false

number=0
commit() { # subject
    git add -f $files
    git commit -q -m "$1"
    git tag "step-$number"
    number=$((number + 1))
}
unused() { # file
    printf '\nint step_%d(int number);\nint step_%d(int number)\n{\n\treturn number + %d;\n}\n' \
        "$number" "$number" "$number" >>"$1"
    commit "$(basename "$1"): a function that nobody calls"
}

commit "Linux 6.1"
unused lib/bcd.c
unused lib/bsearch.c
unused lib/clz_ctz.c
# Long, and harmless: it is preempted.
sed -i -e 's/^\tif (ucnt == ULLONG_MAX)$/\teventfd_wait();\n&/' \
    -e 's/^static ssize_t eventfd_write(/static noinline void eventfd_wait(void)\n{\n\tint i;\n\n\tfor (i = 0; i < 20000; i++)\n\t\tbarrier();\n}\n\n&/' \
    fs/eventfd.c
commit "eventfd: wait a little before each write, preemptible"
unused lib/cmdline.c
unused lib/ctype.c
unused lib/dec_and_lock.c
echo '#error "this commit does not build"' >>lib/extable.c
commit "extable: forget the end of a comment"
cp lib/extable.c.before lib/extable.c
commit "extable: make it build again"
unused lib/hexdump.c
# The fault.
sed -i -e 's/^\t\tctx->count += ucnt;$/&\n\t\teventfd_remember(ctx->count);/' \
    -e 's/^static ssize_t eventfd_write(/static u64 history[16384];\n\nstatic noinline void eventfd_remember(u64 count)\n{\n\tint i;\n\n\tfor (i = ARRAY_SIZE(history) - 1; i > 0; i--)\n\t\tWRITE_ONCE(history[i], READ_ONCE(history[i - 1]));\n\thistory[0] = count;\n}\n\n&/' \
    fs/eventfd.c
commit "eventfd: remember the last counts"
printf '\nstatic int __init does_not_boot(void)\n{\n\tpanic("step 12");\n}\nlate_initcall(does_not_boot);\n' \
    >>kernel/range.c
commit "range: check at boot"
cp kernel/range.c.before kernel/range.c
commit "range: do not check at boot"
unused lib/is_single_threaded.c
unused lib/kasprintf.c
unused lib/llist.c

make -s tinyconfig >/dev/null 2>&1
scripts/kconfig/merge_config.sh -m .config "$here/guest.config" >/dev/null 2>&1
git bisect start HEAD step-0
git bisect run "$here/step.sh"
git bisect log >../bisect.log
