// SPDX-License-Identifier: GPL-2.0
/*
 * Delays of the kernel's own making, for `punctual-truth`: a line written to /dev/punctual-truth,
 * such as `irqs 300000`, has the CPU of the caller do nothing for so many ns in the context that
 * the word names:
 *
 *	irqs	interrupts disabled
 *	preempt	preemption disabled
 *	irq	in the handler of an interrupt
 *	softirq	in a tasklet
 *	timer	in a timer's function, which is the softirq TIMER
 *	rcu	in an RCU callback
 *	hrtimer	in a high-resolution timer's function, which is the timer interrupt
 *	kthread	in a kernel thread with SCHED_FIFO and its default priority, 50
 *	work	in a work item of the CPU's worker
 *	stop	in the CPU's stopper thread with interrupts disabled, as all CPUs are stopped
 *	spin	in the write itself
 *	switch	in the next context switch to a measuring thread, behind the recorders' tracepoint
 *	hold	asleep, with a mutex held; `contend` takes that mutex
 *
 * The write returns when that is over; a read then gives the first and the last instant of it, in
 * ns of CLOCK_MONOTONIC: of each stretch, where something came in between.
 */
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/fs.h>
#include <linux/hrtimer.h>
#include <linux/interrupt.h>
#include <linux/irq_work.h>
#include <linux/kernel.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/preempt.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/smp.h>
#include <linux/stop_machine.h>
#include <linux/timer.h>
#include <linux/tracepoint.h>
#include <linux/uaccess.h>
#include <linux/version.h>
#include <linux/workqueue.h>

#define NS_MAX 100000000ULL

/* What interrupts it leaves a gap of so many ns at least in the instants that it reads. */
#define GAP 4000
#define STRETCHES 16

static u64 length;
static u64 stretches[STRETCHES][2];
static unsigned int number;

static void one_stretch(u64 begin, u64 end)
{
	stretches[0][0] = begin;
	stretches[0][1] = end;
	number = 1;
}

static void spin(u64 ns)
{
	u64 begin = ktime_get_mono_fast_ns(), last = begin, now;

	one_stretch(begin, begin);
	do {
		cpu_relax();
		now = ktime_get_mono_fast_ns();
		if (now - last >= GAP && number < STRETCHES) {
			stretches[number - 1][1] = last;
			stretches[number++][0] = now;
		}
		last = now;
	} while (last < begin + ns);
	stretches[number - 1][1] = last;
}

static void spin_in_irq(struct irq_work *work)
{
	spin(length);
}

static void spin_in_softirq(struct tasklet_struct *tasklet)
{
	spin(length);
}

static struct irq_work irq_work = IRQ_WORK_INIT_HARD(spin_in_irq);
static DECLARE_TASKLET(tasklet, spin_in_softirq);

static DECLARE_COMPLETION(done);

static void spin_in_timer(struct timer_list *unused)
{
	spin(length);
	complete(&done);
}

static DEFINE_TIMER(timer, spin_in_timer);
static struct rcu_head head;

static void spin_in_callback(struct rcu_head *unused)
{
	spin(length);
	complete(&done);
}

static struct hrtimer hrtimer;

static enum hrtimer_restart spin_in_hrtimer(struct hrtimer *unused)
{
	spin(length);
	complete(&done);
	return HRTIMER_NORESTART;
}

static int spin_in_thread(void *unused)
{
	spin(length);
	complete(&done);
	return 0;
}

static long run_thread(void)
{
	struct task_struct *thread = kthread_create(spin_in_thread, NULL, "truth-kthread");

	if (IS_ERR(thread))
		return PTR_ERR(thread);
	kthread_bind(thread, raw_smp_processor_id());
	sched_set_fifo(thread);
	wake_up_process(thread);
	return 0;
}

static void run_hrtimer(void)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0)
	hrtimer_setup(&hrtimer, spin_in_hrtimer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
#else
	hrtimer_init(&hrtimer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
	hrtimer.function = spin_in_hrtimer;
#endif
	hrtimer_start(&hrtimer, ns_to_ktime(50000), HRTIMER_MODE_REL_PINNED_HARD);
}

static void spin_in_work(struct work_struct *unused)
{
	spin(length);
}

static DECLARE_WORK(work, spin_in_work);

static void run_work(void)
{
	schedule_work_on(raw_smp_processor_id(), &work);
	flush_work(&work);
}

static int spin_in_stopper(void *unused)
{
	spin(length);
	return 0;
}

static u64 in_switch;

static void spin_in_switch(void *unused, bool preempt, struct task_struct *prev,
			   struct task_struct *next, unsigned int state)
{
	u64 ns = READ_ONCE(in_switch);

	if (!ns || strcmp(next->comm, "measure"))
		return;
	WRITE_ONCE(in_switch, 0);
	spin(ns);
}

static void find_switch(struct tracepoint *one, void *found)
{
	if (!strcmp(one->name, "sched_switch"))
		*(struct tracepoint **)found = one;
}

/* The last of all probes is of priority 0. Nothing is to be woken from there. */
static long run_switch(u64 ns)
{
	static struct tracepoint *tracepoint;
	long failed;
	int i;

	if (!tracepoint) {
		for_each_kernel_tracepoint(find_switch, &tracepoint);
		if (!tracepoint)
			return -ENOENT;
		failed = tracepoint_probe_register_prio(tracepoint, spin_in_switch, NULL, 0);
		if (failed)
			return failed;
	}
	/* Of no length, where no switch comes. */
	one_stretch(ktime_get_mono_fast_ns(), ktime_get_mono_fast_ns());
	WRITE_ONCE(in_switch, ns);
	for (i = 0; i < 1000 && READ_ONCE(in_switch); i++)
		msleep(1);
	WRITE_ONCE(in_switch, 0);
	return 0;
}

static DEFINE_MUTEX(held);

static void hold(u64 ns)
{
	ktime_t time = ns_to_ktime(ns);
	u64 begin;

	mutex_lock(&held);
	begin = ktime_get_mono_fast_ns();
	set_current_state(TASK_UNINTERRUPTIBLE);
	schedule_hrtimeout(&time, HRTIMER_MODE_REL);
	one_stretch(begin, ktime_get_mono_fast_ns());
	mutex_unlock(&held);
}

static ssize_t write(struct file *file, const char __user *from, size_t count, loff_t *at)
{
	char line[64], word[16];
	unsigned long flags;
	u64 ns;

	if (count >= sizeof(line))
		return -EINVAL;
	if (copy_from_user(line, from, count))
		return -EFAULT;
	line[count] = 0;
	if (sscanf(line, "%15s %llu", word, &ns) != 2 || ns > NS_MAX)
		return -EINVAL;
	/* It comes while another holds it: what that one recorded stays. */
	if (!strcmp(word, "contend")) {
		mutex_lock(&held);
		mutex_unlock(&held);
		return count;
	}
	length = ns;
	if (!strcmp(word, "irqs")) {
		local_irq_save(flags);
		spin(ns);
		local_irq_restore(flags);
	} else if (!strcmp(word, "preempt")) {
		preempt_disable();
		spin(ns);
		preempt_enable();
	} else if (!strcmp(word, "irq")) {
		irq_work_queue(&irq_work);
		irq_work_sync(&irq_work);
	} else if (!strcmp(word, "softirq")) {
		/* It runs where softirqs are enabled again, before this returns. */
		local_bh_disable();
		tasklet_schedule(&tasklet);
		local_bh_enable();
	} else if (!strcmp(word, "work")) {
		run_work();
	} else if (!strcmp(word, "stop")) {
		stop_machine(spin_in_stopper, NULL, NULL);
	} else if (!strcmp(word, "spin")) {
		spin(ns);
	} else if (!strcmp(word, "hold")) {
		hold(ns);
	} else if (!strcmp(word, "switch")) {
		long failed = run_switch(ns);

		if (failed)
			return failed;
	} else {
		long failed = 0;

		reinit_completion(&done);
		if (!strcmp(word, "timer"))
			mod_timer(&timer, jiffies + 1);
		else if (!strcmp(word, "rcu"))
			call_rcu(&head, spin_in_callback);
		else if (!strcmp(word, "hrtimer"))
			run_hrtimer();
		else if (!strcmp(word, "kthread"))
			failed = run_thread();
		else
			return -EINVAL;
		if (failed)
			return failed;
		wait_for_completion(&done);
	}
	return count;
}

static ssize_t read(struct file *file, char __user *to, size_t room, loff_t *at)
{
	char line[STRETCHES * 42];
	size_t size = 0;
	unsigned int i;

	for (i = 0; i < number; i++)
		size += scnprintf(line + size, sizeof(line) - size, "%llu %llu%c", stretches[i][0],
				  stretches[i][1], i + 1 < number ? ' ' : '\n');
	if (room < size)
		return -EINVAL;
	return copy_to_user(to, line, size) ? -EFAULT : size;
}

static const struct file_operations operations = {
	.owner = THIS_MODULE,
	.read = read,
	.write = write,
};

static struct miscdevice device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "punctual-truth",
	.fops = &operations,
};

/*
 * No tasklet, no work and no timer is left when a write has returned. An RCU callback may still be
 * returning then, and the tracepoint has its probe: the module is not to be removed.
 */
module_misc_device(device);
MODULE_DESCRIPTION("Delays at known instants, for punctual-truth");
MODULE_LICENSE("GPL");
