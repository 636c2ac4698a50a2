/* Keeps the instants that a SCHED_DEADLINE task is released at, in memory that it reads. The kernel
 * programs its timer (dl_timer, kernel/sched/deadline.c: start_dl_timer) for the start of the next
 * period when the task yields or has used up its budget. */
#include "kernel.h"
#include "wire.h"

/* One, mapped by the task. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, u32);
	__type(value, struct wire_release);
} board SEC(".maps");

#define PROGRAM(name) SEC("tp_btf/" #name) int name(__attribute__((unused)) u64 *ctx)

INLINE struct wire_release *board_here(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&board, &zero);
}

PROGRAM(timer_started)
{
	struct hrtimer *timer = (void *)ctx[0];
	struct wire_release *here = board_here();
	u64 armed;

	if (!here)
		return 0;
	if (!here->timer) {
		/* Whose timer it is shows when the task starts it; later anybody may, who updates its
		 * run queue. */
		struct task_struct *task = bpf_get_current_task_btf();

		if ((u32)task->pid != here->tid || (u64)timer != (u64)&task->dl.dl_timer)
			return 0;
		here->timer = (u64)timer;
	}
	if ((u64)timer != here->timer)
		return 0;
	armed = here->armed;
	here->at[armed & (WIRE_RELEASES - 1)] = timer->_softexpires - timer->base->offset;
	here->armed = armed + 1;
	return 0;
}

const char gpl[] SEC("license") = "GPL";
