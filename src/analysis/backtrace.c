/* SPDX-License-Identifier: MIT */
#include "analysis/backtrace.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/sort.h"

/* Frames of all threads together. */
enum { BUDGET = 1 << 22 };

/* ---- frames ---- */

static struct backtrace_frame short_form(const struct frame *f)
{
	return (struct backtrace_frame){
		.pc = f->pc, .sp = f->sp, .lookup = frame_lookup(f),
		.guess = f->guess, .signal = f->signal,
	};
}

static void keep(struct backtraces *b, struct backtrace *t,
		 const struct backtrace_frame *f)
{
	MEM_PUSH(b->frames, b->n_frames, b->cap_frames) = *f;
	t->n++;
}

/* The last ones go round in a ring until it is known that they are. */
static void walk(struct backtraces *b, struct cfi *cfi,
		 const struct thread *thread, uint64_t *budget,
		 struct backtrace *t)
{
	struct backtrace_frame ring[BACKTRACE_TAIL];
	uint64_t count = 0, tail;
	struct frame f;

	t->first = b->n_frames;
	unwind_first(b->sp, thread, &f);
	do {
		struct backtrace_frame now = short_form(&f);

		if (count < BACKTRACE_HEAD)
			keep(b, t, &now);
		else
			ring[count % BACKTRACE_TAIL] = now;
		count++;
		t->end = UNWIND_LIMIT;
		if (count == BACKTRACE_MAX || !*budget)
			break;
		--*budget;
		t->end = unwind_next(b->sp, cfi, &f);
	} while (t->end == UNWIND_MORE);
	t->head = t->n;
	tail = min_u64(count - t->n, BACKTRACE_TAIL);
	t->left_out = count - t->n - tail;
	for (uint64_t i = count - tail; i < count; i++)
		keep(b, t, &ring[i % BACKTRACE_TAIL]);
}

/* ---- threads that stand at the same place ---- */

struct by_stack {
	const struct backtraces *b;
	uint32_t thread;
};

static int by_stack(const void *a, const void *b)
{
	const struct by_stack *x = a, *y = b;
	const struct backtrace *s = &x->b->of[x->thread];
	const struct backtrace *t = &y->b->of[y->thread];

	int order = ORDER(s->n, t->n) ?: ORDER(s->left_out, t->left_out);

	for (size_t i = 0; !order && i < s->n; i++)
		order = ORDER(x->b->frames[s->first + i].pc,
			      x->b->frames[t->first + i].pc);
	return order;
}

static int by_stack_and_thread(const void *a, const void *b)
{
	const struct by_stack *x = a, *y = b;

	return by_stack(a, b) ?: ORDER(x->thread, y->thread);
}

static void find_same(struct backtraces *b)
{
	size_t n = b->sp->n_threads;
	struct by_stack *order = mem_alloc(n * sizeof(*order));

	for (uint32_t i = 0; i < n; i++)
		order[i] = (struct by_stack){ b, i };
	SORT(order, n, by_stack_and_thread);
	for (size_t i = 0; i < n; i++)
		b->of[order[i].thread].same =
			i && !by_stack(&order[i - 1], &order[i]) ?
			b->of[order[i - 1].thread].same : order[i].thread;
	free(order);
}

/* ---- names ---- */

static void list_addresses(struct backtraces *b)
{
	size_t n = 0;

	b->names = mem_zalloc(b->n_frames * sizeof(*b->names));
	for (size_t i = 0; i < b->n_frames; i++)
		b->names[i].lookup = b->frames[i].lookup;
	SORT_BY(b->names, b->n_frames, lookup);
	for (size_t i = 0; i < b->n_frames; i++)
		if (!n || b->names[i].lookup != b->names[n - 1].lookup)
			b->names[n++] = b->names[i];
	b->n_names = n;
}

static void find_names(struct backtraces *b, struct debug *debug,
		       struct symbols *symbols)
{
	b->lines = lines_new();
	for (size_t i = 0; i < b->n_names; i++) {
		struct backtrace_name *name = &b->names[i];
		struct line_place places[LINES_MAX];
		const struct debug_module *m;

		name->module = space_module(b->sp, name->lookup);
		name->place = b->n_places;
		if (!symbols_find(symbols, name->lookup, &name->symbol))
			name->symbol = (struct symbol){ 0 };
		if (!name->module)
			continue;
		m = debug_of(debug, name->module);
		name->n_places = lines_at(b->lines, m,
					  name->lookup - m->bias, places);
		for (size_t k = 0; k < name->n_places; k++)
			MEM_PUSH(b->places, b->n_places, b->cap_places) =
				places[k];
	}
}

void backtraces_init(struct backtraces *b, struct space *sp, struct cfi *cfi,
		     struct debug *debug, struct symbols *symbols)
{
	uint64_t budget = BUDGET;

	*b = (struct backtraces){ .sp = sp };
	b->of = mem_zalloc(sp->n_threads * sizeof(*b->of));
	for (size_t i = 0; i < sp->n_threads; i++)
		walk(b, cfi, &sp->threads[i], &budget, &b->of[i]);
	find_same(b);
	list_addresses(b);
	find_names(b, debug, symbols);
}

void backtraces_fini(struct backtraces *b)
{
	free(b->of);
	free(b->frames);
	free(b->names);
	free(b->places);
	lines_free(b->lines);
	*b = (struct backtraces){ 0 };
}

const struct backtrace_name *backtraces_name(const struct backtraces *b,
					     const struct backtrace_frame *f)
{
	return FIND(b->names, b->n_names, f->lookup);
}
