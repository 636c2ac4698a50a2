/* A thread that keeps another one of its CPU from running, which counts its own delays. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <time.h>

static volatile int over;
static long times, total;

static long now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000L + t.tv_nsec;
}

static void *delayed(void *unused)
{
	struct timespec pause = { 0, 500000 };
	struct sched_param none = { 0 };

	prctl(PR_SET_NAME, "delayed");
	pthread_setschedparam(pthread_self(), SCHED_OTHER, &none);
	while (!over) {
		long begin = now(), late;

		nanosleep(&pause, 0);
		late = now() - begin - 500000;
		if (late > 1000000) {
			times++;
			total += late;
		}
	}
	return unused;
}

int main(void)
{
	struct sched_param high = { 10 };
	pthread_t other;
	cpu_set_t here;
	FILE *file;
	long next;

	CPU_ZERO(&here);
	CPU_SET(sched_getcpu(), &here);
	if (sched_setaffinity(0, sizeof here, &here) ||
	    pthread_create(&other, 0, delayed, 0) || sched_setscheduler(0, SCHED_FIFO, &high))
		return 2;
	next = now();
	for (int i = 0; i < 200; i++) {
		struct timespec until;
		long begin;

		next += 10000000;
		until = (struct timespec){ next / 1000000000L, next % 1000000000L };
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, 0);
		for (begin = now(); now() - begin < 4000000;)
			;
	}
	over = 1;
	pthread_join(other, 0);
	file = fopen("own", "w");
	if (!file || fprintf(file, "%ld %ld", times, total) < 0 || fclose(file))
		return 2;
	return 7;
}
