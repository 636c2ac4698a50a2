/* The cycles of the threads of a program that knows nothing of it, timed and divided by cause.
 *
 * A thread's life is cut at its waiting system calls. A cycle begins with its release: the expiry
 * of the timer that wakes the thread, or the wake-up by somebody else. It ends where the next wait
 * is entered. One cursor per thread (account.from) goes through time, and what lies between two
 * events is added to one part, so that the parts of a cycle add up to it.
 *
 * Until user space has selected the waiting call of a thread's cycle, each call that may wait ends
 * one. Afterwards other waits are blockings within the cycle. */
#define HOW "tp_btf/"
#define OWN_THREADS
#define THREAD struct attached
#define GLOBAL __attribute__((noinline))
#include "ids.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct hrtimer_cpu_base___clocks;
struct hrtimer_clock_base___clocks {
	struct hrtimer_cpu_base___clocks *cpu_base;
	i64 offset;
};
struct hrtimer_cpu_base___clocks {
	struct hrtimer_clock_base___clocks clock_base[8];
};
#pragma clang attribute pop

/* As in struct wire_times. */
enum { UNSEEN, RUNNING, READY, ASLEEP };
/* What the call under way is for the cycle. */
/* INTERRUPTED: a signal ended the wait, which was no release. */
enum { NO_CYCLE, OPEN, WAITING, WOKEN, INTERRUPTED };

/* Who ended a wait, as in struct wire_cycle. */
struct waker {
	u64 timer;
	u32 tid;
	u32 by;
	u8 comm[16];
};

/* A timerfd, POSIX or interval timer that releases a thread, and the waiting call that it ends. */
struct own_timer {
	u64 timer; /* the kernel's address; 0: none */
	u64 expired; /* when, if no call has returned for it yet; 0: it has not */
	u64 due; /* when it shall expire as it was started last; 0: not seen */
	u64 taken; /* the same of the expiry for which the call under way started it anew */
	u64 argument;
	u32 call;
	u32 operation;
};
#define TIMERS 4

/* Read and written where it lies, and not kept in a register. */
#define FORGET(value) (*(volatile typeof(value) *)&(value))

/* What is known of a system call. */
struct call {
	u64 argument;
	u32 number;
	u32 operation;
	u32 time32; /* a 32-bit program's with such times */
	u32 spare;
};

/* What a thread was last seen to do of which the sums know nothing yet. */
enum { NOTHING_POSTPONED, WAKE_UP_POSTPONED, ARRIVAL_POSTPONED, RETURN_POSTPONED, ENTRY_POSTPONED };

/* Each instruction and each line of memory between the wake-up of a thread and the return of its
 * waiting call delays it, and after a sleep few of them are in a cache. There the programs only
 * keep, in lines that follow one another, what cannot be found out later (struct wire_ordinary).
 * Where the thread then enters its next wait and sleeps there, as most do, this is the record of
 * the cycle, which user space divides. Any other event of the thread divides what is known by then
 * here, and the cycle is then recorded in full. */

struct attached {
	struct wire_account_thread account; /* `wait` holds the sums of the cycle */
	u64 beginning[5]; /* so that what follows begins a line */
	u32 state;
	u32 phase;
	u32 call; /* its number + 1; 0: none, or not looked at */
	u32 woken; /* a wake-up came before it slept */
	u32 early; /* made ready by a wake-up that came before it slept: a later one counts */
	u32 reclaiming; /* it reclaims memory */
	u32 faulting; /* it is in a page fault, the end of which will be seen */
	u32 next_timer; /* the place in `timers` that is overwritten next */
	u32 stage; /* …_POSTPONED */
	u32 holds_for; /* the number of a thread that sleeps for its lock; 0: none does */
	struct wire_ordinary postponed;
	struct wire_cycle cycle; /* the one that goes on */
	u64 before[WIRE_CYCLE_PARTS]; /* the sums when the call was entered, if `apart` */
	u64 entered; /* the call under way */
	u64 slept; /* when it went to sleep */
	struct waker waker;
	u64 wake_at; /* of a wake-up that came before it slept */
	u64 wake_expires;
	u64 passed; /* the release that the call under way returned for at once */
	u64 passed_timer;
	u64 passed_by; /* WIRE_CYCLE_BY_… */
	u64 ahead; /* CLOCK_MONOTONIC less the scheduler's clock, modulo 2^64; 0: not known */
	u64 asked; /* until when the sleep under way shall last; 0: not known, or `asks` shows it */
	u64 asks; /* where the program keeps that, where it was not read yet; 0: nowhere */
	u32 apart; /* what belongs to the call is in `wait`, what was before in `before` */
	u32 within; /* the part that its sleep is, where that is none of the cycle's */
	u32 process;
	u32 holder; /* of the lock that it sleeps for; 0: not known */
	u32 holder_by;
	u32 moments; /* of the cycle */
	u32 stopped; /* its sleep was interrupted by a stop, and goes on */
	u32 held_up; /* the wait that the next cycle begins with was interrupted by a stop */
	u32 returning_from_wait; /* it has a CPU again after a wait, and has done nothing since */
	u32 waited; /* it was woken from a wait that signals end, and in a call */
	struct own_timer timers[TIMERS];
	struct wire_moment moment; /* the one that goes on; `begin` 0: none */
	/* Here and not on the stack, where the verifier would follow each call on its own: it takes a
	 * second. */
	struct call leaving; /* the call that it sleeps in */
	struct call returning; /* the one that ends */
	u64 shown; /* when the interrupt began that showed last where it ran */
	u64 stolen; /* the steal clock of its CPU when its time was last divided */
	u64 unsure; /* how long before its wake-up that clock was read */
	u64 woken_stolen; /* of what is postponed: these at the wake-up, and the clock at the arrival */
	u64 woken_unsure;
	u64 arrived_stolen;
	u64 slack_end; /* until when the kernel may let the timer expire that wakes it; 0: no slack */
	u64 rival_ns; /* what another task than the cycle's culprit had, as `culprit_ns` */
	u64 rival_behind;
	u8 rival_comm[16];
	u32 rival; /* 0: none */
	u32 stopper; /* who stopped it or its process; 0: not known */
	u8 stopper_comm[16];
	/* In memory, of which the verifier forgets what it knew: in a register each value that it tells
	 * apart would be a way of its own through all that follows, a second at each start. */
	i64 result;
	u32 took;
	u32 again;
	/* Of a thread that polls and lost its CPU: since when, its sums then, who had the CPU. */
	u64 taken;
	u64 untaken[WIRE_CYCLE_PARTS];
	u64 by_ns;
	u32 by;
	u32 number; /* its place in `values` */
	u8 by_comm[16];
	/* Not on the stack, which all functions that call each other share: 512 bytes. */
	struct wire_gap gap; /* the one that ends */
	struct wire_gap interrupted; /* an interrupt's or a softirq's */
	struct wire_moment instant; /* one that is over at once */
	u64 copied_since[4]; /* stacks of each kind that were copied lately: COPIES_OF_… */
	u32 copied[4];
	u64 holder_left; /* since when the holder of the lock that it sleeps for has no CPU; 0: it has */
	u32 waits_shown; /* records of where it waits */
	struct wire_wait wait; /* the last of them; its stack is read again to compare places */
	struct wire_times times; /* the last: user space reads it */
};

#define STANDS(member, at) \
	_Static_assert(__builtin_offsetof(struct attached, member) == (at), #at " in wire.h")
STANDS(state, WIRE_ATTACHED_STATE);
STANDS(phase, WIRE_ATTACHED_PHASE);
STANDS(call, WIRE_ATTACHED_CALL);
STANDS(stage, WIRE_ATTACHED_STAGE);
STANDS(postponed, WIRE_ATTACHED_POSTPONED);
STANDS(postponed.returned, WIRE_ATTACHED_RETURNED);
STANDS(postponed.again, WIRE_ATTACHED_AGAIN);
STANDS(cycle, WIRE_ATTACHED_CYCLE);
STANDS(entered, WIRE_ATTACHED_ENTERED);
STANDS(asked, WIRE_ATTACHED_ASKED);
STANDS(asks, WIRE_ATTACHED_ASKS);
STANDS(number, WIRE_ATTACHED_NUMBER);
_Static_assert(OPEN == WIRE_PHASE_OPEN && WAITING == WIRE_PHASE_WAITING &&
	       WOKEN == WIRE_PHASE_WOKEN && RETURN_POSTPONED == WIRE_RETURN_POSTPONED &&
	       ENTRY_POSTPONED == WIRE_ENTRY_POSTPONED &&
	       ASLEEP == WIRE_STATE_ASLEEP, "wire.h");

#include "typed.h"

/* A thread's value, of which the kernel copies a new one. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct attached);
} blank SEC(".maps");

/* Each watched thread has a number, of its elements in these two. A look-up in an array is a sixth
 * of one in a hash table, and each event of a thread begins with one. No thread has number 0. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, WIRE_WATCHED + 1);
	__type(key, u32);
	__type(value, struct attached);
} values SEC(".maps");

/* The waiting call of the cycles of a thread. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, WIRE_WATCHED + 1);
	__type(key, u32);
	__type(value, struct wire_selection);
} selections SEC(".maps");

/* Numbers that are free, a ring: those from `taken` on, up to `given`. */
struct numbers {
	u64 taken;
	u64 given;
	u64 free[WIRE_WATCHED];
};
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct numbers);
} numbers SEC(".maps");

/* Which number a thread has: its id, and above it the number, at one of WIRE_PROBES places. 0: from
 * here on there is none of that hash. User space reads and writes it, too. */
struct places {
	u64 of[WIRE_PLACES];
};
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct places);
} places SEC(".maps");

/* Processes all threads of which are looked at. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, u32);
	__type(value, u32);
} processes SEC(".maps");

/* The threads that these timers release. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, WIRE_ACCOUNT_THREADS);
	__type(key, u64);
	__type(value, u32);
} timers SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_STACK_TRACE);
	__uint(max_entries, WIRE_USER_STACKS);
	__uint(key_size, 4);
	__uint(value_size, WIRE_USER_STACK_DEPTH * 8);
} stacks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, WIRE_DELAYED_TASKS);
	__type(key, struct wire_delayed_key);
	__type(value, struct wire_delayed_task);
} delayed_tasks SEC(".maps");

/* Copies of user stacks, which user space frees. */
struct stack_copy {
	struct wire_stack_copy head;
	u8 bytes[WIRE_STACK_BYTES];
};
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, WIRE_STACK_COPIES);
	__type(key, u32);
	__type(value, struct stack_copy);
} copies SEC(".maps");

const volatile bool copy_stacks = false; /* else there are those by frame pointers alone */
const volatile bool children = false; /* processes that watched ones start are watched too */
const volatile u64 waits[WIRE_MAX_SYSCALLS / 64] = {}; /* calls that may be a cycle's wait */
const volatile u64 polls[WIRE_MAX_SYSCALLS / 64] = {}; /* that return 0 at their timeout */
const volatile u64 files[WIRE_MAX_SYSCALLS / 64] = {}; /* whose uninterruptible sleep is I/O */
const volatile u8 marks[WIRE_MAX_SYSCALLS] = {}; /* WIRE_MARK…: calls that a cycle's record names */
const volatile u32 futex = 0; /* the numbers of some calls */
const volatile u32 futex_wait = 0;
const volatile u32 futex_waitv = 0;
const volatile u32 clock_nanosleep = 0;
const volatile u32 nanosleep = 0;
const volatile u32 restart_syscall = 0;
const volatile u32 pause = 0;
const volatile u32 rt_sigsuspend = 0;
const volatile u32 sched_yield = 0;
/* The numbers of 32-bit programs' calls, with WIRE_NATIVE_TIME32; 0: none that matters. Those of
 * read(2), which is 0 itself, are below. */
const volatile u16 native[WIRE_NATIVE_CALLS] = {};
/* What timerfds, POSIX timers and interval timers run when they expire; 0: not known. */
const volatile u64 expiries[3] = {};
/* What runs at the start of a SCHED_DEADLINE task's period; 0: not known. */
const volatile u64 period_expiry = 0;

#define FUTEX_COMMAND 0x7f
#define FUTEX_WAIT 0
#define FUTEX_LOCK_PI 6
#define FUTEX_WAIT_BITSET 9
#define FUTEX_LOCK_PI2 13
#define FUTEX_TID_MASK 0x3fffffff
#define CLOCK_REALTIME 0
#define CLOCK_MONOTONIC 1
#define CLOCK_BOOTTIME 7
#define CLOCK_REALTIME_ALARM 8
#define CLOCK_BOOTTIME_ALARM 9
#define CLOCK_TAI 11
/* Of struct hrtimer_cpu_base. */
#define BASE_MONOTONIC 0
#define BASE_REALTIME 1
#define BASE_BOOTTIME 2
#define BASE_TAI 3
#define NO_BASE 4
#define EINTR 4
#define EAGAIN 11
#define ETIMEDOUT 110
#define ERESTARTSYS 512
#define ERESTART_RESTARTBLOCK 516
#define BPF_NOEXIST 1
#define ERESTARTNOHAND 514
#define SCHED_DEADLINE 6

INLINE u32 first_place(u32 tid)
{
	return tid * WIRE_PLACE_FACTOR >> WIRE_PLACE_SHIFT;
}

/* The first place was another thread's. */
GLOBAL u32 probe_on(u32 tid)
{
	u32 zero = 0, at = first_place(tid);
	struct places *all = bpf_map_lookup_elem(&places, &zero);

	if (!all)
		return 0;
	for (u32 i = 1; i < WIRE_PROBES; i++) {
		u64 place = all->of[(at + i) & (WIRE_PLACES - 1)];

		if (!place)
			return 0;
		if ((u32)place == tid)
			return place >> 32;
	}
	return 0;
}

/* Its number; 0: it is not watched. */
INLINE u32 number_of(u32 tid)
{
	u32 zero = 0;
	struct places *all = bpf_map_lookup_elem(&places, &zero);
	u64 place;

	if (!all)
		return 0;
	place = all->of[first_place(tid) & (WIRE_PLACES - 1)];
	if (likely(!place))
		return 0;
	return likely((u32)place == tid) ? place >> 32 : probe_on(tid);
}

INLINE struct attached *attached_of(u32 tid)
{
	u32 number = number_of(tid);

	return number ? bpf_map_lookup_elem(&values, &number) : 0;
}

/* The running thread of this id, if it is watched: each switch to one keeps its number. */
INLINE struct attached *attached_here(struct cpu *cpu, u32 tid)
{
	u32 number = cpu->number;

	if (unlikely(cpu->watched != tid))
		number = number_of(tid);
	return number ? bpf_map_lookup_elem(&values, &number) : 0;
}

INLINE struct wire_account_thread *thread_of(u32 tid)
{
	return (struct wire_account_thread *)attached_of(tid);
}

/* Nobody's quota mattered when it was woken. */
INLINE bool is_postponed(struct wire_account_thread *thread)
{
	return ((struct attached *)thread)->stage != NOTHING_POSTPONED;
}

INLINE bool in_set(const volatile u64 *set, u32 number)
{
	u32 word = number / 64;

	asm volatile("" : "+r"(word));
	return word < WIRE_MAX_SYSCALLS / 64 && (set[word] >> (number & 63) & 1);
}

/* --- Which calls end a cycle --- */

#define COMPAT_READ 3
#define TS_COMPAT 2

/* Whether the call under way is made as 32-bit programs do (arch/x86/include/asm/thread_info.h). */
INLINE bool is_compat(__attribute__((unused)) struct task_struct *task)
{
#if defined(TARGET_x86_64)
	return task->thread_info.status & TS_COMPAT;
#else
	return false;
#endif
}

/* Its number among the calls of 64-bit programs; behind all of them where it is none of note. */
INLINE u32 native_number(u32 number, u32 *time32)
{
	u32 of;

	*time32 = 0;
	if (number == COMPAT_READ)
		return 0;
	asm volatile("" : "+r"(number));
	of = number < WIRE_NATIVE_CALLS ? native[number] : 0;
	*time32 = of & WIRE_NATIVE_TIME32;
	return of ? of & ~WIRE_NATIVE_TIME32 : WIRE_MAX_SYSCALLS + number;
}

NOINLINE bool read_call(__attribute__((unused)) struct task_struct *task, struct pt_regs *regs,
		      struct call *call)
{
	u64 second, third;

	call->time32 = 0;
#if defined(TARGET_x86_64)
	call->number = regs->orig_ax;
	if (unlikely(is_compat(task)) && call->number != (u32)-1) {
		u32 time32;

		call->number = native_number(call->number, &time32);
		call->time32 = time32;
		call->argument = (u32)regs->bx;
		second = (u32)regs->cx;
		third = (u32)regs->dx;
	} else {
		call->argument = regs->di;
		second = regs->si;
		third = regs->dx;
	}
#elif defined(TARGET_aarch64)
	call->number = regs->syscallno;
	call->argument = regs->regs[0];
	second = regs->regs[1];
	third = regs->regs[2];
#elif defined(TARGET_riscv64)
	call->number = regs->cause == EXC_SYSCALL ? (u32)regs->a7 : (u32)-1;
	call->argument = regs->orig_a0;
	second = regs->a1;
	third = regs->a2;
#endif
	call->operation = 0;
	if (call->number == futex) {
		call->operation = second & FUTEX_COMMAND;
		/* Timed waits for a lock, and all of Rust's: those for something else wait for other values. */
		if (call->operation == FUTEX_WAIT_BITSET && is_of_lock(third))
			call->operation = WIRE_FUTEX_WAIT_LOCK;
		else if (call->operation == FUTEX_WAIT && !is_of_lock(third))
			call->operation = WIRE_FUTEX_WAIT_PARKED;
	} else if (call->number == clock_nanosleep) {
		call->operation = second & 1;
	} else if (call->number == futex_wait) {
		/* futex2: the value is the second argument. */
		call->operation = FUTEX_WAIT_BITSET;
		if ((u32)second == LOCKED_WITH_WAITERS)
			call->operation = WIRE_FUTEX_WAIT_LOCK;
	} else if (call->number == futex_waitv) {
		/* The first of those that it waits for: value, address. */
		u64 first[2] = {};

		if (!bpf_probe_read_user(first, sizeof(first), (void *)call->argument) &&
		    (u32)first[0] == LOCKED_WITH_WAITERS) {
			call->operation = WIRE_FUTEX_WAIT_LOCK;
			call->argument = first[1];
		}
	}
	/* Outside of any call the number is -1. */
	return call->number < WIRE_MAX_SYSCALLS;
}

/* Files are small numbers. A pointer may differ from call to call. */
#define FILES_END 0x10000

/* Whether both wait for the same. A condition variable of glibc is waited for at two words by
 * turns, side by side. */
INLINE bool is_same_object(u64 a, u64 b)
{
	return !((a ^ b) & (a < FILES_END ? ~0ull : ~7ull));
}

/* Whether the call is made at the place that is selected. */
GLOBAL int is_at_place(struct attached *t, u64 ip, u64 sp)
{
	struct wire_selection *of;
	u32 number, reach;

	if (!t)
		return 0;
	number = t->number;
	of = bpf_map_lookup_elem(&selections, &number);
	if (!of || of->ip != ip)
		return 0;
	reach = of->reach;
	asm volatile("" : "+r"(reach));
	if (reach > sizeof(t->wait.stack) ||
	    (reach && bpf_probe_read_user(t->wait.stack, reach, (void *)sp)))
		return 0;
	for (u32 i = 0; i < WIRE_SELECTED_CALLERS && i < of->callers; i++)
		if (t->wait.stack[of->at[i] & (WIRE_WAIT_WORDS - 1)] != of->caller[i])
			return 0;
	return 1;
}

/* `regs`: of the call. */
INLINE bool ends_cycle(struct attached *t, const struct call *call, struct pt_regs *regs)
{
	u32 number = t->number;
	struct wire_selection *of = bpf_map_lookup_elem(&selections, &number);

	if (!of || !of->how)
		return in_set(waits, call->number);
	if (of->call != call->number || of->operation != call->operation ||
	    (of->how == WIRE_SELECTED_ARGUMENT && !is_same_object(of->argument, call->argument)))
		return false;
#if defined(TARGET_x86_64)
	return !of->ip || is_at_place(t, regs->ip, regs->sp);
#elif defined(TARGET_aarch64)
	return !of->ip || is_at_place(t, regs->pc, regs->sp);
#else
	(void)regs;
	return true;
#endif
}

/* Counts a wait of the cycle that is in the call of the cycles, and no end of it. */
GLOBAL int note_elsewhere(struct attached *t)
{
	struct wire_selection *of;
	u32 number;

	if (!t)
		return 0;
	number = t->number;
	of = bpf_map_lookup_elem(&selections, &number);
	if (!of || !of->how || of->call != t->leaving.number ||
	    of->operation != t->leaving.operation)
		return 0;
	/* Another file is clearly something else. */
	if (of->how != WIRE_SELECTED_ARGUMENT || of->argument >= FILES_END ||
	    of->argument == t->leaving.argument)
		t->cycle.elsewhere++;
	return 0;
}

/* The record names the calls that a real-time thread does better without. */
INLINE bool mark_call(struct attached *t, struct pt_regs *regs, u32 number,
		      __attribute__((unused)) bool compat)
{
	u64 written;
	u32 mark;

	asm volatile("" : "+r"(number));
	mark = number < WIRE_MAX_SYSCALLS ? marks[number] : 0;
	if (likely(!mark))
		return false;
	t->cycle.calls |= 1u << (mark & 31);
	if (!(mark & WIRE_MARK_WRITE))
		return true;
#if defined(TARGET_x86_64)
	written = compat ? (u32)regs->bx : regs->di;
#elif defined(TARGET_aarch64)
	written = regs->regs[0];
#elif defined(TARGET_riscv64)
	written = regs->orig_a0;
#endif
	t->cycle.written |= 1ull << (written < WIRE_CYCLE_DESCRIPTORS ? written : WIRE_CYCLE_DESCRIPTORS);
	return true;
}

INLINE bool is_futex(const struct call *call)
{
	return call->number == futex || call->number == futex_wait || call->number == futex_waitv;
}

/* It waits for a lock without priority inheritance. */
INLINE bool is_plain_lock(const struct call *call)
{
	return call->operation == FUTEX_WAIT || call->operation == WIRE_FUTEX_WAIT_LOCK;
}

/* What a sleep in this state is, where it is none of the cycle's. */
NOINLINE u32 part_of_sleep(const struct call *call, bool in_call, u64 state)
{
	if (!in_call)
		return WIRE_PART_PAGE_FAULT;
	if (is_futex(call))
		return is_plain_lock(call) || call->operation == FUTEX_LOCK_PI ||
				       call->operation == FUTEX_LOCK_PI2 ?
			       WIRE_PART_LOCK :
			       WIRE_PART_BLOCKED;
	if (state & TASK_UNINTERRUPTIBLE && in_set(files, call->number))
		return WIRE_PART_IO;
	return WIRE_PART_BLOCKED;
}

/* By which of the kernel's clocks a sleep ends; NO_BASE where its arguments do not show when.
 * The kernel counts a time of CLOCK_REALTIME by CLOCK_MONOTONIC; relative to CLOCK_TAI it is an
 * instant, which moves when that clock is set. A CPU-time clock stands while its thread does. */
INLINE u32 base_of(u32 clock, bool absolute)
{
	if (clock == CLOCK_MONOTONIC)
		return BASE_MONOTONIC;
	if (clock == CLOCK_REALTIME)
		return absolute ? BASE_REALTIME : BASE_MONOTONIC;
	if (clock == CLOCK_BOOTTIME || clock == CLOCK_BOOTTIME_ALARM)
		return absolute ? BASE_BOOTTIME : BASE_MONOTONIC;
	if (clock == CLOCK_REALTIME_ALARM && absolute)
		return BASE_REALTIME;
	if (clock == CLOCK_TAI && absolute)
		return BASE_TAI;
	return NO_BASE;
}

/* From here on (in s) a sleep does not end. */
#define NEVER (1ull << 33)

/* Where the time of a sleep stands; 0: it is none. */
INLINE u64 time_of_sleep(struct pt_regs *regs, const struct call *call)
{
	if (call->number != clock_nanosleep && call->number != nanosleep)
		return 0;
#if defined(TARGET_x86_64)
	return call->number == nanosleep ? regs->di : regs->dx;
#elif defined(TARGET_aarch64)
	return call->number == nanosleep ? regs->regs[0] : regs->regs[2];
#elif defined(TARGET_riscv64)
	return call->number == nanosleep ? regs->orig_a0 : regs->a2;
#endif
}

/* The end of a sleep by its arguments: where no event of its timer is seen, this is its release.
 * 0: they do not show it. */
NOINLINE u64 asked_time(struct pt_regs *regs, __attribute__((unused)) bool compat,
		      const struct call *call, u64 entered, const struct cpu *cpu)
{
	u64 time[2] = {}, ns;
	u32 time32[2] = {}, base = BASE_MONOTONIC;
	struct hrtimer_cpu_base___clocks *clocks;
	const void *at;
	i64 ahead = 0;

	if (!call || !cpu)
		return 0;
	at = (const void *)time_of_sleep(regs, call);
#if defined(TARGET_x86_64)
	if (compat)
		at = (const void *)(u64)(u32)(call->number == nanosleep ? regs->bx : regs->dx);
#endif
	if (call->number == clock_nanosleep)
		base = base_of(call->argument, call->operation);
	else if (call->number != nanosleep)
		return 0;
	if (base >= NO_BASE)
		return 0;
	if (call->time32) {
		if (bpf_probe_read_user(time32, sizeof(time32), at))
			return 0;
		time[0] = time32[0];
		time[1] = time32[1];
	} else if (bpf_probe_read_user(time, sizeof(time), at)) {
		return 0;
	}
	if (time[0] >= NEVER)
		return 0;
	ns = time[0] * 1000000000 + time[1];
	if (!call->operation)
		return entered + ns;
	if (base == BASE_MONOTONIC)
		return ns;
	/* How far the clock is ahead as the timers of this CPU have it. */
	clocks = (void *)cpu->clocks;
	if (!clocks ||
	    bpf_probe_read_kernel(&ahead, sizeof(ahead), &clocks->clock_base[base & 3].offset))
		return 0;
	return ns > (u64)ahead ? ns - ahead : 0;
}

/* The kernel restarts a sleep that a signal interrupted by a call of its own. */
INLINE void same_call(struct attached *t, struct call *call)
{
	call->number = t->cycle.call;
	call->operation = t->cycle.operation;
	call->argument = t->cycle.argument;
}

/* Whether a call that returns this was interrupted. */
INLINE bool by_signal(i64 result)
{
	return unlikely(result < 0) && (result == -EINTR || (result <= -ERESTARTSYS &&
							    result >= -ERESTART_RESTARTBLOCK));
}

/* Whether a call that slept returns this because nothing came in time. */
INLINE bool timed_out(const struct call *call, i64 result)
{
	return result == -ETIMEDOUT || result == -EAGAIN || (!result && in_set(polls, call->number));
}

/* What the thread slept in the call under way. */
INLINE void rename_sleep(struct attached *t)
{
	u64 *wait = t->account.wait;

	if (!t->apart)
		return;
	wait[WIRE_PART_TIMEOUT] += wait[WIRE_PART_BLOCKED];
	wait[WIRE_PART_BLOCKED] = 0;
}

/* A signal ended the wait of a cycle: that is its release only where it was waited for, or where a
 * timer sent it to who waits in another call than a sleep. */
NOINLINE int interrupted(struct attached *t, const struct call *call)
{
	u32 number;

	if (!t || !call)
		return 0;
	number = call->number;
	if (number == pause || number == rt_sigsuspend)
		return 0;
	if (t->phase == WOKEN && t->cycle.by == WIRE_CYCLE_BY_TIMER && number != clock_nanosleep &&
	    number != nanosleep && number != restart_syscall)
		return 0;
	if (t->phase != WAITING && t->phase != WOKEN)
		return 0;
	t->phase = INTERRUPTED;
	return 1;
}

INLINE bool is_absolute(const struct call *call)
{
	return call->number == clock_nanosleep && call->operation;
}

/* --- Timers that expire while nobody waits for them --- */

INLINE bool is_release_timer(const void *function)
{
	u64 address = (u64)function;

	return address && (address == expiries[0] || address == expiries[1] || address == expiries[2]);
}

INLINE struct own_timer *own_timer(struct attached *t, u64 timer)
{
	for (u32 i = 0; i < TIMERS; i++)
		if (t->timers[i].timer == timer)
			return &t->timers[i];
	return 0;
}

INLINE bool is_ended_by(const struct own_timer *own, const struct call *call)
{
	return own->timer && own->call == call->number && own->operation == call->operation &&
	       (own->argument == call->argument || own->argument >= FILES_END);
}

/* The thread was released in this call by this timer, or started it there anew. */
NOINLINE int keep_timer(struct attached *t, u32 tid, u64 timer, const struct call *call)
{
	struct own_timer *own;

	if (!t || !call)
		return 0;
	own = own_timer(t, timer);
	if (!own) {
		own = &t->timers[t->next_timer++ & (TIMERS - 1)];
		own->timer = timer;
		own->due = 0;
		own->expired = 0;
		own->taken = 0;
		bpf_map_update_elem(&timers, &timer, &tid, 0);
	}
	own->argument = call->argument;
	own->call = call->number;
	own->operation = call->operation;
	return 0;
}

NOINLINE int expired(u64 timer, u64 at)
{
	u32 *tid = bpf_map_lookup_elem(&timers, &timer);
	struct attached *t = tid ? attached_of(*tid) : 0;
	struct own_timer *own = t ? own_timer(t, timer) : 0;

	if (own && !own->expired)
		own->expired = at;
	return 0;
}

/* Whatever expired before a call returned, the call has returned for it. The kernel starts a timer
 * anew when its expiry is taken: what it expires to afterwards is for the next call. The first
 * expiry of all, and whose. Inlined, each of its paths would be one of the verifier's through all
 * that follows: 1.3 s at each start. */
GLOBAL int take_expired(struct attached *t, const struct call *call)
{
	if (!t || !call)
		return 0;
	t->passed = 0;
	for (u32 i = 0; i < TIMERS; i++) {
		struct own_timer *own = &t->timers[i];
		u64 at;

		if (!is_ended_by(own, call))
			continue;
		at = own->taken ? own->taken : own->expired;
		if (own->taken)
			own->taken = 0;
		else
			own->expired = 0;
		if (at && (!t->passed || at < t->passed)) {
			t->passed = at;
			t->passed_timer = own->timer;
			t->passed_by = WIRE_CYCLE_BY_TIMER;
		}
	}
	return 0;
}

NOINLINE int set_due(struct attached *t, u64 timer, u64 due)
{
	struct own_timer *own = t ? own_timer(t, timer) : 0;

	if (own)
		own->due = due;
	return 0;
}

/* Where its expiry was not seen, a timer of the thread that was due while it waited released it. */
GLOBAL int due_timer(struct attached *t, u64 now)
{
	if (!t)
		return 0;
	for (u32 i = 0; i < TIMERS; i++) {
		struct own_timer *own = &t->timers[i];
		u64 due = own->due;

		if (own->timer && due > t->entered && due < now && (!t->passed || due < t->passed)) {
			t->passed = due;
			t->passed_timer = own->timer;
			t->passed_by = WIRE_CYCLE_BY_TIMER;
		}
	}
	return 0;
}

/* A timer is started: by a watched thread in a call that waits for it, or that reads it. */
PROGRAM(attach_hrtimer_start)
{
	struct hrtimer *timer = (void *)ctx[0];
	struct call call = {};
	struct own_timer *own;
	struct task_struct *task;
	struct pt_regs *regs;
	struct attached *t;
	struct cpu *cpu;
	u64 address = ctx[0];
	u32 tid;

	if (likely(!is_release_timer(timer->function)))
		return 0;
	tid = own_id();
	t = attached_of(tid);
	cpu = t ? cpu_here() : 0;
	/* A handler may start it, whomever it has interrupted. */
	if (!cpu || !t->call || cpu->depth || cpu->expires)
		return 0;
	task = bpf_get_current_task_btf();
	regs = bpf_task_pt_regs(task);
	read_call(task, regs, &call);
	own = own_timer(t, address);
	if (own && is_ended_by(own, &call)) {
		if (!own->taken)
			own->taken = own->expired;
	} else if (!own && ends_cycle(t, &call, regs)) {
		keep_timer(t, tid, address, &call);
	}
	if (own)
		own->expired = 0;
	set_due(t, address, timer->_softexpires - timer->base->offset);
	return 0;
}

/* --- Periods of SCHED_DEADLINE --- */

/* The task gave the rest of its runtime back, and sleeps until its next period begins. */
INLINE bool ends_period(struct task_struct *task)
{
	struct call call = {};

	return task->policy == SCHED_DEADLINE && read_call(task, bpf_task_pt_regs(task), &call) &&
	       call.number == sched_yield && is_out_of_runtime(task);
}

/* When its period began by the scheduler's own clock: not where it is more than a period late, and
 * is given another one. */
INLINE u64 period_begin(struct task_struct *task)
{
	return task->dl.deadline - task->dl.dl_deadline;
}

/* The two clocks are compared at each release whose timer is known, and no farther apart than they
 * then were. */
INLINE void compare_clocks(struct attached *t, struct task_struct *task)
{
	struct wire_cycle *c = &t->cycle;

	if (c->by == WIRE_CYCLE_BY_PERIOD && c->timer && later(c->woken, c->release) < task->dl.dl_period)
		t->ahead = c->release - period_begin(task);
}

/* The next period had begun before the task ended the one before: no timer is started. */
INLINE void period_passed(struct attached *t, struct task_struct *task, u64 now)
{
	if (!t->ahead)
		return;
	t->passed = period_begin(task) + t->ahead;
	if (t->passed > now)
		t->passed = now;
	t->passed_timer = 0;
	t->passed_by = WIRE_CYCLE_BY_PERIOD;
}

/* --- Sums --- */

INLINE void clear_sums(struct attached *t)
{
#pragma unroll
	for (u32 i = 0; i < WIRE_CYCLE_PARTS; i++)
		t->account.wait[i] = 0;
}

/* From now on the sums are those of the call under way. */
INLINE void set_apart(struct attached *t)
{
	if (t->apart)
		return;
#pragma unroll
	for (u32 i = 0; i < WIRE_CYCLE_PARTS; i++) {
		t->before[i] = t->account.wait[i];
		t->account.wait[i] = 0;
	}
	t->apart = 1;
}

INLINE void put_together(struct attached *t)
{
	if (!t->apart)
		return;
#pragma unroll
	for (u32 i = 0; i < WIRE_CYCLE_PARTS; i++)
		t->account.wait[i] += t->before[i];
	t->apart = 0;
}

INLINE void set_from(struct attached *t, struct cpu *cpu, u64 now)
{
	struct wire_account_thread *a = &t->account;

	a->from = now;
	a->hard = hard_until(cpu, now);
	a->soft = soft_until(cpu, now, a->hard);
	t->stolen = cpu->stolen;
}

/* --- Steal --- */

/* An exit from idle takes a few µs by itself. */
#define STEAL_LEAST 20000

/* The steal clock of this CPU as the scheduler read it last, which it does at each switch. 0 where
 * the kernel keeps none (CONFIG_PARAVIRT_TIME_ACCOUNTING). */
INLINE u64 steal_clock(struct task_struct *task)
{
	struct cfs_rq *group = 0;
	struct rq *rq = 0;

	if (!field_exists(group->rq) || !field_exists(rq->prev_steal_time_rq))
		return 0;
	return task->se.cfs_rq->rq->prev_steal_time_rq;
}

/* Without a jump: the verifier would follow both ways of each through all that comes after. */
INLINE u64 take(u64 *parts, u32 part, u64 most)
{
	i64 more = parts[part] - most, below = more >> 63;
	u64 took;

	asm volatile("" : "+r"(below));
	took = most + (more & below);
	parts[part] -= took;
	parts[WIRE_PART_STEAL] += took;
	return took;
}

/* So much of what it ran was stolen; the rest of `stolen`. */
INLINE u64 take_own(u64 *parts, u64 stolen)
{
	stolen -= take(parts, WIRE_PART_ITSELF, stolen);
	return stolen - take(parts, WIRE_PART_KERNEL, stolen);
}

/* The clock went on while the thread ran: it is read at switches, so that the time was counted as
 * its own meanwhile. Of the cycle and the call under way it is the one that ran longer. */
GLOBAL int stolen_from_run(struct attached *t, struct cpu *cpu)
{
	u64 stolen, *wait, *before;

	if (!t || !cpu)
		return 0;
	stolen = later(cpu->stolen, t->stolen);
	t->stolen = cpu->stolen;
	wait = t->account.wait;
	before = t->before;
	if (t->apart && t->phase == OPEN &&
	    before[WIRE_PART_ITSELF] + before[WIRE_PART_KERNEL] >
		    wait[WIRE_PART_ITSELF] + wait[WIRE_PART_KERNEL])
		stolen = take_own(before, stolen);
	take_own(wait, stolen);
	return 0;
}

/* The same while it was ready. What the clock counted may have been before the wake-up: then only
 * what is more than that time is proven, and a late interrupt that it covers. */
GLOBAL int stolen_from_wait(struct attached *t, u64 clock)
{
	u64 stolen, unsure, late, *wait;

	if (!t)
		return 0;
	stolen = later(clock, t->stolen);
	t->stolen = clock;
	wait = t->account.wait;
	unsure = t->unsure;
	t->unsure = 0;
	late = wait[WIRE_PART_TIMER_LATE] + wait[WIRE_PART_IDLE_EXIT];
	if (unsure && t->phase == WOKEN && t->account.timer_cpu == t->account.cpu &&
	    late >= STEAL_LEAST && late <= stolen) {
		take(wait, WIRE_PART_TIMER_LATE, late);
		take(wait, WIRE_PART_IDLE_EXIT, late);
		stolen -= late;
		unsure = later(unsure, late);
	}
	stolen = later(stolen, unsure);
	stolen -= take(wait, WIRE_PART_PREEMPTED, stolen);
	stolen -= take(wait, WIRE_PART_RUNQUEUE, stolen);
	stolen -= take(wait, WIRE_PART_NOT_SWITCHED, stolen);
	stolen -= take(wait, WIRE_PART_THROTTLED, stolen);
	take(wait, WIRE_PART_IDLE_EXIT, stolen);
	return 0;
}

/* What a thread does that runs. */
INLINE u32 own_part(struct attached *t)
{
	if (t->reclaiming)
		return WIRE_PART_RECLAIM_RAN;
	if (t->faulting)
		return WIRE_PART_FAULT_RAN;
	return t->call ? WIRE_PART_KERNEL : WIRE_PART_ITSELF;
}

/* The time that a running thread had until now. */
GLOBAL int ran_until(struct attached *t, struct cpu *cpu, u64 now)
{
	if (!t || !cpu)
		return 0;
	divide(&t->account, cpu, now, own_part(t));
	t->returning_from_wait = 0;
	return 0;
}

/* The call returns in which it waited: what came since it was switched to is the switch, of which
 * no event shows a nearer end. */
GLOBAL int returned(struct attached *t, struct cpu *cpu, u64 now)
{
	if (!t || !cpu || !t->returning_from_wait)
		return ran_until(t, cpu, now);
	t->returning_from_wait = 0;
	divide(&t->account, cpu, now, WIRE_PART_SWITCH);
	return 0;
}

/* It changes its state at `now`. */
INLINE void spend(struct attached *t, u64 now)
{
	struct wire_times *times = &t->times;

	times->state[t->state & 3] += later(now, times->since);
	times->since = now;
}

INLINE void set_state(struct attached *t, u32 state, u64 now)
{
	spend(t, now);
	t->state = state;
	t->times.now = state;
}

/* --- Threads that poll --- */

/* It waits for nothing: it never did, or not for long. */
INLINE bool is_polling(struct attached *t, u64 now)
{
	return t->phase == NO_CYCLE ||
	       (t->phase == OPEN && later(now, t->cycle.returned) > WIRE_POLLS_AFTER);
}

/* The CPU is taken from it, unless it gives it away. */
GLOBAL int begin_gap(struct attached *t, u64 now)
{
	if (!t || !is_polling(t, now) || (t->call && t->call - 1 == sched_yield))
		return 0;
	t->taken = now;
	t->by = 0;
	t->by_ns = 0;
#pragma unroll
	for (u32 i = 0; i < WIRE_CYCLE_PARTS; i++)
		t->untaken[i] = t->account.wait[i];
	return 0;
}

/* Half of a buffer is for the cycles alone. */
INLINE bool has_room(struct buffer *buffer)
{
	u64 used = *(volatile u64 *)&buffer->at.head - *(volatile u64 *)&buffer->at.tail;

	if (likely(used <= mask / 2))
		return true;
	fetch_add(&buffer->at.refused, 1);
	return false;
}

INLINE int emit_gap(struct attached *t, struct wire_gap *gap, u32 tid, u64 now)
{
	u32 cpu = bpf_get_smp_processor_id();
	struct buffer *buffer = buffer_here(cpu);

	if (!buffer)
		return 0;
	if (unlikely(!has_room(buffer)))
		t->times.lost_gaps++;
	else
		emit_to(buffer, now, tid, WIRE_GAP, cpu, (const u64 *)gap, sizeof(*gap) / 8);
	return 0;
}

/* It has the CPU again. */
GLOBAL int end_gap(struct attached *t, u32 tid, u64 now)
{
	struct wire_gap *gap = t ? &t->gap : 0;

	if (!t || !gap || !t->taken)
		return 0;
	gap->begin = t->taken;
	gap->by = t->by;
	gap->by_ns = t->by_ns;
	__builtin_memcpy(gap->by_comm, t->by_comm, sizeof(gap->by_comm));
#pragma unroll
	for (u32 i = 0; i < WIRE_CYCLE_PARTS; i++)
		gap->parts[i] = later(t->account.wait[i], t->untaken[i]);
	t->taken = 0;
	return emit_gap(t, gap, tid, now);
}

/* Another task had the CPU meanwhile. */
INLINE void gap_by(struct attached *t, u64 took, u32 tid, const void *comm)
{
	if (likely(!t->taken) || (t->by != tid && took <= t->by_ns))
		return;
	if (t->by != tid) {
		t->by = tid;
		t->by_ns = 0;
		bpf_probe_read_kernel(t->by_comm, sizeof(t->by_comm), comm);
	}
	t->by_ns += took;
}

/* --- The cycle --- */

/* The record of a cycle, which is counted for its thread where the buffer is full. A part of the
 * buffer is left to the ends of threads, whose records have these counts. */
INLINE void emit_cycle(struct attached *t, struct buffer *buffer, u64 release, u32 tid, u8 kind,
		       u32 cpu, const void *record, u32 bytes)
{
	u64 limit = mask - mask / 32;

	if (unlikely(!try_emit(buffer, release, tid, kind, cpu, record, bytes / 8, limit)))
		t->times.lost_cycles++;
}

/* The cycle that is open ends: its last wait was entered at `again`. Its sums are in `before`. */
GLOBAL int publish_cycle(struct attached *t, u32 tid, u64 again)
{
	u32 cpu = bpf_get_smp_processor_id();
	struct buffer *buffer = buffer_here(cpu);

	if (!t || !buffer)
		return 0;
	t->cycle.again = again;
#pragma unroll
	for (u32 i = 0; i < WIRE_CYCLE_PARTS; i++)
		t->cycle.run[i] = t->before[i];
	emit_cycle(t, buffer, t->cycle.release, tid, WIRE_CYCLE, cpu, &t->cycle,
		   sizeof(struct wire_cycle));
	return 0;
}

/* --- Where the thread was --- */

INLINE i32 user_stack(void *ctx)
{
	return bpf_get_stackid(ctx, &stacks, BPF_F_USER_STACK | BPF_F_FAST_STACK_CMP);
}

/* Where it left the CPU, or was interrupted; what it did itself; where another task woke it, and
 * where the holder of a lock was meanwhile. */
enum { COPIES_OF_DELAYS, COPIES_OF_ACTIONS, COPIES_OF_WAKERS, COPIES_OF_HOLDERS };

INLINE bool may_copy(struct attached *t, u32 kind, u64 now)
{
	if (!copy_stacks)
		return false;
	if (now - t->copied_since[kind & 3] > WIRE_COPIES_EVERY) {
		t->copied_since[kind & 3] = now;
		t->copied[kind & 3] = 0;
	}
	return t->copied[kind & 3] < WIRE_COPIES_IN_A_ROW;
}

INLINE bool read_user_regs(__attribute__((unused)) struct wire_stack_copy *to)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct pt_regs *regs = bpf_task_pt_regs(task);

	/* A thread of the kernel has no user stack. */
	if (task->flags & PF_KTHREAD || is_compat(task))
		return false;
#if defined(TARGET_x86_64)
	to->ip = regs->ip;
	to->sp = regs->sp;
	to->bp = regs->bp;
	to->lr = 0;
	return true;
#elif defined(TARGET_aarch64)
	to->ip = regs->pc;
	to->sp = regs->sp;
	to->bp = regs->regs[29];
	to->lr = regs->regs[30];
	return true;
#else
	return false;
#endif
}

/* The number of a free copy + 1, which has the time `now` from then on; 0: there is none. */
NOINLINE int take_copy(struct attached *t, u32 kind, u64 now)
{
	if (!t || !may_copy(t, kind, now))
		return 0;
#pragma unroll
	for (u32 i = 0; i < 4; i++) {
		u32 number = ((u32)(now >> 10) + i * 31) & (WIRE_STACK_COPIES - 1);
		struct stack_copy *copy = bpf_map_lookup_elem(&copies, &number);

		if (copy && !__sync_val_compare_and_swap(&copy->head.taken, 0, now))
			return number + 1;
	}
	return 0;
}

/* The number of the copy + 1, which has the time `now`; 0: there is none. */
NOINLINE int copy_stack(struct attached *t, u32 kind, u64 now)
{
	u64 pid_tgid = own_ids(), left, bytes = 0;
	u32 number = take_copy(t, kind, now);
	struct stack_copy *copy;

	if (!t || !number--)
		return 0;
	copy = bpf_map_lookup_elem(&copies, &number);
	if (!copy)
		return 0;
	if (!read_user_regs(&copy->head)) {
		copy->head.taken = 0;
		return 0;
	}
	t->copied[kind & 3]++;
	copy->head.tid = pid_tgid;
	copy->head.process = pid_tgid >> 32;
	left = WIRE_STACK_PAGE - (copy->head.sp & (WIRE_STACK_PAGE - 1));
	asm volatile("" : "+r"(left));
	if (left <= WIRE_STACK_PAGE &&
	    !bpf_probe_read_user(copy->bytes, left, (void *)copy->head.sp)) {
		bytes = left;
#pragma unroll
		for (u32 i = 1; i < WIRE_STACK_BYTES / WIRE_STACK_PAGE; i++) {
			if (bpf_probe_read_user(copy->bytes + bytes, WIRE_STACK_PAGE,
						(void *)(copy->head.sp + bytes)))
				break;
			bytes += WIRE_STACK_PAGE;
		}
	}
	copy->head.bytes = bytes;
	return number + 1;
}

/* No record will name it. */
GLOBAL int forget_copy(u32 number)
{
	struct stack_copy *copy;

	if (!number--)
		return 0;
	copy = bpf_map_lookup_elem(&copies, &number);
	if (copy)
		copy->head.taken = 0;
	return 0;
}

/* A copy of the copy `number` + 1, as `copy_stack`. */
NOINLINE int copy_again(struct attached *t, u32 of, u64 taken, u64 now)
{
	struct stack_copy *from, *copy;
	u32 number;

	if (!t || !of--)
		return 0;
	from = bpf_map_lookup_elem(&copies, &of);
	if (!from || from->head.taken != taken)
		return 0;
	number = take_copy(t, COPIES_OF_HOLDERS, now);
	if (!number--)
		return 0;
	copy = bpf_map_lookup_elem(&copies, &number);
	if (!copy)
		return 0;
	t->copied[COPIES_OF_HOLDERS]++;
	bpf_probe_read_kernel(&copy->head.ip, sizeof(*copy) - sizeof(copy->head.taken),
			      &from->head.ip);
	return number + 1;
}

/* What the running thread does itself within a cycle; `t` may be what it was before. */
NOINLINE int acts(struct attached *t, u32 tid, u32 kind, u32 call, u64 now)
{
	u32 cpu = bpf_get_smp_processor_id();
	struct buffer *buffer = buffer_here(cpu);
	struct wire_moment *m;
	u32 copy;

	if (!t || !buffer || (t->phase != OPEN && t->stage < RETURN_POSTPONED) || !has_room(buffer))
		return 0;
	copy = copy_stack(t, COPIES_OF_ACTIONS, now);
	if (!copy)
		return 0;
	m = &t->instant;
	m->begin = now;
	m->slept = 0;
	m->stack = -1;
	m->next = 0;
	m->call = call;
	m->kind = kind;
	m->within = 0;
	m->copy = copy;
	m->waker = 0;
	m->waker_copy = 0;
	m->holder = 0;
	m->holder_copy = 0;
	return emit_to(buffer, now, tid, WIRE_MOMENT, cpu, (const u64 *)m, sizeof(*m) / 8);
}

INLINE void forget_copies(struct wire_moment *m)
{
	forget_copy(m->copy);
	forget_copy(m->waker_copy);
	forget_copy(m->holder_copy);
}

/* The running thread leaves its CPU to `next` within a cycle. */
NOINLINE int begin_moment(void *ctx, struct attached *t, struct task_struct *next, u32 kind,
			  u64 now)
{
	struct wire_moment *m;

	if (!t || !next || (t->phase != OPEN && t->phase != WOKEN) ||
	    t->moments >= WIRE_CYCLE_MOMENTS)
		return 0;
	t->moments++;
	m = &t->moment;
	if (unlikely(m->begin))
		forget_copies(m);
	m->begin = now;
	m->slept = 0;
	m->waker = 0;
	m->waker_copy = 0;
	m->holder = 0;
	m->holder_copy = 0;
	m->kind = kind;
	m->within = t->within;
	m->call = t->call;
	m->next = id_of(next);
	bpf_probe_read_kernel(m->next_comm, sizeof(m->next_comm), &next->comm);
	m->copy = copy_stack(t, COPIES_OF_DELAYS, now);
	m->stack = m->copy ? -1 : user_stack(ctx);
	return 0;
}

GLOBAL int end_moment(struct attached *t, u32 tid, u64 now)
{
	u32 cpu = bpf_get_smp_processor_id();
	struct buffer *buffer = buffer_here(cpu);

	if (!t || !buffer || !t->moment.begin)
		return 0;
	if (has_room(buffer))
		emit_to(buffer, now, tid, WIRE_MOMENT, cpu, (const u64 *)&t->moment,
			sizeof(struct wire_moment) / 8);
	else
		forget_copies(&t->moment);
	t->moment.begin = 0;
	return 0;
}

/* The thread `tid` has begun to sleep for a lock: what does its holder? */
NOINLINE int watch_holder(struct attached *t, u32 tid, u64 now)
{
	struct attached *other;
	struct wire_moment *m;

	if (!t || !t->moment.begin || !t->holder || t->holder_by & WIRE_HOLDER_IN_NAMESPACE)
		return 0;
	other = t->holder == tid ? 0 : attached_of(t->holder);
	if (!other)
		return 0;
	m = &t->moment;
	m->holder = t->holder;
	m->holder_call = 0;
	m->holder_off = 0;
	m->holder_seen = now;
	m->holder_did = 0;
	t->holder_left = 0;
	other->holds_for = t->number;
	if (other->state != READY && other->state != ASLEEP)
		return 0;
	/* Its registers and its stack can be read only where it runs. */
	t->holder_left = now;
	m->holder_did = other->state == READY ? WIRE_HOLDING_PREEMPTED : WIRE_HOLDING_ASLEEP;
	m->holder_call = other->call;
	if (other->moment.begin)
		m->holder_copy = copy_again(t, other->moment.copy, other->moment.begin, now);
	return 0;
}

/* The thread that sleeps for a lock of the running thread `tid`, which holds it still. */
INLINE struct attached *sleeper_for(struct attached *t, u32 tid)
{
	u32 number = t->holds_for;
	struct attached *sleeper = bpf_map_lookup_elem(&values, &number);

	if (sleeper && sleeper->state == ASLEEP && sleeper->holder == tid &&
	    sleeper->moment.begin && sleeper->moment.holder == tid)
		return sleeper;
	t->holds_for = 0;
	return 0;
}

/* The running thread holds a lock for which another one sleeps: its first action is kept, or that
 * it leaves its CPU in that system call. */
NOINLINE int holder_acts(struct attached *t, u32 tid, u32 call, u32 does, u64 now)
{
	struct attached *sleeper;
	struct wire_moment *m;

	if (!t)
		return 0;
	sleeper = sleeper_for(t, tid);
	if (!sleeper)
		return 0;
	m = &sleeper->moment;
	if (does != WIRE_HOLDING_CALLED)
		sleeper->holder_left = now;
	if (m->holder_did > WIRE_HOLDING_CALLED || (m->holder_did && does == WIRE_HOLDING_CALLED))
		return 0;
	if (!m->holder_did || m->holder_call != call) {
		forget_copy(m->holder_copy);
		m->holder_seen = now;
		m->holder_copy = copy_stack(sleeper, COPIES_OF_HOLDERS, now);
	}
	m->holder_call = call;
	m->holder_did = does;
	return 0;
}

/* It has a CPU again. */
NOINLINE int holder_arrives(struct attached *t, u32 tid, u64 now)
{
	struct attached *sleeper;

	if (!t)
		return 0;
	sleeper = sleeper_for(t, tid);
	if (sleeper && sleeper->holder_left) {
		sleeper->moment.holder_off += later(now, sleeper->holder_left);
		sleeper->holder_left = 0;
	}
	return 0;
}

/* The running task ends the sleep of a thread within a cycle, if it is a task that does: where. */
NOINLINE int ends_sleep(struct attached *t, u64 now)
{
	struct wire_moment *m;

	if (!t)
		return 0;
	if (unlikely(t->holder_left)) {
		t->moment.holder_off += later(now, t->holder_left);
		t->holder_left = 0;
	}
	if (!t->moment.begin || t->waker.by != WIRE_CYCLE_BY_TASK ||
	    t->waker.tid != own_id())
		return 0;
	m = &t->moment;
	m->woken = now;
	m->waker = t->waker.tid;
	__builtin_memcpy(m->waker_comm, t->waker.comm, sizeof(m->waker_comm));
	m->waker_copy = copy_stack(t, COPIES_OF_WAKERS, now);
	return 0;
}

/* A timer interrupts the running thread: what it did shows where its own time goes. Once for all
 * timers of an interrupt that began at `since`. */
NOINLINE int ran_here(void *ctx, u32 tid, u64 since)
{
	u32 cpu = bpf_get_smp_processor_id();
	struct buffer *buffer = buffer_here(cpu);
	struct attached *t = attached_of(tid);
	struct wire_moment m = { .kind = WIRE_MOMENT_RAN };

	if (!t || !buffer || t->state != RUNNING ||
	    (t->phase != OPEN && t->stage < RETURN_POSTPONED) ||
	    t->moments >= WIRE_CYCLE_MOMENTS || (since && t->shown == since))
		return 0;
	t->shown = since;
	if (!has_room(buffer))
		return 0;
	t->moments++;
	m.begin = bpf_ktime_get_ns();
	m.call = t->call;
	m.copy = copy_stack(t, COPIES_OF_DELAYS, m.begin);
	m.stack = m.copy ? -1 : user_stack(ctx);
	return emit_to(buffer, m.begin, tid, WIRE_MOMENT, cpu, (const u64 *)&m, sizeof(m) / 8);
}

GLOBAL int show_place(struct attached *t, u32 tid)
{
	u32 cpu = bpf_get_smp_processor_id(), number, left = WIRE_WAIT_WORDS * 8;
	struct buffer *buffer = buffer_here(cpu);
	struct wire_stack_copy at = {};
	struct wire_selection *of;
	struct wire_wait *w;

	if (!t || !buffer)
		return 0;
	number = t->number;
	of = bpf_map_lookup_elem(&selections, &number);
	/* Nobody compares those of a thread whose call is selected. */
	if (!of || of->how || !read_user_regs(&at)) {
		t->waits_shown = WIRE_WAITS_SHOWN;
		return 0;
	}
	t->waits_shown++;
	/* Half of the buffer is for the cycles alone. */
	if (*(volatile u64 *)&buffer->at.head - *(volatile u64 *)&buffer->at.tail > mask / 2)
		return 0;
	w = &t->wait;
	w->entered = t->cycle.entered;
	w->ip = at.ip;
	w->sp = at.sp;
	w->bp = at.bp;
	w->lr = at.lr;
	w->process = t->process;
	if (bpf_probe_read_user(w->stack, sizeof(w->stack), (void *)at.sp)) {
		/* No page follows that of the pointer. */
		left = (WIRE_STACK_PAGE - (at.sp & (WIRE_STACK_PAGE - 1))) & (WIRE_WAIT_WORDS * 8 - 1);
		asm volatile("" : "+r"(left));
		if (left >= WIRE_WAIT_WORDS * 8 || bpf_probe_read_user(w->stack, left, (void *)at.sp))
			left = 0;
	}
	w->words = left / 8;
	if (!w->words)
		return 0;
	return emit_to(buffer, w->entered, tid, WIRE_WAIT, cpu, (const u64 *)w, sizeof(*w) / 8);
}

/* The running thread's cycle begins to wait: where, while it is not known which of its waits that
 * is. */
INLINE void show_wait(struct attached *t, u32 tid)
{
	if (unlikely(t->waits_shown < WIRE_WAITS_SHOWN))
		show_place(t, tid);
}

INLINE void next_cycle(struct attached *t, const struct call *call, u64 entered, u32 within)
{
	struct wire_cycle *c = &t->cycle;

	c->entered = entered;
	c->argument = call->argument;
	c->call = call->number;
	c->operation = call->operation;
	c->within = within;
	c->blocked = 0;
	c->culprit_ns = 0;
	c->culprit_behind = 0;
	c->longest_ns = 0;
	c->blocks = 0;
	c->elsewhere = 0;
	c->migrations = 0;
	c->syscalls = 0;
	c->faults = 0;
	c->calls = 0;
	c->written = 0;
	c->culprit = 0;
	t->rival = 0;
	t->rival_ns = 0;
	c->longest = 0;
	c->holder_ns = 0;
	c->holder = 0;
	c->holder_waits = 0;
	c->holder_by = 0;
	c->awaited = 0;
	c->awaited_ns = 0;
	c->likely = 0;
	c->likely_ns = 0;
	c->hidden = 0;
	t->moments = 0;
	t->stopped = 0;
	t->held_up = 0;
}

/* Beyond the end of a stack there is another one, if any. */
#define STACK 16384

/* A softirq that an interrupt left follows it at once. Others run where a task lets them, which has
 * raised them: it has sent a packet to this machine itself. */
#define AT_ONCE 1000

/* The timer of a sleep or a timeout is on the stack of who sleeps. */
INLINE u32 timer_waker(struct cpu *here, struct task_struct *task)
{
	return here->timer - (u64)task->stack < STACK ? WIRE_CYCLE_BY_SLEEP : WIRE_CYCLE_BY_TIMER;
}

INLINE void set_waker(struct attached *t, struct cpu *here, struct task_struct *task)
{
	struct waker *waker = &t->waker;
	u64 soft = here->soft[here->soft_now & 1].since;

	waker->timer = here->expires ? here->timer : 0;
	waker->tid = own_id();
	bpf_get_current_comm(waker->comm, sizeof(waker->comm));
	if (here->expires)
		waker->by = timer_waker(here, task);
	else if (here->hard_since)
		waker->by = WIRE_CYCLE_BY_IRQ;
	else if (soft && later(soft, here->hard_ended) <= AT_ONCE)
		waker->by = WIRE_CYCLE_BY_SOFTIRQ;
	else
		waker->by = WIRE_CYCLE_BY_TASK;
}

/* The timer that ended the wait may expire when nobody waits for it. */
GLOBAL int keep_release_timer(struct attached *t, u32 tid, u64 address, struct call *call)
{
	struct hrtimer *timer = (void *)address;
	void *function = 0;

	bpf_probe_read_kernel(&function, sizeof(function), &timer->function);
	if (is_release_timer(function))
		keep_timer(t, tid, address, call);
	return 0;
}

INLINE void keep_waker(struct attached *t, u32 tid, struct waker *waker)
{
	struct call call = { t->cycle.argument, t->cycle.call, t->cycle.operation, 0, 0 };

	if (waker->by == WIRE_CYCLE_BY_TIMER)
		keep_release_timer(t, tid, waker->timer, &call);
}

/* The release came before the call that waits for it, which returns at once. What
 * was summed up since the call was entered belongs to the cycle. */
INLINE void release_passed(struct attached *t, u64 now, u32 part)
{
	struct wire_cycle *c = &t->cycle;
	u64 expires = t->passed, timer = t->passed_timer;

	t->phase = WOKEN;
	t->waker = (struct waker){};
	c->release = expires;
	c->woken = expires > t->entered ? expires : t->entered;
	c->by = t->passed_by;
	c->timer = timer;
	c->waker = 0;
	__builtin_memset(c->waker_comm, 0, sizeof(c->waker_comm));
	if (expires > t->entered) {
		clear_sums(t);
		add(&t->account, WIRE_PART_KERNEL, later(now, expires));
	} else {
		add(&t->account, part, t->entered - expires);
	}
}

/* The wait of the cycle is over: at `now` the thread was woken, by a timer that was due at
 * `expires` or by somebody else (0). The sums of the cycle begin with what lies before. What the
 * CPU did from `account.begin` until `now` is still to be divided. */
GLOBAL int begin_cycle(struct attached *t, u32 tid, struct waker *waker, u64 now, u64 expires)
{
	struct wire_account_thread *a;
	u64 at;

	if (!t || !waker)
		return 0;
	a = &t->account;
	clear_sums(t);
	t->phase = WOKEN;
	t->cycle.woken = now;
	t->cycle.by = waker->by;
	t->cycle.timer = waker->timer;
	t->cycle.waker = waker->tid;
	__builtin_memcpy(t->cycle.waker_comm, waker->comm, sizeof(waker->comm));
	t->cycle.release = expires && expires < now ? expires : now;
	at = t->cycle.release;
	keep_waker(t, tid, waker);
	/* The timer was due before the wait began: the cycle before took so long. */
	add(a, WIRE_PART_OVERRUN, later(t->entered < now ? t->entered : now, at));
	at = at > t->entered ? at : t->entered;
	add(a, t->stopped ? WIRE_PART_STOPPED : WIRE_PART_KERNEL,
	    later(t->slept < now ? t->slept : now, at));
	a->begin = at > t->slept ? at : t->slept;
	/* Until then its timer was not to expire. */
	if (t->slack_end > a->begin && a->begin < now) {
		at = t->slack_end < now ? t->slack_end : now;
		add(a, WIRE_PART_SLACK, at - a->begin);
		a->begin = at;
	}
	t->slack_end = 0;
	return 0;
}

GLOBAL int release(struct attached *t, u32 tid, struct cpu *here, u64 now, u64 expires)
{
	if (!t || !here)
		return 0;
	begin_cycle(t, tid, &t->waker, now, expires);
	if (t->account.begin < now)
		overdue(&t->account, here, t->account.begin, now);
	return 0;
}

/* The same where the wake-up was not seen: events of an idle CPU may not be shown to programs. The
 * timer that fired last on this CPU, or what the thread asked for, or the timer that the call
 * returned for, shows when. */
NOINLINE int release_unseen(struct attached *t, u32 tid, struct cpu *cpu, u64 now)
{
	struct task_struct *task;
	u64 expires = t ? t->asked : 0;

	if (!t || !cpu)
		return 0;
	t->waker = (struct waker){};
	task = bpf_get_current_task_btf();
	if (!t->passed && !expires && t->next_timer)
		due_timer(t, now);
	if (cpu->timer - (u64)task->stack < STACK && cpu->fired > t->entered && cpu->fired < now)
		expires = cpu->fired;
	if (task->policy == SCHED_DEADLINE && t->cycle.call == sched_yield) {
		struct hrtimer *timer = &task->dl.dl_timer;

		expires = timer->_softexpires - timer->base->offset;
		t->waker.by = WIRE_CYCLE_BY_PERIOD;
		t->waker.timer = (u64)timer;
	} else if (t->passed) {
		expires = t->passed;
		t->waker.by = t->passed_by;
		t->waker.timer = t->passed_timer;
	} else if (expires && expires < now) {
		t->waker.by = WIRE_CYCLE_BY_SLEEP;
	}
	return release(t, tid, cpu, now, expires);
}

/* The waiting call returns: what came before is the wake-up. */
INLINE void returns(struct attached *t, u64 now)
{
	struct wire_cycle *c = &t->cycle;

	c->returned = now;
#pragma unroll
	for (u32 i = 0; i < WIRE_CYCLE_PARTS; i++)
		c->wake[i] = t->account.wait[i];
	clear_sums(t);
	t->apart = 0;
	t->phase = OPEN;
	c->syscalls = 0;
}

/* --- Whose lock --- */

/* Who holds the lock that the running thread is going to sleep for. */
NOINLINE int find_holder(struct attached *t, struct task_struct *task, const struct call *call)
{
	u32 words[3] = {}; /* of pthread_mutex_t: __lock, __count, __owner */
	struct attached *other;
	bool inherits, inside;

	if (!t || !task || !call)
		return 0;
	t->holder = 0;
	inherits = !is_plain_lock(call);
	/* In a PID namespace of its own a process has other ids, which user space knows. */
	inside = task->thread_pid->level;
	if (bpf_probe_read_user(words, inherits ? sizeof(words[0]) : sizeof(words),
				(void *)call->argument))
		return 0;
	if (inherits) {
		t->holder = words[0] & FUTEX_TID_MASK;
		t->holder_by = WIRE_HOLDER_PI;
		if (inside)
			t->holder_by |= WIRE_HOLDER_IN_NAMESPACE;
	} else if (words[0] == LOCKED_WITH_WAITERS && inside) {
		t->holder = words[2];
		t->holder_by = WIRE_HOLDER_MUTEX | WIRE_HOLDER_IN_NAMESPACE;
	} else if (words[0] == LOCKED_WITH_WAITERS) {
		/* The futex may belong to something else: the owner of a mutex is a thread of this process. */
		other = attached_of(words[2]);
		if (other && other->process == t->process)
			t->holder = words[2];
		t->holder_by = WIRE_HOLDER_MUTEX;
	}
	if (!inside && t->holder == id_of(task))
		t->holder = 0;
	return 0;
}

/* The wait for a lock is over: what it took is the holder's, or his who ended it. The one with the
 * longest waits of a cycle is kept. */
GLOBAL int lock_waited(struct attached *t, u64 now)
{
	struct wire_cycle *c;
	struct attached *other;
	u64 took;
	u32 tid, by;

	if (!t)
		return 0;
	c = &t->cycle;
	took = later(now, t->slept);
	tid = t->holder;
	by = t->holder_by;
	t->holder = 0;
	if (!tid && t->waker.by == WIRE_CYCLE_BY_TASK) {
		tid = t->waker.tid;
		by = WIRE_HOLDER_WAKER;
	}
	if (!tid || !took)
		return 0;
	if (c->holder == tid && c->holder_by == by) {
		c->holder_ns += took;
		c->holder_waits++;
		return 0;
	}
	if (took <= c->holder_ns)
		return 0;
	c->holder = tid;
	c->holder_by = by;
	c->holder_ns = took;
	c->holder_waits = 1;
	__builtin_memset(c->holder_comm, 0, sizeof(c->holder_comm));
	if (by & WIRE_HOLDER_IN_NAMESPACE)
		return 0;
	other = attached_of(tid);
	if (t->waker.by == WIRE_CYCLE_BY_TASK && t->waker.tid == tid)
		__builtin_memcpy(c->holder_comm, t->waker.comm, sizeof(c->holder_comm));
	else if (other && other->account.task)
		bpf_probe_read_kernel(c->holder_comm, sizeof(c->holder_comm),
				      &((struct task_struct *)other->account.task)->comm);
	return 0;
}

/* --- Events of a thread --- */

/* The thread became ready at `now`, to run on the CPU of that number. */
INLINE void become_ready(struct wire_account_thread *a, u32 number, u64 now)
{
	a->since = now;
	a->cpu = number;
	a->active = 1;
	a->blocked = 0;
}

INLINE void wait_for_cpu(struct attached *t, struct cpu *cpu, u32 number, u32 tid, u64 now)
{
	struct wire_account_thread *a = &t->account;

	set_state(t, READY, now);
	become_ready(a, number, now);
	t->stolen = cpu->stolen;
	t->unsure = 0;
	look(a, cpu, now);
	join(cpu, a, tid);
}

/* A wait within the cycle is over that was for no lock. Who ended the longest is kept. */
INLINE void awaited(struct attached *t, u64 took)
{
	struct wire_cycle *c = &t->cycle;
	struct waker *waker = &t->waker;
	u32 by = waker->by;

	if (c->awaited == waker->tid && c->awaited_by == by) {
		c->awaited_ns += took;
	} else if (took > c->awaited_ns) {
		c->awaited = waker->tid;
		c->awaited_by = by;
		c->awaited_ns = took;
		__builtin_memcpy(c->awaited_comm, waker->comm, sizeof(c->awaited_comm));
	}
}

/* Of a stop it is who stopped the thread, where that is known, and not who lets it go on. A signal
 * to a process is one to its first thread. */
GLOBAL int blame_stopper(struct attached *t)
{
	struct attached *of = t;

	if (!t)
		return 0;
	if (!t->stopper)
		of = attached_of(t->process);
	if (!of || !of->stopper)
		return 0;
	t->waker.tid = of->stopper;
	t->waker.by = WIRE_CYCLE_BY_TASK;
	__builtin_memcpy(t->waker.comm, of->stopper_comm, sizeof(t->waker.comm));
	/* Of the freezer each thread has its own. */
	t->stopper = 0;
	return 0;
}

/* Somebody wakes a thread that sleeps, which shall run on `target`. */
INLINE int wake_up(struct attached *t, struct cpu *here, u32 tid, u32 target, u64 now, u64 expires)
{
	struct wire_account_thread *a;
	struct cpu *there = cpu_of(target);
	u64 slept;

	if (!t || !here)
		return 0;
	a = &t->account;
	slept = later(now, a->from);
	if (t->state == ASLEEP && t->within == WIRE_PART_LOCK)
		lock_waited(t, now);
	if (t->phase == WAITING || (t->early && t->phase == WOKEN)) {
		release(t, tid, here, now, expires);
	} else if (t->state == ASLEEP) {
		add(a, t->within, slept);
		t->moment.slept = slept;
		ends_sleep(t, now);
		if (unlikely(t->within == WIRE_PART_STOPPED)) {
			blame_stopper(t);
			t->times.stopped += slept;
			t->held_up = t->phase == INTERRUPTED;
		}
		if (t->within != WIRE_PART_LOCK)
			awaited(t, slept);
		t->cycle.blocks++;
		t->cycle.blocked += slept;
	}
	t->early = 0;
	if (there) {
		wait_for_cpu(t, there, target, tid, now);
		a->timer_cpu = bpf_get_smp_processor_id();
		t->unsure = later(now, there->switched);
	}
	return 0;
}

/* What others had of the CPU while the thread was ready. */
INLINE u64 others_had(const u64 *wait)
{
	return wait[WIRE_PART_PREEMPTED] + wait[WIRE_PART_RUNQUEUE] + wait[WIRE_PART_NOT_SWITCHED] +
	       wait[WIRE_PART_THROTTLED];
}

/* Of this, those of the same or a higher priority. */
INLINE u64 betters_had(const u64 *wait)
{
	return wait[WIRE_PART_PREEMPTED] + wait[WIRE_PART_RUNQUEUE];
}

/* The sums of a second task are kept, so that the culprit is the one of both that had the most,
 * however many times they took turns. */
NOINLINE int blame_rival(struct attached *t, u64 took, u64 betters, u32 tid, const void *comm)
{
	struct wire_cycle *c;
	u64 ns, behind, name[2];
	u32 other;

	if (!t)
		return 0;
	c = &t->cycle;
	if (t->rival != tid) {
		if (took <= t->rival_ns)
			return 0;
		t->rival = tid;
		t->rival_ns = 0;
		t->rival_behind = 0;
		bpf_probe_read_kernel(t->rival_comm, sizeof(t->rival_comm), comm);
	}
	t->rival_ns += took;
	t->rival_behind += betters;
	if (t->rival_ns <= c->culprit_ns)
		return 0;
	ns = c->culprit_ns;
	behind = c->culprit_behind;
	other = c->culprit;
	__builtin_memcpy(name, c->culprit_comm, sizeof(name));
	c->culprit = t->rival;
	c->culprit_ns = t->rival_ns;
	c->culprit_behind = t->rival_behind;
	__builtin_memcpy(c->culprit_comm, t->rival_comm, sizeof(name));
	t->rival = other;
	t->rival_ns = ns;
	t->rival_behind = behind;
	__builtin_memcpy(t->rival_comm, name, sizeof(name));
	return 0;
}

/* Of what a ready thread waited since others had `before`, and betters `betters`, whoever ran until
 * now may be the culprit. */
INLINE void blame(struct attached *t, u64 before, u64 betters, u32 tid, const void *comm)
{
	struct wire_cycle *c = &t->cycle;
	u64 took = later(others_had(t->account.wait), before);

	if (!took || !tid)
		return;
	gap_by(t, took, tid, comm);
	betters = later(betters_had(t->account.wait), betters);
	if (c->culprit == tid) {
		c->culprit_ns += took;
		c->culprit_behind += betters;
	} else if (!c->culprit) {
		c->culprit = tid;
		c->culprit_ns = took;
		c->culprit_behind = betters;
		bpf_probe_read_kernel(c->culprit_comm, sizeof(c->culprit_comm), comm);
	} else {
		blame_rival(t, took, betters, tid, comm);
	}
}

/* --- What is postponed --- */

/* A timer wakes a thread that waits for its next cycle, and no other case: what the CPU did since
 * the timer was due are two changes at most, and nobody's quota matters. */
INLINE bool postpone_wake_up(struct attached *t, struct cpu *here, struct task_struct *task,
			     u32 tid, u32 number, u64 now)
{
	struct wire_ordinary *p = &t->postponed;
	u64 place = here->head;
	struct change *last = &here->changes[(place - 1) & (WIRE_ACCOUNT_CHANGES - 1)];
	struct change *before = &here->changes[(place - 2) & (WIRE_ACCOUNT_CHANGES - 1)];
	u32 target = task_cpu(task);
	struct cpu *there = cpu_of(target);
	i32 prio = task->prio;

	if (t->phase != WAITING || t->state != ASLEEP || t->reclaiming || t->faulting ||
	    !here->expires || before->at > here->expires || place < 2 || !there)
		return false;
	if (prio < DEADLINE || (prio >= REAL_TIME && is_throttled(task)))
		return false;
	p->woken = now;
	p->expires = here->expires;
	p->timer = here->timer;
	p->hard = hard_until(there, now);
	p->soft = soft_until(there, now, p->hard);
	p->changes[0] = before->at;
	p->changes[1] = before->doing;
	p->changes[2] = last->at;
	p->changes[3] = last->doing;
	t->account.task = (u64)task;
	p->slack_end = here->slack_end;
	p->prio = prio;
	p->cpu = target;
	p->timer_cpu = number;
	p->by = timer_waker(here, task);
	t->woken_stolen = there->stolen;
	t->woken_unsure = later(now, there->switched);
	p->waker = own_id();
	if (p->waker)
		bpf_get_current_comm(p->waker_comm, sizeof(p->waker_comm));
	t->stage = WAKE_UP_POSTPONED;
	set_state(t, READY, now);
	if (likely(takes_place(there, tid)))
		return true;
	set_state(t, ASLEEP, now);
	t->stage = NOTHING_POSTPONED;
	return false;
}

/* It is switched to where it was to run, and nothing else came in between. */
INLINE bool postpone_arrival(struct attached *t, struct cpu *cpu, u32 here,
			     struct task_struct *prev, u64 now)
{
	struct wire_ordinary *p = &t->postponed;

	if (t->stage != WAKE_UP_POSTPONED || p->cpu != here)
		return false;
	p->arrived = now;
	p->arrived_hard = hard_until(cpu, now);
	p->arrived_soft = soft_until(cpu, now, p->arrived_hard);
	t->arrived_stolen = cpu->stolen;
	p->ran = cpu->running;
	p->ran_prio = cpu->prio;
	p->before = id_of(prev);
	if (p->before)
		bpf_probe_read_kernel(p->before_comm, sizeof(p->before_comm), &prev->comm);
	t->stage = ARRIVAL_POSTPONED;
	return true;
}

INLINE bool postpone_return(struct attached *t, struct cpu *cpu, u64 now)
{
	struct wire_ordinary *p = &t->postponed;

	if (t->stage != ARRIVAL_POSTPONED || !t->call)
		return false;
	p->returned = now;
	p->returned_hard = hard_until(cpu, now);
	p->returned_soft = soft_until(cpu, now, p->returned_hard);
	t->stage = RETURN_POSTPONED;
	return true;
}

/* The entry of the next call, which may be the wait that ends the cycle. */
INLINE bool postpone_entry(struct attached *t, struct cpu *cpu, u64 now)
{
	struct wire_ordinary *p = &t->postponed;

	if (t->stage != RETURN_POSTPONED || t->reclaiming || t->faulting)
		return false;
	p->again = now;
	p->again_hard = hard_until(cpu, now);
	p->again_soft = soft_until(cpu, now, p->again_hard);
	t->stage = ENTRY_POSTPONED;
	return true;
}

/* "swapper": nobody else ran. */
#define IDLE_NAME 0x0072657070617773

GLOBAL int work_out_all(struct attached *t, u32 tid)
{
	struct wire_account_thread *a;
	struct waker waker = {};
	struct wire_ordinary *p;
	struct running on;
	u64 before, betters;
	u32 stage;

	if (!t)
		return 0;
	a = &t->account;
	p = &t->postponed;
	stage = t->stage;
	t->stage = NOTHING_POSTPONED;
	waker.timer = p->timer;
	waker.tid = p->waker;
	waker.by = p->by;
	if (p->waker)
		__builtin_memcpy(waker.comm, p->waker_comm, sizeof(waker.comm));
	else
		*(u64 *)waker.comm = IDLE_NAME;
	a->prio = p->prio;
	a->timer_cpu = p->timer_cpu;
	a->held = 0;
	a->unseen = 0;
	become_ready(a, p->cpu, p->woken);
	t->slack_end = p->slack_end;
	begin_cycle(t, tid, &waker, p->woken, p->expires);
	if (a->begin < p->woken)
		overdue_by(a, (struct change *)p->changes, 2, 2, a->begin, p->woken);
	a->from = p->woken;
	a->hard = p->hard;
	a->soft = p->soft;
	t->stolen = t->woken_stolen;
	t->unsure = t->woken_unsure;
	if (stage == WAKE_UP_POSTPONED)
		return 0;
	before = others_had(a->wait);
	betters = betters_had(a->wait);
	/* Nobody was chosen meanwhile: at a switch this would have been worked out. */
	on = (struct running){ 0, p->ran, p->ran_prio };
	divide_by(a, p->arrived, p->arrived_hard, p->arrived_soft, keeper(a, on, false));
	if (unlikely(t->arrived_stolen != t->stolen))
		stolen_from_wait(t, t->arrived_stolen);
	blame(t, before, betters, p->before, p->before_comm);
	a->active = 0;
	a->from = p->arrived;
	t->unsure = 0;
	if (stage == ARRIVAL_POSTPONED)
		return 0;
	divide_by(a, p->returned, p->returned_hard, p->returned_soft, WIRE_PART_SWITCH);
	returns(t, p->returned);
	if (stage == RETURN_POSTPONED)
		return 0;
	divide_by(a, p->again, p->again_hard, p->again_soft, WIRE_PART_ITSELF);
	t->cycle.syscalls = 1;
	t->entered = p->again;
	return 0;
}

INLINE void work_out(struct attached *t, u32 tid)
{
	if (t->stage)
		work_out_all(t, tid);
}

/* No program needs sched_wakeup: the kernel hides sched_waking only from who wakes while the same
 * program runs, for a task that wakes itself, and then the return of the call shows the release. */
PROGRAM(attach_waking)
{
	struct task_struct *task = (void *)ctx[0];
	u32 tid = id_of(task);
	struct attached *t = attached_of(tid);
	struct cpu *here;
	u32 number;
	u64 now;

	if (likely(!t))
		return 0;
	number = bpf_get_smp_processor_id();
	here = cpu_of(number);
	if (!here || (t->state == READY && !t->early))
		return 0;
	now = bpf_ktime_get_ns();
	if (likely(postpone_wake_up(t, here, task, tid, number, now)))
		return 0;
	t->account.prio = task->prio;
	t->account.task = (u64)task;
	set_waker(t, here, task);
	t->slack_end = here->expires ? here->slack_end : 0;
	if (t->state == RUNNING) {
		/* It is on its way to sleep, or will see that it need not. */
		t->woken = t->call != 0;
		t->wake_at = now;
		t->wake_expires = here->expires;
		return 0;
	}
	return wake_up(t, here, tid, task_cpu(task), now, here->expires);
}

INLINE void waited_for(struct attached *t, struct cpu *cpu, u32 before_id, const void *comm,
		       u64 now)
{
	u64 before = others_had(t->account.wait), betters = betters_had(t->account.wait);

	waited(&t->account, cpu, now);
	if (unlikely(cpu->stolen != t->stolen))
		stolen_from_wait(t, cpu->stolen);
	blame(t, before, betters, before_id, comm);
}

GLOBAL int other_waits(u32 tid, struct cpu *cpu, u64 now)
{
	struct attached *t = attached_of(tid);

	if (t && cpu) {
		work_out(t, tid);
		waited_for(t, cpu, cpu->left, cpu->left_comm, now);
		passed_over(&t->account, now);
	}
	return 0;
}

/* The cycle was an ordinary one where nothing but its wake-up, its return and the entry of the wait
 * was seen of it, in which it sleeps now: its record has the instants of these alone. */
NOINLINE int leaves_ordinarily(struct attached *t, struct cpu *cpu, struct task_struct *task,
			       u64 state, u64 now)
{
	struct wire_ordinary *p;
	struct wire_cycle *c;
	struct buffer *buffer;
	struct call *call;
	struct pt_regs *regs;
	u32 within, here, tid;

	if (!t || !cpu || !task)
		return 0;
	p = &t->postponed;
	here = p->cpu;
	tid = cpu->watched;
	c = &t->cycle;
	call = &t->leaving;
	buffer = buffer_here(here);
	if (!buffer || state & TASK_STOPPED_OR_TRACED ||
	    t->stopped | t->held_up | t->woken | t->reclaiming | t->faulting ||
	    t->woken_stolen != t->arrived_stolen || cpu->stolen != t->arrived_stolen ||
	    is_frozen(task) || is_compat(task))
		return 0;
	regs = bpf_task_pt_regs(task);
	if (!read_call(task, regs, call) || !ends_cycle(t, call, regs))
		return 0;
	within = WIRE_PART_BLOCKED;
	if (unlikely(is_futex(call)))
		within = part_of_sleep(call, true, state);
	if (within == WIRE_PART_LOCK)
		return 0;
	if (p->by == WIRE_CYCLE_BY_TIMER) {
		struct call waited = { c->argument, c->call, c->operation, 0, 0 };

		keep_release_timer(t, tid, p->timer, &waited);
	}
	p->entered = c->entered;
	p->slept = t->slept;
	p->argument = c->argument;
	p->written = c->written;
	p->call = c->call;
	p->operation = c->operation;
	p->within = c->within;
	p->calls = c->calls;
	p->faults = c->faults;
	emit_cycle(t, buffer, p->expires, tid, WIRE_ORDINARY, here, p, sizeof(*p));
	t->stage = NOTHING_POSTPONED;
	/* Of a wait of this kind all else is as the one before left it. */
	c->entered = t->entered = p->again;
	show_wait(t, tid);
	c->argument = call->argument;
	c->call = call->number;
	c->operation = call->operation;
	c->within = t->within = within;
	c->calls = 0;
	c->faults = 0;
	c->written = 0;
	t->moments = 0;
	t->apart = 1;
	t->waited = 1;
	t->slept = now;
	t->stolen = cpu->stolen;
	t->account.from = now;
	t->account.prio = task->prio;
	set_state(t, ASLEEP, now);
	/* To read it takes longer than all else here. */
	t->asked = 0;
	t->asks = time_of_sleep(regs, call);
	return 1;
}

/* The thread is switched away from: it sleeps, or (`state` 0) could run on. */
INLINE void leaves(u64 *ctx, struct attached *t, struct cpu *cpu, u32 here, u64 state, u64 now)
{
	struct task_struct *task = (void *)ctx[1], *next = (void *)ctx[2];
	struct pt_regs *regs = bpf_task_pt_regs(task);
	struct call *call = &t->leaving;
	u32 tid = cpu->watched;
	bool in_call, cut, again, frozen;

	if (likely(t->stage == ENTRY_POSTPONED && state & TASK_INTERRUPTIBLE) &&
	    likely(leaves_ordinarily(t, cpu, task, state, now)))
		return;
	work_out(t, tid);
	if (t->call)
		set_apart(t);
	ran_until(t, cpu, now);
	/* At switches alone: while it runs, the clock of its CPU is not read. */
	if (unlikely(cpu->stolen != t->stolen))
		stolen_from_run(t, cpu);
	t->account.prio = task->prio;
	t->account.task = (u64)task;
	t->waited = t->call && state & TASK_INTERRUPTIBLE;
	if (!state && ends_period(task)) {
		state = TASK_INTERRUPTIBLE;
	} else if (!state) {
		begin_gap(t, now);
		begin_moment(ctx, t, next, WIRE_MOMENT_PREEMPTED, now);
		wait_for_cpu(t, cpu, here, tid, now);
		return;
	}
	set_state(t, ASLEEP, now);
	t->slept = now;
	t->account.from = now;
	in_call = read_call(task, regs, call);
	again = t->phase == INTERRUPTED && in_call && call->number == restart_syscall;
	if (again)
		same_call(t, call);
	cut = in_call && state & TASK_INTERRUPTIBLE && (again || ends_cycle(t, call, regs));
	/* It sleeps on its way to user mode: the freezer of its control group holds it. */
	frozen = is_frozen(task) || (t->phase == INTERRUPTED && !t->call);
	cut = cut && !frozen;
	t->within = part_of_sleep(call, in_call, state);
	if (state & TASK_STOPPED_OR_TRACED || frozen) {
		t->within = WIRE_PART_STOPPED;
		begin_gap(t, now);
	}
	/* The freezer woke it from the call that it interrupted. */
	if (frozen && t->waker.by == WIRE_CYCLE_BY_TASK) {
		t->stopper = t->waker.tid;
		__builtin_memcpy(t->stopper_comm, t->waker.comm, sizeof(t->stopper_comm));
	}
	if (t->faulting)
		t->within = WIRE_PART_PAGE_FAULT;
	if (t->reclaiming)
		t->within = WIRE_PART_RECLAIM;
	t->process = process_of(task);
	if (t->within == WIRE_PART_LOCK)
		find_holder(t, task, call);
	if (cut && t->phase == WOKEN) {
		/* Woken, and it waits on in the same call: that was no release. */
		t->phase = WAITING;
	} else if (cut && again) {
		/* The kernel goes on with the sleep that a stop interrupted. */
		set_apart(t);
		t->entered = t->cycle.entered;
		t->stopped = 1;
		t->phase = WAITING;
	} else if (cut) {
		/* Where there were too many calls its entry was not seen. */
		u64 entered = t->apart ? t->entered : now;

		set_apart(t);
		if (t->phase == OPEN)
			publish_cycle(t, tid, entered);
		t->entered = entered;
		next_cycle(t, call, entered, t->within);
		show_wait(t, tid);
		t->asked = asked_time(regs, is_compat(task), call, entered, cpu);
		t->asks = 0;
		t->phase = WAITING;
	} else {
		if (in_call)
			note_elsewhere(t);
		begin_moment(ctx, t, next, WIRE_MOMENT_ASLEEP, now);
		if (t->within == WIRE_PART_LOCK)
			watch_holder(t, tid, now);
	}
	if (t->within == WIRE_PART_LOCK && is_plain_lock(call))
		t->cycle.calls |= 1u << WIRE_CYCLE_FUTEX_WAIT;
	if (t->woken) {
		t->woken = 0;
		wake_up(t, cpu, tid, here, t->wake_at > now ? t->wake_at : now, t->wake_expires);
		t->early = 1;
	}
}

/* Of the time of a ready thread that no event divides: the task that was seen last on its CPU is
 * likely to have had it. */
INLINE void hide(struct attached *t, struct cpu *there, u64 took)
{
	struct wire_cycle *c = &t->cycle;
	u32 running = there ? there->running : 0;

	c->hidden++;
	if (!running || took <= c->likely_ns)
		return;
	c->likely = running;
	c->likely_ns = took;
}

INLINE void arrives_here(struct attached *t, struct cpu *cpu, u32 here, u32 tid,
			 struct task_struct *prev, u64 now)
{
	struct wire_account_thread *a = &t->account;

	cpu->watched = tid;
	cpu->number = t->number;
	if (likely(postpone_arrival(t, cpu, here, prev, now))) {
		leave(cpu, tid);
		set_state(t, RUNNING, now);
		return;
	}
	work_out(t, tid);
	end_moment(t, tid, now);
	if (t->state == READY && a->cpu == here) {
		waited_for(t, cpu, id_of(prev), &prev->comm, now);
		leave(cpu, tid);
	} else if (t->state == READY) {
		struct cpu *there = cpu_of(a->cpu);

		if (there)
			leave(there, tid);
		hide(t, there, later(now, a->from));
		add(a, WIRE_PART_UNKNOWN, later(now, a->from));
		t->cycle.migrations++;
	} else if (t->state == ASLEEP && t->phase == WAITING) {
		/* Nobody saw who woke it: at the end of the call it is known when that should have been. */
	} else if (t->state == ASLEEP) {
		add(a, WIRE_PART_UNKNOWN, later(now, a->from));
	}
	if (unlikely(t->taken))
		end_gap(t, tid, now);
	t->returning_from_wait = t->waited && t->state == READY;
	set_state(t, RUNNING, now);
	t->early = 0;
	a->active = 0;
	a->cpu = here;
	set_from(t, cpu, now);
}

/* Those that wait here, of which none is switched to; `left` is. */
GLOBAL int all_wait(struct cpu *cpu, u32 to, u64 now)
{
	if (!cpu)
		return 0;
	for (u32 i = 0; i < WIRE_ACCOUNT_WAITING; i++) {
		u32 tid = cpu->waiting[i];

		if (tid && tid != to)
			other_waits(tid, cpu, now);
	}
	return 0;
}

/* The running thread leaves its CPU to a task: how long did that wait while the thread had it? The
 * scheduler's stamps are of another clock, of which the distance to the thread's arrival counts. */
NOINLINE int delayed_next(struct cpu *cpu, struct task_struct *prev, struct task_struct *next,
			  u64 now)
{
	struct wire_delayed_task *d, first = {};
	struct wire_delayed_key key;
	u64 queued, arrived, took;

	if (!cpu || !prev || !next || !cpu->switched || !field_exists(next->sched_info.last_queued))
		return 0;
	queued = next->sched_info.last_queued;
	arrived = prev->sched_info.last_arrival;
	if (!queued || !arrived)
		return 0;
	took = later(now, cpu->switched);
	if (queued > arrived && queued - arrived > took)
		return 0;
	if (queued > arrived)
		took -= queued - arrived;
	if (likely(took < WIRE_DELAYED_FROM))
		return 0;
	key.thread = id_of(prev);
	key.task = id_of(next);
	d = bpf_map_lookup_elem(&delayed_tasks, &key);
	if (!d) {
		bpf_map_update_elem(&delayed_tasks, &key, &first, 0);
		d = bpf_map_lookup_elem(&delayed_tasks, &key);
		if (!d)
			return 0;
		bpf_probe_read_kernel(d->comm, sizeof(d->comm), &next->comm);
	}
	__sync_fetch_and_add(&d->times, 1);
	__sync_fetch_and_add(&d->total, took);
	if (took > d->longest)
		d->longest = took;
	return 0;
}

INLINE int switch_of(u64 *ctx, u64 state)
{
	struct task_struct *prev = (void *)ctx[1], *next = (void *)ctx[2];
	u32 here = bpf_get_smp_processor_id(), from = id_of(prev), to = id_of(next);
	struct cpu *cpu = cpu_of(here);
	struct attached *t;
	u64 now;

	if (!cpu)
		return 0;
	now = bpf_ktime_get_ns();
	cpu->stolen = steal_clock(prev);
	cpu_switched(cpu, now);
	if (unlikely(others_wait(cpu, to))) {
		cpu->left = from;
		bpf_probe_read_kernel(cpu->left_comm, sizeof(cpu->left_comm), &prev->comm);
		all_wait(cpu, to, now);
	}
	if (cpu->watched) {
		t = attached_here(cpu, from);
		if (t && t->state == RUNNING) {
			if (to)
				delayed_next(cpu, prev, next, now);
			leaves(ctx, t, cpu, here, state, now);
			if (unlikely(t->holds_for))
				holder_acts(t, from, t->call,
					    state ? WIRE_HOLDING_ASLEEP : WIRE_HOLDING_PREEMPTED, now);
		}
		cpu->watched = 0;
	}
	change(cpu, now, to ? TASK : IDLE);
	t = to ? attached_of(to) : 0;
	if (unlikely(t)) {
		arrives_here(t, cpu, here, to, prev, now);
		if (unlikely(t->holds_for))
			holder_arrives(t, to, now);
	}
	cpu->running = to;
	cpu->prio = next->prio;
	cpu->switched = now;
	return 0;
}

PROGRAM(attach_switched)
{
	return switch_of(ctx, (u8)ctx[0] ? 0 : ctx[3]);
}

PROGRAM(attach_switched_before_5_18)
{
	struct task_struct *prev = (void *)ctx[1];

	return switch_of(ctx, (u8)ctx[0] ? 0 : prev->__state);
}

/* A thread runs of which no event said so: the first that is seen of it, or its CPU was idle. */
NOINLINE int begins_here(struct attached *t, struct cpu *cpu, u32 here, u32 tid, u64 now)
{
	if (!t || !cpu)
		return 0;
	work_out(t, tid);
	if (t->state == READY) {
		struct cpu *there = cpu_of(t->account.cpu);

		if (there)
			leave(there, tid);
		hide(t, there, later(now, t->account.from));
		add(&t->account, WIRE_PART_UNKNOWN, later(now, t->account.from));
	} else if (t->state == ASLEEP && t->phase != WAITING) {
		add(&t->account, t->within, later(now, t->account.from));
		t->moment.slept = later(now, t->account.from);
	}
	end_moment(t, tid, now);
	end_gap(t, tid, now);
	set_state(t, RUNNING, now);
	t->early = 0;
	t->account.active = 0;
	t->account.cpu = here;
	cpu->stolen = steal_clock(bpf_get_current_task_btf());
	set_from(t, cpu, now);
	cpu->watched = tid;
	cpu->number = t->number;
	return 0;
}

/* It took the time of the thread that runs there. The first is also how it shows that a thread
 * runs which was never switched. */
GLOBAL int served_over(struct cpu *cpu, u64 begin, u64 now, u64 hard)
{
	u32 tid = own_id(), here = bpf_get_smp_processor_id();
	struct attached *t = tid ? attached_of(tid) : 0;

	if (likely(!t) || !cpu)
		return 0;
	if (t->state != RUNNING)
		begins_here(t, cpu, here, tid, now);
	if (!is_polling(t, now))
		return 0;
	/* All other parts are never written. */
	t->interrupted.begin = begin;
	t->interrupted.parts[WIRE_PART_HARDIRQ] = hard;
	t->interrupted.parts[WIRE_PART_SOFTIRQ] = later(later(now, begin), hard);
	return emit_gap(t, &t->interrupted, tid, now);
}

INLINE void served(struct cpu *cpu, u64 begin, u64 now, u64 hard)
{
	u32 tid = own_id();

	if (unlikely(tid) && number_of(tid))
		served_over(cpu, begin, now, hard);
}

PROGRAM(attach_sys_enter)
{
	u64 id = own_ids();
	u32 tid = id, here = bpf_get_smp_processor_id(), number = ctx[1], time32;
	struct cpu *cpu = cpu_of(here);
	struct attached *t = cpu ? attached_here(cpu, tid) : 0;
	bool compat;
	u64 now;

	if (likely(!t) || !cpu)
		return 0;
	now = bpf_ktime_get_ns();
	compat = is_compat(bpf_get_current_task_btf());
	if (unlikely(compat))
		number = native_number(number, &time32);
	t->process = id >> 32;
	/* Where it releases the lock is seen at the wake-up. */
	if (unlikely(t->holds_for) && number != futex)
		holder_acts(t, tid, number + 1, WIRE_HOLDING_CALLED, now);
	if (unlikely(mark_call(t, (void *)ctx[0], number, compat)))
		acts(t, tid, WIRE_MOMENT_CALL, number + 1, now);
	if (likely(postpone_entry(t, cpu, now))) {
		t->call = number + 1;
		t->apart = 0;
		t->woken = 0;
		return 0;
	}
	work_out(t, tid);
	if (t->cycle.syscalls++ >= WIRE_CYCLE_CALLS)
		return 0;
	if (t->state == RUNNING)
		ran_until(t, cpu, now);
	else
		begins_here(t, cpu, here, tid, now);
	t->entered = now;
	/* Its end was not seen. */
	t->reclaiming = 0;
	t->faulting = 0;
	t->call = number + 1;
	t->apart = 0;
	t->woken = 0;
	return 0;
}

PROGRAM(attach_sys_exit)
{
	u32 tid = own_id(), here = bpf_get_smp_processor_id();
	struct cpu *cpu = cpu_of(here);
	struct attached *t = cpu ? attached_here(cpu, tid) : 0;
	struct wire_cycle *c;
	struct call *call;
	struct task_struct *task;
	u64 now, lasted;

	if (likely(!t) || !cpu || (!t->call && t->phase != WOKEN && t->phase != WAITING))
		return 0;
	c = &t->cycle;
	call = &t->returning;
	now = bpf_ktime_get_ns();
	FORGET(t->result) = ctx[1];
	task = bpf_get_current_task_btf();
	/* A wait for a signal never succeeds. */
	FORGET(t->took) = t->next_timer &&
			  (FORGET(t->result) > 0 || FORGET(t->result) == -ERESTARTNOHAND);
	if (FORGET(t->took)) {
		read_call(task, (void *)ctx[0], call);
		take_expired(t, call);
	}
	if (!by_signal(FORGET(t->result)) && postpone_return(t, cpu, now)) {
		t->call = 0;
		t->woken = 0;
		return 0;
	}
	work_out(t, tid);
	if (t->state != RUNNING)
		begins_here(t, cpu, here, tid, now);
	read_call(task, (void *)ctx[0], call);
	if (!FORGET(t->took))
		t->passed = 0;
	/* The call under way is still that of the sleep. */
	if (unlikely(t->asks && (t->phase == WAITING ||
				 (t->phase == WOKEN && by_signal(FORGET(t->result)))))) {
		t->asked = asked_time((void *)ctx[0], false, call, t->entered, cpu);
		t->asks = 0;
	}
	if (unlikely(by_signal(FORGET(t->result))) && interrupted(t, call)) {
		ran_until(t, cpu, now);
		t->call = 0;
		t->woken = 0;
		t->faulting = 0;
		return 0;
	}
	if (t->phase == WAITING) {
		release_unseen(t, tid, cpu, now);
		set_from(t, cpu, now);
	}
	if (t->phase == OPEN || t->phase == NO_CYCLE || t->phase == INTERRUPTED) {
		u32 within, stopper = c->awaited;
		u64 stopped = c->awaited_ns;
		u32 held_up;

		FORGET(t->again) = t->phase == INTERRUPTED && call->number == restart_syscall;
		/* The kernel calls again what waits for an instant, and that passed meanwhile. */
		held_up = FORGET(t->again) | FORGET(t->held_up);
		if (FORGET(t->again)) {
			/* It had ended meanwhile. */
			same_call(t, call);
			t->passed = FORGET(t->result) || t->asked > now ? 0 : t->asked;
			t->passed_timer = 0;
			t->passed_by = WIRE_CYCLE_BY_SLEEP;
		} else if (!t->woken && is_absolute(call) && !FORGET(t->result)) {
			t->passed =
				asked_time((void *)ctx[0], is_compat(task), call, t->entered, cpu);
			t->passed_timer = 0;
			t->passed_by = WIRE_CYCLE_BY_SLEEP;
		} else if (task->policy == SCHED_DEADLINE && call->number == sched_yield) {
			period_passed(t, task, now);
		}
		if ((t->woken || t->passed) && ends_cycle(t, call, (void *)ctx[0])) {
			/* What it waited for came before it slept. */
			within = part_of_sleep(call, true, TASK_INTERRUPTIBLE);
			set_apart(t);
			ran_until(t, cpu, now);
			if (t->phase == OPEN)
				publish_cycle(t, tid, t->entered);
			next_cycle(t, call, FORGET(t->again) ? c->entered : t->entered, within);
			show_wait(t, tid);
			if (held_up) {
				/* The stop is this one's. */
				c->awaited = stopper;
				c->awaited_ns = stopped;
			}
			if (t->passed && !(t->woken && t->passed == t->wake_expires)) {
				release_passed(t, now,
					       held_up ? WIRE_PART_STOPPED : WIRE_PART_OVERRUN);
			} else {
				t->slept = t->wake_at;
				release(t, tid, cpu, t->wake_at, t->wake_expires);
				set_from(t, cpu, t->wake_at < now ? t->wake_at : now);
			}
		}
	}
	returned(t, cpu, now);
	if (t->phase == WOKEN) {
		returns(t, now);
		compare_clocks(t, task);
	} else {
		if (unlikely(timed_out(call, FORGET(t->result))))
			rename_sleep(t);
		put_together(t);
		lasted = later(now, t->entered);
		if (lasted > c->longest_ns) {
			c->longest_ns = lasted;
			c->longest = t->call - 1;
		}
	}
	t->call = 0;
	t->woken = 0;
	t->faulting = 0;
	return 0;
}

PROGRAM(attach_moved)
{
	struct task_struct *task = (void *)ctx[0];
	struct attached *t = attached_of(id_of(task));
	struct cpu *cpu;

	if (likely(!t))
		return 0;
	work_out(t, id_of(task));
	t->cycle.migrations++;
	moved(id_of(task), ctx[1]);
	/* It waits there from now on. */
	cpu = t->state == READY ? cpu_of(t->account.cpu) : 0;
	if (cpu) {
		t->stolen = cpu->stolen;
		t->unsure = later(t->account.from, cpu->switched);
	}
	return 0;
}

/* What a thread does changes. */
INLINE struct attached *changes(void)
{
	struct attached *t = attached_of(own_id());
	struct cpu *cpu = t ? cpu_here() : 0;

	if (likely(!cpu))
		return 0;
	work_out(t, own_id());
	if (t->state == RUNNING)
		ran_until(t, cpu, bpf_ktime_get_ns());
	return t;
}

PROGRAM(attach_reclaim_begins)
{
	struct attached *t = changes();

	if (t)
		t->reclaiming = 1;
	return 0;
}

PROGRAM(attach_reclaim_ends)
{
	struct attached *t = changes();

	if (t)
		t->reclaiming = 0;
	return 0;
}

INLINE struct attached *faults(void)
{
	struct attached *t = attached_of(own_id());

	if (likely(!t) || !is_fault_of_task())
		return 0;
	t->cycle.faults++;
	return t;
}

INLINE void shows_fault(struct attached *t)
{
	acts(t, own_id(), WIRE_MOMENT_FAULT, t->call, bpf_ktime_get_ns());
}

PROGRAM(attach_fault)
{
	struct attached *t = faults();

	if (t)
		shows_fault(t);
	return 0;
}

/* The same where the end is seen, too. */
PROGRAM(attach_fault_begins)
{
	if (faults()) {
		struct attached *t = changes();

		if (t) {
			t->faulting = 1;
			shows_fault(t);
		}
	}
	return 0;
}

/* handle_mm_fault() returns, which serves what is no fault, too; or it counts a minor fault, at its
 * end. */
PROGRAM(attach_fault_ends)
{
	struct attached *t = attached_of(own_id());

	if (likely(!t) || !t->faulting)
		return 0;
	changes();
	t->faulting = 0;
	return 0;
}

/* A SCHED_DEADLINE task that has ended its period before is released: the kernel wakes no task
 * for that. */
NOINLINE int period_begins(struct cpu *cpu)
{
	struct task_struct *none = 0, *task;
	struct attached *t;
	u32 tid = 0;
	u64 now;

	if (!cpu)
		return 0;
	/* A number to the verifier, which lets nobody go backwards from a pointer. */
	task = (void *)(*(volatile u64 *)&cpu->timer - (u64)&none->dl.dl_timer);
	if (pid_namespace)
		tid = inner_id((u64)task);
	else
		bpf_probe_read_kernel(&tid, sizeof(tid), &task->pid);
	t = attached_of(tid);
	/* The timers of other servers are not in a task. */
	if (!t || t->state != ASLEEP || t->account.task != (u64)task)
		return 0;
	now = bpf_ktime_get_ns();
	t->waker = (struct waker){ .timer = cpu->timer, .by = WIRE_CYCLE_BY_PERIOD };
	t->waker.tid = own_id();
	bpf_get_current_comm(t->waker.comm, sizeof(t->waker.comm));
	wake_up(t, cpu, tid, t->account.cpu, now, cpu->expires);
	/* From now on it has runtime. */
	t->account.held = 0;
	return 0;
}

/* The instant that was asked for: the kernel may defer a timer beyond it by the task's slack. */
PROGRAM(attach_expire_entry)
{
	struct hrtimer *timer = (void *)ctx[0];
	struct hrtimer_clock_base *base = timer->base;
	struct hrtimer_clock_base___clocks *clocks = (void *)base;
	u64 expires = timer->_softexpires - base->offset, slack = slack_of(timer);
	void *function = timer->function;
	struct cpu *cpu = cpu_here();

	if (cpu) {
		cpu->expires = cpu->fired = expires;
		cpu->timer = (u64)timer;
		/* The kernel may let the timer of a thread that is not real-time expire until then. */
		cpu->slack_end = slack ? expires + slack : 0;
		cpu->clocks = (u64)clocks->cpu_base;
		if (unlikely(is_release_timer(function)))
			expired(cpu->timer, expires);
		else if (unlikely(period_expiry && (u64)function == period_expiry))
			period_begins(cpu);
		if (cpu->watched)
			ran_here(ctx, cpu->watched, cpu->hard_since);
	}
	return 0;
}

/* A signal stops a thread that is watched, or its process, or lets it go on. */
PROGRAM(attach_signal)
{
	struct task_struct *task = (void *)ctx[2];
	u32 number = ctx[0];
	struct attached *t;

	if (likely(number - WIRE_SIGNAL_FIRST > WIRE_SIGNAL_LAST - WIRE_SIGNAL_FIRST))
		return 0;
	t = attached_of(id_of(task));
	if (!t)
		return 0;
	/* The kernel has woken by then whom it lets go on (prepare_signal). */
	t->stopper = number == WIRE_SIGNAL_FIRST ? 0 : own_id();
	bpf_get_current_comm(t->stopper_comm, sizeof(t->stopper_comm));
	return 0;
}

/* --- Which threads --- */

/* Nothing of a number's last thread is left. */
GLOBAL int clear_number(u32 number)
{
	u32 zero = 0;
	struct attached *value = bpf_map_lookup_elem(&blank, &zero);
	struct wire_selection none = {};

	bpf_map_update_elem(&selections, &number, &none, 0);
	if (value)
		bpf_map_update_elem(&values, &number, value, 0);
	value = bpf_map_lookup_elem(&values, &number);
	if (value)
		value->number = number;
	return 0;
}

GLOBAL u32 take_number(void)
{
	u32 zero = 0;
	struct numbers *all = bpf_map_lookup_elem(&numbers, &zero);

	for (u32 i = 0; all && i < WIRE_PROBES; i++) {
		u64 taken = *(volatile u64 *)&all->taken;

		if (taken >= *(volatile u64 *)&all->given)
			return 0;
		if (__sync_val_compare_and_swap(&all->taken, taken, taken + 1) == taken)
			return __sync_lock_test_and_set(&all->free[taken & (WIRE_WATCHED - 1)], 0);
	}
	return 0;
}

GLOBAL int give_number(u32 number)
{
	u32 zero = 0;
	struct numbers *all = bpf_map_lookup_elem(&numbers, &zero);

	if (all && number)
		*(volatile u64 *)&all->free[fetch_add(&all->given, 1) & (WIRE_WATCHED - 1)] = number;
	return 0;
}

/* False where it has one already, or there is none. */
GLOBAL u32 take_thread_place(u32 tid, u32 number)
{
	u32 zero = 0, at = first_place(tid);
	struct places *all = bpf_map_lookup_elem(&places, &zero);
	u64 own = tid | (u64)number << 32;

	for (u32 i = 0; all && i < WIRE_PROBES; i++) {
		u64 *place = &all->of[(at + i) & (WIRE_PLACES - 1)], there = *(volatile u64 *)place;

		if (!(u32)there)
			there = __sync_val_compare_and_swap(place, there, own);
		if (!(u32)there)
			return true;
		if ((u32)there == tid)
			return false;
	}
	return false;
}

/* The number that it had. Its place is not empty from now on, which would end the search for others
 * behind it. */
GLOBAL u32 leave_thread_place(u32 tid)
{
	u32 zero = 0, at = first_place(tid);
	struct places *all = bpf_map_lookup_elem(&places, &zero);

	for (u32 i = 0; all && i < WIRE_PROBES; i++) {
		u64 *place = &all->of[(at + i) & (WIRE_PLACES - 1)], there = *(volatile u64 *)place;

		if ((u32)there == tid &&
		    __sync_val_compare_and_swap(place, there, WIRE_PLACE_LEFT) == there)
			return there >> 32;
	}
	return 0;
}

INLINE void begin_watching(u32 tid)
{
	u32 number = number_of(tid) ? 0 : take_number();

	if (!number)
		return;
	clear_number(number);
	if (!take_thread_place(tid, number))
		give_number(number);
}

PROGRAM(attach_fork)
{
	struct task_struct *child = (void *)ctx[1];
	u64 id = own_ids();
	u32 parent = id >> 32, process = process_of(child), one = 1;

	if (!bpf_map_lookup_elem(&processes, &parent))
		return 0;
	if (process != parent) {
		if (!children)
			return 0;
		bpf_map_update_elem(&processes, &process, &one, 0);
	}
	begin_watching(id_of(child));
	return 0;
}

/* What its waits were, they are no longer. */
GLOBAL int runs_another(struct attached *t, u32 tid)
{
	u32 cpu = bpf_get_smp_processor_id();
	struct buffer *buffer = buffer_here(cpu);
	struct wire_moment m = { .kind = WIRE_MOMENT_EXEC, .stack = -1 };
	struct wire_selection none = {};
	u32 number;

	if (!t || !buffer)
		return 0;
	number = t->number;
	bpf_map_update_elem(&selections, &number, &none, 0);
	work_out(t, tid);
	t->phase = NO_CYCLE;
	t->waits_shown = 0;
	t->times.lost_cycles = 0;
	m.begin = bpf_ktime_get_ns();
	return emit_to(buffer, m.begin, tid, WIRE_MOMENT, cpu, (const u64 *)&m, sizeof(m) / 8);
}

/* A thread that is not its process's first becomes it. */
PROGRAM(attach_exec)
{
	struct task_struct *task = (void *)ctx[0];
	u32 process = process_of(task);

	if (bpf_map_lookup_elem(&processes, &process))
		begin_watching(id_of(task));
	if (attached_of(id_of(task)))
		runs_another(attached_of(id_of(task)), id_of(task));
	return 0;
}

/* Its id may be another thread's from now on. */
NOINLINE int ends(struct task_struct *task, struct attached *t, u32 tid)
{
	u32 cpu = bpf_get_smp_processor_id();
	struct buffer *buffer = buffer_here(cpu);
	struct wire_moment m = { .kind = WIRE_MOMENT_EXIT, .stack = -1 };

	if (!task || !buffer)
		return 0;
	m.begin = bpf_ktime_get_ns();
	bpf_probe_read_kernel(&m.next, sizeof(m.next), &task->exit_code);
	if (t) {
		spend(t, m.begin);
		emit_to(buffer, m.begin, tid, WIRE_TIMES, cpu, (const u64 *)&t->times,
			sizeof(t->times) / 8);
	}
	bpf_probe_read_kernel(m.next_comm, sizeof(m.next_comm), &task->comm);
	return emit_to(buffer, m.begin, tid, WIRE_MOMENT, cpu, (const u64 *)&m, sizeof(m) / 8);
}

PROGRAM(attach_exit)
{
	struct task_struct *task = (void *)ctx[0];
	u32 tid = id_of(task);
	struct attached *t = attached_of(tid);
	struct cpu *cpu = cpu_here();

	if (likely(!t))
		return 0;
	ends(task, t, tid);
	if (cpu && cpu->watched == tid)
		cpu->watched = 0;
	give_number(leave_thread_place(tid));
	return 0;
}

const char gpl[] SEC("license") = "GPL";
