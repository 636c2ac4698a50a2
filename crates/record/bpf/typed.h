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

INLINE bool is_held(struct wire_account_thread *thread)
{
	struct task_struct *task = (void *)thread->task;

	return task && thread->prio >= REAL_TIME && held_back(task);
}

#endif
