/* The tracepoint that lttng.c passes (lttng-ust(3)). */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER punctual
#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "./lttng.h"
#if !defined(PUNCTUAL_LTTNG_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define PUNCTUAL_LTTNG_H
#include <lttng/tracepoint.h>
LTTNG_UST_TRACEPOINT_EVENT(punctual, point,
	LTTNG_UST_TP_ARGS(long, value),
	LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(long, value, value)))
#endif
#include <lttng/tracepoint-event.h>
