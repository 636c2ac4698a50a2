# Interrupts of QEMU's edu device where handlers run in threads, and who is switched to after each.
echo 1234 11e8 >/sys/bus/pci/drivers/uio_pci_generic/new_id
tracing=/sys/kernel/tracing
echo 1 >$tracing/events/irq/irq_handler_entry/enable
echo 1 >$tracing/events/sched/sched_switch/enable
punctual measure irq --quiet --json --count 50 --set period=2ms --set source=edu --set priority=95 \
    --output /edu >/results/summary
status=$?
echo 0 >$tracing/tracing_on
cat $tracing/trace >/results/trace
exit $status
