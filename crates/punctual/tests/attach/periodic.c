/* A program with cycles of a known kind, for the tests of `punctual attach`: periodic MODE
 * CYCLES CPU. MODE may begin with `rt:` (memory locked, SCHED_FIFO), `fifo:` or `locked:` (one
 * of the two). */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define PERIOD 2000000L /* ns */

static long now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000L + t.tv_nsec;
}

static void spin(long ns)
{
	long until = now() + ns;

	while (now() < until)
		;
}

/* What the hypervisor took of a CPU, in units of 10 ms (proc_stat(5)). */
static long stolen(int cpu)
{
	char line[256], name[16];
	FILE *stat = fopen("/proc/stat", "r");
	long ticks = 0;

	snprintf(name, sizeof name, "cpu%d ", cpu);
	while (stat && fgets(line, sizeof line, stat))
		if (!strncmp(line, name, strlen(name)))
			sscanf(line, "%*s %*s %*s %*s %*s %*s %*s %*s %ld", &ticks);
	if (stat)
		fclose(stat);
	return ticks;
}

static clockid_t sleep_clock = CLOCK_MONOTONIC;

static void sleep_until(long at)
{
	struct timespec t = { at / 1000000000L, at % 1000000000L };

	clock_nanosleep(sleep_clock, TIMER_ABSTIME, &t, 0);
}

/* The same as 32-bit programs do (clock_nanosleep_time64). */
static void sleep_until_as_32_bit(long at)
{
#ifdef __x86_64__
	static struct timespec *low;
	long result;

	if (!low)
		low = mmap(0, 4096, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	low->tv_sec = at / 1000000000L;
	low->tv_nsec = at % 1000000000L;
	asm volatile("int $0x80"
		     : "=a"(result)
		     : "a"(407L), "b"((long)CLOCK_MONOTONIC), "c"((long)TIMER_ABSTIME), "d"(low),
		       "S"(0L)
		     : "memory", "r8", "r9", "r10", "r11");
	if (result)
		exit(9);
#else
	(void)at;
	exit(9);
#endif
}

static void be(int priority, int cpu)
{
	struct sched_param param = { .sched_priority = priority };
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (cpu >= 0 && sched_setaffinity(0, sizeof set, &set))
		perror("sched_setaffinity");
	if (priority && sched_setscheduler(0, SCHED_FIFO, &param))
		perror("sched_setscheduler");
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile int over;
static int pipes[2];

/* The call that waits for the lock; 0: a mutex is the lock. */
static long lock_call;
/* As long as a mutex, of which the words behind the first are its count and its owner. */
static struct {
	uint32_t word, count, owner;
} own_lock;

#define FUTEX_WAITV 449
#define FUTEX2_WAIT 455
#define FUTEX2_PRIVATE_U32 (2 | 128)
#define FUTEX_WAKE_PRIVATE (1 | 128)

static void take(void)
{
	struct {
		uint64_t value, address;
		uint32_t flags, reserved;
	} one = { 2, (uintptr_t)&own_lock.word, FUTEX2_PRIVATE_U32, 0 };
	long result;

	if (!lock_call) {
		pthread_mutex_lock(&lock);
		return;
	}
	if (__sync_bool_compare_and_swap(&own_lock.word, 0, 1))
		return;
	while (__atomic_exchange_n(&own_lock.word, 2, __ATOMIC_SEQ_CST)) {
		if (lock_call == FUTEX_WAITV)
			result = syscall(FUTEX_WAITV, &one, 1, 0, 0, 0);
		else
			result = syscall(FUTEX2_WAIT, &own_lock.word, 2L, 0xffffffffL,
					 (long)FUTEX2_PRIVATE_U32, 0L, 0L);
		if (result < 0 && errno == ENOSYS)
			exit(8);
	}
}

static void give(void)
{
	if (!lock_call)
		pthread_mutex_unlock(&lock);
	else if (__atomic_exchange_n(&own_lock.word, 0, __ATOMIC_SEQ_CST) == 2)
		syscall(SYS_futex, &own_lock.word, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0);
}

/* Holds the lock for half a period, again and again. */
static void *holder(void *unused)
{
	prctl(PR_SET_NAME, "holder");
	if (sched_getscheduler(0) == SCHED_FIFO)
		be(50, -1);
	while (!over) {
		take();
		usleep(PERIOD / 2000);
		give();
		usleep(100);
	}
	return unused;
}

/* Goes before the cycles for three of them, again and again. */
static void *hog(void *cpu)
{
	prctl(PR_SET_NAME, "hog");
	be(60, (int)(intptr_t)cpu);
	while (!over) {
		spin(PERIOD * 3 / 2);
		usleep(PERIOD * 5 / 1000);
	}
	return cpu;
}

static void *writer(void *unused)
{
	prctl(PR_SET_NAME, "writer");
	while (!over) {
		usleep(1000 + rand() % 3000);
		if (write(pipes[1], "x", 1) < 0)
			break;
	}
	return unused;
}

#define AREA (4 << 20)

struct sched_attributes {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime, deadline, period;
};

/* A quarter of each period, which is long: the kernel looks at the runtime in its tick. 8 is the
 * code for where that is refused. */
static void be_deadline(void)
{
	struct sched_attributes a = { sizeof a, 6, 0, 0, 0, 5 * PERIOD, 20 * PERIOD, 20 * PERIOD };

	if (syscall(SYS_sched_setattr, 0, &a, 0))
		exit(8);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "absolute";
	long cycles = argc > 2 ? atol(argv[2]) : 500;
	int cpu = argc > 3 ? atoi(argv[3]) : -1, fd = -1;
	const char *colon = strchr(mode, ':');
	pthread_t other = 0;
	long next = now() + PERIOD, before = 0;
	char *area = 0;

	if (colon && strncmp(mode, "fifo:", 5) && mlockall(MCL_CURRENT | MCL_FUTURE))
		return 2;
	if (colon && strncmp(mode, "locked:", 7))
		be(98, cpu);
	mode = colon ? colon + 1 : mode;
	if (!strncmp(mode, "timerfd", 7)) {
		struct itimerspec t = { { 0, PERIOD }, { 0, PERIOD } };

		fd = timerfd_create(CLOCK_MONOTONIC, 0);
		timerfd_settime(fd, 0, &t, 0);
	} else if (!strcmp(mode, "posix-timer")) {
		struct itimerspec t = { { 0, PERIOD }, { 0, PERIOD } };
		struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN };
		timer_t timer;
		sigset_t set;

		sigemptyset(&set);
		sigaddset(&set, SIGRTMIN);
		sigprocmask(SIG_BLOCK, &set, 0);
		timer_create(CLOCK_MONOTONIC, &event, &timer);
		timer_settime(timer, 0, &t, 0);
	} else if (!strncmp(mode, "lock", 4)) {
		pthread_mutexattr_t a;

		pthread_mutexattr_init(&a);
		if (!strcmp(mode, "lock-pi"))
			pthread_mutexattr_setprotocol(&a, PTHREAD_PRIO_INHERIT);
		pthread_mutex_init(&lock, &a);
		lock_call = !strcmp(mode, "lock-futex2") ? FUTEX2_WAIT :
			    !strcmp(mode, "lock-waitv")	 ? FUTEX_WAITV :
							   0;
		pthread_create(&other, 0, holder, 0);
	} else if (!strcmp(mode, "hog")) {
		be(50, cpu);
		pthread_create(&other, 0, hog, (void *)(intptr_t)cpu);
	} else if (!strcmp(mode, "deadline")) {
		be_deadline();
	} else if (!strncmp(mode, "event", 5)) {
		if (pipe(pipes))
			return 1;
		pthread_create(&other, 0, writer, 0);
	} else if (!strcmp(mode, "realtime")) {
		struct timespec t;

		clock_gettime(CLOCK_REALTIME, &t);
		sleep_clock = CLOCK_REALTIME;
		next = t.tv_sec * 1000000000L + t.tv_nsec + PERIOD;
	} else if (!strcmp(mode, "fault") || !strcmp(mode, "touch")) {
		area = mmap(0, AREA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		madvise(area, AREA, MADV_NOHUGEPAGE);
	} else if (!strcmp(mode, "fsync")) {
		fd = open("data", O_CREAT | O_WRONLY | O_TRUNC, 0600);
	} else if (!strcmp(mode, "greedy")) {
		before = stolen(cpu);
		next = now();
	} else if (!strcmp(mode, "spinner")) {
		spin(cycles * PERIOD);
		return 3;
	}
	for (long k = 0; k < cycles; k++) {
		uint64_t expired;
		char byte;

		if (!strncmp(mode, "timerfd", 7)) {
			if (read(fd, &expired, sizeof expired) < 0)
				return 1;
		} else if (!strcmp(mode, "posix-timer")) {
			sigset_t set;
			int signal;

			sigemptyset(&set);
			sigaddset(&set, SIGRTMIN);
			sigwait(&set, &signal);
		} else if (!strncmp(mode, "event", 5)) {
			if (read(pipes[0], &byte, 1) < 0)
				return 1;
		} else if (!strcmp(mode, "deadline")) {
			sched_yield();
		} else if (!strcmp(mode, "relative") || !strcmp(mode, "exec")) {
			usleep(PERIOD / 1000);
		} else if (!strcmp(mode, "compat")) {
			sleep_until_as_32_bit(next);
			next += PERIOD;
		} else {
			sleep_until(next);
			next += PERIOD;
		}
		spin(!strcmp(mode, "greedy") ? PERIOD * 9 / 10 :
		     !strcmp(mode, "hog")    ? PERIOD / 2 :
					       100000);
		if (!strcmp(mode, "deadline") && k % 10 == 9) {
			spin(PERIOD * 12);
		} else if (!strcmp(mode, "timerfd-late") && k % 10 == 9) {
			spin(PERIOD * 3 / 2);
		} else if (!strncmp(mode, "lock", 4)) {
			struct timespec far = { now() / 1000000000L + 2000000000L, 0 };

			if (strcmp(mode, "lock-timed"))
				take();
			else
				pthread_mutex_timedlock(&lock, &far);
			give();
		} else if (!strcmp(mode, "fault")) {
			madvise(area, AREA, MADV_DONTNEED);
			for (long at = 0; at < AREA; at += 4096)
				area[at] = 1;
		} else if (!strcmp(mode, "touch")) {
			area[k % (AREA / 4096) * 4096] = 1;
		} else if (!strcmp(mode, "mmap")) {
			char *short_lived = mmap(0, 65536, PROT_READ | PROT_WRITE,
						 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

			munmap(short_lived, 65536);
		} else if (strstr(mode, "print")) {
			if (write(1, "cycle\n", 6) < 0)
				return 1;
		} else if (!strcmp(mode, "fsync")) {
			if (pwrite(fd, &k, sizeof k, 0) < 0 || fsync(fd))
				return 1;
		}
	}
	over = 1;
	if (!strcmp(mode, "greedy")) {
		FILE *file;

		/* The file is no part of the last cycle. */
		sleep_until(next);
		file = fopen("stolen", "w");
		if (!file || fprintf(file, "%ld", stolen(cpu) - before) < 0 || fclose(file))
			return 1;
	}
	if (!strcmp(mode, "exec"))
		execl(argv[0], argv[0], "absolute", "300", (char *)0);
	return 7;
}
