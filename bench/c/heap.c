/* The bare loop that `punctual measure heap` stands beside: malloc, a write to every page, free, a
   reading of the clock on either side of each.

   heap TURNS CPU SIZE: prints ns a turn and the means of the three. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static long now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000L + time.tv_nsec;
}

int main(int count, char **words)
{
    if (count != 4)
        return 2;
    long turns = atol(words[1]), size = atol(words[3]), sums[3] = { 0 }, longest = 0;
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    CPU_SET(atoi(words[2]), &cpus);
    struct sched_param priority = { .sched_priority = 80 };
    if (turns < 1 || size < 1 || sched_setaffinity(0, sizeof cpus, &cpus) ||
        sched_setscheduler(0, SCHED_FIFO, &priority))
        return 1;
    /* As there, none of the first. */
    for (long turn = 0; turn < 64; turn++) {
        volatile char *block = malloc(size);
        for (long at = 0; at < size; at += 4096)
            block[at] = 1;
        free((char *)block);
    }
    long begin = now();
    for (long turn = 0; turn < turns; turn++) {
        long before = now();
        volatile char *block = malloc(size);
        long had = now();
        long touching = now();
        for (long at = 0; at < size; at += 4096)
            block[at] = 1;
        block[size - 1] = 1;
        long touched = now();
        long giving = now();
        free((char *)block);
        long given = now();
        long spans[3] = { had - before, touched - touching, given - giving };
        for (int span = 0; span < 3; span++) {
            sums[span] += spans[span];
            longest = spans[span] > longest ? spans[span] : longest;
        }
    }
    printf("%f %f %f %f %ld\n", (double)(now() - begin) / turns, (double)sums[0] / turns,
           (double)sums[1] / turns, (double)sums[2] / turns, longest);
    return 0;
}
