/* SPDX-License-Identifier: MIT */
#include "analysis/stack.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/sort.h"

enum {
	/* struct pthread has 0x8c0 to 0x980 bytes: nptl/descr.h. */
	TCB_SIZE = 0x1000,
	TCB_ALIGN = 64,		/* static TLS is aligned at least so */
	/* The list node of a descriptor: 0x2c0 in it on x86-64. */
	TCB_LIST_MAX = 0x400,
	MAX_STACKS = 65536,
	/* Of a stack whose exact range is not known. */
	MAX_GUESS = 64 << 20,
	/* Of a module's data; that of libc and the loader has some 20 KB. */
	MAX_DATA = 4 << 20,
};

struct finder {
	struct where *w;
	struct space *sp;
	struct heap *h;
	uint64_t *tls;		/* owned; thread pointers, sorted */
	size_t n_tls;
	uint64_t budget;	/* probes left; bounds the time */
};

static bool is_page(const struct space *sp, uint64_t value)
{
	return value && !(value & (sp->page - 1));
}

static bool plain_memory(const struct seg *seg)
{
	return seg && space_seg_anon(seg) &&
	       (seg->flags & (SEG_R | SEG_W)) == (SEG_R | SEG_W);
}

static bool same_word(struct space *sp, vaddr addr, uint64_t want)
{
	uint64_t got;

	return space_word(sp, addr, &got) && got == want;
}

/*
 * x86: tcbhead_t begins with a pointer to itself and has another one in its
 * third word (sysdeps/x86_64/nptl/tls.h, sysdeps/i386/nptl/tls.h).
 */
static bool is_tcb(struct space *sp, vaddr addr)
{
	return sp->machine != MACHINE_AARCH64 &&
	       same_word(sp, addr, addr) &&
	       same_word(sp, addr + 2 * sp->word, addr);
}

/* stackblock and its size in a word pair at addr? */
static bool pair_at(struct space *sp, vaddr addr, vaddr tcb,
		    struct where_stack *ret)
{
	uint64_t start, size, end;

	if (!space_word(sp, addr, &start) || !is_page(sp, start) ||
	    start >= tcb)
		return false;
	if (!space_word(sp, addr + sp->word, &size) || !is_page(sp, size) ||
	    !add_ok(start, size, &end) || end <= tcb)
		return false;
	if (!plain_memory(space_seg(sp, tcb)) || space_run_end(sp, tcb) < end)
		return false;
	*ret = (struct where_stack){
		.start = start, .end = end, .tcb = tcb,
		.thread = WHERE_NO_THREAD, .exact = true,
	};
	return true;
}

/*
 * The stack of the thread whose pointer is tcb.  On x86 the descriptor begins
 * there, on aarch64 it ends there.
 */
static bool stack_of_tcb(struct space *sp, vaddr tcb, struct where_stack *ret)
{
	vaddr from = sp->machine == MACHINE_AARCH64 ? tcb - TCB_SIZE : tcb;

	if (tcb < TCB_SIZE || tcb > UINT64_MAX - 2 * TCB_SIZE)
		return false;
	for (unsigned off = 0; off < TCB_SIZE; off += sp->word)
		if (pair_at(sp, from + off, tcb, ret))
			return true;
	return false;
}

static void add_stack(struct finder *f, const struct where_stack *stack)
{
	struct where *w = f->w;

	if (w->n_stacks < MAX_STACKS)
		MEM_PUSH(w->stacks, w->n_stacks, w->cap_stacks) = *stack;
}

/* ---- living threads ---- */

/* A stack whose end is that of its mapping, below which nobody may be. */
static void add_by_sp(struct finder *f, uint32_t thread, bool is_main)
{
	struct space *sp = f->sp;
	vaddr at = sp->threads[thread].sp;
	const struct seg *seg = space_seg(sp, at);

	if (!plain_memory(seg) || heap_extent_at(f->h, at) ||
	    space_module(sp, at))
		return;
	if (!is_main && seg->end - seg->start > MAX_GUESS)
		return;
	add_stack(f, &(struct where_stack){
		.start = seg->start, .end = seg->end, .thread = thread,
		.is_main = is_main, .exact = is_main,
	});
}

/* Does the first stack's place fit: above every program and library? */
static bool above_modules(const struct space *sp, vaddr addr)
{
	return sp->n_modules && addr >= sp->modules[sp->n_modules - 1].end;
}

/*
 * No thread runs on the first stack: it has ended, or runs elsewhere just
 * now.  The kernel put it above everything else but its own pages.
 */
static void add_top_stack(struct finder *f, uint32_t thread)
{
	struct space *sp = f->sp;

	for (size_t i = sp->n_segs; i-- > 0;) {
		const struct seg *seg = &sp->segs[i];

		if (seg->flags & SEG_KERNEL)
			continue;
		if (!plain_memory(seg) || space_module(sp, seg->start) ||
		    heap_extent_at(f->h, seg->start) ||
		    heap_extent_at(f->h, seg->end - 1))
			return;
		if (!above_modules(sp, seg->start) ||
		    seg->end - seg->start > MAX_GUESS)
			return;
		add_stack(f, &(struct where_stack){
			.start = seg->start, .end = seg->end,
			.thread = thread, .is_main = true,
		});
		return;
	}
}

static void find_living(struct finder *f)
{
	struct space *sp = f->sp;
	uint32_t first = WHERE_NO_THREAD;
	struct where_stack stack;
	bool on_top;

	for (uint32_t i = 0; i < sp->n_threads; i++) {
		const struct thread *t = &sp->threads[i];

		if (t->tls && stack_of_tcb(sp, t->tls, &stack)) {
			stack.thread = i;
			add_stack(f, &stack);
		} else if (first == WHERE_NO_THREAD && t->tid &&
			   t->tid == sp->pid) {
			first = i;
		} else {
			add_by_sp(f, i, false);
		}
	}
	on_top = first != WHERE_NO_THREAD &&
		 above_modules(sp, sp->threads[first].sp);
	if (first != WHERE_NO_THREAD)
		add_by_sp(f, first, on_top);
	if (!on_top)
		add_top_stack(f, first);
}

/* ---- threads that are gone ---- */

static bool is_living(const struct finder *f, vaddr tcb)
{
	return FIND(f->tls, f->n_tls, tcb);
}

static void spend(struct finder *f, uint64_t probes)
{
	f->budget -= min_u64(f->budget, probes);
}

static bool known_tcb(struct finder *f, vaddr tcb)
{
	const struct where *w = f->w;

	spend(f, w->n_stacks / 8);
	for (size_t i = w->n_stacks; i-- > 0;)
		if (w->stacks[i].tcb == tcb)
			return true;
	return false;
}

static void met_tcb(struct finder *f, vaddr tcb)
{
	struct space *sp = f->sp;
	struct where_stack stack;
	const struct thread *t;

	spend(f, 1);
	if (is_living(f, tcb) || known_tcb(f, tcb))
		return;
	spend(f, TCB_SIZE / TCB_ALIGN + sp->n_threads / 8);
	if (!stack_of_tcb(sp, tcb, &stack))
		return;
	/* Thread pointers can be missing, as in cores of emulators. */
	t = space_thread_on(sp, stack.start, stack.end);
	if (t)
		stack.thread = (uint32_t)(t - sp->threads);
	add_stack(f, &stack);
}

/*
 * node is a list node in a descriptor off bytes before it.  The list is
 * circular and its head is in libc's data, where no descriptor is.
 */
static void follow_list(struct finder *f, vaddr node, uint64_t off)
{
	vaddr first = node;

	while (f->budget && node >= off && is_tcb(f->sp, node - off)) {
		met_tcb(f, node - off);
		if (!space_word(f->sp, node, &node) || node == first)
			return;
	}
}

/* A word of a module's data: does it point into a descriptor? */
static void try_pointer(struct finder *f, vaddr ptr)
{
	vaddr tcb = round_down(ptr, TCB_ALIGN);

	for (unsigned i = 0; i <= TCB_LIST_MAX / TCB_ALIGN && f->budget; i++) {
		spend(f, 1);
		if (is_tcb(f->sp, tcb)) {
			follow_list(f, ptr, ptr - tcb);
			return;
		}
		if (tcb < TCB_ALIGN)
			return;
		tcb -= TCB_ALIGN;
	}
}

/* Is ptr an address where a descriptor may be? */
static bool may_hold_tcb(struct finder *f, vaddr ptr)
{
	return !(ptr & (f->sp->word - 1)) &&
	       plain_memory(space_seg(f->sp, ptr)) &&
	       !heap_extent_at(f->h, ptr);
}

static void scan_words(struct finder *f, const uint8_t *bytes, uint64_t n,
		       const vaddr range[2])
{
	unsigned word = f->sp->word;

	for (uint64_t i = 0; i + word <= n && f->budget; i += word) {
		vaddr ptr = load_word(bytes + i, word);

		if (ptr >= range[0] && ptr < range[1] && may_hold_tcb(f, ptr))
			try_pointer(f, ptr);
	}
}

/* From the lists of descriptors in the data of libc and the loader. */
static void find_by_lists(struct finder *f)
{
	struct space *sp = f->sp;
	vaddr range[2] = { UINT64_MAX, 0 };
	uint64_t left = 16 * MAX_DATA;

	for (size_t i = 0; i < sp->n_segs; i++) {
		const struct seg *seg = &sp->segs[i];

		if (!plain_memory(seg) || space_module(sp, seg->start))
			continue;
		range[0] = min_u64(range[0], seg->start);
		range[1] = max_u64(range[1], seg->end);
	}
	for (size_t i = 0; i < sp->n_segs && f->budget && left; i++) {
		const struct seg *seg = &sp->segs[i];
		uint64_t n = min_u64(seg->avail, min_u64(left, MAX_DATA));
		const uint8_t *bytes;

		if (!(seg->flags & SEG_W) || !space_module(sp, seg->start))
			continue;
		left -= n;
		bytes = n ? space_view(sp, seg->start, n) : NULL;
		if (bytes)
			scan_words(f, bytes, n, range);
	}
}

/* A descriptor in the last page of a stack that ends at end. */
static bool find_at_end(struct finder *f, vaddr end, vaddr *ret_start)
{
	vaddr tcb = round_down(end, TCB_ALIGN);
	struct where_stack stack;

	for (unsigned i = 1; i <= TCB_SIZE / TCB_ALIGN && f->budget; i++) {
		vaddr at = tcb - i * TCB_ALIGN;

		spend(f, 1);
		if (!is_tcb(f->sp, at) || !stack_of_tcb(f->sp, at, &stack) ||
		    stack.end != end)
			continue;
		met_tcb(f, at);
		*ret_start = stack.start;
		return true;
	}
	return false;
}

/*
 * From the ends of mappings.  Where stacks lie side by side in one mapping,
 * each one found leads to the next.
 */
static void find_by_ends(struct finder *f)
{
	struct space *sp = f->sp;

	if (sp->machine == MACHINE_AARCH64)
		return;
	for (size_t i = 0; i < sp->n_segs && f->budget; i++) {
		const struct seg *seg = &sp->segs[i];
		vaddr end = seg->end;

		if (!plain_memory(seg) || space_module(sp, seg->start))
			continue;
		while (end > seg->start && end >= TCB_SIZE && f->budget &&
		       !heap_extent_at(f->h, end - 1) &&
		       find_at_end(f, end, &end))
			;
	}
}

/* ---- putting in order ---- */

static int better_first(const void *a, const void *b)
{
	const struct where_stack *x = a, *y = b;

	if (x->exact != y->exact)
		return x->exact ? -1 : 1;
	if ((x->thread == WHERE_NO_THREAD) != (y->thread == WHERE_NO_THREAD))
		return x->thread == WHERE_NO_THREAD ? 1 : -1;
	return ORDER(x->start, y->start) ?: ORDER(x->end, y->end);
}

static int by_start(const void *a, const void *b)
{
	const struct where_stack *x = a, *y = b;

	return ORDER(x->start, y->start) ?: better_first(a, b);
}

/*
 * Overlaps: of two exact claims the first one stands, and a mapping guessed
 * to be one stack gives way to what lies in it.
 */
static void settle(struct where *w)
{
	size_t kept = 0;

	if (!w->n_stacks)
		return;
	SORT(w->stacks, w->n_stacks, by_start);
	for (size_t i = 0; i < w->n_stacks; i++) {
		struct where_stack s = w->stacks[i];
		struct where_stack *last = kept ? &w->stacks[kept - 1] : NULL;

		if (last && s.start < last->end) {
			if (!last->exact && s.start > last->start)
				last->end = s.start;
			else
				s.start = last->end;
		}
		if (s.start < s.end)
			w->stacks[kept++] = s;
	}
	w->n_stacks = kept;
}

void stack_find(struct where *w, struct space *sp, struct heap *h)
{
	struct finder f = { .w = w, .sp = sp, .h = h, .budget = 4 << 20 };

	f.tls = mem_alloc((sp->n_threads + 1) * sizeof(*f.tls));
	for (size_t i = 0; i < sp->n_threads; i++)
		if (sp->threads[i].tls)
			f.tls[f.n_tls++] = sp->threads[i].tls;
	SORT(f.tls, f.n_tls, num_compare_u64);
	find_living(&f);
	find_by_lists(&f);
	find_by_ends(&f);
	settle(w);
	free(f.tls);
}
