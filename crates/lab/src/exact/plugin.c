// SPDX-License-Identifier: GPL-2.0-or-later
//
// Sees every translation block that a guest (x86-64 or arm64) executes in virtual time, and keeps
// the blocks before the end of its worst samples, and those of the longest sections with interrupts
// or preemption disabled, and from need_resched to __schedule. QEMU loads it (-plugin); the guest
// does not notice: virtual time counts the guest's instructions, and this adds none.
//
// What it writes is described in dump.rs, which reads it. Its bounds: RING blocks back from the end
// of a sample or section, WINDOWS samples, SECTIONS places where sections begin, LONGEST of them
// with their blocks.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The parts of QEMU's interface that are used, declared here: Debian packages no header. Its
// documentation is docs/devel/tcg-plugins.rst in QEMU's sources.
typedef uint64_t plugin_id;
struct qemu_info {
	const char *target_name;
	struct {
		int min;
		int cur;
	} version;
	bool system_emulation;
	struct {
		int smp_vcpus;
		int max_vcpus;
	} system;
};
struct tb;
struct insn;
struct reg;
struct glib_array {
	char *data;
	unsigned len;
};
struct reg_descriptor {
	struct reg *handle;
	const char *name;
	const char *feature;
};
enum { NO_REGS, READS_REGS };
typedef void (*vcpu_cb)(plugin_id id, unsigned cpu);
typedef void (*data_cb)(unsigned cpu, void *data);
typedef uint32_t memory_info;
typedef void (*memory_cb)(unsigned cpu, memory_info info, uint64_t address, void *data);
struct memory_value {
	int type;
	union {
		uint32_t u32;
		uint64_t u128[2];
	} data;
};
enum { WRITES = 2 };

void qemu_plugin_outs(const char *string);
void qemu_plugin_register_vcpu_init_cb(plugin_id id, vcpu_cb cb);
void qemu_plugin_register_vcpu_idle_cb(plugin_id id, vcpu_cb cb);
void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id id, void (*cb)(plugin_id id, struct tb *tb));
void qemu_plugin_register_vcpu_tb_exec_cb(struct tb *tb, data_cb cb, int flags, void *data);
void qemu_plugin_register_vcpu_insn_exec_cb(struct insn *insn, data_cb cb, int flags, void *data);
void qemu_plugin_register_vcpu_mem_cb(struct insn *insn, memory_cb cb, int flags, int accesses,
				      void *data);
struct memory_value qemu_plugin_mem_get_value(memory_info info);
void qemu_plugin_register_atexit_cb(plugin_id id, void (*cb)(plugin_id id, void *data), void *data);
size_t qemu_plugin_tb_n_insns(const struct tb *tb);
uint64_t qemu_plugin_tb_vaddr(const struct tb *tb);
struct insn *qemu_plugin_tb_get_insn(const struct tb *tb, size_t index);
size_t qemu_plugin_insn_data(const struct insn *insn, void *to, size_t len);
struct glib_array *qemu_plugin_get_registers(void);
int qemu_plugin_read_register(struct reg *handle, struct glib_array *to);
bool qemu_plugin_read_memory_vaddr(uint64_t address, struct glib_array *to, size_t len);
struct glib_array *g_byte_array_new(void);
struct glib_array *g_byte_array_set_size(struct glib_array *array, unsigned len);

// QEMU refuses a plugin outside of its range. 4 has qemu_plugin_read_memory_vaddr, and came with
// qemu_plugin_mem_get_value.
__attribute__((visibility("default"))) int qemu_plugin_version = 4;

#define RING (1u << 23)
#define BLOCKS (1u << 22)
#define CODE 16
#define TASKS 4096
#define WINDOWS 64
#define SECTIONS 65536
#define LONGEST 12
// The innermost frames of each stack that are known, those that a section keeps, and how many of
// them a return may leave.
#define FRAMES 64
#define CALLERS 6
#define RETURNED 8
// Calls from where a section ended.
#define END_CALLERS 3
// Of a jump by a call that only puts an address onto the stack (FILL_RETURN_BUFFER and thunks in
// arch/x86/include/asm/nospec-branch.h): it leads no further.
#define TRAMPOLINE 16
// Instructions of a window before its release, and before a section, for the calls that led there.
#define BEFORE 200000
#define BEFORE_SECTION 1000000
// Samples that threads take to warm up.
#define WARM_UP 16

// The last instruction of a block, or how it is entered.
enum kind {
	PLAIN,
	CALL,
	RETURN,
	SYSCALL,
	SYSRET,
	IRET,
	ENTRY, // the first block of an interrupt or exception
};

struct block {
	uint64_t pc;
	uint16_t bytes;
	uint16_t insns;
	uint16_t clock; // instructions up to and with the last one that reads the counter, or 0
	uint8_t kind;
	uint8_t entry;
};

struct task {
	uint64_t pointer;
	uint32_t pid;
	uint32_t unused;
	char comm[16];
};

// Entries of the ring are places of blocks; those with the highest bit set are events.
#define EVENT 0x80000000u
enum event {
	SWITCH = 0, // to the task at this place
	IRQS_OFF = 1,
	IRQS_ON = 2,
	IDLE = 3,
};
#define EVENT_OF(event, value) (EVENT | (uint32_t)(event) << 28 | (value))
#define VALUE_MAX 0x0fffffffu

struct window {
	int64_t due;
	int64_t woke;
	uint64_t series; // the address of the ring that the sample was written to
	uint64_t end; // instructions when the sample was taken
	uint32_t task;
	uint32_t entries;
	uint32_t *ring;
};

enum section_kind {
	IRQS,
	PREEMPTION,
	RESCHED, // from need_resched to the call of __schedule
	PER_CPU,
	// Those of a task, in which others may run.
	MIGRATION = PER_CPU, // it cannot move to another CPU
	LOCK_WAIT, // it waits for a lock
	KINDS,
};
#define PER_TASK (KINDS - PER_CPU)

// The sections of a kind that begin at one place of one function.
struct section {
	uint64_t pc;
	// In the innermost function that is not left within it: behind its call of what began the
	// section; 0: it began it itself. Of RESCHED that begins in an interrupt: what this
	// interrupted.
	uint64_t caller;
	uint64_t outer; // in the function that calls this one; 0: not known
	uint64_t callee; // in the function that this one calls, if that calls another; else 0
	uint64_t count;
	uint64_t total;
	uint64_t longest;
	uint64_t longest_end; // its last instruction
	uint64_t longest_end_callers[END_CALLERS];
	uint64_t longest_at; // instructions at its start
	uint32_t kind;
	uint32_t preempt_count; // at its start
};

// One section with the blocks before and in it.
struct stretch {
	uint32_t kind;
	uint32_t entries;
	uint64_t pc;
	uint64_t caller;
	uint64_t begin; // instructions
	uint64_t end;
	uint64_t at; // instructions behind the last block
	uint32_t *ring;
};

static struct {
	const char *out;
	uint64_t switch_pc;
	uint64_t entries_begin, entries_end;
	uint64_t schedule_pc, migrate_disable_pc, migrate_enable_pc;
	uint64_t *lock_pcs; // of functions that wait
	size_t lock_count;
	uint64_t *entry_pcs;
	size_t entry_count;
	uint32_t comm_offset, pid_offset;
	uint32_t keep, keep_ordinary;
	uint64_t preempt_count; // its address below the CPU's own, on arm64 the task's, or 0
	uint64_t port; // the sections between two bytes that are written there, or two kills of it
	bool all; // the sections of the whole run
} options;

// The first three arguments of functions, which the marker has too; what x86 needs beside them; and
// of arm64 all general registers and the saved state of the processor.
static struct {
	struct reg *first, *second, *third;
	struct reg *rsp, *r11;
	struct reg *x[31], *spsr;
} regs;
static bool is_arm;
static struct glib_array *bytes;

static uint64_t insns; // executed before the current block
static uint32_t *ring;
static uint64_t head;

static struct block *blocks;
static uint8_t (*codes)[CODE]; // their first bytes, of programs
static uint32_t block_count;
static uint32_t *block_index; // by hash, 0: free, else place + 1
static uint64_t blocks_lost;

static struct task tasks[TASKS];
static uint32_t task_count;
static uint32_t current;

static struct window windows[WINDOWS];
static uint32_t window_count;
static uint32_t ordinary_count;
static uint64_t samples;
static uint64_t cut;

// The sections between samples, and those since the last one: what comes after the last sample of a
// run is not of the measurement.
static struct section sections[SECTIONS];
static struct section since[SECTIONS];
static uint32_t since_used[SECTIONS];
static uint32_t since_count;
static uint64_t sections_lost;
static struct stretch longest[KINDS][LONGEST];
static struct stretch longest_since[KINDS][LONGEST];
static uint64_t kept_insns, kept_until; // instructions in which sections were looked for
static bool marked;

// One that goes on.
struct open {
	bool open;
	bool settled; // its task was switched away: what is left now are other frames
	uint64_t since, pc;
	uint64_t callers[CALLERS];
	uint64_t interrupted;
	uint32_t preempt_count;
	uint32_t depth, least; // of the stack at its start, and the least since
	uint32_t nested; // of a task's: how often it began
};
static struct open now[PER_CPU];

// Where the kernel's calls return to, by task; an interrupt's frame is the place that it
// interrupted, without the highest bit. The last stack is of tasks that found no room.
struct stack {
	uint32_t depth;
	uint64_t frames[FRAMES];
	struct open own[PER_TASK];
};
static struct stack stacks[TASKS + 1];
static struct stack *stack = &stacks[TASKS];
static struct block last; // executed before the current one
#define KERNEL (1ull << 63)

// The count is believed from the first time on that it is 0: what came before has no begin.
static uint32_t preempt_count;
static bool preempt_count_known;
static bool idle;
static bool need_resched;
static uint64_t task_pointer; // the current one, where its count is its own

static void fail(const char *why)
{
	qemu_plugin_outs(why);
	fprintf(stderr, "punctual's plugin: %s\n", why);
}

static uint64_t number_of(struct glib_array *from)
{
	uint64_t value = 0;
	memcpy(&value, from->data, from->len < 8 ? from->len : 8);
	return value;
}

static uint64_t read_reg(struct reg *handle)
{
	g_byte_array_set_size(bytes, 0);
	if (!handle || qemu_plugin_read_register(handle, bytes) <= 0)
		return 0;
	return number_of(bytes);
}

static bool read_memory(uint64_t address, size_t len)
{
	g_byte_array_set_size(bytes, 0);
	return qemu_plugin_read_memory_vaddr(address, bytes, len);
}

static void write_entry(uint32_t entry)
{
	ring[head & (RING - 1)] = entry;
	head += 1;
}

// The place of an instruction: its address, and how many follow it in its block.
#define PLACE(pc, left) ((void *)(uintptr_t)((pc) << 16 >> 16 | (uint64_t)(left) << 48))

static uint64_t pc_of(void *place)
{
	return (uint64_t)((int64_t)((uint64_t)(uintptr_t)place << 16) >> 16);
}

// The instructions up to and with it.
static uint64_t behind(void *place)
{
	return insns - ((uint64_t)(uintptr_t)place >> 48);
}

static uint64_t length_of(const struct stretch *stretch)
{
	return stretch->end - stretch->begin;
}

// Where a stretch belongs among the longest, one for each place; NULL: there are longer ones.
static struct stretch *slot_of(struct stretch *table, const struct stretch *one)
{
	struct stretch *least = table;
	for (unsigned i = 0; i < LONGEST; i++) {
		struct stretch *slot = &table[i];
		if (slot->ring && slot->pc == one->pc && slot->caller == one->caller)
			return length_of(slot) < length_of(one) ? slot : NULL;
		if (least->ring && (!slot->ring || length_of(slot) < length_of(least)))
			least = slot;
	}
	return !least->ring || length_of(least) < length_of(one) ? least : NULL;
}

static uint64_t back_by(uint64_t wanted, uint64_t *seen);

// Keeps the blocks of a section that is among the longest.
static void keep_longest(struct stretch one)
{
	if (!slot_of(longest[one.kind], &one))
		return;
	struct stretch *slot = slot_of(longest_since[one.kind], &one);
	if (!slot)
		return;
	uint64_t seen, from = back_by(insns - one.begin + BEFORE_SECTION, &seen);
	// Longer than the ring: it is counted, and its calls are not known.
	if (seen < insns - one.begin)
		return;
	one.entries = (uint32_t)(head - from);
	one.ring = malloc(one.entries * sizeof *ring + 1);
	if (!one.ring)
		return;
	for (uint64_t at = from; at < head; at++)
		one.ring[at - from] = ring[at & (RING - 1)];
	one.at = insns;
	free(slot->ring);
	*slot = one;
}

// Adds sections of one place to those in a table; the answer is their place there, or -1 where
// there is no room.
static int64_t add(struct section *table, const struct section *one)
{
	uint64_t key = one->pc ^ one->caller << 20 ^ one->outer << 10 ^ one->kind;
	uint64_t place = key * 0x9e3779b97f4a7c15ull >> 48;
	for (unsigned step = 0; step < 64; step++, place = (place + 1) % SECTIONS) {
		struct section *section = &table[place];
		if (!section->count) {
			*section = *one;
			return (int64_t)place;
		}
		if (section->pc != one->pc || section->caller != one->caller ||
		    section->outer != one->outer || section->kind != one->kind)
			continue;
		section->count += one->count;
		section->total += one->total;
		if (one->longest > section->longest) {
			section->longest = one->longest;
			section->callee = one->callee;
			section->longest_end = one->longest_end;
			memcpy(section->longest_end_callers, one->longest_end_callers,
			       sizeof section->longest_end_callers);
			section->longest_at = one->longest_at;
			section->preempt_count = one->preempt_count;
		}
		return (int64_t)place;
	}
	sections_lost += 1;
	return -1;
}

// Those since the last time. A place that is free again may be one that others were put behind: all
// go at once, so that none is looked for in vain.
static void keep_sections(bool keep)
{
	for (uint32_t i = 0; i < since_count; i++) {
		if (keep)
			add(sections, &since[since_used[i]]);
		since[since_used[i]].count = 0;
	}
	since_count = 0;
	for (unsigned i = 0; i < KINDS * LONGEST; i++) {
		struct stretch *one = &longest_since[i / LONGEST][i % LONGEST];
		struct stretch *slot = one->ring && keep ? slot_of(longest[one->kind], one) : NULL;
		if (slot) {
			free(slot->ring);
			*slot = *one;
		} else {
			free(one->ring);
		}
		one->ring = NULL;
	}
	if (keep)
		kept_insns += insns - kept_until;
	kept_until = insns;
}

// The frame so many from the innermost one; 0: it is not known.
static uint64_t frame(uint32_t from_top)
{
	if (from_top >= stack->depth || from_top >= FRAMES)
		return 0;
	return stack->frames[(stack->depth - 1 - from_top) % FRAMES];
}

static void push(uint64_t back)
{
	stack->frames[stack->depth++ % FRAMES] = back;
}

static void end_own(enum section_kind kind, uint64_t pc, uint64_t at);

static void pop_to(uint32_t depth)
{
	stack->depth = depth;
	for (unsigned kind = 0; kind < PER_CPU; kind++)
		if (!now[kind].settled && depth < now[kind].least)
			now[kind].least = depth;
	for (unsigned kind = 0; kind < PER_TASK; kind++)
		if (depth < stack->own[kind].least)
			stack->own[kind].least = depth;
	// The function that waits returns.
	struct open *wait = &stack->own[LOCK_WAIT - PER_CPU];
	if (wait->open && depth < wait->depth)
		end_own(LOCK_WAIT, last.pc, insns);
}

// A return to this place, if a call is known that it returns from.
static void pop(uint64_t pc)
{
	for (uint32_t i = 0; i < RETURNED && i < stack->depth; i++) {
		if (frame(i) == pc) {
			pop_to(stack->depth - 1 - i);
			return;
		}
	}
}

// Leaves what ran since the innermost interrupt, and its frame.
static void pop_interrupt(void)
{
	for (uint32_t i = 0; i < FRAMES && i < stack->depth; i++) {
		if (!(frame(i) & KERNEL)) {
			pop_to(stack->depth - 1 - i);
			return;
		}
	}
}

// What the innermost interrupt interrupted; 0: none.
static uint64_t interrupted(void)
{
	for (uint32_t i = 0; i < FRAMES && i < stack->depth; i++)
		if (!(frame(i) & KERNEL))
			return frame(i);
	return 0;
}

// The stack before a block runs.
static void enter(const struct block *block)
{
	if (block->entry) {
		if (!(last.pc & KERNEL))
			pop_to(0);
		// arm64 enters by the same vectors for a system call, which interrupts nothing.
		if (last.kind != SYSCALL)
			push(last.pc & ~KERNEL);
	} else if (!(block->pc & KERNEL)) {
		if (stack->depth)
			pop_to(0);
	} else if (!(last.pc & KERNEL)) {
		return;
	} else if (last.kind == CALL) {
		uint64_t back = last.pc + last.bytes;
		if (block->pc - back >= TRAMPOLINE)
			push(back);
	} else if (last.kind == RETURN) {
		pop(block->pc);
	} else if (last.kind == IRET) {
		pop_interrupt();
	}
}

static void opens(struct open *open, uint64_t pc, uint64_t at)
{
	*open = (struct open){
		.open = true,
		.since = at,
		.pc = pc,
		.depth = stack->depth,
		.least = stack->depth,
		.preempt_count = preempt_count,
	};
	for (uint32_t i = 0; i < CALLERS; i++)
		open->callers[i] = frame(i);
}

static void begin(enum section_kind kind, uint64_t pc, uint64_t at)
{
	if (now[kind].open)
		return;
	opens(&now[kind], pc, at);
	if (kind == RESCHED)
		now[kind].interrupted = interrupted();
	if (kind == IRQS)
		write_entry(EVENT_OF(IRQS_OFF, 0));
}

// Counts one that ends here.
static void closes(struct open *open, enum section_kind kind, uint64_t pc, uint64_t at)
{
	open->open = false;
	uint32_t left = open->depth - open->least;
	left = left < CALLERS ? left : CALLERS;
	// Where a task waits, what waits is left at its end.
	if (kind == LOCK_WAIT)
		left = 1;
	// One that is not known was not left.
	while (left && !open->callers[left - 1])
		left -= 1;
	struct section one = {
		.pc = open->pc,
		.caller = left ? open->callers[left - 1] : 0,
		.outer = left < CALLERS ? open->callers[left] : 0,
		.callee = left > 1 ? open->callers[left - 2] : 0,
		.count = 1,
		.total = at - open->since,
		.longest = at - open->since,
		.longest_end = pc,
		.longest_end_callers = { frame(0), frame(1), frame(2) },
		.longest_at = open->since,
		.kind = kind,
		.preempt_count = open->preempt_count,
	};
	if (open->interrupted) {
		one.caller = open->interrupted;
		one.outer = one.callee = 0;
	}
	int64_t place = add(since, &one);
	if (place >= 0 && since[place].count == 1)
		since_used[since_count++] = (uint32_t)place;
	keep_longest((struct stretch){ .kind = kind,
				       .pc = one.pc,
				       .caller = one.caller,
				       .begin = one.longest_at,
				       .end = at });
}

static void end(enum section_kind kind, uint64_t pc, uint64_t at)
{
	if (!now[kind].open)
		return;
	if (kind == IRQS)
		write_entry(EVENT_OF(IRQS_ON, 0));
	closes(&now[kind], kind, pc, at);
}

// A section of the current task.
static void begin_own(enum section_kind kind, uint64_t pc, uint64_t at)
{
	struct open *own = &stack->own[kind - PER_CPU];
	if (!own->open)
		opens(own, pc, at);
	own->nested += 1;
}

static void end_own(enum section_kind kind, uint64_t pc, uint64_t at)
{
	struct open *own = &stack->own[kind - PER_CPU];
	if (own->open && (kind == LOCK_WAIT || !--own->nested))
		closes(own, kind, pc, at);
}

static void on_block(unsigned cpu, void *data)
{
	uint32_t place = (uint32_t)(uintptr_t)data;
	struct block *block = &blocks[place];
	enter(block);
	last = *block;
	if (block->entry)
		begin(IRQS, block->pc, insns);
	write_entry(place);
	insns += block->insns;
	(void)cpu;
}

static void on_cli(unsigned cpu, void *place)
{
	begin(IRQS, pc_of(place), behind(place));
	(void)cpu;
}

static void on_sti(unsigned cpu, void *place)
{
	end(IRQS, pc_of(place), behind(place));
	(void)cpu;
}

static void enabled_by(uint64_t flags, void *place)
{
	if (flags & 1 << 9)
		end(IRQS, pc_of(place), behind(place));
	else
		begin(IRQS, pc_of(place), behind(place));
}

// The flags that popf takes lie on top of the stack, those of iret in its third word
// (Intel SDM, volume 2).
static void from_stack(uint64_t offset, void *place)
{
	if (read_memory(read_reg(regs.rsp) + offset, 8))
		enabled_by(number_of(bytes), place);
}

static void on_popf(unsigned cpu, void *place)
{
	from_stack(0, place);
	(void)cpu;
}

static void on_iret(unsigned cpu, void *place)
{
	from_stack(16, place);
	(void)cpu;
}

static void on_sysret(unsigned cpu, void *place)
{
	if (read_reg(regs.r11) & 1 << 9)
		end(IRQS, pc_of(place), behind(place));
	(void)cpu;
}

// What the processor's state was before the exception (Arm ARM, SPSR_EL1): bit 7 masks interrupts.
static void masked_by(uint64_t state, void *place)
{
	if (state & 1 << 7)
		begin(IRQS, pc_of(place), behind(place));
	else
		end(IRQS, pc_of(place), behind(place));
}

static void on_eret(unsigned cpu, void *place)
{
	masked_by(read_reg(regs.spsr), place);
	(void)cpu;
}

// One for each register that the mask may be taken from: a callback has but one value of its own.
#define ON_MASK(n)                                      \
	static void on_mask_##n(unsigned cpu, void *place) \
	{                                               \
		masked_by(read_reg(regs.x[n]), place);  \
		(void)cpu;                              \
	}
#define EACH_REGISTER(m)                                                                          \
	m(0) m(1) m(2) m(3) m(4) m(5) m(6) m(7) m(8) m(9) m(10) m(11) m(12) m(13) m(14) m(15) m(16) \
		m(17) m(18) m(19) m(20) m(21) m(22) m(23) m(24) m(25) m(26) m(27) m(28) m(29) m(30)
EACH_REGISTER(ON_MASK)
#define MASK_OF(n) on_mask_##n,
static const data_cb on_mask[31] = { EACH_REGISTER(MASK_OF) };

// The CPU's count has another value. Its highest bit is no count, but 0 while need_resched is set
// (PREEMPT_NEED_RESCHED, arch/x86/include/asm/preempt.h). It belongs to the CPU: it is the same
// before and behind a switch of tasks.
static void needs(bool needed, void *place)
{
	if (preempt_count_known && needed != need_resched) {
		// The idle task looks by itself.
		if (needed && !idle)
			begin(RESCHED, pc_of(place), behind(place));
		else if (!needed)
			end(RESCHED, pc_of(place), behind(place));
	}
	need_resched = needed;
}

static void counts(uint32_t count, void *place)
{
	uint32_t before = preempt_count;
	preempt_count = count;
	if (!preempt_count_known) {
		preempt_count_known = preempt_count == 0;
		return;
	}
	if (!before && preempt_count && !idle)
		begin(PREEMPTION, pc_of(place), behind(place));
	else if (before && !preempt_count)
		end(PREEMPTION, pc_of(place), behind(place));
}

static void on_count(unsigned cpu, memory_info info, uint64_t address, void *place)
{
	uint32_t value = qemu_plugin_mem_get_value(info).data.u32, before = preempt_count;
	// A section that begins with need_resched has this count.
	preempt_count = value & 0x7fffffff;
	needs(!(value >> 31), place);
	preempt_count = before;
	counts(value & 0x7fffffff, place);
	(void)cpu;
	(void)address;
}

// On arm64 each task has its count, in two words: the count, and 0 while it is to be rescheduled
// (arch/arm64/include/asm/thread_info.h).
static void on_task_count(unsigned cpu, memory_info info, uint64_t address, void *place)
{
	uint64_t value = qemu_plugin_mem_get_value(info).data.u128[0];
	if (address == task_pointer + options.preempt_count)
		counts((uint32_t)value, place);
	else if (address == task_pointer + options.preempt_count + 4)
		needs(!(uint32_t)value, place);
	(void)cpu;
}

static uint32_t task_of(uint64_t pointer, bool *is_idle)
{
	char comm[16] = "";
	uint32_t pid = 0;
	if (options.comm_offset && read_memory(pointer + options.comm_offset, sizeof comm))
		memcpy(comm, bytes->data, sizeof comm);
	if (options.pid_offset && read_memory(pointer + options.pid_offset, 4))
		pid = (uint32_t)number_of(bytes);
	*is_idle = options.pid_offset && pid == 0;
	for (uint32_t i = task_count; i > 0; i--) {
		struct task *task = &tasks[i - 1];
		if (task->pointer == pointer && task->pid == pid && !memcmp(task->comm, comm, 16))
			return i - 1;
	}
	if (task_count == TASKS)
		return VALUE_MAX;
	tasks[task_count].pointer = pointer;
	tasks[task_count].pid = pid;
	memcpy(tasks[task_count].comm, comm, sizeof comm);
	return task_count++;
}

// __switch_to_asm(prev, next), arch/x86/entry/entry_64.S. Preemption is disabled before and behind
// it: a section ends here, because the scheduler chose, and another one begins. The idle task never
// enables preemption, and delays nobody by that: it looks for others itself.
static void on_switch(unsigned cpu, void *place)
{
	task_pointer = read_reg(regs.second);
	current = task_of(task_pointer, &idle);
	write_entry(EVENT_OF(SWITCH, current & VALUE_MAX));
	end(PREEMPTION, pc_of(place), behind(place));
	for (unsigned kind = 0; kind < PER_CPU; kind++)
		now[kind].settled = true;
	stack = &stacks[current < TASKS ? current : TASKS];
	if (current >= TASKS)
		memset(stack, 0, sizeof *stack);
	if (is_arm && options.preempt_count &&
	    read_memory(task_pointer + options.preempt_count, 8)) {
		uint64_t count = number_of(bytes);
		preempt_count = (uint32_t)count;
		preempt_count_known = true;
		need_resched = !(count >> 32);
		if (!need_resched)
			now[RESCHED].open = false;
	}
	// The next one is the new task's, from its first block on.
	if (!idle && preempt_count_known && preempt_count)
		begin(PREEMPTION, pc_of(place), insns);
	(void)cpu;
}

static void on_migrate_disable(unsigned cpu, void *place)
{
	begin_own(MIGRATION, pc_of(place), behind(place));
	(void)cpu;
}

static void on_migrate_enable(unsigned cpu, void *place)
{
	end_own(MIGRATION, pc_of(place), behind(place));
	(void)cpu;
}

static void on_lock(unsigned cpu, void *place)
{
	begin_own(LOCK_WAIT, pc_of(place), behind(place));
	(void)cpu;
}

static void on_schedule(unsigned cpu, void *place)
{
	end(RESCHED, pc_of(place), behind(place));
	(void)cpu;
}

// Where in the ring so many instructions begin, and how many there are really.
static uint64_t back_by(uint64_t wanted, uint64_t *seen)
{
	uint64_t oldest = head > RING ? head - RING : 0;
	uint64_t from = head;
	*seen = 0;
	while (from > oldest && *seen < wanted) {
		uint32_t entry = ring[--from & (RING - 1)];
		if (!(entry & EVENT))
			*seen += blocks[entry].insns;
	}
	return from;
}

static void take(struct window *window, int64_t due, int64_t woke, uint64_t series)
{
	uint64_t wanted = (uint64_t)(woke - due) / 8 + BEFORE;
	uint64_t seen, from = back_by(wanted, &seen);
	if (seen + BEFORE < wanted)
		cut += 1;
	free(window->ring);
	window->entries = (uint32_t)(head - from);
	window->ring = malloc(window->entries * sizeof *ring + 1);
	if (!window->ring) {
		window->entries = 0;
		return;
	}
	for (uint64_t at = from; at < head; at++)
		window->ring[at - from] = ring[at & (RING - 1)];
	window->due = due;
	window->woke = woke;
	window->series = series;
	window->end = insns;
	window->task = current;
}

// A sample was taken: due in rdi, woke in rsi, its series in rdx (measure/src/ring.rs).
static void on_sample(unsigned cpu, void *data)
{
	int64_t due = (int64_t)read_reg(regs.first), woke = (int64_t)read_reg(regs.second);
	uint64_t series = read_reg(regs.third);
	int64_t latency = woke - due;
	uint64_t number = samples++;
	// What came before the measurement is the boot's and the preparation's.
	if (!options.all && !options.port) {
		keep_sections(number > WARM_UP);
		if (number == WARM_UP)
			sections_lost = 0;
	}
	(void)cpu;
	(void)data;
	// An early one has no path.
	if (latency <= 0)
		return;
	// Ordinary ones, to compare with: the sample numbers 32, 64, 128, …
	if (number >= 32 && (number & (number - 1)) == 0 && ordinary_count < options.keep_ordinary)
		take(&windows[options.keep + ordinary_count++], due, woke, series);
	if (window_count < options.keep) {
		take(&windows[window_count++], due, woke, series);
		return;
	}
	struct window *least = &windows[0];
	for (uint32_t i = 1; i < window_count; i++)
		if (windows[i].woke - windows[i].due < least->woke - least->due)
			least = &windows[i];
	if (window_count && latency > least->woke - least->due)
		take(least, due, woke, series);
}

// The first mark is the start of what is looked at, the next one its end.
static void on_mark(void)
{
	if (marked && kept_insns)
		return;
	keep_sections(marked);
	if (!marked)
		sections_lost = 0;
	marked = true;
}

// On x86 a byte to the port.
static void on_out(unsigned cpu, void *data)
{
	if ((read_reg(regs.third) & 0xffff) == options.port)
		on_mark();
	(void)cpu;
	(void)data;
}

// arm64 has no ports: kill(2) of a process that there cannot be.
static void on_kill(unsigned cpu, void *data)
{
	if (read_reg(regs.x[8]) == 129 && read_reg(regs.first) == options.port)
		on_mark();
	(void)cpu;
	(void)data;
}

static void on_idle(plugin_id id, unsigned cpu)
{
	write_entry(EVENT_OF(IDLE, 0));
	(void)id;
	(void)cpu;
}

static int compare(const void *a, const void *b)
{
	const uint64_t *left = a, *right = b;
	return *left < *right ? -1 : *left > *right;
}

static bool is_among(uint64_t pc, const uint64_t *sorted, size_t count)
{
	return count && bsearch(&pc, sorted, count, sizeof pc, compare);
}

static bool is_entry(uint64_t pc)
{
	return (pc >= options.entries_begin && pc < options.entries_end) ||
	       is_among(pc, options.entry_pcs, options.entry_count);
}

// The place of a block; the same code translated again has the same one.
static uint32_t block_of(struct block block, const uint8_t *code)
{
	uint64_t hash = (block.pc ^ (uint64_t)block.insns << 48 ^ (uint64_t)block.bytes << 56) *
			0x9e3779b97f4a7c15ull;
	for (uint64_t at = hash >> 41;; at = (at + 1) % (2 * BLOCKS)) {
		uint32_t *place = &block_index[at];
		if (*place && (memcmp(&blocks[*place - 1], &block, sizeof block) ||
			       memcmp(codes[*place - 1], code, CODE)))
			continue;
		if (*place)
			return *place - 1;
		if (block_count == BLOCKS) {
			blocks_lost += 1;
			return 0;
		}
		blocks[block_count] = block;
		memcpy(codes[block_count], code, CODE);
		*place = ++block_count;
		return *place - 1;
	}
}

static void register_insn(struct insn *insn, data_cb cb, int flags, void *place)
{
	qemu_plugin_register_vcpu_insn_exec_cb(insn, cb, flags, place);
}

// Whether the instruction's operand is the CPU's preempt_count: below gs, relative to the next
// instruction or without any register (Intel SDM, volume 2, 2.1 and 2.2.1.6).
static bool is_count(const uint8_t *code, size_t len, uint64_t pc)
{
	size_t at = 0;
	bool gs = false;
	while (at < len && (code[at] == 0x65 || code[at] == 0x66 || code[at] == 0xf0 ||
			    code[at] == 0xf2 || code[at] == 0xf3))
		gs |= code[at++] == 0x65;
	if (!gs || !options.preempt_count)
		return false;
	if (at < len && (code[at] & 0xf0) == 0x40)
		at++;
	// Its operation, of one or two bytes.
	if (at < len && code[at] == 0x0f)
		at++;
	at++;
	if (at + 5 > len || code[at] >> 6 != 0)
		return false;
	bool relative = (code[at] & 7) == 5;
	bool plain = (code[at] & 7) == 4 && code[at + 1] == 0x25;
	int32_t offset;
	at += plain ? 2 : 1;
	if (!(relative || plain) || at + 4 > len)
		return false;
	memcpy(&offset, code + at, 4);
	return (relative ? pc + len : 0) + (uint64_t)(int64_t)offset == options.preempt_count;
}

// The marker that measuring threads execute: nopl 0x31584550(%rax).
static const uint8_t MARKER[] = { 0x0f, 0x1f, 0x80, 0x50, 0x45, 0x58, 0x31 };

// The same on arm64: movz xzr, #0x5058.
#define ARM_MARKER 0xd28a0b1fu

// rdtsc, rdtscp
static bool is_clock(const uint8_t *code, size_t len)
{
	return (len == 2 && code[0] == 0x0f && code[1] == 0x31) ||
	       (len == 3 && code[0] == 0x0f && code[1] == 0x01 && code[2] == 0xf9);
}

static enum kind kind_of(const uint8_t *code, size_t len)
{
	size_t at = 0;
	// Prefixes that calls, jumps and returns bear: notrack/ds, bnd/repne, rep, and REX.
	while (at < len && (code[at] == 0x3e || code[at] == 0xf2 || code[at] == 0xf3 ||
			    code[at] == 0x2e || (code[at] & 0xf0) == 0x40))
		at++;
	if (at >= len)
		return PLAIN;
	switch (code[at]) {
	case 0xe8:
		return CALL;
	case 0xc2:
	case 0xc3:
		return RETURN;
	case 0xcf:
		return IRET;
	case 0xff:
		return at + 1 < len && (code[at + 1] >> 3 & 7) == 2 ? CALL : PLAIN;
	case 0x0f:
		if (at + 1 < len && code[at + 1] == 0x05)
			return SYSCALL;
		if (at + 1 < len && code[at + 1] == 0x07)
			return SYSRET;
	}
	return PLAIN;
}

// What matters of an instruction of arm64 (Arm ARM, C4.1), and how a block ends with it.
static enum kind on_arm_insn(struct insn *insn, uint32_t code, void *place)
{
	uint32_t bits = code >> 8 & 15, offset = code >> 10 & 0xfff;
	if ((code & 0xfffff0ff) == 0xd50340df && bits & 2) // msr daifset
		register_insn(insn, on_cli, NO_REGS, place);
	else if ((code & 0xfffff0ff) == 0xd50340ff && bits & 2) // msr daifclr
		register_insn(insn, on_sti, NO_REGS, place);
	else if ((code & 0xffffffe0) == 0xd51b4220) // msr daif, x; register 31 is 0
		register_insn(insn, (code & 31) < 31 ? on_mask[code & 31] : on_sti, READS_REGS,
			      place);
	// str w and str x, with an offset in units of their size
	if (options.preempt_count && ((code & 0xffc00000) == 0xb9000000 ||
				      (code & 0xffc00000) == 0xf9000000)) {
		uint64_t at = (uint64_t)offset << (code >> 30);
		if (at == options.preempt_count || at == options.preempt_count + 4)
			qemu_plugin_register_vcpu_mem_cb(insn, on_task_count, NO_REGS, WRITES, place);
	}
	if ((code & 0xfc000000) == 0x94000000 || (code & 0xfefff800) == 0xd63f0800 ||
	    (code & 0xfffffc1f) == 0xd63f0000) // bl, blra, blr
		return CALL;
	if ((code & 0xfffffc1f) == 0xd65f0000 || (code & 0xfffffbff) == 0xd65f0bff) // ret, reta
		return RETURN;
	if (code == 0xd69f03e0 || (code & 0xfffffbff) == 0xd69f0bff) { // eret, ereta
		register_insn(insn, on_eret, READS_REGS, place);
		return IRET;
	}
	if ((code & 0xffe0001f) != 0xd4000001) // svc
		return PLAIN;
	if (options.port)
		register_insn(insn, on_kill, READS_REGS, place);
	return SYSCALL;
}

static void on_translation(plugin_id id, struct tb *tb)
{
	uint64_t pc = qemu_plugin_tb_vaddr(tb), at = pc;
	size_t count = qemu_plugin_tb_n_insns(tb);
	struct block block = { .pc = pc, .insns = (uint16_t)count, .entry = is_entry(pc) };
	uint8_t code[16] = { 0 }, first[CODE] = { 0 };
	size_t len = 0;
	// QEMU calls the newest callback of an instruction last: the block's own comes first.
	for (size_t i = 0; i < count; i++) {
		struct insn *insn = qemu_plugin_tb_get_insn(tb, i);
		void *place = PLACE(at, count - i - 1);
		len = qemu_plugin_insn_data(insn, code, sizeof code);
		if (!(pc & KERNEL) && at - pc < CODE)
			memcpy(first + (at - pc), code, len < CODE - (at - pc) ? len : CODE - (at - pc));
		if (is_arm) {
			uint32_t word;
			memcpy(&word, code, 4);
			if (word == ARM_MARKER)
				register_insn(insn, on_sample, READS_REGS, place);
			else if ((word & 0xffffff60) == 0xd53be040)
				block.clock = (uint16_t)(i + 1);
			block.kind = on_arm_insn(insn, word, place);
		} else if (len == sizeof MARKER && !memcmp(code, MARKER, len))
			register_insn(insn, on_sample, READS_REGS, place);
		else if (len == 1 && code[0] == 0xfa)
			register_insn(insn, on_cli, NO_REGS, place);
		else if (len == 1 && code[0] == 0xfb)
			register_insn(insn, on_sti, NO_REGS, place);
		else if (len == 1 && code[0] == 0x9d)
			register_insn(insn, on_popf, READS_REGS, place);
		else if (len == 1 && code[0] == 0xee && options.port)
			register_insn(insn, on_out, READS_REGS, place);
		else if (is_clock(code, len))
			block.clock = (uint16_t)(i + 1);
		else if (is_count(code, len, at))
			qemu_plugin_register_vcpu_mem_cb(insn, on_count, NO_REGS, WRITES, place);
		if (at == options.switch_pc)
			register_insn(insn, on_switch, READS_REGS, place);
		if (at == options.schedule_pc)
			register_insn(insn, on_schedule, NO_REGS, place);
		else if (at == options.migrate_disable_pc)
			register_insn(insn, on_migrate_disable, NO_REGS, place);
		else if (at == options.migrate_enable_pc)
			register_insn(insn, on_migrate_enable, NO_REGS, place);
		else if (is_among(at, options.lock_pcs, options.lock_count))
			register_insn(insn, on_lock, NO_REGS, place);
		at += len;
		if (i + 1 < count || is_arm)
			continue;
		block.kind = kind_of(code, len);
		if (block.kind == SYSCALL)
			register_insn(insn, on_cli, NO_REGS, place);
		if (block.kind == SYSRET)
			register_insn(insn, on_sysret, READS_REGS, place);
		if (block.kind == IRET)
			register_insn(insn, on_iret, READS_REGS, place);
	}
	block.bytes = (uint16_t)(at - pc);
	qemu_plugin_register_vcpu_tb_exec_cb(tb, on_block, NO_REGS,
					     (void *)(uintptr_t)block_of(block, first));
	(void)id;
}

static void on_init(plugin_id id, unsigned cpu)
{
	struct glib_array *list = qemu_plugin_get_registers();
	struct reg_descriptor *all = (struct reg_descriptor *)list->data;
	for (unsigned i = 0; i < list->len; i++) {
		const char *name = all[i].name;
		unsigned number = 31;
		if (is_arm && sscanf(name, "x%u", &number) == 1 && number < 31)
			regs.x[number] = all[i].handle;
		else if (!strcmp(name, "SPSR_EL1"))
			regs.spsr = all[i].handle;
		else if (!strcmp(name, "rdi"))
			regs.first = all[i].handle;
		else if (!strcmp(name, "rsi"))
			regs.second = all[i].handle;
		else if (!strcmp(name, "rdx"))
			regs.third = all[i].handle;
		else if (!strcmp(name, "rsp"))
			regs.rsp = all[i].handle;
		else if (!strcmp(name, "r11"))
			regs.r11 = all[i].handle;
	}
	if (is_arm) {
		regs.first = regs.x[0];
		regs.second = regs.x[1];
		regs.third = regs.x[2];
		if (!regs.spsr)
			fail("QEMU does not name SPSR_EL1: interrupts are not followed\n");
	}
	(void)id;
	(void)cpu;
}

struct header {
	char magic[8];
	uint64_t insns, samples, cut, blocks_lost, sections_lost, kept;
	uint32_t blocks, tasks, windows, ordinary, sections, longest;
};

static void write_window(FILE *out, const struct window *window)
{
	fwrite(window, offsetof(struct window, ring), 1, out);
	fwrite(window->ring, sizeof *ring, window->entries, out);
}

static void write_stretch(FILE *out, const struct stretch *stretch)
{
	fwrite(stretch, offsetof(struct stretch, ring), 1, out);
	fwrite(stretch->ring, sizeof *ring, stretch->entries, out);
}

/* Opened at the start: at its end QEMU may be a user who may not. */
static FILE *dump;

static void at_exit(plugin_id id, void *data)
{
	if (options.all)
		keep_sections(true);
	FILE *out = dump;
	struct header header = {
		.magic = "PEXACT4",
		.insns = insns,
		.samples = samples,
		.cut = cut,
		.blocks_lost = blocks_lost,
		.sections_lost = sections_lost,
		.kept = kept_insns,
		.blocks = block_count,
		.tasks = task_count,
		.windows = window_count,
		.ordinary = ordinary_count,
	};
	(void)id;
	(void)data;
	if (!out) {
		fail("cannot write what was seen");
		return;
	}
	for (uint32_t i = 0; i < SECTIONS; i++)
		header.sections += sections[i].count > 0;
	const struct stretch *stretches = longest[0];
	for (uint32_t i = 0; i < KINDS * LONGEST; i++)
		header.longest += stretches[i].ring != NULL;
	fwrite(&header, sizeof header, 1, out);
	for (uint32_t i = 0; i < block_count; i++) {
		fwrite(&blocks[i], sizeof *blocks, 1, out);
		fwrite(codes[i], CODE, 1, out);
	}
	fwrite(tasks, sizeof *tasks, task_count, out);
	for (uint32_t i = 0; i < window_count; i++)
		write_window(out, &windows[i]);
	for (uint32_t i = 0; i < ordinary_count; i++)
		write_window(out, &windows[options.keep + i]);
	for (uint32_t i = 0; i < SECTIONS; i++)
		if (sections[i].count)
			fwrite(&sections[i], sizeof *sections, 1, out);
	for (uint32_t i = 0; i < KINDS * LONGEST; i++)
		if (stretches[i].ring)
			write_stretch(out, &stretches[i]);
	if (fclose(out))
		fail("cannot write all that was seen");
}

static void add_pc(uint64_t **sorted, size_t *count, uint64_t pc)
{
	*sorted = realloc(*sorted, (*count + 1) * sizeof **sorted);
	if (!*sorted)
		abort();
	(*sorted)[(*count)++] = pc;
	qsort(*sorted, *count, sizeof **sorted, compare);
}

__attribute__((visibility("default"))) int
qemu_plugin_install(plugin_id id, const struct qemu_info *info, int argc, char **argv)
{
	options.keep = 20;
	options.keep_ordinary = 8;
	for (int i = 0; i < argc; i++) {
		char *value = strchr(argv[i], '=');
		if (!value)
			return -1;
		*value++ = 0;
		uint64_t number = strtoull(value, NULL, 0);
		if (!strcmp(argv[i], "out"))
			options.out = value;
		else if (!strcmp(argv[i], "switch"))
			options.switch_pc = number;
		else if (!strcmp(argv[i], "comm"))
			options.comm_offset = (uint32_t)number;
		else if (!strcmp(argv[i], "pid"))
			options.pid_offset = (uint32_t)number;
		else if (!strcmp(argv[i], "entry"))
			add_pc(&options.entry_pcs, &options.entry_count, number);
		else if (!strcmp(argv[i], "lock"))
			add_pc(&options.lock_pcs, &options.lock_count, number);
		else if (!strcmp(argv[i], "migrate_disable"))
			options.migrate_disable_pc = number;
		else if (!strcmp(argv[i], "migrate_enable"))
			options.migrate_enable_pc = number;
		else if (!strcmp(argv[i], "entries_begin"))
			options.entries_begin = number;
		else if (!strcmp(argv[i], "entries_end"))
			options.entries_end = number;
		else if (!strcmp(argv[i], "schedule"))
			options.schedule_pc = number;
		else if (!strcmp(argv[i], "keep"))
			options.keep = (uint32_t)number;
		else if (!strcmp(argv[i], "ordinary"))
			options.keep_ordinary = (uint32_t)number;
		else if (!strcmp(argv[i], "preempt_count"))
			options.preempt_count = number;
		else if (!strcmp(argv[i], "port"))
			options.port = number;
		else if (!strcmp(argv[i], "all"))
			options.all = number;
		else
			return -1;
	}
	if (!options.out || options.keep + options.keep_ordinary > WINDOWS ||
	    info->system.smp_vcpus != 1)
		return -1;
	is_arm = !strcmp(info->target_name, "aarch64");
	if (!is_arm && strcmp(info->target_name, "x86_64"))
		return -1;
	ring = calloc(RING, sizeof *ring);
	blocks = calloc(BLOCKS, sizeof *blocks);
	codes = calloc(BLOCKS, sizeof *codes);
	block_index = calloc(2 * BLOCKS, sizeof *block_index);
	bytes = g_byte_array_new();
	if (!ring || !blocks || !codes || !block_index || !bytes)
		return -1;
	qemu_plugin_register_vcpu_init_cb(id, on_init);
	qemu_plugin_register_vcpu_idle_cb(id, on_idle);
	qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation);
	dump = fopen(options.out, "wb");
	qemu_plugin_register_atexit_cb(id, at_exit, NULL);
	return 0;
}
