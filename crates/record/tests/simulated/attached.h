/* A thread whose cycles begin with clock_nanosleep(2), another task, and the idle one. */
#define PROGRAMS "attach.bpf.c"
#include "world.h"

#define NANOSLEEP 230
#define READ 0
#define FUTEX 202

static struct task *idle, *thread, *other;

static struct attached *value(u32 tid) { return attached_of(tid); }
static struct cpu *of_cpu(u32 cpu) { return find(&cpus, &cpu); }

static void switch_to(struct task *next, u64 state)
{
	u64 ctx[] = { 0, (u64)&on[this_cpu]->task, (u64)&next->task, state };

	attach_switched(ctx);
	on[this_cpu] = next;
}

static void wake(struct task *task)
{
	u64 ctx[] = { (u64)&task->task };

	attach_waking(ctx);
}

static void enter(u32 number, u64 first, u64 second)
{
	struct pt_regs *regs = &on[this_cpu]->regs;
	u64 ctx[] = { (u64)regs, number };

	*regs = (struct pt_regs){ .di = first, .si = second, .orig_ax = number };
	attach_sys_enter(ctx);
}

static void leave_call(i64 result)
{
	u64 ctx[] = { (u64)&on[this_cpu]->regs, result };

	attach_sys_exit(ctx);
	on[this_cpu]->regs.orig_ax = -1;
}

static u64 sum(u64 *parts)
{
	u64 all = 0;

	for (u32 i = 0; i < WIRE_CYCLE_PARTS; i++)
		all += parts[i];
	return all;
}

static void watch(struct task *task)
{
	begin_watching(task->task.pid);
}

static void unwatch(struct task *task)
{
	give_number(leave_thread_place(task->task.pid));
	for (u32 i = 0; i < CPUS; i++)
		of_cpu(i)->watched = 0;
}

static void begin_attached(void)
{
	u32 zero = 0;
	struct numbers *free;

	begin_world();
	add_map(&cpus, 4, sizeof(struct cpu), CPUS);
	add_map(&values, 4, sizeof(struct attached), 4);
	add_map(&numbers, 4, sizeof(struct numbers), 1);
	add_map(&places, 4, sizeof(struct places), 1);
	free = find(&numbers, &zero);
	for (free->given = 0; free->given < 3; free->given++)
		free->free[free->given] = free->given + 1;
	add_map(&blank, 4, sizeof(struct attached), 1);
	add_map(&processes, 4, 4, 0);
	add_map(&selections, 4, sizeof(struct wire_selection), 4);
	add_map(&timers, 8, 4, 0);
	waits[NANOSLEEP / 64] |= 1ull << NANOSLEEP % 64;
	clock_nanosleep = NANOSLEEP;
	futex = FUTEX;
	nanosleep = restart_syscall = pause = rt_sigsuspend = sched_yield = 1023;
	futex_wait = futex_waitv = 1023;
	idle = on[0], thread = make_task(7, "thread", 19), other = make_task(9, "other", 120);
}
