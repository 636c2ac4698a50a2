/* The bare loop that `punctual measure syscall` stands beside: the same two readings of the clock
   around the same call, a sum and a maximum.

   getpid TURNS CPU: prints ns a turn and the mean of the samples. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static long now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000L + time.tv_nsec;
}

int main(int count, char **words)
{
    if (count != 3)
        return 2;
    long turns = atol(words[1]), longest = 0, sum = 0;
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    CPU_SET(atoi(words[2]), &cpus);
    struct sched_param priority = { .sched_priority = 80 };
    if (turns < 1 || sched_setaffinity(0, sizeof cpus, &cpus) ||
        sched_setscheduler(0, SCHED_FIFO, &priority))
        return 1;
    long begin = now();
    for (long turn = 0; turn < turns; turn++) {
        long before = now();
        syscall(SYS_getpid);
        long took = now() - before;
        sum += took;
        if (took > longest)
            longest = took;
    }
    printf("%f %f %ld\n", (double)(now() - begin) / turns, (double)sum / turns, longest);
    return 0;
}
