/* What a recording says of an event: each field is that of its task, wherever the event is seen. */
#define PROGRAMS "events.bpf.c"
#include "world.h"

static void a_wake_up_is_for_the_cpu_of_the_woken(void)
{
	struct task *task = make_task(7, "woken", 19);
	u64 ctx[] = { (u64)&task->task };
	struct wire_wake wake;

	on[1] = make_task(9, "waker", 120);
	this_cpu = 1;
	task->task.thread_info.cpu = 3;
	waking(ctx);
	CHECK(next_record(1, &wake, sizeof(wake)) == WIRE_WAKING);
	CHECK(wake.task == 7 && wake.target == 3 && wake.prio == wire_prio(19));
	wakeup(ctx);
	CHECK(next_record(1, &wake, sizeof(wake)) == WIRE_WAKEUP);
	CHECK(wake.task == 7 && wake.target == 3);
	CHECK(!next_record(3, &wake, sizeof(wake)));
}

static void a_migration_is_from_where_it_was(void)
{
	struct task *task = make_task(7, "moved", 120);
	u64 ctx[] = { (u64)&task->task, 2 };
	struct wire_migrate record;

	this_cpu = 1;
	task->task.thread_info.cpu = 3;
	migrate(ctx);
	CHECK(next_record(1, &record, sizeof(record)) == WIRE_MIGRATE);
	CHECK(record.task == 7 && record.from == 3 && record.to == 2);
}

/* The holder of a lock gets the priority of who waits, and never a lower one than its own. */
static void a_priority_that_is_lent_is_the_more_urgent_one(void)
{
	struct task *owner = make_task(7, "owner", 120), *donor = make_task(8, "donor", 19);
	u64 ctx[] = { (u64)&owner->task, (u64)&donor->task };
	struct wire_pi record;

	this_cpu = 0;
	pi_setprio(ctx);
	CHECK(next_record(0, &record, sizeof(record)) == WIRE_PI_SETPRIO);
	CHECK(record.task == 7 && record.old == wire_prio(120) && record.new == wire_prio(19));
	owner->task.prio = 19, ctx[1] = 0;
	pi_setprio(ctx);
	CHECK(next_record(0, &record, sizeof(record)) == WIRE_PI_SETPRIO);
	CHECK(record.old == wire_prio(19) && record.new == wire_prio(120));
	owner->task.normal_prio = 10, ctx[1] = (u64)&donor->task;
	pi_setprio(ctx);
	CHECK(next_record(0, &record, sizeof(record)) && record.new == wire_prio(10));
}

static void a_switch_has_both_tasks_and_why_the_first_left(void)
{
	struct task *first = make_task(7, "first", 19), *second = make_task(8, "second", 120);
	u64 ctx[] = { 0, (u64)&first->task, (u64)&second->task, TASK_INTERRUPTIBLE };
	struct wire_switch record;

	switched(ctx);
	CHECK(next_record(0, &record, sizeof(record)) == WIRE_SWITCH);
	CHECK(record.next == 8 && record.prev_state == TASK_INTERRUPTIBLE);
	CHECK(record.prev_prio == wire_prio(19) && record.next_prio == wire_prio(120));
	/* Preempted, whatever it was about to do; and held by the freezer. */
	ctx[0] = 1;
	switched(ctx);
	CHECK(next_record(0, &record, sizeof(record)) && record.prev_state == 0);
	ctx[0] = 0, first->task.jobctl = JOBCTL_TRAP_FREEZE;
	switched(ctx);
	CHECK(next_record(0, &record, sizeof(record)) && record.prev_state == TASK_STOPPED);
}

static void a_timer_is_due_on_the_monotonic_clock(void)
{
	struct hrtimer_clock_base base = { 1700000000000000000 };
	struct hrtimer timer = { ._softexpires = base.offset + 5000, .base = &base };
	u64 now = base.offset + 5700, ctx[] = { (u64)&timer, (u64)&now };
	struct wire_hrtimer_entry record;

	hrtimer_entry(ctx);
	CHECK(next_record(0, &record, sizeof(record)) == WIRE_HRTIMER_ENTRY);
	CHECK(record.expires == 5000 && record.now == 5700 && record.timer == (u64)&timer);
}

static struct pt_regs fault_regs;
static void fault(void)
{
	u64 ctx[] = { 0x1234, (u64)&fault_regs, 0 };

	page_fault_kernel(ctx);
}

/* The interrupt is recorded, what reading the stack did is not; a fault of the task is. */
static void a_fault_of_our_own_program_is_no_event(void)
{
	u64 ctx[] = { 1 };
	struct wire_page_fault record;

	this_cpu = 0, on[0] = make_task(7, "thread", 19);
	want_stacks = true, walk_faults = fault;
	irq_entry(ctx);
	want_stacks = false, walk_faults = 0;
	CHECK(next_record(0, &record, sizeof(record)) == WIRE_IRQ_ENTRY);
	CHECK(!next_record(0, &record, sizeof(record)));
	fault();
	CHECK(next_record(0, &record, sizeof(record)) == WIRE_PAGE_FAULT && record.address == 0x1234);
}

int main(void)
{
	begin_world();
	a_wake_up_is_for_the_cpu_of_the_woken();
	a_migration_is_from_where_it_was();
	a_priority_that_is_lent_is_the_more_urgent_one();
	a_switch_has_both_tasks_and_why_the_first_left();
	a_timer_is_due_on_the_monotonic_clock();
	a_fault_of_our_own_program_is_no_event();
	return failures != 0;
}
