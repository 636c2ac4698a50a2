/* Counts what happens to tasks, without recording it: an addition an event. */
#include "kernel.h"
#include "wire.h"
#include "filter.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* the loader says: one for each CPU that there may be */
	__type(key, u32);
	__type(value, struct wire_counts);
} counts SEC(".maps");

#define PROGRAM(name) SEC("tp_btf/" #name) int name(__attribute__((unused)) u64 *ctx)

INLINE struct wire_counts *counts_here(void)
{
	u32 cpu = bpf_get_smp_processor_id();

	return bpf_map_lookup_elem(&counts, &cpu);
}

/* The counts of this CPU, if the thread that runs is wanted. Interrupts add while tasks add, so
 * every addition is atomic. */
INLINE struct wire_counts *counts_of_current(void)
{
	return wanted_current(bpf_get_current_pid_tgid()) ? counts_here() : 0;
}

#define ADD(field, n)                                 \
	do {                                          \
		struct wire_counts *here = counts_of_current(); \
		if (here)                             \
			__sync_fetch_and_add(&here->field, n); \
	} while (0)

PROGRAM(count_syscall)
{
	struct wire_counts *here = counts_of_current();
	u32 number = ctx[1];

	asm volatile("" : "+r"(number));
	if (here && number < WIRE_MAX_SYSCALLS)
		__sync_fetch_and_add(&here->syscalls[number], 1);
	return 0;
}

INLINE int count_switch(struct task_struct *prev, bool preempted)
{
	struct wire_counts *here;

	if (!wanted_task(prev))
		return 0;
	here = counts_here();
	if (here)
		__sync_fetch_and_add(preempted ? &here->preempted : &here->voluntary, 1);
	return 0;
}

PROGRAM(count_switched)
{
	return count_switch((void *)ctx[1], (u8)ctx[0] || !ctx[3]);
}

PROGRAM(count_switched_before_5_18)
{
	struct task_struct *prev = (void *)ctx[1];

	return count_switch(prev, (u8)ctx[0] || !prev->__state);
}

PROGRAM(count_page_alloc)
{
	u32 order = ctx[1];

	ADD(pages, 1ull << (order & 31));
	return 0;
}

PROGRAM(count_fault_user)
{
	ADD(faults_user, 1);
	return 0;
}

PROGRAM(count_fault_kernel)
{
	if (is_fault_of_task())
		ADD(faults_kernel, 1);
	return 0;
}

PROGRAM(count_irq)
{
	ADD(irqs, 1);
	return 0;
}

PROGRAM(count_softirq)
{
	ADD(softirqs, 1);
	return 0;
}

PROGRAM(count_kmalloc)
{
	ADD(kmalloc_bytes, ctx[3]);
	return 0;
}

const char gpl[] SEC("license") = "GPL";
