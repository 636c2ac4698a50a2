/* Zephyr's latmon as its client sees it (subsys/net/lib/latmon/latmon.c), on simulated GPIO
 * lines: raises sim_gpio2 and times when sim_gpio1 falls. Prints min, max and mean of what it
 * sent, in ns. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static uint32_t cells[1000];

static int open_in(const char *lines, const char *file, int flags) {
    char path[512];
    snprintf(path, sizeof(path), "%s/%s", lines, file);
    return open(path, flags);
}

static int64_t now(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return at.tv_sec * 1000000000LL + at.tv_nsec;
}

int main(int count, char **arguments) {
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_port = htons(2306)};
    int server = socket(AF_INET, SOCK_STREAM, 0), client, pull, value;
    uint32_t request[2], samples = 0, min = UINT32_MAX, max = 0, overruns = 0;
    uint64_t sum = 0;

    if (count < 2 || bind(server, (void *)&any, sizeof(any)) || listen(server, 1)) return 1;
    pull = open_in(arguments[1], "sim_gpio2/pull", O_WRONLY);
    value = open_in(arguments[1], "sim_gpio1/value", O_RDONLY);
    client = accept(server, NULL, NULL);
    if (recv(client, request, 8, MSG_WAITALL) != 8) return 2;
    for (;;) {
        int64_t raised, taken;
        char level = '1';
        uint32_t more[2];

        usleep(ntohl(request[0]));
        if (recv(client, more, 8, MSG_DONTWAIT) == 8) break;
        raised = now();
        if (pwrite(pull, "pull-up", 7, 0) != 7) return 3;
        while (level != '0' && now() - raised < 1000000000LL) pread(value, &level, 1, 0);
        taken = now() - raised;
        if (pwrite(pull, "pull-down", 9, 0) != 9) return 4;
        if (level != '0') {
            overruns++;
            continue;
        }
        samples++;
        sum += taken;
        if (taken < min) min = taken;
        if (taken > max) max = taken;
        cells[taken / 1000 < 999 ? taken / 1000 : 999]++;
    }
    uint32_t data[6] = {htonl(sum >> 32), htonl(sum), htonl(min), htonl(max),
                        htonl(overruns), htonl(samples)};
    uint32_t last[6] = {0};
    for (int cell = 0; cell < 1000; cell++) cells[cell] = htonl(cells[cell]);
    send(client, data, sizeof(data), 0);
    send(client, last, sizeof(last), 0);
    send(client, cells, sizeof(cells), 0);
    printf("%u %u %.17g\n", min, max, (double)sum / samples);
    return 0;
}
