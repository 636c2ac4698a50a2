/* The parts of roles.rs, played by a program in C: see there for what each does. */
#define _GNU_SOURCE
#include "testpoint.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static long setting(const char *name) {
    const char *text = getenv(name);
    if (!text) exit(101);
    return atol(text);
}

static int64_t witness(int64_t n) {
    return (int64_t)((uint64_t)n * 0x2545f4914f6cdd1du) ^ 0x55;
}

static void *count(void *points) {
    for (long n = 0; n < (long)points; n++) PUNCTUAL_POINT2("counted", n, witness(n));
    return NULL;
}

static void threads(void) {
    pthread_t started[64];
    long amount = setting("THREADS");
    for (long i = 0; i < amount; i++)
        if (pthread_create(&started[i], NULL, count, (void *)setting("POINTS"))) exit(102);
    for (long i = 0; i < amount; i++) pthread_join(started[i], NULL);
}

static void short_threads(void) {
    long amount = setting("THREADS"), pause = setting("PAUSE_US");
    for (long i = 0; i < amount; i++) {
        pthread_t started;
        if (pthread_create(&started, NULL, count, (void *)setting("POINTS"))) exit(102);
        pthread_join(started, NULL);
        if (pause > 0) usleep((useconds_t)pause);
    }
}

static void count_forever(void) {
    int file = open(getenv("COUNTED"), O_RDWR);
    _Atomic uint64_t *counted = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (counted == MAP_FAILED) exit(103);
    for (int64_t n = 0;; n++) {
        PUNCTUAL_POINT2("counted", n, witness(n));
        atomic_store_explicit(counted, (uint64_t)n + 1, memory_order_release);
    }
}

static _Atomic long handled;
static _Atomic int done;

static void handle(int signal) {
    (void)signal;
    long n = atomic_fetch_add(&handled, 1);
    PUNCTUAL_POINT2("in the handler", n, witness(n));
}

static void *send_signals(void *writer) {
    static const int kinds[] = {SIGUSR1, SIGUSR2, SIGHUP};
    for (int i = 0; i < 30000 && !done; i++) pthread_kill(*(pthread_t *)writer, kinds[i % 3]);
    return NULL;
}

static void signals(void) {
    struct sigaction action = {.sa_handler = handle, .sa_flags = SA_RESTART};
    pthread_t writer = pthread_self(), sender;
    long points = setting("POINTS"), n = 0;
    sigaction(SIGUSR1, &action, NULL);
    sigaction(SIGUSR2, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
    if (pthread_create(&sender, NULL, send_signals, &writer)) exit(102);
    for (; n < points && handled < 10000; n++) PUNCTUAL_POINT2("counted", n, witness(n));
    done = 1;
    PUNCTUAL_POINT1("written", n);
    pthread_join(sender, NULL);
    PUNCTUAL_POINT1("handled", handled);
}

static void in_both(long points) {
    for (long n = 0; n < points; n++) PUNCTUAL_POINT2("in both", n, witness(n));
}

static void fork_once(void) {
    PUNCTUAL_POINT("before the fork");
    pid_t child = fork();
    in_both(setting("POINTS"));
    if (child == 0) {
        PUNCTUAL_POINT("in the child");
        _exit(0);
    }
    int status = -1;
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0) exit(104);
}

static void kinds(void) {
    static struct punctual_point odd = {0, 0, "odd \033[31m name"};
    uint32_t one = 1u << PUNCTUAL_COUNT_SHIFT, two = 2u << PUNCTUAL_COUNT_SHIFT;
    punctual_testpoint_record(PUNCTUAL_STREAM);
    punctual_testpoint_pass(&odd, PUNCTUAL_KIND_POINT, 0, 0);
    punctual_testpoint_pass(&odd, PUNCTUAL_KIND_POINT | one, -1, 0);
    punctual_testpoint_pass(&odd, PUNCTUAL_KIND_POINT | two, INT64_MIN, INT64_MAX);
    PUNCTUAL_BEGIN1("work", 1);
    PUNCTUAL_END2("work", 2, 3);
    {
        PUNCTUAL_SCOPE("scope");
        punctual_testpoint_pass(&odd, PUNCTUAL_KIND_BEGIN | one, 5, 0);
    }
    punctual_testpoint_pass(&odd, PUNCTUAL_KIND_END | two, 6, 7);
    PUNCTUAL_POINT("");
    PUNCTUAL_POINT("a name that is longer than the one hundred and twenty bytes that the table of "
                   "names keeps of it, and so it ends before this: it is cut off");
}

static void exec_sleep(void) {
    punctual_testpoint_record(PUNCTUAL_STREAM);
    PUNCTUAL_POINT("before exec");
    if (setting("AGAIN") > 0) {
        setenv("AGAIN", "0", 1);
        execl("/proc/self/exe", "again", (char *)NULL);
    }
    execlp("sleep", "sleep", "30", (char *)NULL);
}

static int64_t monotonic(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void clock_between(void) {
    int64_t began = monotonic(), before = began;
    for (long n = setting("POINTS"); n > 0; n--) {
        PUNCTUAL_POINT1("between", before);
        before = monotonic();
        if (monotonic() - began < 300000000) usleep(100);
    }
}

int main(void) {
    const char *role = getenv("POINTS_ROLE");
    if (!role) return 100;
    if (!strcmp(role, "threads")) threads();
    else if (!strcmp(role, "count forever")) count_forever();
    else if (!strcmp(role, "signals")) signals();
    else if (!strcmp(role, "fork")) fork_once();
    else if (!strcmp(role, "short threads")) short_threads();
    else if (!strcmp(role, "kinds")) kinds();
    else if (!strcmp(role, "exec")) exec_sleep();
    else if (!strcmp(role, "clock")) clock_between();
    else return 100;
    return 0;
}
