/* The accounting where the kernel does not describe its types.
 *
 * A raw tracepoint hands over pointers that cannot be followed: nobody says where the fields are.
 * But a pointer is a name, and the two tracepoints whose records hold all that is needed (their
 * fields are in tracefs) teach whose: hrtimer_start, when a watched thread arms its timer, and
 * sched_switch, when it goes to sleep. Both happen with interrupts off and in the thread itself, so
 * that no other program of a tracepoint's record, which the kernel would not run one within
 * another, is in their way. All others are raw: they run within any program. */
#define HOW "raw_tp/"
#include "account.h"

const volatile u32 timer_offset = 0; /* of hrtimer_start's record: hrtimer, softexpires */
const volatile u32 expires_offset = 0;
/* Of sched_switch's: prev_pid, prev_prio, prev_state, next_pid, next_prio. */
const volatile u32 prev_offset = 0;
const volatile u32 prev_prio_offset = 0;
const volatile u32 state_offset = 0;
const volatile u32 next_offset = 0;
const volatile u32 next_prio_offset = 0;

/* A watched thread, by the address of its task. */
struct own {
	u32 tid;
	u32 cpu; /* where it last went to sleep, and how */
	i32 prio;
	u32 slept; /* both are known */
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, WIRE_ACCOUNT_THREADS);
	__type(key, u64);
	__type(value, struct own);
} tasks SEC(".maps");

/* When the timers of watched threads are due, each on its own clock. Whatever else is armed in an
 * interrupt of such a thread is here too, once. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4 * WIRE_ACCOUNT_THREADS);
	__type(key, u64);
	__type(value, u64);
} timers SEC(".maps");

/* How far the other clocks of timers are ahead of CLOCK_MONOTONIC; user space keeps it so. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct wire_account_clocks);
} clocks SEC(".maps");

INLINE struct own *own_of(u64 task)
{
	return bpf_map_lookup_elem(&tasks, &task);
}

INLINE bool is_postponed(__attribute__((unused)) struct wire_account_thread *thread)
{
	return false;
}

INLINE void served(__attribute__((unused)) struct cpu *cpu, __attribute__((unused)) u64 begin,
		   __attribute__((unused)) u64 now, __attribute__((unused)) u64 hard)
{
}

/* Nobody says where the kernel keeps it. */
INLINE bool is_queued(__attribute__((unused)) struct wire_account_thread *thread)
{
	return true;
}

INLINE bool is_held(__attribute__((unused)) struct wire_account_thread *thread)
{
	return false;
}

SEC("tracepoint/account_armed") int account_armed(void *ctx)
{
	u64 timer = 0, expires = 0, task;
	u32 tid = bpf_get_current_pid_tgid();
	struct wire_account_thread *thread = thread_of(tid);
	struct own *own;

	bpf_probe_read_kernel(&timer, sizeof(timer), ctx + timer_offset);
	if (!thread && !bpf_map_lookup_elem(&timers, &timer))
		return 0;
	bpf_probe_read_kernel(&expires, sizeof(expires), ctx + expires_offset);
	bpf_map_update_elem(&timers, &timer, &expires, 0);
	if (!thread)
		return 0;
	task = bpf_get_current_task();
	own = own_of(task);
	/* The address may have been that of a thread which has ended. */
	if (!own || own->tid != tid) {
		struct own new = { .tid = tid };

		bpf_map_update_elem(&tasks, &task, &new, 0);
	}
	return 0;
}

PROGRAM(account_waking)
{
	struct wire_account_thread *thread;
	struct cpu *here = cpu_here();
	struct own *own;

	if (!here || !here->expires)
		return 0;
	own = own_of(ctx[0]);
	if (!own || !own->slept)
		return 0;
	thread = thread_of(own->tid);
	if (!thread || (thread->active && thread->begin == here->expires))
		return 0;
	return woken(here, thread, ctx[0], own->tid, own->prio, own->cpu);
}

/* States in a record: those of tasks that sleep, below this; a preempted task has this one
 * (include/linux/sched.h, TASK_REPORT_MAX). */
#define PREEMPTED 0x100

SEC("tracepoint/account_switched") int account_switched(void *ctx)
{
	u32 prev = 0, next = 0;
	i32 prev_prio = 0, next_prio = 0;
	u64 state = 0;
	struct own *own = own_of(bpf_get_current_task());

	bpf_probe_read_kernel(&prev, sizeof(prev), ctx + prev_offset);
	bpf_probe_read_kernel(&state, sizeof(state), ctx + state_offset);
	bpf_probe_read_kernel(&next, sizeof(next), ctx + next_offset);
	bpf_probe_read_kernel(&next_prio, sizeof(next_prio), ctx + next_prio_offset);
	if (own && own->tid == prev) {
		bpf_probe_read_kernel(&prev_prio, sizeof(prev_prio), ctx + prev_prio_offset);
		own->cpu = bpf_get_smp_processor_id();
		own->prio = prev_prio;
		own->slept = 1;
	}
	return switched(prev, state & PREEMPTED ? 0 : sleep_in(state), next, next_prio);
}

/* The clock of a timer is the one that was read just now. */
#define JUST_NOW 10000000

INLINE u64 on_monotonic(u64 expires, u64 now)
{
	struct wire_account_clocks *ahead;
	u64 here = bpf_ktime_get_ns(), best = JUST_NOW, result = 0;
	u32 zero = 0;

	ahead = bpf_map_lookup_elem(&clocks, &zero);
	if (!ahead)
		return 0;
#pragma unroll
	for (u32 i = 0; i < WIRE_ACCOUNT_CLOCKS; i++) {
		u64 apart = here - (now - ahead->ahead[i]);

		if ((i64)apart < 0)
			apart = -apart;
		if (apart < best) {
			best = apart;
			result = expires - ahead->ahead[i];
		}
	}
	return result;
}

/* Its second argument points at the instant, on the timer's clock, at which the interrupt began. */
PROGRAM(account_expire_entry)
{
	struct cpu *cpu = cpu_here();
	u64 timer = ctx[0], now = 0, *expires;

	if (!cpu)
		return 0;
	cpu->expires = 0;
	expires = bpf_map_lookup_elem(&timers, &timer);
	if (!expires || bpf_probe_read_kernel(&now, sizeof(now), (void *)ctx[1]))
		return 0;
	cpu->expires = on_monotonic(*expires, now);
	return 0;
}

PROGRAM(account_moved)
{
	struct own *own = own_of(ctx[0]);

	return own ? moved(own->tid, ctx[1]) : 0;
}

const char gpl[] SEC("license") = "GPL";
