/* Disturbs a CPU in one known way, by a thread of another CPU that has a name, until it is killed:
 * disturb MODE TARGET OTHER. It prints a line when it has begun. `disturb all TARGET OTHER PLUGGED`
 * disturbs in every way at once, some of which change the whole system: for guests. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
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
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

static int target, other, plugged, event, timer;
static volatile int moved;
static int all; /* ways at once */

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

/* It shares the CPU only where others shall have their turn. */
static void occupy(void)
{
	struct sched_param none = { 0 };

	if (all)
		must(!sched_setscheduler(0, SCHED_IDLE, &none), "sched_setscheduler");
	else
		real_time(1);
}

static void *spin(void *nothing)
{
	occupy();
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
	occupy();
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

/* A packet that is received is a softirq of the CPU that sent it. */
static void *send_packets(void *nothing)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(9) };
	int packets = socket(AF_INET, SOCK_DGRAM, 0);

	name_and_pin("sender-x", target);
	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	for (;;) {
		/* Nobody receives them: every other one reports that. */
		sendto(packets, "x", 1, 0, (void *)&to, sizeof(to));
		usleep(5000);
	}
	return nothing;
}

static void write_to(const char *path, const char *text)
{
	int file = open(path, O_WRONLY);

	must(file >= 0 && write(file, text, strlen(text)) == (ssize_t)strlen(text), path);
	close(file);
}

/* A kernel thread that is not bound to a CPU gets this one. */
static void *pin_kernel_thread(void *nothing)
{
	DIR *processes = opendir("/proc");
	struct dirent *one;

	while (processes && (one = readdir(processes))) {
		char path[300], name[16] = "";
		cpu_set_t set;
		FILE *file;

		snprintf(path, sizeof(path), "/proc/%s/comm", one->d_name);
		file = fopen(path, "r");
		if (!file)
			continue;
		if (fscanf(file, "%15s", name) == 1 && !strcmp(name, "khugepaged")) {
			CPU_ZERO(&set);
			CPU_SET(target, &set);
			must(!sched_setaffinity(atoi(one->d_name), sizeof(set), &set), name);
		}
		fclose(file);
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
	} else if (!strcmp(mode, "kick")) {
		write_to("/sys/kernel/mm/transparent_hugepage/khugepaged/scan_sleep_millisecs",
			 "10000");
	} else if (!strcmp(mode, "plug")) {
		char path[64];

		snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/online", plugged);
		write_to(path, "0");
		puts("unplugged");
		fflush(stdout);
		usleep(300000);
		write_to(path, "1");
		usleep(300000);
	}
}

struct mode {
	const char *mode, *name;
	void *(*thread)(void *);
};

static const struct mode modes[] = {
	{ "wake", "waker-x", wait_for_event }, { "membarrier", "barrier-x", spin },
	{ "unmap", "unmapper-x", spin },       { "move", "mover-x", spin_moved },
	{ "timer", "idle-x", wait_for_timer }, { "fault", "idle-x", fault },
	{ "work", "refresher-x", rest },       { "tick", "idle-x", spin },
	{ "packet", "idle-x", send_packets },  { "kick", "kicker-x", pin_kernel_thread },
	{ "plug", "plugger-x", rest },
};

static void *act(void *of)
{
	const struct mode *mode = of;

	name_and_pin(mode->name, other);
	real_time(2);
	for (;;) {
		once(mode->mode);
		usleep(all ? 20000 : 2000);
	}
	return 0;
}

int main(int argc, char **argv)
{
	const struct mode *chosen = 0;
	pthread_t thread;

	if (argc < 4)
		return 2;
	all = !strcmp(argv[1], "all");
	target = atoi(argv[2]);
	other = atoi(argv[3]);
	plugged = argc > 4 ? atoi(argv[4]) : -1;
	event = eventfd(0, 0);
	timer = timerfd_create(CLOCK_MONOTONIC, 0);
	must(!syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0), "membarrier");
	for (unsigned i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		const struct mode *mode = &modes[i];

		if (!all && strcmp(argv[1], mode->mode))
			continue;
		chosen = mode;
		if (!all) {
			name_and_pin(mode->name, other);
			real_time(2);
		}
		must(!pthread_create(&thread, 0, mode->thread, 0), "pthread_create");
		if (all)
			must(!pthread_create(&thread, 0, act, (void *)mode), "pthread_create");
	}
	if (!chosen)
		return 2;
	puts("begun");
	fflush(stdout);
	if (all)
		pause();
	act((void *)chosen);
}
