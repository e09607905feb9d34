/* SPDX-License-Identifier: MIT */
/*
 * The tables that speak of the process: itself, its threads, mappings and
 * modules.
 */
#include "report/build.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/refs.h"
#include "base/mem.h"
#include "corewalk/pages.h"

enum {
	T_KIND, T_PATH, T_PROGRAM, T_PID, T_SIGNAL, T_THREADS, T_PRIVATE,
	T_STORED, T_FAULT, T_COMMAND, T_MACHINE, T_PAGE, T_WRITER, T_MAPPINGS,
	T_MISSING, T_MODULES, T_SIZE, T_WANTED, T_STOPPED, T_TORN, T_RSS,
	T_RESIDENT, T_SWAPPED,
	T_COLUMNS
};

static const struct column target_columns[T_COLUMNS] = {
	[T_KIND] = COLUMN("kind", "kind", TEXT),
	[T_PATH] = COLUMN("path", "path", TEXT,
		.flags = COLUMN_RAW | COLUMN_PATH),
	[T_PROGRAM] = COLUMN("program", "program", TEXT,
		.flags = COLUMN_RAW | COLUMN_PATH),
	[T_PID] = COLUMN("pid", "pid", COUNT),
	[T_SIGNAL] = COLUMN("signal", "signal", TEXT),
	[T_THREADS] = COLUMN("threads", "threads", COUNT),
	[T_PRIVATE] = COLUMN("private_bytes", "private", BYTES),
	[T_STORED] = COLUMN("stored_bytes", "in file", BYTES),
	[T_FAULT] = COLUMN("fault_address", "fault at", ADDR),
	[T_COMMAND] = COLUMN("command", "command", TEXT,
		.flags = COLUMN_RAW | COLUMN_CONTENT),
	[T_MACHINE] = COLUMN("machine", "machine", TEXT),
	[T_PAGE] = COLUMN("page_bytes", "page", BYTES),
	[T_WRITER] = COLUMN("writer", "written by", TEXT),
	[T_MAPPINGS] = COLUMN("mappings", "mappings", COUNT),
	[T_MISSING] = COLUMN("missing_mappings", "missing", COUNT),
	[T_MODULES] = COLUMN("modules", "modules", COUNT),
	[T_SIZE] = COLUMN("file_bytes", "file size", BYTES),
	[T_WANTED] = COLUMN("whole_file_bytes", "whole file", BYTES),
	[T_STOPPED] = COLUMN("stopped_s", "stopped for", SECONDS),
	[T_TORN] = COLUMN("torn", "read while it ran", FLAG),
	[T_RSS] = COLUMN("rss_bytes", "resident in all", BYTES),
	[T_RESIDENT] = COLUMN("resident_bytes", "resident", BYTES),
	[T_SWAPPED] = COLUMN("swapped_bytes", "in swap", BYTES),
};

const char *signal_name(int signal, char ret[16])
{
	const char *name = sigabbrev_np(signal);

	if (name)
		snprintf(ret, 16, "SIG%s", name);
	else
		snprintf(ret, 16, "signal %d", signal);
	return ret;
}

static const char *machine_name(enum machine machine)
{
	switch (machine) {
	case MACHINE_X86_64:
		return "x86_64";
	case MACHINE_I386:
		return "i386";
	case MACHINE_AARCH64:
		return "aarch64";
	}
	return "?";
}

bool is_process(const struct space *sp)
{
	return !strcmp(sp->kind, "process");
}

void set_pages(struct table *t, size_t resident, size_t swapped,
	       const struct report_input *in, const struct residency *pages)
{
	if (!space_pages_known(in->sp))
		return;
	table_set(t, resident, pages->resident);
	table_set(t, swapped, pages->swapped);
}

void show_pages(struct table *t, size_t stored, size_t resident,
		size_t swapped, const struct report_input *in)
{
	bool known = space_pages_known(in->sp);

	table_hide(t, known ? stored : resident);
	if (!known || !in->where->total.pages.swapped)
		table_hide(t, swapped);
}

size_t count_missing(const struct space *sp)
{
	return sp->missing_segs + sp->undumped_segs;
}

uint64_t find_rss(const struct where *w)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < w->n_maps; i++)
		sum += w->maps[i].pages.resident;
	return sum;
}

void build_target(struct report *r, const struct report_input *in)
{
	struct space *sp = in->sp;
	struct table *t = report_add(r, SECTION_TARGET, "target", "TARGET",
				     target_columns, T_COLUMNS);
	const struct where_amount *all = &in->where->total;
	char name[16];

	t->form = TABLE_OBJECT;
	table_row(t);
	table_set_text(t, T_KIND, sp->kind);
	table_set_text(t, T_PATH, sp->path ? sp->path : "?");
	table_set_text(t, T_PROGRAM, sp->program ? sp->program : "?");
	if (sp->pid)
		table_set(t, T_PID, sp->pid);
	if (sp->signal)
		table_set_text(t, T_SIGNAL, signal_name(sp->signal, name));
	table_set(t, T_THREADS, sp->n_threads);
	table_set(t, T_PRIVATE, all->bytes);
	table_set(t, T_STORED, all->stored);
	if (sp->has_fault_addr)
		table_set(t, T_FAULT, sp->fault_addr);
	if (sp->command)
		table_set_text(t, T_COMMAND, sp->command);
	table_set_text(t, T_MACHINE, machine_name(sp->machine));
	table_set(t, T_PAGE, sp->page);
	if (sp->writer)
		table_set_text(t, T_WRITER, sp->writer);
	table_set(t, T_MAPPINGS, sp->n_segs);
	table_set(t, T_MISSING, count_missing(sp));
	table_set(t, T_MODULES, sp->n_modules);
	if (space_pages_known(sp)) {
		table_set(t, T_RSS, find_rss(in->where));
		table_set(t, T_RESIDENT, all->pages.resident);
		table_set(t, T_SWAPPED, all->pages.swapped);
	}
	if (is_process(sp)) {
		table_set_real(t, T_STOPPED, sp->stopped_s);
		table_set(t, T_TORN, sp->torn);
	} else {
		table_set(t, T_SIZE, sp->core_size);
		table_set(t, T_WANTED, sp->core_wanted);
	}
}

enum {
	H_TID, H_NAME, H_ARENA, H_CACHED_BLOCKS, H_CACHED, H_STACK,
	H_STACK_BYTES, H_SP, H_PC, H_MODULE, H_WHERE, H_COLUMNS
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

	return (x > y) - (x < y);
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
	qsort(x->uses, x->n_uses, sizeof(*x->uses), compare_tid);
	qsort(x->caches, x->n_caches, sizeof(*x->caches), compare_tid);
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

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
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
		table_set_text(t, H_MODULE,
			       base_name(in->sp->files[m->file].name));
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

	struct thread_index index;

	thread_index_init(&index, in->heap);
	for (size_t i = 0; i < in->sp->n_threads; i++)
		add_thread(t, in, &index, &in->sp->threads[i]);
	thread_index_fini(&index);
	build_caches(r, in->heap);
}

enum {
	M_ADDRESS, M_END, M_BYTES, M_STORED, M_RESIDENT, M_SWAPPED, M_FLAGS,
	M_MAPPINGS, M_PRIVATE, M_WHAT, M_COLUMNS
};

static const struct column map_columns[M_COLUMNS] = {
	[M_ADDRESS] = COLUMN("address", "address", ADDR,
		.flags = COLUMN_LEFT),
	[M_END] = COLUMN("end", "end", ADDR, .flags = COLUMN_NO_TEXT),
	[M_BYTES] = COLUMN("bytes", "size", BYTES, .flags = COLUMN_SUM),
	[M_STORED] = COLUMN("stored_bytes", "in file", BYTES,
		.flags = COLUMN_SUM),
	[M_RESIDENT] = COLUMN("resident_bytes", "resident", BYTES,
		.flags = COLUMN_SUM),
	[M_SWAPPED] = COLUMN("swapped_bytes", "in swap", BYTES,
		.flags = COLUMN_SUM),
	[M_FLAGS] = COLUMN("flags", "", TEXT),
	[M_MAPPINGS] = COLUMN("mappings", "", COUNT, .flags = COLUMN_NO_TEXT),
	[M_PRIVATE] = COLUMN("private", "", FLAG, .flags = COLUMN_NO_TEXT),
	[M_WHAT] = COLUMN("what", "what it is", TEXT, .flags = COLUMN_PATH),
};

const char *map_what(const struct report *r, struct space *sp,
		     const struct where_map *map)
{
	const struct seg *seg = space_seg(sp, map->start);

	if (r->options->redact && seg && seg->file != SEG_NO_FILE &&
	    sp->files[seg->file].module == SEG_NO_FILE)
		return "a file";
	return map->what;
}

void build_mappings(struct report *r, const struct report_input *in)
{
	struct table *t = report_add(r, SECTION_MAPPINGS, "mappings",
				     "MAPPINGS", map_columns, M_COLUMNS);

	for (size_t i = 0; i < in->where->n_maps; i++) {
		const struct where_map *m = &in->where->maps[i];

		table_row(t);
		table_set(t, M_ADDRESS, m->start);
		table_set(t, M_END, m->end);
		table_set(t, M_BYTES, m->end - m->start);
		table_set(t, M_STORED, m->stored);
		set_pages(t, M_RESIDENT, M_SWAPPED, in, &m->pages);
		table_printf(t, M_FLAGS, "%c%c%c%c",
			     m->flags & SEG_R ? 'r' : '-',
			     m->flags & SEG_W ? 'w' : '-',
			     m->flags & SEG_X ? 'x' : '-',
			     m->flags & SEG_SHARED ? 's' : 'p');
		table_set(t, M_MAPPINGS, m->mappings);
		table_set(t, M_PRIVATE, m->is_private);
		table_set_text(t, M_WHAT, map_what(r, in->sp, m));
	}
	/* What takes memory first, mere reservations last; stable. */
	table_sort(t, M_BYTES, false);
	table_sort(t, M_PRIVATE, false);
	table_sort(t, M_STORED, false);
	show_pages(t, M_STORED, M_RESIDENT, M_SWAPPED, in);
}

enum {
	O_LABEL, O_NAME, O_ADDRESS, O_END, O_BUILD_ID, O_EXE, O_FILE,
	O_COLUMNS
};

static const struct column module_columns[O_COLUMNS] = {
	[O_LABEL] = COLUMN("label", "", TEXT,
		.flags = COLUMN_RAW | COLUMN_NO_DATA, .width = 20),
	[O_NAME] = COLUMN("name", "", TEXT,
		.flags = COLUMN_NO_TEXT | COLUMN_PATH),
	[O_ADDRESS] = COLUMN("address", "address", ADDR,
		.flags = COLUMN_NO_TEXT),
	[O_END] = COLUMN("end", "end", ADDR, .flags = COLUMN_NO_TEXT),
	[O_BUILD_ID] = COLUMN("build_id", "build id", TEXT),
	[O_EXE] = COLUMN("program", "program", FLAG, .flags = COLUMN_NO_TEXT),
	[O_FILE] = COLUMN("file", "file", TEXT),
};

static void set_build_id(struct table *t, const struct module *m)
{
	char hex[2 * sizeof(m->build_id) + 1] = "";

	for (size_t i = 0; i < m->build_id_len; i++)
		snprintf(hex + 2 * i, 3, "%02x", m->build_id[i]);
	if (m->build_id_len)
		table_set_text(t, O_BUILD_ID, hex);
}

void build_modules(struct report *r, const struct report_input *in)
{
	struct table *t = report_add(r, SECTION_MODULES, "modules", "MODULES",
				     module_columns, O_COLUMNS);

	for (size_t i = 0; i < in->sp->n_modules; i++) {
		const struct module *m = &in->sp->modules[i];

		table_row(t);
		table_set_text(t, O_LABEL,
			       base_name(in->sp->files[m->file].name));
		table_set_text(t, O_NAME, in->sp->files[m->file].name);
		table_set(t, O_ADDRESS, m->start);
		table_set(t, O_END, m->end);
		set_build_id(t, m);
		table_set(t, O_EXE, m->is_exe);
		table_set_text(t, O_FILE,
			       m->path ? "used" : space_why_text(m->why));
	}
}
