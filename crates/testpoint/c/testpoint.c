/* The part of the C library that must be C: what the header's fast path reads. The rest is src/, called through src/c.rs. */
#include "punctual/testpoint.h"

#include <stddef.h>

_Static_assert(sizeof(struct punctual_testpoint_control) == PUNCTUAL_CONTROL_PAGE, "src/point.rs: CONTROL_PAGE");
_Static_assert(offsetof(struct punctual_testpoint_control, recording) == 12, "src/layout.rs: Control");
_Static_assert(offsetof(struct punctual_testpoint_ring, head) == 64, "src/layout.rs: Ring");
_Static_assert(offsetof(struct punctual_testpoint_ring, mask) == 72, "src/layout.rs: Ring");
_Static_assert(offsetof(struct punctual_testpoint_ring, limit) == 128, "src/layout.rs: Ring");
_Static_assert(offsetof(struct punctual_testpoint_ring, slots) == 4096, "src/layout.rs: SLOTS_AT");
_Static_assert(sizeof(struct punctual_testpoint_slot) == 32, "src/layout.rs: Slot");
_Static_assert(sizeof(struct punctual_point) == 8 + sizeof(char *), "src/c.rs: CPoint");

void punctual_testpoint_start(struct punctual_testpoint_control *page, void (*publish)(struct punctual_testpoint_ring *));

struct punctual_testpoint_control punctual_testpoint_control;

/* Without room: whoever has no ring takes the slow path. */
static struct punctual_testpoint_ring no_ring;
__thread struct punctual_testpoint_ring *punctual_testpoint_ring = &no_ring;

static void publish(struct punctual_testpoint_ring *ring) {
    punctual_testpoint_ring = ring;
}

__attribute__((constructor)) static void start(void) {
    punctual_testpoint_start(&punctual_testpoint_control, publish);
}
