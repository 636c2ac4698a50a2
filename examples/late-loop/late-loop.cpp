// A control loop of 500 Hz with three faults, for docs/tutorials/late-loop.md. It knows nothing of
// punctual: find them with `punctual attach -- ./late-loop`.
//
//     g++ -O2 -g -pthread -o late-loop late-loop.cpp

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <mutex>
#include <pthread.h>
#include <sched.h>
#include <thread>
#include <time.h>
#include <unistd.h>
#include <vector>

namespace {

constexpr long period_ns = 2'000'000;

std::mutex state_mutex;
double state = 0.0;

void advance(timespec &due) {
    due.tv_nsec += period_ns;
    if (due.tv_nsec >= 1'000'000'000) {
        due.tv_nsec -= 1'000'000'000;
        ++due.tv_sec;
    }
}

// Shows the state four times a second, at no priority at all.
void watch(const bool &done) {
    pthread_setname_np(pthread_self(), "operator-panel");
    while (!done) {
        {
            std::lock_guard<std::mutex> hold(state_mutex);
            double drawn = 0.0;
            for (int i = 1; i < 200'000; ++i) drawn += std::sin(state * i);
            state += drawn * 1e-12;
        }
        usleep(250'000);
    }
}

void control(int seconds, FILE *log) {
    pthread_setname_np(pthread_self(), "control");
    sched_param priority{};
    priority.sched_priority = 70;
    if (int why = pthread_setschedparam(pthread_self(), SCHED_FIFO, &priority)) {
        std::fprintf(stderr, "no real-time priority: error %d\n", why);
    }
    std::vector<double> history;
    timespec due{};
    clock_gettime(CLOCK_MONOTONIC, &due);
    for (long cycle = 0; cycle < seconds * 500L; ++cycle) {
        advance(due);
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, nullptr) == EINTR) {}
        double position;
        {
            std::lock_guard<std::mutex> hold(state_mutex);
            position = state += std::cos(static_cast<double>(cycle)) * 1e-3;
        }
        // The whole history, in memory that nobody has touched or locked.
        for (int joint = 0; joint < 256; ++joint) history.push_back(position * joint);
        if (cycle % 250 == 0) {
            std::fprintf(log, "%ld %g\n", cycle, position);
            std::fflush(log);
            fsync(fileno(log));
        }
    }
}

} // namespace

int main(int argc, char **argv) {
    const int seconds = argc > 1 ? std::atoi(argv[1]) : 30;
    FILE *log = std::fopen("late-loop.log", "w");
    if (log == nullptr) {
        std::perror("late-loop.log");
        return 1;
    }
    bool done = false;
    std::thread panel(watch, std::cref(done));
    std::thread loop(control, seconds, log);
    loop.join();
    done = true;
    panel.join();
    return std::fclose(log);
}
