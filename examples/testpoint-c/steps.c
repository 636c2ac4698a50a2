/* A program without any test point of its own. Compiled with one flag, each of its steps or
 * functions is one; in C or C++:
 *
 *     cc -g steps.c $(pkg-config --cflags --libs punctual-steps) -pthread -o steps
 *     punctual trace --events none --output ran -- ./steps
 *     punctual steps ran --file steps.c
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FIB, COLLATZ, GRADE, WORK, NEVER, COUNTERS };
static const char *const names[COUNTERS] = {"fib", "collatz", "grade", "work", "never"};
/* The program's own count of its entries: printed at its end, for comparison. */
static unsigned long entered[COUNTERS];
#define ENTER(function) __atomic_fetch_add(&entered[function], 1, __ATOMIC_RELAXED)

static long fib(int n) {
    ENTER(FIB);
    if (n < 2)
        return n;
    return fib(n - 1) + fib(n - 2);
}

static int collatz(long n) {
    int steps = 0;
    ENTER(COLLATZ);
    while (n != 1) {
        if (n % 2 == 0)
            n /= 2;
        else
            n = 3 * n + 1;
        steps++;
    }
    return steps;
}

static char grade(int steps) {
    ENTER(GRADE);
    switch (steps / 10) {
    case 0:
        return 'a';
    case 1:
        return 'b';
    case 99:
        return 'x';
    default:
        return 'c';
    }
}

static int never(int n) {
    ENTER(NEVER);
    for (int i = 0; i < n; i++)
        n -= 2;
    return n;
}

static void *work(void *argument) {
    int turns = *(int *)argument;
    ENTER(WORK);
    for (int i = 1; i <= turns; i++) {
        int length = collatz(i);
        if (grade(length) == 'x' || length > 1000)
            never(length);
    }
    return NULL;
}

int main(int argc, char **argv) {
    int turns = 20;
    pthread_t threads[3];
    long sum = fib(12);
    /* A child, which counts for itself and executes this program again. */
    if (argc > 1 && atoi(argv[1]) > 0) {
        char less[16];
        snprintf(less, sizeof less, "%d", atoi(argv[1]) - 1);
        pid_t child = fork();
        if (child == 0) {
            fib(3);
            execl(argv[0], argv[0], less, (char *)NULL);
            _exit(1);
        }
        waitpid(child, NULL, 0);
    }
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, work, &turns);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < COUNTERS; i++)
        printf("%s %lu\n", names[i], entered[i]);
    return sum != 144;
}
