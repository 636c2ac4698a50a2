// late-loop.cpp without its three faults, for docs/tutorials/late-loop.md: memory is locked and made
// before the first cycle, another thread writes the log, and the mutex inherits priority and is
// held only to copy.
//
//     g++ -O2 -g -pthread -o repaired repaired.cpp

#include <array>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <thread>
#include <time.h>
#include <unistd.h>
#include <vector>

namespace {

constexpr long period_ns = 2'000'000;
constexpr int joints = 256;

// A mutex whose holder runs with the priority of whoever waits for it.
class InheritingMutex {
public:
    InheritingMutex() {
        pthread_mutexattr_t attributes;
        pthread_mutexattr_init(&attributes);
        pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
        pthread_mutex_init(&mutex, &attributes);
        pthread_mutexattr_destroy(&attributes);
    }
    void lock() { pthread_mutex_lock(&mutex); }
    void unlock() { pthread_mutex_unlock(&mutex); }

private:
    pthread_mutex_t mutex;
};

InheritingMutex state_mutex;
double state = 0.0;

// What the loop wants to be written: one writer, one reader, no lock.
struct Line {
    long cycle;
    double position;
};
std::array<Line, 64> lines;
std::atomic<unsigned> written{0}, taken{0};

void advance(timespec &due) {
    due.tv_nsec += period_ns;
    if (due.tv_nsec >= 1'000'000'000) {
        due.tv_nsec -= 1'000'000'000;
        ++due.tv_sec;
    }
}

void write_lines(FILE *log) {
    for (; taken != written; ++taken) {
        const Line &line = lines[taken % lines.size()];
        std::fprintf(log, "%ld %g\n", line.cycle, line.position);
        std::fflush(log);
        fsync(fileno(log));
    }
}

// Shows the state four times a second, and writes the log, at no priority at all.
void watch(const std::atomic<bool> &done, FILE *log) {
    pthread_setname_np(pthread_self(), "operator-panel");
    while (!done) {
        double shown;
        {
            std::lock_guard<InheritingMutex> hold(state_mutex);
            shown = state;
        }
        double drawn = 0.0;
        for (int i = 1; i < 200'000; ++i) drawn += std::sin(shown * i);
        {
            std::lock_guard<InheritingMutex> hold(state_mutex);
            state += drawn * 1e-12;
        }
        write_lines(log);
        usleep(250'000);
    }
    write_lines(log);
}

void control(int seconds, std::vector<double> &history) {
    pthread_setname_np(pthread_self(), "control");
    sched_param priority{};
    priority.sched_priority = 70;
    if (int why = pthread_setschedparam(pthread_self(), SCHED_FIFO, &priority)) {
        std::fprintf(stderr, "no real-time priority: error %d\n", why);
    }
    timespec due{};
    clock_gettime(CLOCK_MONOTONIC, &due);
    for (long cycle = 0; cycle < seconds * 500L; ++cycle) {
        advance(due);
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, nullptr) == EINTR) {}
        double position;
        {
            std::lock_guard<InheritingMutex> hold(state_mutex);
            position = state += std::cos(static_cast<double>(cycle)) * 1e-3;
        }
        for (int joint = 0; joint < joints; ++joint)
            history[cycle * joints + joint] = position * joint;
        if (cycle % 250 == 0 && written - taken < lines.size()) {
            lines[written % lines.size()] = {cycle, position};
            ++written;
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
    if (mlockall(MCL_CURRENT | MCL_FUTURE)) std::perror("mlockall");
    std::vector<double> history(seconds * 500L * joints);
    std::atomic<bool> done{false};
    std::thread panel(watch, std::cref(done), log);
    std::thread loop(control, seconds, std::ref(history));
    loop.join();
    done = true;
    panel.join();
    return std::fclose(log);
}
