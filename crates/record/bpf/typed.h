/* What the accounting reads of tasks where the kernel describes its types. */
#ifndef PUNCTUAL_TYPED_H
#define PUNCTUAL_TYPED_H

#include "account.h"

INLINE u32 task_cpu(struct task_struct *task)
{
	if (field_exists(task->thread_info.cpu))
		return task->thread_info.cpu;
	return ((struct task_struct___before_5_16 *)task)->cpu;
}

/* Kernel priorities below this are SCHED_DEADLINE. */
#define DEADLINE 0
#define HRTIMER_STATE_ENQUEUED 1
#define TASK_ON_RQ_QUEUED 1

/* Whether a SCHED_DEADLINE task has no runtime left: the timer for the start of its next period is
 * started exactly then. */
INLINE bool is_out_of_runtime(struct task_struct *task)
{
	struct hrtimer *timer = &task->dl.dl_timer;
	struct hrtimer___queued *since_7_2 = (void *)timer;
	u8 state = 0;

	if (field_exists(timer->state))
		bpf_probe_read_kernel(&state, sizeof(state), &timer->state);
	else if (field_exists(since_7_2->is_queued))
		bpf_probe_read_kernel(&state, sizeof(state), &since_7_2->is_queued);
	return state & HRTIMER_STATE_ENQUEUED;
}

INLINE bool is_held(struct wire_account_thread *thread)
{
	struct task_struct *task = (void *)thread->task;

	if (task && thread->prio < DEADLINE)
		return is_out_of_runtime(task);
	return task && thread->prio >= REAL_TIME && held_back(task);
}

INLINE bool is_queued(struct wire_account_thread *thread)
{
	struct task_struct *task = (void *)thread->task;
	u8 on_rq = 0;

	if (!task)
		return true;
	/* Since 7.2 it has one byte; of more it is the lowest: all machines are little-endian. */
	bpf_probe_read_kernel(&on_rq, sizeof(on_rq), &task->on_rq);
	return on_rq == TASK_ON_RQ_QUEUED;
}

#endif
