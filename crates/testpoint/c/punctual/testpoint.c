/* Test points: what the header's fast path leaves aside. Copy this file and testpoint.h into a
 * program, compile it with the rest (`cc -std=gnu11 -pthread`), and `punctual trace` finds the
 * program's points. It needs Linux, GCC or Clang, and nothing else.
 *
 * The record is a file of the process, mapped by its threads: docs/reference/testpoints.md has its
 * format and crates/testpoint/src/layout.rs the same in Rust. All of this may run in a signal
 * handler, also in one that interrupted it: no allocation, no lock, `errno` kept.
 *
 * Licensed under MIT or Apache-2.0, at your option. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "testpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

/* The layout of the file -------------------------------------------------------------------- */

typedef struct punctual_testpoint_control Control;
typedef struct punctual_testpoint_ring Ring;

/* An entry of the table of names; the id of a point is its place in the table plus one. */
typedef struct {
    uint32_t length; /* written last: 0 is an entry that is not ready */
    uint32_t reserved;
    char bytes[120];
} Name;

#define MAGIC_BYTES "PNCTLPT1"
enum {
    VERSION = 1,
    ALIGN = 65536, /* the largest page size of any supported machine */
    NAMES_AT = ALIGN,
    NAMES_MAX = 1023,
    NAMES_BYTES = 2 * ALIGN,
    RINGS_AT = NAMES_AT + NAMES_BYTES,
    RINGS_MAX = 256,
    SLOTS_AT = 4096,
    SLOTS_DEFAULT = 32768,
    SLOTS_MIN = 1024,
    SLOTS_MAX = 1 << 22,
    /* Slots kept free in a full ring: a signal handler may record between its thread's look at the
     * limit and the reservation of a slot; one for every signal there is. */
    MARGIN = 64,
    ID_UNNAMED = 0xffffff,
};
enum { CLOCK_OF_TSC = 1, CLOCK_OF_CNTVCT = 2, CLOCK_OF_MONOTONIC = 3 };
enum { RING_LIVE = 1, RING_ENDED = 2, RING_FREE = 3, RING_CLAIMED = 4 };
static const char suffix[] = ".points";

_Static_assert(sizeof(Control) == PUNCTUAL_CONTROL_PAGE, "the control page");
_Static_assert(offsetof(Control, recording) == 12, "the control page");
_Static_assert(offsetof(Control, ringless) == 128, "the control page");
_Static_assert(offsetof(Ring, head) == 64, "a ring");
_Static_assert(offsetof(Ring, limit) == 128, "a ring");
_Static_assert(offsetof(Ring, slots) == SLOTS_AT, "a ring");
_Static_assert(sizeof(struct punctual_testpoint_slot) == 32, "a slot");
_Static_assert(sizeof(Name) == 128, "a name");
_Static_assert((NAMES_MAX + 1) * sizeof(Name) == NAMES_BYTES, "the table of names");
_Static_assert(sizeof(off_t) == 8, "compile with -D_FILE_OFFSET_BITS=64");

/* Other threads, and collectors, write meanwhile. */
#define LOAD(place) __atomic_load_n(place, __ATOMIC_RELAXED)
#define STORE(place, value) __atomic_store_n(place, value, __ATOMIC_RELAXED)
#define LOAD_ACQUIRE(place) __atomic_load_n(place, __ATOMIC_ACQUIRE)
#define STORE_RELEASE(place, value) __atomic_store_n(place, value, __ATOMIC_RELEASE)

static uint64_t ring_bytes(uint32_t slots) {
    uint64_t bytes = SLOTS_AT + (uint64_t)slots * sizeof(struct punctual_testpoint_slot);
    return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

/* What the fast path reads ------------------------------------------------------------------ */

Control punctual_testpoint_control;
/* Without room: a thread without a ring takes the slow path. */
static Ring no_ring;
__thread Ring *punctual_testpoint_ring = &no_ring;

/* The process ------------------------------------------------------------------------------- */

enum refusal {
    RECORDS,
    NOT_STARTED,
    SWITCHED_OFF,
    NO_DIRECTORY,
    NOT_PRIVATE,
    NO_FILE,
    NO_SPACE,
    PAGE_SIZE,
    BAD_SETTING,
};

static const char *const refusals[] = {
    [NOT_STARTED] = "the library was not started: its constructor did not run",
    [SWITCHED_OFF] = "PUNCTUAL_POINTS=off",
    [NO_DIRECTORY] = "no directory for points: /run/punctual/points (root), "
                     "$XDG_RUNTIME_DIR/punctual/points; PUNCTUAL_POINTS_DIR names another",
    [NOT_PRIVATE] = "the directory for points belongs to another user or is open to others: "
                    "it must be the user's own, mode 0700",
    [NO_FILE] = "the file of points could not be made",
    [NO_SPACE] = "no space for the file of points (the file system is full, cannot allocate, "
                 "or ulimit -f is too low)",
    [PAGE_SIZE] = "this kernel's pages are larger than the library was built for",
    [BAD_SETTING] = "a setting was not understood: PUNCTUAL_POINTS (on, off, stream, flight), "
                    "PUNCTUAL_POINTS_SLOTS (a number), PUNCTUAL_POINTS_CLOCK (monotonic)",
};

/* Written before there are other threads, and in the child of a fork, which has one; `names` and
 * `rings` by every thread. */
static struct {
    enum refusal refusal;
    bool ready; /* the control page is mapped */
    char path[512];
    dev_t device;
    ino_t inode;
    Name *names;
    Ring *rings[RINGS_MAX]; /* those that threads of this process write */
    pthread_key_t thread_key;
    bool has_thread_key;
} process = {.refusal = NOT_STARTED};

static Control *control(void) {
    return LOAD_ACQUIRE(&process.ready) ? &punctual_testpoint_control : NULL;
}

/* System calls, without allocation ---------------------------------------------------------- */

/* A path or a name, put together without allocation. One that does not fit gives no string. */
struct text {
    char bytes[512];
    size_t length;
};

static void append_bytes(struct text *text, const char *bytes, size_t count) {
    if (count >= sizeof text->bytes - text->length) {
        text->length = sizeof text->bytes;
        return;
    }
    memcpy(text->bytes + text->length, bytes, count);
    text->length += count;
    text->bytes[text->length] = 0;
}

static void append(struct text *text, const char *string) {
    append_bytes(text, string, strlen(string));
}

static void append_number(struct text *text, uint64_t number) {
    char digits[20];
    size_t first = sizeof digits;
    do digits[--first] = (char)('0' + number % 10);
    while ((number /= 10) > 0);
    append_bytes(text, digits + first, sizeof digits - first);
}

static const char *string_of(const struct text *text) {
    return text->length < sizeof text->bytes ? text->bytes : NULL;
}

/* Reads digits and nothing else; false where there are none, others, or too many. */
static bool parse_number(const char *digits, size_t count, uint64_t *number) {
    *number = 0;
    for (size_t i = 0; i < count; i++) {
        if (digits[i] < '0' || digits[i] > '9') return false;
        uint64_t digit = (uint64_t)(digits[i] - '0');
        if (*number > (UINT64_MAX - digit) / 10) return false;
        *number = *number * 10 + digit;
    }
    return count > 0;
}

static int open_at(int directory, const char *path, int flags) {
    return path ? openat(directory, path, flags | O_CLOEXEC | O_NOCTTY, 0600) : -1;
}

/* Reads the beginning of a file: the bytes read, or -1. */
static ssize_t read_file(const char *path, char *buffer, size_t size) {
    int file = open_at(AT_FDCWD, path, O_RDONLY);
    if (file < 0) return -1;
    ssize_t count = read(file, buffer, size);
    close(file);
    return count;
}

/* Makes sure that writing to this part of a file cannot fail for lack of space. */
static bool allocate(int file, uint64_t at, uint64_t length) {
    struct rlimit limit;
    /* Beyond it the kernel would send SIGXFSZ. */
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < at + length) return false;
    return fallocate(file, 0, (off_t)at, (off_t)length) == 0;
}

/* Maps a part of a file and touches each page; at `place` if that is not null. */
static void *map(int file, uint64_t at, uint64_t length, void *place) {
    int flags = MAP_SHARED | (place ? MAP_FIXED : 0);
    unsigned char *start = mmap(place, length, PROT_READ | PROT_WRITE, flags, file, (off_t)at);
    if (start == MAP_FAILED) return NULL;
    for (uint64_t offset = 0; offset < length; offset += 4096) {
        /* Makes the page present and writable, and loses nothing that another thread writes. */
        unsigned char value = LOAD(start + offset);
        __atomic_compare_exchange_n(start + offset, &value, value, false, __ATOMIC_RELAXED,
                                    __ATOMIC_RELAXED);
    }
    /* Against being swapped out, where the limits allow it. */
    mlock(start, length);
    return start;
}

static sigset_t block_signals(void) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    return before;
}

static void restore_signals(const sigset_t *before) {
    pthread_sigmask(SIG_SETMASK, before, NULL);
}

static void read_comm(uint64_t comm[2]) {
    char name[16] = {0};
    uint64_t words[2];
    prctl(PR_GET_NAME, name);
    memcpy(words, name, sizeof words);
    STORE(&comm[0], words[0]);
    STORE(&comm[1], words[1]);
}

/* The clock --------------------------------------------------------------------------------- */

static int64_t read_monotonic(void) {
    struct timespec time = {0, 0};
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

/* The counter where the kernel itself trusts it: the CPU calls it invariant, and the kernel uses it
 * as clocksource (it gives it up otherwise: arch/x86/kernel/tsc.c, kernel/time/clocksource.c). */
static uint32_t choose_clock(void) {
#if defined(__aarch64__)
    return CLOCK_OF_CNTVCT;
#elif defined(__x86_64__)
    static const char *const file =
        "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    char source[64];
    unsigned a, b, c, d = 0;
    bool invariant = __get_cpuid(0x80000007, &a, &b, &c, &d) && (d & 1u << 8);
    ssize_t count = read_file(file, source, sizeof source);
    bool in_use = count == 4 && memcmp(source, "tsc\n", 4) == 0;
    return invariant && in_use ? CLOCK_OF_TSC : CLOCK_OF_MONOTONIC;
#else
    return CLOCK_OF_MONOTONIC;
#endif
}

/* The counter, read neither before what stands before nor after what stands behind. */
static uint64_t read_ticks_in_order(void) {
#if defined(__x86_64__)
    __asm__ volatile("lfence" ::: "memory");
    uint64_t ticks = punctual_testpoint_ticks();
    __asm__ volatile("lfence" ::: "memory");
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory");
    uint64_t ticks = punctual_testpoint_ticks();
    __asm__ volatile("isb" ::: "memory");
#else
    uint64_t ticks = punctual_testpoint_ticks();
#endif
    return ticks;
}

/* Both clocks at the same time: of several readings the one that the counter brackets closest. */
static void pair_clocks(Control *page) {
    uint64_t best = UINT64_MAX;
    for (int i = 0; i < 10; i++) {
        uint64_t before = read_ticks_in_order();
        int64_t monotonic = read_monotonic();
        uint64_t apart = read_ticks_in_order() - before, error = apart / 2 + apart % 2;
        if (error >= best) continue;
        best = error;
        STORE(&page->pair_ticks, before + error);
        STORE(&page->pair_monotonic, monotonic);
        STORE(&page->pair_error, error);
    }
}

/* Where files of points live ---------------------------------------------------------------- */

/* Opens a directory that belongs to the user and gives others none of the rights in `forbidden`,
 * made if need be. No symbolic link is followed. */
static enum refusal enter(int parent, const char *name, mode_t forbidden, int *directory) {
    struct stat stat;
    if (!name) return NO_DIRECTORY;
    /* If it is there already, that is as good. */
    if (mkdirat(parent, name, 0700) != 0 && errno != EEXIST) return NO_DIRECTORY;
    *directory = open_at(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    if (*directory < 0) return NO_DIRECTORY;
    if (fstat(*directory, &stat) == 0 && stat.st_uid == geteuid() && !(stat.st_mode & forbidden))
        return RECORDS;
    close(*directory);
    return NOT_PRIVATE;
}

/* $PUNCTUAL_POINTS_DIR, else /run/punctual/points for root, else $XDG_RUNTIME_DIR/punctual/points,
 * else /run/user/UID/punctual/points. */
static enum refusal open_directory(struct text *path, int *directory) {
    const char *chosen = secure_getenv("PUNCTUAL_POINTS_DIR");
    const char *runtime = secure_getenv("XDG_RUNTIME_DIR");
    if (chosen && *chosen) {
        append(path, chosen);
        return enter(AT_FDCWD, string_of(path), 077, directory);
    }
    if (geteuid() == 0) {
        append(path, "/run");
    } else if (runtime && *runtime == '/') {
        append(path, runtime);
    } else {
        append(path, "/run/user/");
        append_number(path, geteuid());
    }
    int between, base = open_at(AT_FDCWD, string_of(path), O_PATH | O_DIRECTORY);
    append(path, "/punctual/points");
    if (base < 0) return NO_DIRECTORY;
    enum refusal refusal = enter(base, "punctual", 022, &between);
    close(base);
    if (refusal != RECORDS) return refusal;
    refusal = enter(between, "points", 077, directory);
    close(between);
    return refusal;
}

/* Whether a collector records in this directory: it holds a lock, which goes with it. */
static bool is_collected(int directory) {
    int file = open_at(directory, ".collector", O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    if (file < 0) return false;
    /* A lock that was free is given back when the file closes. */
    bool held = flock(file, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    close(file);
    return held;
}

/* When a process began, field 22 of /proc/PID/stat; 0 if there is no such process, or no /proc. */
static uint64_t read_start_time(uint64_t pid) {
    struct text path = {{0}, 0};
    char stat[1024];
    append(&path, "/proc/");
    append_number(&path, pid);
    append(&path, "/stat");
    ssize_t count = read_file(string_of(&path), stat, sizeof stat);
    /* The name, field 2, is in parentheses and may hold anything; field 3 follows the last. */
    char *field = count > 0 ? memrchr(stat, ')', (size_t)count) : NULL;
    if (!field) return 0;
    char *end = stat + count;
    for (int i = 0; i < 20; i++) {
        field = memchr(field + 1, ' ', (size_t)(end - field - 1));
        if (!field) return 0;
    }
    char *behind = memchr(field + 1, ' ', (size_t)(end - field - 1));
    uint64_t start;
    size_t digits = (size_t)((behind ? behind : end) - field - 1);
    return parse_number(field + 1, digits, &start) ? start : 0;
}

/* PID and start time in a file's name, PID.START.N.points. */
static bool parse_owner(const char *name, uint64_t *pid, uint64_t *start) {
    size_t length = strlen(name), end = sizeof suffix - 1;
    if (length < end || strcmp(name + length - end, suffix) != 0) return false;
    const char *first = strchr(name, '.'), *second = first ? strchr(first + 1, '.') : NULL;
    if (!second) return false;
    return parse_number(name, (size_t)(first - name), pid) && *pid <= UINT32_MAX &&
           parse_number(first + 1, (size_t)(second - first - 1), start);
}

enum {
    KEPT = 16,       /* files of dead processes that are kept for a reader */
    SWEPT_MAX = 64,  /* files that one sweep examines */
};

enum left { LEFT_FOREIGN, LEFT_NOTHING, LEFT_POINTS };

/* What a dead process left in its file. Another PID namespace's is not ours to judge. */
static enum left examine(int directory, const char *name, uint64_t pid_namespace, time_t *changed) {
    uint32_t head[34]; /* as far as the control page is used */
    struct stat stat;
    int file = open_at(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    if (file < 0) return LEFT_FOREIGN;
    bool known = fstat(file, &stat) == 0 && pread(file, head, sizeof head, 0) == sizeof head;
    close(file);
    if (!known) return LEFT_FOREIGN;
    uint64_t its_namespace;
    memcpy(&its_namespace, (char *)head + offsetof(Control, pid_namespace), sizeof its_namespace);
    if (its_namespace != pid_namespace) return LEFT_FOREIGN;
    *changed = stat.st_mtime;
    return head[offsetof(Control, rings_used) / 4] == 0 ? LEFT_NOTHING : LEFT_POINTS;
}

/* Removes what dead processes left: files without any point, and the oldest of more than KEPT with
 * points. Without this, a program that forks and executes all day would fill /run. */
static void sweep(int directory, uint64_t pid_namespace) {
    _Alignas(8) char entries[4096];
    struct text oldest = {{0}, 0};
    time_t oldest_changed = 0;
    int examined = 0, kept = 0;
    lseek(directory, 0, SEEK_SET); /* a second sweep begins where the first did */
    for (;;) {
        long filled = syscall(SYS_getdents64, directory, entries, sizeof entries);
        if (filled <= 0) break;
        /* struct linux_dirent64, getdents(2): the length at 16, the name at 19. */
        uint16_t length;
        for (long at = 0; at < filled; at += length) {
            const char *name = entries + at + 19;
            uint64_t pid, start;
            time_t changed = 0;
            memcpy(&length, entries + at + 16, sizeof length);
            if (length == 0) break;
            if (!parse_owner(name, &pid, &start)) continue;
            if (++examined > SWEPT_MAX) break;
            if (start == 0 || read_start_time(pid) == start) continue;
            switch (examine(directory, name, pid_namespace, &changed)) {
            case LEFT_FOREIGN: break;
            case LEFT_NOTHING: unlinkat(directory, name, 0); break;
            case LEFT_POINTS:
                if (kept++ > 0 && changed >= oldest_changed) break;
                oldest_changed = changed;
                oldest.length = 0;
                append(&oldest, name);
            }
        }
        if (examined > SWEPT_MAX) break;
    }
    if (kept > KEPT && string_of(&oldest)) unlinkat(directory, string_of(&oldest), 0);
}

/* Threads ----------------------------------------------------------------------------------- */

/* This thread's ring and its number; `refused`: there is none for it, or the thread is ending. */
static __thread struct {
    Ring *ring;
    uint32_t number;
    bool refused;
} mine __attribute__((tls_model("initial-exec")));

/* Opens the file again. No descriptor is kept: programs close those that they do not know, and open
 * others under the same number. */
static int reopen(void) {
    struct stat stat;
    int file = open_at(AT_FDCWD, process.path, O_RDWR | O_NOFOLLOW | O_NONBLOCK);
    if (file < 0) return -1;
    if (fstat(file, &stat) == 0 && stat.st_dev == process.device && stat.st_ino == process.inode)
        return file;
    close(file);
    return -1;
}

static bool map_names(int file) {
    if (LOAD_ACQUIRE(&process.names)) return true;
    if (!allocate(file, NAMES_AT, NAMES_BYTES)) return false;
    Name *none = NULL, *table = map(file, NAMES_AT, NAMES_BYTES, NULL);
    if (!table) return false;
    if (!__atomic_compare_exchange_n(&process.names, &none, table, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_RELAXED))
        munmap(table, NAMES_BYTES);
    return true;
}

static uint64_t place_of(const Control *page, uint32_t number) {
    return RINGS_AT + (uint64_t)number * ring_bytes(LOAD(&page->ring_slots));
}

static Ring *map_ring(const Control *page, int file, uint32_t number) {
    return map(file, place_of(page, number), ring_bytes(LOAD(&page->ring_slots)), NULL);
}

/* One more of at most `most`: the count before, or `most`. */
static uint32_t claim(uint32_t *count, uint32_t most) {
    uint32_t used = LOAD(count);
    while (used < most && !__atomic_compare_exchange_n(count, &used, used + 1, true,
                                                       __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {}
    return used < most ? used : most;
}

/* A ring whose thread has ended and whose collector is done with it. */
static Ring *reuse_ring(Control *page, int file, uint32_t *number) {
    uint32_t used = LOAD(&page->rings_used);
    for (uint32_t i = 0; i < used && i < RINGS_MAX; i++) {
        uint32_t state, free = RING_FREE;
        if (pread(file, &state, sizeof state, (off_t)place_of(page, i)) != sizeof state) continue;
        if (state != RING_FREE) continue;
        Ring *ring = map_ring(page, file, i);
        if (!ring) continue;
        *number = i;
        if (__atomic_compare_exchange_n(&ring->state, &free, RING_CLAIMED, false, __ATOMIC_ACQUIRE,
                                        __ATOMIC_RELAXED))
            return ring;
        munmap(ring, ring_bytes(LOAD(&page->ring_slots)));
    }
    return NULL;
}

static Ring *add_ring(Control *page, int file, uint32_t *number) {
    *number = claim(&page->rings_used, RINGS_MAX);
    if (*number == RINGS_MAX) return NULL;
    if (!allocate(file, place_of(page, *number), ring_bytes(LOAD(&page->ring_slots)))) return NULL;
    return map_ring(page, file, *number);
}

static Ring *take_ring(Control *page, uint32_t *number) {
    int file = reopen();
    if (file < 0) return NULL;
    Ring *ring = NULL;
    if (map_names(file) && !(ring = reuse_ring(page, file, number)))
        ring = add_ring(page, file, number);
    close(file);
    if (!ring) return NULL;
    uint32_t slots = LOAD(&page->ring_slots);
    bool flight = LOAD(&page->mode) == PUNCTUAL_FLIGHT;
    __atomic_fetch_add(&ring->generation, 1, __ATOMIC_RELAXED);
    STORE(&ring->tid, (uint32_t)syscall(SYS_gettid));
    STORE(&ring->slot_count, slots);
    STORE(&ring->mask, (uint64_t)slots - 1);
    read_comm(ring->comm);
    STORE(&ring->read, 0);
    STORE(&ring->reported, 0);
    STORE(&ring->dropped, 0);
    STORE(&ring->head, 0);
    STORE(&ring->limit, flight ? UINT64_MAX : (uint64_t)slots - MARGIN);
    STORE_RELEASE(&ring->state, RING_LIVE);
    STORE_RELEASE(&process.rings[*number], ring);
    return ring;
}

static void watch_thread_end(uintptr_t round) {
    if (process.has_thread_key) pthread_setspecific(process.thread_key, (void *)round);
}

/* This thread's ring, made now if there is none. */
static Ring *ring_of_thread(Control *page) {
    if (mine.ring || mine.refused) return mine.refused ? NULL : mine.ring;
    /* A handler that came in between would find half a ring. */
    sigset_t signals = block_signals();
    mine.ring = take_ring(page, &mine.number);
    mine.refused = !mine.ring;
    if (mine.ring) {
        watch_thread_end(1);
        /* The fast path knows how to read a counter, and no other clock. */
        if (LOAD(&page->clock) != CLOCK_OF_MONOTONIC) punctual_testpoint_ring = mine.ring;
    }
    restore_signals(&signals);
    return mine.ring;
}

/* The destructor of the thread's value. Other destructors may still record, so this waits for the
 * last of the rounds in which they are called (PTHREAD_DESTRUCTOR_ITERATIONS is 4). */
static void end_thread(void *round) {
    if ((uintptr_t)round < 4) {
        watch_thread_end((uintptr_t)round + 1);
        return;
    }
    Control *page = control();
    Ring *ring = mine.ring;
    mine.refused = true;
    if (!page || !ring) return;
    sigset_t signals = block_signals();
    mine.ring = NULL;
    punctual_testpoint_ring = &no_ring;
    STORE(&process.rings[mine.number], NULL);
    STORE_RELEASE(&ring->state, RING_ENDED);
    munmap(ring, ring_bytes(LOAD(&page->ring_slots)));
    restore_signals(&signals);
}

/* Names and points -------------------------------------------------------------------------- */

static uint32_t find_name(const Control *page, const Name *table, const char *name, size_t length) {
    uint32_t used = LOAD(&page->names_used);
    for (uint32_t i = 0; i < used && i < NAMES_MAX; i++) {
        if (LOAD_ACQUIRE(&table[i].length) == length && memcmp(table[i].bytes, name, length) == 0)
            return i + 1;
    }
    return 0;
}

static uint32_t enter_name(Control *page, Name *table, const char *name, size_t length) {
    uint32_t place = claim(&page->names_used, NAMES_MAX);
    if (place == NAMES_MAX) {
        __atomic_fetch_add(&page->names_refused, 1, __ATOMIC_RELAXED);
        return ID_UNNAMED;
    }
    memcpy(table[place].bytes, name, length);
    /* A name of no bytes would look like an entry that is not ready. */
    STORE_RELEASE(&table[place].length, length ? (uint32_t)length : 1);
    return place + 1;
}

/* Gives a site the number of its name. Two threads that do this for one site at once may enter the
 * name twice; both numbers then mean it. */
static uint32_t register_site(Control *page, struct punctual_point *point) {
    Name *table = LOAD_ACQUIRE(&process.names);
    if (!table) return ID_UNNAMED;
    const char *name = point->name ? point->name : "";
    size_t length = strnlen(name, sizeof table->bytes);
    uint32_t earlier = 0, id = find_name(page, table, name, length);
    if (!id) id = enter_name(page, table, name, length);
    return __atomic_compare_exchange_n(&point->id, &earlier, id, false, __ATOMIC_RELAXED,
                                       __ATOMIC_RELAXED)
               ? id
               : earlier;
}

/* Records a point, or counts it as dropped: the first of a thread, the first pass of a site, one
 * that finds the ring full, one whose clock is no counter. */
void punctual_testpoint_slow(struct punctual_point *point, uint32_t bits, int64_t a, int64_t b) {
    int kept_errno = errno;
    Control *page = control();
    Ring *ring = page ? ring_of_thread(page) : NULL;
    if (ring) {
        uint32_t id = LOAD(&point->id);
        if (!id) id = register_site(page, point);
        if (LOAD(&ring->head) < LOAD(&ring->limit)) {
            bool counter = LOAD(&page->clock) != CLOCK_OF_MONOTONIC;
            uint64_t at = counter ? punctual_testpoint_ticks() : (uint64_t)read_monotonic();
            punctual_testpoint_put(ring, at, id | bits, a, b);
        } else {
            __atomic_fetch_add(&ring->dropped, 1, __ATOMIC_RELAXED);
        }
    } else if (page) {
        __atomic_fetch_add(&page->ringless, 1, __ATOMIC_RELAXED);
    }
    errno = kept_errno;
}

/* The file of the process ------------------------------------------------------------------- */

struct settings {
    uint32_t mode, slots, clock;
};

static enum refusal read_settings(struct settings *settings) {
    const char *mode = secure_getenv("PUNCTUAL_POINTS");
    const char *slots = secure_getenv("PUNCTUAL_POINTS_SLOTS");
    const char *clock = secure_getenv("PUNCTUAL_POINTS_CLOCK");
    uint64_t wanted = SLOTS_DEFAULT;
    if (!mode || !*mode || !strcmp(mode, "on")) settings->mode = PUNCTUAL_ON_DEMAND;
    else if (!strcmp(mode, "stream")) settings->mode = PUNCTUAL_STREAM;
    else if (!strcmp(mode, "flight")) settings->mode = PUNCTUAL_FLIGHT;
    else return strcmp(mode, "off") ? BAD_SETTING : SWITCHED_OFF;
    if (slots && *slots && (!parse_number(slots, strlen(slots), &wanted) || wanted > UINT32_MAX))
        return BAD_SETTING;
    for (settings->slots = SLOTS_MIN; settings->slots < wanted && settings->slots < SLOTS_MAX;)
        settings->slots *= 2;
    if (!clock || !*clock) settings->clock = choose_clock();
    else if (!strcmp(clock, "monotonic")) settings->clock = CLOCK_OF_MONOTONIC;
    else return BAD_SETTING;
    return RECORDS;
}

/* One process has several files if it holds the library twice, or executed another program. */
static int create_file(int directory, struct text *path, uint64_t pid, uint64_t start) {
    for (uint64_t attempt = 0; attempt < 64; attempt++) {
        struct text name = {{0}, 0};
        append_number(&name, pid);
        append(&name, ".");
        append_number(&name, start);
        append(&name, ".");
        append_number(&name, attempt);
        append(&name, suffix);
        int file = open_at(directory, string_of(&name), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW);
        if (file >= 0) {
            append(path, "/");
            append(path, name.bytes);
            if (string_of(path)) return file;
            close(file);
            unlinkat(directory, name.bytes, 0);
            return -1;
        }
        if (errno != EEXIST) return -1;
    }
    return -1;
}

/* Makes the file in this directory, maps its control page, and writes what a reader needs. */
static enum refusal make_file(int directory, struct text *path, const struct settings *settings) {
    Control *page = &punctual_testpoint_control;
    struct stat stat;
    uint64_t pid = (uint64_t)getpid(), pid_namespace = 0, magic;
    if (fstatat(AT_FDCWD, "/proc/self/ns/pid", &stat, 0) == 0) pid_namespace = stat.st_ino;
    sweep(directory, pid_namespace);
    uint64_t start = read_start_time(pid);
    int file = create_file(directory, path, pid, start);
    if (file < 0) return NO_FILE;
    bool space = allocate(file, 0, PUNCTUAL_CONTROL_PAGE);
    bool mapped = space && fstat(file, &stat) == 0 && map(file, 0, PUNCTUAL_CONTROL_PAGE, page);
    close(file);
    if (!mapped) {
        unlink(path->bytes);
        return space ? NO_FILE : NO_SPACE;
    }
    memcpy(process.path, path->bytes, sizeof process.path);
    process.device = stat.st_dev;
    process.inode = stat.st_ino;
    STORE_RELEASE(&process.ready, true);
    STORE(&page->version, VERSION);
    STORE(&page->pid, (uint32_t)pid);
    STORE(&page->start_time, start);
    STORE(&page->pid_namespace, pid_namespace);
    STORE(&page->ring_slots, settings->slots);
    STORE(&page->clock, settings->clock);
    read_comm(page->comm);
    if (settings->clock != CLOCK_OF_MONOTONIC) pair_clocks(page);
    if (is_collected(directory)) {
        STORE(&page->mode, PUNCTUAL_STREAM);
        STORE(&page->recording, 1);
    }
    memcpy(&magic, MAGIC_BYTES, sizeof magic);
    STORE_RELEASE(&page->magic, magic);
    if (settings->mode) punctual_testpoint_record((int)settings->mode);
    return RECORDS;
}

static enum refusal make_file_of_user(const struct settings *settings) {
    struct text path = {{0}, 0};
    int directory;
    enum refusal refusal = open_directory(&path, &directory);
    if (refusal != RECORDS) return refusal;
    refusal = make_file(directory, &path, settings);
    close(directory);
    return refusal;
}

/* A fork ------------------------------------------------------------------------------------ */

static __thread sigset_t signals_of_fork __attribute__((tls_model("initial-exec")));

/* In the child a handler that records before `in_child` is through would write the parent's ring:
 * no signal comes before. */
static void before_fork(void) {
    signals_of_fork = block_signals();
}

static void after_fork(void) {
    restore_signals(&signals_of_fork);
}

static bool copy_names(const Name *from, uint32_t used, uint32_t refused) {
    Control *page = control();
    int file = reopen();
    bool mapped = file >= 0 && map_names(file);
    if (file >= 0) close(file);
    if (!page || !mapped) return false;
    if (used > NAMES_MAX) used = NAMES_MAX;
    for (uint32_t i = 0; i < used; i++) {
        memcpy(process.names[i].bytes, from[i].bytes, sizeof from[i].bytes);
        STORE_RELEASE(&process.names[i].length, LOAD(&from[i].length));
    }
    STORE(&page->names_refused, refused);
    STORE_RELEASE(&page->names_used, used);
    return true;
}

/* A file of the child's own, with the names that its sites already have numbers of. */
static void renew_file(void) {
    Control *page = control();
    if (!page) return;
    bool recording = LOAD(&page->recording) != 0;
    uint32_t mode = LOAD(&page->mode), requested = LOAD(&page->requested);
    uint32_t used = LOAD(&page->names_used), refused = LOAD(&page->names_refused);
    struct settings settings = {0, LOAD(&page->ring_slots), LOAD(&page->clock)};
    Name *names = process.names;
    mine.ring = NULL;
    mine.refused = false;
    punctual_testpoint_ring = &no_ring;
    for (uint32_t i = 0; i < RINGS_MAX; i++) {
        if (process.rings[i]) munmap(process.rings[i], ring_bytes(settings.slots));
        process.rings[i] = NULL;
    }
    process.names = NULL;
    enum refusal made = make_file_of_user(&settings);
    if (made == RECORDS && names && !copy_names(names, used, refused)) made = NO_SPACE;
    if (names) munmap(names, NAMES_BYTES);
    if (made == RECORDS) {
        if (!recording) return;
        STORE(&page->requested, requested);
        STORE(&page->mode, mode);
        STORE(&page->recording, 1);
        return;
    }
    /* Its page must no longer be the parent's. */
    mmap(page, PUNCTUAL_CONTROL_PAGE, PROT_READ | PROT_WRITE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    process.ready = false;
    process.refusal = made;
}

static void in_child(void) {
    int kept_errno = errno;
    renew_file();
    errno = kept_errno;
    after_fork();
}

/* From the beginning to the end ------------------------------------------------------------- */

static void end_process(void) {
    Control *page = control();
    if (page) STORE_RELEASE(&page->ended, 1);
}

__attribute__((constructor)) static void start(void) {
    int kept_errno = errno;
    struct settings settings;
    enum refusal refusal = read_settings(&settings);
    if (refusal == RECORDS && sysconf(_SC_PAGESIZE) > PUNCTUAL_CONTROL_PAGE) refusal = PAGE_SIZE;
    if (refusal == RECORDS) refusal = make_file_of_user(&settings);
    if (refusal == RECORDS) {
        process.has_thread_key = pthread_key_create(&process.thread_key, end_thread) == 0;
        pthread_atfork(before_fork, after_fork, in_child);
        atexit(end_process);
    }
    process.refusal = refusal;
    errno = kept_errno;
}

int punctual_testpoint_record(int mode) {
    Control *page = control();
    if (mode < PUNCTUAL_ON_DEMAND || mode > PUNCTUAL_FLIGHT) return -1;
    if (!page) return 0;
    STORE(&page->requested, (uint32_t)mode);
    if (mode == PUNCTUAL_ON_DEMAND) {
        STORE(&page->recording, 0);
        return 0;
    }
    STORE(&page->mode, (uint32_t)mode);
    for (uint32_t i = 0; i < RINGS_MAX; i++) {
        /* Mapped until its thread ends, which takes it out first. */
        Ring *ring = LOAD_ACQUIRE(&process.rings[i]);
        if (!ring) continue;
        uint64_t room = LOAD(&ring->mask) + 1 - MARGIN;
        STORE(&ring->limit, mode == PUNCTUAL_FLIGHT ? UINT64_MAX : LOAD(&ring->read) + room);
    }
    STORE_RELEASE(&page->recording, 1);
    return 0;
}

const char *punctual_testpoint_path(void) {
    return process.refusal == RECORDS ? process.path : NULL;
}

const char *punctual_testpoint_refusal(void) {
    return refusals[process.refusal];
}
