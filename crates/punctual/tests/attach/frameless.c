/* As -O2 without frame pointers makes it: where it computes, its frame pointer holds something
 * else, here an address that nothing is mapped at. It prints how many page faults it had in its
 * cycles. */
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>

static long now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000l + t.tv_nsec;
}

static void compute(long ns)
{
	for (long until = now() + ns; now() < until;)
		asm volatile("push %%rbp\n movabs $0x123456780000, %%rbp\n mov $20000, %%ecx\n"
			     "1: dec %%ecx\n jnz 1b\n pop %%rbp" ::: "rcx", "cc", "memory");
}

int main(void)
{
	struct rusage before, after;
	long due;

	mlockall(MCL_CURRENT | MCL_FUTURE);
	compute(1000000);
	due = now();
	getrusage(RUSAGE_SELF, &before);
	for (int cycle = 0; cycle < 400; cycle++) {
		struct timespec t = { (due += 4000000) / 1000000000, due % 1000000000 };

		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, 0);
		compute(1500000);
	}
	getrusage(RUSAGE_SELF, &after);
	printf("%ld\n", after.ru_minflt - before.ru_minflt);
	return 0;
}
