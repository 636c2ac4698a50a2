#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER punctual_bench
#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "./tp.h"
#if !defined(TP_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define TP_H
#include <lttng/tracepoint.h>
LTTNG_UST_TRACEPOINT_EVENT(punctual_bench, turn, LTTNG_UST_TP_ARGS(long, value),
                           LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(long, value, value)))
#endif
#include <lttng/tracepoint-event.h>
