/* The accounting where the kernel describes its types: tracepoints hand over pointers, and what
 * they point at can be read. */
#define HOW "tp_btf/"
#include "typed.h"

INLINE bool is_postponed(__attribute__((unused)) struct wire_account_thread *thread)
{
	return false;
}

INLINE void served(__attribute__((unused)) struct cpu *cpu, __attribute__((unused)) u64 begin,
		   __attribute__((unused)) u64 now, __attribute__((unused)) u64 hard)
{
}

/* This stands at sched_waking, and once more at sched_wakeup: where the timer interrupts the very
 * program that looks at somebody else's wake-up, the kernel does not run that program for it, but
 * the other. */
PROGRAM(account_waking)
{
	struct task_struct *task = (void *)ctx[0];
	struct wire_account_thread *thread;
	struct cpu *here = cpu_here();
	u32 tid;

	if (!here || !here->expires)
		return 0;
	here->timer = 0;
	tid = task->pid;
	thread = thread_of(tid);
	if (!thread || (thread->active && thread->begin == here->expires))
		return 0;
	return woken(here, thread, ctx[0], tid, task->prio, task_cpu(task));
}

/* The timer of a sleep is on the stack of who sleeps. */
#define STACK 16384

/* The timer of a thread expired while that was awake, as a signal had woken it: nobody is woken
 * twice. The sample begins where the timer was due. Until now the thread waited for its CPU, or ran
 * there. */
NOINLINE int begins_awake(struct cpu *cpu, struct task_struct *task, bool ran)
{
	struct wire_account_thread *thread;
	u32 tid;
	u64 until;

	if (!cpu || !task)
		return 0;
	cpu->timer = 0;
	tid = task->pid;
	thread = thread_of(tid);
	if (!thread || thread->begin == cpu->fired || (!ran && !thread->blocked))
		return 0;
	/* The time so far is not yet in pieces. */
	cpu->watched = 0;
	cpu->expires = cpu->fired;
	woken(cpu, thread, (u64)task, tid, task->prio, bpf_get_smp_processor_id());
	cpu->expires = 0;
	until = thread->wait[WIRE_PART_TIMER_LATE];
	thread->wait[WIRE_PART_TIMER_LATE] = 0;
	add(thread, ran ? WIRE_PART_ITSELF : keeper(thread, running_on(cpu), false), until);
	if (ran) {
		leave(cpu, tid);
		flush(thread);
		thread->mark = cpu->head;
		cpu->watched = tid;
	}
	return 0;
}

INLINE bool is_of(struct cpu *cpu, struct task_struct *task)
{
	return unlikely(cpu->timer - (u64)task->stack < STACK);
}

INLINE int switch_of(u64 *ctx, u64 state)
{
	struct task_struct *prev = (void *)ctx[1], *next = (void *)ctx[2];
	u64 blocked = (u8)ctx[0] ? 0 : sleep_in(state);
	struct cpu *cpu = cpu_here();

	if (cpu && is_of(cpu, prev))
		begins_awake(cpu, prev, true);
	else if (cpu && is_of(cpu, next))
		begins_awake(cpu, next, false);
	/* It sleeps on its way to user mode: the freezer of its control group holds it. */
	if (blocked && is_frozen(prev))
		blocked = WIRE_PART_STOPPED;
	return switched(prev->pid, blocked, next->pid, next->prio);
}

PROGRAM(account_switched)
{
	return switch_of(ctx, ctx[3]);
}

PROGRAM(account_switched_before_5_18)
{
	struct task_struct *prev = (void *)ctx[1];

	return switch_of(ctx, prev->__state);
}

/* The instant that was asked for: the kernel may defer a timer beyond it by the task's slack. */
PROGRAM(account_expire_entry)
{
	struct hrtimer *timer = (void *)ctx[0];
	struct cpu *cpu = cpu_here();

	if (cpu) {
		cpu->expires = cpu->fired = timer->_softexpires - timer->base->offset;
		cpu->timer = ctx[0];
	}
	return 0;
}

PROGRAM(account_moved)
{
	struct task_struct *task = (void *)ctx[0];

	return moved(task->pid, ctx[1]);
}

const char gpl[] SEC("license") = "GPL";
