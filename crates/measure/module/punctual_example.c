// SPDX-License-Identifier: GPL-2.0
/*
 * A driver with test points (punctual_point.h), of QEMU's device `edu` (hw/misc/edu.c): a write to
 * /dev/punctual-example reads a register, lets the device raise its interrupt, and waits for it.
 */
#include <linux/completion.h>
#include <linux/fs.h>
#include <linux/interrupt.h>
#include <linux/io.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/pci.h>

#include "punctual_point.h"

/* Registers. */
#define IDENTIFICATION 0x00
#define INTERRUPT_STATUS 0x24
#define RAISE 0x60
#define ACKNOWLEDGE 0x64

static struct pci_dev *edu;
static void __iomem *registers;
static DECLARE_COMPLETION(raised);
static DEFINE_MUTEX(one_at_a_time);

static irqreturn_t on_interrupt(int irq, void *cookie)
{
	u32 status = readl(registers + INTERRUPT_STATUS);

	/* The line is shared. */
	if (!status)
		return IRQ_NONE;
	PUNCTUAL_BEGIN1("example.interrupt", status);
	writel(status, registers + ACKNOWLEDGE);
	complete(&raised);
	PUNCTUAL_END("example.interrupt");
	return IRQ_HANDLED;
}

static ssize_t example_write(struct file *file, const char __user *from, size_t length,
			     loff_t *offset)
{
	unsigned long left;

	PUNCTUAL_BEGIN1("example.write", length);
	mutex_lock(&one_at_a_time);
	reinit_completion(&raised);
	PUNCTUAL_POINT1("example.register", readl(registers + IDENTIFICATION));
	writel(1, registers + RAISE);
	left = wait_for_completion_timeout(&raised, HZ);
	PUNCTUAL_POINT("example.woken");
	mutex_unlock(&one_at_a_time);
	PUNCTUAL_END("example.write");
	return left ? length : -EIO;
}

static const struct file_operations operations = {
	.owner = THIS_MODULE,
	.write = example_write,
	.llseek = noop_llseek,
};

static struct miscdevice device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "punctual-example",
	.fops = &operations,
	.mode = 0600,
};

static int __init example_init(void)
{
	int failed;

	edu = pci_get_device(0x1234, 0x11e8, NULL);
	if (!edu)
		return -ENODEV;
	failed = pci_enable_device(edu);
	if (failed)
		goto no_device;
	registers = pci_iomap(edu, 0, 0);
	if (!registers) {
		failed = -ENOMEM;
		goto no_registers;
	}
	failed = request_irq(edu->irq, on_interrupt, IRQF_SHARED, "punctual-example", edu);
	if (failed)
		goto no_interrupt;
	failed = misc_register(&device);
	if (!failed)
		return 0;
	free_irq(edu->irq, edu);
no_interrupt:
	pci_iounmap(edu, registers);
no_registers:
	pci_disable_device(edu);
no_device:
	pci_dev_put(edu);
	return failed;
}

static void __exit example_exit(void)
{
	misc_deregister(&device);
	free_irq(edu->irq, edu);
	pci_iounmap(edu, registers);
	pci_disable_device(edu);
	pci_dev_put(edu);
}

module_init(example_init);
module_exit(example_exit);
MODULE_DESCRIPTION("A driver with test points");
MODULE_AUTHOR("The authors of punctual");
MODULE_LICENSE("GPL");
