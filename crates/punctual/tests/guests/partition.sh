# Runs in a guest with cgroup version 2 and two CPUs: CPU 1 is isolated by hand, by an experiment, and by one that is killed.
# What is seen goes to /results; the exit status tells the step that failed.

# The settings that isolation changes, and the affinity of two tasks: the same before and after. Kernel threads are left out,
# for they come and go, and follow their interrupt to whichever CPU serves it.
snapshot() {
    cat /sys/fs/cgroup/cgroup.subtree_control /proc/irq/default_smp_affinity
    grep -r . /proc/irq/*/smp_affinity_list /sys/devices/virtual/workqueue/ /sys/kernel/mm/transparent_hugepage/enabled
    grep -r . /proc/sys/kernel/sched_rt_* /proc/sys/kernel/*watchdog* /proc/sys/kernel/timer_migration /proc/sys/vm/stat_interval
    grep -r . /sys/devices/system/cpu/online /sys/devices/system/cpu/cpu1/power/pm_qos_resume_latency_us
    grep Cpus_allowed_list /proc/1/status /proc/$sleeper/status
    cat /proc/$sleeper/cgroup
    find /sys/fs/cgroup -type d
    ls /run/punctual
}
same() {
    snapshot >/tmp/after 2>&1
    diff /tmp/before /tmp/after >"/results/difference-$1"
}

punctual check --json --cpus 1 >/results/check-named || exit 10
punctual check --json >/results/check-all || exit 11
mkdir -p /run/punctual /sys/fs/cgroup/service
touch /run/punctual/lock
sleep 100000 & sleeper=$!
# Like a service: whatever is made has to bring it back into its own cgroup.
echo $sleeper >/sys/fs/cgroup/service/cgroup.procs
echo $$ >/sys/fs/cgroup/service/cgroup.procs
snapshot >/tmp/before 2>&1

# A CPU that is offline is refused.
echo 0 >/sys/devices/system/cpu/cpu1/online
punctual isolate create 1 >/results/offline 2>&1
[ $? = 2 ] || exit 20
echo 1 >/sys/devices/system/cpu/cpu1/online

# By hand.
punctual isolate create 1 >/results/create 2>&1 || exit 30
snapshot >/tmp/during 2>&1
cmp -s /tmp/before /tmp/during && exit 31
cat /sys/fs/cgroup/rt/cpuset.cpus.partition >/results/partition
cat /sys/fs/cgroup/cpuset.cpus.effective >/results/remaining
grep Cpus_allowed_list /proc/$sleeper/status >/results/sleeper
punctual isolate run --fifo 50 rt -- /punctual/busybox grep -E 'Cpus_allowed_list|Name' /proc/self/status >/results/inside || exit 32
punctual isolate status >/results/status 2>&1 || exit 33
punctual isolate undo >/results/undo 2>&1 || exit 34
same create

# By an experiment: both sides at once, in two phases, under load.
cd /tmp
punctual run --quiet /experiment.toml --output /results/bundle --report /results/report.html >/results/shown 2>&1 & run=$!
# The loads must not keep this script from looking.
renice -n -20 -p $$
until [ -s /results/bundle/phases/001/0001.checkpoint ]; do
    kill -0 $run 2>/dev/null || exit 40
    usleep 20000
done
cat /sys/fs/cgroup/rt/cpuset.cpus.partition >/results/experiment-partition
# The file came with Linux 6.10 or so; without it the partition's own word stands.
cat /sys/fs/cgroup/cpuset.cpus.isolated >/results/isolated 2>/dev/null
# The guard starts its loads with the phase: at a bad moment one is just being started again.
tries=0
while [ $(wc -l </sys/fs/cgroup/rt-housekeeping/cgroup.threads) -lt 4 ] && [ $tries -lt 100 ]; do
    tries=$((tries + 1))
    usleep 5000
done
for tid in $(cat /sys/fs/cgroup/rt/cgroup.threads /sys/fs/cgroup/rt-housekeeping/cgroup.threads); do
    # Some have ended by now.
    [ -e /proc/$tid/cgroup ] && echo $(grep -E 'Name|Cpus_allowed_list' /proc/$tid/status | cut -f 2) $(cut -d : -f 3 /proc/$tid/cgroup)
done 2>/dev/null | grep ' /' >/results/threads
# Exit status 4 with this reason alone: the host of the guest was busy, and the controller waited.
wait $run || { [ $? = 4 ] && grep -q "controller of" /results/shown; } || exit 41
same experiment

# By an experiment that is killed.
sed 's/"1s"/"600s"/' /experiment.toml >/long.toml
punctual run --quiet /long.toml --output /tmp/killed >/dev/null 2>&1 & run=$!
until [ -s /tmp/killed/phases/000/0001.checkpoint ]; do
    kill -0 $run 2>/dev/null || exit 50
    usleep 20000
done
kill -9 $run
wait $run
punctual show /tmp/killed >/dev/null 2>/results/note || exit 51
punctual isolate undo >/results/undo-killed 2>&1 || exit 52
same killed
exit 0
