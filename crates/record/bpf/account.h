/* Splits the latency of every timer sample of the watched threads into main parts, while it
 * happens: the part that does not depend on how the kernel's tracepoints are read. account.bpf.c
 * reads them by the kernel's types, account_untyped.bpf.c without those.
 *
 * Each CPU keeps how long it has served interrupts and softirqs so far, who runs, and its last
 * changes of what it does. When a timer wakes a watched thread, the time since the timer was due is
 * divided by those changes; from then on until the thread runs, by the totals at each switch;
 * afterwards the pieces are kept in order, because only user space knows at which instant it read
 * the clock. */
#ifndef PUNCTUAL_ACCOUNT_H
#define PUNCTUAL_ACCOUNT_H

#include "buffer.h"

enum { TASK, IDLE, SOFT, HARD };

struct change {
	u64 at;
	u64 doing; /* from then on */
};

/* Written as a whole and then made the one in force, so that an interrupt sees the old one or the
 * new one. */
struct soft {
	u64 total; /* ns of softirqs that have ended, without the interrupts within them */
	u64 since; /* when the one that is served began; 0: none is */
	u64 hard; /* the total of interrupts then */
};

/* An interrupt that wakes a thread finds little of this in a cache: what one program reads stands
 * together. The kernel puts the first 48 bytes of an array into a line, and each 64 after them. */
struct cpu {
	u64 hard_total;
	u64 hard_since; /* 0: none is served */
	u64 hard_ended; /* when the last one had been */
	u64 depth;
	u64 head; /* of `changes` */
	u64 held; /* some thread that waits here may be held back by the quota of its group */

	u64 expires; /* of the timer whose handler runs; 0: none */
	u64 timer; /* that timer, or the last one, where the including file keeps it */
	u64 fired; /* its expiry */
	u64 switched; /* when the running task was chosen */
	u64 stolen; /* its steal clock, where the including file reads it */
	u32 running;
	i32 prio;
	u32 watched; /* the running task, if it is watched */
	u32 number; /* its, where the including file gives it one */

	/* Watched threads that shall run here; read in pairs. */
	u32 waiting[WIRE_ACCOUNT_WAITING] __attribute__((aligned(8)));
	u64 soft_now;
	struct soft soft[2];
	struct change changes[WIRE_ACCOUNT_CHANGES];
	u64 clocks; /* those of its timers, where the including file keeps them */
	u64 slack_end; /* of the timer whose handler runs, likewise */
	u64 left; /* the task that is switched away from, where others wait than the next one */
	u8 left_comm[16];
	u64 rest[3]; /* so that the next CPU's begin where this one's do */
};

/* States of tasks that are stopped by a signal or traced, and that are not to be woken. */
#define TASK_STOPPED_OR_TRACED 12

/* What a task that is switched away from in this state does, as `blocked`. */
INLINE u64 sleep_in(u64 state)
{
	if (!state)
		return 0;
	return state & TASK_STOPPED_OR_TRACED ? WIRE_PART_STOPPED : WIRE_PART_BLOCKED;
}

/* Functions that the verifier checks once, with the types of their arguments, and not at each call:
 * where the including file has none, they are as others. */
#ifndef GLOBAL
#define GLOBAL NOINLINE
#endif

/* One for each buffer: the CPUs where measuring happens. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct cpu);
} cpus SEC(".maps");

/* A watched thread: the including file may keep more of it behind this, in maps of its own. */
#ifndef THREAD
#define THREAD struct wire_account_thread
#endif
INLINE struct wire_account_thread *thread_of(u32 tid);
#ifndef OWN_THREADS
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, WIRE_ACCOUNT_THREADS);
	__type(key, u32);
	__type(value, struct wire_account_thread);
} threads SEC(".maps");

INLINE struct wire_account_thread *thread_of(u32 tid)
{
	return bpf_map_lookup_elem(&threads, &tid);
}
#endif

const volatile bool several_cpus = false; /* some watched thread may run on several CPUs */

/* What needs no argument of its tracepoint: the including file says how a program is attached. */
#define PROGRAM(name) SEC(HOW #name) int name(__attribute__((unused)) u64 *ctx)

INLINE struct cpu *cpu_of(u32 cpu)
{
	u32 slot = slot_of(cpu);

	return slot < cpu_count ? bpf_map_lookup_elem(&cpus, &slot) : 0;
}

INLINE struct cpu *cpu_here(void)
{
	return cpu_of(bpf_get_smp_processor_id());
}

/* Whether the quota of its group holds a thread back; the including file knows how to find out. */
INLINE bool is_held(struct wire_account_thread *thread);

/* Whether a thread that is ready stands in a runqueue: another CPU may be about to put it there. */
INLINE bool is_queued(struct wire_account_thread *thread);

/* Whether the including file has postponed what it was to do for a thread. */
INLINE bool is_postponed(struct wire_account_thread *thread);

/* An interrupt or a softirq has ended: `hard` is that of the interrupts in it. */
INLINE void served(struct cpu *cpu, u64 begin, u64 now, u64 hard);

/* Without a jump: the verifier would follow both ways of each through all that comes after. */
INLINE u64 later(u64 a, u64 b)
{
	i64 more = a - b, below = more >> 63;

	asm volatile("" : "+r"(below));
	return more & ~below;
}

/* --- What the CPU does --- */

INLINE void change(struct cpu *cpu, u64 at, u64 doing)
{
	u64 place = fetch_add(&cpu->head, 1) & (WIRE_ACCOUNT_CHANGES - 1);

	cpu->changes[place].at = at;
	cpu->changes[place].doing = doing;
}

/* What it does outside of interrupts. */
INLINE u64 base(struct cpu *cpu)
{
	if (cpu->soft[cpu->soft_now & 1].since)
		return SOFT;
	return cpu->running ? TASK : IDLE;
}

INLINE u64 hard_until(struct cpu *cpu, u64 now)
{
	return cpu->hard_total + (cpu->hard_since ? later(now, cpu->hard_since) : 0);
}

INLINE u64 soft_until(struct cpu *cpu, u64 now, u64 hard)
{
	struct soft *soft = &cpu->soft[cpu->soft_now & 1];

	return soft->total + (soft->since ? later(later(now, soft->since), later(hard, soft->hard)) : 0);
}

/* Interrupts may come in between: the clock and their total belong together when the total did not
 * change meanwhile. */
INLINE u64 now_and_hard(struct cpu *cpu, u64 *hard)
{
	u64 now;

#pragma unroll
	for (int i = 0; i < 2; i++) {
		*hard = *(volatile u64 *)&cpu->hard_total;
		now = bpf_ktime_get_ns();
		if (*(volatile u64 *)&cpu->hard_total == *hard)
			break;
	}
	return now;
}

INLINE void set_soft(struct cpu *cpu, u64 total, u64 since, u64 hard)
{
	u64 next = (cpu->soft_now + 1) & 1;

	cpu->soft[next].total = total;
	cpu->soft[next].since = since;
	cpu->soft[next].hard = hard;
	*(volatile u64 *)&cpu->soft_now = next;
}

/* Timers expire in interrupts and in softirqs, and whatever these wake afterwards was not for a
 * timer. Where their ends are seen nobody needs to look at the end of each handler of a timer. */
INLINE void no_timer_expires(struct cpu *cpu)
{
	if (!cpu->soft[cpu->soft_now & 1].since)
		cpu->expires = 0;
}

PROGRAM(account_soft_entry)
{
	struct cpu *cpu = cpu_here();
	u64 hard, now;

	if (!cpu)
		return 0;
	now = now_and_hard(cpu, &hard);
	set_soft(cpu, cpu->soft[cpu->soft_now & 1].total, now, hard);
	change(cpu, now, SOFT);
	return 0;
}

PROGRAM(account_soft_exit)
{
	struct cpu *cpu = cpu_here();
	u64 hard, now;

	if (!cpu || !cpu->soft[cpu->soft_now & 1].since)
		return 0;
	now = now_and_hard(cpu, &hard);
	served(cpu, cpu->soft[cpu->soft_now & 1].since, now,
	       later(hard, cpu->soft[cpu->soft_now & 1].hard));
	set_soft(cpu, soft_until(cpu, now, hard), 0, 0);
	no_timer_expires(cpu);
	change(cpu, now, base(cpu));
	return 0;
}

/* --- The pieces of a sample --- */

INLINE void append(struct wire_account_thread *thread, u64 part, u64 ns)
{
	u64 last = thread->count - 1;

	if (!ns || thread->full)
		return;
	if (last < WIRE_ACCOUNT_PIECES && thread->pieces[last] >> 56 == part) {
		thread->pieces[last] += ns;
		return;
	}
	if (thread->count >= WIRE_ACCOUNT_PIECES) {
		thread->full = 1;
		return;
	}
	thread->pieces[thread->count & (WIRE_ACCOUNT_PIECES - 1)] = part << 56 | (ns & ((1ull << 56) - 1));
	thread->count++;
}

INLINE void add(struct wire_account_thread *thread, u64 part, u64 ns)
{
	thread->wait[part & (WIRE_ACCOUNT_ROOM - 1)] += ns;
}

/* The order within a wait does not matter: the thread reads no clock meanwhile. */
NOINLINE int flush(struct wire_account_thread *thread)
{
	if (!thread)
		return 0;
	for (u32 part = 0; part < WIRE_ACCOUNT_PARTS; part++) {
		append(thread, part, thread->wait[part]);
		thread->wait[part] = 0;
	}
	return 0;
}

/* The time that a thread which ran until `now` had, as the CPU's changes divide it. */
NOINLINE int ran(struct wire_account_thread *thread, struct cpu *cpu, u64 now)
{
	u64 from = thread->from, part = WIRE_PART_ITSELF;

	for (u32 i = 0; i < WIRE_ACCOUNT_PIECES; i++) {
		struct change *next;
		u64 at;

		if (thread->mark >= cpu->head)
			break;
		/* The oldest ones were overwritten: what is left is not known. */
		if (cpu->head - thread->mark > WIRE_ACCOUNT_CHANGES) {
			part = WIRE_PART_UNKNOWN;
			break;
		}
		next = &cpu->changes[thread->mark & (WIRE_ACCOUNT_CHANGES - 1)];
		thread->mark++;
		at = next->at;
		if (at > from) {
			append(thread, part, at - from);
			from = at;
		}
		part = next->doing == HARD   ? WIRE_PART_HARDIRQ
		       : next->doing == SOFT ? WIRE_PART_SOFTIRQ
					     : WIRE_PART_ITSELF;
	}
	if (thread->mark < cpu->head)
		part = WIRE_PART_UNKNOWN;
	append(thread, part, later(now, from));
	thread->from = now;
	return 0;
}

/* Kernel priorities below this are real-time, of which the lower number goes first. */
#define REAL_TIME 100

/* What a CPU ran, and since when. */
struct running {
	u64 switched;
	u32 task;
	i32 prio;
};

INLINE struct running running_on(struct cpu *cpu)
{
	return (struct running){ cpu->switched, cpu->running, cpu->prio };
}

/* Who kept a thread that was ready from running until now; `held`: the quota of its group still
 * does. What throttled it all the time is seen at both ends. */
INLINE u64 keeper(struct wire_account_thread *thread, struct running on, bool held)
{
	bool decided = on.switched >= thread->since, real_time = thread->prio < REAL_TIME;

	if (thread->unseen)
		return WIRE_PART_UNKNOWN;
	if (thread->blocked)
		return thread->blocked;
	/* An idle CPU takes a thread as soon as it is held no more. */
	if (thread->held && (held || !on.task))
		return WIRE_PART_THROTTLED;
	if (!on.task)
		return decided && real_time ? WIRE_PART_THROTTLED : WIRE_PART_IDLE_EXIT;
	if (on.prio < thread->prio && on.prio < REAL_TIME)
		return WIRE_PART_PREEMPTED;
	if (on.prio > thread->prio && real_time)
		return decided ? WIRE_PART_THROTTLED : WIRE_PART_NOT_SWITCHED;
	return WIRE_PART_RUNQUEUE;
}

/* The time of a thread since it was last looked at: interrupts and softirqs by the totals of its
 * CPU, and the rest is `part`. */
INLINE void divide_by(struct wire_account_thread *thread, u64 now, u64 hard, u64 soft, u64 part)
{
	u64 whole = later(now, thread->from);
	u64 irqs = later(hard, thread->hard), softs = later(soft, thread->soft);

	/* Where an interrupt came between two updates the sum still is the whole. */
	if (irqs > whole)
		irqs = whole;
	if (softs > whole - irqs)
		softs = whole - irqs;
	add(thread, WIRE_PART_HARDIRQ, irqs);
	add(thread, WIRE_PART_SOFTIRQ, softs);
	add(thread, part, whole - irqs - softs);
	thread->from = whole ? now : thread->from;
	thread->hard = hard;
	thread->soft = soft;
}

INLINE void divide(struct wire_account_thread *thread, struct cpu *cpu, u64 now, u64 part)
{
	u64 hard = hard_until(cpu, now);

	divide_by(thread, now, hard, soft_until(cpu, now, hard), part);
}

GLOBAL int waited_as(THREAD *of, struct cpu *cpu, u64 now)
{
	struct wire_account_thread *thread = (struct wire_account_thread *)of;
	bool held;

	if (!thread || !cpu || is_postponed(thread))
		return 0;
	held = is_held(thread);
	divide(thread, cpu, now, keeper(thread, running_on(cpu), held));
	/* The CPU has not yet chosen again. */
	if (thread->held && !held)
		thread->since = now;
	thread->held = held;
	if (held)
		cpu->held = 1;
	return 0;
}

/* What a waiting thread waited for until `now`, since it was last looked at. */
INLINE int waited(struct wire_account_thread *thread, struct cpu *cpu, u64 now)
{
	return waited_as((THREAD *)thread, cpu, now);
}

/* The CPU chooses another task. That decides against a thread only if that could be chosen. */
INLINE void passed_over(struct wire_account_thread *thread, u64 now)
{
	if (!is_queued(thread))
		thread->since = now + 1;
}

/* Quotas are refilled in interrupts: what threads waited for is classified before each of them and
 * after it. */
GLOBAL int look_again(struct cpu *cpu, u64 now)
{
	if (!cpu)
		return 0;
	cpu->held = 0;
	for (u32 i = 0; i < WIRE_ACCOUNT_WAITING; i++) {
		u32 tid = cpu->waiting[i];

		if (tid)
			waited(thread_of(tid), cpu, now);
	}
	return 0;
}

INLINE int enter_hard(void)
{
	struct cpu *cpu = cpu_here();

	if (cpu && cpu->depth++ == 0) {
		u64 now = bpf_ktime_get_ns();

		if (unlikely(cpu->held))
			look_again(cpu, now);
		cpu->hard_since = now;
		change(cpu, now, HARD);
	}
	return 0;
}

INLINE int exit_hard(void)
{
	struct cpu *cpu = cpu_here();

	if (cpu && cpu->depth && --cpu->depth == 0) {
		u64 now = bpf_ktime_get_ns();

		/* Within a softirq it is a part of that. */
		if (!cpu->soft[cpu->soft_now & 1].since)
			served(cpu, cpu->hard_since, now, later(now, cpu->hard_since));
		cpu->hard_total += later(now, cpu->hard_since);
		cpu->hard_since = 0;
		cpu->hard_ended = now;
		no_timer_expires(cpu);
		change(cpu, now, base(cpu));
		if (unlikely(cpu->held))
			look_again(cpu, now);
	}
	return 0;
}

PROGRAM(account_irq_entry)
{
	return enter_hard();
}

PROGRAM(account_irq_exit)
{
	return exit_hard();
}

/* The time from `begin`, when it waited for an expired timer, to `now`, by what the CPU did: by the
 * newest of `room` changes (a power of two), of which there were `head`. */
INLINE void overdue_by(struct wire_account_thread *thread, struct change *changes, u64 room,
		       u64 head, u64 begin, u64 now)
{
	u64 end = now;

	for (u64 i = 1; i <= room && i <= head; i++) {
		struct change *last = &changes[(head - i) & (room - 1)];
		u64 at = last->at > begin ? last->at : begin, part = WIRE_PART_TIMER_LATE;

		if (last->doing == HARD)
			part = WIRE_PART_HARDIRQ;
		else if (last->doing == SOFT)
			part = WIRE_PART_SOFTIRQ;
		else if (last->doing == IDLE)
			part = WIRE_PART_IDLE_EXIT;
		if (at < end) {
			add(thread, part, end - at);
			end = at;
		}
		if (last->at <= begin)
			break;
	}
	add(thread, WIRE_PART_UNKNOWN, later(end, begin));
}

GLOBAL int overdue(struct wire_account_thread *thread, struct cpu *cpu, u64 begin, u64 now)
{
	if (!thread || !cpu)
		return 0;
	overdue_by(thread, cpu->changes, WIRE_ACCOUNT_CHANGES, cpu->head, begin, now);
	return 0;
}

/* --- The life of a sample --- */

INLINE void publish(struct wire_account_thread *thread, u32 tid)
{
	struct buffer *buffer = buffer_here(thread->cpu);

	if (buffer)
		emit_to(buffer, thread->begin, tid, WIRE_ACCOUNT, thread->timer_cpu, thread->pieces,
			WIRE_ACCOUNT_PIECES + 1);
	thread->active = 0;
}

/* A loop over those that wait stands in no program's common case. */
INLINE u64 pairs_wait(struct cpu *cpu, u32 from)
{
	const u64 *pairs = (const u64 *)cpu->waiting;
	u64 any = 0;

#pragma unroll
	for (u32 i = from; i < WIRE_ACCOUNT_WAITING / 2; i++)
		any |= pairs[i];
	return any;
}

INLINE bool anybody_waits(struct cpu *cpu)
{
	return pairs_wait(cpu, 0);
}

/* Another thread than this one. */
INLINE bool others_wait(struct cpu *cpu, u32 tid)
{
	u64 first = *(const u64 *)cpu->waiting;

	return (first && first != tid) || pairs_wait(cpu, 1);
}

GLOBAL u32 finds_place(struct cpu *cpu, u32 tid)
{
	if (!cpu)
		return false;
#pragma unroll
	for (u32 i = 0; i < WIRE_ACCOUNT_WAITING; i++)
		if (cpu->waiting[i] == tid)
			return true;
#pragma unroll
	for (u32 i = 0; i < WIRE_ACCOUNT_WAITING; i++)
		if (!__sync_val_compare_and_swap(&cpu->waiting[i], 0, tid))
			return true;
	return false;
}

/* Several CPUs may do this at once. `false` where there is no room. */
INLINE bool takes_place(struct cpu *cpu, u32 tid)
{
	if (likely(!anybody_waits(cpu)) && !__sync_val_compare_and_swap(&cpu->waiting[0], 0, tid))
		return true;
	return finds_place(cpu, tid);
}

INLINE void join(struct cpu *cpu, struct wire_account_thread *thread, u32 tid)
{
	thread->unseen = !takes_place(cpu, tid);
}

GLOBAL int leaves_place(struct cpu *cpu, u32 tid)
{
	if (!cpu)
		return 0;
#pragma unroll
	for (u32 i = 1; i < WIRE_ACCOUNT_WAITING; i++)
		if (cpu->waiting[i] == tid)
			cpu->waiting[i] = 0;
	return 0;
}

INLINE void leave(struct cpu *cpu, u32 tid)
{
	if (likely(cpu->waiting[0] == tid))
		cpu->waiting[0] = 0;
	else
		leaves_place(cpu, tid);
}

INLINE void look(struct wire_account_thread *thread, struct cpu *cpu, u64 now)
{
	thread->from = now;
	thread->hard = hard_until(cpu, now);
	thread->soft = soft_until(cpu, now, thread->hard);
	thread->held = is_held(thread);
	if (thread->held)
		cpu->held = 1;
}

/* A timer wakes a watched thread, which shall run on `target`: one sample ends, if it has not yet,
 * and another begins. */
INLINE int woken(struct cpu *here, struct wire_account_thread *thread, u64 task, u32 tid, i32 prio,
		 u32 target)
{
	struct cpu *there = cpu_of(target);
	u64 now = bpf_ktime_get_ns(), begin = here->expires;

	if (there && there->watched == tid)
		ran(thread, there, now);
	if (thread->active)
		publish(thread, tid);
#pragma unroll
	for (u32 i = 0; i < WIRE_ACCOUNT_PARTS; i++)
		thread->wait[i] = 0;
#pragma unroll
	for (u32 i = 0; i < WIRE_ACCOUNT_PIECES; i++)
		thread->pieces[i] = 0;
	thread->count = 0;
	thread->full = 0;
	thread->blocked = 0;
	thread->active = 1;
	thread->prio = prio;
	thread->task = task;
	thread->cpu = target;
	thread->timer_cpu = bpf_get_smp_processor_id();
	thread->moved = 0;
	thread->begin = begin;
	thread->since = now;
	/* It was stopped, or frozen, or in a wait of its work: the timer was armed after that. */
	if (thread->resumed > begin && thread->resumed <= now) {
		add(thread, thread->resumed_from, thread->resumed - begin);
		begin = thread->resumed;
	}
	overdue(thread, here, begin, now);
	if (!there) {
		thread->full = 1;
		return 0;
	}
	look(thread, there, now > thread->begin ? now : thread->begin);
	/* It had not yet gone to sleep. */
	if (there->watched == tid) {
		flush(thread);
		thread->mark = there->head;
	} else {
		join(there, thread, tid);
	}
	return 0;
}

/* A watched thread that waits is put on another CPU: from now on that one keeps it. */
INLINE int moved(u32 tid, u32 target)
{
	struct wire_account_thread *thread = thread_of(tid);
	struct cpu *from, *to = cpu_of(target);
	u64 now;

	if (!thread || !thread->active || thread->cpu == target || !to)
		return 0;
	now = bpf_ktime_get_ns();
	from = cpu_of(thread->cpu);
	if (!from || from->watched == tid)
		return 0;
	waited(thread, from, now);
	leave(from, tid);
	thread->cpu = target;
	thread->moved = 1;
	thread->since = now;
	look(thread, to, now);
	join(to, thread, tid);
	return 0;
}

/* What a thread waited for on another CPU is not known where nobody said that it was moved. */
INLINE void arrives(struct wire_account_thread *thread, struct cpu *cpu, u32 here, u32 tid, u64 now)
{
	if (thread->cpu != here) {
		struct cpu *there = cpu_of(thread->cpu);

		if (there)
			leave(there, tid);
		add(thread, WIRE_PART_UNKNOWN, later(now, thread->from));
		thread->cpu = here;
		thread->moved = 1;
	} else {
		waited(thread, cpu, now);
		leave(cpu, tid);
	}
	if (thread->blocked) {
		thread->resumed = now;
		thread->resumed_from = thread->blocked;
	}
	thread->blocked = 0;
	flush(thread);
	thread->from = now;
	cpu->watched = tid;
}

/* Interrupts and softirqs whose end was not seen. */
INLINE void cpu_switched(struct cpu *cpu, u64 now)
{
	/* Nothing is switched within an interrupt: where its end was not seen it has ended. */
	if (cpu->depth) {
		cpu->depth = 0;
		cpu->hard_since = 0;
	}
	/* A softirq that is switched away from belongs to a task (PREEMPT_RT). */
	if (cpu->soft[cpu->soft_now & 1].since)
		set_soft(cpu, soft_until(cpu, now, cpu->hard_total), 0, 0);
	no_timer_expires(cpu);
}

/* From one task to another, of which `prio` is the priority; `blocked`: as
 * what the one before sleeps now, 0: it does not. */
INLINE int switched(u32 from, u64 blocked, u32 to, i32 prio)
{
	u32 here = bpf_get_smp_processor_id();
	struct wire_account_thread *thread;
	struct cpu *cpu = cpu_of(here);
	u64 now;

	if (!cpu)
		return 0;
	now = bpf_ktime_get_ns();
	cpu_switched(cpu, now);
	for (u32 i = 0; i < WIRE_ACCOUNT_WAITING; i++) {
		u32 tid = cpu->waiting[i];

		if (!tid || tid == to)
			continue;
		thread = thread_of(tid);
		if (thread) {
			waited(thread, cpu, now);
			passed_over(thread, now);
		}
	}
	if (cpu->watched) {
		thread = thread_of(from);
		if (thread && cpu->watched == from) {
			ran(thread, cpu, now);
			thread->blocked = blocked;
			thread->since = now;
			look(thread, cpu, now);
			join(cpu, thread, from);
		}
		cpu->watched = 0;
	}
	change(cpu, now, to ? TASK : IDLE);
	if (several_cpus || anybody_waits(cpu)) {
		thread = thread_of(to);
		if (thread) {
			arrives(thread, cpu, here, to, now);
			thread->mark = cpu->head;
		}
	}
	cpu->running = to;
	cpu->prio = prio;
	cpu->switched = now;
	return 0;
}

PROGRAM(account_expire_exit)
{
	struct cpu *cpu = cpu_here();

	if (cpu)
		cpu->expires = 0;
	return 0;
}

#endif
