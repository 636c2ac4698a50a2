#!/bin/sh
# What changes for an unpinned `pgbench -S` while punctual measures: ten interleaved pairs for each
# step, without and with it, every other pair in the opposite order. Leave the machine alone
# meanwhile: it takes 20 times SECONDS for each step.
#
#     bench/pgbench/steps.sh PUNCTUAL [RESULTS.tsv]
#
# Needs root, PostgreSQL and pgbench (postgresql, postgresql-contrib). A database of its own is made
# and removed. Variables: SECONDS_EACH (30), PAIRS (10), CLIENTS (2), SCALE (10), STEPS (all).
#
# A line of the results: step, pair, without|with, transactions per second, migrations and switches
# of the machine, ns that tasks waited in runqueues (-1: no /proc/schedstat), idle entries, busy
# share.
set -eu

punctual=$(realpath "$1")
results=$(realpath -m "${2:-pgbench.tsv}")
each=${SECONDS_EACH:-30}
pairs=${PAIRS:-10}
clients=${CLIENTS:-2}
scale=${SCALE:-10}
# Nothing at all, a spinning task, the programs loaded and a sleeping process watched, a program
# with cycles watched, the server itself; then one tracepoint at a time, by an empty program.
default="nothing beside-spinner loaded attached-to-another attached-to-server \
sched_switch sched_waking sched_wakeup sched_migrate_task sys_enter sys_exit hrtimer_start \
hrtimer_expire_entry softirq_entry local_timer_entry"
steps=${STEPS:-$default}

place=$(mktemp -d)
chmod 755 "$place"
beside=
end() {
	[ -z "$beside" ] || kill -INT "$beside" 2>/dev/null || true
	su postgres -c "$bin/pg_ctl -D $place/data -m immediate stop" >/dev/null 2>&1 || true
	rm -rf "$place"
}
bin=$(ls -d /usr/lib/postgresql/*/bin | tail -n 1)
trap end EXIT
mkdir "$place/data" && chown postgres "$place/data"
su postgres -c "$bin/initdb -D $place/data" >/dev/null
su postgres -c "$bin/pg_ctl -w -D $place/data -l $place/data/log \
	-o '-k $place/data -c listen_addresses=' start" >/dev/null
su postgres -c "pgbench -h $place/data -i -q -s $scale postgres" >/dev/null 2>&1
server=$(head -n 1 "$place/data/postmaster.pid")

# Starts what the step has beside pgbench; its id is in `beside`.
start() {
	case $1 in
	nothing) beside= ; return ;;
	beside-spinner) nice -n 19 sh -c 'while :; do :; done' & ;;
	loaded) sleep 1000000 & sleeper=$!
		"$punctual" attach --quiet --output "$place/bundle" "$sleeper" >/dev/null 2>&1 & ;;
	attached-to-another)
		"$punctual" attach --quiet --output "$place/bundle" -- \
			"$punctual" measure timer --period 1ms --duration 1h --output "$place/own" \
			>/dev/null 2>&1 & ;;
	attached-to-server)
		"$punctual" attach --quiet --output "$place/bundle" "$server" >/dev/null 2>&1 & ;;
	local_timer_entry) empty "irq_vectors:$1" ;;
	sched_*) empty "sched:$1" ;;
	sys_*) empty "raw_syscalls:$1" ;;
	hrtimer_*) empty "timer:$1" ;;
	softirq_*) empty "irq:$1" ;;
	*) echo "error: there is no step $1" >&2; exit 2 ;;
	esac
	beside=$!
	sleep 3
	kill -0 "$beside" 2>/dev/null || { echo "error: step $1 did not start" >&2; exit 1; }
}

# A program that does nothing at a tracepoint (bpftrace).
empty() {
	bpftrace -e "tracepoint:$1 /0/ { }" >/dev/null 2>&1 &
}

stop() {
	[ -n "$beside" ] || return 0
	kill -INT "$beside" 2>/dev/null || true
	wait "$beside" 2>/dev/null || true
	[ -z "${sleeper:-}" ] || kill "$sleeper" 2>/dev/null || true
	beside= sleeper=
	rm -rf "$place/bundle" "$place/own"
}

# Of all CPUs: switches, ns of waiting (-1: CONFIG_SCHEDSTATS is not set), entries of idle states,
# busy and all ticks.
counts() {
	awk '/^ctxt / { printf "%d ", $2 }' /proc/stat
	awk '/^cpu[0-9]/ { waited += $9 } END { printf "%.0f ", NR ? waited : -1 }' \
		/proc/schedstat 2>/dev/null || printf -- '-1 '
	cat /sys/devices/system/cpu/cpu[0-9]*/cpuidle/state*/usage 2>/dev/null |
		awk '{ entries += $1 } END { printf "%d ", entries }'
	awk '/^cpu / { print $2 + $3 + $4 + $7 + $8, $2 + $3 + $4 + $5 + $6 + $7 + $8 + $9 }' /proc/stat
}

# One run of pgbench: a line of results.
run() {
	before=$(counts)
	text=$(perf stat -a -x ' ' -e sched:sched_migrate_task -o "$place/migrations" -- \
		su postgres -c "pgbench -h $place/data -n -S -c $clients -j $clients -T $each postgres")
	after=$(counts)
	tps=$(echo "$text" | sed -n 's/^tps = \([0-9.]*\).*/\1/p' | tail -n 1)
	migrations=$(awk '/sched_migrate_task/ { print $1 }' "$place/migrations")
	echo "$before $after" | awk -v head="$1	$2	$3	$tps	${migrations:-unknown}" '{
		printf "%s\t%d\t%.0f\t%d\t%.4f\n", head, $6 - $1, ($2 < 0 ? -1 : $7 - $2), $8 - $3,
			($9 - $4) / ($10 - $5)
	}' | tee -a "$results"
}

echo "step	pair	way	tps	migrations	switches	waited_ns	idle_entries	busy" >"$results"
for step in $steps; do
	for pair in $(seq "$pairs"); do
		first=without second=with
		[ $((pair % 2)) = 1 ] || { first=with second=without; }
		for way in $first $second; do
			[ "$way" = without ] || start "$step"
			run "$step" "$pair" "$way"
			stop
		done
	done
done
echo "results: $results"
