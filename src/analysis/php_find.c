/* SPDX-License-Identifier: MIT */
#include "analysis/php_find.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/sort.h"

enum {
	MAX_STACKS = 4096,
	STACK_MIN = 16 << 10,		/* that of a fiber */
	STACK_SLACK = 8 << 10,		/* a debug build's is longer */
	PAGE = 4096,
};

#define NATIVE_MAX (16 * GIB)		/* bytes that are looked at */

/* ---- memory that is not PHP's ---- */

void php_native_init(struct php_native *n, struct space *sp, struct heap *h)
{
	n->sp = sp;
	n->heap = h;
	n->seg = n->extent = 0;
	n->at = n->end = 0;
	n->open = false;
	n->budget = NATIVE_MAX;
}

static bool is_php(const struct heap *h, const struct heap_extent *x)
{
	return !strcmp(h->allocators[h->arenas[x->arena].allocator].name,
		       "zend");
}

static bool next_segment(struct php_native *n)
{
	while (n->seg < n->sp->n_segs) {
		const struct seg *seg = &n->sp->segs[n->seg++];

		if (!(seg->flags & SEG_W) ||
		    seg->flags & (SEG_SHARED | SEG_KERNEL))
			continue;
		n->at = seg->start;
		n->end = seg->start + seg->avail;
		return true;
	}
	return false;
}

/* Extents are sorted: both lists are gone through once. */
static bool next_range(struct php_native *n)
{
	const struct heap *h = n->heap;
	const struct heap_extent *x;
	vaddr end;

	for (;;) {
		if (n->at >= n->end && !next_segment(n))
			return false;
		while (n->extent < h->n_extents &&
		       (h->extents[n->extent].end <= n->at ||
			!is_php(h, &h->extents[n->extent])))
			n->extent++;
		x = n->extent < h->n_extents ? &h->extents[n->extent] : NULL;
		end = x ? min_u64(n->end, x->start) : n->end;
		if (end > n->at) {
			words_init(&n->words, n->sp, n->at, end, WORDS_BUFFER,
				   &n->budget);
			n->at = end;
			return true;
		}
		n->at = x ? min_u64(n->end, x->end) : n->end;
	}
}

bool php_native_next(struct php_native *n, vaddr *addr, uint64_t *word)
{
	while (!n->open || !words_next(&n->words, addr, word)) {
		n->open = next_range(n);
		if (!n->open)
			return false;
	}
	return true;
}

/* ---- executor_globals ---- */

/* A page of a stack of calls, by its start. */
struct stack {
	vaddr page, end;
};

struct stacks {
	struct stack items[MAX_STACKS];	/* sorted by page */
	size_t n;
};

static void add_stack(struct stacks *s, struct space *sp, const struct block *b)
{
	uint64_t head[2];
	vaddr end = b->addr + b->usable;

	if (s->n == MAX_STACKS || b->usable < STACK_MIN ||
	    b->addr % PAGE || b->usable % PAGE ||
	    space_read(sp, b->addr, head, sizeof(head)) != sizeof(head) ||
	    head[0] < b->addr + 24 || head[0] > head[1] || head[1] > end ||
	    end - head[1] >= STACK_SLACK)
		return;
	s->items[s->n++] = (struct stack){ b->addr, head[1] };
}

static void find_stacks(struct stacks *s, struct space *sp,
			const struct heap *h, uint32_t arena)
{
	s->n = 0;
	for (size_t i = 0; i < h->n_extents; i++) {
		const struct heap_extent *x = &h->extents[i];
		struct heap_iter it;
		struct block b;

		if (x->arena != arena || (x->kind != EXTENT_BLOCKS &&
					  x->kind != EXTENT_MMAPPED))
			continue;
		heap_iter_range(&it, h, x->start, x->end);
		while (heap_iter_next(&it, &b))
			if (b.state == BLOCK_USED)
				add_stack(s, sp, &b);
	}
}

static bool is_table(struct space *sp, vaddr table)
{
	uint32_t type, mask, used, size;

	return !(table % 8) && space_u32(sp, table + 4, &type) &&
	       (type & PHP_TYPE_MASK) == PHP_ARRAY &&
	       space_u32(sp, table + PHP_ARRAY_MASK, &mask) && mask >> 31 &&
	       space_u32(sp, table + PHP_ARRAY_USED, &used) &&
	       space_u32(sp, table + PHP_ARRAY_SIZE, &size) && used <= size;
}

static bool is_table_at(struct space *sp, vaddr addr)
{
	uint64_t table;

	return space_u64(sp, addr, &table) && is_table(sp, table);
}

/* Do the fields of this release fit what is there? */
static bool is_executor(struct space *sp, vaddr eg, const struct php_layout *l)
{
	uint64_t buckets;
	uint32_t top, size;

	return is_table(sp, eg + PHP_EG_SYMBOLS) &&
	       is_table(sp, eg + PHP_EG_FILES) &&
	       is_table(sp, eg + l->resources) &&
	       is_table_at(sp, eg + l->functions) &&
	       is_table_at(sp, eg + l->functions + 8) &&
	       is_table_at(sp, eg + l->functions + 16) &&
	       space_u64(sp, eg + l->objects, &buckets) &&
	       space_u32(sp, eg + l->objects + 8, &top) &&
	       space_u32(sp, eg + l->objects + 12, &size) &&
	       top && top <= size && space_readable(sp, buckets,
						    (uint64_t)top * 8);
}

static const struct php_layout *fitting(struct space *sp, vaddr end_at,
					const struct php_layout *only)
{
	for (const struct php_layout *l = php_layouts; l->api; l++)
		if ((!only || l == only) &&
		    is_executor(sp, end_at - l->stack - 8, l))
			return l;
	return NULL;
}

/* Words that are a page of a stack, its end before it. */
static bool find_executor(struct space *sp, struct heap *h,
			  const struct stacks *stacks,
			  const struct php_layout *only,
			  struct php_engine *ret,
			  const struct php_layout **ret_layout)
{
	struct php_native native;
	vaddr addr, last_addr = 0;
	uint64_t word, last = 0;

	php_native_init(&native, sp, h);
	while (php_native_next(&native, &addr, &word)) {
		const struct stack *s = NULL;

		if (!(word % PAGE) && addr == last_addr + 8 && last > word)
			s = FIND(stacks->items, stacks->n, word);
		if (s && s->end == last) {
			*ret_layout = fitting(sp, last_addr, only);
			if (*ret_layout) {
				ret->executor = last_addr -
					(*ret_layout)->stack - 8;
				return true;
			}
		}
		last_addr = addr;
		last = word;
	}
	return false;
}

/* ---- compiler_globals ---- */

static bool is_compiler(struct space *sp, vaddr cg, const struct php_layout *l)
{
	uint64_t arena, end;

	return is_table(sp, cg + l->arena + 8) &&
	       space_u64(sp, cg + l->arena, &arena) && arena &&
	       space_u64(sp, arena + 8, &end) && end > arena;
}

static void find_compiler(struct space *sp, struct heap *h,
			  const struct php_layout *l, struct php_engine *ret)
{
	vaddr pair = ret->executor + l->functions, addr, last_addr = 0;
	uint64_t functions, classes, word, last = 0;
	struct php_native native;

	if (!space_u64(sp, pair, &functions) ||
	    !space_u64(sp, pair + 8, &classes))
		return;
	php_native_init(&native, sp, h);
	while (php_native_next(&native, &addr, &word)) {
		if (word == classes && last == functions &&
		    addr == last_addr + 8 && last_addr != pair &&
		    is_compiler(sp, last_addr - PHP_CG_FUNCTIONS, l)) {
			ret->compiler = last_addr - PHP_CG_FUNCTIONS;
			return;
		}
		last_addr = addr;
		last = word;
	}
}

void php_find_engine(struct space *sp, struct heap *h, uint32_t arena,
		     const struct php_layout *layout,
		     struct php_engine *ret,
		     const struct php_layout **ret_layout)
{
	struct stacks *stacks = mem_alloc(sizeof(*stacks));

	*ret = (struct php_engine){ 0 };
	*ret_layout = NULL;
	find_stacks(stacks, sp, h, arena);
	if (stacks->n &&
	    find_executor(sp, h, stacks, layout, ret, ret_layout))
		find_compiler(sp, h, *ret_layout, ret);
	free(stacks);
}
