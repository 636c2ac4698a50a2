/* Delays cycles of a program that it is preloaded into (ld.so(8), LD_PRELOAD), each in a way of its
 * own, and records when: for the test of what `punctual attach` says of them.
 *
 * The first thread that has returned COUNTED times from clock_nanosleep or epoll_wait is delayed
 * from then on, in every STRIDE-th cycle. INJECT_LOG is a file for the record, INJECT_CPU where
 * everything runs, INJECT_PRIORITY the SCHED_FIFO priority of the program (0: it has its own or
 * none), INJECT_QUOTA: it is in a group with a quota, and only that delays it. INJECT_DATA: what
 * fsync(2) is called for, else a file. INJECT_FEWER: so many times fewer timers, pages and bytes,
 * for where instructions take longer. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum { HOG, LOCK, FAULT, FSYNC, PEER, STORM, OWN, CAUSES, QUOTA = CAUSES };
#define COUNTED 60
#define STRIDE 6
#define LENGTH 1200000L
#define GAP 3000000L
#define TIMERS 6000
/* The interrupt begins so long before the release. */
#define EARLY 100000L
#define MOST 4096

struct record {
	int64_t begin, end;
	int32_t cause, tid;
};

static struct shared {
	uint64_t count;
	struct record records[MOST];
	sem_t hog, storm;
	volatile int64_t expiry;
} *shared;

static int (*real_nanosleep)(clockid_t, int, const struct timespec *, struct timespec *);
static int (*real_epoll)(int, struct epoll_event *, int, int);
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static sem_t holder;
static volatile int64_t held_until;
static int data = -1, peer = -1, cpu;
static char *area, block[65536];
static long area_size = 6 << 20, block_size = sizeof block, timers = TIMERS;
static int with_quota;
static volatile int chosen;

static int64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void spin_until(int64_t at)
{
	while (now() < at)
		;
}

static void sleep_until(int64_t at)
{
	struct timespec t = { at / 1000000000, at % 1000000000 };

	real_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, 0);
}

static void be(const char *name, int priority)
{
	struct sched_param param = { .sched_priority = priority };
	cpu_set_t set;

	if (name)
		prctl(PR_SET_NAME, name);
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof set, &set);
	if (priority)
		sched_setscheduler(0, SCHED_FIFO, &param);
}

/* --- Those who delay --- */

/* A thread of the same program and a lower priority, which holds the lock beyond a release. */
static void *hold(void *unused)
{
	be("holder", 10);
	for (;;) {
		sem_wait(&holder);
		pthread_mutex_lock(&mutex);
		sleep_until(held_until);
		pthread_mutex_unlock(&mutex);
	}
	return unused;
}

/* Another process. */
static void begin(const char *name, int priority)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* What the program writes to does not stay open for this one. */
	close(0);
	close(1);
	be(name, priority);
}

static void hog(void)
{
	begin("hog", 90);
	for (;;) {
		sem_wait(&shared->hog);
		spin_until(now() + LENGTH);
	}
}

static void answer(int listening)
{
	int one = 1, from = accept(listening, 0, 0);
	char byte;

	begin("peer", 95);
	setsockopt(from, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	while (read(from, &byte, 1) == 1) {
		sleep_until(now() + LENGTH);
		if (write(from, &byte, 1) != 1)
			break;
	}
	_exit(0);
}

/* Timers that expire at once: one interrupt runs all of them. */
static void storm(void)
{
	struct rlimit limit = { TIMERS + 100, TIMERS + 100 };
	static int fds[TIMERS];

	begin("storm", 5);
	setrlimit(RLIMIT_NOFILE, &limit);
	for (int i = 0; i < timers; i++)
		fds[i] = timerfd_create(CLOCK_MONOTONIC, 0);
	for (;;) {
		struct itimerspec t = {};

		sem_wait(&shared->storm);
		t.it_value.tv_sec = shared->expiry / 1000000000;
		t.it_value.tv_nsec = shared->expiry % 1000000000;
		for (int i = 0; i < timers; i++)
			timerfd_settime(fds[i], TFD_TIMER_ABSTIME, &t, 0);
	}
}

static int connected(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	int listening = socket(AF_INET, SOCK_STREAM, 0), one = 1, to;
	socklen_t length = sizeof at;

	if (bind(listening, (void *)&at, sizeof at) || listen(listening, 1) ||
	    getsockname(listening, (void *)&at, &length))
		abort();
	if (!fork())
		answer(listening);
	to = socket(AF_INET, SOCK_STREAM, 0);
	if (connect(to, (void *)&at, sizeof at))
		abort();
	setsockopt(to, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	close(listening);
	return to;
}

__attribute__((constructor)) static void prepare(void)
{
	const char *log = getenv("INJECT_LOG"), *priority = getenv("INJECT_PRIORITY");
	const char *disk = getenv("INJECT_DATA"), *fewer = getenv("INJECT_FEWER");
	pthread_t thread;
	int fd;

	real_nanosleep = dlsym(RTLD_NEXT, "clock_nanosleep");
	real_epoll = dlsym(RTLD_NEXT, "epoll_wait");
	unsetenv("LD_PRELOAD");
	if (!log)
		return;
	cpu = atoi(getenv("INJECT_CPU"));
	with_quota = getenv("INJECT_QUOTA") != 0;
	fd = open(log, O_RDWR | O_CREAT, 0600);
	if (fd < 0 || ftruncate(fd, sizeof *shared))
		abort();
	shared = mmap(0, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (shared == MAP_FAILED)
		abort();
	sem_init(&shared->hog, 1, 0);
	sem_init(&shared->storm, 1, 0);
	sem_init(&holder, 0, 0);
	be(0, priority ? atoi(priority) : 0);
	if (with_quota)
		return;
	if (fewer)
		area_size /= atol(fewer), block_size /= atol(fewer), timers /= atol(fewer);
	area_size = (area_size + 4095) & -4096;
	block_size = (block_size + 4095) & -4096;
	data = open(disk ? disk : "inject.data", O_RDWR | O_CREAT | O_TRUNC, 0600);
	area = mmap(0, area_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	madvise(area, area_size, MADV_NOHUGEPAGE);
	if (!fork())
		hog();
	if (!fork())
		storm();
	peer = connected();
	pthread_create(&thread, 0, hold, 0);
}

/* --- The cycles --- */

static __thread uint64_t returns;
static __thread int64_t returned, distance, entered;

static int is_chosen(void)
{
	int tid = syscall(SYS_gettid), nobody = 0;

	if (!shared || returns < COUNTED)
		return 0;
	__atomic_compare_exchange_n(&chosen, &nobody, tid, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	return chosen == tid;
}

static void keep(int cause, int64_t begin, int64_t end)
{
	struct record *r;

	if (shared->count >= MOST)
		return;
	r = &shared->records[shared->count];
	*r = (struct record){ begin, end, cause, chosen };
	__atomic_fetch_add(&shared->count, 1, __ATOMIC_SEQ_CST);
}

static int cause_of(uint64_t number)
{
	return number % STRIDE ? -1 : (int)(number / STRIDE % CAUSES);
}

/* Until when it is known what a program with a quota did. */
static __thread int64_t used;

/* A wait begins: what takes its time to be prepared begins earlier than the cycle. */
static void before(void)
{
	int64_t at = now();

	if (is_chosen() && with_quota && at - used > GAP)
		keep(QUOTA, used, at);
	entered = at;
	if (!is_chosen() || with_quota)
		return;
	if (cause_of(returns + 3) == STORM) {
		shared->expiry = returned + 3 * distance - EARLY;
		sem_post(&shared->storm);
	} else if (cause_of(returns + 1) == LOCK) {
		held_until = returned + distance + LENGTH;
		sem_post(&holder);
	} else if (cause_of(returns + 2) == FAULT) {
		madvise(area, area_size, MADV_DONTNEED);
	} else if (cause_of(returns + 2) == FSYNC) {
		ftruncate(data, 0);
		pwrite(data, block, block_size, 0);
	}
}

/* Uses its runtime up, and sees when it was not running. */
static void use_quota(void)
{
	int64_t until = used + 2000000;

	while (used < until) {
		int64_t at = now(), last = used;

		used = at;
		if (at - last > GAP) {
			keep(QUOTA, last, at);
			return;
		}
	}
}

static void after(void)
{
	int64_t begin = now(), took = begin - returned;
	uint64_t number = ++returns;
	char byte = 1;
	int cause;

	returned = begin;
	if (number < 10)
		distance = took;
	if (!is_chosen()) {
		distance += (took - distance) / 16;
		return;
	}
	if (with_quota) {
		/* Of its sleep, which is no longer than a period. */
		if (begin - entered > distance + GAP)
			keep(QUOTA, entered + distance, begin);
		used = begin;
		use_quota();
		return;
	}
	cause = cause_of(number);
	if (number % STRIDE > 2)
		distance += (took - distance) / 16;
	switch (cause) {
	case HOG:
		sem_post(&shared->hog);
		break;
	case LOCK:
		pthread_mutex_lock(&mutex);
		pthread_mutex_unlock(&mutex);
		break;
	case FAULT:
		for (long at = 0; at < area_size; at += 4096)
			area[at] = 1;
		break;
	case FSYNC:
		fsync(data);
		break;
	case PEER:
		if (write(peer, &byte, 1) != 1 || read(peer, &byte, 1) != 1)
			abort();
		break;
	case STORM:
		begin = shared->expiry + EARLY;
		break;
	case OWN:
		spin_until(begin + LENGTH);
		break;
	default:
		return;
	}
	keep(cause, begin, now());
}

int clock_nanosleep(clockid_t clock, int flags, const struct timespec *time, struct timespec *left)
{
	int result;

	before();
	result = real_nanosleep(clock, flags, time, left);
	after();
	return result;
}

int epoll_wait(int epoll, struct epoll_event *events, int most, int timeout)
{
	int result;

	before();
	result = real_epoll(epoll, events, most, timeout);
	after();
	return result;
}
