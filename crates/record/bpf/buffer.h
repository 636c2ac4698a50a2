/* A buffer a CPU in one mapped array; no lock, no wake-up, no copy on the way.
 *
 * A writer reserves by adding to `head`, stores its words, and adds the same to `done`. Writers of
 * one CPU interrupt each other, so both additions are atomic. A reader that sees done == head knows
 * that every record before that position is whole. When there is no room the event is counted, and
 * the next record that finds room is preceded by a record that says how many and since when. */
#ifndef PUNCTUAL_BUFFER_H
#define PUNCTUAL_BUFFER_H

#include "kernel.h"
#include "wire.h"

struct buffer {
	struct wire_buffer at;
	u64 data[1]; /* in truth as many as the loader gave the map's values */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct buffer);
} buffers SEC(".maps");

/* Set by the loader, which makes them part of the instructions; the verifier drops what
 * they exclude. */
const volatile u64 mask = 0; /* words in a buffer, a power of two, less one */
const volatile u32 names_slot = 0;
/* Events of other CPUs are not wanted. The element of each CPU is its distance from the first;
 * where CPUs between them are not wanted, it stands in the table (WIRE_NO_SLOT for those), which
 * costs a cache line. */
const volatile u32 first_cpu = 0;
const volatile u32 cpu_count = 0;
const volatile bool gaps = false;
const volatile u16 slots[WIRE_MAX_CPUS] = {};

/* Overwrite the oldest instead of losing the newest. */
#ifdef FLIGHT
#define flight true
#else
#define flight false
#endif

/* The result is used, so that this becomes the instruction with full ordering on
 * every architecture. */
INLINE u64 fetch_add(u64 *at, u64 n)
{
	u64 old = __sync_fetch_and_add(at, n);

	asm volatile("" ::"r"(old) : "memory");
	return old;
}

INLINE struct buffer *buffer_of(u32 slot)
{
	return bpf_map_lookup_elem(&buffers, &slot);
}

/* cpu_count or more where that CPU's events are not wanted. */
INLINE u32 slot_of(u32 cpu)
{
	return gaps ? slots[cpu & (WIRE_MAX_CPUS - 1)] : cpu - first_cpu;
}

/* The buffer of this CPU; NULL when its events are not wanted. */
INLINE struct buffer *buffer_here(u32 cpu)
{
	u32 slot = slot_of(cpu);

	return slot < cpu_count ? buffer_of(slot) : 0;
}

/* Nearly all records are in one piece: a word of those takes two instructions instead of six. */
INLINE int write_record(struct buffer *buffer, u64 ns, u64 second, const u64 *payload, u32 words)
{
	u64 at = fetch_add(&buffer->at.head, 2 + words), within = mask, begin = at & within;

	/* Keeps the compiler from checking one register and using another. */
	asm volatile("" : "+r"(begin));
	if (likely(begin < within - (1 + words))) {
		volatile u64 *here = &buffer->data[begin];

		here[0] = ns;
		here[1] = second;
#pragma unroll
		for (u32 i = 0; i < words; i++)
			here[2 + i] = payload[i];
	} else {
		volatile u64 *data = buffer->data;

		data[at & within] = ns;
		data[(at + 1) & within] = second;
#pragma unroll
		for (u32 i = 0; i < words; i++)
			data[(at + 2 + i) & within] = payload[i];
	}
	fetch_add(&buffer->at.done, 2 + words);
	return 0;
}

#ifdef FLIGHT
/* A record that begins in one block and does not end in it: it may go round the buffer's end, and
 * the index records where the next begins. */
NOINLINE int write_across(struct buffer *buffer, u64 at, const u64 *record, u32 words)
{
	u64 end = at + words, within = mask;

	for (u32 i = 0; i < words && i < WIRE_MAX_RECORD_WORDS; i++)
		*(volatile u64 *)&buffer->data[(at + i) & within] = record[i];
	buffer->data[within + 1 + ((end / WIRE_BLOCK_WORDS) & (within / WIRE_BLOCK_WORDS))] = end;
	fetch_add(&buffer->at.done, words);
	return 0;
}

/* Flight mode: `payload` may hold further records, whole. This stands in each wake-up several
 * times, each time in a program of its own whose instructions are not in any cache: what is rare is
 * apart. A record within one block is in one piece. What it gives is for its caller to return at
 * once, so that nothing stands behind the common case. */
INLINE int write_flight(struct buffer *buffer, u64 ns, u64 second, const u64 *payload, u32 words)
{
	u64 at = fetch_add(&buffer->at.head, 2 + words);

	if (likely((at ^ (at + 2 + words)) < WIRE_BLOCK_WORDS)) {
		volatile u64 *here = &buffer->data[at & mask];

		here[0] = ns;
		here[1] = second;
#pragma unroll
		for (u32 i = 0; i < words; i++)
			here[2 + i] = payload[i];
		fetch_add(&buffer->at.done, 2 + words);
		return 0;
	} else {
		u64 record[WIRE_MAX_RECORD_WORDS];

		record[0] = ns;
		record[1] = second;
#pragma unroll
		for (u32 i = 0; i < words; i++)
			record[2 + i] = payload[i];
		return write_across(buffer, at, record, 2 + words);
	}
}
#else
#define write_flight write_record
#endif

INLINE u64 second_word(u32 tid, u8 kind, u8 words, u16 cpu)
{
	return (u64)tid | (u64)kind << 32 | (u64)words << 40 | (u64)cpu << 48;
}

NOINLINE void say_lost(struct buffer *buffer, u64 ns, u32 cpu)
{
	struct wire_lost lost = { .since = buffer->at.missed_since };

	lost.count = __sync_lock_test_and_set(&buffer->at.missed, 0);
	if (lost.count)
		write_record(buffer, ns, second_word(0, WIRE_LOST, 2, cpu), (const u64 *)&lost, 2);
}

/* Writes a record unless `limit` words of the buffer are full. Returns false if it was lost. */
INLINE bool try_emit(struct buffer *buffer, u64 ns, u32 tid, u8 kind, u32 cpu, const u64 *payload,
		     u32 words, u64 limit)
{
	u64 used = *(volatile u64 *)&buffer->at.head - *(volatile u64 *)&buffer->at.tail;

	if (unlikely(used + WIRE_MARGIN_WORDS > limit)) {
		if (!buffer->at.missed)
			buffer->at.missed_since = ns;
		fetch_add(&buffer->at.missed, 1);
		fetch_add(&buffer->at.lost, 1);
		return false;
	}
	if (unlikely(buffer->at.missed))
		say_lost(buffer, ns, cpu);
	write_record(buffer, ns, second_word(tid, kind, words, cpu), payload, words);
	return true;
}

INLINE int emit_to(struct buffer *buffer, u64 ns, u32 tid, u8 kind, u32 cpu, const u64 *payload,
		   u32 words)
{
	if (flight)
		return write_flight(buffer, ns, second_word(tid, kind, words, cpu), payload, words);
	try_emit(buffer, ns, tid, kind, cpu, payload, words, mask);
	return 0;
}

#endif
