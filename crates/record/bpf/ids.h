/* The ids of tasks: those of the initial PID namespace, or of the one that punctual runs in
 * (pid_namespaces(7)). */
#ifndef PUNCTUAL_IDS_H
#define PUNCTUAL_IDS_H

#include "kernel.h"
#include "wire.h"

/* The number of a PID namespace that is not the initial one (include/linux/proc_ns.h); 0: ids are
 * those of the initial one. */
const volatile u32 pid_namespace = 0;

/* How far the namespaces of a task may lie below that one. */
#define NAMESPACES_BELOW 4

/* The id in that namespace. Who has none there keeps the outer one, with a bit that no id has. The
 * number of a task is all that is needed, not a pointer that the verifier knows. */
NOINLINE u32 inner_id(u64 number)
{
	struct task_struct *task = (void *)number;
	struct upid upid = {};
	struct pid *pid = 0;
	u32 level = 0, outer = 0, inum;

	bpf_probe_read_kernel(&outer, sizeof(outer), &task->pid);
	if (!outer)
		return 0;
	bpf_probe_read_kernel(&pid, sizeof(pid), &task->thread_pid);
	if (!pid || bpf_probe_read_kernel(&level, sizeof(level), &pid->level))
		return outer | WIRE_OUTSIDE;
	for (u32 up = 0; up < NAMESPACES_BELOW && up < level; up++) {
		u64 place = (u64)&pid->numbers + (u64)(level - up) * sizeof(upid);

		inum = 0;
		bpf_probe_read_kernel(&upid, sizeof(upid), (void *)place);
		if (upid.ns)
			bpf_probe_read_kernel(&inum, sizeof(inum), &upid.ns->ns.inum);
		if (inum == pid_namespace)
			return upid.nr;
	}
	return outer | WIRE_OUTSIDE;
}

INLINE u32 id_of(struct task_struct *task)
{
	return pid_namespace ? inner_id((u64)task) : (u32)task->pid;
}

INLINE u32 process_of(struct task_struct *task)
{
	return pid_namespace ? inner_id((u64)task->group_leader) : (u32)task->tgid;
}

/* Of the task that runs, as bpf_get_current_pid_tgid gives them: the process above the thread. */
INLINE u64 own_ids(void)
{
	struct task_struct *task;

	if (!pid_namespace)
		return bpf_get_current_pid_tgid();
	task = bpf_get_current_task_btf();
	return (u64)process_of(task) << 32 | id_of(task);
}

INLINE u32 own_id(void)
{
	if (!pid_namespace)
		return bpf_get_current_pid_tgid();
	return inner_id(bpf_get_current_task());
}

#endif
