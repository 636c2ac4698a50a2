/* Stamps interrupts for a thread that waits for them, in memory that it reads: no records,
 * no buffers. */
#include "kernel.h"
#include "wire.h"

const volatile u32 want_cpu = WIRE_NO_CPU; /* interrupts of this CPU alone */
const volatile u32 want_irq = 0;

/* One, mapped by the waiting thread. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, u32);
	__type(value, struct wire_interrupt);
} board SEC(".maps");

/* The last timer interrupt of each CPU. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* the loader says: one for each CPU that there may be */
	__type(key, u32);
	__type(value, u64);
} last SEC(".maps");

/* Whoever waits for what is submitted here is woken from an interrupt that the CPU sends to itself
 * (kernel/bpf/ringbuf.c, irq_work). */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096); /* the loader says: a page */
} bell SEC(".maps");

#define PROGRAM(name) SEC("tp_btf/" #name) int name(__attribute__((unused)) u64 *ctx)

INLINE struct wire_interrupt *board_here(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&board, &zero);
}

/* The first entry after the raise is its stamp; all are counted. */
INLINE void stamp(struct wire_interrupt *here, u64 now, u32 cpu)
{
	u64 armed = here->armed;

	__sync_fetch_and_add(&here->entries, 1);
	if (armed && now >= armed) {
		here->handler = now;
		here->cpu = cpu;
		here->armed = 0;
	}
}

INLINE int entered(void)
{
	u64 now = bpf_ktime_get_ns();
	u32 cpu = bpf_get_smp_processor_id();
	struct wire_interrupt *here;

	if (want_cpu != WIRE_NO_CPU && cpu != want_cpu)
		return 0;
	here = board_here();
	if (here)
		stamp(here, now, cpu);
	return 0;
}

PROGRAM(vector_entered)
{
	return entered();
}

PROGRAM(irq_entered)
{
	return (u32)ctx[0] == want_irq ? entered() : 0;
}

INLINE int timer_interrupt(void)
{
	u64 now = bpf_ktime_get_ns();
	u32 cpu = bpf_get_smp_processor_id();
	u64 *mine = bpf_map_lookup_elem(&last, &cpu);
	struct wire_interrupt *here;

	if (mine)
		*mine = now;
	if (want_cpu != WIRE_NO_CPU && cpu != want_cpu)
		return 0;
	here = board_here();
	if (here)
		__sync_fetch_and_add(&here->entries, 1);
	return 0;
}

PROGRAM(timer_entered)
{
	return timer_interrupt();
}

PROGRAM(timer_irq_entered)
{
	return (u32)ctx[0] == want_irq ? timer_interrupt() : 0;
}

/* The timer that the waiting thread sleeps by: it expires at the instant that was armed, and
 * belongs to that thread. */
PROGRAM(timer_expired)
{
	struct hrtimer *timer = (void *)ctx[0];
	struct hrtimer_sleeper *sleeper = (void *)timer;
	u64 now = bpf_ktime_get_ns();
	u32 cpu = bpf_get_smp_processor_id();
	struct wire_interrupt *here = board_here();
	struct task_struct *task = 0;
	u64 *mine;
	u32 tid = 0;

	if (!here || !here->armed || (u64)(timer->_softexpires - timer->base->offset) != here->armed)
		return 0;
	bpf_probe_read_kernel(&task, sizeof(task), &sleeper->task);
	bpf_probe_read_kernel(&tid, sizeof(tid), &task->pid);
	mine = bpf_map_lookup_elem(&last, &cpu);
	if (tid != here->tid || !mine)
		return 0;
	here->handler = *mine;
	here->expiry = now;
	here->cpu = cpu;
	here->armed = 0;
	return 0;
}

/* Run by bpf(2): raises the interrupt. */
PROGRAM(raise)
{
	struct wire_interrupt *here = board_here();
	u64 now;

	if (!here)
		return 1;
	now = bpf_ktime_get_ns();
	here->raised = now;
	here->armed = now;
	return bpf_ringbuf_output(&bell, &now, sizeof(now), BPF_RB_FORCE_WAKEUP) != 0;
}

/* Run by bpf(2): how long it takes to stamp, the way into a program left out. */
PROGRAM(stamp_cost)
{
	struct wire_interrupt *here;
	u64 began = bpf_ktime_get_ns();

	for (int i = 0; i < WIRE_STAMPS; i++) {
		u64 now = bpf_ktime_get_ns();
		u32 cpu = bpf_get_smp_processor_id();

		here = board_here();
		if (here)
			here->cost = now + cpu;
	}
	here = board_here();
	if (here)
		here->cost = bpf_ktime_get_ns() - began;
	return 0;
}

const char gpl[] SEC("license") = "GPL";
