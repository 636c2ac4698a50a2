// SPDX-License-Identifier: GPL-2.0
/*
 * Five planted faults for `punctual hunt`, each behind a device (docs/notes/hunts.md):
 *
 *	/dev/needle-ioctl	one argument of an ioctl(2) disables interrupts for 300 µs
 *	/dev/needle-write	a write(2) of more than 64 KiB is not preempted while it is summed up
 *	/dev/needle-list	each write makes a list longer, which a softirq walks
 *	/dev/needle-lock	a lock that disables interrupts is held for as long as what it protects
 *				is long, which only writes through a second device make so
 *	/dev/needle-storm	a write starts a timer that expires every 20 µs for 10 ms, and works for
 *				half of it
 *
 * Functions are not inlined: a cause is named by its function.
 */
#include <linux/fs.h>
#include <linux/hrtimer.h>
#include <linux/interrupt.h>
#include <linux/ktime.h>
#include <linux/list.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/preempt.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/uaccess.h>
#include <linux/version.h>

#define ONE_ARGUMENT 11
#define LIST_MAX 65536
#define ADDED 64
#define STORM_NS 20000
#define STORM_EXPIRIES 500

static noinline void needle_spin(u64 ns)
{
	u64 end = ktime_get_mono_fast_ns() + ns;

	while (ktime_get_mono_fast_ns() < end)
		cpu_relax();
}

static noinline long needle_ioctl(struct file *file, unsigned int command, unsigned long argument)
{
	unsigned long flags;

	if (argument != ONE_ARGUMENT)
		return 0;
	local_irq_save(flags);
	needle_spin(300000);
	local_irq_restore(flags);
	return 0;
}

static char bytes[1 << 20];

static noinline ssize_t needle_write(struct file *file, const char __user *from, size_t count,
				     loff_t *at)
{
	size_t i, taken = min(count, sizeof(bytes));
	unsigned long sum = 0;

	if (copy_from_user(bytes, from, taken))
		return -EFAULT;
	if (taken <= 64 << 10)
		return count;
	preempt_disable();
	for (i = 0; i < taken; i++)
		sum = sum * 31 + bytes[i];
	preempt_enable();
	bytes[0] = sum;
	return count;
}

struct item {
	struct list_head list;
	u64 value;
};

static LIST_HEAD(items);
static DEFINE_SPINLOCK(items_lock);
static unsigned int length;
static u64 total;

static noinline void needle_walk(struct tasklet_struct *unused)
{
	struct item *item;

	spin_lock(&items_lock);
	list_for_each_entry(item, &items, list) {
		total += item->value;
		cpu_relax();
	}
	spin_unlock(&items_lock);
}

static DECLARE_TASKLET(walk, needle_walk);

static ssize_t needle_list(struct file *file, const char __user *from, size_t count, loff_t *at)
{
	struct item *item;
	int i;

	for (i = 0; i < ADDED && length < LIST_MAX; i++) {
		item = kmalloc(sizeof(*item), GFP_KERNEL);
		if (!item)
			return -ENOMEM;
		item->value = count;
		spin_lock_bh(&items_lock);
		list_add(&item->list, &items);
		length++;
		spin_unlock_bh(&items_lock);
	}
	tasklet_schedule(&walk);
	return count;
}

static DEFINE_RAW_SPINLOCK(lock);
static u64 work_ns = 1000;

static noinline ssize_t needle_lock(struct file *file, const char __user *from, size_t count,
				    loff_t *at)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&lock, flags);
	needle_spin(work_ns);
	raw_spin_unlock_irqrestore(&lock, flags);
	return count;
}

/* What makes the other one's work long: it takes no time itself, and is forgotten in 50 ms. */
static u64 forgotten;

static noinline ssize_t needle_load(struct file *file, const char __user *from, size_t count,
				    loff_t *at)
{
	u64 now = ktime_get_mono_fast_ns();

	work_ns = now < forgotten ? min_t(u64, work_ns + 5000, 400000) : 1000;
	forgotten = now + 50000000;
	return count;
}

static struct hrtimer timer;
static int expiries;

static noinline enum hrtimer_restart needle_storm(struct hrtimer *timer)
{
	needle_spin(STORM_NS / 2);
	if (--expiries <= 0)
		return HRTIMER_NORESTART;
	hrtimer_forward_now(timer, ns_to_ktime(STORM_NS));
	return HRTIMER_RESTART;
}

static ssize_t needle_start(struct file *file, const char __user *from, size_t count, loff_t *at)
{
	expiries = STORM_EXPIRIES;
	hrtimer_start(&timer, ns_to_ktime(STORM_NS), HRTIMER_MODE_REL_HARD);
	return count;
}

#define DEVICE(word, ...)                                                                        \
	{                                                                                        \
		.minor = MISC_DYNAMIC_MINOR, .name = "needle-" word,                             \
		.fops = &(const struct file_operations){ .owner = THIS_MODULE, __VA_ARGS__ },    \
	}

static struct miscdevice devices[] = {
	DEVICE("ioctl", .unlocked_ioctl = needle_ioctl),
	DEVICE("write", .write = needle_write),
	DEVICE("list", .write = needle_list),
	DEVICE("lock", .write = needle_lock),
	DEVICE("load", .write = needle_load),
	DEVICE("storm", .write = needle_start),
};

static int __init needles_init(void)
{
	int i, failed;

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0)
	hrtimer_setup(&timer, needle_storm, CLOCK_MONOTONIC, HRTIMER_MODE_REL_HARD);
#else
	hrtimer_init(&timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_HARD);
	timer.function = needle_storm;
#endif
	for (i = 0; i < ARRAY_SIZE(devices); i++) {
		failed = misc_register(&devices[i]);
		if (failed) {
			while (i--)
				misc_deregister(&devices[i]);
			return failed;
		}
	}
	return 0;
}

static void __exit needles_exit(void)
{
	struct item *item, *next;
	int i;

	for (i = 0; i < ARRAY_SIZE(devices); i++)
		misc_deregister(&devices[i]);
	hrtimer_cancel(&timer);
	tasklet_kill(&walk);
	list_for_each_entry_safe(item, next, &items, list)
		kfree(item);
}

module_init(needles_init);
module_exit(needles_exit);
MODULE_DESCRIPTION("Planted faults, for punctual hunt");
MODULE_LICENSE("GPL");
