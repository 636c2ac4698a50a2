/* What is wanted, decided before anything is written. */
#ifndef PUNCTUAL_FILTER_H
#define PUNCTUAL_FILTER_H

#include "kernel.h"
#include "wire.h"

const volatile bool by_pid = false;
const volatile bool by_comm = false;
const volatile bool follow = false; /* children of wanted processes are wanted */

struct comm {
	char text[16];
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, u32);
	__type(value, u8);
} pids SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 64);
	__type(key, struct comm);
	__type(value, u8);
} comms SEC(".maps");

INLINE bool in_pids(u32 process, u32 thread)
{
	return bpf_map_lookup_elem(&pids, &process) || bpf_map_lookup_elem(&pids, &thread);
}

/* Whether the thread that runs is wanted; `id` as bpf_get_current_pid_tgid gives it. */
INLINE bool wanted_current(u64 id)
{
	if (by_pid && !in_pids(id >> 32, id))
		return false;
	if (by_comm) {
		struct comm comm = {};

		bpf_get_current_comm(&comm, sizeof(comm));
		return bpf_map_lookup_elem(&comms, &comm) != 0;
	}
	return true;
}

INLINE bool wanted_task(struct task_struct *task)
{
	if (by_pid && !in_pids(task->tgid, task->pid))
		return false;
	if (by_comm) {
		struct comm comm = {};

		bpf_probe_read_kernel(&comm, sizeof(comm), &task->comm);
		return bpf_map_lookup_elem(&comms, &comm) != 0;
	}
	return true;
}

#endif
