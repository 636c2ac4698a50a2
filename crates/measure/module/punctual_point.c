// SPDX-License-Identifier: GPL-2.0
/*
 * Ways into the kernel that store a test point, as the publication built them that punctual's
 * experiment P5 follows: a write to a device file, to a procfs file and to a debugfs file of one's
 * own; and an ioctl(2), which is as near to a system call of one's own as a module comes
 * (docs/reference/workloads.md says why).
 *
 * All four end in store(): the record goes into one buffer in kernel memory. Reading the device
 * takes records out: `cat /dev/punctual-point >file` is the small program that empties it.
 *
 * Points that kernel code passes (punctual_point.h) go to a ring of their CPU instead, in the form
 * that applications' points have (crates/testpoint/src/layout.rs): the collector that reads theirs
 * reads punctual/kernel.points of debugfs as well.
 */
#include <asm/local64.h>
#include <linux/atomic.h>
#include <linux/cred.h>
#include <linux/debugfs.h>
#include <linux/fs.h>
#include <linux/ktime.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/mutex.h>
#include <linux/preempt.h>
#include <linux/proc_fs.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <linux/timekeeping.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>

#include "punctual_point.h"

/* Records that the buffer holds; the oldest are overwritten. A power of two. */
#define SLOTS 16384
#define PAYLOAD_MAX 40
/* The size of the payload stands in the number (asm-generic/ioctl.h), its address is
 * the argument. */
#define IOCTL_TYPE 'p'
#define IOCTL_NUMBER 0x70

struct point {
	u64 ns; /* CLOCK_MONOTONIC */
	u32 tid;
	u16 cpu;
	u16 length;
	u64 position; /* from 0: what is missing was overwritten */
	u8 payload[PAYLOAD_MAX];
};

static struct point *points;
static u64 head, tail;
static DEFINE_RAW_SPINLOCK(lock);

static ulong stored_device, stored_ioctl, stored_procfs, stored_debugfs;
#define COUNTER(name, text)             \
	module_param(name, ulong, 0444); \
	MODULE_PARM_DESC(name, text)
COUNTER(stored_device, "points stored by write(2) to /dev/punctual-point");
COUNTER(stored_ioctl, "points stored by ioctl(2) on it");
COUNTER(stored_procfs, "points stored by write(2) to /proc/punctual-point");
COUNTER(stored_debugfs, "points stored by write(2) to punctual-point of debugfs");

static ssize_t store(const void __user *payload, size_t length, ulong *counter)
{
	struct point point = { .tid = current->pid, .length = length };
	unsigned long flags;

	if (length > PAYLOAD_MAX)
		return -EMSGSIZE;
	if (copy_from_user(point.payload, payload, length))
		return -EFAULT;
	raw_spin_lock_irqsave(&lock, flags);
	point.ns = ktime_get_ns();
	point.cpu = smp_processor_id();
	point.position = head;
	points[head & (SLOTS - 1)] = point;
	head++;
	(*counter)++;
	raw_spin_unlock_irqrestore(&lock, flags);
	return length;
}

static ssize_t device_write(struct file *file, const char __user *payload, size_t length,
			    loff_t *offset)
{
	return store(payload, length, &stored_device);
}

static ssize_t procfs_write(struct file *file, const char __user *payload, size_t length,
			    loff_t *offset)
{
	return store(payload, length, &stored_procfs);
}

static ssize_t debugfs_write(struct file *file, const char __user *payload, size_t length,
			     loff_t *offset)
{
	return store(payload, length, &stored_debugfs);
}

static long device_ioctl(struct file *file, unsigned int command, unsigned long argument)
{
	if (_IOC_TYPE(command) != IOCTL_TYPE || _IOC_NR(command) != IOCTL_NUMBER)
		return -ENOTTY;
	return store((const void __user *)argument, _IOC_SIZE(command), &stored_ioctl);
}

/* Whole records only, the oldest first; 0 when there are none. */
static ssize_t device_read(struct file *file, char __user *into, size_t room, loff_t *offset)
{
	size_t given = 0;

	while (room - given >= sizeof(struct point)) {
		struct point point;
		bool found;

		raw_spin_lock_irq(&lock);
		if (head - tail > SLOTS)
			tail = head - SLOTS;
		found = tail != head;
		if (found)
			point = points[tail++ & (SLOTS - 1)];
		raw_spin_unlock_irq(&lock);
		if (!found)
			break;
		if (copy_to_user(into + given, &point, sizeof(point)))
			return -EFAULT;
		given += sizeof(point);
	}
	return given;
}

static const struct file_operations device_operations = {
	.owner = THIS_MODULE,
	.read = device_read,
	.write = device_write,
	.unlocked_ioctl = device_ioctl,
	.llseek = noop_llseek,
};

static const struct file_operations debugfs_operations = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.write = debugfs_write,
	.llseek = noop_llseek,
};

static const struct proc_ops procfs_operations = {
	.proc_write = procfs_write,
	.proc_lseek = noop_llseek,
};

/* The file of the kernel's points; every number in it as layout.rs has it. */
#define VERSION 1
#define STREAM 1
#define CLOCK_IS_MONOTONIC 3
#define NAMES_AT 65536
#define NAMES_MAX 1023
#define NAME_BYTES 120
#define UNNAMED 0xffffff
#define RINGS_AT (3 * 65536)
#define RINGS_MAX 256
#define RING_LIVE 1
#define RING_SLOTS 8192
/* Nested contexts may reserve slots between a check of the limit and its reservation. */
#define MARGIN 64
/* No namespace of processes: the file is the kernel's, and each ring a CPU's. */
#define OF_KERNEL (~0ULL)
/* The thread of points that interrupts pass: this and the CPU, above every thread's number. */
#define OF_INTERRUPTS (1 << 30)

struct control {
	u64 magic;
	u32 version, recording, mode, requested, pid, clock;
	u64 start_time, pair_ticks, pair_monotonic, pair_error;
	u32 names_used, names_refused, ring_slots, rings_used;
	u64 namespace;
	u32 ended, reserved;
	char comm[16];
	u64 reserved_2[2];
	u64 ringless;
};

struct name {
	u32 length, reserved;
	char bytes[NAME_BYTES];
};

struct slot {
	u64 at, word;
	s64 values[2]; /* the point's, and its thread */
};

struct ring {
	u32 state, generation, cpu, slot_count;
	char comm[16];
	u64 reserved[4];
	u64 head, mask, dropped, reserved_2[5];
	u64 limit, read, reported, reserved_3[5];
	u64 reserved_4[512 - 24];
	struct slot slots[RING_SLOTS];
};

#define STRIDE ALIGN(sizeof(struct ring), 65536)
static_assert(sizeof(struct control) == 136 && sizeof(struct name) == 128);
static_assert(offsetof(struct ring, slots) == 4096 && sizeof(struct slot) == 32);

static struct control *control;
static size_t file_size;
static DEFINE_RAW_SPINLOCK(names_lock);

u32 *punctual_recording;
EXPORT_SYMBOL_GPL(punctual_recording);

static struct ring *ring_of(unsigned int cpu)
{
	return (void *)control + RINGS_AT + cpu * STRIDE;
}

/* The number of a point's name, which is registered if it is new. */
static u32 named(struct punctual_point *point)
{
	struct name *names = (void *)control + NAMES_AT;
	u32 id = READ_ONCE(point->id), length;
	unsigned long flags;

	if (id)
		return id;
	/* It may have interrupted a thread that holds the lock. */
	if (in_nmi())
		return UNNAMED;
	length = min_t(size_t, strlen(point->name), NAME_BYTES);
	raw_spin_lock_irqsave(&names_lock, flags);
	/* A driver that is loaded again has the names that it had. */
	for (id = 1; id <= control->names_used; id++)
		if (names[id - 1].length == length &&
		    !memcmp(names[id - 1].bytes, point->name, length))
			break;
	if (id > NAMES_MAX) {
		control->names_refused++;
		id = UNNAMED;
	} else if (id > control->names_used) {
		memcpy(names[id - 1].bytes, point->name, length);
		smp_store_release(&names[id - 1].length, length);
		WRITE_ONCE(control->names_used, id);
	}
	WRITE_ONCE(point->id, id);
	raw_spin_unlock_irqrestore(&names_lock, flags);
	return id;
}

void punctual_point(struct punctual_point *point, u32 kind, u32 count, s64 value)
{
	u32 id = named(point);
	unsigned int cpu;
	struct ring *ring;
	struct slot *slot;
	u64 position;

	preempt_disable_notrace();
	cpu = smp_processor_id();
	ring = ring_of(cpu);
	if (cpu >= control->rings_used) {
		atomic64_inc((atomic64_t *)&control->ringless);
	} else if (READ_ONCE(ring->head) >= READ_ONCE(ring->limit)) {
		local64_inc((local64_t *)&ring->dropped);
	} else {
		/* Whatever interrupts this takes the next slot. */
		position = local64_inc_return((local64_t *)&ring->head) - 1;
		slot = &ring->slots[position & (RING_SLOTS - 1)];
		WRITE_ONCE(slot->at, ktime_get_mono_fast_ns());
		WRITE_ONCE(slot->values[0], value);
		WRITE_ONCE(slot->values[1], in_task() ? current->pid : OF_INTERRUPTS + cpu);
		smp_store_release(&slot->word,
				  (position + 1) << 32 | count << 28 | kind << 24 | id);
	}
	preempt_enable_notrace();
}
EXPORT_SYMBOL_GPL(punctual_point);

static ssize_t file_read(struct file *file, char __user *into, size_t room, loff_t *offset)
{
	return simple_read_from_buffer(into, room, offset, control, file_size);
}

/* Whoever reads says so there, and how far. */
static ssize_t file_write(struct file *file, const char __user *from, size_t length,
			  loff_t *offset)
{
	return simple_write_to_buffer(control, file_size, offset, from, length);
}

static const struct file_operations points_operations = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.read = file_read,
	.write = file_write,
	.llseek = default_llseek,
};

static int make_rings(void)
{
	unsigned int cpu, rings = min_t(unsigned int, nr_cpu_ids, RINGS_MAX);

	file_size = RINGS_AT + rings * STRIDE;
	control = vzalloc(file_size);
	if (!control)
		return -ENOMEM;
	for (cpu = 0; cpu < rings; cpu++) {
		struct ring *ring = ring_of(cpu);

		ring->generation = 1;
		ring->cpu = cpu;
		ring->slot_count = RING_SLOTS;
		snprintf(ring->comm, sizeof(ring->comm), "CPU %u", cpu);
		ring->mask = RING_SLOTS - 1;
		ring->limit = RING_SLOTS - MARGIN;
		ring->state = RING_LIVE;
	}
	control->version = VERSION;
	control->mode = STREAM;
	control->clock = CLOCK_IS_MONOTONIC;
	control->ring_slots = RING_SLOTS;
	control->rings_used = rings;
	control->namespace = OF_KERNEL;
	strscpy(control->comm, "kernel", sizeof(control->comm));
	memcpy(&control->magic, "PNCTLPT1", sizeof(control->magic));
	punctual_recording = &control->recording;
	return 0;
}

static struct miscdevice device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "punctual-point",
	.fops = &device_operations,
	.mode = 0600,
};

static struct dentry *in_debugfs, *directory;

static int __init punctual_point_init(void)
{
	int failed;

	points = vzalloc(array_size(SLOTS, sizeof(*points)));
	if (!points)
		return -ENOMEM;
	failed = make_rings();
	if (failed)
		goto no_rings;
	failed = misc_register(&device);
	if (failed)
		goto no_device;
	if (!proc_create("punctual-point", 0200, NULL, &procfs_operations)) {
		failed = -ENOMEM;
		goto no_procfs;
	}
	/* A kernel without debugfs lacks these files, and nothing else. */
	in_debugfs = debugfs_create_file("punctual-point", 0200, NULL, NULL, &debugfs_operations);
	directory = debugfs_create_dir("punctual", NULL);
	debugfs_create_file_size("kernel.points", 0600, directory, NULL, &points_operations,
				 file_size);
	return 0;

no_procfs:
	misc_deregister(&device);
no_device:
	vfree(control);
no_rings:
	vfree(points);
	return failed;
}

static void __exit punctual_point_exit(void)
{
	debugfs_remove(directory);
	debugfs_remove(in_debugfs);
	remove_proc_entry("punctual-point", NULL);
	misc_deregister(&device);
	vfree(control);
	vfree(points);
}

module_init(punctual_point_init);
module_exit(punctual_point_exit);
MODULE_DESCRIPTION("Stores test points of kernel code, and those that are written to it");
MODULE_AUTHOR("The authors of punctual");
MODULE_LICENSE("GPL");
