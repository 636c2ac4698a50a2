/* The loop of `heap`: malloc, first touch, free, a reading of the clock on either side of each.

   It is compiled twice: as a small program that is linked dynamically, so that it meets the
   allocator that the programs of this machine meet and LD_PRELOAD has its effect (HEAP_PROGRAM),
   and into punctual itself, for machines without a dynamic loader.

   What it shall do and what it did stand in memory that it shares with punctual (`shared_memory.rs`
   has the same two structures). They take turns: while this side measures, the other waits, and the
   other way round. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <stdint.h>
#include <stdlib.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { TOUCH = 1, FRESH = 2, LOCK = 4, SMALL_PAGES = 8, END = 16, ONE_CPU = 32 };

struct head {
    uint32_t turn; /* 0: punctual's, 1: this side's; a futex */
    uint32_t stop; /* ends a batch after the round in hand */
    uint32_t flags;
    uint32_t error; /* errno of what ended the batch early */
    uint64_t layout;
    uint64_t page;
    uint64_t blocks; /* of the batch */
    uint64_t round;  /* blocks that are allocated, then touched, then freed */
    int64_t due;     /* when the first begins, with a period */
    int64_t period;  /* 0: one follows the other */
    int64_t burst;   /* but for the first, no round begins so long after the batch began */
    int64_t until;   /* no round begins at or after this instant */
    int64_t limit;   /* an interval longer than this ends the batch */
    uint64_t done;   /* blocks */
    uint64_t failed; /* malloc returned NULL */
    uint64_t skipped; /* periods */
    int64_t spent;   /* ns in rounds, without sleep */
    uint64_t faults; /* page faults in rounds */
    int64_t cpu_time; /* ns of CPU in rounds of more than one block, without what others ran */
    uint64_t malloc_at;
    uint64_t free_at;
    char libc[32];
};

struct block {
    uint64_t size;
    uint64_t visit; /* which block of the round is touched at this place */
    uint64_t at;
    int64_t malloc_begin, malloc_end;
    int64_t touch_begin, touch_end;
    int64_t free_begin, free_end;
    uint64_t cpu;
};

static int64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

/* In slices, so that a stop is seen during long periods. */
static void sleep_until(struct head *head, int64_t due)
{
    const int64_t slice = 100000000;
    for (;;) {
        int64_t left = due - now();
        if (left <= 0 || __atomic_load_n(&head->stop, __ATOMIC_RELAXED))
            return;
        int64_t at = left > slice ? due - left + slice : due;
        struct timespec until = { .tv_sec = at / 1000000000, .tv_nsec = at % 1000000000 };
        syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
    }
}

static int64_t cpu_time(void)
{
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

static uint64_t faults(int who)
{
    struct rusage usage;
    getrusage(who, &usage);
    return usage.ru_minflt + usage.ru_majflt;
}

/* In a function of its own, so that it is the same code wherever it is timed. */
static inline void touch(volatile char *at, uint64_t size, uint64_t page)
{
    for (uint64_t offset = 0; offset < size; offset += page)
        at[offset] = 1;
    /* Where the block does not begin with a page its end may lie in one more. */
    at[size - 1] = 1;
}

/* A round of one block, with nothing in memory between its readings of the clock: this is the round
 * that costs least, and every ns shows. */
static int one_block(struct head *head, struct block *block)
{
    const uint64_t page = head->page, size = block->size;
    const int64_t limit = head->limit;
    const uint32_t flags = head->flags;
    int64_t touch_begin = 0, touch_end = 0;
    int64_t malloc_begin = now();
    char *at = malloc(size);
    int64_t malloc_end = now();
    if (!at) {
        head->failed++;
        return 1;
    }
    const uint64_t where = (uint64_t)(uintptr_t)at;
    if (flags & TOUCH) {
        touch_begin = now();
        touch(at, size, page);
        touch_end = now();
    }
    int64_t free_begin = now();
    free(at);
    int64_t free_end = now();
    block->at = where;
    block->malloc_begin = malloc_begin;
    block->malloc_end = malloc_end;
    block->touch_begin = touch_begin;
    block->touch_end = touch_end;
    block->free_begin = free_begin;
    block->free_end = free_end;
    if (!(flags & ONE_CPU))
        block->cpu = (uint64_t)sched_getcpu();
    head->done++;
    return (malloc_end - malloc_begin > limit) | (touch_end - touch_begin > limit) |
           (free_end - free_begin > limit);
}

/* Whether an interval was longer than the limit; the blocks that it has done are in `done`. */
static int one_round(struct head *head, struct block *blocks, uint64_t count)
{
    if (count == 1)
        return one_block(head, blocks);
    const uint64_t page = head->page;
    const int touches = head->flags & TOUCH, asks = !(head->flags & ONE_CPU);
    int64_t longest = 0;
    uint64_t have = 0;
    for (; have < count && !__atomic_load_n(&head->stop, __ATOMIC_RELAXED); have++) {
        struct block *block = &blocks[have];
        const uint64_t size = block->size;
        int64_t begin = now();
        char *at = malloc(size);
        int64_t end = now();
        block->at = (uint64_t)(uintptr_t)at;
        block->malloc_begin = begin;
        block->malloc_end = end;
        if (!at) {
            head->failed++;
            break;
        }
        longest = end - begin > longest ? end - begin : longest;
    }
    int whole = have == count;
    if (touches && whole)
        for (uint64_t place = 0; place < count; place++) {
            struct block *block = &blocks[blocks[place].visit];
            char *at = (char *)(uintptr_t)block->at;
            uint64_t size = block->size;
            int64_t begin = now();
            touch(at, size, page);
            int64_t end = now();
            block->touch_begin = begin;
            block->touch_end = end;
            longest = end - begin > longest ? end - begin : longest;
        }
    for (uint64_t place = 0; place < have; place++) {
        struct block *block = &blocks[place];
        char *at = (char *)(uintptr_t)block->at;
        int64_t begin = now();
        free(at);
        int64_t end = now();
        block->free_begin = begin;
        block->free_end = end;
        if (asks)
            block->cpu = (uint64_t)sched_getcpu();
        longest = end - begin > longest ? end - begin : longest;
    }
    head->done += whole ? count : 0;
    return !whole || longest > head->limit;
}

/* A round in a process of its own, forked from one that has allocated nothing. */
static int fresh_round(struct head *head, struct block *blocks, uint64_t count)
{
    pid_t parent = getpid(), child = fork();
    if (child < 0) {
        head->error = errno;
        return 1;
    }
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, 9);
        /* Locks are not inherited. */
        if (getppid() != parent || (head->flags & LOCK && mlockall(MCL_CURRENT | MCL_FUTURE)))
            _exit(2);
        /* What is written into for each block is there before the first: its pages are none of
         * the list's. */
        for (uint64_t place = 0; place < count; place++)
            *(volatile uint64_t *)&blocks[place].cpu = 0;
        int64_t begin = now();
        uint64_t before = faults(RUSAGE_SELF);
        int64_t cpu_before = count > 1 ? cpu_time() : 0;
        int ends = one_round(head, blocks, count);
        if (count > 1)
            head->cpu_time += cpu_time() - cpu_before;
        head->faults += faults(RUSAGE_SELF) - before;
        head->spent += now() - begin;
        _exit(ends);
    }
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    if (!WIFEXITED(status) || WEXITSTATUS(status) == 2)
        head->error = ENOMEM;
    return status != 0;
}

static void batch(struct head *head, struct block *blocks)
{
    const int fresh = head->flags & FRESH;
    const int64_t begin = now();
    int64_t time = begin, spent = 0;
    uint64_t before = faults(RUSAGE_SELF);
    head->done = head->failed = head->skipped = head->error = head->faults = 0;
    head->spent = head->cpu_time = 0;
    uint64_t first = 0;
    if (head->round == 1 && !fresh && !head->period) {
        /* The loop below, without what these need not. */
        const int64_t end = head->until - begin < head->burst ? head->until : begin + head->burst;
        const uint64_t blocks_in_all = head->blocks;
        while (first < blocks_in_all && time < end &&
               !__atomic_load_n(&head->stop, __ATOMIC_RELAXED)) {
            if (one_block(head, &blocks[first]))
                break;
            time = blocks[first++].free_end;
        }
        first = blocks_in_all;
    }
    while (first < head->blocks && time < head->until &&
           (first == 0 || time - begin < head->burst)) {
        if (head->period) {
            int64_t due = head->due < head->until ? head->due : head->until;
            sleep_until(head, due);
            time = now();
            if (time < head->due)
                break;
            uint64_t behind = (uint64_t)(time - head->due) / (uint64_t)head->period;
            head->skipped += behind;
            head->due += (int64_t)(behind + 1) * head->period;
        }
        if (__atomic_load_n(&head->stop, __ATOMIC_RELAXED))
            break;
        uint64_t count = head->blocks - first < head->round ? head->blocks - first : head->round;
        int ends;
        if (fresh) {
            ends = fresh_round(head, blocks + first, count);
            time = now();
        } else {
            int64_t cpu_before = count > 1 ? cpu_time() : 0;
            ends = one_round(head, blocks + first, count);
            if (count > 1)
                head->cpu_time += cpu_time() - cpu_before;
            /* No reading of its own: a round should not hold more of them than its samples do. */
            time = blocks[first + count - 1].free_end;
            spent += time - blocks[first].malloc_begin;
        }
        first += count;
        if (ends)
            break;
    }
    if (!fresh) {
        head->faults = faults(RUSAGE_SELF) - before;
        head->spent = head->period ? spent : now() - begin;
    }
}

/* Serves until END is set. */
static void serve(struct head *head, struct block *blocks)
{
    int locked = 0;
    prctl(PR_SET_NAME, "punctual-heap");
    head->layout = sizeof(struct head) << 32 | sizeof(struct block);
    head->malloc_at = (uint64_t)(uintptr_t)malloc;
    head->free_at = (uint64_t)(uintptr_t)free;
    if (head->flags & SMALL_PAGES)
        prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
    for (;;) {
        __atomic_store_n(&head->turn, 0, __ATOMIC_RELEASE);
        syscall(SYS_futex, &head->turn, FUTEX_WAKE, 1, NULL, NULL, 0);
        while (__atomic_load_n(&head->turn, __ATOMIC_ACQUIRE) == 0)
            syscall(SYS_futex, &head->turn, FUTEX_WAIT, 0, NULL, NULL, 0);
        if (head->flags & END)
            _exit(0);
        if (head->flags & LOCK && !(head->flags & FRESH) && !locked) {
            if (mlockall(MCL_CURRENT | MCL_FUTURE)) {
                head->error = errno;
                head->done = 0;
                continue;
            }
            locked = 1;
        }
        batch(head, blocks);
    }
}

const char *gnu_get_libc_version(void) __attribute__((weak));

static long number(const char *word)
{
    long value = 0;
    for (; *word >= '0' && *word <= '9'; word++)
        value = value * 10 + (*word - '0');
    return value;
}

/* NAME ARGUMENT DESCRIPTOR LENGTH BLOCKS PARENT: the shared memory, its length, where the blocks
 * begin in it, whose death is its own. */
void punctual_heap_program(long count, char **words)
{
    if (count != 6)
        _exit(3);
    prctl(PR_SET_PDEATHSIG, 9);
    if (getppid() != number(words[5]))
        _exit(4);
    long length = number(words[3]);
    char *memory = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
                        number(words[2]), 0);
    if (memory == MAP_FAILED)
        _exit(5);
    struct head *head = (struct head *)memory;
    const char *version = gnu_get_libc_version ? gnu_get_libc_version() : "";
    for (int place = 0; place < 31 && version[place]; place++)
        head->libc[place] = version[place];
    /* Fails without the right to lock. */
    mlock(memory, length);
    serve(head, (struct block *)(memory + number(words[4])));
}

#ifdef HEAP_PROGRAM
/* Without the C library's own start files, which want the very version that they were made for: the
 * loader has made the library ready. */
#if defined(__x86_64__)
__asm__(".globl _start\n_start:\n xor %ebp, %ebp\n mov (%rsp), %rdi\n lea 8(%rsp), %rsi\n"
        " and $-16, %rsp\n call punctual_heap_program\n hlt\n");
#elif defined(__aarch64__)
__asm__(".globl _start\n_start:\n mov x29, #0\n ldr x0, [sp]\n add x1, sp, #8\n"
        " bl punctual_heap_program\n brk #0\n");
#else
#error "no beginning of a program is written for this architecture"
#endif
#endif
