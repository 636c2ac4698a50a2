/* A program with cycles of a known kind, for the tests of `punctual attach`: periodic MODE
 * CYCLES. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
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

static void sleep_until(long at)
{
	struct timespec t = { at / 1000000000L, at % 1000000000L };

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, 0);
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile int over;
static int pipes[2];

/* Holds the lock for half a period, again and again. */
static void *holder(void *unused)
{
	prctl(PR_SET_NAME, "holder");
	while (!over) {
		pthread_mutex_lock(&lock);
		usleep(PERIOD / 2000);
		pthread_mutex_unlock(&lock);
		usleep(100);
	}
	return unused;
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

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "absolute";
	long cycles = argc > 2 ? atol(argv[2]) : 500, next = now() + PERIOD;
	struct itimerspec periods = { { 0, PERIOD }, { 0, PERIOD } };
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN };
	pthread_t other = 0;
	timer_t timer;
	sigset_t set;
	int fd = -1;

	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN);
	if (!strncmp(mode, "timerfd", 7)) {
		fd = timerfd_create(CLOCK_MONOTONIC, 0);
		timerfd_settime(fd, 0, &periods, 0);
	} else if (!strcmp(mode, "posix-timer")) {
		sigprocmask(SIG_BLOCK, &set, 0);
		timer_create(CLOCK_MONOTONIC, &event, &timer);
		timer_settime(timer, 0, &periods, 0);
	} else if (!strcmp(mode, "lock")) {
		pthread_create(&other, 0, holder, 0);
	} else if (!strcmp(mode, "event")) {
		if (pipe(pipes))
			return 1;
		pthread_create(&other, 0, writer, 0);
	}
	for (long k = 0; k < cycles; k++) {
		uint64_t expired;
		int signal;
		char byte;

		if (!strncmp(mode, "timerfd", 7)) {
			if (read(fd, &expired, sizeof expired) < 0)
				return 1;
		} else if (!strcmp(mode, "posix-timer")) {
			sigwait(&set, &signal);
		} else if (!strcmp(mode, "event")) {
			if (read(pipes[0], &byte, 1) < 0)
				return 1;
		} else if (!strcmp(mode, "exec")) {
			usleep(PERIOD / 1000);
		} else {
			sleep_until(next);
			next += PERIOD;
		}
		spin(100000);
		if (!strcmp(mode, "timerfd-late") && k % 10 == 9)
			spin(PERIOD * 3 / 2);
		if (!strcmp(mode, "lock")) {
			pthread_mutex_lock(&lock);
			pthread_mutex_unlock(&lock);
		}
	}
	over = 1;
	if (!strcmp(mode, "exec"))
		execl(argv[0], argv[0], "absolute", "300", (char *)0);
	return 7;
}
