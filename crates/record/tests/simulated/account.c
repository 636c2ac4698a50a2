/* The sums of a thread that is ready, and the buffers, as all programs have them. */
#include "attached.h"

static void a_thread_that_is_moved_waits_there_alone(void)
{
	struct wire_account_thread *a;

	watch(thread);
	a = &value(thread->task.pid)->account;
	a->active = 1;
	now_ns = 1000;
	look(a, of_cpu(0), now_ns);
	join(of_cpu(0), a, thread->task.pid);
	now_ns = 1500;
	moved(thread->task.pid, 1);
	CHECK(!anybody_waits(of_cpu(0)) && anybody_waits(of_cpu(1)));
	CHECK(a->cpu == 1 && a->moved && sum(a->wait) == 500);
	leave(of_cpu(1), thread->task.pid);
	CHECK(!anybody_waits(of_cpu(1)));
}

static void who_keeps_a_ready_thread(void)
{
	struct wire_account_thread a = { .since = 100, .prio = 19 }, fair = { .since = 100, .prio = 120 };
	/* Chosen before it was ready, and after. */
	struct running before = { 50, 5, 120 }, after = { 200, 5, 120 };

	CHECK(keeper(&a, before, false) == WIRE_PART_NOT_SWITCHED);
	CHECK(keeper(&a, after, false) == WIRE_PART_THROTTLED);
	before.prio = after.prio = 10;
	CHECK(keeper(&a, before, false) == WIRE_PART_PREEMPTED);
	CHECK(keeper(&fair, after, false) == WIRE_PART_PREEMPTED);
	before.prio = 19;
	CHECK(keeper(&a, before, false) == WIRE_PART_RUNQUEUE);
	before.prio = 110;
	CHECK(keeper(&fair, before, false) == WIRE_PART_RUNQUEUE);
	before.task = after.task = 0;
	CHECK(keeper(&a, before, false) == WIRE_PART_IDLE_EXIT);
	CHECK(keeper(&a, after, false) == WIRE_PART_THROTTLED);
	CHECK(keeper(&fair, after, false) == WIRE_PART_IDLE_EXIT);
	a.unseen = 1;
	CHECK(keeper(&a, after, false) == WIRE_PART_UNKNOWN);
}

static void pieces_have_a_bound(void)
{
	struct wire_account_thread a = {};

	for (u64 i = 0; i < WIRE_ACCOUNT_PIECES; i++)
		append(&a, 1 + i % 2, 5);
	CHECK(a.count == WIRE_ACCOUNT_PIECES && !a.full);
	append(&a, 2, 6);
	CHECK(a.pieces[WIRE_ACCOUNT_PIECES - 1] == (2ull << 56 | 11) && !a.full);
	append(&a, 3, 7);
	CHECK(a.full && a.count == WIRE_ACCOUNT_PIECES && a.pieces[0] == (1ull << 56 | 5));
}

static void what_finds_no_room_is_counted(void)
{
	struct buffer *buffer = buffer_of(2);
	struct wire_lost lost;
	u64 payload = 7, got;

	buffer->at.head = buffer->at.done = WORDS;
	emit_to(buffer, 1000, 1, WIRE_IDLE, 2, &payload, 1);
	emit_to(buffer, 2000, 1, WIRE_IDLE, 2, &payload, 1);
	CHECK(buffer->at.lost == 2 && buffer->at.missed == 2 && buffer->at.missed_since == 1000);
	buffer->at.tail = WORDS;
	emit_to(buffer, 3000, 1, WIRE_IDLE, 2, &payload, 1);
	CHECK(next_record(2, &lost, sizeof(lost)) == WIRE_LOST && lost.count == 2 && lost.since == 1000);
	CHECK(next_record(2, &got, sizeof(got)) == WIRE_IDLE && got == 7);
	CHECK(!next_record(2, &got, sizeof(got)) && buffer->at.lost == 2 && !buffer->at.missed);
}

int main(void)
{
	begin_attached();
	a_thread_that_is_moved_waits_there_alone();
	who_keeps_a_ready_thread();
	pieces_have_a_bound();
	what_finds_no_room_is_counted();
	return failures != 0;
}
