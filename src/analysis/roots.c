/* SPDX-License-Identifier: MIT */
#include "analysis/roots.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/sort.h"

enum {
	/* Below the stack pointer and yet alive: System V ABI, AMD64, 3.2.2. */
	RED_ZONE = 128,
	/* At a thread pointer: the descriptor above, variables below. */
	TCB_SIZE = 0x900,
	TLS_MAX = 1 << 16,
};

/* Thread-local variables that lie on no stack: those of the first thread. */
struct tls {
	vaddr start, end;
	uint32_t thread;
};

/* Everything is sorted by address, and so one pass with cursors will do. */
struct sweep {
	struct roots *r;
	struct space *sp;
	const struct heap *h;
	const struct where *w;
	size_t extent, own, stack, at_tls;
	struct tls *tls;	/* owned; sorted, without overlaps */
	size_t n_tls;
	uint64_t *sps;		/* owned; stack pointers, sorted */
	vaddr limit;		/* what is known holds up to here */
};

const char *root_kind_name(enum root_kind kind)
{
	static const char *const names[ROOT_KINDS] = {
		[ROOT_DATA] = "data",
		[ROOT_ANONYMOUS] = "anonymous",
		[ROOT_SHARED] = "shared",
		[ROOT_UNDECODED] = "undecoded",
		[ROOT_STACK] = "stack",
		[ROOT_REGISTERS] = "registers",
		[ROOT_STALE] = "stale",
	};

	return names[kind];
}

static void add_root(struct roots *r, const struct root *root)
{
	MEM_PUSH(r->items, r->n, r->cap) = *root;
	r->bytes[root->kind] += root->end - root->start;
}

/*
 * Is addr in the item that starts and ends there?  Behind it the cursor moves
 * on, and before the next item the limit ends.
 */
static bool inside(struct sweep *s, vaddr addr, vaddr start, vaddr end)
{
	if (addr < start) {
		s->limit = min_u64(s->limit, start);
		return false;
	}
	s->limit = min_u64(s->limit, end);
	return true;
}

static const struct heap_extent *in_extent(struct sweep *s, vaddr addr)
{
	const struct heap *h = s->h;

	while (s->extent < h->n_extents && h->extents[s->extent].end <= addr)
		s->extent++;
	if (s->extent == h->n_extents ||
	    !inside(s, addr, h->extents[s->extent].start,
		    h->extents[s->extent].end))
		return NULL;
	return &h->extents[s->extent];
}

static bool in_own(struct sweep *s, vaddr addr)
{
	const struct heap *h = s->h;

	while (s->own < h->n_own && h->own[s->own].end <= addr)
		s->own++;
	return s->own < h->n_own && inside(s, addr, h->own[s->own].start,
					   h->own[s->own].end);
}

static const struct where_stack *in_stack(struct sweep *s, vaddr addr)
{
	const struct where *w = s->w;

	while (s->stack < w->n_stacks && w->stacks[s->stack].end <= addr)
		s->stack++;
	if (s->stack == w->n_stacks ||
	    !inside(s, addr, w->stacks[s->stack].start,
		    w->stacks[s->stack].end))
		return NULL;
	return &w->stacks[s->stack];
}

static const struct tls *in_tls(struct sweep *s, vaddr addr)
{
	while (s->at_tls < s->n_tls && s->tls[s->at_tls].end <= addr)
		s->at_tls++;
	if (s->at_tls == s->n_tls ||
	    !inside(s, addr, s->tls[s->at_tls].start,
		    s->tls[s->at_tls].end))
		return NULL;
	return &s->tls[s->at_tls];
}

/*
 * Where the living part of a stack begins.  A thread that runs elsewhere, on
 * the stack of a signal handler or of a coroutine, may come back to any of its
 * own.  Of a thread that is gone the C library still needs the descriptor.
 */
static vaddr live_from(const struct sweep *s, const struct where_stack *stack)
{
	const struct space *sp = s->sp;
	uint64_t red = sp->machine == MACHINE_X86_64 ? RED_ZONE : 0;
	size_t lo;

	if (stack->thread == WHERE_NO_THREAD)
		return stack->tcb ? round_down(stack->tcb, sp->word)
				  : stack->end;
	/* The lowest one that lies in it, whoever's. */
	lo = BISECT(mid, 0, sp->n_threads, s->sps[mid] < stack->start);
	if (lo == sp->n_threads || s->sps[lo] >= stack->end ||
	    sp->threads[stack->thread].sp < stack->start ||
	    sp->threads[stack->thread].sp >= stack->end)
		return stack->start;
	return round_down(s->sps[lo] - min_u64(red, s->sps[lo] -
					       stack->start), sp->word);
}

static enum root_kind stack_kind(struct sweep *s, vaddr addr,
				 const struct where_stack *stack)
{
	vaddr live = live_from(s, stack);

	if (addr >= live)
		return ROOT_STACK;
	s->limit = min_u64(s->limit, live);
	return ROOT_STALE;
}

/* False: what is at addr is no root. */
static bool classify(struct sweep *s, const struct seg *seg, vaddr addr,
		     struct root *ret)
{
	const struct heap_extent *x = in_extent(s, addr);
	bool own = in_own(s, addr);
	const struct where_stack *stack = in_stack(s, addr);
	const struct tls *tls = in_tls(s, addr);

	ret->thread = WHERE_NO_THREAD;
	ret->kind = seg->flags & SEG_SHARED ? ROOT_SHARED :
		    space_module(s->sp, addr) ? ROOT_DATA : ROOT_ANONYMOUS;
	if (own)
		return false;
	if (x) {
		ret->kind = x->kind == EXTENT_UNDECODED ? ROOT_UNDECODED
							: ROOT_ANONYMOUS;
		return x->kind == EXTENT_UNDECODED ||
		       x->kind == EXTENT_FOREIGN ||
		       x->kind == EXTENT_RUNTIME;
	}
	if (stack) {
		ret->kind = stack_kind(s, addr, stack);
		ret->thread = stack->thread;
	} else if (tls) {
		ret->kind = ROOT_STACK;
		ret->thread = tls->thread;
	}
	return true;
}

static bool may_hold_roots(const struct space *sp, const struct seg *seg)
{
	if (!(seg->flags & SEG_R) || seg->flags & SEG_KERNEL)
		return false;
	if (seg->flags & SEG_SHARED)
		return seg->flags & SEG_W;
	return space_seg_private(sp, seg);
}

/* ---- the recorder's trace ---- */

#define RECORDER "libheapcore-record.so"

/* Are the bytes of name, with its 0, in memory that the module may write? */
static bool module_names(struct space *sp, const struct module *m,
			 const char *name)
{
	for (size_t i = space_first_seg(sp, m->start);
	     i < sp->n_segs && sp->segs[i].start < m->end; i++) {
		const struct seg *seg = &sp->segs[i];
		uint64_t n = 0;
		const uint8_t *bytes = seg->flags & SEG_W
			? space_view_max(sp, seg->start, &n) : NULL;

		n = min_u64(n, seg->end - seg->start);
		if (bytes && memmem(bytes, n, name, strlen(name) + 1))
			return true;
	}
	return false;
}

/*
 * Is it a part of the trace that heapcore record lets the process write?  All
 * addresses are in it, and none is the program's.  The recorder knows its path.
 */
static bool is_trace(struct space *sp, const struct seg *seg)
{
	const char *name;

	if (!(seg->flags & SEG_SHARED) || seg->file == SEG_NO_FILE)
		return false;
	name = strrchr(sp->files[seg->file].name, '/');
	if (!name)
		return false;
	for (size_t i = 0; i < sp->n_modules; i++) {
		const struct module *m = &sp->modules[i];

		if (!strcmp(file_base_name(sp->files[m->file].name),
			    RECORDER))
			return module_names(sp, m, name);
	}
	return false;
}

/* ---- the sweep ---- */

static void sweep_seg(struct sweep *s, const struct seg *seg)
{
	vaddr end = seg->start + seg->avail;
	struct root root;

	for (vaddr at = seg->start; at < end; at = s->limit) {
		s->limit = end;
		if (!classify(s, seg, at, &root))
			continue;
		root.start = at;
		root.end = s->limit;
		add_root(s->r, &root);
	}
	if (seg->flags & SEG_W && seg->flags & SEG_SHARED)
		s->r->missing_shared += seg->end - end;
	else if (seg->flags & SEG_W)
		s->r->missing_bytes += seg->end - end;
}

static void find_main_stack(struct sweep *s)
{
	s->r->no_main_stack = s->sp->n_threads > 0;
	for (size_t i = 0; i < s->r->n; i++)
		if (s->r->items[i].kind == ROOT_STACK &&
		    where_stack_at(s->w, s->r->items[i].start))
			s->r->no_main_stack = false;
}

/*
 * The dynamic linker gives the first thread's variables a mapping.  Others are
 * at the top of their stacks.
 */
static void find_tls(struct sweep *s)
{
	struct space *sp = s->sp;
	size_t n = 0;

	s->tls = mem_alloc((sp->n_threads + 1) * sizeof(*s->tls));
	for (uint32_t i = 0; i < sp->n_threads; i++) {
		vaddr at = sp->threads[i].tls;
		const struct seg *seg = at ? space_seg(sp, at) : NULL;

		if (sp->machine == MACHINE_AARCH64 || !seg ||
		    seg->flags & SEG_SHARED || space_module(sp, at) ||
		    where_stack_at(s->w, at))
			continue;
		s->tls[s->n_tls++] = (struct tls){
			max_u64(seg->start, at - min_u64(at, TLS_MAX)),
			min_u64(seg->end, at + TCB_SIZE), i,
		};
	}
	SORT_BY(s->tls, s->n_tls, start);
	for (size_t i = 0; i < s->n_tls; i++)
		if (!n || s->tls[n - 1].end <= s->tls[i].start)
			s->tls[n++] = s->tls[i];
	s->n_tls = n;
}

void roots_init(struct roots *r, struct space *sp, const struct heap *h,
		const struct where *w)
{
	struct sweep s = { .r = r, .sp = sp, .h = h, .w = w };

	*r = (struct roots){ 0 };
	s.sps = mem_alloc((sp->n_threads + 1) * sizeof(*s.sps));
	for (size_t i = 0; i < sp->n_threads; i++)
		s.sps[i] = sp->threads[i].sp;
	SORT(s.sps, sp->n_threads, num_compare_u64);
	find_tls(&s);
	for (size_t i = 0; i < sp->n_segs; i++)
		if (may_hold_roots(sp, &sp->segs[i]) &&
		    !is_trace(sp, &sp->segs[i]))
			sweep_seg(&s, &sp->segs[i]);
	/* What the kernel left out because nobody ever wrote it is zeros. */
	if (!sp->missing_segs && !sp->undumped_segs)
		r->missing_bytes = 0;
	find_main_stack(&s);
	for (uint32_t i = 0; i < sp->n_threads; i++)
		add_root(r, &(struct root){
			.kind = ROOT_REGISTERS, .thread = i,
		});
	free(s.tls);
	free(s.sps);
}

void roots_fini(struct roots *r)
{
	free(r->items);
	*r = (struct roots){ 0 };
}
