/* The independent figure for `punctual measure storage` with `mode = "forced"`: a record is written
   to a file without a name and forced to the disk, at a period.

   fsync DIRECTORY RECORDS PERIOD_US CPU: prints the means in ns of open, write, fsync and close.
   SCHED_FIFO 80. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
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
    if (count != 5)
        return 2;
    long records = atol(words[2]), period = atol(words[3]) * 1000;
    char path[64], record[64] = { 0 };
    int file = open(words[1], O_TMPFILE | O_RDWR, 0600);
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    CPU_SET(atoi(words[4]), &cpus);
    struct sched_param priority = { .sched_priority = 80 };
    if (file < 0 || records < 1 || sched_setaffinity(0, sizeof cpus, &cpus) ||
        sched_setscheduler(0, SCHED_FIFO, &priority))
        return 1;
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    double sums[4] = { 0 };
    long due = now();
    for (long number = 0; number < records; number++) {
        struct timespec next = { due / 1000000000L, due % 1000000000L };
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
        long at[5];
        at[0] = now();
        int again = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
        at[1] = now();
        if (again < 0 || write(again, record, sizeof record) != sizeof record)
            return 1;
        at[2] = now();
        if (fsync(again))
            return 1;
        at[3] = now();
        close(again);
        at[4] = now();
        for (int step = 0; step < 4; step++)
            sums[step] += at[step + 1] - at[step];
        due += period;
    }
    for (int step = 0; step < 4; step++)
        printf("%f ", sums[step] / records);
    printf("\n");
    return 0;
}
