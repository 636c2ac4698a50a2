/* A periodic task with test points: collect it with
 *
 *     punctual trace --output netio -- ./netio
 */
#define _GNU_SOURCE
#include <punctual/testpoint.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static unsigned char buffer[65536];

static long receive(int round) {
    PUNCTUAL_SCOPE("netio.receive"); /* ends with the function */
    long bytes = 1024 + 512 * (round % 8);
    for (long i = 0; i < bytes; i++) buffer[i] = (unsigned char)(i * round);
    return bytes;
}

static void encrypt(long bytes) {
    PUNCTUAL_BEGIN1("netio.encrypt", bytes);
    for (long pass = 0; pass < 16; pass++)
        for (long i = 1; i < bytes; i++) buffer[i] ^= buffer[i - 1] + (unsigned char)pass;
    PUNCTUAL_END("netio.encrypt");
}

int main(int argc, char **argv) {
    int rounds = argc > 1 ? atoi(argv[1]) : 100;
    if (!punctual_testpoint_path())
        fprintf(stderr, "no test points: %s\n", punctual_testpoint_refusal());
    struct timespec due;
    clock_gettime(CLOCK_MONOTONIC, &due);
    for (int round = 0; round < rounds; round++) {
        PUNCTUAL_POINT1("netio.period", round);
        PUNCTUAL_SCOPE("netio.task");
        long bytes = receive(round);
        encrypt(bytes);
        PUNCTUAL_POINT2("netio.sent", bytes, buffer[bytes - 1]);
        due.tv_nsec += 10 * 1000 * 1000;
        if (due.tv_nsec >= 1000000000) due.tv_nsec -= 1000000000, due.tv_sec++;
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL);
    }
    return 0;
}
