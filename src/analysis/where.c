/* SPDX-License-Identifier: MIT */
#include "analysis/where.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/residency.h"
#include "analysis/stack.h"
#include "analysis/stored.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "corewalk/planes.h"

/* What a piece of a mapping is, for its name. */
enum thing_kind {
	THING_NONE,
	THING_HEAP,		/* id: arena */
	THING_MMAPPED,
	THING_FOREIGN,
	THING_STACK,		/* id: index in w->stacks */
	THING_DEAD_STACK,
	THING_GUARD,
	THING_RESERVE,		/* id: arena that may grow into it */
	THING_BREAK,		/* id: file; what lies before the heap */
	THING_CODE,		/* id: file */
	THING_DATA,
	THING_CONST,
	THING_BSS,
	THING_FILE,
	THING_SHARED,
	THING_ANON,
	THING_ANON_CODE,
	THING_RESERVED,
	THING_CLOSED,		/* no access any more, and yet memory */
	THING_VDSO,
	THING_VVAR,
	THING_VSYSCALL,
};

struct thing {
	enum thing_kind kind;
	uint32_t id;
};

enum {
	MAX_THINGS = 3,		/* named of one mapping */
	MAX_BREAK_GAP = 1 << 30,
};

struct filler {
	struct where *w;
	struct space *sp;
	struct heap *h;
	size_t extent, stack;	/* the first one that ends behind us */
	/* In that extent. */
	struct planes_cursor bytes_at, holes_at, pages_at, left_at;
	uint32_t *n_blocks;	/* owned; EXTENT_BLOCKS, by arena */
	vaddr break_start, break_end;	/* where the brk heap can be */
	uint32_t break_file;	/* of the program; SEG_NO_FILE */
	/* Of the mapping at hand. */
	vaddr stored_end;
	struct where_map map;
	struct thing things[MAX_THINGS];
	size_t n_things;	/* also those that have no place in things */
};

struct piece {
	vaddr start, end;
	const struct heap_extent *extent;	/* or NULL */
	enum where_row row;			/* if it is not of blocks */
	struct thing thing;
};

/* ---- names of rows ---- */

static const struct {
	const char *name, *text;
} row_names[WHERE_ROWS] = {
	[WHERE_USED] = { "used", "in use by the program" },
	[WHERE_FREE] = { "free", "free, kept by the allocators" },
	[WHERE_CACHED] = { "cached", "free, in thread caches and fastbins" },
	[WHERE_OVERHEAD] = { "overhead", "allocator overhead" },
	[WHERE_STACKS] = { "stacks", "thread stacks" },
	[WHERE_DEAD_STACKS] = { "dead_stacks",
				"stacks of threads that are gone" },
	[WHERE_DATA] = { "data", "program and library data" },
	[WHERE_RUNTIME] = { "runtime", "runtime heap, not walked" },
	[WHERE_ANONYMOUS] = { "anonymous", "other anonymous mappings" },
	[WHERE_UNDECODED] = { "undecoded", "not decoded" },
};

const char *where_row_name(enum where_row row)
{
	return row_names[row].name;
}

const char *where_row_text(enum where_row row)
{
	return row_names[row].text;
}

static enum where_row row_of_state(enum block_state state)
{
	switch (state) {
	case BLOCK_USED:
		return WHERE_USED;
	case BLOCK_CACHED:
	case BLOCK_FAST:
		return WHERE_CACHED;
	case BLOCK_OVERHEAD:
		return WHERE_OVERHEAD;
	default:
		return WHERE_FREE;
	}
}

static enum where_row row_of_extent(enum extent_kind kind)
{
	switch (kind) {
	case EXTENT_OVERHEAD:
		return WHERE_OVERHEAD;
	case EXTENT_FOREIGN:
		return WHERE_ANONYMOUS;
	case EXTENT_UNDECODED:
		return WHERE_UNDECODED;
	case EXTENT_RUNTIME:
		return WHERE_RUNTIME;
	default:
		return WHERE_USED;
	}
}

/* ---- names of mappings ---- */

static bool starts_with(const char *text, const char *start)
{
	return !strncmp(text, start, strlen(start));
}

static bool same_thing(struct thing a, struct thing b)
{
	return a.kind == b.kind && a.id == b.id;
}

/* Files that are memory and nothing else: names of the kernel's. */
static bool is_memory_file(const char *name)
{
	return starts_with(name, "/dev/zero") || starts_with(name, "/memfd:") ||
	       starts_with(name, "/SYSV") || starts_with(name, "/dev/shm/");
}

static struct thing thing_of_file(const struct filler *f,
				  const struct seg *seg)
{
	const struct space *sp = f->sp;
	const struct mapped_file *file = &sp->files[seg->file];
	struct thing t = { THING_FILE, seg->file };

	if (seg->flags & SEG_SHARED && is_memory_file(file->name))
		t.kind = THING_SHARED;
	else if (file->module == SEG_NO_FILE || seg->flags & SEG_SHARED)
		t.kind = THING_FILE;
	else if (space_seg_private(sp, seg) && !(seg->flags & SEG_X))
		t.kind = THING_DATA;
	else if (seg->flags & SEG_X)
		t.kind = THING_CODE;
	else if (seg->flags & SEG_R)
		t.kind = THING_CONST;
	else
		t.kind = THING_RESERVED;
	return t;
}

static struct thing thing_of_kernel(const struct space *sp,
				    const struct seg *seg)
{
	struct thing t = { THING_VVAR, 0 };

	if (sp->at_sysinfo && sp->at_sysinfo >= seg->start &&
	    sp->at_sysinfo < seg->end)
		t.kind = THING_VDSO;
	else if (seg->start >> 63)
		t.kind = THING_VSYSCALL;
	return t;
}

/* What a mapping is of which neither heap nor stack is a part. */
static struct thing thing_of_seg(const struct filler *f, const struct seg *seg,
				 vaddr at)
{
	const struct module *m;

	if (seg->flags & SEG_KERNEL)
		return thing_of_kernel(f->sp, seg);
	if (seg->file != SEG_NO_FILE)
		return thing_of_file(f, seg);
	if (seg->flags & SEG_SHARED)
		return (struct thing){ THING_SHARED, SEG_NO_FILE };
	if (!(seg->flags & (SEG_R | SEG_W | SEG_X)))
		return (struct thing){ space_seg_private(f->sp, seg) ?
				       THING_CLOSED : THING_RESERVED, 0 };
	m = space_module(f->sp, at);
	if (m)
		return (struct thing){ THING_BSS, m->file };
	if (seg->flags & SEG_X)
		return (struct thing){ THING_ANON_CODE, 0 };
	return (struct thing){ THING_ANON, 0 };
}

/* A file's name, whole or only its last part. */
static void add_file(struct str *s, const struct space *sp, uint32_t file,
		     bool whole)
{
	const char *name = file < sp->n_files ? sp->files[file].name : "?";

	if (!whole)
		name = file_base_name(name);
	str_add_escaped(s, name, strlen(name));
	if (whole && file < sp->n_files && sp->files[file].deleted)
		str_adds(s, " (deleted)");
}

static void add_stack(struct str *s, const struct filler *f, uint32_t index)
{
	const struct where_stack *stack = &f->w->stacks[index];

	if (stack->thread == WHERE_NO_THREAD)
		str_adds(s, stack->is_main ? "stack of the main thread, gone" :
			 "stack of a thread that is gone");
	else
		str_printf(s, "stack, %s%" PRIu32 " (tid %" PRIu32 ")",
			   stack->is_main ? "main thread " : "thread ",
			   stack->thread + 1,
			   f->sp->threads[stack->thread].tid);
}

static void add_shared(struct str *s, const struct space *sp, uint32_t file)
{
	const char *name = file < sp->n_files ? sp->files[file].name : "";

	str_adds(s, "shared memory");
	if (!*name || sp->nameless || starts_with(name, "/dev/zero"))
		return;
	str_addc(s, ' ');
	add_file(s, sp, file, true);
}

static void add_thing(struct str *s, const struct filler *f, struct thing t)
{
	static const char *const fixed[] = {
		[THING_MMAPPED] = "mmapped blocks",
		[THING_FOREIGN] = "not malloc's, inside its heap",
		[THING_BREAK] = "data before the heap of ",
		[THING_CODE] = "code of ",
		[THING_DATA] = "data of ",
		[THING_CONST] = "read-only data of ",
		[THING_BSS] = "bss of ",
		[THING_FILE] = "a file",
		[THING_ANON] = "anonymous",
		[THING_ANON_CODE] = "anonymous, executable",
		[THING_GUARD] = "guard of a stack",
		[THING_RESERVE] = "reserved for heap, ",
		[THING_RESERVED] = "reserved, no access",
		[THING_CLOSED] = "anonymous, no access",
		[THING_VDSO] = "[vdso]",
		[THING_VVAR] = "[vvar]",
		[THING_VSYSCALL] = "[vsyscall]",
	};

	if (t.kind == THING_FILE && !f->sp->nameless)
		str_adds(s, "file ");
	else if (t.kind < countof(fixed) && fixed[t.kind])
		str_adds(s, fixed[t.kind]);
	switch (t.kind) {
	case THING_HEAP:
		str_printf(s, "heap, %s", f->h->arenas[t.id].name);
		break;
	case THING_RESERVE:
		str_adds(s, f->h->arenas[t.id].name);
		break;
	case THING_STACK:
	case THING_DEAD_STACK:
		add_stack(s, f, t.id);
		break;
	case THING_BREAK:
	case THING_CODE:
	case THING_DATA:
	case THING_CONST:
	case THING_BSS:
		add_file(s, f->sp, t.id, false);
		break;
	case THING_FILE:
		if (!f->sp->nameless)
			add_file(s, f->sp, t.id, true);
		break;
	case THING_SHARED:
		add_shared(s, f->sp, t.id);
		break;
	default:
		break;
	}
}

/* ---- lines of the table of mappings ---- */

static void note_thing(struct filler *f, struct thing t)
{
	for (size_t i = 0; i < f->n_things && i < MAX_THINGS; i++)
		if (same_thing(f->things[i], t))
			return;
	if (f->n_things < MAX_THINGS)
		f->things[f->n_things] = t;
	f->n_things++;
}

static char *map_text(const struct filler *f)
{
	struct str s;

	str_init(&s);
	for (size_t i = 0; i < f->n_things && i < MAX_THINGS; i++) {
		str_adds(&s, i ? "; " : "");
		add_thing(&s, f, f->things[i]);
	}
	if (f->n_things > MAX_THINGS)
		str_printf(&s, "; and %zu more", f->n_things - MAX_THINGS);
	return str_take(&s);
}

/* Adjacent mappings of the same one thing are one line. */
static bool join_map(struct where_map *last, const struct where_map *map)
{
	if (last->end != map->start || last->is_private != map->is_private ||
	    strcmp(last->what, map->what))
		return false;
	last->end = map->end;
	last->stored += map->stored;
	residency_add(&last->pages, &map->pages);
	last->flags |= map->flags;
	last->mappings += map->mappings;
	for (int i = 0; i < WHERE_ROWS; i++)
		last->stored_row[i] += map->stored_row[i];
	return true;
}

static void begin_map(struct filler *f, const struct seg *seg)
{
	f->map = (struct where_map){
		.start = seg->start, .end = seg->end,
		.stored = space_stored(f->sp, seg->start, seg->end),
		.flags = seg->flags, .mappings = 1,
		.is_private = space_seg_private(f->sp, seg),
	};
	f->stored_end = seg->start + seg->stored;
	f->n_things = 0;
}

static void end_map(struct filler *f)
{
	struct where *w = f->w;
	bool one = f->n_things == 1;

	f->map.what = map_text(f);
	if (one && w->n_maps && join_map(&w->maps[w->n_maps - 1], &f->map))
		free(f->map.what);
	else
		MEM_PUSH(w->maps, w->n_maps, w->cap_maps) = f->map;
}

/* ---- the rows ---- */

static void count(struct filler *f, enum where_row row, uint64_t bytes,
		  uint64_t stored, const struct residency *pages)
{
	f->w->row[row].bytes += bytes;
	f->w->row[row].stored += stored;
	residency_add(&f->w->row[row].pages, pages);
	f->map.stored_row[row] += stored;
	residency_add(&f->map.pages, pages);
}

/*
 * Where the pages of these blocks are.  What of it takes memory is what the
 * file stores, unless that was cut off; then ret_missing is set too.
 */
static bool count_pages(struct filler *f, const struct piece *p,
			const uint64_t bytes[BLOCK_STATES],
			struct residency pages[BLOCK_STATES],
			uint64_t ret_missing[BLOCK_STATES])
{
	uint64_t missing = 0;

	if (!space_pages_known(f->sp))
		return false;
	residency_of_states(f->sp, &f->pages_at, p->start, p->end, pages);
	for (int s = 0; s < BLOCK_STATES; s++) {
		residency_rest(&pages[s], bytes[s]);
		missing += pages[s].zero + pages[s].absent;
	}
	if (p->end - p->start - missing !=
	    space_stored(f->sp, p->start, p->end))
		return false;
	for (int s = 0; s < BLOCK_STATES; s++)
		ret_missing[s] = pages[s].zero + pages[s].absent;
	return true;
}

/* Behind what the file has of the mapping. */
static void count_left_out(struct filler *f, const struct piece *p)
{
	uint64_t bytes[BLOCK_STATES] = { 0 };
	vaddr from = max_u64(p->start, f->stored_end);

	if (from >= p->end)
		return;
	if (!p->extent || p->extent->kind != EXTENT_BLOCKS) {
		f->w->row[p->row].left_out += p->end - from;
		return;
	}
	planes_bytes(&f->left_at, from, p->end, bytes);
	for (int s = 0; s < BLOCK_STATES; s++)
		f->w->row[row_of_state((enum block_state)s)].left_out +=
			bytes[s];
}

static void count_blocks(struct filler *f, const struct piece *p)
{
	const struct heap_extent *x = p->extent;
	uint64_t bytes[BLOCK_STATES] = { 0 }, missing[BLOCK_STATES] = { 0 };
	struct residency pages[BLOCK_STATES] = { { 0 } };
	bool whole = p->start == x->start && p->end == x->end;

	if (f->bytes_at.x != x) {
		planes_seek(&f->bytes_at, x);
		f->holes_at = f->pages_at = f->left_at = f->bytes_at;
	}
	/* heap_finish() has added up this one extent already. */
	if (whole && f->n_blocks[x->arena] == 1)
		for (int s = 0; s < BLOCK_STATES; s++)
			bytes[s] = f->h->arenas[x->arena].state[s].bytes;
	else
		planes_bytes(&f->bytes_at, p->start, p->end, bytes);
	if (!count_pages(f, p, bytes, pages, missing))
		stored_missing(f->sp, &f->holes_at, p->start, p->end, missing);
	for (int s = 0; s < BLOCK_STATES; s++)
		count(f, row_of_state((enum block_state)s), bytes[s],
		      bytes[s] - missing[s], &pages[s]);
}

static void count_piece(struct filler *f, const struct piece *p)
{
	struct residency pages = { 0 };

	note_thing(f, p->thing);
	if (!f->map.is_private)
		return;
	if (p->extent && p->extent->kind == EXTENT_BLOCKS) {
		count_blocks(f, p);
	} else {
		if (space_pages_known(f->sp))
			space_residency(f->sp, p->start, p->end, &pages);
		count(f, p->row, p->end - p->start,
		      space_stored(f->sp, p->start, p->end), &pages);
	}
	count_left_out(f, p);
}

static struct thing thing_of_extent(const struct heap_extent *x)
{
	if (x->kind == EXTENT_MMAPPED)
		return (struct thing){ THING_MMAPPED, 0 };
	if (x->kind == EXTENT_FOREIGN)
		return (struct thing){ THING_FOREIGN, 0 };
	return (struct thing){ THING_HEAP, x->arena };
}

/* Memory of the break below the heap: static TLS and the like. */
static bool before_break_heap(const struct filler *f, const struct piece *p,
			      const struct heap_extent *next)
{
	return next && p->start >= f->break_start &&
	       p->end <= f->break_end && next->start < f->break_end &&
	       (!f->extent || f->h->extents[f->extent - 1].end <=
		f->break_start);
}

/* The heap of an arena that is not main, which ends where this begins. */
static const struct heap_extent *heap_before(const struct filler *f,
					     vaddr start)
{
	const struct heap_extent *x;

	if (!f->extent)
		return NULL;
	x = &f->h->extents[f->extent - 1];
	return x->end == start && x->kind != EXTENT_MMAPPED ? x : NULL;
}

static void set_base(const struct filler *f, const struct seg *seg,
		     const struct heap_extent *next, struct piece *p)
{
	const struct heap_extent *last = heap_before(f, p->start);

	p->thing = thing_of_seg(f, seg, p->start);
	p->row = WHERE_ANONYMOUS;
	if (seg->file != SEG_NO_FILE || p->thing.kind == THING_BSS)
		p->row = WHERE_DATA;
	else if (p->thing.kind == THING_ANON && before_break_heap(f, p, next)) {
		p->row = WHERE_DATA;
		p->thing = (struct thing){ THING_BREAK, f->break_file };
	} else if (p->thing.kind == THING_RESERVED && last) {
		p->thing = (struct thing){ THING_RESERVE, last->arena };
	}
}

static void set_stack(const struct filler *f, const struct seg *seg,
		      struct piece *p)
{
	bool gone = f->w->stacks[f->stack].thread == WHERE_NO_THREAD;

	p->row = gone ? WHERE_DEAD_STACKS : WHERE_STACKS;
	p->thing = (struct thing){
		gone ? THING_DEAD_STACK : THING_STACK, (uint32_t)f->stack,
	};
	if (!(seg->flags & (SEG_R | SEG_W)))
		p->thing = (struct thing){ THING_GUARD, 0 };
}

/* The piece that begins at start: extents first, stacks next. */
static void next_piece(struct filler *f, const struct seg *seg, vaddr start,
		       struct piece *p)
{
	const struct heap *h = f->h;
	const struct where *w = f->w;
	const struct heap_extent *x;
	const struct where_stack *s;

	while (f->extent < h->n_extents && h->extents[f->extent].end <= start)
		f->extent++;
	while (f->stack < w->n_stacks && w->stacks[f->stack].end <= start)
		f->stack++;
	x = f->extent < h->n_extents ? &h->extents[f->extent] : NULL;
	s = f->stack < w->n_stacks ? &w->stacks[f->stack] : NULL;
	*p = (struct piece){ .start = start, .end = seg->end };
	if (x && x->start <= start) {
		p->end = min_u64(p->end, x->end);
		p->extent = x;
		p->row = row_of_extent(x->kind);
		p->thing = thing_of_extent(x);
		return;
	}
	if (x)
		p->end = min_u64(p->end, x->start);
	if (s && s->start <= start) {
		p->end = min_u64(p->end, s->end);
		set_stack(f, seg, p);
		return;
	}
	if (s)
		p->end = min_u64(p->end, s->start);
	set_base(f, seg, x, p);
}

/*
 * The memory of the break: the first mapping behind the program, at a random
 * distance (mm/util.c of Linux, arch_randomize_brk: at most 1 GiB).
 */
static void find_break(struct filler *f)
{
	struct space *sp = f->sp;

	f->break_file = SEG_NO_FILE;
	for (size_t i = 0; i < sp->n_modules; i++) {
		if (!sp->modules[i].is_exe)
			continue;
		f->break_file = sp->modules[i].file;
		f->break_start = sp->modules[i].end;
	}
	if (f->break_file == SEG_NO_FILE)
		return;
	for (size_t i = 0; i < sp->n_segs; i++) {
		const struct seg *seg = &sp->segs[i];

		if (seg->start < f->break_start)
			continue;
		if (space_seg_anon(seg) &&
		    seg->start - f->break_start <= MAX_BREAK_GAP)
			f->break_end = space_run_end(sp, seg->start);
		break;
	}
}

static void count_seg(struct filler *f, const struct seg *seg)
{
	struct piece p = { 0 };
	struct residency pages = { 0 };

	begin_map(f, seg);
	if (space_pages_known(f->sp))
		space_residency(f->sp, seg->start, seg->end, &pages);
	for (vaddr at = seg->start; at < seg->end; at = p.end) {
		next_piece(f, seg, at, &p);
		count_piece(f, &p);
	}
	if (f->map.is_private) {
		f->w->total.bytes += seg->end - seg->start;
		f->w->total.stored += f->map.stored;
		residency_add(&f->w->total.pages, &pages);
	} else {
		f->map.pages = pages;
	}
	end_map(f);
}

void where_init(struct where *w, struct space *sp, struct heap *h)
{
	struct filler f = { .w = w, .sp = sp, .h = h };

	*w = (struct where){ 0 };
	stack_find(w, sp, h);
	find_break(&f);
	f.n_blocks = mem_zalloc((h->n_arenas + 1) * sizeof(*f.n_blocks));
	for (size_t i = 0; i < h->n_extents; i++)
		if (h->extents[i].kind == EXTENT_BLOCKS)
			f.n_blocks[h->extents[i].arena]++;
	for (size_t i = 0; i < sp->n_segs; i++)
		count_seg(&f, &sp->segs[i]);
	free(f.n_blocks);
}

void where_fini(struct where *w)
{
	for (size_t i = 0; i < w->n_maps; i++)
		free(w->maps[i].what);
	free(w->maps);
	free(w->stacks);
	*w = (struct where){ 0 };
}

/* ---- asking ---- */

bool where_check(const struct where *w, int64_t *ret_off)
{
	struct where_amount sum = { 0 };
	uint64_t off[4];

	for (int i = 0; i < WHERE_ROWS; i++) {
		sum.bytes += w->row[i].bytes;
		sum.stored += w->row[i].stored;
		residency_add(&sum.pages, &w->row[i].pages);
	}
	off[0] = sum.bytes - w->total.bytes;
	off[1] = sum.stored - w->total.stored;
	off[2] = sum.pages.resident - w->total.pages.resident;
	off[3] = sum.pages.swapped - w->total.pages.swapped;
	for (size_t i = 0; i < countof(off); i++)
		if (off[i]) {
			*ret_off = (int64_t)off[i];
			return false;
		}
	return true;
}

const struct where_stack *where_stack_at(const struct where *w, vaddr addr)
{
	size_t lo = BISECT(mid, 0, w->n_stacks, w->stacks[mid].start <= addr);

	return lo && addr < w->stacks[lo - 1].end ? &w->stacks[lo - 1] : NULL;
}

const struct where_map *where_map_at(const struct where *w, vaddr addr)
{
	size_t lo = BISECT(mid, 0, w->n_maps, w->maps[mid].start <= addr);

	return lo && addr < w->maps[lo - 1].end ? &w->maps[lo - 1] : NULL;
}
