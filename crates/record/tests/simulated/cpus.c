/* Entries into the kernel on CPU 1, caused by tasks of CPU 0, which is not looked at. */
#define PROGRAMS "cpus.bpf.c"
#include "world.h"

#define SCHED_SOFTIRQ 7

static struct task *sender;

static void an_interrupt_is_of_the_task_that_sent_it(void)
{
	u64 ctx[] = { 1, 0, 0 }, none[1];
	struct wire_entry entry;

	this_cpu = 0;
	now_ns = 1000;
	cpu_ipi(ctx);
	this_cpu = 1;
	now_ns = 3000;
	cpu_reschedule(none);
	now_ns = 3500;
	cpu_vector_exit(none);
	CHECK(next_record(0, &entry, sizeof(entry)) == WIRE_ENTRY);
	CHECK(entry.begin == 3000 && entry.own == 500 && entry.what == WIRE_VECTOR_RESCHEDULE);
	CHECK(entry.by == 42 && entry.by_cpu == 0 && entry.at == 1000);
	CHECK(!strcmp((char *)entry.by_comm, "sender"));
	/* The next one is of nobody that is known. */
	cpu_reschedule(none);
	cpu_vector_exit(none);
	CHECK(next_record(0, &entry, sizeof(entry)) == WIRE_ENTRY && !entry.at && !entry.by);
}

static void a_function_that_is_called_is_of_its_caller(void)
{
	u64 queued[] = { 1, 0, 0x4000, 0x5000 }, called[] = { 0x4000, 0x5000 }, none[1];
	struct wire_entry entry;

	this_cpu = 0;
	now_ns = 5000;
	cpu_call_queued(queued);
	this_cpu = 1;
	now_ns = 6000;
	cpu_call_function_single(none);
	cpu_call_entry(called);
	now_ns = 6400;
	cpu_call_exit(called);
	cpu_vector_exit(none);
	CHECK(next_record(0, &entry, sizeof(entry)) == WIRE_ENTRY);
	CHECK(entry.func == 0x4000 && entry.by == 42 && entry.at == 5000 && entry.own == 400);
}

/* What an interrupt takes within a softirq, and both within a task, is none of theirs. */
static void the_time_of_an_entry_is_its_own(void)
{
	struct task *task = make_task(50, "task", 120);
	u64 softirq[] = { SCHED_SOFTIRQ }, none[1];
	u64 come[] = { 0, (u64)&on[1]->task, (u64)&task->task, 0 };
	u64 go[] = { 0, (u64)&task->task, (u64)&on[1]->task, TASK_INTERRUPTIBLE };
	struct wire_entry entry;

	now_ns = 10000;
	cpu_switched(come);
	now_ns = 11000;
	cpu_soft_entry(softirq);
	now_ns = 11300;
	cpu_local_timer(none);
	now_ns = 11500;
	cpu_vector_exit(none);
	now_ns = 12000;
	cpu_soft_exit(softirq);
	now_ns = 14000;
	cpu_switched(go);
	CHECK(next_record(0, &entry, sizeof(entry)) && entry.kind == WIRE_ENTRY_VECTOR);
	CHECK(entry.own == 200 && entry.flags & WIRE_ENTRY_NESTED);
	CHECK(next_record(0, &entry, sizeof(entry)) && entry.kind == WIRE_ENTRY_SOFTIRQ);
	CHECK(entry.own == 800 && entry.begin == 11000);
	CHECK(next_record(0, &entry, sizeof(entry)) && entry.kind == WIRE_ENTRY_TASK);
	CHECK(entry.what == 50 && entry.own == 3000);
}

int main(void)
{
	begin_world();
	add_map(&cpus, 4, sizeof(struct cpu), 1);
	add_map(&sent, 8, sizeof(struct origin), 0);
	add_map(&calls, 8, sizeof(struct origin), 0);
	add_map(&woken, 8, sizeof(struct origin), 0);
	/* CPU 1 alone is looked at: its buffer is the first. */
	first_cpu = 1, cpu_count = 1;
	call_function = 0x3000;
	on[0] = sender = make_task(42, "sender", 120);
	an_interrupt_is_of_the_task_that_sent_it();
	a_function_that_is_called_is_of_its_caller();
	the_time_of_an_entry_is_its_own();
	return failures != 0;
}
