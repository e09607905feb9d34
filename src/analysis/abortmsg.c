/* SPDX-License-Identifier: MIT */
#include "analysis/abortmsg.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

/* ---- what the messages mean ---- */

struct message {
	const char *text;
	const char *code;
	const char *noticed, *meaning;
};

#define LOOK_BEFORE "a write past the end of the block before it; look at " \
	"that block, not at the one that was freed"
#define STALE "a write through a pointer to a block that was already freed, " \
	"or past the end of the block before it"
#define TWICE "the same pointer was freed twice; look for a second owner of " \
	"the block"
#define NOT_OURS "the pointer was changed, points into the middle of a " \
	"block, or was never malloc's"

/*
 * All that malloc ends a process with: malloc/malloc.c, arena.c, hooks.c,
 * malloc-check.c and mcheck.c of 2.17 to 2.43.  Found by their text inside
 * the message, since 2.17 to 2.26 print more around it; so what is a part of
 * another text stands behind that.
 */
static const struct message messages[] = {
	{ "double free or corruption (fasttop)", "double-free-fasttop",
	  "the block being freed is the one freed last", TWICE },
	{ "double free or corruption (top)", "double-free-top",
	  "the block being freed is the arena's unused rest",
	  "the block was freed before, and became part of the rest; or its "
	  "header was overwritten" },
	{ "double free or corruption (out)", "double-free-out",
	  "by its size field, the block being freed ends outside its arena",
	  "hardly ever a double free: the size field was overwritten, by "
	  LOOK_BEFORE },
	{ "double free or corruption (!prev)", "double-free-not-prev",
	  "the header behind the block being freed says it is free already",
	  "it was freed twice; or a write past its end changed the header "
	  "behind it" },
	{ "free(): double free detected in tcache 2", "double-free-tcache",
	  "the block being freed is in this thread's cache already", TWICE },
	{ "free(): too many chunks detected in tcache", "tcache-count",
	  "a list of this thread's cache is longer than it can be", STALE },
	{ "free(): unaligned chunk detected in tcache 2", "unaligned-tcache",
	  "a list of this thread's cache leads to no block", STALE },
	{ "free(): invalid pointer", "free-invalid-pointer",
	  "free() got an address that no block can have", NOT_OURS },
	{ "free(): invalid size", "free-invalid-size",
	  "the size field of the block being freed is impossible",
	  LOOK_BEFORE },
	{ "free(): invalid next size", "free-invalid-next-size",
	  "the size field behind the block being freed is impossible",
	  "a write past the end of the block being freed" },
	{ "free(): corrupted unsorted chunks", "free-unsorted-list",
	  "the list of blocks freed last is broken", STALE },
	{ "free(): chunks in smallbin corrupted", "free-smallbin-list",
	  "a list of small free blocks is broken", STALE },
	{ "invalid fastbin entry (free)", "free-fastbin-entry",
	  "the first block in the list for this size has another size",
	  STALE },
	{ "corrupted size vs. prev_size in fastbins", "size-vs-prev-size",
	  "the two places that hold a free block's size differ", STALE },
	{ "corrupted size vs. prev_size while consolidating",
	  "size-vs-prev-size",
	  "the two places that hold a free block's size differ", STALE },
	{ "corrupted size vs. prev_size", "size-vs-prev-size",
	  "the two places that hold a free block's size differ", STALE },
	{ "corrupted double-linked list", "broken-list",
	  "the links of a free block do not lead back to it", STALE },
	{ "malloc(): corrupted top size", "corrupted-top-size",
	  "the size field of the arena's unused rest is impossible",
	  "a write past the end of the last block of the arena" },
	{ "malloc(): invalid size (unsorted)", "unsorted-size",
	  "the size field of a free block is impossible", LOOK_BEFORE },
	{ "malloc(): invalid next size (unsorted)", "unsorted-next-size",
	  "the size field behind a free block is impossible", STALE },
	{ "malloc(): mismatching next->prev_size (unsorted)",
	  "size-vs-prev-size",
	  "the two places that hold a free block's size differ", STALE },
	{ "malloc(): unsorted double linked list corrupted",
	  "unsorted-list",
	  "the list of blocks freed last is broken", STALE },
	{ "malloc(): invalid next->prev_inuse (unsorted)",
	  "unsorted-prev-inuse",
	  "the header behind a free block says that it is in use",
	  "the block was freed twice, or the header behind it was "
	  "overwritten" },
	{ "malloc(): smallbin double linked list corrupted",
	  "smallbin-list", "a list of small free blocks is broken", STALE },
	{ "malloc(): largebin double linked list corrupted",
	  "largebin-list", "a list of large free blocks is broken", STALE },
	{ "malloc(): corrupted unsorted chunks", "unsorted-list",
	  "the list of blocks freed last is broken", STALE },
	{ "malloc(): memory corruption (fast)", "fastbin-size",
	  "a free block in the list for one size has another size", STALE },
	{ "malloc(): memory corruption", "unsorted-size",
	  "the size field of a free block is impossible", LOOK_BEFORE },
	{ "malloc(): chunk size mismatch in fastbin", "fastbin-size",
	  "a free block in the list for one size has another size", STALE },
	{ "malloc_consolidate(): invalid chunk size", "fastbin-size",
	  "a free block in the list for one size has another size", STALE },
	{ "unaligned fastbin chunk detected", "unaligned-fastbin",
	  "a list of small free blocks leads to no block", STALE },
	{ "unaligned tcache chunk detected", "unaligned-tcache",
	  "a list of this thread's cache leads to no block", STALE },
	{ "_int_memalign(): unaligned chunk detected", "unaligned-tcache",
	  "a list of free blocks leads to no block", STALE },
	{ "munmap_chunk(): invalid pointer", "munmap-invalid-pointer",
	  "the header of the block being freed says that it is a mapping of "
	  "its own, and it is not",
	  "the pointer was never malloc's; or the header was overwritten, by "
	  LOOK_BEFORE },
	{ "mremap_chunk(): invalid pointer", "munmap-invalid-pointer",
	  "the header of the block being resized says that it is a mapping "
	  "of its own, and it is not", NOT_OURS },
	{ "realloc(): invalid pointer", "realloc-invalid-pointer",
	  "realloc() got an address that no block can have", NOT_OURS },
	{ "realloc(): invalid old size", "realloc-invalid-size",
	  "the size field of the block being resized is impossible",
	  LOOK_BEFORE },
	{ "realloc(): invalid next size", "realloc-invalid-next-size",
	  "the size field behind the block being resized is impossible",
	  "a write past the end of the block being resized" },
	{ "break adjusted to free malloc space", "break-moved",
	  "the end of the heap was moved into memory that malloc has",
	  "something else calls sbrk(2) or brk(2)" },
	{ "malloc: top chunk is corrupt", "corrupted-top-size",
	  "the size field of the arena's unused rest is impossible",
	  "a write past the end of the last block of the arena" },
	{ "malloc_check_get_size: memory corruption", "check-size",
	  "the marks that MALLOC_CHECK_ puts behind each block are gone",
	  "a write past the end of the block being freed" },
	{ "memory clobbered before allocated block", "check-before",
	  "the mark that mcheck(3) puts before each block is gone",
	  "a write before the start of the block, or past the end of the "
	  "block before it" },
	{ "memory clobbered past end of allocated block", "check-behind",
	  "the mark that mcheck(3) puts behind each block is gone",
	  "a write past the end of the block" },
	{ "block freed twice", "double-free",
	  "mcheck(3) was given the same block twice", TWICE },
	{ "stack smashing detected", "stack-smashing",
	  "a function's return address guard was overwritten",
	  "a write past the end of a local array; the heap is not at fault" },
	{ "buffer overflow detected", "fortify",
	  "a copy would have been larger than its destination",
	  "the caller of the function with _chk in its name; nothing was "
	  "overwritten" },
	{ "pointer guard", "pointer-guard", "a protected pointer was changed",
	  "a stray write into libc's own data" },
};

void abortmsg_explain(struct damage_abort *a, const char *text)
{
	for (size_t i = 0; i < countof(messages); i++) {
		if (!strstr(text, messages[i].text))
			continue;
		a->code = messages[i].code;
		a->noticed = messages[i].noticed;
		a->meaning = messages[i].meaning;
		return;
	}
	/* assert(3) in malloc itself: sysmalloc and its helpers. */
	if (strstr(text, "malloc") && strstr(text, "Assertion `")) {
		a->code = "malloc-assertion";
		a->noticed = "malloc found its own data in an impossible state";
		a->meaning = "a write past the end of a block, most often of "
			"the last block of the arena";
	} else if (strstr(text, "Assertion `")) {
		a->code = "assertion";
		a->noticed = "an assertion of the program or a library failed";
		a->meaning = "not malloc's own check; the text says what and "
			"where";
	}
}

/* ---- where the message is ---- */

enum {
	TEXT_MAX = 1024,		/* of the message */
	MAX_BUFFER = 1 << 20,
	MAX_DATA = 4 << 20,		/* of one mapping */
	MAX_STACK = 64 << 10,
};

/* The message, without its newline, into the struct. */
static void take(struct damage_abort *a, vaddr addr, const char *text)
{
	size_t n = strlen(text);
	struct str s;

	while (n && text[n - 1] == '\n')
		n--;
	str_init(&s);
	str_add_escaped(&s, text, n);
	snprintf(a->text, sizeof(a->text), "%s", s.text);
	str_fini(&s);
	a->found = true;
	a->addr = addr;
	abortmsg_explain(a, text);
}

static bool is_message(const char *text)
{
	size_t n = strlen(text);

	for (size_t i = 0; i < n; i++)
		if ((unsigned char)text[i] < 0x20 && text[i] != '\n' &&
		    text[i] != '\t')
			return false;
	return n >= 4;
}

/* Is there a struct abort_msg_s at addr? */
static bool try_buffer(struct damage_abort *a, struct space *sp,
		       struct heap *h, vaddr addr)
{
	const struct seg *seg;
	char text[TEXT_MAX + 1];
	struct damage_abort found = { 0 };
	uint32_t size;

	if (!addr || addr & (sp->page - 1))
		return false;
	seg = space_seg(sp, addr);
	if (!seg || !space_seg_anon(seg) || !(seg->flags & SEG_W))
		return false;
	if (!space_u32(sp, addr, &size) || !size || size & (sp->page - 1) ||
	    size > MAX_BUFFER || size > seg->end - addr ||
	    heap_extent_at(h, addr))
		return false;
	if (!space_string(sp, addr + 4, text, TEXT_MAX) || !is_message(text))
		return false;
	take(&found, addr + 4, text);
	if (!found.code && text[strlen(text) - 1] != '\n')
		return false;
	/* An unknown text is kept unless a known one is found later. */
	if (found.code || !a->found)
		*a = found;
	return a->code;
}

static bool scan_words(struct damage_abort *a, struct space *sp,
		       struct heap *h, vaddr from, uint64_t n)
{
	const uint8_t *bytes = n ? space_view(sp, from, n) : NULL;

	for (uint64_t i = 0; bytes && i + sp->word <= n; i += sp->word) {
		vaddr value = load_word(bytes + i, sp->word);

		if (value && !(value & (sp->page - 1)) &&
		    try_buffer(a, sp, h, value))
			return true;
	}
	return false;
}

static bool named_libc(const struct space *sp, const struct module *m)
{
	return m->file < sp->n_files &&
	       strstr(sp->files[m->file].name, "libc");
}

/* Words of libc's data (first round) or of everybody else's. */
static bool scan_data(struct damage_abort *a, struct space *sp,
		      struct heap *h, bool libc)
{
	uint64_t left = 16 * MAX_DATA;

	for (size_t i = 0; i < sp->n_segs && left; i++) {
		const struct seg *seg = &sp->segs[i];
		const struct module *m = space_module(sp, seg->start);
		uint64_t n = min_u64(seg->avail, min_u64(left, MAX_DATA));

		if (!m || !(seg->flags & SEG_W) || named_libc(sp, m) != libc)
			continue;
		left -= n;
		if (scan_words(a, sp, h, seg->start, n))
			return true;
	}
	return a->found && libc;
}

/* A known message that begins at addr, as in libc's read-only data. */
static bool try_constant(struct damage_abort *a, struct space *sp, vaddr addr)
{
	char text[80];
	uint64_t n;

	if (!space_module(sp, addr))
		return false;
	n = space_read(sp, addr, text, sizeof(text) - 1);
	text[n] = '\0';
	for (size_t i = 0; i < countof(messages); i++) {
		if (strncmp(text, messages[i].text, strlen(messages[i].text)))
			continue;
		take(a, addr, text);
		return true;
	}
	return false;
}

/*
 * libc's data is missing: the functions that print the message still have its
 * address in their frames.
 */
static void scan_stack(struct damage_abort *a, struct space *sp,
		       struct heap *h)
{
	vaddr from = round_down(sp->threads[0].sp, sp->word);
	const struct seg *seg = space_seg(sp, from);
	uint64_t n;

	if (!seg || from - seg->start >= seg->avail)
		return;
	n = min_u64(MAX_STACK, seg->avail - (from - seg->start));
	a->on_stack = scan_words(a, sp, h, from, n) || a->found;
	for (uint64_t i = 0; !a->found && i + sp->word <= n; i += sp->word) {
		uint64_t value;

		if (space_word(sp, from + i, &value) &&
		    try_constant(a, sp, value))
			a->on_stack = true;
	}
}

void abortmsg_find(struct damage_abort *a, struct space *sp, struct heap *h)
{
	*a = (struct damage_abort){ 0 };
	if (scan_data(a, sp, h, true) || scan_data(a, sp, h, false) ||
	    a->found)
		return;
	if (sp->n_threads)
		scan_stack(a, sp, h);
}

/* ---- which block was being freed ---- */

enum {
	MAX_FRAMES = 4096,		/* bytes from abort() up to free() */
	MAX_ARENA_WORDS = 16,		/* of an arena, up to its fastbins */
};

/* The fastbins begin behind the lock and two words of flags at most. */
static bool is_fastbin_head(struct space *sp, const struct arena *a,
			    vaddr chunk)
{
	for (unsigned i = 1; a->addr && i < MAX_ARENA_WORDS; i++) {
		uint64_t word;

		if (space_word(sp, a->addr + i * sp->word, &word) &&
		    word == chunk)
			return true;
	}
	return false;
}

/* Is it what this message says of the block being freed? */
static bool fits_message(const struct damage_abort *a, struct space *sp,
			 const struct heap *h, const struct block *b)
{
	const struct cached *c;

	if (!strcmp(a->code, "double-free-fasttop"))
		return b->state == BLOCK_FAST && b->arena < h->n_arenas &&
		       is_fastbin_head(sp, &h->arenas[b->arena], b->start);
	if (strcmp(a->code, "double-free-tcache"))
		return b->state == BLOCK_UNSORTED || b->state == BLOCK_BINNED;
	c = b->state == BLOCK_CACHED ? heap_cached(h, b->start) : NULL;
	return c && c->cache < h->n_caches &&
	       h->caches[c->cache].tid == sp->threads[0].tid;
}

static bool holds_word(const uint8_t *bytes, uint64_t n, unsigned word,
		       vaddr value)
{
	for (uint64_t i = 0; i + word <= n; i += word)
		if (!memcmp(bytes + i, &value, word))
			return true;
	return false;
}

/*
 * free() has the address it was given, _int_free() that and the chunk, two
 * words before, and both keep them on the stack.  A block of which both are
 * there, and that is in the list the message speaks of, is the one: unless
 * there are two such.
 */
void abortmsg_find_block(struct damage_abort *a, struct space *sp,
			 struct heap *h)
{
	uint8_t stack[MAX_FRAMES];
	unsigned word = sp->word;
	struct block b;
	uint64_t n;

	if (!a->code || strncmp(a->code, "double-free-", 12) ||
	    !sp->n_threads)
		return;
	n = space_read(sp, round_down(sp->threads[0].sp, word), stack,
		       sizeof(stack));
	for (uint64_t i = 0; i + word <= n; i += word) {
		vaddr value = load_word(stack + i, word);

		if (!heap_find(h, value, &b) || b.addr != value ||
		    (a->has_block && b.addr == a->block.addr) ||
		    !holds_word(stack, n, word, b.start) ||
		    !fits_message(a, sp, h, &b))
			continue;
		if (a->has_block) {
			a->has_block = false;
			return;
		}
		a->has_block = true;
		a->block = b;
	}
}
