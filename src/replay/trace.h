/* SPDX-License-Identifier: MIT */
/*
 * The file format of traces: constants and records, no code.  Prose, with
 * examples, is in heapcore-trace(5); trace_read.h is how to get at events.
 *
 * A file is a header and chunks.  A chunk of one type decodes without any
 * other of that type.  Numbers in headers are little endian; inside payloads
 * they are LEB128 varints, signed ones zigzag.
 *
 * A recorder keeps chunks *open*: mapped, shared, zero behind the last record.
 * Each record starts with a tag that is not zero and is stored last, so that
 * whatever kills the program, the file ends in whole records.
 */
#ifndef REPLAY_TRACE_H
#define REPLAY_TRACE_H

#include <stdint.h>

#define TRACE_MAGIC "\x89HCT\r\n\x1a\n"
#define TRACE_CHUNK_MAGIC 0x314b4348u	/* "HCK1" */

enum {
	TRACE_MAJOR = 1,	/* another one is refused */
	TRACE_MINOR = 0,	/* any is accepted */
	TRACE_MAGIC_SIZE = 8,
	TRACE_HEADER_SIZE = 64,
	TRACE_CHUNK_SIZE = 48,	/* of a chunk's header */
	TRACE_CHUNK_ALIGN = 8,
	TRACE_OPEN_ALIGN = 4096,
	TRACE_RECORD_MAX = 64,	/* one record of EVENTS, as we write it */
	TRACE_DEPTH_MAX = 256,	/* frames of a stack */
};

enum trace_flag {
	TRACE_FINISHED = 1,	/* sealed: no chunk is open */
	TRACE_SAMPLED = 2,	/* sampled while recording */
	TRACE_OBJECTS = 4,	/* addresses are numbers of objects */
};

/* At offset 0. */
struct trace_file_header {
	uint8_t magic[TRACE_MAGIC_SIZE];
	uint16_t major, minor;
	uint32_t header_size;	/* the first chunk: here, or first_chunk */
	uint64_t flags;
	uint32_t pid;
	uint32_t page_size;
	uint64_t start_ns;	/* since 1970 */
	uint64_t ticks_per_s;	/* nominal; CLOCK records say it better */
	uint8_t pointer_size;
	uint8_t tick_shift;	/* EVENTS count in 2^this ticks */
	uint16_t machine;	/* ELF's e_machine */
	uint32_t first_chunk;	/* offset */
	uint32_t reserved;
	uint32_t crc;		/* CRC-32C of the bytes before */
};

enum trace_chunk_type {
	TRACE_EVENTS = 1,	/* records of one stream */
	TRACE_PACKED = 2,	/* columns, all streams in the order of time */
	TRACE_STACKS = 3,
	TRACE_LOG = 4,		/* everything else, see enum trace_log */
	TRACE_INDEX = 5,	/* reserved */
	TRACE_COUNTS = 6,	/* of a sampled recording: what passed */
	TRACE_TYPES,
};

enum trace_codec {
	TRACE_PLAIN = 0,
	TRACE_ZSTD = 1,
};

enum trace_chunk_flag {
	TRACE_MAY_SKIP = 1,	/* by readers that do not know the type */
	TRACE_OPEN = 2,		/* stored is room; ends at the first tag 0 */
};

/*
 * At a multiple of 8; an open one at a multiple of 4096.  The next chunk is
 * room bytes further on; if that is 0, at the next multiple of 8 behind the
 * stored bytes.
 */
struct trace_chunk {
	uint32_t magic;
	uint8_t type;
	uint8_t codec;
	uint16_t flags;
	uint32_t stored;	/* bytes behind this header */
	uint32_t length;	/* of the payload when decoded */
	uint32_t stream;
	uint32_t sequence;	/* in the stream, from 0 */
	uint64_t tick;		/* from which EVENTS and PACKED count */
	uint32_t records;	/* 0 while open */
	uint32_t crc;		/* CRC-32C of the stored bytes; 0 while open */
	uint32_t room;		/* from header to header; may be 0 */
	uint32_t header_crc;	/* CRC-32C of the bytes before */
};

/*
 * EVENTS.  A tag: kind, TRACE_SAME_STACK, TRACE_ODD_ADDRESS.  Then varints:
 *
 *	ticks since the record before, in 2^tick_shift
 *	zigzag of the address less the last one, of both >> 4 unless ODD
 *	by kind, in this order:
 *	  alignment as a power of two		ALIGNED
 *	  size					all but FREE and REALLOC_OLD
 *	  zigzag of the stack less the last one	kinds with a stack, if not SAME
 *	  N, T					SAMPLE
 *	  flags					MAP
 *
 * Time, address and stack start from the chunk's tick, 0 and 0.
 */
enum trace_kind {
	TRACE_MALLOC = 1,
	TRACE_CALLOC = 2,
	TRACE_FREE = 3,		/* tick: before the call; all others: after */
	TRACE_ALIGNED = 4,
	TRACE_REALLOC_SAME = 5,	/* in place, or so small a change */
	TRACE_REALLOC_OLD = 6,	/* tick: before the call */
	TRACE_REALLOC_NEW = 7,	/* follows its OLD */
	TRACE_FREE_SIZED = 8,
	TRACE_SAMPLE = 9,	/* as MALLOC; byte N was hit, T apart */
	TRACE_MAP = 10,
	TRACE_UNMAP = 11,
	TRACE_OTHER = 15,	/* varint what, varint length, bytes */
};

/* Kinds that have a size, and a stack, as bits. */
#define TRACE_KINDS_SIZED \
	(1u << TRACE_MALLOC | 1u << TRACE_CALLOC | 1u << TRACE_ALIGNED | \
	 1u << TRACE_REALLOC_SAME | 1u << TRACE_REALLOC_NEW | \
	 1u << TRACE_FREE_SIZED | 1u << TRACE_SAMPLE | 1u << TRACE_MAP | \
	 1u << TRACE_UNMAP)
#define TRACE_KINDS_STACKED \
	(TRACE_KINDS_SIZED & ~(1u << TRACE_FREE_SIZED))

enum trace_tag {
	TRACE_KIND_MASK = 0x0f,
	TRACE_SAME_STACK = 0x10,
	TRACE_ODD_ADDRESS = 0x20,
	TRACE_TAG_KNOWN = 0x3f,
};

/* Flags of TRACE_MAP. */
enum trace_map {
	TRACE_MAP_FILE = 1,	/* of a file */
	TRACE_MAP_SHARED = 2,
	TRACE_MAP_NONE = 4,	/* no access: reserved */
	TRACE_MAP_BREAK = 8,	/* brk, sbrk */
	TRACE_MAP_MOVED = 16,	/* mremap */
	TRACE_MAP_ACCESS = 32,	/* mprotect, of what is mapped already */
};

/* What TRACE_OTHER may be; unknown ones are skipped. */
enum trace_other {
	TRACE_OTHER_THREAD = 1,	/* from here on this tid writes the stream */
	TRACE_OTHER_LOST = 2,	/* so many events are missing before this */
};

/*
 * PACKED.  Varints: the time's unit as a power of two of ticks, the number of
 * the next object, how many events; then columns, each a varint length and
 * bytes:
 *
 *	KINDS	a byte an event: kind, TRACE_SAME_STACK, and the two below
 *	TIMES	units since the event before
 *	OBJECTS	of a free and REALLOC_SAME: how many objects ago the block
 *		came, 0 unknown; MAP, UNMAP: zigzag of the address less the
 *		last such; allocations: nothing, they get the next number
 *	SIZES	the size unless SAME_SIZE, of kinds that have one; then
 *		alignment, N and T, flags as in EVENTS
 *	STACKS	zigzag of the stack less the last one, unless SAME
 *	THREADS	the index, unless SAME_THREAD; see TRACE_LOG_THREAD
 *
 * SAME_SIZE: as the last event whose stack was the same modulo SIZES_KEPT.
 * Last values start from 0, and the last thread too.
 */
enum trace_packed {
	TRACE_SAME_SIZE = 0x20,
	TRACE_SAME_THREAD = 0x40,
	TRACE_SIZES_KEPT = 4096,
};

enum trace_column {
	TRACE_KINDS,
	TRACE_TIMES,
	TRACE_OBJECT_COLUMN,
	TRACE_SIZES,
	TRACE_STACK_COLUMN,
	TRACE_THREAD_COLUMN,
	TRACE_COLUMNS,
};

/*
 * STACKS.  The first record's number is the chunk's tick.  A record: tag 1,
 * then varints: frames taken from the record before (0 for the first), frames
 * that follow, and each of those as zigzag of the difference to the one
 * before it in this stack (the first: to 0).  Outermost frame first: frames
 * are shared from the outside.  Frames are return addresses.
 */
enum { TRACE_STACK_TAG = 1 };

/*
 * COUNTS.  Not varints: a recorder adds to these where they are.  All blocks
 * of one stream, sampled or not, by size: 64 classes of 16 bytes each, then
 * one for each power of two from 1024.  A reallocation is a block that goes
 * and one that comes.
 */
enum { TRACE_FINE = 1024, TRACE_CLASSES = 64 + 54 };

struct trace_counts {
	uint64_t frees;
	uint64_t reserved;
	struct {
		uint64_t blocks, bytes;
	} classes[TRACE_CLASSES];
};

static inline unsigned trace_class(uint64_t size)
{
	return size < TRACE_FINE ? (unsigned)(size / 16) :
		54 + 63 - (unsigned)__builtin_clzll(size);
}

/* The least size of a class; 0, which is 2^64, for the one behind the last. */
static inline uint64_t trace_class_from(unsigned class)
{
	return class < 64 ? class * UINT64_C(16) :
		class < TRACE_CLASSES ? UINT64_C(1) << (class - 54) : 0;
}

/*
 * LOG.  A record: tag, varint length, payload.  In payloads, numbers are
 * varints and texts a varint length and bytes.
 */
enum trace_log {
	TRACE_LOG_META = 1,	/* text key, text value */
	TRACE_LOG_CLOCK = 2,	/* tick, monotonic ns, realtime ns */
	TRACE_LOG_MODULE = 3,	/* tick, set, bias, text build id, text path,
				   n, then n of vaddr, memsz, offset */
	TRACE_LOG_RSS = 4,	/* tick, resident bytes, swapped bytes */
	TRACE_LOG_MARK = 5,	/* tick, tid, text name, value */
	TRACE_LOG_GC = 6,	/* tick, ticks it took, flags, before, after */
	TRACE_LOG_LOST = 7,	/* tick, events, why (enum trace_lost) */
	TRACE_LOG_END = 8,	/* tick, how (enum trace_end), value */
	TRACE_LOG_THREAD = 9,	/* index, tid, first tick, text name, and
				   when it had ended, 0 or absent if that is
				   not known */
	TRACE_LOG_NAME = 10,	/* address, text function, text file, line:
				   names of imported traces */
};

enum trace_lost {
	TRACE_LOST_NESTED = 1,	/* in a signal handler that interrupted us */
	TRACE_LOST_STACKS = 2,	/* stacks that found no room; not events */
	TRACE_LOST_ORDER = 3,	/* a writer could not keep them */
};

enum trace_end {
	TRACE_END_EXIT = 1,	/* value: the status; from the parent */
	TRACE_END_SIGNAL = 2,	/* value: the signal; from the parent */
	TRACE_END_FULL = 3,	/* value: errno of the file system */
	TRACE_END_MAX = 4,	/* value: the limit in bytes */
	TRACE_END_IMPORT = 5,	/* the source ended */
	TRACE_END_SECCOMP = 6,	/* the program gave up system calls */
	TRACE_END_EXEC = 7,	/* it became another; from the parent */
};

#endif
