/* The bare ring that `punctual measure switch` stands beside: one byte round two processes (or threads) over two pipes, on one CPU, SCHED_FIFO 80.
   pipes ROUNDS CPU threads|processes: prints ns a hand-over, of which a round has two. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int there[2], back[2];
static long rounds;

static void *answer(void *unused)
{
    char byte;
    for (long turn = 0; turn < rounds; turn++)
        if (read(there[0], &byte, 1) != 1 || write(back[1], &byte, 1) != 1)
            exit(1);
    return unused;
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1e9 + time.tv_nsec;
}

int main(int count, char **words)
{
    if (count != 4)
        return 2;
    rounds = atol(words[1]);
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    CPU_SET(atoi(words[2]), &cpus);
    struct sched_param priority = { .sched_priority = 80 };
    if (rounds < 1 || sched_setaffinity(0, sizeof cpus, &cpus) || sched_setscheduler(0, SCHED_FIFO, &priority))
        return 1;
    if (pipe(there) || pipe(back))
        return 1;
    pthread_t thread;
    pid_t child = 0;
    if (!strcmp(words[3], "threads")) {
        if (pthread_create(&thread, NULL, answer, NULL))
            return 1;
    } else if ((child = fork()) == 0) {
        answer(NULL);
        _exit(0);
    }
    char byte = 0;
    double begin = now();
    for (long turn = 0; turn < rounds; turn++)
        if (write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1)
            return 1;
    printf("%f\n", (now() - begin) / rounds / 2);
    if (child > 0)
        waitpid(child, NULL, 0);
    return 0;
}
