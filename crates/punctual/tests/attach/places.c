/* A loop whose faults, calls and waits are each on a marked line. Compiled with -O2 -g. */
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile int over;

static void busy(long us)
{
	struct timespec begin, now;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	do
		clock_gettime(CLOCK_MONOTONIC, &now);
	while ((now.tv_sec - begin.tv_sec) * 1000000 + (now.tv_nsec - begin.tv_nsec) / 1000 < us);
}

static void *panel(void *unused)
{
	struct timespec pause = { 0, 500000 }, held = { 0, 300000 };

	prctl(PR_SET_NAME, "panel");
	while (!over) {
		pthread_mutex_lock(&lock);
		busy(700);
		nanosleep(&held, 0); /* held */
		pthread_mutex_unlock(&lock); /* released */
		nanosleep(&pause, 0);
	}
	return unused;
}

static __attribute__((noinline)) void touch(char *page)
{
	memset(page, 1, 4096); /* touched */
	__asm__ volatile("" : : "r"(page) : "memory");
}

int main(void)
{
	int file = open("/dev/null", O_WRONLY);
	struct timespec next;
	pthread_t other;

	pthread_create(&other, 0, panel, 0);
	clock_gettime(CLOCK_MONOTONIC, &next);
	for (int i = 0; i < 600; i++) {
		char *page;

		next.tv_nsec += 2000000;
		if (next.tv_nsec >= 1000000000) {
			next.tv_nsec -= 1000000000;
			next.tv_sec++;
		}
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, 0);
		pthread_mutex_lock(&lock); /* locked */
		__asm__ volatile("" : : : "memory");
		pthread_mutex_unlock(&lock);
		page = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); /* mapped */
		touch(page);
		munmap(page, 4096); /* unmapped */
		if (write(file, "x", 1) != 1) /* written */
			return 1;
	}
	over = 1;
	pthread_join(other, 0);
	return 7;
}
