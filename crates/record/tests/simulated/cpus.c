/* Entries into the kernel on CPU 1, caused by tasks of CPU 0, which is not looked at. */
#define PROGRAMS "cpus.bpf.c"
#include "world.h"

#define TASKLET_SOFTIRQ 6
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

/* The workers of WQ_BH run their work items in a softirq (Linux 6.9). */
static void a_work_item_in_a_softirq_is_the_softirqs(void)
{
	struct task *task = make_task(51, "task", 120);
	struct work_struct first = { (void *)0x77 }, second = { (void *)0x88 };
	struct worker_pool pool = { 1 };
	struct pool_workqueue queue = { &pool };
	u64 softirq[] = { TASKLET_SOFTIRQ }, queued[] = { 1, (u64)&queue, (u64)&second };
	u64 one[] = { (u64)&first, 0x77 }, other[] = { (u64)&second, 0x88 };
	u64 come[] = { 0, (u64)&on[1]->task, (u64)&task->task, 0 };
	u64 go[] = { 0, (u64)&task->task, (u64)&on[1]->task, TASK_INTERRUPTIBLE };
	struct wire_entry entry;

	this_cpu = 0;
	now_ns = 20000;
	cpu_work_queued(queued);
	this_cpu = 1;
	cpu_switched(come);
	now_ns = 20100;
	cpu_soft_entry(softirq);
	now_ns = 20110;
	cpu_work_start(one);
	now_ns = 20140;
	cpu_work_end(one);
	now_ns = 20150;
	cpu_work_start(other);
	now_ns = 20190;
	cpu_work_end(other);
	now_ns = 20200;
	cpu_soft_exit(softirq);
	now_ns = 20300;
	cpu_switched(go);
	CHECK(next_record(0, &entry, sizeof(entry)) && entry.kind == WIRE_ENTRY_SOFTIRQ);
	CHECK(entry.func == 0x88 && entry.own == 40 && entry.flags & WIRE_ENTRY_FURTHER);
	CHECK(entry.by == 42 && entry.at == 20000);
	CHECK(next_record(0, &entry, sizeof(entry)) && entry.kind == WIRE_ENTRY_SOFTIRQ);
	/* Nobody is known who queued the first one. */
	CHECK(entry.func == 0x77 && entry.own == 60 && !entry.at && !entry.by);
	CHECK(next_record(0, &entry, sizeof(entry)) && entry.kind == WIRE_ENTRY_TASK);
	CHECK(!entry.func && entry.own == 200);
}

/* One of those events that begin or end something, of which any may be missing. */
static void happens(u32 which, struct task *task)
{
	struct work_struct work = { (void *)0x77 };
	struct hrtimer timer = { .function = (void *)0x66 };
	u64 number[] = { 1, 0 }, called[] = { 0x4000, 0x5000 }, none[1];
	u64 of_work[] = { (u64)&work, 0x77 }, of_timer[] = { (u64)&timer, 0 };
	u64 to[] = { which & 1, (u64)&on[1]->task, (u64)&task->task, TASK_INTERRUPTIBLE };

	switch (which) {
	case 0: cpu_local_timer(none); break;
	case 1: case 2: cpu_vector_exit(none); break;
	case 3: cpu_irq_entry(number); break;
	case 4: cpu_soft_entry(number); break;
	case 5: cpu_soft_exit(number); break;
	case 6: cpu_hrtimer_entry(of_timer); break;
	case 7: cpu_hrtimer_exit(of_timer); break;
	case 8: cpu_call_entry(called); break;
	case 9: cpu_call_exit(called); break;
	case 10: cpu_work_start(of_work); break;
	case 11: cpu_work_end(of_work); break;
	default: cpu_switched(to); on[1] = task;
	}
}

/* Own times never overlap: they add up to no more than the time that passed, whichever begins and
 * ends were not seen. */
static void whatever_comes_own_times_are_within_the_time(void)
{
	struct task *tasks[] = { make_task(60, "a", 120), make_task(61, "b", 120), on[1] };
	u64 random = 1;

	for (u32 round = 0; round < 20000; round++) {
		struct wire_entry entry;
		u64 begin, own = 0;

		memset(find(&cpus, &(u32){ 0 }), 0, sizeof(struct cpu));
		begin = now_ns;
		happens(12, tasks[0]);
		for (u32 event = 0; event < 20; event++) {
			random = random * 6364136223846793005 + 1442695040888963407;
			now_ns += 1 + (random >> 40) % 50;
			happens((random >> 33) % 14, tasks[(random >> 50) % 3]);
			while (next_record(0, &entry, sizeof(entry)))
				own += entry.own;
		}
		if (own > now_ns - begin) {
			printf("round %u: %llu of %llu ns\n", round, own, now_ns - begin);
			failures++;
			return;
		}
	}
}

static void fault(void) { cpu_fault_kernel(0); }

/* A chosen CPU's task raises a softirq, and reading its stack faults: an entry of its own would end
 * the test, which has no map of those. */
static void a_fault_of_our_own_program_is_no_entry(void)
{
	u64 number[] = { 3 };

	memset(find(&cpus, &(u32){ 0 }), 0, sizeof(struct cpu));
	this_cpu = 1, walk_faults = fault;
	cpu_soft_raise(number);
	walk_faults = 0;
	CHECK(((struct cpu *)find(&cpus, &(u32){ 0 }))->raised[3].at == now_ns);
}

int main(void)
{
	begin_world();
	add_map(&cpus, 4, sizeof(struct cpu), 1);
	add_map(&sent, 8, sizeof(struct origin), 0);
	add_map(&calls, 8, sizeof(struct origin), 0);
	add_map(&timers, 8, sizeof(struct origin), 0);
	add_map(&works, 8, sizeof(struct origin), 0);
	add_map(&woken, 8, sizeof(struct origin), 0);
	/* CPU 1 alone is looked at: its buffer is the first. */
	first_cpu = 1, cpu_count = 1;
	call_function = 0x3000;
	on[0] = sender = make_task(42, "sender", 120);
	an_interrupt_is_of_the_task_that_sent_it();
	a_function_that_is_called_is_of_its_caller();
	the_time_of_an_entry_is_its_own();
	a_work_item_in_a_softirq_is_the_softirqs();
	whatever_comes_own_times_are_within_the_time();
	a_fault_of_our_own_program_is_no_entry();
	return failures != 0;
}
