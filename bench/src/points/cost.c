/* What one record costs, by the way it is written: the mean of a batch, batch after batch, every
 * way in turn in each of them. Built and run by the comparison; -DLTTNG with liblttng-ust. Prints
 * `name mean_ns mean_ns …`, a line a way. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <punctual/testpoint.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#ifdef LTTNG
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "tp.h"
#endif

static int marker = -1;
static volatile uint64_t sink;

static inline uint64_t counter(void) {
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    uint64_t ticks;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
#else
#error "no counter"
#endif
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1e9 + time.tv_nsec;
}

#define BATCH(name, count, ...)                                          \
    static double name(void) {                                           \
        double begin = now();                                            \
        for (long value = 0; value < (count); value++) { __VA_ARGS__; }  \
        return (now() - begin) / (count);                                \
    }

BATCH(counter_alone, 20000, sink = counter())
BATCH(ring, 20000, PUNCTUAL_POINT1("turn", value))
/* What -fsanitize-coverage=trace-pc puts at each step. */
void __sanitizer_cov_trace_pc(void);
BATCH(step, 20000, __sanitizer_cov_trace_pc())
BATCH(system_call, 20000, syscall(SYS_getppid))
BATCH(trace_marker, 5000, if (write(marker, "turn", 4) != 4) abort())
#ifdef LTTNG
BATCH(lttng, 20000, lttng_ust_tracepoint(punctual_bench, turn, value))
#endif

struct way {
    const char *name;
    double (*batch)(void);
};

int main(int count, char **arguments) {
    int batches = count > 1 ? atoi(arguments[1]) : 100;
    struct way ways[] = {{"counter", counter_alone}, {"ring", ring}, {"step", step},
                         {"syscall", system_call}, {"trace_marker", trace_marker},
#ifdef LTTNG
                         {"lttng", lttng},
#endif
    };
    int all = sizeof ways / sizeof *ways;
    double *means = calloc((size_t)all * batches, sizeof *means);
    marker = open("/sys/kernel/tracing/trace_marker", O_WRONLY);
    for (int batch = -2; batch < batches; batch++) {
        for (int way = 0; way < all; way++) {
            if (ways[way].batch == trace_marker && marker < 0) continue;
            double mean = ways[way].batch();
            if (batch >= 0) means[way * batches + batch] = mean;
            /* The collectors catch up: none loses for lack of time. */
            usleep(8000);
        }
    }
    for (int way = 0; way < all; way++) {
        if (ways[way].batch == trace_marker && marker < 0) continue;
        printf("%s", ways[way].name);
        for (int batch = 0; batch < batches; batch++) printf(" %.2f", means[way * batches + batch]);
        printf("\n");
    }
}
