/* The cycles of a thread: what of each is recorded, and that it is its own. */
#include "attached.h"

#define WRITE 1
#define MMAP 9

/* Its timer expires `late` ns after `due` in an interrupt, which wakes it. It is one of a clock
 * that is `ahead` of CLOCK_MONOTONIC. */
static void timer_wakes(struct task *task, u64 due, u64 late, i64 ahead)
{
	struct hrtimer_clock_base base = { ahead };
	struct hrtimer timer = { ._softexpires = due + ahead, .base = &base };
	u64 ctx[] = { (u64)&timer };

	now_ns = due + late;
	account_irq_entry(ctx);
	attach_expire_entry(ctx);
	now_ns += 100;
	wake(task);
	now_ns += 100;
	account_irq_exit(ctx);
}

/* One cycle: released at `due`, 400 ns late; it reads for 3 µs, is interrupted for 200 ns, and
 * waits again. */
static void cycle(u64 due, i64 ahead)
{
	u64 ctx[1];

	timer_wakes(thread, due, 400, ahead);
	now_ns += 400;
	switch_to(thread, 0);
	now_ns += 200;
	leave_call(0);
	now_ns += 1000;
	enter(READ, 3, 0);
	now_ns += 100;
	switch_to(other, TASK_INTERRUPTIBLE);
	now_ns += 3000;
	wake(thread);
	now_ns += 100;
	switch_to(thread, TASK_INTERRUPTIBLE);
	now_ns += 100;
	leave_call(1);
	now_ns += 1000;
	account_irq_entry(ctx);
	now_ns += 200;
	account_irq_exit(ctx);
	now_ns += 1000;
	enter(NANOSLEEP, 1, 1);
	now_ns += 100;
	switch_to(idle, TASK_INTERRUPTIBLE);
}

/* Every cycle begins when its timer was due, whatever clock that is of, adds up, and has nothing of
 * the one before. */
static void cycles_add_up(void)
{
	struct wire_cycle c;
	u32 kind, count = 0;

	watch(thread);
	now_ns = 1000;
	switch_to(thread, 0);
	now_ns = 2000;
	enter(NANOSLEEP, 1, 1);
	now_ns = 2100;
	switch_to(idle, TASK_INTERRUPTIBLE);
	for (u64 k = 1; k <= 4; k++)
		cycle(k * 100000, k % 2 ? 0 : 1700000000000000000);
	while ((kind = next_record(0, &c, sizeof(c)))) {
		if (kind != WIRE_CYCLE)
			continue;
		count++;
		CHECK(c.release == count * 100000 && c.call == NANOSLEEP);
		CHECK(c.returned == c.release + 1200);
		CHECK(sum(c.wake) == c.returned - c.release);
		CHECK(sum(c.run) == c.again - c.returned);
		CHECK(c.run[WIRE_PART_HARDIRQ] == 200);
		CHECK(c.blocks == 1 && c.blocked == 3000);
		CHECK(c.awaited == 9 && c.awaited_ns == 3000);
	}
	CHECK(count == 4);
}

/* A cycle whose record finds no room is counted for its thread, until that runs another program. */
static void lost_cycles_are_counted_for_their_thread(void)
{
	u32 zero = 0, tid = thread->task.pid;
	struct buffer *buffer = find(&buffers, &zero);
	u64 taken;
	struct wire_cycle c;

	watch(thread);
	now_ns = 2000;
	switch_to(thread, 0);
	enter(NANOSLEEP, 1, 1);
	switch_to(idle, TASK_INTERRUPTIBLE);
	cycle(100000, 0);
	CHECK(!value(tid)->times.lost_cycles);
	while (next_record(0, &c, sizeof(c)))
		;
	taken = buffer->at.tail;
	buffer->at.tail = buffer->at.head - WORDS;
	cycle(200000, 0);
	cycle(300000, 0);
	CHECK(value(tid)->times.lost_cycles == 2 && buffer->at.head == taken);
	buffer->at.tail = taken;
	cycle(400000, 0);
	CHECK(next_record(0, &c, sizeof(c)) == WIRE_LOST);
	CHECK(value(tid)->times.lost_cycles == 2);
	runs_another(value(tid), tid);
	CHECK(!value(tid)->times.lost_cycles);
	while (next_record(0, &c, sizeof(c)))
		;
	unwatch(thread);
}

/* The record has which marked calls a cycle made, and to which files it wrote: its own alone. */
static void marked_calls_are_those_of_the_cycle(void)
{
	struct wire_cycle c;
	u32 first = 1;

	marks[MMAP] = WIRE_MARK | 3;
	marks[WRITE] = WIRE_MARK | WIRE_MARK_WRITE | 5;
	watch(thread);
	switch_to(thread, 0);
	enter(NANOSLEEP, 1, 1);
	switch_to(idle, TASK_INTERRUPTIBLE);
	for (u64 k = 1; k <= 2; k++) {
		timer_wakes(thread, 10000000 + k * 100000, 400, 0);
		switch_to(thread, 0);
		leave_call(0);
		now_ns += 1000;
		enter(k == 1 ? MMAP : WRITE, k == 1 ? 0 : 6, 0);
		now_ns += 1000;
		leave_call(0);
		enter(NANOSLEEP, 1, 1);
		switch_to(idle, TASK_INTERRUPTIBLE);
	}
	for (; next_record(0, &c, sizeof(c)) == WIRE_CYCLE; first = 0) {
		CHECK(c.calls == (first ? 1u << 3 : 1u << 5));
		CHECK(c.written == (first ? 0 : 1ull << 6));
		CHECK(c.argument == CLOCK_MONOTONIC && c.operation == 1 && c.syscalls == 2);
		CHECK(c.longest == (first ? MMAP : WRITE) && c.longest_ns == 1000);
	}
	CHECK(!first);
	unwatch(thread);
}

static void fault(void) { attach_fault_begins(0); }

/* It is preempted, which reads its stack and faults there, and has one fault itself. */
static void a_fault_of_our_own_program_is_none_of_the_cycle(void)
{
	struct wire_cycle c;
	struct wire_moment m;

	watch(thread);
	now_ns = 20000000;
	switch_to(thread, 0);
	enter(NANOSLEEP, 1, 1);
	switch_to(idle, TASK_INTERRUPTIBLE);
	timer_wakes(thread, now_ns + 100000, 400, 0);
	switch_to(thread, 0);
	leave_call(0);
	walk_faults = fault;
	switch_to(other, 0);
	walk_faults = 0;
	now_ns += 1000;
	switch_to(thread, 0);
	CHECK(!value(thread->task.pid)->faulting);
	fault();
	now_ns += 700;
	attach_fault_ends(0);
	enter(NANOSLEEP, 1, 1);
	switch_to(idle, TASK_INTERRUPTIBLE);
	timer_wakes(thread, now_ns + 100000, 400, 0);
	switch_to(thread, 0);
	leave_call(0);
	enter(NANOSLEEP, 1, 1);
	switch_to(idle, TASK_INTERRUPTIBLE);
	CHECK(next_record(0, &m, sizeof(m)) == WIRE_MOMENT && m.kind == WIRE_MOMENT_PREEMPTED);
	CHECK(next_record(0, &c, sizeof(c)) == WIRE_CYCLE);
	CHECK(c.faults == 1 && c.run[WIRE_PART_FAULT_RAN] == 700);
	unwatch(thread);
	while (next_record(0, &c, sizeof(c)))
		;
}

/* Two take turns while it is ready: the one that had the most, with its own name. */
static void the_culprit_has_its_own_name(void)
{
	struct attached *t = calloc(1, sizeof(*t));
	struct wire_cycle *c = &t->cycle;
	char first[16] = "first", second[16] = "second";

	t->account.wait[WIRE_PART_PREEMPTED] = 10;
	blame(t, 0, 0, 8, first);
	t->account.wait[WIRE_PART_PREEMPTED] = 40;
	blame(t, 10, 10, 9, second);
	CHECK(c->culprit == 9 && c->culprit_ns == 30 && c->culprit_behind == 30);
	CHECK(!strcmp((char *)c->culprit_comm, "second"));
	CHECK(t->rival == 8 && t->rival_ns == 10 && !strcmp((char *)t->rival_comm, "first"));
	t->account.wait[WIRE_PART_NOT_SWITCHED] = 25;
	blame(t, 40, 40, 8, first);
	CHECK(c->culprit == 8 && c->culprit_ns == 35 && c->culprit_behind == 10);
	CHECK(!strcmp((char *)c->culprit_comm, "first"));
}

/* Its id is another thread's from then on. */
static void of_a_thread_that_ends_nothing_is_left(void)
{
	u32 tid = thread->task.pid, number;
	struct wire_selection selection = { .call = NANOSLEEP, .how = WIRE_SELECTED }, *of;
	struct wire_moment m;
	u64 ctx[] = { (u64)&thread->task };

	watch(thread);
	number = value(tid)->number;
	of = find(&selections, &number);
	put(&selections, &number, &selection, 0);
	on[0] = thread;
	attach_exec(ctx);
	CHECK(value(tid) && !of->how);
	put(&selections, &number, &selection, 0);
	thread->task.exit_code = 139;
	attach_exit(ctx);
	CHECK(!value(tid));
	CHECK(next_record(0, &m, sizeof(m)) == WIRE_MOMENT && m.kind == WIRE_MOMENT_EXEC);
	CHECK(next_record(0, &m, sizeof(m)) == WIRE_TIMES);
	CHECK(next_record(0, &m, sizeof(m)) == WIRE_MOMENT && m.kind == WIRE_MOMENT_EXIT);
	CHECK(m.next == 139);
	/* The next thread with its number begins with nothing. */
	for (u32 i = 1; i <= 3; i++)
		watch(make_task(tid + i, "next", 120));
	CHECK(value(tid + 1) && value(tid + 2) && value(tid + 3)->number == number && !of->how);
	CHECK(!value(tid + 4));
	watch(make_task(tid + 4, "none", 120));
	CHECK(!value(tid + 4));
	for (u32 i = 1; i <= 3; i++)
		unwatch(make_task(tid + i, "next", 120));
	on[0] = idle;
}

static void the_holder_of_a_lock_is_its_owner(void)
{
	u32 word[3] = { 55 | 0x80000000, 0, 77 }; /* somebody waits */
	struct attached *t = calloc(1, sizeof(*t));
	struct call call = { .argument = (u64)word, .number = FUTEX, .operation = FUTEX_LOCK_PI };

	find_holder(t, &thread->task, &call);
	CHECK(t->holder == 55 && t->holder_by == WIRE_HOLDER_PI);
	/* A mutex of glibc is of a thread of the same process. */
	word[0] = LOCKED_WITH_WAITERS;
	call.operation = WIRE_FUTEX_WAIT_LOCK;
	find_holder(t, &thread->task, &call);
	CHECK(!t->holder);
}

/* Another thread sleeps for a lock: the first action of its holder, and how long that had no CPU.
 * `preempted`: it was when the other one began to sleep. */
static void a_holders_first_action_is_kept(bool preempted)
{
	u32 word = other->task.pid | 0x80000000;
	struct wire_moment m = {}, found = {};
	u32 kind;

	watch(thread);
	watch(other);
	now_ns += 1000000;
	switch_to(other, 0);
	now_ns += 1000;
	switch_to(thread, 0);
	enter(NANOSLEEP, 1, 1);
	switch_to(preempted ? other : idle, TASK_INTERRUPTIBLE);
	now_ns += 1000;
	enter(WRITE, 6, 0);
	leave_call(1);
	timer_wakes(thread, now_ns + 100000, 400, 0);
	switch_to(thread, 0);
	leave_call(0);
	now_ns += 1000;
	if (!preempted) {
		this_cpu = 1;
		on[1] = idle;
		switch_to(other, 0);
		this_cpu = 0;
	}
	enter(FUTEX, (u64)&word, FUTEX_LOCK_PI);
	switch_to(preempted ? other : idle, TASK_INTERRUPTIBLE);
	this_cpu = preempted ? 0 : 1;
	now_ns += 2000;
	/* It releases no other lock; then it writes, and is preempted while it does. */
	enter(WRITE, 6, 0);
	now_ns += 500;
	switch_to(idle, 0);
	now_ns += 7000;
	switch_to(other, 0);
	now_ns += 500;
	leave_call(1);
	enter(FUTEX, (u64)&word, 7);
	wake(thread);
	this_cpu = 0;
	switch_to(thread, 0);
	leave_call(0);
	CHECK(!value(thread->task.pid)->holder_left);
	/* Nobody sleeps for it any more. */
	enter(WRITE, 6, 0);
	while ((kind = next_record(0, &m, sizeof(m))))
		if (kind == WIRE_MOMENT && m.kind == WIRE_MOMENT_ASLEEP)
			found = m;
	CHECK(found.holder == other->task.pid && found.slept == 10000);
	CHECK(found.holder_did == WIRE_HOLDING_PREEMPTED && found.holder_off == 7000);
	CHECK(found.holder_call == (preempted ? 0 : WRITE + 1));
	unwatch(thread);
	unwatch(other);
	while (next_record(0, &m, sizeof(m)) || next_record(1, &m, sizeof(m)))
		;
	on[0] = on[1] = idle;
}

/* It never waits: what took its CPU, and for how long, and how its time is divided. It ran before
 * it was watched, which the first interrupt shows. */
static void a_thread_that_polls_has_gaps(void)
{
	u32 tid = thread->task.pid;
	struct task *third = make_task(11, "third", 120);
	struct wire_gap gap;
	struct wire_times times;
	u64 ctx[] = { (u64)&thread->task }, begin = 50000000;

	thread->task.prio = 120;
	now_ns = begin, on[0] = thread, of_cpu(0)->running = 0, of_cpu(0)->watched = 0;
	watch(thread);
	account_irq_entry(ctx);
	now_ns += 2000;
	account_irq_exit(ctx);
	account_soft_entry(ctx);
	now_ns += 500;
	account_irq_entry(ctx);
	now_ns += 100;
	account_irq_exit(ctx);
	now_ns += 400;
	account_soft_exit(ctx);
	CHECK(next_record(0, &gap, sizeof(gap)) == WIRE_GAP);
	CHECK(gap.begin == begin && gap.parts[WIRE_PART_HARDIRQ] == 2000 && sum(gap.parts) == 2000);
	CHECK(next_record(0, &gap, sizeof(gap)) == WIRE_GAP);
	CHECK(gap.parts[WIRE_PART_SOFTIRQ] == 900 && gap.parts[WIRE_PART_HARDIRQ] == 100);
	now_ns += 10000;
	switch_to(other, 0);
	now_ns += 3000;
	switch_to(third, 0);
	now_ns += 7000;
	switch_to(thread, 0);
	CHECK(next_record(0, &gap, sizeof(gap)) == WIRE_GAP);
	CHECK(gap.begin == now_ns - 10000 && gap.by == 11 && gap.by_ns == 7000);
	CHECK(gap.parts[WIRE_PART_RUNQUEUE] == 10000 && sum(gap.parts) == 10000);
	/* It gives its CPU away, or waits: that is its own will. It is stopped: that is not. */
	sched_yield = 24;
	enter(24, 0, 0);
	switch_to(other, 0);
	now_ns += 1000;
	switch_to(thread, 0);
	leave_call(0);
	sched_yield = 1023;
	enter(READ, 3, 0);
	switch_to(other, TASK_INTERRUPTIBLE);
	now_ns += 1000;
	wake(thread);
	switch_to(thread, TASK_INTERRUPTIBLE);
	leave_call(1);
	CHECK(!next_record(0, &gap, sizeof(gap)));
	switch_to(other, TASK_STOPPED);
	now_ns += 5000;
	wake(thread);
	now_ns += 200;
	switch_to(thread, TASK_INTERRUPTIBLE);
	CHECK(next_record(0, &gap, sizeof(gap)) == WIRE_GAP);
	CHECK(gap.parts[WIRE_PART_STOPPED] == 5000 && sum(gap.parts) == 5200);
	attach_exit(ctx);
	CHECK(next_record(0, &times, sizeof(times)) == WIRE_TIMES);
	CHECK(times.state[RUNNING] == 11000 && times.state[READY] == 11200);
	CHECK(times.state[ASLEEP] == 6000 && times.stopped == 5000);
	while (next_record(0, &gap, sizeof(gap)))
		;
	on[0] = idle;
}

/* The return of the call bounds the context switch to the thread, after a wait alone. */
static void the_switch_ends_where_the_call_returns(void)
{
	struct wire_cycle c;

	watch(thread);
	now_ns = 1000;
	switch_to(thread, 0);
	enter(NANOSLEEP, 1, 1);
	switch_to(idle, TASK_INTERRUPTIBLE);
	for (u64 k = 1; k <= 2; k++) {
		timer_wakes(thread, k * 100000, 400, 0);
		now_ns += 400;
		switch_to(thread, 0);
		now_ns += 63000;
		leave_call(0);
		now_ns += 1000;
		/* Preempted in a call: what follows is the call's. */
		enter(READ, 3, 0);
		switch_to(other, 0);
		now_ns += 500;
		switch_to(thread, 0);
		now_ns += 700;
		leave_call(1);
		enter(NANOSLEEP, 1, 1);
		switch_to(idle, TASK_INTERRUPTIBLE);
	}
	CHECK(next_record(0, &c, sizeof(c)) == WIRE_MOMENT);
	CHECK(next_record(0, &c, sizeof(c)) == WIRE_CYCLE && c.wake[WIRE_PART_SWITCH] == 63000);
	CHECK(!c.wake[WIRE_PART_KERNEL] && c.run[WIRE_PART_KERNEL] == 700);
	CHECK(!c.run[WIRE_PART_SWITCH] && sum(c.wake) == c.returned - c.release);
	while (next_record(0, &c, sizeof(c)))
		;
	unwatch(thread);
}

#define ERESTARTNOHAND_RESULT (-514)
/* How a program is held up: by SIGSTOP, by a debugger, by the freezer, and by none of them. */
static const struct hold {
	u64 state;
	u64 jobctl;
	u32 part;
} holds[] = {
	{ 0x104, 0, WIRE_PART_STOPPED },
	{ 8, 0, WIRE_PART_STOPPED },
	{ TASK_INTERRUPTIBLE, JOBCTL_TRAP_FREEZE, WIRE_PART_STOPPED },
	{ TASK_UNINTERRUPTIBLE, 0, WIRE_PART_PAGE_FAULT },
};

/* A program that computes, and one that sleeps until an instant which passes meanwhile. */
static void who_is_stopped_from_outside_does_not_run(const struct hold *hold, bool asleep)
{
	struct wire_cycle c = {};
	u64 until[2] = { 0, 150000 };

	clock_nanosleep = NANOSLEEP;
	watch(thread);
	now_ns = 1000;
	switch_to(thread, 0);
	enter(NANOSLEEP, 1, 1);
	switch_to(idle, TASK_INTERRUPTIBLE);
	timer_wakes(thread, 100000, 400, 0);
	switch_to(thread, 0);
	leave_call(0);
	now_ns += 2000;
	if (asleep) {
		enter(NANOSLEEP, CLOCK_MONOTONIC, 1);
		on[0]->regs.dx = (u64)until;
		switch_to(idle, TASK_INTERRUPTIBLE);
		now_ns += 1000;
		on[0] = other;
		wake(thread);
		switch_to(thread, 0);
		leave_call(ERESTARTNOHAND_RESULT);
	}
	thread->task.jobctl = hold->jobctl;
	switch_to(other, hold->state);
	thread->task.jobctl = 0;
	now_ns += 500000;
	wake(thread);
	now_ns += 100;
	switch_to(thread, 0);
	now_ns += 1000;
	if (asleep) {
		enter(NANOSLEEP, CLOCK_MONOTONIC, 1);
		on[0]->regs.dx = (u64)until;
		leave_call(0);
		now_ns += 3000;
	}
	enter(NANOSLEEP, 1, 1);
	switch_to(idle, TASK_INTERRUPTIBLE);
	while (next_record(0, &c, sizeof(c)) && (asleep ? c.release < 150000 : c.release != 100000))
		;
	if (asleep) {
		CHECK(c.release == 150000 && !c.wake[WIRE_PART_OVERRUN]);
		CHECK(c.wake[WIRE_PART_STOPPED] > 450000 && c.awaited == 9);
	} else {
		CHECK(c.run[hold->part] == 500000 && c.run[WIRE_PART_ITSELF] == 3000);
		CHECK(hold->part == WIRE_PART_STOPPED || !c.run[WIRE_PART_STOPPED]);
	}
	CHECK(sum(c.wake) == c.returned - c.release && sum(c.run) == c.again - c.returned);
	while (next_record(0, &c, sizeof(c)))
		;
	unwatch(thread);
}

/* It was woken for a busy CPU, and pulled to one that had become idle meanwhile. */
static void a_cpu_that_idled_before_throttles_nobody(void)
{
	struct wire_cycle c;
	u64 ctx[] = { (u64)&thread->task, 1 };

	watch(thread);
	now_ns = 1000;
	switch_to(thread, 0);
	enter(NANOSLEEP, 1, 1);
	other->task.prio = thread->task.prio;
	switch_to(other, TASK_INTERRUPTIBLE);
	timer_wakes(thread, 100000, 400, 0);
	now_ns += 20000;
	this_cpu = 1;
	switch_to(idle, 0);
	now_ns += 30000;
	attach_moved(ctx);
	now_ns += 5000;
	switch_to(thread, 0);
	leave_call(0);
	enter(NANOSLEEP, 1, 1);
	switch_to(idle, TASK_INTERRUPTIBLE);
	CHECK(next_record(1, &c, sizeof(c)) == WIRE_CYCLE && !c.wake[WIRE_PART_THROTTLED]);
	CHECK(c.wake[WIRE_PART_RUNQUEUE] >= 50000 && c.wake[WIRE_PART_IDLE_EXIT] == 5000);
	other->task.prio = 120;
	this_cpu = 0;
	on[0] = idle;
	unwatch(thread);
}

/* The thread enters a wait that `caller` called, with something else beside it on the stack. */
static void wait_from(u64 caller, u64 beside, u64 first)
{
	static u64 stack[WIRE_WAIT_WORDS];
	u32 number = first < 0x10000 ? NANOSLEEP : FUTEX;

	stack[0] = beside;
	stack[2] = caller;
	enter(number, first, number == FUTEX ? FUTEX_WAIT_BITSET : 1);
	on[0]->regs.ip = 0x7000;
	on[0]->regs.sp = (u64)stack;
	switch_to(idle, TASK_INTERRUPTIBLE);
}

/* It is woken at `at`, and its call returns. */
static void wait_until(u64 at)
{
	timer_wakes(thread, at, 400, 0);
	switch_to(thread, 0);
	leave_call(0);
	now_ns += 1000;
}

/* In each period it waits twice with the same call: for the same clock or word, or for another one.
 * `first` is what the wait of its period is for, and `second` the other one. */
static void a_wait_elsewhere_is_within_the_cycle(u64 first, u64 second)
{
	struct wire_selection selection = {
		.argument = first, .call = first < 0x10000 ? NANOSLEEP : FUTEX,
		.operation = first < 0x10000 ? 1 : FUTEX_WAIT_BITSET,
		.how = first == second ? WIRE_SELECTED : WIRE_SELECTED_ARGUMENT,
		.ip = 0x7000, .reach = 24, .callers = 1, .at = { 2 }, .caller = { 0x400 },
	};
	u64 begin = (now_ns / 1000000 + 1) * 1000000, payload[WIRE_WAIT_WORDS];
	struct wire_cycle *c = (void *)payload;
	u32 number, cycles = 0, kind;

	watch(thread);
	number = value(thread->task.pid)->number;
	put(&selections, &number, &selection, 0);
	now_ns = begin;
	switch_to(thread, 0);
	wait_from(0x400, 1, first);
	for (u64 k = 1; k <= 4; k++) {
		wait_until(begin + k * 100000);
		wait_from(first == second ? 0x500 : 0x400, 0x400, second);
		wait_until(begin + k * 100000 + 30000);
		/* A condition variable has two words. */
		wait_from(0x400, k, first < 0x10000 ? first : first ^ 4);
	}
	while ((kind = next_record(0, payload, sizeof(payload)))) {
		CHECK(kind != WIRE_WAIT && kind != WIRE_ORDINARY);
		if (kind != WIRE_CYCLE)
			continue;
		cycles++;
		CHECK(c->release == begin + cycles * 100000 && c->again - c->release > 30000);
		CHECK(c->blocks == 1 && c->elsewhere == 1 && sum(c->run) == c->again - c->returned);
	}
	CHECK(cycles == 4);
	unwatch(thread);
	on[0] = idle;
}

/* Until a call is selected, each wait shows where it is. */
static void waits_show_their_places_until_one_is_selected(void)
{
	struct wire_selection selection = { .call = NANOSLEEP, .operation = 1, .how = WIRE_SELECTED };
	u64 begin = (now_ns / 1000000 + 1) * 1000000, payload[WIRE_WAIT_WORDS + 8];
	struct wire_wait *w = (void *)payload;
	u32 number;

	watch(thread);
	number = value(thread->task.pid)->number;
	now_ns = begin;
	switch_to(thread, 0);
	wait_from(0x400, 1, CLOCK_MONOTONIC);
	for (u64 k = 1; k <= 5; k++) {
		u64 entered = value(thread->task.pid)->cycle.entered;
		bool is_shown = false;

		for (u32 kind; (kind = next_record(0, payload, sizeof(payload)));)
			if (kind == WIRE_WAIT) {
				is_shown = true;
				CHECK(w->entered == entered && w->ip == 0x7000);
				CHECK(w->words == WIRE_WAIT_WORDS && w->stack[2] == (k % 2 ? 0x400 : 0x500));
			}
		/* Of the fourth on none is. */
		CHECK(is_shown == (k < 4));
		if (k == 3)
			put(&selections, &number, &selection, 0);
		wait_until(begin + k * 100000);
		wait_from(k % 2 ? 0x500 : 0x400, 1, CLOCK_MONOTONIC);
	}
	while (next_record(0, payload, sizeof(payload)))
		;
	unwatch(thread);
	on[0] = idle;
}

/* Not the same at each call, and the same at each run. */
static u32 random_below(u32 *seed, u32 end)
{
	*seed = *seed * 1664525 + 1013904223;
	return (*seed >> 8) % end;
}

static void interrupt_for(u32 ns)
{
	account_irq_entry(0);
	now_ns += ns;
	account_irq_exit(0);
}

/* A cycle from `base` on, of which the seed decides all that may differ; its record, in hex.
 * `in_full`: something asks for its division before its end. */
static void print_cycle(u64 base, u32 seed, bool in_full)
{
	struct hrtimer_clock_base clock = { 0 };
	struct hrtimer timer = { .base = &clock };
	u64 ctx[] = { (u64)&timer }, due;
	struct task *before = random_below(&seed, 2) ? other : idle;
	struct buffer *buffer;
	u32 slot = 0;

	thread->task.prio = random_below(&seed, 2) ? 19 : 120;
	other->task.prio = random_below(&seed, 2) ? 10 : 120;
	thread->task.stack = (void *)(random_below(&seed, 2) ? (u64)&timer - 64 : 0x7000000000000000);
	now_ns = base;
	switch_to(thread, 0);
	leave_call(0);
	now_ns += random_below(&seed, 500);
	enter(NANOSLEEP, 1, 1);
	now_ns += 1 + random_below(&seed, 700);
	switch_to(before, TASK_INTERRUPTIBLE);
	timer._softexpires = due = base + random_below(&seed, 4000);
	if (now_ns < due && random_below(&seed, 2))
		now_ns += random_below(&seed, due - now_ns), interrupt_for(random_below(&seed, 300));
	now_ns = (now_ns > due ? now_ns : due) + random_below(&seed, 900);
	account_irq_entry(0);
	attach_expire_entry(ctx);
	if (random_below(&seed, 2))
		of_cpu(0)->slack_end = due + random_below(&seed, 600);
	now_ns += random_below(&seed, 200);
	wake(thread);
	now_ns += random_below(&seed, 200);
	account_irq_exit(0);
	now_ns += random_below(&seed, 400);
	if (random_below(&seed, 2))
		interrupt_for(random_below(&seed, 400));
	switch_to(thread, 0);
	if (random_below(&seed, 2))
		interrupt_for(random_below(&seed, 400));
	now_ns += random_below(&seed, 400);
	leave_call(0);
	now_ns += random_below(&seed, 4000);
	if (random_below(&seed, 2))
		interrupt_for(random_below(&seed, 400));
	enter(NANOSLEEP, 1, 1);
	if (in_full)
		work_out(value(thread->task.pid), thread->task.pid);
	now_ns += 50;
	buffer = find(&buffers, &slot);
	buffer->at.tail = buffer->at.head;
	switch_to(idle, TASK_INTERRUPTIBLE);
	printf("%llx", base);
	for (u64 at = buffer->at.tail; at < buffer->at.head; at++)
		printf(" %llx", buffer->data[at & mask]);
	printf("\n");
}

/* Each cycle in short and in full, for the test that divides the short ones. */
static int print_pairs(void)
{
	watch(thread);
	for (u32 k = 0; k < 800; k++)
		print_cycle(1000000ull * (k + 1), k / 2 * 77, k % 2);
	return failures != 0;
}

int main(int count, char **words)
{
	begin_attached();
	if (count > 1)
		return print_pairs();
	cycles_add_up();
	unwatch(thread);
	lost_cycles_are_counted_for_their_thread();
	marked_calls_are_those_of_the_cycle();
	a_fault_of_our_own_program_is_none_of_the_cycle();
	the_culprit_has_its_own_name();
	of_a_thread_that_ends_nothing_is_left();
	the_holder_of_a_lock_is_its_owner();
	a_holders_first_action_is_kept(true);
	a_holders_first_action_is_kept(false);
	a_thread_that_polls_has_gaps();
	the_switch_ends_where_the_call_returns();
	for (u32 i = 0; i < 4; i++) {
		who_is_stopped_from_outside_does_not_run(&holds[i], false);
		if (holds[i].part == WIRE_PART_STOPPED)
			who_is_stopped_from_outside_does_not_run(&holds[i], true);
	}
	a_cpu_that_idled_before_throttles_nobody();
	a_wait_elsewhere_is_within_the_cycle(CLOCK_MONOTONIC, CLOCK_MONOTONIC);
	a_wait_elsewhere_is_within_the_cycle(0x20028, 0x20030);
	waits_show_their_places_until_one_is_selected();
	return failures != 0;
}
