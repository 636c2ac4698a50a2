/* The independent figure for `punctual measure mutex`: threads that contend for a mutex with every
   term of an integral, one on each CPU in turn.

   mutex THREADS CPUS TERMS ROUNDS: prints the mean wait in ns, the most often that others got the
   lock during one wait, and the longest run of one owner. SCHED_OTHER. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t barrier;
static long threads, terms, rounds;
/* All of these behind the lock. */
static double integral;
static long granted, owner = -1, run, longest_run;

struct figures {
    long number, waits, most;
    double waited;
};

static long now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000L + time.tv_nsec;
}

static void *contend(void *argument)
{
    struct figures *own = argument;
    for (long round = 0; round < rounds; round++) {
        pthread_barrier_wait(&barrier);
        for (long term = own->number; term < terms; term += threads) {
            double x = (term + 0.5) / terms, value = 4 / (1 + x * x) / terms;
            long before = __atomic_load_n(&granted, __ATOMIC_RELAXED), asked = now();
            pthread_mutex_lock(&lock);
            long got = now(), others = granted - before;
            integral += value;
            granted++;
            run = owner == own->number ? run + 1 : 1;
            owner = own->number;
            longest_run = run > longest_run ? run : longest_run;
            pthread_mutex_unlock(&lock);
            own->waited += got - asked;
            own->waits++;
            own->most = others > own->most ? others : own->most;
        }
    }
    return NULL;
}

int main(int count, char **words)
{
    if (count != 5)
        return 2;
    threads = atol(words[1]);
    long cpus = atol(words[2]);
    terms = atol(words[3]);
    rounds = atol(words[4]);
    if (threads < 1 || threads > 64 || cpus < 1)
        return 2;
    pthread_barrier_init(&barrier, NULL, threads);
    struct figures own[64] = { 0 };
    pthread_t all[64];
    for (long number = 0; number < threads; number++) {
        pthread_attr_t attributes;
        cpu_set_t set;
        own[number].number = number;
        CPU_ZERO(&set);
        CPU_SET(number % cpus, &set);
        pthread_attr_init(&attributes);
        pthread_attr_setaffinity_np(&attributes, sizeof set, &set);
        if (pthread_create(&all[number], &attributes, contend, &own[number]))
            return 1;
    }
    double waited = 0;
    long waits = 0, most = 0;
    for (long number = 0; number < threads; number++) {
        pthread_join(all[number], NULL);
        waited += own[number].waited;
        waits += own[number].waits;
        most = own[number].most > most ? own[number].most : most;
    }
    double error = integral / rounds - 3.14159265358979;
    if (error > 1e-6 || error < -1e-6)
        return 1;
    printf("%f %ld %ld\n", waited / waits, most, longest_run);
    return 0;
}
