/* What going through a working set costs after a context switch and without one: the independent
   figure for the table `working-sets` of `punctual measure switch`.

   working_set BYTES CPU BLOCKS [other [WALK]]: two threads on one CPU hand a byte back and forth
   over pipes; each goes through a set of its own. Blocks in which the walks of one of them follow a
   switch take turns with blocks in which it walks with nobody between. SCHED_FIFO 80, or with
   `other` whatever it was started with. WALK as the key `walk`: lines (default), pages, branches,
   straight.

   Prints: ns of a walk after a switch, alone (medians), their difference (median over pairs of
   blocks), and the least and the largest quarter's border of the differences. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { WALKS = 9, LINE = 64 };

static size_t bytes;
static char walk_by = 'l';
static int to_other[2], to_me[2];

static int64_t clock_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static uint64_t __attribute__((noinline)) even(uint64_t n)
{
    return n + 1;
}

static uint64_t __attribute__((noinline)) odd(uint64_t n)
{
    return n << 1 | n >> 63;
}

static void stroll(unsigned char *set)
{
    static volatile uint64_t kept;
    uint64_t sum = 0;
    if (walk_by == 'p')
        for (size_t page = 0; page < bytes / 4096; page++)
            (*(volatile uint64_t *)(set + page * 4096 + page % 64 * LINE))++;
    else if (walk_by == 'b' || walk_by == 's') {
        for (size_t i = 0; i < bytes; i++)
            sum = ((volatile unsigned char *)set)[i] & 1 ? odd(sum) : even(sum);
        kept = sum;
        (void)kept;
    } else for (size_t i = 0; i < bytes; i += LINE)
        (*(volatile uint64_t *)(set + i))++;
}

static unsigned char *new_set(void)
{
    void *set;
    if (posix_memalign(&set, 4096, bytes))
        exit(1);
    memset(set, 0, bytes);
    for (size_t i = 0; walk_by == 'b' && i < bytes; i++)
        ((unsigned char *)set)[i] = rand() >> 8;
    return set;
}

static void *partner(void *unused)
{
    unsigned char *set = new_set();
    char c;
    while (read(to_other[0], &c, 1) == 1 && c) {
        stroll(set);
        if (write(to_me[1], &c, 1) != 1)
            exit(1);
    }
    return unused;
}

static int by_size(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static int64_t middle(int64_t *v, int n)
{
    qsort(v, n, sizeof *v, by_size);
    return v[n / 2];
}

int main(int argc, char **argv)
{
    if (argc < 4)
        return 2;
    bytes = strtoul(argv[1], NULL, 10);
    int blocks = atoi(argv[3]);
    if (argc > 5)
        walk_by = argv[5][0];
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(atoi(argv[2]), &one);
    struct sched_param fifo = { .sched_priority = 80 };
    if (bytes < LINE || blocks < 4 || sched_setaffinity(0, sizeof one, &one))
        return 2;
    if (argc < 5 && sched_setscheduler(0, SCHED_FIFO, &fifo))
        return 1;
    pthread_t thread;
    if (pipe(to_other) || pipe(to_me) || pthread_create(&thread, NULL, partner, NULL))
        return 1;
    unsigned char *set = new_set();
    int64_t *switched = calloc(blocks, sizeof *switched);
    int64_t *alone = calloc(blocks, sizeof *alone);
    int64_t *less = calloc(blocks, sizeof *less);
    int64_t walk[WALKS];
    for (int b = 0; b < blocks; b++) {
        char c = 1;
        for (int w = 0; w < WALKS; w++) {
            if (write(to_other[1], &c, 1) != 1 || read(to_me[0], &c, 1) != 1)
                return 1;
            int64_t begin = clock_ns();
            stroll(set);
            walk[w] = clock_ns() - begin;
        }
        switched[b] = middle(walk, WALKS);
        for (int w = 0; w < WALKS; w++) {
            int64_t begin = clock_ns();
            stroll(set);
            walk[w] = clock_ns() - begin;
        }
        alone[b] = middle(walk, WALKS);
        less[b] = switched[b] - alone[b];
        /* Who never sleeps is throttled. */
        usleep(1000);
    }
    char end = 0;
    if (write(to_other[1], &end, 1) != 1)
        return 1;
    pthread_join(thread, NULL);
    int64_t difference = middle(less, blocks);
    printf("%ld %ld %ld %ld %ld\n", (long)middle(switched, blocks), (long)middle(alone, blocks),
           (long)difference, (long)less[blocks / 4], (long)less[blocks * 3 / 4]);
    return 0;
}
