/* What the programs need of the kernel: helpers by number (include/uapi/linux/bpf.h), and of each
 * structure the fields that are read. The loader finds their true offsets (CO-RE), so their order
 * and neighbours here mean nothing. */
#ifndef PUNCTUAL_KERNEL_H
#define PUNCTUAL_KERNEL_H

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef signed char i8;
typedef short i16;
typedef int i32;
typedef long long i64;
typedef _Bool bool;

#define SEC(name) __attribute__((section(name), used))
#define NOINLINE static __attribute__((noinline))
#define INLINE static inline __attribute__((always_inline))
/* clang keeps the order of the source for this processor: what is rare stands after what is not,
 * and returns from there. */
#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
#define false 0
#define true 1

#define __uint(name, value) int(*name)[value]
#define __type(name, type) type *name

#define BPF_MAP_TYPE_HASH 1
#define BPF_MAP_TYPE_ARRAY 2
#define BPF_MAP_TYPE_STACK_TRACE 7
#define BPF_MAP_TYPE_LRU_HASH 9
#define BPF_MAP_TYPE_RINGBUF 27
#define BPF_RB_FORCE_WAKEUP (1ULL << 1)
#define BPF_F_NO_PREALLOC 1
#define BPF_F_USER_STACK (1 << 8)
#define BPF_F_FAST_STACK_CMP (1 << 9)
#define TASK_INTERRUPTIBLE 1
#define TASK_UNINTERRUPTIBLE 2
#define TASK_STOPPED 4
#define JOBCTL_TRAP_FREEZE (1ul << 23)
#define PF_KTHREAD 0x00200000
#define PWR_EVENT_EXIT 0xffffffff
#define BPF_F_MMAPABLE (1 << 10)

struct task_struct;
struct pt_regs;

static void *(*bpf_map_lookup_elem)(void *map, const void *key) = (void *)1;
static long (*bpf_map_delete_elem)(void *map, const void *key) = (void *)3;
static long (*bpf_map_update_elem)(void *map, const void *key, const void *value,
				   u64 flags) = (void *)2;
static u64 (*bpf_ktime_get_ns)(void) = (void *)5;
static u32 (*bpf_get_smp_processor_id)(void) = (void *)8;
static u64 (*bpf_get_current_pid_tgid)(void) = (void *)14;
static long (*bpf_get_current_comm)(void *to, u32 size) = (void *)16;
static long (*bpf_get_stackid)(void *ctx, void *map, u64 flags) = (void *)27;
static long (*bpf_probe_read_user)(void *to, u32 size, const void *from) = (void *)112;
static u64 (*bpf_get_current_task)(void) = (void *)35;
static struct task_struct *(*bpf_get_current_task_btf)(void) = (void *)158;
static u64 (*bpf_get_attach_cookie)(void *ctx) = (void *)174;
static struct pt_regs *(*bpf_task_pt_regs)(struct task_struct *task) = (void *)175;
static long (*bpf_probe_read_kernel)(void *to, u32 size, const void *from) = (void *)113;
static long (*bpf_ringbuf_output)(void *map, void *data, u64 size, u64 flags) = (void *)130;

#define field_exists(field) __builtin_preserve_field_info(field, 2)

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct thread_info {
	u32 status;
	u32 cpu;
};
struct rq {
	u64 prev_steal_time_rq;
};
struct cfs_rq {
	struct rq *rq;
	int throttle_count;
};
struct sched_entity {
	struct cfs_rq *cfs_rq;
};
struct hrtimer_clock_base {
	i64 offset;
};
struct hrtimer {
	i64 _softexpires;
	void *function;
	struct hrtimer_clock_base *base;
	u8 state;
};
/* Since 7.2 in the place of `state`. */
struct hrtimer___queued {
	bool is_queued;
};
struct timerqueue_node___expires {
	i64 expires;
};
struct hrtimer___node {
	struct timerqueue_node___expires node;
};
struct sched_dl_entity {
	u64 dl_deadline;
	u64 dl_period;
	u64 deadline;
	struct hrtimer dl_timer;
};
struct ns_common {
	u32 inum;
};
struct pid_namespace {
	struct ns_common ns;
};
struct upid {
	int nr;
	struct pid_namespace *ns;
};
struct pid {
	u32 level;
	struct upid numbers[1];
};
struct sched_info {
	unsigned long long last_arrival;
	unsigned long long last_queued;
};
struct task_struct {
	struct thread_info thread_info;
	void *stack;
	u32 flags;
	int pid;
	int tgid;
	struct pid *thread_pid;
	struct task_struct *group_leader;
	int pagefault_disabled;
	unsigned long jobctl;
	int on_rq;
	int prio;
	int normal_prio;
	u32 policy;
	u32 __state;
	struct sched_entity se;
	struct sched_dl_entity dl;
	struct sched_info sched_info;
	bool throttled;
	int exit_code;
	char comm[16];
};
/* Before 5.16 the CPU stood in task_struct itself. */
struct task_struct___before_5_16 {
	u32 cpu;
};

struct hrtimer_sleeper {
	struct hrtimer timer;
	struct task_struct *task;
};
struct timer_list {
	unsigned long expires;
	void *function;
};

#if defined(TARGET_x86_64)
struct pt_regs {
	unsigned long di;
	unsigned long si;
	unsigned long dx;
	unsigned long bx;
	unsigned long cx;
	unsigned long orig_ax;
	unsigned long ip;
	unsigned long sp;
	unsigned long bp;
};
#elif defined(TARGET_aarch64)
struct pt_regs {
	u64 regs[31];
	u64 sp;
	u64 pc;
	int syscallno;
};
#elif defined(TARGET_riscv64)
struct pt_regs {
	unsigned long epc;
	unsigned long a1;
	unsigned long a2;
	unsigned long a7;
	unsigned long cause;
	unsigned long orig_a0;
};
#define EXC_SYSCALL 8
#endif

struct kmem_cache {
	u32 object_size;
	u32 size;
};

struct gendisk {
	int major;
	int first_minor;
};
struct request_queue {
	struct gendisk *disk;
};
struct request {
	struct request_queue *q;
	u32 cmd_flags;
	u32 __data_len;
	u64 __sector;
};

struct net {
	struct ns_common ns;
};
struct possible_net {
	struct net *net;
};
struct net_device {
	char name[16];
	int ifindex;
	struct possible_net nd_net;
};
struct sk_buff {
	struct net_device *dev;
	u32 len;
};
struct sock_common {
	u16 skc_family;
};
struct sock {
	struct sock_common __sk_common;
	u16 sk_protocol;
};

struct block_device {
	u32 bd_dev;
};
struct journal_s {
	struct block_device *j_fs_dev;
};
struct transaction_s {
	u32 t_tid;
};

struct mmc_command {
	u32 opcode;
	int error;
};
struct mmc_data {
	u32 blocks;
};
struct mmc_request {
	struct mmc_command *cmd;
	struct mmc_data *data;
};

struct work_struct {
	void *func;
};

#pragma clang attribute pop

/* By how much the kernel may let the timer of a thread that is not real-time expire later than it
 * asked for. */
INLINE u64 slack_of(struct hrtimer *timer)
{
	struct hrtimer___node *of = (void *)timer;
	i64 hard, soft = timer->_softexpires;

	if (!field_exists(of->node.expires))
		return 0;
	hard = of->node.expires;
	return hard > soft ? hard - soft : 0;
}

/* A fault while faults are disabled is never served. Programs like these cause it when they read
 * the stack or a word of a task (bpf_get_stackid follows any frame pointer): it is none of the
 * task's, whichever program of whichever object read. */
INLINE bool is_fault_of_task(void)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	int disabled = 0;

	/* While it reads, the read itself has disabled faults once (copy_from_kernel_nofault). */
	bpf_probe_read_kernel(&disabled, sizeof(disabled), &task->pagefault_disabled);
	return disabled <= 1;
}

/* A lock that somebody waits for: of glibc (sysdeps/nptl/lowlevellock.h) and of Rust's standard
 * library (sys/sync/mutex/futex.rs) has this value, one of musl (src/thread) is negative. */
#define LOCKED_WITH_WAITERS 2

INLINE bool is_of_lock(u32 value)
{
	return value == LOCKED_WITH_WAITERS || (value >> 31 && value != (u32)-1);
}

/* Whether the quota of its group throttles a task. Since 6.18 a thread is taken off when it is to
 * return to user space and its group's quota is used up; before, the group was taken off its CPU.
 * The task may be gone: what is read then is not to be relied on. */
INLINE bool held_back(struct task_struct *task)
{
	struct cfs_rq *group = 0;
	u32 held = 0;

	if (field_exists(task->throttled)) {
		bpf_probe_read_kernel(&held, 1, &task->throttled);
	} else if (field_exists(group->throttle_count)) {
		bpf_probe_read_kernel(&group, sizeof(group), &task->se.cfs_rq);
		bpf_probe_read_kernel(&held, sizeof(held), &group->throttle_count);
	}
	return held;
}

/* The same of a task that the kernel hands over. */
INLINE bool is_throttled(struct task_struct *task)
{
	struct cfs_rq *group = 0;

	if (field_exists(task->throttled))
		return task->throttled;
	return field_exists(group->throttle_count) && task->se.cfs_rq->throttle_count;
}

/* The freezer of its control group holds the task: it sleeps like any other. */
INLINE bool is_frozen(struct task_struct *task)
{
	return task->jobctl & JOBCTL_TRAP_FREEZE;
}

#endif
