// SPDX-License-Identifier: GPL-2.0
/*
 * Ways into the kernel that store a test point, as the publication built them that punctual's
 * experiment P5 follows: a write to a device file, to a procfs file and to a debugfs file of one's
 * own; and an ioctl(2), which is as near to a system call of one's own as a module comes
 * (docs/reference/workloads.md says why).
 *
 * All four end in store(): the record goes into one buffer in kernel memory. Reading the device
 * takes records out: `cat /dev/punctual-point >file` is the small program that empties it.
 */
#include <linux/cred.h>
#include <linux/debugfs.h>
#include <linux/fs.h>
#include <linux/ktime.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/mutex.h>
#include <linux/proc_fs.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <linux/spinlock.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>

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

static struct miscdevice device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "punctual-point",
	.fops = &device_operations,
	.mode = 0600,
};

static struct dentry *in_debugfs;

static int __init punctual_point_init(void)
{
	int failed;

	points = vzalloc(array_size(SLOTS, sizeof(*points)));
	if (!points)
		return -ENOMEM;
	failed = misc_register(&device);
	if (failed)
		goto no_device;
	if (!proc_create("punctual-point", 0200, NULL, &procfs_operations)) {
		failed = -ENOMEM;
		goto no_procfs;
	}
	/* A kernel without debugfs lacks that file, and nothing else. */
	in_debugfs = debugfs_create_file("punctual-point", 0200, NULL, NULL, &debugfs_operations);
	return 0;

no_procfs:
	misc_deregister(&device);
no_device:
	vfree(points);
	return failed;
}

static void __exit punctual_point_exit(void)
{
	debugfs_remove(in_debugfs);
	remove_proc_entry("punctual-point", NULL);
	misc_deregister(&device);
	vfree(points);
}

module_init(punctual_point_init);
module_exit(punctual_point_exit);
MODULE_DESCRIPTION("Stores test points that are written to it: "
		   "what punctual measure testpoint-cost compares");
MODULE_AUTHOR("The authors of punctual");
MODULE_LICENSE("GPL");
