/* Times functions of programs: one program at the first instruction of each, one where it returns.
 * A third one stamps source lines.
 *
 * Each thread has a stack of the calls that it is in. A call that ends by longjmp, an exception or
 * exit never returns: its frame is found dead when the thread's stack pointer has passed it, and
 * reported as left. So recursion and threads need no care, and no entry is ever paired with the
 * return of another call. */
#include "buffer.h"
#include "filter.h"

#define DEPTH_MAX 64 /* see frame_at */
/* Farther away than this is another stack: a signal handler's, a coroutine's. */
#define SAME_STACK (256ull << 10)

/* The functions are the kernel's own: stacks are its own, returns are distinguished by their
 * order alone. */
const volatile bool in_kernel = false;
const volatile u32 argument = 0; /* which integer argument is kept, from 1; 0 for none */

/* What the kernel hands to programs at user probes (bpf_user_pt_regs_t): the user's registers. */
#if defined(TARGET_x86_64)
struct regs {
	u64 r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di;
	u64 orig_ax, ip, cs, flags, sp, ss;
};
/* A return takes the return address off the stack. */
#define RETURNED_SP(regs) ((regs)->sp - 8)
#elif defined(TARGET_aarch64)
struct regs {
	u64 regs[31], sp, pc, pstate;
};
#define RETURNED_SP(regs) ((regs)->sp)
#elif defined(TARGET_riscv64)
struct regs {
	u64 pc, ra, sp, gp, tp, t0, t1, t2, s0, s1, a0, a1, a2, a3, a4, a5;
};
#define RETURNED_SP(regs) ((regs)->sp)
#endif

struct frame {
	u64 began;
	u64 sp;
	u64 back; /* where it returns to */
	u64 argument;
	u32 function;
	u32 spare;
};

struct calls {
	u64 depth;
	u64 found; /* see find */
	u64 deeper; /* calls beyond DEPTH_MAX that the thread is in */
	struct frame frames[DEPTH_MAX];
};

/* What happened to a function's calls; the loader reads it. */
struct count {
	u64 entered;
	u64 returned;
	u64 left;
	u64 unpaired; /* returns of calls that had begun before the probes */
	u64 too_deep;
	u64 no_room; /* more threads than the table has room for */
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, u32);
	__type(value, struct calls);
} threads SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct calls);
} blank SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct count);
} counts SEC(".maps");

/* The mask is written so that the compiler, which knows the bound already, leaves it for the
 * verifier to see. */
INLINE struct frame *frame_at(struct calls *calls, u64 at)
{
	asm volatile("%0 &= 63" : "+r"(at));
	return &calls->frames[at];
}

NOINLINE int say_call(struct frame *frame, u64 ended, u32 depth, bool left)
{
	u32 cpu = bpf_get_smp_processor_id(), function = frame->function;
	struct buffer *buffer = buffer_here(cpu);
	struct count *count = bpf_map_lookup_elem(&counts, &function);
	struct wire_call record = { .began = frame->began, .function = function,
				    .depth = depth, .left = left };

	if (count)
		fetch_add(left ? &count->left : &count->returned, 1);
	if (!buffer)
		return 0;
	record.has_argument = argument != 0;
	record.argument = frame->argument;
	emit_to(buffer, ended, bpf_get_current_pid_tgid(), WIRE_CALL, cpu, (const u64 *)&record,
		sizeof(record) / 8);
	return 0;
}

/* Takes off the calls above `depth` that have not returned. */
NOINLINE int leave(struct calls *calls, u64 depth, u64 now)
{
	for (u32 i = 0; i < DEPTH_MAX; i++) {
		u64 top = calls->depth - 1;

		if (calls->depth <= depth || top >= DEPTH_MAX)
			break;
		say_call(frame_at(calls, top), now, top, true);
		calls->depth = top;
	}
	return 0;
}

INLINE u64 return_address(struct regs *regs)
{
#if defined(TARGET_x86_64)
	u64 back = 0;

	if (in_kernel)
		bpf_probe_read_kernel(&back, sizeof(back), (const void *)regs->sp);
	else
		bpf_probe_read_user(&back, sizeof(back), (const void *)regs->sp);
	return back;
#elif defined(TARGET_riscv64)
	return regs->ra;
#else
	return regs->regs[30];
#endif
}

/* Each register is read by an instruction of its own: the verifier takes no computed offset into
 * the context. */
#define ARGUMENT(n, register)                                       \
	if (argument == (n)) {                                      \
		u64 value = *(volatile u64 *)&regs->register;       \
		asm volatile("" : "+r"(value));                     \
		return value;                                       \
	}

INLINE u64 argument_of(struct regs *regs)
{
#if defined(TARGET_x86_64)
	ARGUMENT(1, di)
	ARGUMENT(2, si)
	ARGUMENT(3, dx)
	ARGUMENT(4, cx)
	ARGUMENT(5, r8)
	ARGUMENT(6, r9)
#elif defined(TARGET_aarch64)
	ARGUMENT(1, regs[0])
	ARGUMENT(2, regs[1])
	ARGUMENT(3, regs[2])
	ARGUMENT(4, regs[3])
	ARGUMENT(5, regs[4])
	ARGUMENT(6, regs[5])
#elif defined(TARGET_riscv64)
	ARGUMENT(1, a0)
	ARGUMENT(2, a1)
	ARGUMENT(3, a2)
	ARGUMENT(4, a3)
	ARGUMENT(5, a4)
	ARGUMENT(6, a5)
#endif
	return 0;
}

/* Whose stack of calls: the idle tasks of all CPUs have one number, and run functions of
 * the kernel. */
INLINE u32 key_of(u64 id)
{
	u32 tid = id;

	return in_kernel && !tid ? 0x80000000 | bpf_get_smp_processor_id() : tid;
}

/* The stack grows down: a call whose frame lies below the stack pointer of a new one is over. One
 * at the same place is over too if it would return to the same place; else it has ended in a jump
 * to this function (a tail call) and returns with it. */
INLINE bool is_over(const struct frame *frame, u64 sp, u64 back)
{
	if (frame->sp == sp)
		return frame->back == back;
	return frame->sp < sp && sp - frame->sp < SAME_STACK;
}

NOINLINE int leave_dead(struct calls *calls, u64 sp, u64 back)
{
	u64 now = 0;

	for (u32 i = 0; i < DEPTH_MAX; i++) {
		u64 top = calls->depth - 1;
		struct frame *frame = frame_at(calls, top);

		if (!calls->depth || top >= DEPTH_MAX || !is_over(frame, sp, back))
			break;
		if (!now)
			now = bpf_ktime_get_ns();
		say_call(frame, now, top, true);
		calls->depth = top;
	}
	return 0;
}

SEC("uprobe")
int entered(struct regs *ctx)
{
	u64 id = bpf_get_current_pid_tgid(), sp, back, depth;
	u32 tid = key_of(id), function = bpf_get_attach_cookie(ctx), zero = 0;
	struct count *count;
	struct calls *calls;
	struct frame *frame;

	if (!wanted_current(id))
		return 0;
	count = bpf_map_lookup_elem(&counts, &function);
	if (!count)
		return 0;
	fetch_add(&count->entered, 1);
	calls = bpf_map_lookup_elem(&threads, &tid);
	if (!calls) {
		struct calls *empty = bpf_map_lookup_elem(&blank, &zero);

		if (empty)
			bpf_map_update_elem(&threads, &tid, empty, 0);
		calls = bpf_map_lookup_elem(&threads, &tid);
		if (!calls) {
			fetch_add(&count->no_room, 1);
			return 0;
		}
	}
	sp = ctx->sp;
	back = return_address(ctx);
	leave_dead(calls, sp, back);
	depth = calls->depth;
	if (depth >= DEPTH_MAX) {
		calls->deeper++;
		fetch_add(&count->too_deep, 1);
		return 0;
	}
	frame = frame_at(calls, depth);
	frame->sp = sp;
	frame->back = back;
	frame->argument = argument_of(ctx);
	frame->function = function;
	calls->depth = depth + 1;
	frame->began = bpf_ktime_get_ns();
	return 0;
}

/* Finds the newest call of this function from this stack pointer: its place in `found`, DEPTH_MAX
 * where there is none. The result goes through memory so that the verifier does not follow each
 * possible place through all that comes after. */
NOINLINE int find(struct calls *calls, u32 function, u64 sp)
{
	u64 at = calls->depth;

	calls->found = DEPTH_MAX;
	for (u32 i = 0; i < DEPTH_MAX; i++) {
		struct frame *frame;

		if (!at || at > DEPTH_MAX)
			break;
		at--;
		frame = frame_at(calls, at);
		/* Where a return probe of the kernel finds the stack pointer differs between versions. Its
		 * calls nest. */
		if (frame->function == function && (in_kernel || frame->sp == sp)) {
			calls->found = at;
			break;
		}
	}
	return 0;
}

SEC("uretprobe")
int returned(struct regs *ctx)
{
	u64 now = bpf_ktime_get_ns(), id = bpf_get_current_pid_tgid(), at;
	u32 tid = key_of(id), function = bpf_get_attach_cookie(ctx);
	struct calls *calls;
	struct count *count;

	if (!wanted_current(id))
		return 0;
	calls = bpf_map_lookup_elem(&threads, &tid);
	if (calls) {
		find(calls, function, RETURNED_SP(ctx));
		at = *(volatile u64 *)&calls->found;
		if (at < DEPTH_MAX) {
			leave(calls, at + 1, now);
			say_call(frame_at(calls, at), now, at, false);
			calls->depth = at;
			return 0;
		}
		if (calls->deeper) {
			calls->deeper--;
			return 0;
		}
	}
	count = bpf_map_lookup_elem(&counts, &function);
	if (count)
		fetch_add(&count->unpaired, 1);
	return 0;
}

/* A source line was passed: a point, with no state of its own. */
SEC("uprobe")
int passed(struct regs *ctx)
{
	u64 now = bpf_ktime_get_ns(), id = bpf_get_current_pid_tgid();
	u32 cpu = bpf_get_smp_processor_id();
	struct wire_point record = { .point = bpf_get_attach_cookie(ctx) };
	struct buffer *buffer;

	if (!wanted_current(id))
		return 0;
	buffer = buffer_here(cpu);
	if (!buffer)
		return 0;
	emit_to(buffer, now, id, WIRE_POINT, cpu, (const u64 *)&record, sizeof(record) / 8);
	return 0;
}

INLINE int forget(void)
{
	u32 tid = bpf_get_current_pid_tgid();
	struct calls *calls = bpf_map_lookup_elem(&threads, &tid);

	if (!calls)
		return 0;
	leave(calls, 0, bpf_ktime_get_ns());
	bpf_map_delete_elem(&threads, &tid);
	return 0;
}

/* A thread that ends, or becomes another program, is in no call any more. */
SEC("tp_btf/sched_process_exit")
int ended(__attribute__((unused)) u64 *ctx)
{
	return forget();
}

SEC("tp_btf/sched_process_exec")
int replaced(__attribute__((unused)) u64 *ctx)
{
	return forget();
}

/* Children of timed processes are timed. */
SEC("tp_btf/sched_process_fork")
int forked(u64 *ctx)
{
	struct task_struct *parent = (void *)ctx[0], *child = (void *)ctx[1];
	u32 process = child->tgid;
	u8 one = 1;

	if (by_pid && follow && in_pids(parent->tgid, parent->pid))
		bpf_map_update_elem(&pids, &process, &one, 0);
	return 0;
}
