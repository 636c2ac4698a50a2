/* Every entry into the kernel on some CPUs, each with who sent, queued or armed it.
 *
 * Whoever sends, queues or arms something is kept by what identifies it (the CPU and kind of an
 * IPI, the address of a function call, timer or work item, the task that is woken) until it comes.
 * These programs run on every CPU and keep only what concerns the chosen ones. A chosen CPU has a
 * frame for the interrupt, the softirq and the task that it serves: an entry's own time is that of
 * its frame without what came in between. */
#include "buffer.h"
#include "kernel.h"
#include "wire.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct cpumask {
	unsigned long bits[1];
};
struct task_struct___allowed {
	struct cpumask *cpus_ptr;
};
struct hrtimer_cpu_base {
	unsigned int cpu;
};
struct hrtimer_clock_base___cpu {
	struct hrtimer_cpu_base *cpu_base;
};
struct timer_list___flags {
	u32 flags;
};
struct worker_pool {
	int cpu;
};
struct pool_workqueue {
	struct worker_pool *pool;
};
#pragma clang attribute pop

#define TIMER_CPUMASK 0x3ffff /* include/linux/timer.h */
/* An entry's function, in order: what the vector or the softirq runs for somebody. */
enum { TASK, SOFT, HARD, FRAMES };

struct origin {
	u64 at; /* when; 0: not known */
	u32 tid;
	u32 cpu;
	i32 stack; /* below 0: none */
	u8 via; /* WIRE_ENTRY_…: it came out of this one, on that CPU */
	u8 spare[3];
	u64 via_what;
	u64 comm[2];
};

struct frame {
	u64 begin; /* 0: not open */
	u64 inner; /* ns of what came in between */
	u64 func; /* the first function that it ran for somebody */
	u64 what;
	u64 running; /* the function that runs now; 0: none */
	u64 since;
	u64 inner_then;
	u64 functions;
	struct origin origin; /* of `func` */
	struct origin next; /* of `running`, if another one */
	u64 over; /* the thread that it interrupted; 0: the idle one */
	u8 kind;
	u8 flags;
	u8 spare[6];
};

struct cpu {
	struct frame frames[FRAMES];
	struct origin raised[WIRE_ENTRY_SOFTIRQS];
	u64 timer; /* the hrtimer whose handler ran last */
	u64 victim; /* the thread that was preempted and has not run since; 0: none */
	u32 depth; /* of interrupts within interrupts */
	u32 dependency; /* what keeps the tick, as of tick_stop */
	struct wire_entry_counts counts;
};

/* One for each buffer. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct cpu);
} cpus SEC(".maps");

#define ORIGINS(name, kind, entries)           \
	struct {                               \
		__uint(type, kind);            \
		__uint(max_entries, entries);  \
		__type(key, u64);              \
		__type(value, struct origin);  \
	} name SEC(".maps")

ORIGINS(sent, BPF_MAP_TYPE_HASH, 4096); /* by slot and class of IPI */
ORIGINS(calls, BPF_MAP_TYPE_LRU_HASH, 16384); /* by call_single_data */
ORIGINS(timers, BPF_MAP_TYPE_LRU_HASH, 16384); /* by timer_list or hrtimer */
ORIGINS(works, BPF_MAP_TYPE_LRU_HASH, 16384); /* by work_struct */
ORIGINS(woken, BPF_MAP_TYPE_LRU_HASH, 16384); /* by thread */

/* The kernel keeps one stack for each place; one whose place is taken goes into `more_stacks`. */
#define TAKEN 17 /* EEXIST */

#define STACKS(name, entries)                             \
	struct {                                          \
		__uint(type, BPF_MAP_TYPE_STACK_TRACE);   \
		__uint(max_entries, entries);             \
		__uint(key_size, 4);                      \
		__uint(value_size, WIRE_STACK_DEPTH * 8); \
	} name SEC(".maps")

STACKS(stacks, WIRE_STACKS);
STACKS(more_stacks, 4096);

/* What the tasks there did themselves: only counted. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, struct wire_own_key);
	__type(value, struct wire_own);
} own SEC(".maps");

/* The words of the CPUs' mask that the chosen ones are in: of the first 1,024 CPUs. */
const volatile u64 chosen[16] = {};
const volatile u64 shootdown = 0; /* flush_tlb_func() */
const volatile u64 tick = 0; /* tick_nohz_handler(), before 6.9 tick_sched_timer() */
const volatile u64 call_function = 0; /* generic_smp_call_function_single_interrupt() */

#define PROGRAM(name) SEC("tp_btf/" #name) int name(__attribute__((unused)) u64 *ctx)

INLINE bool is_chosen(u32 cpu)
{
	return slot_of(cpu) < cpu_count;
}

INLINE struct cpu *cpu_here(void)
{
	u32 slot = slot_of(bpf_get_smp_processor_id());

	return slot < cpu_count ? bpf_map_lookup_elem(&cpus, &slot) : 0;
}

INLINE u64 later(u64 a, u64 b)
{
	return a > b ? a - b : 0;
}

/* The innermost frame that is open. */
INLINE struct frame *innermost(struct cpu *cpu)
{
	if (cpu->frames[HARD].begin)
		return &cpu->frames[HARD];
	if (cpu->frames[SOFT].begin)
		return &cpu->frames[SOFT];
	return cpu->frames[TASK].begin ? &cpu->frames[TASK] : 0;
}

/* --- Who does it --- */

INLINE void whole(struct origin *to, const struct origin *from)
{
	__builtin_memcpy(to, from, sizeof(*to));
}

/* The thread that runs here; or, in an interrupt or softirq of a chosen CPU, what that was for. On
 * other CPUs the stack shows whether an interrupt did it. */
NOINLINE int origin_here(void *ctx, struct origin *to)
{
	struct cpu *cpu = cpu_here();
	struct frame *frame = 0;

	if (!to)
		return 0;
	if (cpu && cpu->frames[HARD].begin)
		frame = &cpu->frames[HARD];
	else if (cpu && cpu->frames[SOFT].begin)
		frame = &cpu->frames[SOFT];
	if (frame) {
		if (frame->running && frame->functions > 1)
			whole(to, &frame->next);
		else
			whole(to, &frame->origin);
		to->via = frame->kind;
		to->via_what = frame->kind == WIRE_ENTRY_VECTOR && frame->running ? frame->running :
										    frame->what;
		if (!to->at) {
			to->cpu = bpf_get_smp_processor_id();
			to->stack = -1;
		}
	} else {
		to->tid = bpf_get_current_pid_tgid();
		to->cpu = bpf_get_smp_processor_id();
		to->via = WIRE_ENTRY_NONE;
		to->via_what = 0;
		bpf_get_current_comm(to->comm, sizeof(to->comm));
		to->stack = bpf_get_stackid(ctx, &stacks, BPF_F_FAST_STACK_CMP);
		if (to->stack == -TAKEN) {
			to->stack = bpf_get_stackid(ctx, &more_stacks, BPF_F_FAST_STACK_CMP);
			if (to->stack >= 0)
				to->stack += WIRE_STACKS;
		}
	}
	to->at = bpf_ktime_get_ns();
	return 0;
}

/* Where the map is full the originator is not known: that is counted where it is looked for. */
#define KEEP(map, ctx, key)                                       \
	do {                                                      \
		struct origin origin = {};                        \
		u64 at = (key);                                   \
		origin_here(ctx, &origin);                        \
		bpf_map_update_elem(&map, &at, &origin, 0);       \
	} while (0)

#define TAKE(map, key, to)                                              \
	do {                                                            \
		u64 at = (key);                                         \
		struct origin *found = bpf_map_lookup_elem(&map, &at);  \
		if (found)                                              \
			whole(to, found);                               \
		else                                                    \
			__builtin_memset(to, 0, sizeof(struct origin)); \
	} while (0)

/* --- Entries --- */

/* The record is of the function that runs now, not of the frame. */
#define OF_FUNCTION 1
/* It may be the tick's. */
#define OF_INTERRUPT 2

NOINLINE int emit_entry(struct frame *frame, u64 begin, u64 end, u64 own_ns, u64 how)
{
	u32 here = bpf_get_smp_processor_id();
	struct buffer *buffer = buffer_here(here);
	struct wire_entry entry = {};
	struct origin *origin;

	if (!frame || !buffer)
		return 0;
	origin = how & OF_FUNCTION ? &frame->next : &frame->origin;
	entry.begin = begin;
	entry.own = own_ns;
	entry.func = how & OF_FUNCTION ? frame->running : frame->func;
	entry.what = frame->what;
	entry.over = frame->over;
	entry.kind = frame->kind;
	entry.flags = frame->flags | (how & OF_FUNCTION ? WIRE_ENTRY_FURTHER : 0);
	entry.at = origin->at;
	entry.by = origin->tid;
	entry.by_cpu = origin->cpu;
	entry.stack = origin->stack;
	entry.via = origin->via;
	entry.via_what = origin->via_what;
	__builtin_memcpy(entry.by_comm, origin->comm, sizeof(entry.by_comm));
	if (frame->kind == WIRE_ENTRY_TASK)
		bpf_get_current_comm(entry.name, sizeof(entry.name));
	if (how & OF_INTERRUPT) {
		struct cpu *cpu = cpu_here();

		entry.detail = cpu ? cpu->dependency : 0;
	}
	return emit_to(buffer, end, frame->over, WIRE_ENTRY, here, (const u64 *)&entry,
		       sizeof(entry) / 8);
}

INLINE void open_frame(struct cpu *cpu, struct frame *frame, u8 kind, u64 what, u64 now)
{
	u32 over = bpf_get_current_pid_tgid();

	frame->inner = 0;
	frame->func = 0;
	frame->running = 0;
	frame->functions = 0;
	frame->what = what;
	frame->kind = kind;
	frame->over = over;
	frame->flags = (frame != &cpu->frames[SOFT] && cpu->frames[SOFT].begin ?
				WIRE_ENTRY_NESTED :
				0) |
		       (cpu->victim ? WIRE_ENTRY_AWAY : 0);
	__builtin_memset(&frame->origin, 0, sizeof(frame->origin));
	frame->begin = now;
}

/* Time within `frame` is no time of what is around it. */
INLINE void take_from_around(struct cpu *cpu, struct frame *frame, u64 ns)
{
	if (frame == &cpu->frames[HARD] && cpu->frames[SOFT].begin)
		cpu->frames[SOFT].inner += ns;
	else if (frame != &cpu->frames[TASK])
		cpu->frames[TASK].inner += ns;
}

INLINE void close_frame(struct cpu *cpu, struct frame *frame, u64 now, u64 how)
{
	u64 took = later(now, frame->begin);

	emit_entry(frame, frame->begin, now, later(took, frame->inner), how);
	frame->begin = 0;
	take_from_around(cpu, frame, took);
}

/* A function is run for somebody. The first one names the entry; each later one has a record of its
 * own, and its time is not the entry's. */
INLINE struct origin *begin_function(struct frame *frame, u64 func)
{
	frame->running = func;
	frame->since = bpf_ktime_get_ns();
	frame->inner_then = frame->inner;
	if (frame->functions++ == 0) {
		frame->func = func;
		return &frame->origin;
	}
	return &frame->next;
}

INLINE void end_function(struct frame *frame)
{
	u64 now, took, own_ns;

	if (!frame || !frame->begin || !frame->running)
		return;
	if (frame->functions > 1) {
		now = bpf_ktime_get_ns();
		took = later(now, frame->since);
		own_ns = later(took, later(frame->inner, frame->inner_then));
		emit_entry(frame, frame->since, now, own_ns, OF_FUNCTION);
		frame->inner += own_ns;
	}
	frame->running = 0;
}

INLINE int hard_entry(u8 kind, u64 what)
{
	struct cpu *cpu = cpu_here();

	if (!cpu || cpu->depth++)
		return 0;
	open_frame(cpu, &cpu->frames[HARD], kind, what, bpf_ktime_get_ns());
	return 0;
}

INLINE int hard_exit(void)
{
	struct cpu *cpu = cpu_here();

	if (!cpu || !cpu->depth || --cpu->depth || !cpu->frames[HARD].begin)
		return 0;
	close_frame(cpu, &cpu->frames[HARD], bpf_ktime_get_ns(), OF_INTERRUPT);
	return 0;
}

PROGRAM(cpu_irq_entry)
{
	struct cpu *cpu = cpu_here();

	if (cpu)
		cpu->counts.irqs++;
	return hard_entry(WIRE_ENTRY_IRQ, (u32)ctx[0]);
}

PROGRAM(cpu_irq_exit)
{
	return hard_exit();
}

PROGRAM(cpu_vector_exit)
{
	return hard_exit();
}

/* Which originator belongs to a vector, where no function call shows it. */
INLINE int vector_entry(u32 number, u64 class)
{
	struct cpu *cpu = cpu_here();
	u64 key;

	if (!cpu)
		return 0;
	cpu->counts.vectors[number]++;
	hard_entry(WIRE_ENTRY_VECTOR, number);
	if (class) {
		key = (u64)slot_of(bpf_get_smp_processor_id()) << 2 | class;
		TAKE(sent, key, &cpu->frames[HARD].origin);
		bpf_map_delete_elem(&sent, &key);
	}
	return 0;
}

#define RESCHEDULE 1
#define CALL 2
#define IRQ_WORK 3
#define VECTOR(name, number, class)                \
	PROGRAM(cpu_##name)                        \
	{                                          \
		return vector_entry(number, class); \
	}
VECTOR(local_timer, WIRE_VECTOR_LOCAL_TIMER, 0)
VECTOR(reschedule, WIRE_VECTOR_RESCHEDULE, RESCHEDULE)
VECTOR(call_function, WIRE_VECTOR_CALL_FUNCTION, CALL)
VECTOR(call_function_single, WIRE_VECTOR_CALL_FUNCTION_SINGLE, CALL)
VECTOR(irq_work, WIRE_VECTOR_IRQ_WORK, IRQ_WORK)
VECTOR(x86_platform_ipi, WIRE_VECTOR_PLATFORM_IPI, 0)
VECTOR(error_apic, WIRE_VECTOR_ERROR, 0)
VECTOR(spurious_apic, WIRE_VECTOR_SPURIOUS, 0)
VECTOR(thermal_apic, WIRE_VECTOR_THERMAL, 0)
VECTOR(threshold_apic, WIRE_VECTOR_THRESHOLD, 0)
VECTOR(deferred_error_apic, WIRE_VECTOR_DEFERRED_ERROR, 0)

PROGRAM(cpu_nmi)
{
	struct cpu *cpu = cpu_here();
	struct frame frame = { .kind = WIRE_ENTRY_NMI, .what = ctx[0] };
	u64 now = bpf_ktime_get_ns(), took = ctx[1];
	struct frame *around;

	if (!cpu)
		return 0;
	around = innermost(cpu);
	if (around)
		around->inner += took;
	frame.over = (u32)bpf_get_current_pid_tgid();
	frame.flags = cpu->victim ? WIRE_ENTRY_AWAY : 0;
	frame.origin.stack = -1;
	emit_entry(&frame, now - took, now, took, 0);
	return 0;
}

/* Softirqs, switches and system calls neither begin nor end within an interrupt: where its end was
 * not seen it has ended. No entry is made of it; what came in between has entries of its own. */
INLINE void ended(struct cpu *cpu)
{
	struct frame *frame = &cpu->frames[HARD];

	cpu->depth = 0;
	if (frame->begin)
		take_from_around(cpu, frame, frame->inner);
	frame->begin = 0;
}

PROGRAM(cpu_soft_entry)
{
	struct cpu *cpu = cpu_here();
	u64 number = (u32)ctx[0];

	if (!cpu)
		return 0;
	/* What is checked is what is used: the verifier follows no copies. */
	asm volatile("" : "+r"(number));
	ended(cpu);
	/* The end of the one before was not seen. */
	if (cpu->frames[SOFT].begin)
		take_from_around(cpu, &cpu->frames[SOFT], cpu->frames[SOFT].inner);
	open_frame(cpu, &cpu->frames[SOFT], WIRE_ENTRY_SOFTIRQ, number, bpf_ktime_get_ns());
	if (number < WIRE_ENTRY_SOFTIRQS) {
		whole(&cpu->frames[SOFT].origin, &cpu->raised[number]);
		cpu->raised[number].at = 0;
	}
	return 0;
}

PROGRAM(cpu_soft_exit)
{
	struct cpu *cpu = cpu_here();

	if (!cpu)
		return 0;
	ended(cpu);
	if (cpu->frames[SOFT].begin)
		close_frame(cpu, &cpu->frames[SOFT], bpf_ktime_get_ns(), 0);
	return 0;
}

/* A softirq is raised on the CPU that runs it. */
PROGRAM(cpu_soft_raise)
{
	struct cpu *cpu = cpu_here();
	u32 number = ctx[0];

	if (cpu && number < WIRE_ENTRY_SOFTIRQS && !cpu->raised[number].at)
		origin_here(ctx, &cpu->raised[number]);
	return 0;
}

/* --- Interrupts that one CPU sends to another, and the functions that they call --- */

INLINE void send(u64 *ctx, u32 target, u64 callback)
{
	u64 class = !callback ? RESCHEDULE : callback == call_function ? CALL : IRQ_WORK;

	KEEP(sent, ctx, (u64)slot_of(target) << 2 | class);
}

PROGRAM(cpu_ipi)
{
	u32 target = ctx[0];

	if (is_chosen(target))
		send(ctx, target, ctx[2]);
	return 0;
}

/* Of a mask only the calls matter, and each of them is queued: this is for what comes without. */
PROGRAM(cpu_ipi_mask)
{
	struct cpumask *mask = (void *)ctx[0];

	for (u32 word = 0; word < 16; word++) {
		u64 bits = 0;

		if (!chosen[word])
			continue;
		bpf_probe_read_kernel(&bits, sizeof(bits), (u64 *)mask + word);
		bits &= chosen[word];
		for (u32 bit = 0; bit < 64 && bits >> bit; bit++)
			if (bits >> bit & 1)
				send(ctx, word * 64 + bit, ctx[2]);
	}
	return 0;
}

PROGRAM(cpu_call_queued)
{
	u32 target = ctx[0];

	if (is_chosen(target))
		KEEP(calls, ctx, ctx[3]);
	return 0;
}

/* Where the idle task calls it no interrupt came. A caller that is on this CPU itself queues
 * nothing: that is no entry. */
PROGRAM(cpu_call_entry)
{
	struct cpu *cpu = cpu_here();
	struct frame *frame;
	struct origin *origin;
	u64 func = ctx[0], call = ctx[1];

	if (!cpu || !call)
		return 0;
	if (shootdown && func == shootdown)
		cpu->counts.shootdowns++;
	frame = &cpu->frames[HARD];
	if (!frame->begin) {
		open_frame(cpu, frame, WIRE_ENTRY_CALL, 0, bpf_ktime_get_ns());
		cpu->depth = 1;
	}
	origin = begin_function(frame, func);
	TAKE(calls, call, origin);
	bpf_map_delete_elem(&calls, &call);
	return 0;
}

PROGRAM(cpu_call_exit)
{
	struct cpu *cpu = cpu_here();

	if (!cpu || !ctx[1])
		return 0;
	end_function(&cpu->frames[HARD]);
	if (cpu->frames[HARD].kind == WIRE_ENTRY_CALL)
		hard_exit();
	return 0;
}

/* Kernels before 6.5 do not show the functions: this one shows itself. */
PROGRAM(cpu_tlb)
{
	struct cpu *cpu = cpu_here();

	if (cpu && (u32)ctx[0] == 1 && cpu->frames[HARD].begin) {
		cpu->counts.shootdowns++;
		if (!cpu->frames[HARD].func)
			cpu->frames[HARD].func = shootdown;
	}
	return 0;
}

/* --- Timers --- */

/* What re-arms itself in its handler is still that of who armed it first. */
PROGRAM(cpu_hrtimer_start)
{
	struct hrtimer *timer = (void *)ctx[0];
	struct hrtimer_clock_base___cpu *base = 0;
	struct hrtimer_cpu_base *cpus_base = 0;
	struct cpu *here = cpu_here();
	u32 target = -1;

	bpf_probe_read_kernel(&base, sizeof(base), &timer->base);
	bpf_probe_read_kernel(&cpus_base, sizeof(cpus_base), &base->cpu_base);
	bpf_probe_read_kernel(&target, sizeof(target), &cpus_base->cpu);
	/* Whoever runs when the tick is started again has not asked for it. */
	if (!is_chosen(target) || (tick && (u64)timer->function == tick))
		return 0;
	if (here && here->frames[HARD].begin && here->timer == ctx[0])
		return 0;
	KEEP(timers, ctx, ctx[0]);
	return 0;
}

PROGRAM(cpu_timer_start)
{
	struct timer_list___flags *timer = (void *)ctx[0];

	if (is_chosen(timer->flags & TIMER_CPUMASK))
		KEEP(timers, ctx, ctx[0]);
	return 0;
}

INLINE int expires(struct frame *frame, u64 timer, u64 func)
{
	if (frame && frame->begin) {
		struct origin *origin = begin_function(frame, func);

		TAKE(timers, timer, origin);
	}
	return 0;
}

/* On PREEMPT_RT and for some timers in a softirq. */
PROGRAM(cpu_hrtimer_entry)
{
	struct cpu *cpu = cpu_here();
	struct hrtimer *timer = (void *)ctx[0];

	if (!cpu)
		return 0;
	cpu->timer = ctx[0];
	return expires(innermost(cpu), ctx[0], (u64)timer->function);
}

PROGRAM(cpu_hrtimer_exit)
{
	struct cpu *cpu = cpu_here();

	if (cpu)
		end_function(innermost(cpu));
	return 0;
}

PROGRAM(cpu_timer_entry)
{
	struct cpu *cpu = cpu_here();
	struct timer_list *timer = (void *)ctx[0];

	return cpu ? expires(innermost(cpu), ctx[0], (u64)timer->function) : 0;
}

PROGRAM(cpu_timer_exit)
{
	struct cpu *cpu = cpu_here();

	if (cpu)
		end_function(innermost(cpu));
	return 0;
}

/* What keeps the tick of a nohz_full CPU (TICK_DEP_MASK_…). */
PROGRAM(cpu_tick_stop)
{
	struct cpu *cpu = cpu_here();

	if (cpu)
		cpu->dependency = (u32)ctx[0] ? 0 : (u32)ctx[1];
	return 0;
}

/* --- Work items --- */

PROGRAM(cpu_work_queued)
{
	struct pool_workqueue *queue = (void *)ctx[1];
	int target = queue->pool->cpu;

	/* Those of no CPU run wherever their workqueue may. */
	if (target < 0 || is_chosen(target))
		KEEP(works, ctx, ctx[2]);
	return 0;
}

/* What a work item runs in: a softirq where one runs (kernel/workqueue.c: WQ_BH, Linux 6.9), else
 * the task; no interrupt. */
INLINE struct frame *frame_of_work(struct cpu *cpu)
{
	ended(cpu);
	return cpu->frames[SOFT].begin ? &cpu->frames[SOFT] : &cpu->frames[TASK];
}

PROGRAM(cpu_work_start)
{
	struct cpu *cpu = cpu_here();
	struct work_struct *work = (void *)ctx[0];
	struct origin *origin, *queued;
	struct frame *frame;
	u64 key = ctx[0];

	if (!cpu)
		return 0;
	frame = frame_of_work(cpu);
	if (!frame->begin)
		return 0;
	origin = begin_function(frame, (u64)work->func);
	queued = bpf_map_lookup_elem(&works, &key);
	/* Else the first one of a task is that of who woke the worker. */
	if (queued)
		whole(origin, queued);
	else if (frame->functions > 1 || frame->kind != WIRE_ENTRY_TASK)
		__builtin_memset(origin, 0, sizeof(*origin));
	bpf_map_delete_elem(&works, &key);
	return 0;
}

PROGRAM(cpu_work_end)
{
	struct cpu *cpu = cpu_here();

	if (cpu)
		end_function(frame_of_work(cpu));
	return 0;
}

/* --- Tasks --- */

/* Which CPU it will run on is not decided: kept if it may run on a chosen one. */
INLINE bool may_come(struct task_struct *task)
{
	struct task_struct___allowed *of = (void *)task;
	struct cpumask *mask = 0;
	u64 any = 0;

	bpf_probe_read_kernel(&mask, sizeof(mask), &of->cpus_ptr);
	for (u32 word = 0; word < 16; word++) {
		u64 bits = 0;

		if (!chosen[word])
			continue;
		bpf_probe_read_kernel(&bits, sizeof(bits), (u64 *)mask + word);
		any |= bits & chosen[word];
	}
	return any != 0;
}

INLINE int wakes(u64 *ctx, struct task_struct *task)
{
	if (may_come(task))
		KEEP(woken, ctx, (u32)task->pid);
	return 0;
}

PROGRAM(cpu_waking)
{
	return wakes(ctx, (void *)ctx[0]);
}

PROGRAM(cpu_wakeup_new)
{
	return wakes(ctx, (void *)ctx[0]);
}

/* Of a task that is moved while it is runnable, who moves it is why it runs here; a task that is
 * being woken was woken by somebody a moment ago. */
PROGRAM(cpu_migrated)
{
	struct task_struct *task = (void *)ctx[0];
	u32 target = ctx[1], from = task->thread_info.cpu, slot = slot_of(from);

	if (slot < cpu_count) {
		struct cpu *cpu = bpf_map_lookup_elem(&cpus, &slot);

		if (cpu && cpu->victim == (u32)task->pid)
			cpu->victim = 0;
	}
	if (is_chosen(target) && task->__state == 0)
		KEEP(woken, ctx, (u32)task->pid);
	return 0;
}

INLINE int switched(struct task_struct *prev, struct task_struct *next, bool runnable)
{
	struct cpu *cpu = cpu_here();
	struct frame *frame;
	u32 left = prev->pid, comes = next->pid;
	u64 now;

	if (!cpu)
		return 0;
	now = bpf_ktime_get_ns();
	ended(cpu);
	/* A softirq that is switched away from belongs to a task (PREEMPT_RT). */
	if (cpu->frames[SOFT].begin)
		close_frame(cpu, &cpu->frames[SOFT], now, 0);
	frame = &cpu->frames[TASK];
	if (frame->begin)
		close_frame(cpu, frame, now, 0);
	if (comes == cpu->victim || !comes)
		cpu->victim = 0;
	else if (runnable && left && !cpu->victim)
		cpu->victim = left;
	if (!comes)
		return 0;
	open_frame(cpu, frame, WIRE_ENTRY_TASK, comes, now);
	frame->over = cpu->victim;
	frame->flags = (cpu->victim ? WIRE_ENTRY_AWAY : 0) |
		       (next->flags & PF_KTHREAD ? WIRE_ENTRY_KERNEL : 0);
	TAKE(woken, comes, &frame->origin);
	return 0;
}

PROGRAM(cpu_switched)
{
	return switched((void *)ctx[1], (void *)ctx[2], (u8)ctx[0] || !ctx[3]);
}

PROGRAM(cpu_switched_before_5_18)
{
	struct task_struct *prev = (void *)ctx[1];

	return switched(prev, (void *)ctx[2], (u8)ctx[0] || !prev->__state);
}

/* --- What the tasks there do themselves --- */

INLINE int own_entry(u32 what)
{
	u32 here = bpf_get_smp_processor_id();
	struct wire_own_key key = { .cpu = here, .what = what };
	struct wire_own *found, one = { .count = 1 };
	struct cpu *cpu = cpu_here();

	if (!cpu)
		return 0;
	if (what <= WIRE_MAX_SYSCALLS)
		ended(cpu);
	key.tid = bpf_get_current_pid_tgid();
	found = bpf_map_lookup_elem(&own, &key);
	if (found) {
		__sync_fetch_and_add(&found->count, 1);
		return 0;
	}
	bpf_get_current_comm(one.comm, sizeof(one.comm));
	if (bpf_map_update_elem(&own, &key, &one, 0))
		__sync_fetch_and_add(&cpu->counts.own_lost, 1);
	return 0;
}

PROGRAM(cpu_syscall)
{
	u32 number = ctx[1];

	return own_entry(number < WIRE_MAX_SYSCALLS ? number : WIRE_MAX_SYSCALLS);
}

PROGRAM(cpu_fault_user)
{
	return own_entry(WIRE_OWN_FAULT_USER);
}

PROGRAM(cpu_fault_kernel)
{
	return is_fault_of_task() ? own_entry(WIRE_OWN_FAULT_KERNEL) : 0;
}

const char gpl[] SEC("license") = "GPL";
