/* A kernel of a few lines: the BPF programs are compiled for this machine, their helpers are those
 * below, and a test calls the programs as the kernel's tracepoints do. What a program makes of
 * events is exact here, without rights, and any number of CPUs is simulated. Whether the verifier
 * takes it, and what the kernel's fields mean, only a kernel shows. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the loader sets is set by tests, and the loader's relocations are none here. */
#define const
#define preserve_access_index annotate("kernel")
#define __builtin_preserve_field_info(field, kind) 1
#define TARGET_x86_64
#include PROGRAMS

static int failures;
#define CHECK(what)                                             \
	do {                                                    \
		if (!(what)) {                                  \
			printf("line %d: %s\n", __LINE__, #what); \
			failures++;                             \
		}                                               \
	} while (0)

/* --- What happens now --- */

static u64 now_ns; /* CLOCK_MONOTONIC */
static u32 this_cpu;

struct task {
	struct task_struct task;
	struct pt_regs regs;
	struct pid pid;
	struct cfs_rq group;
	struct rq queue;
};
#define CPUS 4
static struct task *on[CPUS]; /* what runs there */

static struct task *make_task(int id, char *name, int prio)
{
	struct task *t = calloc(1, sizeof(*t));

	t->task.pid = t->task.tgid = id;
	t->task.group_leader = &t->task;
	t->task.prio = t->task.normal_prio = prio;
	t->task.thread_pid = &t->pid;
	t->task.se.cfs_rq = &t->group;
	t->task.on_rq = 1;
	/* Beyond the reach of any timer. */
	t->task.stack = (void *)0x7000000000000000;
	t->group.rq = &t->queue;
	strncpy(t->task.comm, name, sizeof(t->task.comm) - 1);
	return t;
}

/* --- Maps --- */

struct entry {
	struct entry *next;
	void *map;
	u64 key;
	u64 value[];
};
static struct entry *entries;
struct map {
	void *map;
	u32 key;
	u32 value;
	u32 filled; /* so many elements are there from the beginning: an array */
};
static struct map maps[16];

static struct map *map_of(void *map)
{
	for (u32 i = 0; i < 16; i++)
		if (maps[i].map == map)
			return &maps[i];
	printf("a map that the test does not have\n");
	exit(2);
}

static u64 key_of(struct map *map, void *key)
{
	u64 number = 0;

	memcpy(&number, key, map->key);
	return number;
}

static void *find(void *map, void *key)
{
	u64 number = key_of(map_of(map), key);

	for (struct entry *e = entries; e; e = e->next)
		if (e->map == map && e->key == number)
			return e->value;
	return 0;
}

static long put(void *map, void *key, void *value, u64 flags)
{
	struct map *of = map_of(map);
	void *there = find(map, key);

	if (there && flags == 1)
		return -17;
	if (!there) {
		struct entry *e = calloc(1, sizeof(*e) + of->value);

		*e = (struct entry){ entries, map, key_of(of, key) };
		entries = e;
		there = e->value;
	}
	memcpy(there, value, of->value);
	return 0;
}

static long drop(void *map, void *key)
{
	u64 number = key_of(map_of(map), key);

	for (struct entry *e = entries; e; e = e->next)
		if (e->map == map && e->key == number) {
			e->map = 0;
			return 0;
		}
	return -2;
}

static void add_map(void *map, u32 key, u32 value, u32 filled)
{
	static u32 count;
	void *zero = calloc(1, value);

	maps[count++] = (struct map){ map, key, value, filled };
	for (u32 i = 0; i < filled; i++)
		put(map, &i, zero, 0);
	free(zero);
}

/* --- Helpers --- */

static u64 get_now(void) { return now_ns; }
static u32 get_cpu(void) { return this_cpu; }
static u64 get_ids(void) { return (u64)on[this_cpu]->task.tgid << 32 | on[this_cpu]->task.pid; }
static struct task_struct *get_task(void) { return &on[this_cpu]->task; }
static struct pt_regs *get_regs(struct task_struct *task) { return &((struct task *)task)->regs; }
static u64 get_address(void) { return (u64)get_task(); }

/* The frame pointer of a program without frames points anywhere: reading there faults. */
static void (*walk_faults)(void);
static long get_stack(void *ctx, void *map, u64 flags)
{
	get_task()->pagefault_disabled++;
	if (walk_faults)
		walk_faults();
	get_task()->pagefault_disabled--;
	return -14;
}

static long get_comm(void *to, u32 size)
{
	memcpy(to, on[this_cpu]->task.comm, size);
	return 0;
}

static long copy(void *to, u32 size, void *from)
{
	if (!from)
		return -14;
	/* As copy_from_kernel_nofault() does, which the reader of that very count sees. */
	get_task()->pagefault_disabled++;
	memcpy(to, from, size);
	get_task()->pagefault_disabled--;
	return 0;
}

#define WORDS 1024
static void begin_world(void)
{
	bpf_map_lookup_elem = find;
	bpf_map_update_elem = put;
	bpf_map_delete_elem = drop;
	bpf_ktime_get_ns = get_now;
	bpf_get_smp_processor_id = get_cpu;
	bpf_get_current_pid_tgid = get_ids;
	bpf_get_current_task_btf = get_task;
	bpf_get_current_task = get_address;
	bpf_task_pt_regs = get_regs;
	bpf_get_current_comm = get_comm;
	bpf_get_stackid = get_stack;
	bpf_probe_read_kernel = bpf_probe_read_user = copy;
	mask = WORDS - 1;
	add_map(&buffers, 4, sizeof(struct wire_buffer) + WORDS * 8, CPUS);
	cpu_count = CPUS;
	for (u32 i = 0; i < CPUS; i++)
		on[i] = make_task(0, "swapper", 120);
}

/* --- Records --- */

/* Takes the next record out of a CPU's buffer: its kind, its payload; 0: there is none. */
static u32 next_record(u32 slot, void *payload, u32 size)
{
	struct buffer *buffer = find(&buffers, &slot);
	u64 at = buffer->at.tail, second;
	u32 words;

	if (at == buffer->at.done)
		return 0;
	second = buffer->data[(at + 1) & mask];
	words = second >> 40 & 0xff;
	for (u32 i = 0; i < words && i * 8 < size; i++)
		((u64 *)payload)[i] = buffer->data[(at + 2 + i) & mask];
	buffer->at.tail += 2 + words;
	return second >> 32 & 0xff;
}
