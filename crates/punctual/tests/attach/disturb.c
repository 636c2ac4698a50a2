/* Disturbs a CPU in one known way, by a thread of another CPU that has a name, until it is killed:
 * disturb MODE TARGET OTHER. It prints a line when it has begun. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

static int target, other, event, timer;
static volatile int moved;

static void name_and_pin(const char *name, int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	prctl(PR_SET_NAME, name);
	if (sched_setaffinity(0, sizeof(set), &set)) {
		perror("sched_setaffinity");
		exit(1);
	}
}

static void must(int is_so, const char *what)
{
	if (!is_so) {
		perror(what);
		exit(1);
	}
}

/* Nothing but interrupts and what they bring gets the CPU. */
static void real_time(int priority)
{
	struct sched_param param = { .sched_priority = priority };

	must(!sched_setscheduler(0, SCHED_FIFO, &param), "sched_setscheduler");
}

static void *rest(void *nothing)
{
	pause();
	return nothing;
}

static void *spin(void *nothing)
{
	real_time(1);
	name_and_pin("spinner-x", target);
	for (;;)
		;
	return nothing;
}

static void *wait_for_event(void *nothing)
{
	uint64_t count;

	name_and_pin("fifo-x", target);
	real_time(50);
	for (;;)
		must(read(event, &count, sizeof(count)) == sizeof(count), "read");
	return nothing;
}

static void *spin_moved(void *nothing)
{
	name_and_pin("moved-x", target);
	real_time(1);
	moved = syscall(SYS_gettid);
	for (;;)
		;
	return nothing;
}

static void *wait_for_timer(void *nothing)
{
	struct itimerspec every = { { 0, 2000000 }, { 0, 2000000 } };
	uint64_t count;

	name_and_pin("timer-x", target);
	must(!timerfd_settime(timer, 0, &every, 0), "timerfd_settime");
	for (;;)
		must(read(timer, &count, sizeof(count)) == sizeof(count), "read");
	return nothing;
}

static void *fault(void *nothing)
{
	char *page = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	name_and_pin("fault-x", target);
	must(page != MAP_FAILED, "mmap");
	for (;;) {
		*page = 1;
		must(!madvise(page, 4096, MADV_DONTNEED), "madvise");
		usleep(500);
	}
	return nothing;
}

static void once(const char *mode)
{
	uint64_t one = 1;
	char *page, buffer[16];
	cpu_set_t set;
	int file;

	if (!strcmp(mode, "wake")) {
		must(write(event, &one, sizeof(one)) == sizeof(one), "write");
	} else if (!strcmp(mode, "membarrier")) {
		must(!syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0), "membarrier");
	} else if (!strcmp(mode, "unmap")) {
		page = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		must(page != MAP_FAILED, "mmap");
		*page = 1;
		must(!munmap(page, 4096), "munmap");
	} else if (!strcmp(mode, "move")) {
		for (int to = 0; moved && to < 2; to++) {
			CPU_ZERO(&set);
			CPU_SET(to ? target : other, &set);
			must(!sched_setaffinity(moved, sizeof(set), &set), "sched_setaffinity");
		}
	} else if (!strcmp(mode, "work")) {
		file = open("/proc/sys/vm/stat_refresh", O_RDONLY);
		must(file >= 0 && read(file, buffer, sizeof(buffer)) >= 0, "stat_refresh");
		close(file);
	}
}

int main(int argc, char **argv)
{
	struct {
		const char *mode, *name;
		void *(*thread)(void *);
	} modes[] = {
		{ "wake", "waker-x", wait_for_event }, { "membarrier", "barrier-x", spin },
		{ "unmap", "unmapper-x", spin },       { "move", "mover-x", spin_moved },
		{ "timer", "idle-x", wait_for_timer }, { "fault", "idle-x", fault },
		{ "work", "refresher-x", rest },       { "tick", "idle-x", spin },
	};
	pthread_t thread;

	if (argc != 4)
		return 2;
	target = atoi(argv[2]);
	other = atoi(argv[3]);
	event = eventfd(0, 0);
	timer = timerfd_create(CLOCK_MONOTONIC, 0);
	for (unsigned i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		if (strcmp(argv[1], modes[i].mode))
			continue;
		must(!syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0),
		     "membarrier");
		name_and_pin(modes[i].name, other);
		real_time(2);
		must(!pthread_create(&thread, 0, modes[i].thread, 0), "pthread_create");
		puts("begun");
		fflush(stdout);
		for (;;) {
			once(argv[1]);
			usleep(2000);
		}
	}
	return 2;
}
