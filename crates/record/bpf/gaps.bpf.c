/* How long a CPU served interrupts and softirqs, and how long its spinning thread was switched away
 * from: totals in memory that this thread reads at the end of a gap. */
#include "kernel.h"
#include "wire.h"

const volatile u32 want_cpu = 0;
const volatile u32 want_tid = 0;

/* One, mapped by the spinning thread. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, u32);
	__type(value, struct wire_gaps);
} board SEC(".maps");

#define PROGRAM(name) SEC("tp_btf/" #name) int name(__attribute__((unused)) u64 *ctx)

INLINE struct wire_gaps *board_here(void)
{
	u32 zero = 0;

	return bpf_get_smp_processor_id() == want_cpu ? bpf_map_lookup_elem(&board, &zero) : 0;
}

INLINE u64 later(u64 a, u64 b)
{
	return a > b ? a - b : 0;
}

PROGRAM(gap_irq_entry)
{
	struct wire_gaps *here = board_here();

	if (here && here->depth++ == 0)
		here->hard_since = bpf_ktime_get_ns();
	return 0;
}

PROGRAM(gap_irq_exit)
{
	struct wire_gaps *here = board_here();

	if (here && here->depth && --here->depth == 0)
		here->hard += later(bpf_ktime_get_ns(), here->hard_since);
	return 0;
}

/* An interrupt within a softirq is the interrupt's. */
PROGRAM(gap_soft_entry)
{
	struct wire_gaps *here = board_here();

	if (here) {
		here->soft_hard = here->hard;
		here->soft_since = bpf_ktime_get_ns();
	}
	return 0;
}

PROGRAM(gap_soft_exit)
{
	struct wire_gaps *here = board_here();

	if (here && here->soft_since) {
		here->soft += later(later(bpf_ktime_get_ns(), here->soft_since),
				    later(here->hard, here->soft_hard));
		here->soft_since = 0;
	}
	return 0;
}

/* Interrupts and softirqs while others run are the interrupts' and softirqs', too. */
PROGRAM(gap_switched)
{
	struct task_struct *prev = (void *)ctx[1], *next = (void *)ctx[2];
	struct wire_gaps *here = board_here();
	u64 now;

	if (!here)
		return 0;
	now = bpf_ktime_get_ns();
	/* Nothing is switched within an interrupt: where its end was not seen it has ended. */
	here->depth = 0;
	if ((u32)prev->pid == want_tid) {
		here->away_since = now;
		here->away_other = here->hard + here->soft;
	} else if ((u32)next->pid == want_tid && here->away_since) {
		u64 other = later(here->hard + here->soft, here->away_other);

		here->task += later(later(now, here->away_since), other);
		here->away_since = 0;
	}
	return 0;
}

const char gpl[] SEC("license") = "GPL";
