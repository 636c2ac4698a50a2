/* Points without editing: the compiler calls these at every function (-finstrument-functions) and
 * at every step (-fsanitize-coverage=trace-pc; Clang's trace-pc-guard), and they go into the rings
 * of the test points: begin and end of a function, an instant for a step.
 *
 * Each program and library is linked with a copy of its own of this file, which finds out in a
 * constructor what it is in; earlier steps are not recorded. All its points have one name,
 * `punctual.steps:BUILD:PATH`: the first eight bytes of the build id (0: there is none), with `-`
 * behind them where a list leaves out functions, and the path, of a long one `...` and the end.
 * Their value is the address less the load base, as the debug information has it. Who reads the
 * record looks up functions and lines, and finds the calls of these functions in the code.
 *
 * PUNCTUAL_STEPS=FILE: which functions are recorded. A line `-PATTERN` leaves out, lines `+PATTERN`
 * record nothing but these; a pattern (fnmatch(3)) is of linker names, or, with a slash in it, of
 * the program's or library's path. Other lines are ignored.
 *
 * Compile this and testpoint.c without the flags above. As there: no allocation, no lock, `errno`
 * kept.
 *
 * Licensed under MIT or Apache-2.0, at your option. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "testpoint.h"

#include <elf.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NAME_BYTES = 120, PATTERN_BYTES = 256 };

/* The program or library that this copy is in. */
static struct {
    uintptr_t base, low, size; /* no size: not known yet */
    /* A bit for each byte that is not recorded; null: all are. */
    unsigned char *left_out;
} code;
static char name[NAME_BYTES + 1];
static struct punctual_point point = {.name = name};

/* Which functions are recorded -------------------------------------------------------------- */

/* A file in memory. */
struct content {
    const char *bytes;
    size_t size;
};

static struct content map_file(const char *path) {
    struct content content = {NULL, 0};
    struct stat stat;
    int file = path ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
    if (file < 0) return content;
    if (fstat(file, &stat) == 0 && S_ISREG(stat.st_mode) && stat.st_size > 0) {
        void *start = mmap(NULL, (size_t)stat.st_size, PROT_READ, MAP_PRIVATE, file, 0);
        if (start != MAP_FAILED) content = (struct content){start, (size_t)stat.st_size};
    }
    close(file);
    return content;
}

/* Whether a line of this sign has a pattern of this name; `any`: whether there is such a line. */
static bool matches(struct content list, char sign, const char *what, bool *any) {
    char pattern[PATTERN_BYTES];
    const char *end = list.bytes + list.size, *next;
    for (const char *line = list.bytes; line < end; line = next) {
        const char *behind = memchr(line, '\n', (size_t)(end - line));
        next = behind ? behind + 1 : end;
        size_t length = (size_t)((behind ? behind : end) - line);
        if (length < 2 || length > sizeof pattern || *line != sign) continue;
        *any = true;
        memcpy(pattern, line + 1, length - 1);
        pattern[length - 1] = 0;
        if (fnmatch(pattern, what, 0) == 0) return true;
    }
    return false;
}

static bool is_recorded(struct content list, const char *function, const char *path) {
    bool only = false, others = false;
    if (matches(list, '-', function, &others) || matches(list, '-', path, &others)) return false;
    return matches(list, '+', function, &only) || matches(list, '+', path, &only) || !only;
}

/* Whether this many entries of this size are in the file. */
static bool holds(struct content file, uint64_t at, uint64_t count, uint64_t each) {
    return at <= file.size && count <= (file.size - at) / each;
}

/* Sets the bits of functions that are not recorded. Code without a symbol is as its path is. */
static void leave_out(struct content list, struct content file, const char *path) {
    const ElfW(Ehdr) *head = (const void *)file.bytes;
    if (!is_recorded(list, "", path)) memset(code.left_out, 0xff, code.size / 8 + 1);
    if (!holds(file, 0, 1, sizeof *head) || memcmp(head->e_ident, ELFMAG, SELFMAG) != 0) return;
    const ElfW(Shdr) *sections = (const void *)(file.bytes + head->e_shoff);
    if (!holds(file, head->e_shoff, head->e_shnum, sizeof *sections)) return;
    const ElfW(Shdr) *table = NULL;
    for (unsigned i = 0; i < head->e_shnum; i++) {
        uint32_t type = sections[i].sh_type;
        if (type == SHT_SYMTAB || (type == SHT_DYNSYM && !table)) table = &sections[i];
    }
    if (!table || table->sh_link >= head->e_shnum) return;
    const ElfW(Shdr) *names = &sections[table->sh_link];
    const ElfW(Sym) *symbols = (const void *)(file.bytes + table->sh_offset);
    uint64_t count = table->sh_size / sizeof *symbols;
    if (!holds(file, table->sh_offset, count, sizeof *symbols) ||
        !holds(file, names->sh_offset, names->sh_size, 1) || names->sh_size == 0 ||
        file.bytes[names->sh_offset + names->sh_size - 1] != 0)
        return;
    for (uint64_t i = 0; i < count; i++) {
        uintptr_t from = code.base + symbols[i].st_value - code.low;
        uintptr_t length = symbols[i].st_size;
        if ((symbols[i].st_info & 0xf) != STT_FUNC) continue;
        if (symbols[i].st_name >= names->sh_size) continue;
        if (from >= code.size || length > code.size - from) continue;
        const char *symbol = file.bytes + names->sh_offset + symbols[i].st_name;
        bool recorded = is_recorded(list, symbol, path);
        for (uintptr_t at = from; at < from + length; at++) {
            unsigned char bit = (unsigned char)(1u << at % 8), *place = &code.left_out[at / 8];
            *place = recorded ? *place & (unsigned char)~bit : *place | bit;
        }
    }
}

static void read_list(const char *path) {
    struct content list = map_file(secure_getenv("PUNCTUAL_STEPS"));
    if (!list.bytes) return;
    struct content file = map_file(path);
    void *bits = mmap(NULL, code.size / 8 + 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                      -1, 0);
    if (bits != MAP_FAILED) {
        code.left_out = bits;
        leave_out(list, file, path);
    }
    if (file.bytes) munmap((void *)file.bytes, file.size);
    munmap((void *)list.bytes, list.size);
}

/* What this copy is in ---------------------------------------------------------------------- */

/* The absolute path of a loaded file; the linker's name of it may be relative, or empty. */
static void find_path(const char *loaded, char *path, size_t size) {
    char link[32];
    int file = open(*loaded ? loaded : "/proc/self/exe", O_PATH | O_CLOEXEC);
    ssize_t length = -1;
    if (file >= 0) {
        snprintf(link, sizeof link, "/proc/self/fd/%d", file);
        length = readlink(link, path, size - 1);
        close(file);
    }
    path[length < 0 ? 0 : length] = 0;
}

/* The first bytes of the build id in hexadecimal. */
static void find_build(const struct dl_phdr_info *info, char build[17]) {
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        if (part->p_type != PT_NOTE) continue;
        const unsigned char *note = (const void *)(info->dlpi_addr + part->p_vaddr);
        size_t left = part->p_memsz, length;
        for (; left >= sizeof(ElfW(Nhdr)); note += length, left -= length) {
            const ElfW(Nhdr) *head = (const void *)note;
            size_t owner = (head->n_namesz + 3u) & ~3u, content = (head->n_descsz + 3u) & ~3u;
            length = sizeof *head + owner + content;
            if (length > left) break;
            if (head->n_type != NT_GNU_BUILD_ID || head->n_namesz != 4 || head->n_descsz < 8 ||
                memcmp(note + sizeof *head, "GNU", 4) != 0)
                continue;
            for (size_t byte = 0; byte < 8; byte++)
                snprintf(build + 2 * byte, 3, "%02x", note[sizeof *head + owner + byte]);
        }
    }
}

static int look(struct dl_phdr_info *info, size_t size, void *unused) {
    uintptr_t low = UINTPTR_MAX, high = 0, here = (uintptr_t)&code;
    (void)size, (void)unused;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        uintptr_t from = info->dlpi_addr + part->p_vaddr;
        if (part->p_type != PT_LOAD) continue;
        if (from < low) low = from;
        if (from + part->p_memsz > high) high = from + part->p_memsz;
    }
    if (here < low || here >= high) return 0;
    char path[4096], build[17] = "0";
    code.base = info->dlpi_addr;
    code.low = low;
    code.size = high - low;
    find_path(info->dlpi_name, path, sizeof path);
    find_build(info, build);
    read_list(path);
    int used = snprintf(name, sizeof name, "punctual.steps:%s%s:", build, code.left_out ? "-" : "");
    size_t room = NAME_BYTES - (size_t)used, length = strlen(path);
    bool cut = length > room;
    snprintf(name + used, room + 1, "%s%s", cut ? "..." : "",
             cut ? path + length - (room - 3) : path);
    return 1;
}

__attribute__((constructor(101))) static void start(void) {
    dl_iterate_phdr(look, NULL);
}

/* What the compiler calls ------------------------------------------------------------------- */

static inline __attribute__((always_inline)) void record(uintptr_t address, uint32_t kind) {
    if (__builtin_expect(
            !__atomic_load_n(&punctual_testpoint_control.recording, __ATOMIC_RELAXED), 1))
        return;
    /* An inlined function may be another file's: that one's copy does not know of it. */
    uintptr_t at = address - code.low;
    if (__builtin_expect(at >= code.size, 0)) return;
    if (__builtin_expect(code.left_out != NULL, 0) && code.left_out[at / 8] & 1u << at % 8) return;
    punctual_testpoint_write(&point, kind | UINT32_C(1) << PUNCTUAL_COUNT_SHIFT,
                             (int64_t)(address - code.base), 0);
}

/* Hidden: each program and library has its own, and calls it directly. */
#define CALLED __attribute__((visibility("hidden")))
/* The instruction before the one returned to: the call, whose line it is. */
#define STEP() record((uintptr_t)__builtin_return_address(0) - 1, PUNCTUAL_KIND_POINT)

CALLED void __cyg_profile_func_enter(void *function, void *caller);
CALLED void __cyg_profile_func_exit(void *function, void *caller);
CALLED void __sanitizer_cov_trace_pc(void);
CALLED void __sanitizer_cov_trace_pc_guard(uint32_t *guard);
CALLED void __sanitizer_cov_trace_pc_guard_init(uint32_t *start, uint32_t *stop);

void __cyg_profile_func_enter(void *function, void *caller) {
    (void)caller;
    record((uintptr_t)function, PUNCTUAL_KIND_BEGIN);
}

void __cyg_profile_func_exit(void *function, void *caller) {
    (void)caller;
    record((uintptr_t)function, PUNCTUAL_KIND_END);
}

void __sanitizer_cov_trace_pc(void) {
    STEP();
}

void __sanitizer_cov_trace_pc_guard(uint32_t *guard) {
    (void)guard;
    STEP();
}

/* Guards are of no use here: which functions are recorded is known by their addresses. */
void __sanitizer_cov_trace_pc_guard_init(uint32_t *start, uint32_t *stop) {
    (void)start;
    (void)stop;
}
