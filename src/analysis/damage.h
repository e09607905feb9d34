/* SPDX-License-Identifier: MIT */
/*
 * What is broken, and who broke it.
 *
 * Three questions: what did the C library say when it gave up (damage_abort),
 * what was overwritten and by whom (damage_case, one for each damaged place
 * that the walk met), and what is at an address (damage_at).
 *
 * All text is one line and safe for a terminal.  Bytes of the target appear
 * only in fields that say so, so that a redacted report can leave them out.
 */
#ifndef ANALYSIS_DAMAGE_H
#define ANALYSIS_DAMAGE_H

#include "analysis/where.h"
#include "base/types.h"
#include "corewalk/heap.h"
#include "corewalk/space.h"

/* The message with which glibc ended the process. */
struct damage_abort {
	bool found;
	bool on_stack;		/* from the stack, not from __abort_msg */
	vaddr addr;		/* of the text */
	char text[160];		/* escaped; the line as printed */
	/* All static; NULL if the message is not known. */
	const char *code;	/* "corrupted-top-size" */
	const char *noticed;	/* what glibc noticed */
	const char *meaning;	/* what that usually means, what to look at */
	bool has_block;
	struct block block;	/* the one that was being freed */
};

enum damage_kind {
	DAMAGE_UNKNOWN,
	DAMAGE_OVERFLOW,	/* written past the end of the block before */
	DAMAGE_UNDERFLOW,	/* written before the block itself */
	DAMAGE_DOUBLE_FREE,	/* in two free lists, or twice in one */
	DAMAGE_USE_AFTER_FREE,	/* links of a free block overwritten */
	DAMAGE_NOT_IN_FILE,	/* not damage: the bytes are missing */
};

enum damage_fill {
	FILL_NONE,
	FILL_TEXT,		/* printable */
	FILL_REPEATED,		/* one byte over and over */
	FILL_ADDRESS,		/* an address of the process */
	FILL_ZERO,
};

enum { DAMAGE_TEXT = 64 };	/* bytes of a text that are shown */

struct damage_case {
	size_t note;		/* index in heap.notes */
	enum damage_kind kind;
	enum damage_fill fill;
	uint32_t arena;		/* index in heap.arenas, or HEAP_NO_ARENA */
	vaddr addr;		/* of the damaged word; 0 not known */
	uint64_t value;		/* what it holds now */
	bool has_value;		/* false: it is not in the file */
	char value_text[40];	/* its bytes as text, escaped; target's bytes */
	bool has_before;
	struct block before;	/* the block that ends there: the culprit */
	bool has_block;
	struct block block;	/* whose header it is, if it has one */
	uint64_t skipped_bytes;	/* not decoded because of it */
	uint64_t fill_bytes;	/* length of the text or the fill around addr */
	vaddr fill_addr;	/* where it starts */
	/* FILL_TEXT: it, escaped, up to DAMAGE_TEXT bytes; target's bytes. */
	char *fill_text;	/* owned; or NULL */
	char *text;		/* owned; one sentence without target's bytes */
};

struct damage {
	struct damage_abort abort;
	struct damage_case *cases;	/* owned; worst first: by address */
	size_t n_cases, cap_cases;
	uint64_t cases_dropped;		/* beyond DAMAGE_MAX */
};
enum { DAMAGE_MAX = 100 };

void damage_init(struct damage *d, struct space *sp, struct heap *h);
void damage_fini(struct damage *d);

/* "overflow", "double-free", ...: for JSON. */
const char *damage_kind_name(enum damage_kind kind);
/* "text", "repeated", ... */
const char *damage_fill_name(enum damage_fill fill);

/* Why there is no byte, in words that fit what was opened. */
const char *damage_why_text(const struct space *sp, enum space_why why);

/* What is at an address. */
struct damage_at {
	vaddr addr;
	enum space_why why;	/* SPACE_OK: it can be read */
	const struct seg *seg;	/* borrowed until space_close; NULL unmapped */
	const struct where_map *map;	/* borrowed until where_fini; or NULL */
	const struct where_stack *stack;	/* the same */
	const struct heap_extent *extent;	/* borrowed until heap_fini */
	bool has_block;
	struct block block;
	int64_t offset;		/* of addr from block.addr; <0 in its header */
	bool has_before, has_after;
	struct block before, after;	/* its neighbours in the extent */
	/* Whose cache holds the block; NULL: none.  Borrowed. */
	const struct thread_cache *cache;
	bool has_header;
	uint64_t header[2];	/* the two words before block.addr */
	vaddr note_addr;	/* a damaged place that covers it; 0 none */
	char *text;		/* owned; one sentence */
};

void damage_at_init(struct damage_at *a, struct space *sp, struct heap *h,
		    const struct where *w, vaddr addr);
void damage_at_fini(struct damage_at *a);

#endif
