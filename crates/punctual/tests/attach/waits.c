/* A period of 5 ms, with a second wait in the same call: `rare` in each tenth cycle, `each` in
 * each. In mode `moves`, it is the period instead from the 250th on. */
#include <string.h>
#include <time.h>

static long due;

static void sleep_until(long at)
{
	struct timespec time = { at / 1000000000, at % 1000000000 };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, 0))
		;
}

__attribute__((noinline)) static void wait_for_device(void)
{
	sleep_until(due + 3000000); /* DEVICE */
}

int main(int count, char **words)
{
	const char *mode = count > 1 ? words[1] : "each";
	int is_rare = !strcmp(mode, "rare"), moves = !strcmp(mode, "moves");
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	due = now.tv_sec * 1000000000 + now.tv_nsec;
	for (int k = 1; k <= 400; k++) {
		due += 5000000;
		if (!moves || k < 250)
			sleep_until(due); /* PERIOD */
		if (moves ? k >= 250 : !is_rare || k % 10 == 0)
			wait_for_device(); /* WITHIN */
	}
	return 0;
}
