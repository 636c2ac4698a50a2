"""Writes servo.perfetto by Perfetto's own schema: `pip install perfetto==0.59.1`.

A thread (FIFO 80) sleeps for every millisecond; each tenth time a task of FIFO 90 has the CPU for
400 us more. Switches and wake-ups are in compact_sched, interrupt vectors in generic events; the
second half is compressed. The clock is boot, five seconds ahead of monotonic.
"""
import sys
import zlib

from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as p

SERVO, HOG, US, AHEAD = 7, 9, 1000, 5_000_000_000
CYCLES, START = 100, 1_000_000_000

trace = p.Trace()
first = trace.packet.add(trusted_packet_sequence_id=1, previous_packet_dropped=1)
for clock, ahead in [(3, 0), (6, AHEAD)]:
    first.clock_snapshot.clocks.add(clock_id=clock, timestamp=START - 1000 * US + ahead)
about = trace.packet.add(trusted_packet_sequence_id=1).system_info
about.utsname.release, about.utsname.machine = "6.1.0-rt", "x86_64"
about.tracing_service_version = "Perfetto v57.0 (by its schema)"
tree = trace.packet.add(trusted_packet_sequence_id=1).process_tree
for tid, name in [(SERVO, "servo"), (HOG, "hog")]:
    tree.threads.add(tid=tid, tgid=tid, name=name)


class Bundle:
    def __init__(self, packet):
        self.bundle = packet.ftrace_events
        self.bundle.cpu = 0
        self.compact = self.bundle.compact_sched
        self.compact.intern_table.extend(["servo", "hog"])
        self.switched = self.woken = 0

    def event(self, us, tid):
        return self.bundle.event.add(timestamp=START + us * US + AHEAD, pid=tid)

    def vector(self, us, name):
        generic = self.event(us, HOG).generic
        generic.event_name = name
        generic.field.add(name="vector", int_value=236)

    def switch(self, us, state, tid, prio, comm):
        at, compact = START + us * US + AHEAD, self.compact
        compact.switch_timestamp.append(at - self.switched)
        self.switched = at
        compact.switch_prev_state.append(state)
        compact.switch_next_pid.append(tid)
        compact.switch_next_prio.append(prio)
        compact.switch_next_comm_index.append(comm)

    def waking(self, us):
        at, compact = START + us * US + AHEAD, self.compact
        compact.waking_timestamp.append(at - self.woken)
        self.woken = at
        compact.waking_pid.append(SERVO)
        compact.waking_target_cpu.append(0)
        compact.waking_prio.append(19)
        compact.waking_comm_index.append(0)
        compact.waking_common_flags.append(1)


later = p.Trace()
for cycle in range(CYCLES):
    if cycle % 25 == 0:
        target = trace if cycle < CYCLES // 2 else later
        bundle = Bundle(target.packet.add(trusted_packet_sequence_id=2))
    due, late = (cycle + 1) * 1000, 400 if cycle % 10 == 5 else 0
    now = cycle * 1000 + 100 + (400 if cycle % 10 == 6 else 0)
    enter = bundle.event(now, SERVO).sys_enter
    enter.id = 230
    enter.args.extend([1, 1, 0])
    start = bundle.event(now + 1, SERVO).hrtimer_start
    start.hrtimer, start.function = 0xFFFF888000000005, 0xFFFFFFFF81000000
    start.expires = start.softexpires = START + due * US
    bundle.switch(now + 2, 1, HOG, 9, 1)
    bundle.vector(due + 1, "local_timer_entry")
    expire = bundle.event(due + 2, HOG).hrtimer_expire_entry
    expire.hrtimer, expire.now = 0xFFFF888000000005, START + due * US + 1000
    bundle.waking(due + 3)
    bundle.event(due + 5, HOG).hrtimer_expire_exit.hrtimer = 0xFFFF888000000005
    bundle.vector(due + 6, "local_timer_exit")
    bundle.switch(due + 8 + late, 1, SERVO, 19, 0)
    leave = bundle.event(due + 10 + late, SERVO).sys_exit
    leave.id, leave.ret = 230, 0
trace.packet.add(compressed_packets=zlib.compress(later.SerializeToString()))
sys.stdout.buffer.write(trace.SerializeToString())
