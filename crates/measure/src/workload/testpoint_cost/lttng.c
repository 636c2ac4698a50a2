/* Passes LTTng-UST tracepoints, each stamped by the processor's counter, a batch for each byte of
 * its input: the stamps go to its output. */
#define _GNU_SOURCE
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "lttng.h"
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#define BATCH 1024

static inline uint64_t ticks(void)
{
#if defined(__x86_64__)
	return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
	uint64_t now;

	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(now));
	return now;
#endif
}

int main(int argc, char **argv)
{
	static uint64_t stamps[BATCH + 1];
	struct sched_param lowest = { .sched_priority = 1 };
	cpu_set_t cpu;
	char byte;

	CPU_ZERO(&cpu);
	CPU_SET(argc > 1 ? atoi(argv[1]) : 0, &cpu);
	sched_setaffinity(0, sizeof(cpu), &cpu);
	sched_setscheduler(0, SCHED_FIFO, &lowest); /* without the right to it, it goes on without */
	while (read(0, &byte, 1) == 1) {
		for (int i = 0; i <= BATCH; i++) {
			stamps[i] = ticks();
			lttng_ust_tracepoint(punctual, point, i);
		}
		for (size_t done = 0; done < sizeof(stamps);) {
			ssize_t n = write(1, (char *)stamps + done, sizeof(stamps) - done);

			if (n <= 0)
				return 1;
			done += n;
		}
	}
	return 0;
}
