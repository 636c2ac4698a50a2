/* One program for any tracepoint of a kernel without BTF: it copies the tracepoint's own
 * record, whose fields user space knows from tracefs. Loaded once for each tracepoint, with
 * these constants. */
#include "buffer.h"
#include "filter.h"

const volatile u32 which = 0; /* the number that user space gave this tracepoint */
/* To copy, from byte 8 of the record on: what stands before is not for programs to see. */
const volatile u32 bytes = 0;
const volatile u32 other_offset = 0; /* where it has another task's thread id; 0: nowhere */
const volatile u32 child_offset = 0; /* where it names a new task */
const volatile u32 syscall_offset = 0; /* where it has the number of a system call; 0: nowhere */
const volatile u64 syscalls[WIRE_MAX_SYSCALLS / 64] = {};
/* The record has a name: it is always wanted, and goes to the buffer of names. */
const volatile bool to_names = false;

INLINE bool wanted(const void *ctx, u64 id)
{
	if (wanted_current(id))
		return true;
	if (by_pid && !by_comm && other_offset) {
		u32 other = 0;

		bpf_probe_read_kernel(&other, sizeof(other), ctx + other_offset);
		return bpf_map_lookup_elem(&pids, &other) != 0;
	}
	return false;
}

INLINE bool syscall_wanted(const void *ctx)
{
	u64 number = 0;
	u32 word;

	bpf_probe_read_kernel(&number, 8, ctx + syscall_offset);
	word = number / 64;
	asm volatile("" : "+r"(word));
	return word < WIRE_MAX_SYSCALLS / 64 && (syscalls[word] >> (number & 63) & 1);
}

SEC("tracepoint") int record(void *ctx)
{
	u32 cpu = bpf_get_smp_processor_id();
	struct buffer *buffer = to_names ? buffer_of(names_slot) : buffer_here(cpu);
	struct wire_raw record = { .tracepoint = which, .bytes = bytes };
	u64 id = bpf_get_current_pid_tgid();

	if (child_offset && by_pid && follow) {
		u32 child = 0;
		u8 one = 1;

		bpf_probe_read_kernel(&child, sizeof(child), ctx + child_offset);
		if (in_pids(id >> 32, id))
			bpf_map_update_elem(&pids, &child, &one, 0);
	}
	if (!buffer || (!to_names && !wanted(ctx, id)))
		return 0;
	if (syscall_offset && !syscall_wanted(ctx))
		return 0;
	bpf_probe_read_kernel(record.record, bytes & 127, ctx + 8);
	emit_to(buffer, bpf_ktime_get_ns(), id, WIRE_RAW, cpu, (const u64 *)&record, sizeof(record) / 8);
	return 0;
}

const char gpl[] SEC("license") = "GPL";
