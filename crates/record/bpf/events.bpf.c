/* One small program for each tracepoint, on its BTF arguments. src/tracepoints.rs says which
 * program goes where. */
#include "buffer.h"
#include "filter.h"

const volatile u64 syscalls[WIRE_MAX_SYSCALLS / 64] = {}; /* the wanted numbers */
const volatile bool want_syscall = false;
const volatile bool want_futex = false;

const volatile bool want_stacks = false;
/* What an interrupt found the task doing, reported once an interrupt: where system calls are not
 * recorded one by one. */
const volatile bool want_interrupted = false;

/* Kernel stacks by number. The number of a stack does not change: where two would have the same,
 * the second is not reported. */
struct {
	__uint(type, BPF_MAP_TYPE_STACK_TRACE);
	__uint(max_entries, 1); /* the loader says more where stacks are wanted */
	__uint(key_size, 4);
	__uint(value_size, WIRE_STACK_DEPTH * 8);
} stacks SEC(".maps");

#define PROGRAM(name) SEC("tp_btf/" #name) int name(__attribute__((unused)) u64 *ctx)

INLINE u8 wire_prio(int prio)
{
	return prio + 1;
}

/* An event of the thread that runs. */
INLINE int emit(u8 kind, const void *payload, u32 bytes)
{
	u32 cpu = bpf_get_smp_processor_id();
	struct buffer *buffer = buffer_here(cpu);
	u64 id;

	if (!buffer)
		return 0;
	id = bpf_get_current_pid_tgid();
	if (flight || wanted_current(id))
		return emit_to(buffer, bpf_ktime_get_ns(), id, kind, cpu, payload, bytes / 8);
	return 0;
}

/* An event that also concerns another task. */
INLINE int emit_about(struct task_struct *task, u8 kind, const void *payload, u32 bytes)
{
	u32 cpu = bpf_get_smp_processor_id();
	struct buffer *buffer = buffer_here(cpu);
	u64 id;

	if (!buffer)
		return 0;
	id = bpf_get_current_pid_tgid();
	if (flight || wanted_current(id) || wanted_task(task))
		return emit_to(buffer, bpf_ktime_get_ns(), id, kind, cpu, payload, bytes / 8);
	return 0;
}

/* What the thread that runs, or is interrupted, does in the kernel. What the idle task does there
 * is idling: not worth a microsecond of the wake-up that follows. */
NOINLINE int emit_stack(u64 *ctx)
{
	struct wire_number record = {};
	long stack;

	if (!want_stacks || !(u32)bpf_get_current_pid_tgid())
		return 0;
	stack = bpf_get_stackid(ctx, &stacks, BPF_F_FAST_STACK_CMP);
	if (stack < 0)
		return 0;
	record.number = stack;
	return emit(WIRE_STACK, &record, sizeof(record));
}

#define EMIT(kind, payload) emit(kind, &(payload), sizeof(payload))
#define EMIT_ABOUT(task, kind, payload) emit_about(task, kind, &(payload), sizeof(payload))

INLINE u32 task_cpu(struct task_struct *task)
{
	if (field_exists(task->thread_info.cpu))
		return task->thread_info.cpu;
	return ((struct task_struct___before_5_16 *)task)->cpu;
}

/* Real-time tasks are below (include/linux/sched/prio.h: MAX_RT_PRIO). */
#define REAL_TIME 100

/* What the flight recorder reports of quotas: who was taken off its CPU by one, and the first
 * switch there at which that is no longer so. One task a CPU is remembered, the last: a group's
 * tasks are throttled and unthrottled together. */
NOINLINE int look_at_held(struct buffer *buffer, u64 ns, u32 cpu, u32 tid)
{
	struct task_struct *task = (void *)buffer->at.held;
	struct wire_fork record = { .child = buffer->at.held_tid };
	u32 pid = 0;

	bpf_probe_read_kernel(&pid, sizeof(pid), &task->pid);
	if (pid == record.child && held_back(task))
		return 0;
	buffer->at.held = 0;
	write_flight(buffer, ns, second_word(tid, WIRE_RELEASED, 1, cpu), (const u64 *)&record, 1);
	return 0;
}

INLINE struct wire_switch record_of(struct task_struct *prev, struct task_struct *next, u32 state)
{
	struct wire_switch record = { .next = next->pid, .prev_state = state };

	record.prev_prio = wire_prio(prev->prio);
	record.next_prio = wire_prio(next->prio);
	return record;
}

/* Flight mode: a switch that has more to tell than itself. */
NOINLINE int telling_switch(u64 *ctx, struct buffer *buffer, u32 cpu, u32 state)
{
	struct task_struct *prev = (void *)ctx[1], *next = (void *)ctx[2];
	u64 ns = bpf_ktime_get_ns();
	struct wire_switch record;

	if (buffer->at.held)
		look_at_held(buffer, ns, cpu, prev->pid);
	if (!state && prev->pid && prev->prio >= REAL_TIME && held_back(prev)) {
		state = WIRE_HELD_BACK;
		buffer->at.held = ctx[1];
		buffer->at.held_tid = prev->pid;
	}
	record = record_of(prev, next, state);
	write_flight(buffer, ns, second_word(prev->pid, WIRE_SWITCH, 1, cpu), (const u64 *)&record, 1);
	return state & TASK_UNINTERRUPTIBLE ? emit_stack(ctx) : 0;
}

INLINE int switch_of(u64 *ctx, u32 state)
{
	struct task_struct *prev = (void *)ctx[1], *next = (void *)ctx[2];
	u32 cpu = bpf_get_smp_processor_id();
	struct buffer *buffer = buffer_here(cpu);
	struct wire_switch record;

	if (!buffer)
		return 0;
	if ((u8)ctx[0])
		state = 0;
	if (state & TASK_INTERRUPTIBLE && unlikely(is_frozen(prev)))
		state = TASK_STOPPED;
	if (flight && unlikely(buffer->at.held || (state ? state & TASK_UNINTERRUPTIBLE
							 : prev->pid && prev->prio >= REAL_TIME)))
		return telling_switch(ctx, buffer, cpu, state);
	if (!flight && !wanted_task(prev) && !wanted_task(next))
		return 0;
	record = record_of(prev, next, state);
	if (flight)
		return emit_to(buffer, bpf_ktime_get_ns(), prev->pid, WIRE_SWITCH, cpu, (const u64 *)&record, 1);
	emit_to(buffer, bpf_ktime_get_ns(), prev->pid, WIRE_SWITCH, cpu, (const u64 *)&record, 1);
	return state & TASK_UNINTERRUPTIBLE ? emit_stack(ctx) : 0;
}

/* The tracepoint says the state since 5.18: read from the task it may already be that of one that
 * was woken again. */
PROGRAM(switched)
{
	return switch_of(ctx, ctx[3]);
}

PROGRAM(switched_before_5_18)
{
	struct task_struct *prev = (void *)ctx[1];

	return switch_of(ctx, prev->__state);
}

INLINE int woken(struct task_struct *task, u8 kind)
{
	struct wire_wake record = { .task = task->pid, .target = task_cpu(task),
				    .prio = wire_prio(task->prio) };

	return EMIT_ABOUT(task, kind, record);
}

PROGRAM(waking)
{
	return woken((void *)ctx[0], WIRE_WAKING);
}

PROGRAM(wakeup)
{
	return woken((void *)ctx[0], WIRE_WAKEUP);
}

PROGRAM(wakeup_new)
{
	return woken((void *)ctx[0], WIRE_WAKEUP_NEW);
}

PROGRAM(migrate)
{
	struct task_struct *task = (void *)ctx[0];
	struct wire_migrate record = { .task = task->pid, .from = task_cpu(task), .to = ctx[1] };

	return EMIT_ABOUT(task, WIRE_MIGRATE, record);
}

PROGRAM(forked)
{
	struct task_struct *child = (void *)ctx[1];
	struct wire_fork record = { .child = child->pid };

	return EMIT_ABOUT(child, WIRE_FORK, record);
}

PROGRAM(execed)
{
	return emit(WIRE_EXEC, 0, 0);
}

PROGRAM(exited)
{
	return emit(WIRE_EXIT, 0, 0);
}

PROGRAM(pi_setprio)
{
	struct task_struct *task = (void *)ctx[0], *donor = (void *)ctx[1];
	int prio = task->normal_prio;
	struct wire_pi record = { .task = task->pid, .old = wire_prio(task->prio) };

	/* A NULL donor reads as 0 only through a check that the verifier sees. */
	if (donor) {
		int given = donor->prio;

		if (given < prio)
			prio = given;
	}
	record.new = wire_prio(prio);
	return EMIT_ABOUT(task, WIRE_PI_SETPRIO, record);
}

/* Signals that stop a process or let it go on: others are too many. */
PROGRAM(signalled)
{
	struct task_struct *task = (void *)ctx[2];
	u32 number = ctx[0];
	struct wire_signal record = { .task = task->pid, .signal = number };

	if (likely(number - WIRE_SIGNAL_FIRST > WIRE_SIGNAL_LAST - WIRE_SIGNAL_FIRST))
		return 0;
	return EMIT_ABOUT(task, WIRE_SIGNAL, record);
}

/* Names: whatever the filters are, because any task may turn up in an event. */
INLINE void name_of(struct task_struct *task, const char *comm)
{
	struct wire_name record = { .process = task->tgid, .policy = task->policy,
				    .prio = wire_prio(task->prio) };
	struct buffer *buffer = buffer_of(names_slot);

	bpf_probe_read_kernel(record.comm, sizeof(record.comm), comm);
	if (buffer)
		emit_to(buffer, bpf_ktime_get_ns(), task->pid, WIRE_NAME, 0, (const u64 *)&record,
			sizeof(record) / 8);
}

PROGRAM(new_task)
{
	struct task_struct *task = (void *)ctx[0];

	name_of(task, task->comm);
	if (by_pid && follow) {
		u64 id = bpf_get_current_pid_tgid();
		u32 process = task->tgid;
		u8 one = 1;

		if (in_pids(id >> 32, id))
			bpf_map_update_elem(&pids, &process, &one, 0);
	}
	return 0;
}

PROGRAM(renamed)
{
	name_of((void *)ctx[0], (const char *)ctx[1]);
	return 0;
}

#if defined(TARGET_x86_64)
#define ARGUMENT_1(regs) ((regs)->di)
#define ARGUMENT_2(regs) ((regs)->si)
#define ARGUMENT_3(regs) ((regs)->dx)
#define NUMBER_OF(regs) ((regs)->orig_ax)
#define NR_FUTEX 202
#elif defined(TARGET_aarch64)
#define ARGUMENT_1(regs) ((regs)->regs[0])
#define ARGUMENT_2(regs) ((regs)->regs[1])
#define ARGUMENT_3(regs) ((regs)->regs[2])
#define NUMBER_OF(regs) ((regs)->syscallno)
#define NR_FUTEX 98
#elif defined(TARGET_riscv64)
#define ARGUMENT_1(regs) ((regs)->orig_a0)
#define ARGUMENT_2(regs) ((regs)->a1)
#define ARGUMENT_3(regs) ((regs)->a2)
#define NUMBER_OF(regs) ((regs)->cause == EXC_SYSCALL ? (i32)(regs)->a7 : -1)
#define NR_FUTEX 98
#endif

/* The beginning of an interrupt, in one word, and where it found the task. What the kernel saved
 * when the task came from user mode has the number of its system call; −1 where it came otherwise
 * (arch/x86/entry/entry_64.S, arch/arm64/kernel/entry-common.c); on RISC-V the cause shows it. */
NOINLINE int found_task(u64 *ctx, struct buffer *buffer, u64 ns, u64 second, u64 what)
{
	struct task_struct *task = bpf_get_current_task_btf();

	if (task->flags & PF_KTHREAD) {
		write_flight(buffer, ns, second, &what, 1);
	} else {
		struct pt_regs *regs = bpf_task_pt_regs(task);
		i32 number = NUMBER_OF(regs);
		u64 other_kind = (u64)(WIRE_INTERRUPTED ^ (u8)(second >> 32)) << 32;
		u64 both[] = { what, ns, second ^ other_kind, number < 0 ? WIRE_NO_CALL : (u32)number };

		write_flight(buffer, ns, second, both, 4);
	}
	return emit_stack(ctx);
}

/* The same where that is not to be told. */
NOINLINE int interrupted(u64 *ctx, struct buffer *buffer, u64 ns, u64 second, u64 what)
{
	write_flight(buffer, ns, second, &what, 1);
	return emit_stack(ctx);
}

INLINE int interrupts(u64 *ctx, u8 kind, bool tell_found)
{
	u64 what = (u32)ctx[0], id, ns, second;
	u32 cpu = bpf_get_smp_processor_id();
	struct buffer *buffer;

	if (!flight) {
		emit(kind, &what, sizeof(what));
		return emit_stack(ctx);
	}
	buffer = buffer_here(cpu);
	if (!buffer)
		return 0;
	id = bpf_get_current_pid_tgid();
	ns = bpf_ktime_get_ns();
	second = second_word(id, kind, 1, cpu);
	/* An idle CPU was doing nothing. */
	if (likely(!(u32)id))
		return write_flight(buffer, ns, second, &what, 1);
	return tell_found && want_interrupted ? found_task(ctx, buffer, ns, second, what)
					      : interrupted(ctx, buffer, ns, second, what);
}

PROGRAM(irq_entry)
{
	return interrupts(ctx, WIRE_IRQ_ENTRY, true);
}

/* Without bpf_task_pt_regs. */
PROGRAM(irq_entry_before_5_15)
{
	return interrupts(ctx, WIRE_IRQ_ENTRY, false);
}

PROGRAM(irq_exit)
{
	struct wire_irq record = { .irq = ctx[0], .handled = (u32)ctx[2] != 0 };

	return EMIT(WIRE_IRQ_EXIT, record);
}

/* Events that are one number. */
#define NUMBER(name, kind, argument)                      \
	PROGRAM(name)                                     \
	{                                                 \
		struct wire_number record = { .number = ctx[argument] }; \
		return EMIT(kind, record);                \
	}

PROGRAM(vector_entry)
{
	return interrupts(ctx, WIRE_VECTOR_ENTRY, true);
}

PROGRAM(vector_entry_before_5_15)
{
	return interrupts(ctx, WIRE_VECTOR_ENTRY, false);
}

NUMBER(vector_exit, WIRE_VECTOR_EXIT, 0)
NUMBER(softirq_raise, WIRE_SOFTIRQ_RAISE, 0)
NUMBER(softirq_entry, WIRE_SOFTIRQ_ENTRY, 0)
NUMBER(softirq_exit, WIRE_SOFTIRQ_EXIT, 0)
NUMBER(ipi_send, WIRE_IPI_SEND, 0)
NUMBER(reclaim_begin, WIRE_RECLAIM_BEGIN, 0)

/* That an idle state was left stands in the way of the wake-up that follows, which ends it
 * as well. */
PROGRAM(idle)
{
	struct wire_number record = { .number = ctx[0] };

	if (flight && record.number == PWR_EVENT_EXIT)
		return 0;
	return EMIT(WIRE_IDLE, record);
}

/* Another CPU's frequency may be told here. */
PROGRAM(frequency)
{
	struct wire_number record = { .number = ctx[0] };
	u32 here = bpf_get_smp_processor_id(), cpu = ctx[1];
	struct buffer *buffer = buffer_here(here);
	u64 id = bpf_get_current_pid_tgid();

	if (buffer && slot_of(cpu) < cpu_count)
		emit_to(buffer, bpf_ktime_get_ns(), id, WIRE_FREQUENCY, cpu, (const u64 *)&record, 1);
	return 0;
}

/* The instant that was asked for: the kernel may defer a timer beyond it by the task's slack.
 * Timers live on several clocks; the base knows how far its own is from CLOCK_MONOTONIC. */
INLINE u64 hrtimer_expires(struct hrtimer *timer)
{
	return timer->_softexpires - timer->base->offset;
}

PROGRAM(hrtimer_start)
{
	struct hrtimer *timer = (void *)ctx[0];
	struct wire_hrtimer_slack_start record = { .timer = ctx[0],
						   .expires = hrtimer_expires(timer),
						   .slack = slack_of(timer) };

	if (unlikely(record.slack))
		return EMIT(WIRE_HRTIMER_SLACK_START, record);
	return emit(WIRE_HRTIMER_START, &record, sizeof(struct wire_hrtimer_start));
}

PROGRAM(hrtimer_entry)
{
	struct hrtimer *timer = (void *)ctx[0];
	struct wire_hrtimer_slack_entry record = { .timer = ctx[0],
						   .expires = hrtimer_expires(timer),
						   .slack = slack_of(timer) };

	if (!flight) {
		bpf_probe_read_kernel(&record.now, 8, (void *)ctx[1]);
		record.now -= timer->base->offset;
	}
	if (unlikely(record.slack))
		return EMIT(WIRE_HRTIMER_SLACK_ENTRY, record);
	return emit(WIRE_HRTIMER_ENTRY, &record, sizeof(struct wire_hrtimer_entry));
}

PROGRAM(timer_start)
{
	struct timer_list *timer = (void *)ctx[0];
	struct wire_timer record = { .timer = ctx[0], .value = timer->expires };

	return EMIT(WIRE_TIMER_START, record);
}

PROGRAM(timer_entry)
{
	struct timer_list *timer = (void *)ctx[0];
	struct wire_timer record = { .timer = ctx[0], .value = (u64)timer->function };

	return EMIT(WIRE_TIMER_ENTRY, record);
}

/* Events that are one address or a 64-bit number. */
#define ADDRESS(name, kind)                                       \
	PROGRAM(name)                                             \
	{                                                         \
		struct wire_address record = { .address = ctx[0] }; \
		return EMIT(kind, record);                        \
	}

ADDRESS(hrtimer_cancel, WIRE_HRTIMER_CANCEL)
ADDRESS(hrtimer_exit, WIRE_HRTIMER_EXIT)
ADDRESS(timer_exit, WIRE_TIMER_EXIT)
ADDRESS(reclaim_end, WIRE_RECLAIM_END)

INLINE bool syscall_wanted(u32 number)
{
	u32 word = number / 64;

	/* Keeps the compiler from checking one register and using another. */
	asm volatile("" : "+r"(word));
	return want_syscall && word < WIRE_MAX_SYSCALLS / 64 && (syscalls[word] >> (number & 63) & 1);
}

PROGRAM(syscall_enter)
{
	struct pt_regs *regs = (void *)ctx[0];
	u32 number = ctx[1];

	if (want_futex && number == NR_FUTEX) {
		struct wire_futex_enter record = { .address = ARGUMENT_1(regs), .op = ARGUMENT_2(regs) };

		record.waits = is_of_lock(ARGUMENT_3(regs)) ? WIRE_FUTEX_FOR_LOCK : WIRE_FUTEX_FOR_OTHER;
		EMIT(WIRE_FUTEX_ENTER, record);
	}
	if (syscall_wanted(number)) {
		struct wire_syscall_enter record = { .number = number, .first = ARGUMENT_1(regs),
						     .second = ARGUMENT_2(regs) };

		EMIT(WIRE_SYSCALL_ENTER, record);
	}
	return 0;
}

PROGRAM(syscall_exit)
{
	struct pt_regs *regs = (void *)ctx[0];
	u32 number = NUMBER_OF(regs);

	if (syscall_wanted(number)) {
		struct wire_syscall_exit record = { .number = number, .result = ctx[1] };

		EMIT(WIRE_SYSCALL_EXIT, record);
	}
	if (want_futex && number == NR_FUTEX) {
		struct wire_futex_exit record = { .op = ARGUMENT_2(regs), .result = ctx[1] };

		EMIT(WIRE_FUTEX_EXIT, record);
	}
	return 0;
}

PROGRAM(contention_begin)
{
	struct wire_contention record = { .lock = ctx[0], .value = ctx[1] };

	return EMIT(WIRE_CONTENTION_BEGIN, record);
}

PROGRAM(contention_end)
{
	struct wire_contention record = { .lock = ctx[0], .value = ctx[1] };

	return EMIT(WIRE_CONTENTION_END, record);
}

#if defined(TARGET_x86_64) || defined(TARGET_riscv64)
#if defined(TARGET_x86_64)
#define WHERE(regs) ((regs)->ip)
#else
#define WHERE(regs) ((regs)->epc)
#endif

INLINE int page_fault(u64 *ctx, bool user)
{
	struct pt_regs *regs = (void *)ctx[1];
	struct wire_page_fault record = { .address = ctx[0], .ip = WHERE(regs), .user = user };

	return EMIT(WIRE_PAGE_FAULT, record);
}

PROGRAM(page_fault_user)
{
	return page_fault(ctx, true);
}

PROGRAM(page_fault_kernel)
{
	return is_fault_of_task() ? page_fault(ctx, false) : 0;
}
#endif

PROGRAM(page_alloc)
{
	struct wire_page_alloc record = { .page = ctx[0], .order = ctx[1] };

	return EMIT(WIRE_PAGE_ALLOC, record);
}

/* An argument that is a pointer to void: the verifiers of 5.10 and 6.1 refuse to load it. */
INLINE u64 untyped(const u64 *argument)
{
	u64 value = 0;

	bpf_probe_read_kernel(&value, sizeof(value), argument);
	return value;
}

/* As since 6.1: (call_site, ptr, bytes_req, bytes_alloc, …) and (call_site, ptr, cache, …). */
PROGRAM(kmalloc)
{
	struct wire_object record = { .requested = ctx[2], .allocated = ctx[3],
				      .object = untyped(&ctx[1]) };

	return EMIT(WIRE_KMALLOC_OBJECT, record);
}

PROGRAM(cache_alloc)
{
	struct kmem_cache *cache = (void *)ctx[2];
	struct wire_object record = { .requested = cache->object_size, .allocated = cache->size,
				      .object = untyped(&ctx[1]) };

	return EMIT(WIRE_CACHE_ALLOC_OBJECT, record);
}

/* (call_site, ptr, …) */
PROGRAM(kfree)
{
	struct wire_address record = { .address = untyped(&ctx[1]) };

	return EMIT(WIRE_KFREE, record);
}

PROGRAM(cache_free)
{
	struct wire_address record = { .address = untyped(&ctx[1]) };

	return EMIT(WIRE_CACHE_FREE, record);
}

INLINE struct wire_block block_of(struct request *request)
{
	struct gendisk *disk = request->q->disk;
	struct wire_block record = { .sector = request->__sector };

	record.device = (u32)disk->major << 20 | disk->first_minor;
	return record;
}

PROGRAM(block_issue)
{
	struct request *request = (void *)ctx[0];
	struct wire_block record = block_of(request);

	record.bytes = request->__data_len;
	/* REQ_OP_WRITE and its kin are odd: include/linux/blk_types.h. */
	record.value = request->cmd_flags & 1;
	return EMIT(WIRE_BLOCK_ISSUE, record);
}

/* enum of block status to errno: block/blk-core.c, blk_errors. */
INLINE i32 block_errno(u8 status)
{
	switch (status) {
	case 0: return 0;
	case 1: return -95;
	case 2: return -110;
	case 3: return -28;
	case 4: return -67;
	case 5: return -121;
	case 6: return -52;
	case 7: return -61;
	case 8: return -84;
	case 9: return -12;
	default: return -5;
	}
}

PROGRAM(block_complete)
{
	struct wire_block record = block_of((void *)ctx[0]);

	record.bytes = ctx[2];
	record.value = block_errno(ctx[1]);
	return EMIT(WIRE_BLOCK_COMPLETE, record);
}

INLINE int journal(u64 *ctx, u8 kind)
{
	struct journal_s *journal = (void *)ctx[0];
	struct transaction_s *transaction = (void *)ctx[1];
	struct wire_journal record = { .device = journal->j_fs_dev->bd_dev,
				       .transaction = transaction->t_tid };

	return EMIT(kind, record);
}

PROGRAM(journal_start)
{
	return journal(ctx, WIRE_JOURNAL_START);
}

PROGRAM(journal_end)
{
	return journal(ctx, WIRE_JOURNAL_END);
}

PROGRAM(mmc_start)
{
	struct mmc_request *request = (void *)ctx[1];
	struct wire_mmc record = { .opcode = request->cmd->opcode, .value = request->data->blocks };

	return EMIT(WIRE_MMC_START, record);
}

PROGRAM(mmc_done)
{
	struct mmc_request *request = (void *)ctx[1];
	struct wire_mmc record = { .opcode = request->cmd->opcode, .value = request->cmd->error };

	return EMIT(WIRE_MMC_DONE, record);
}

PROGRAM(work_start)
{
	struct work_struct *work = (void *)ctx[0];
	struct wire_address record = { .address = (u64)work->func };

	return EMIT(WIRE_WORK_START, record);
}

PROGRAM(work_end)
{
	struct wire_address record;

	/* The verifier lets no program load a pointer to a function. */
	bpf_probe_read_kernel(&record.address, 8, ctx + 1);
	return EMIT(WIRE_WORK_END, record);
}

PROGRAM(napi_poll)
{
	struct wire_napi record = { .work = ctx[1], .budget = ctx[2] };

	return EMIT(WIRE_NAPI_POLL, record);
}

PROGRAM(packet_received)
{
	struct sk_buff *packet = (void *)ctx[0];
	struct wire_packet record = { .bytes = packet->len };

	bpf_probe_read_kernel(record.device, sizeof(record.device), &packet->dev->name);
	return EMIT(WIRE_PACKET, record);
}

PROGRAM(socket_ready)
{
	struct sock *socket = (void *)ctx[0];
	struct wire_socket record = { .family = socket->__sk_common.skc_family,
				      .protocol = socket->sk_protocol };

	return EMIT(WIRE_SOCKET, record);
}

const char gpl[] SEC("license") = "GPL";
