/* SPDX-License-Identifier: MIT */
#include "analysis/damage.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/abortmsg.h"
#include "analysis/fill.h"
#include "base/mem.h"
#include "base/sort.h"
#include "base/str.h"
#include "corewalk/planes.h"

enum {
	MAX_LINKS = 2 << 20,	/* blocks looked at for broken links */
	MAX_AT_WORK = 3,	/* findings that one operation may leave */
};

/* The code of a finding that is no damage but an operation not finished. */
#define IN_PROGRESS "in-progress"

const char *damage_kind_name(enum damage_kind kind)
{
	static const char *const names[] = {
		[DAMAGE_UNKNOWN] = "unknown",
		[DAMAGE_OVERFLOW] = "overflow",
		[DAMAGE_UNDERFLOW] = "underflow",
		[DAMAGE_DOUBLE_FREE] = "double-free",
		[DAMAGE_USE_AFTER_FREE] = "use-after-free",
		[DAMAGE_NOT_IN_FILE] = "not-in-file",
	};

	return names[kind];
}

const char *damage_fill_name(enum damage_fill fill)
{
	static const char *const names[] = {
		[FILL_NONE] = "none",
		[FILL_TEXT] = "text",
		[FILL_REPEATED] = "repeated",
		[FILL_ADDRESS] = "address",
		[FILL_ZERO] = "zero",
	};

	return names[fill];
}

/* ---- the block before, the block behind ---- */

static bool block_ending(struct heap *h, vaddr end, struct block *ret)
{
	struct block b;

	if (!end || !heap_find(h, end - 1, &b) || b.start + b.size != end)
		return false;
	*ret = b;
	return true;
}

static bool block_starting(struct heap *h, vaddr start, struct block *ret)
{
	struct block b;

	if (!heap_find(h, start, &b) || b.start != start)
		return false;
	*ret = b;
	return true;
}

/* ---- the damaged word ---- */

/* The word as it is now, and its bytes as text. */
static void set_value(struct damage_case *d, const struct space *sp,
		      uint64_t value)
{
	struct str s;

	d->has_value = true;
	d->value = value;
	str_init(&s);
	/* The target's byte order is the host's: little endian. */
	str_add_escaped(&s, &value, sp->word);
	snprintf(d->value_text, sizeof(d->value_text), "%s", s.text);
	str_fini(&s);
}

static void read_value(struct damage_case *d, struct space *sp)
{
	uint64_t value;

	if (!space_word(sp, d->addr, &value))
		return;
	set_value(d, sp, value);
	fill_find(d, sp);
}

/* ---- one case ---- */

struct judge {
	struct space *sp;
	struct heap *h;
	struct str s;		/* the sentence */
	uint64_t links;		/* blocks that may still be looked at */
};

/*
 * A size field.  What runs into it from before came from the block before;
 * what begins in it and goes on into the block was written through a pointer
 * to the block, too low.
 */
static void judge_header(struct damage_case *d, struct space *sp,
			 vaddr chunk)
{
	vaddr user = chunk + 2 * sp->word;
	bool runs_in, runs_on;

	if (!d->has_value) {
		d->kind = DAMAGE_NOT_IN_FILE;
		return;
	}
	if (d->fill == FILL_NONE || d->fill == FILL_ADDRESS)
		return;
	runs_in = d->fill_addr < d->addr;
	runs_on = d->fill_addr + d->fill_bytes > user;
	/* Zeros are everywhere: only a field of its own speaks. */
	if (d->fill == FILL_ZERO)
		return;
	if (runs_in && d->has_before)
		d->kind = DAMAGE_OVERFLOW;
	else if (runs_on)
		d->kind = DAMAGE_UNDERFLOW;
}

static const char *fill_words(const struct damage_case *d)
{
	switch (d->fill) {
	case FILL_TEXT:
		return "holds text";
	case FILL_REPEATED:
		return "holds one byte over and over";
	case FILL_ADDRESS:
		return "holds an address";
	case FILL_ZERO:
		return "is zero";
	default:
		return "is impossible";
	}
}

static const char *use_words(const struct block *b)
{
	return b->state == BLOCK_USED ? "in use" :
	       b->state == BLOCK_OVERHEAD ? "malloc's own" : "free";
}

/* The culprit first: it is what one has to look at. */
static void say_overflow(struct str *s, const struct damage_case *d,
			 const char *what)
{
	str_printf(s, "%" PRIu64 " usable bytes at 0x%" PRIx64 ", %s, were "
		   "written past their end: %s behind them, at 0x%" PRIx64
		   ", %s", d->before.usable, d->before.addr,
		   use_words(&d->before), what, d->addr, fill_words(d));
}

static void say_before(struct str *s, const struct damage_case *d)
{
	if (!d->has_before) {
		str_adds(s, "; no block is known before it");
		return;
	}
	str_printf(s, "; the block before it is 0x%" PRIx64 ", %" PRIu64
		   " usable bytes, %s", d->before.addr, d->before.usable,
		   use_words(&d->before));
	if (d->kind == DAMAGE_UNKNOWN)
		str_adds(s, ": an overflow out of it is the usual cause");
}

static void say_header(struct str *s, const struct damage_case *d,
		       const char *what)
{
	if (d->kind == DAMAGE_OVERFLOW) {
		say_overflow(s, d, what);
		return;
	}
	str_printf(s, "%s at 0x%" PRIx64 " ", what, d->addr);
	if (d->kind == DAMAGE_NOT_IN_FILE) {
		str_adds(s, "is not in the file");
		return;
	}
	str_adds(s, fill_words(d));
	if (d->kind == DAMAGE_UNDERFLOW)
		str_adds(s, ", written together with the block it belongs "
			 "to: from before its start, or from just past the end "
			 "of the block before it");
	say_before(s, d);
}

static void header_case(struct judge *j, struct damage_case *d, vaddr chunk)
{
	struct space *sp = j->sp;
	struct heap *h = j->h;
	struct str *s = &j->s;
	bool top;

	d->addr = chunk + sp->word;
	d->has_before = block_ending(h, chunk, &d->before);
	d->has_block = block_starting(h, chunk, &d->block);
	top = d->has_block && d->block.state == BLOCK_TOP;
	read_value(d, sp);
	judge_header(d, sp, chunk);
	say_header(s, d, top ? "the size field of the arena's rest (top)" :
		   "the size field");
}

/* The word behind a free block repeats its size; the block owns it. */
static void footer_case(struct judge *j, struct damage_case *d, vaddr chunk)
{
	struct space *sp = j->sp;
	struct heap *h = j->h;
	struct str *s = &j->s;

	d->has_before = block_starting(h, chunk, &d->before);
	if (!d->has_before) {
		str_printf(s, "the block 0x%" PRIx64 " is damaged", chunk);
		return;
	}
	d->addr = d->before.start + d->before.size;
	d->kind = DAMAGE_USE_AFTER_FREE;
	read_value(d, sp);
	str_printf(s, "the last word of the free block 0x%" PRIx64 ", at 0x%"
		   PRIx64 ", %s: it was written to after it was freed",
		   d->before.addr, d->addr, fill_words(d));
}

/* What a link of a list can lead to: a block, or the list's head. */
static bool is_link(struct space *sp, uint64_t value)
{
	return space_seg(sp, value);
}

/*
 * In two lists, or met twice.  A block whose links hold no addresses any more
 * is met from both ends of its list, and was in it only once.
 */
static void double_free_case(struct judge *j, struct damage_case *d,
			     vaddr chunk)
{
	struct space *sp = j->sp;
	struct heap *h = j->h;
	struct str *s = &j->s;
	bool binned;

	d->has_block = block_starting(h, chunk, &d->block);
	d->addr = chunk + 2 * sp->word;
	read_value(d, sp);
	binned = d->has_block && (d->block.state == BLOCK_UNSORTED ||
				  d->block.state == BLOCK_BINNED);
	if (binned && d->has_value && !is_link(sp, d->value)) {
		d->kind = DAMAGE_USE_AFTER_FREE;
		str_printf(s, "the links of the free block 0x%" PRIx64 " were "
			   "overwritten: it was written to after it was freed",
			   d->addr);
		return;
	}
	d->kind = DAMAGE_DOUBLE_FREE;
	str_printf(s, "the block 0x%" PRIx64 " is in two free lists, or twice "
		   "in one: it was freed twice", d->addr);
}

/*
 * Does a word of a free block lead to chunk?  Links of caches lead to user
 * addresses, others to chunks; from 2.32 on those of caches and fastbins are
 * mixed with their own address (malloc/malloc.c, PROTECT_PTR).
 */
static bool leads_to(const struct space *sp, vaddr at, uint64_t word,
		     vaddr chunk)
{
	uint64_t plain = word ^ at >> 12;
	vaddr user = chunk + 2 * sp->word;

	if (sp->word == 4)
		plain = (uint32_t)plain;
	return word == chunk || word == user || plain == chunk ||
	       plain == user;
}

/* Does a link of this block lead to chunk?  Its address. */
static vaddr link_of(struct judge *j, vaddr user, vaddr chunk)
{
	for (unsigned i = 0; i < 2; i++) {
		vaddr at = user + i * j->sp->word;
		uint64_t word;

		if (space_word(j->sp, at, &word) &&
		    leads_to(j->sp, at, word, chunk))
			return at;
	}
	return 0;
}

/* The link that leads to chunk, where no block begins, in a free block. */
static bool find_link(struct judge *j, struct damage_case *d,
		      const struct heap_extent *x, vaddr chunk)
{
	uint64_t g = planes_next_odd(x, 0);

	for (; j->links && g < planes_granules(x);
	     g = planes_next_odd(x, g + 1)) {
		j->links--;
		if (!block_state_free(planes_state(x, g)) ||
		    planes_state(x, g) == BLOCK_TOP)
			continue;
		d->addr = link_of(j, planes_addr(x, g) + x->user_off, chunk);
		if (d->addr)
			return heap_find(j->h, d->addr, &d->block);
	}
	return false;
}

/*
 * The block with the link may have been handed out since, and its link with
 * it: the list now begins where the link led.  Then it is a block in use whose
 * first word is the link.  One that holds an ordinary value may be there by
 * chance, so it must be the only one.
 */
static bool find_stale(struct judge *j, struct damage_case *d,
		       const struct heap_extent *x, vaddr chunk)
{
	struct heap_iter it;
	struct block b;
	unsigned n = 0;

	heap_iter_range(&it, j->h, x->start, x->end);
	while (j->links && n < 2 && heap_iter_next(&it, &b)) {
		uint64_t word;

		j->links--;
		if (b.state != BLOCK_USED || b.usable < j->sp->word ||
		    !space_word(j->sp, b.addr, &word) ||
		    !leads_to(j->sp, b.addr, word, chunk))
			continue;
		d->block = b;
		d->addr = b.addr;
		n++;
	}
	return n == 1;
}

static bool find_in_arena(struct judge *j, struct damage_case *d, vaddr chunk,
			  bool (*find)(struct judge *j, struct damage_case *d,
				       const struct heap_extent *x,
				       vaddr chunk))
{
	for (size_t i = 0; i < j->h->n_extents; i++) {
		const struct heap_extent *x = &j->h->extents[i];

		if (x->kind == EXTENT_BLOCKS && x->arena == d->arena &&
		    find(j, d, x, chunk))
			return true;
	}
	return false;
}

/*
 * A list leads to something that is no free block of it.  If it is a block in
 * use, its successor's header or its own was overwritten; else a link was.
 */
static void member_case(struct judge *j, struct damage_case *d, vaddr chunk)
{
	struct space *sp = j->sp;
	struct heap *h = j->h;
	struct str *s = &j->s;

	d->addr = chunk;
	d->has_block = block_starting(h, chunk, &d->block);
	if (d->has_block) {
		d->addr = chunk + sp->word;
		d->has_before = block_ending(h, chunk, &d->before);
		read_value(d, sp);
		str_printf(s, "the block 0x%" PRIx64 " is in a free list, and "
			   "its header does not agree", d->block.addr);
		return;
	}
	d->kind = DAMAGE_USE_AFTER_FREE;
	d->has_block = find_in_arena(j, d, chunk, find_link) ||
		find_in_arena(j, d, chunk, find_stale);
	if (!d->has_block) {
		/* What it leads to is what somebody wrote: not for the text. */
		d->addr = 0;
		set_value(d, sp, chunk);
		str_adds(s, "a free list leads to an address where no block "
			 "begins: a link in a freed block was overwritten");
		return;
	}
	read_value(d, sp);
	str_printf(s, "%" PRIu64 " usable bytes at 0x%" PRIx64 " were written "
		   "to after they were freed: ", d->block.usable,
		   d->block.addr);
	if (d->block.state == BLOCK_USED)
		str_adds(s, "what was the block's link leads to no block; it "
			 "has been handed out again since");
	else
		str_printf(s, "the block's link at 0x%" PRIx64 " leads to no "
			   "block", d->addr);
}

static void cache_case(struct judge *j, struct damage_case *d, vaddr cache)
{
	d->kind = DAMAGE_USE_AFTER_FREE;
	d->addr = cache;
	d->has_block = heap_find(j->h, cache, &d->block);
	str_printf(&j->s, "a list of the thread cache 0x%" PRIx64 " is cut: a "
		   "link in a freed block was overwritten", cache);
}

static const struct {
	const char *code;
	void (*judge)(struct judge *j, struct damage_case *d, vaddr addr);
	int rank;		/* lower ones first */
} judges[] = {
	{ "bad-chunk-size", header_case, 0 },
	{ "bad-top-size", header_case, 0 },
	{ "double-free", double_free_case, 0 },
	{ "bad-footer", footer_case, 1 },
	{ "bad-list-member", member_case, 1 },
	{ "broken-tcache", cache_case, 2 },
};

static int judge_of(const struct heap_note *note)
{
	for (size_t i = 0; i < countof(judges); i++)
		if (!strcmp(judges[i].code, note->code))
			return (int)i;
	return -1;
}

static void free_case(struct damage_case *c)
{
	free(c->text);
	free(c->fill_text);
}

static void add_case(struct damage *d, struct judge *j, size_t note)
{
	const struct heap_note *n = &j->h->notes[note];
	struct damage_case *c;

	c = &MEM_PUSH(d->cases, d->n_cases, d->cap_cases);
	*c = (struct damage_case){
		.note = note, .arena = n->arena,
		.skipped_bytes = n->skipped_bytes,
	};
	str_init(&j->s);
	judges[judge_of(n)].judge(j, c, n->addr);
	c->text = str_take(&j->s);
}

/* Which notes become cases, the gravest first. */
struct candidate {
	int rank;
	vaddr addr;
	size_t note;
};

static int gravest_first(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	return ORDER(x->rank, y->rank) ?:
	       ORDER(x->addr, y->addr) ?:
	       ORDER(x->note, y->note);
}

/*
 * Was the process stopped while a thread was at work inside malloc?  Then a
 * list or a header of a locked arena may be half changed.  Not if glibc gave
 * up, or the processor did: both leave the lock held over real damage.
 */
static bool at_work(const struct damage *d, const struct space *sp)
{
	return !d->abort.found && sp->signal != SIGSEGV &&
	       sp->signal != SIGBUS && sp->signal != SIGILL &&
	       sp->signal != SIGFPE;
}

/* What one thread leaves behind in the middle of one operation. */
static bool few_in_arena(const struct heap *h, uint32_t arena)
{
	size_t n = 0;

	for (size_t i = 0; i < h->n_notes && n <= MAX_AT_WORK; i++)
		n += h->notes[i].arena == arena &&
			(judge_of(&h->notes[i]) >= 0 ||
			 !strcmp(h->notes[i].code, IN_PROGRESS));
	return n <= MAX_AT_WORK;
}

/*
 * The last case, in an arena that is locked: it is work in progress, unless
 * what stands there was written by somebody who is no allocator.
 */
static void excuse_work(struct damage *d, struct heap *h)
{
	struct damage_case *c = &d->cases[d->n_cases - 1];
	struct heap_note *note = &h->notes[c->note];
	char *text;

	if (c->arena >= h->n_arenas || !h->arenas[c->arena].locked ||
	    c->fill == FILL_TEXT || c->fill == FILL_REPEATED ||
	    !few_in_arena(h, c->arena))
		return;
	text = mem_printf("malloc was at work in this arena: %s", note->text);
	free(note->text);
	note->text = text;
	note->code = IN_PROGRESS;
	free_case(c);
	d->n_cases--;
}

void damage_init(struct damage *d, struct space *sp, struct heap *h)
{
	struct judge j = { .sp = sp, .h = h, .links = MAX_LINKS };
	AUTO_FREE struct candidate *all = NULL;
	size_t n = 0, cap = 0;

	*d = (struct damage){ 0 };
	abortmsg_find(&d->abort, sp, h);
	abortmsg_find_block(&d->abort, sp, h);
	for (size_t i = 0; i < h->n_notes; i++) {
		int which = judge_of(&h->notes[i]);

		if (which >= 0)
			MEM_PUSH(all, n, cap) = (struct candidate){
				judges[which].rank, h->notes[i].addr, i,
			};
	}
	SORT(all, n, gravest_first);
	for (size_t i = 0; i < n && i < DAMAGE_MAX; i++) {
		add_case(d, &j, all[i].note);
		if (at_work(d, sp))
			excuse_work(d, h);
	}
	d->cases_dropped = n > DAMAGE_MAX ? n - DAMAGE_MAX : 0;
}

void damage_fini(struct damage *d)
{
	for (size_t i = 0; i < d->n_cases; i++)
		free_case(&d->cases[i]);
	free(d->cases);
	*d = (struct damage){ 0 };
}

/* ---- what is at an address ---- */

static void find_neighbours(struct damage_at *a, struct heap *h)
{
	vaddr start, end;

	if (a->has_block) {
		start = a->block.start;
		end = start + a->block.size;
	} else if (a->extent) {
		start = a->extent->start;
		end = a->extent->end;
	} else {
		return;
	}
	a->has_before = block_ending(h, start, &a->before);
	a->has_after = block_starting(h, end, &a->after);
}

static void find_cache(struct damage_at *a, const struct heap *h)
{
	const struct cached *c;

	if (a->block.state != BLOCK_CACHED || a->block.mmapped)
		return;
	c = heap_cached(h, a->block.start);
	if (c && c->cache < h->n_caches)
		a->cache = &h->caches[c->cache];
}

static void read_header(struct damage_at *a, struct space *sp)
{
	unsigned w = sp->word;
	vaddr user = a->block.addr;

	a->has_header = user >= 2 * w &&
		space_word(sp, user - 2 * w, &a->header[0]) &&
		space_word(sp, user - w, &a->header[1]);
}

static void find_note(struct damage_at *a, const struct heap *h)
{
	vaddr start = a->has_block ? a->block.start : a->addr;
	uint64_t size = a->has_block ? a->block.size : 1;

	for (size_t i = 0; i < h->n_notes; i++) {
		const struct heap_note *n = &h->notes[i];

		if (!n->addr || (judge_of(n) < 0 && !n->skipped_bytes))
			continue;
		if (n->addr - start >= size &&
		    a->addr - n->addr >= n->skipped_bytes)
			continue;
		a->note_addr = n->addr;
		return;
	}
}

static void say_cache(struct str *s, const struct damage_at *a)
{
	if (!a->cache)
		str_adds(s, "free, in a thread's cache");
	else if (a->cache->tid)
		str_printf(s, "free, in the cache of thread %" PRIu32,
			   a->cache->tid);
	else
		str_adds(s, "free, in the cache of a thread that is gone");
}

static void say_state(struct str *s, const struct damage_at *a)
{
	switch (a->block.state) {
	case BLOCK_USED:
		str_adds(s, a->block.mmapped ?
			 "in use, a mapping of its own" : "in use");
		break;
	case BLOCK_CACHED:
		say_cache(s, a);
		break;
	case BLOCK_FAST:
		str_adds(s, "free, in a fastbin");
		break;
	case BLOCK_UNSORTED:
		str_adds(s, "free, in the list of blocks freed last");
		break;
	case BLOCK_BINNED:
		str_adds(s, "free, in a bin");
		break;
	case BLOCK_UNLISTED:
		str_adds(s, "free, but in no list");
		break;
	case BLOCK_TOP:
		str_adds(s, "free, the unused rest of the arena (top)");
		break;
	case BLOCK_OVERHEAD:
		str_adds(s, "the allocator's own");
		break;
	}
}

static void say_block(struct str *s, const struct damage_at *a,
		      const struct heap *h)
{
	const struct block *b = &a->block;

	if (a->offset < 0)
		str_printf(s, "in the header of block 0x%" PRIx64, b->addr);
	else if (!a->offset)
		str_adds(s, "the start of a block");
	else
		str_printf(s, "%" PRId64 " bytes into block 0x%" PRIx64,
			   a->offset, b->addr);
	str_printf(s, " of %" PRIu64 " bytes in %s: ", b->size,
		   h->arenas[b->arena].name);
	say_state(s, a);
}

static void say_extent(struct str *s, const struct damage_at *a,
		       const struct heap *h)
{
	const char *arena = h->arenas[a->extent->arena].name;

	switch (a->extent->kind) {
	case EXTENT_OVERHEAD:
		str_printf(s, "%s's own data", arena);
		break;
	case EXTENT_FOREIGN:
		str_printf(s, "inside %s, but not malloc's", arena);
		break;
	case EXTENT_RUNTIME:
		str_printf(s, "in the heap of %s, which is not walked", arena);
		break;
	default:
		str_printf(s, "in a part of %s that was not decoded", arena);
		break;
	}
}

const char *damage_why_text(const struct space *sp, enum space_why why)
{
	if (strcmp(sp->kind, "process"))
		return why == SPACE_OK ? "in the file" : space_why_text(why);
	return why == SPACE_UNDUMPED ? "not copied from the process" :
	       space_why_text(why);
}

static void say_place(struct str *s, const struct damage_at *a,
		      const struct space *sp, const struct heap *h)
{
	if (!a->seg)
		str_adds(s, "not mapped");
	else if (a->has_block)
		say_block(s, a, h);
	else if (a->extent)
		say_extent(s, a, h);
	else if (a->map)
		str_printf(s, "in a mapping: %s", a->map->what);
	else
		str_adds(s, "mapped");
	if (a->seg && a->why != SPACE_OK)
		str_printf(s, "; its bytes are %s",
			   damage_why_text(sp, a->why));
	if (a->note_addr)
		str_printf(s, "; damaged at 0x%" PRIx64, a->note_addr);
}

void damage_at_init(struct damage_at *a, struct space *sp, struct heap *h,
		    const struct where *w, vaddr addr)
{
	struct str s;

	*a = (struct damage_at){
		.addr = addr, .why = space_why(sp, addr),
		.seg = space_seg(sp, addr), .map = where_map_at(w, addr),
		.stack = where_stack_at(w, addr),
		.extent = heap_extent_at(h, addr),
	};
	a->has_block = heap_find(h, addr, &a->block);
	if (a->has_block) {
		a->offset = (int64_t)(addr - a->block.addr);
		find_cache(a, h);
		read_header(a, sp);
	}
	find_neighbours(a, h);
	find_note(a, h);
	str_init(&s);
	str_printf(&s, "0x%" PRIx64 " is ", addr);
	say_place(&s, a, sp, h);
	a->text = str_take(&s);
}

void damage_at_fini(struct damage_at *a)
{
	free(a->text);
	*a = (struct damage_at){ 0 };
}
