/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Test points in drivers and other kernel code, in any context, on every CPU:
 *
 *     #include "punctual_point.h"
 *
 *     PUNCTUAL_POINT("netio.raised");               an instant
 *     PUNCTUAL_POINT1("netio.status", status);      with an integer
 *     PUNCTUAL_BEGIN("netio.transmit");  ...        from here ...
 *     PUNCTUAL_END("netio.transmit");               ... to here, in the same thread or interrupt
 *
 * The module punctual_point keeps them; `punctual trace` records them with those of
 * applications and the kernel's events. Where nobody records, a point costs two loads and a
 * branch. With PUNCTUAL_TESTPOINT_OFF defined, every point compiles to nothing. A file that is
 * compiled elsewhere finds the symbols by KBUILD_EXTRA_SYMBOLS=.../Module.symvers
 * (Documentation/kbuild/modules.rst).
 */
#ifndef PUNCTUAL_POINT_H
#define PUNCTUAL_POINT_H

#include <linux/compiler.h>
#include <linux/types.h>

#define PUNCTUAL_KIND_POINT 1
#define PUNCTUAL_KIND_BEGIN 2
#define PUNCTUAL_KIND_END 3

/* A place in the code where a point is passed. */
struct punctual_point {
	u32 id; /* 0 until its name is registered */
	const char *name;
};

/* What is there is not 0 while points are recorded. */
extern u32 *punctual_recording;
/* Keeps a point of this kind with no value, or one. */
void punctual_point(struct punctual_point *point, u32 kind, u32 count, s64 value);

#ifdef PUNCTUAL_TESTPOINT_OFF
#define PUNCTUAL_PASS(text, kind, count, value) ((void)0)
#else
#define PUNCTUAL_PASS(text, kind, count, value)                               \
	do {                                                                  \
		static struct punctual_point punctual_here = { .name = text }; \
		if (unlikely(READ_ONCE(*punctual_recording)))                 \
			punctual_point(&punctual_here, kind, count, value);   \
	} while (0)
#endif

#define PUNCTUAL_POINT(name) PUNCTUAL_PASS(name, PUNCTUAL_KIND_POINT, 0, 0)
#define PUNCTUAL_POINT1(name, a) PUNCTUAL_PASS(name, PUNCTUAL_KIND_POINT, 1, a)
#define PUNCTUAL_BEGIN(name) PUNCTUAL_PASS(name, PUNCTUAL_KIND_BEGIN, 0, 0)
#define PUNCTUAL_BEGIN1(name, a) PUNCTUAL_PASS(name, PUNCTUAL_KIND_BEGIN, 1, a)
#define PUNCTUAL_END(name) PUNCTUAL_PASS(name, PUNCTUAL_KIND_END, 0, 0)
#define PUNCTUAL_END1(name, a) PUNCTUAL_PASS(name, PUNCTUAL_KIND_END, 1, a)

#endif
