/* SPDX-License-Identifier: MIT */
/*
 * The tables of threads and of their caches.
 */
#include "report/build.h"

#include <stdlib.h>

#include "analysis/backtrace.h"
#include "analysis/refs.h"
#include "base/mem.h"
#include "base/sort.h"
#include "corewalk/module.h"

enum {
	H_TID, H_NAME, H_ARENA, H_CACHED_BLOCKS, H_CACHED, H_STACK,
	H_STACK_BYTES, H_SP, H_PC, H_MODULE, H_WHERE, H_FRAMES, H_LEFT_OUT,
	H_END, H_COLUMNS
};

static const struct column thread_columns[H_COLUMNS] = {
	[H_TID] = COLUMN("tid", "tid", COUNT,
		.flags = COLUMN_LEFT),
	[H_NAME] = COLUMN("name", "name", TEXT,
		.flags = COLUMN_RAW | COLUMN_CONTENT),
	[H_ARENA] = COLUMN("arena", "arena", TEXT),
	[H_CACHED_BLOCKS] = COLUMN("cached_blocks", "cached", COUNT,
		.flags = COLUMN_SUM),
	[H_CACHED] = COLUMN("cached_bytes", "bytes", BYTES,
		.flags = COLUMN_SUM),
	[H_STACK] = COLUMN("stack_address", "stack", ADDR,
		.flags = COLUMN_NO_TEXT),
	[H_STACK_BYTES] = COLUMN("stack_bytes", "stack", BYTES,
		.flags = COLUMN_SUM),
	[H_SP] = COLUMN("stack_pointer", "sp", ADDR, .flags = COLUMN_NO_TEXT),
	[H_PC] = COLUMN("pc", "pc", ADDR, .flags = COLUMN_NO_TEXT),
	[H_MODULE] = COLUMN("module", "in", TEXT,
		.flags = COLUMN_RAW | COLUMN_NO_TEXT),
	/* Escaped where it is made. */
	[H_WHERE] = COLUMN("at", "at", TEXT),
	[H_FRAMES] = COLUMN("frame_count", "frames", COUNT,
		.flags = COLUMN_NO_TEXT),
	[H_LEFT_OUT] = DATA_COLUMN("frames_left_out", COUNT),
	[H_END] = DATA_COLUMN("stack_end", TEXT),
};

/* What belongs to a thread, by its id: a core may have very many. */
struct by_tid {
	uint32_t tid, index;
};

struct thread_index {
	struct by_tid *uses, *caches;	/* owned; sorted by tid */
	size_t n_uses, n_caches;
};

static int compare_tid(const void *a, const void *b)
{
	uint32_t x = ((const struct by_tid *)a)->tid;
	uint32_t y = ((const struct by_tid *)b)->tid;

	return ORDER(x, y);
}

static void thread_index_init(struct thread_index *x, const struct heap *h)
{
	x->n_uses = h->n_uses;
	x->n_caches = h->n_caches;
	x->uses = mem_alloc(h->n_uses * sizeof(*x->uses));
	x->caches = mem_alloc(h->n_caches * sizeof(*x->caches));
	for (uint32_t i = 0; i < h->n_uses; i++)
		x->uses[i] = (struct by_tid){ h->uses[i].tid, i };
	for (uint32_t i = 0; i < h->n_caches; i++)
		x->caches[i] = (struct by_tid){ h->caches[i].tid, i };
	SORT(x->uses, x->n_uses, compare_tid);
	SORT(x->caches, x->n_caches, compare_tid);
}

static void thread_index_fini(struct thread_index *x)
{
	free(x->uses);
	free(x->caches);
}

static void set_heap_of(struct table *t, const struct heap *h,
			const struct thread_index *x, uint32_t tid)
{
	const struct by_tid key = { .tid = tid };
	const struct by_tid *use = bsearch(&key, x->uses, x->n_uses,
					   sizeof(key), compare_tid);
	const struct by_tid *cache = bsearch(&key, x->caches, x->n_caches,
					     sizeof(key), compare_tid);

	if (use && h->uses[use->index].arena < h->n_arenas)
		table_set_text(t, H_ARENA,
			       h->arenas[h->uses[use->index].arena].name);
	if (cache) {
		table_set(t, H_CACHED_BLOCKS, h->caches[cache->index].blocks);
		table_set(t, H_CACHED, h->caches[cache->index].bytes);
	}
}

/* Cores have the name of the process, which is that of its first thread. */
static void set_name(struct table *t, const struct space *sp,
		     const struct thread *thread)
{
	if (thread->name[0])
		table_set_text(t, H_NAME, thread->name);
	else if (thread->tid == sp->pid && sp->program)
		table_set_text(t, H_NAME, sp->program);
}

static void set_where(struct table *t, const struct report_input *in,
		      const struct thread *thread)
{
	struct str at;

	str_init(&at);
	if (in->names && refs_symbol_text(in->names, thread->pc, &at))
		table_set_text(t, H_WHERE, at.text);
	str_fini(&at);
}

static void set_stack(struct table *t, const struct report_input *in,
		      uint32_t i)
{
	const struct backtrace *stack = &in->backtraces->of[i];

	table_set(t, H_FRAMES, stack->n + stack->left_out);
	if (stack->left_out)
		table_set(t, H_LEFT_OUT, stack->left_out);
	table_set_text(t, H_END, stacks_end_word(in->backtraces, i));
}

static void add_thread(struct table *t, const struct report_input *in,
		       const struct thread_index *index,
		       const struct thread *thread)
{
	const struct where_stack *stack = where_stack_at(in->where,
							 thread->sp);
	const struct module *m = space_module(in->sp, thread->pc);

	table_row(t);
	table_set(t, H_TID, thread->tid);
	set_name(t, in->sp, thread);
	set_heap_of(t, in->heap, index, thread->tid);
	if (stack) {
		table_set(t, H_STACK, stack->start);
		table_set(t, H_STACK_BYTES, stack->end - stack->start);
	}
	table_set(t, H_SP, thread->sp);
	table_set(t, H_PC, thread->pc);
	if (m)
		table_set_text(t, H_MODULE, module_name(in->sp, m));
	set_where(t, in, thread);
}

enum { C_ADDR, C_TID, C_ARENA, C_BLOCKS, C_BYTES, C_COLUMNS };

static const struct column cache_columns[C_COLUMNS] = {
	[C_ADDR] = COLUMN("address", "address", ADDR,
		.flags = COLUMN_LEFT, .width = 20),
	[C_TID] = COLUMN("tid", "tid", COUNT),
	[C_ARENA] = COLUMN("arena", "arena", TEXT),
	[C_BLOCKS] = COLUMN("blocks", "blocks", COUNT, .flags = COLUMN_SUM),
	[C_BYTES] = COLUMN("bytes", "bytes", BYTES, .flags = COLUMN_SUM),
};

static void build_caches(struct report *r, const struct heap *h)
{
	struct table *t = report_add(r, SECTION_THREADS, "thread_caches",
				     "THREAD CACHES", cache_columns,
				     C_COLUMNS);

	for (size_t i = 0; i < h->n_caches; i++) {
		const struct thread_cache *c = &h->caches[i];

		table_row(t);
		table_set(t, C_ADDR, c->addr);
		if (c->tid)
			table_set(t, C_TID, c->tid);
		if (c->arena < h->n_arenas)
			table_set_text(t, C_ARENA, h->arenas[c->arena].name);
		table_set(t, C_BLOCKS, c->blocks);
		table_set(t, C_BYTES, c->bytes);
	}
}

void build_threads(struct report *r, const struct report_input *in)
{
	struct table *t = report_add(r, SECTION_THREADS, "threads", "THREADS",
				     thread_columns, H_COLUMNS);
	struct table *frames = NULL;
	struct thread_index index;

	if (in->backtraces) {
		frames = stacks_frames_table(r);
		table_nest(t, frames);
	}
	thread_index_init(&index, in->heap);
	for (uint32_t i = 0; i < in->sp->n_threads; i++) {
		add_thread(t, in, &index, &in->sp->threads[i]);
		if (!frames)
			continue;
		set_stack(t, in, i);
		stacks_add_frames(frames, in->backtraces, i);
	}
	thread_index_fini(&index);
	if (in->backtraces)
		stacks_build(r, in);
	build_caches(r, in->heap);
}
