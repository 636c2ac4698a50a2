/* Test points for real-time programs, in C (C11 or GNU C) and C++ (C++11), on Linux.
 *
 *     #include <punctual/testpoint.h>
 *
 *     PUNCTUAL_POINT("control.tick");                an instant
 *     PUNCTUAL_POINT1("netio.sent", bytes);          with an integer; PUNCTUAL_POINT2 with two
 *     PUNCTUAL_BEGIN("netio.encrypt");  ...          from here ...
 *     PUNCTUAL_END("netio.encrypt");                 ... to here, in the same thread
 *     PUNCTUAL_SCOPE("netio.task");                  from here to the end of the block
 *
 * Compile testpoint.c, which lies beside this file, with the program; or link with
 * `pkg-config --libs punctual-testpoint`. With PUNCTUAL_TESTPOINT_OFF defined, every point compiles
 * to nothing and nothing is linked. A point that nobody records costs a load and a predictable
 * branch. Points may be passed in signal handlers and in every thread. docs/testpoints.md has cost,
 * modes, environment and the format of the record.
 *
 * Licensed under MIT or Apache-2.0, at your option. */
#ifndef PUNCTUAL_TESTPOINT_H
#define PUNCTUAL_TESTPOINT_H

#define PUNCTUAL_CONCAT_(a, b) a##b
#define PUNCTUAL_CONCAT(a, b) PUNCTUAL_CONCAT_(a, b)

/* What a process itself wants recorded, for punctual_testpoint_record(). */
#define PUNCTUAL_ON_DEMAND 0 /* nothing: points are recorded while a collector wants them */
#define PUNCTUAL_STREAM 1    /* all; a full ring drops and counts until a collector reads */
#define PUNCTUAL_FLIGHT 2    /* the last of each thread; what is overwritten is counted */

#ifdef PUNCTUAL_TESTPOINT_OFF

#define PUNCTUAL_POINT(name) ((void)0)
#define PUNCTUAL_POINT1(name, a) ((void)0)
#define PUNCTUAL_POINT2(name, a, b) ((void)0)
#define PUNCTUAL_BEGIN(name) ((void)0)
#define PUNCTUAL_BEGIN1(name, a) ((void)0)
#define PUNCTUAL_BEGIN2(name, a, b) ((void)0)
#define PUNCTUAL_END(name) ((void)0)
#define PUNCTUAL_END1(name, a) ((void)0)
#define PUNCTUAL_END2(name, a, b) ((void)0)
#define PUNCTUAL_SCOPE(name) ((void)0)
#define punctual_testpoint_record(mode) ((void)(mode), 0)
#define punctual_testpoint_path() ((const char *)0)
#define punctual_testpoint_refusal() ("the program was built with PUNCTUAL_TESTPOINT_OFF")

#else

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Sets what is recorded when no collector asks: 0, or -1 for an unknown mode. Called by one thread
 * at a time, and not while threads that passed points end. */
int punctual_testpoint_record(int mode);
/* The file that this process's points go to; null if there is none. */
const char *punctual_testpoint_path(void);
/* Why there is none; null if there is one. */
const char *punctual_testpoint_refusal(void);

/* A place in the program where a point is passed. */
struct punctual_point {
    uint32_t id; /* 0 until its name is registered */
    uint32_t reserved;
    const char *name;
};

/* From here on: what the macros are made of. No promise is made about it. */

struct punctual_testpoint_slot {
    uint64_t at;
    uint64_t word;
    int64_t values[2];
};

/* On three cache lines: of everyone, of the writing thread, of the collector. */
struct punctual_testpoint_ring {
    uint32_t state, generation, tid, slot_count;
    uint64_t comm[2], reserved[4];
    uint64_t head, mask, dropped, reserved_2[5];
    uint64_t limit, read, reported, reserved_3[5];
    uint64_t reserved_4[512 - 24];
    struct punctual_testpoint_slot slots[1];
};

/* In a program compiled with -finstrument-functions these are no functions. */
#define PUNCTUAL_INLINE_ static inline __attribute__((always_inline, no_instrument_function))

/* What the first page of the file is mapped over: in pages of its own, of the largest size that the
 * architecture has. */
#if defined(__x86_64__)
#define PUNCTUAL_CONTROL_PAGE 4096
#else
#define PUNCTUAL_CONTROL_PAGE 65536
#endif
struct punctual_testpoint_control {
    uint64_t magic;
    uint32_t version, recording, mode, requested, pid, clock;
    uint64_t start_time, pair_ticks;
    int64_t pair_monotonic;
    uint64_t pair_error;
    uint32_t names_used, names_refused, ring_slots, rings_used;
    uint64_t pid_namespace;
    uint32_t ended, reserved;
    uint64_t comm[2], reserved_2[2], ringless;
    unsigned char rest[PUNCTUAL_CONTROL_PAGE - 136];
} __attribute__((aligned(PUNCTUAL_CONTROL_PAGE)));

#define PUNCTUAL_KIND_POINT (UINT32_C(1) << 24)
#define PUNCTUAL_KIND_BEGIN (UINT32_C(2) << 24)
#define PUNCTUAL_KIND_END (UINT32_C(3) << 24)
#define PUNCTUAL_COUNT_SHIFT 28

extern struct punctual_testpoint_control punctual_testpoint_control;
/* The ring of this thread, or one without room. Initial-exec: no call to find it, also in a shared
 * library. */
extern __thread struct punctual_testpoint_ring *punctual_testpoint_ring
    __attribute__((tls_model("initial-exec")));
void punctual_testpoint_slow(struct punctual_point *point, uint32_t bits, int64_t a, int64_t b)
    __attribute__((cold));

#if defined(__x86_64__)
PUNCTUAL_INLINE_ uint64_t punctual_testpoint_ticks(void) {
    uint32_t low, high;
    __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
    return (uint64_t)high << 32 | low;
}
#elif defined(__aarch64__)
PUNCTUAL_INLINE_ uint64_t punctual_testpoint_ticks(void) {
    uint64_t ticks;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
}
#else
/* Elsewhere the thread's ring stays one without room, and the clock is CLOCK_MONOTONIC. */
PUNCTUAL_INLINE_ uint64_t punctual_testpoint_ticks(void) {
    return 0;
}
#endif

/* One position of the ring. A signal handler comes before or after; no other thread writes here. */
PUNCTUAL_INLINE_ uint64_t punctual_testpoint_reserve(uint64_t *head) {
#if defined(__x86_64__)
    uint64_t position = 1;
    __asm__ volatile("xaddq %0, %1" : "+r"(position), "+m"(*head) : : "memory", "cc");
#else
    uint64_t position = __atomic_fetch_add(head, 1, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_RELEASE);
#endif
    return position;
}

/* Writes a point to a ring that has room for it. */
PUNCTUAL_INLINE_ void punctual_testpoint_put(
    struct punctual_testpoint_ring *ring, uint64_t at, uint32_t bits, int64_t a, int64_t b) {
    uint64_t position = punctual_testpoint_reserve(&ring->head);
    uint64_t place = position & __atomic_load_n(&ring->mask, __ATOMIC_RELAXED);
    struct punctual_testpoint_slot *slot = &ring->slots[place];
    if (bits >> PUNCTUAL_COUNT_SHIFT > 0) __atomic_store_n(&slot->values[0], a, __ATOMIC_RELAXED);
    if (bits >> PUNCTUAL_COUNT_SHIFT > 1) __atomic_store_n(&slot->values[1], b, __ATOMIC_RELAXED);
    __atomic_store_n(&slot->at, at, __ATOMIC_RELAXED);
    __atomic_store_n(&slot->word, (position + 1) << 32 | bits, __ATOMIC_RELEASE);
}

PUNCTUAL_INLINE_ void punctual_testpoint_write(
    struct punctual_point *point, uint32_t bits, int64_t a, int64_t b) {
    struct punctual_testpoint_ring *ring = punctual_testpoint_ring;
    uint32_t id = __atomic_load_n(&point->id, __ATOMIC_RELAXED);
    uint64_t head = __atomic_load_n(&ring->head, __ATOMIC_RELAXED);
    if (__builtin_expect(id == 0 || head >= __atomic_load_n(&ring->limit, __ATOMIC_RELAXED), 0))
        punctual_testpoint_slow(point, bits, a, b);
    else
        punctual_testpoint_put(ring, punctual_testpoint_ticks(), id | bits, a, b);
}

PUNCTUAL_INLINE_ void punctual_testpoint_pass(
    struct punctual_point *point, uint32_t bits, int64_t a, int64_t b) {
    uint32_t recording = __atomic_load_n(&punctual_testpoint_control.recording, __ATOMIC_RELAXED);
    if (__builtin_expect(recording != 0, 0))
        punctual_testpoint_write(point, bits, a, b);
}

#ifdef __cplusplus
}
#endif

#define PUNCTUAL_PASS_(name, kind, count, a, b)                              \
    do {                                                                     \
        static struct punctual_point punctual_site = {0, 0, name};           \
        punctual_testpoint_pass(&punctual_site,                              \
                                (kind) | count##u << PUNCTUAL_COUNT_SHIFT,   \
                                (int64_t)(a), (int64_t)(b));                 \
    } while (0)

#define PUNCTUAL_POINT(name) PUNCTUAL_PASS_(name, PUNCTUAL_KIND_POINT, 0, 0, 0)
#define PUNCTUAL_POINT1(name, a) PUNCTUAL_PASS_(name, PUNCTUAL_KIND_POINT, 1, a, 0)
#define PUNCTUAL_POINT2(name, a, b) PUNCTUAL_PASS_(name, PUNCTUAL_KIND_POINT, 2, a, b)
#define PUNCTUAL_BEGIN(name) PUNCTUAL_PASS_(name, PUNCTUAL_KIND_BEGIN, 0, 0, 0)
#define PUNCTUAL_BEGIN1(name, a) PUNCTUAL_PASS_(name, PUNCTUAL_KIND_BEGIN, 1, a, 0)
#define PUNCTUAL_BEGIN2(name, a, b) PUNCTUAL_PASS_(name, PUNCTUAL_KIND_BEGIN, 2, a, b)
#define PUNCTUAL_END(name) PUNCTUAL_PASS_(name, PUNCTUAL_KIND_END, 0, 0, 0)
#define PUNCTUAL_END1(name, a) PUNCTUAL_PASS_(name, PUNCTUAL_KIND_END, 1, a, 0)
#define PUNCTUAL_END2(name, a, b) PUNCTUAL_PASS_(name, PUNCTUAL_KIND_END, 2, a, b)

#define PUNCTUAL_SITE_ PUNCTUAL_CONCAT(punctual_site_, __LINE__)
#define PUNCTUAL_SCOPE(name)                                 \
    static struct punctual_point PUNCTUAL_SITE_ = {0, 0, name}; \
    PUNCTUAL_SCOPE_AT_(PUNCTUAL_SITE_, PUNCTUAL_CONCAT(punctual_scope_, __LINE__))

#ifdef __cplusplus

namespace punctual {
/* Begins a point when made, ends it when it goes: also by exception. */
class scope {
public:
    explicit scope(punctual_point &point) : point_(point) {
        punctual_testpoint_pass(&point_, PUNCTUAL_KIND_BEGIN, 0, 0);
    }
    ~scope() { punctual_testpoint_pass(&point_, PUNCTUAL_KIND_END, 0, 0); }
    scope(const scope &) = delete;
    scope &operator=(const scope &) = delete;

private:
    punctual_point &point_;
};
} // namespace punctual

#define PUNCTUAL_SCOPE_AT_(site, guard) ::punctual::scope guard(site)

#else

PUNCTUAL_INLINE_ void punctual_testpoint_scope_end(
    struct punctual_point **point) {
    punctual_testpoint_pass(*point, PUNCTUAL_KIND_END, 0, 0);
}

#define PUNCTUAL_SCOPE_AT_(site, guard)                                  \
    __attribute__((cleanup(punctual_testpoint_scope_end), unused))       \
    struct punctual_point *guard = &site;                                \
    punctual_testpoint_pass(guard, PUNCTUAL_KIND_BEGIN, 0, 0)

#endif
#endif
#endif
