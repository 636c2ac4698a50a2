// SPDX-License-Identifier: GPL-2.0
/* /dev/bisected counts what is written to it: a driver that commits of driver.sh change. */
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/spinlock.h>

static DEFINE_SPINLOCK(lock);
static u64 history[16384];
static u64 written;

static noinline void remember(void)
{
	unsigned long flags;

	spin_lock_irqsave(&lock, flags);
	history[written++ % ARRAY_SIZE(history)] = written;
	spin_unlock_irqrestore(&lock, flags);
}

static ssize_t bisected_write(struct file *file, const char __user *from, size_t count, loff_t *at)
{
	remember();
	return count;
}

static const struct file_operations operations = {
	.owner = THIS_MODULE,
	.write = bisected_write,
};

static struct miscdevice device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "bisected",
	.fops = &operations,
};

static int __init bisected_init(void)
{
	return misc_register(&device);
}

static void __exit bisected_exit(void)
{
	misc_deregister(&device);
}

module_init(bisected_init);
module_exit(bisected_exit);
MODULE_DESCRIPTION("What is bisected");
MODULE_LICENSE("GPL");
