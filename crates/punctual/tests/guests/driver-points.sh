# An application and its driver, with points in both.
mount -t debugfs debugfs /sys/kernel/debug 2>/dev/null
insmod /punctual_point.ko && insmod /punctual_example.ko || exit 1
/usr/bin/punctual trace --events sched,irq -q -o /tmp/b -- /app >/results/said 2>&1 || exit 2
grep punctual-example /proc/interrupts >/results/interrupts
pairs() { # by pairs...
    by=$1
    shift
    /usr/bin/punctual pairs /tmp/b "$@" --by $by --rule next --json >/results/$by 2>>/results/said
}
pairs thread 'app.write:begin->example.write:begin' 'example.write:begin->example.register' \
    'example.interrupt:begin->example.interrupt:end' 'example.woken->example.write:end' \
    'example.write:end->app.write:end'
pairs global 'example.register->example.interrupt:begin' 'example.interrupt:end->example.woken'
pairs cpu 'irq_handler_entry:punctual-example->example.interrupt:begin'
rmmod punctual_example && rmmod punctual_point || exit 3
