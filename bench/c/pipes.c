/* The bare ring that `punctual measure switch` stands beside: one byte round two processes (or
   threads) over two pipes, on one CPU, SCHED_FIFO 80.

   pipes ROUNDS CPU threads|processes bare|timed: prints ns a hand-over, of which a round has two.
   Timed, each hand-over is between two readings of the clock, with a sum and a maximum of them. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int there[2], back[2];
static long rounds;
static int timed;
static volatile long *left; /* When the byte was sent last: shared by both. */

static long now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000L + time.tv_nsec;
}

static void send_byte(int pipe)
{
    char byte = 0;
    if (timed)
        *left = now();
    if (write(pipe, &byte, 1) != 1)
        exit(1);
}

static long sum, longest;

static void receive_byte(int pipe)
{
    char byte;
    if (read(pipe, &byte, 1) != 1)
        exit(1);
    if (timed) {
        long took = now() - *left;
        sum += took;
        if (took > longest)
            longest = took;
    }
}

static void *answer(void *unused)
{
    for (long turn = 0; turn < rounds; turn++) {
        receive_byte(there[0]);
        send_byte(back[1]);
    }
    return unused;
}

int main(int count, char **words)
{
    if (count != 5)
        return 2;
    rounds = atol(words[1]);
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    CPU_SET(atoi(words[2]), &cpus);
    struct sched_param priority = { .sched_priority = 80 };
    if (rounds < 1 || sched_setaffinity(0, sizeof cpus, &cpus) ||
        sched_setscheduler(0, SCHED_FIFO, &priority))
        return 1;
    timed = !strcmp(words[4], "timed");
    left = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (left == MAP_FAILED || pipe(there) || pipe(back))
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
    long begin = now();
    for (long turn = 0; turn < rounds; turn++) {
        send_byte(there[1]);
        receive_byte(back[0]);
    }
    printf("%f %ld %ld\n", (double)(now() - begin) / rounds / 2, sum, longest);
    if (child > 0)
        waitpid(child, NULL, 0);
    return 0;
}
