/* SPDX-License-Identifier: MIT */
/*
 * Where threads stand: the frames of each as data; as text, each stack once,
 * with the threads that have it.
 */
#include "report/build.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/backtrace.h"
#include "base/demangle.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/sort.h"
#include "corewalk/module.h"

enum {
	F_FRAME, F_PC, F_NAME, F_SYMBOL, F_OFFSET, F_MODULE, F_FILE, F_LINE,
	F_INLINED, F_GUESS, F_SIGNAL, F_COLUMNS
};

static const struct column frame_columns[F_COLUMNS] = {
	[F_FRAME] = COLUMN("frame", "frame", COUNT),
	[F_PC] = COLUMN("pc", "pc", ADDR),
	[F_NAME] = COLUMN("name", "name", TEXT, .flags = COLUMN_RAW),
	[F_SYMBOL] = COLUMN("symbol", "symbol", TEXT, .flags = COLUMN_RAW),
	[F_OFFSET] = COLUMN("offset", "offset", COUNT),
	[F_MODULE] = COLUMN("module", "module", TEXT, .flags = COLUMN_RAW),
	[F_FILE] = COLUMN("file", "file", TEXT,
		.flags = COLUMN_RAW | COLUMN_PATH),
	[F_LINE] = COLUMN("line", "line", COUNT),
	[F_INLINED] = COLUMN("inlined", "inlined", FLAG),
	[F_GUESS] = COLUMN("guess", "guess", FLAG),
	[F_SIGNAL] = COLUMN("signal_handler", "signal", FLAG),
};

/* One line of a stack: a function, of which a frame can have several. */
struct place {
	const struct backtrace_frame *frame;
	const struct backtrace_name *name;
	const struct line_place *line;	/* NULL: by symbol alone */
	uint64_t number;		/* of the frame */
	bool inlined;
};

static struct place place_of(const struct backtraces *b,
			     const struct backtrace *stack, size_t i,
			     size_t k)
{
	struct place p = { .frame = &b->frames[stack->first + i] };

	p.name = backtraces_name(b, p.frame);
	p.number = i < stack->head ? i : i + stack->left_out;
	if (k < p.name->n_places) {
		p.line = &b->places[p.name->place + k];
		p.inlined = p.line->inlined;
	}
	return p;
}

static size_t n_places(const struct backtraces *b,
		       const struct backtrace *stack, size_t i)
{
	const struct backtrace_frame *f = &b->frames[stack->first + i];
	size_t n = backtraces_name(b, f)->n_places;

	return n ? n : 1;
}

/* As the linker has it: of the symbol table where the function is whole. */
static const char *symbol_of(const struct place *p)
{
	if (p->name->symbol.name && !p->inlined)
		return p->name->symbol.name;
	return p->line ? p->line->linkage : NULL;
}

/*
 * As the programmer has it.  What debug information says goes first: of two
 * names for one address, the symbol table can have the other one.
 */
static bool name_of(const struct place *p, struct str *ret)
{
	const char *function = p->line ? p->line->linkage : NULL;

	if (!function && p->line)
		function = p->line->function;
	if (!function)
		function = symbol_of(p);
	if (!function)
		return false;
	if (!demangle(function, ret))
		str_adds(ret, function);
	return true;
}

static const char *module_of(const struct backtraces *b,
			     const struct place *p)
{
	const struct module *m = p->name->module;
	const struct seg *seg;

	if (m)
		return module_name(b->sp, m);
	seg = space_seg(b->sp, p->name->lookup);
	return seg && seg->flags & SEG_KERNEL ? "[vdso]" : NULL;
}

/* ---- data ---- */

struct table *stacks_frames_table(struct report *r)
{
	return report_add(r, SECTION_THREADS, "frames", "FRAMES",
			  frame_columns, F_COLUMNS);
}

static void add_frame(struct table *t, const struct backtraces *b,
		      const struct place *p)
{
	const struct symbol *symbol = &p->name->symbol;
	struct str name;

	str_init(&name);
	table_row(t);
	table_set(t, F_FRAME, p->number);
	table_set(t, F_PC, p->frame->pc);
	if (name_of(p, &name))
		table_set_text(t, F_NAME, name.text);
	if (symbol_of(p))
		table_set_text(t, F_SYMBOL, symbol_of(p));
	if (symbol->name && !p->inlined)
		table_set(t, F_OFFSET, p->frame->pc - symbol->start);
	if (module_of(b, p))
		table_set_text(t, F_MODULE, module_of(b, p));
	if (p->line && p->line->file)
		table_set_text(t, F_FILE, p->line->file);
	if (p->line && p->line->line)
		table_set(t, F_LINE, p->line->line);
	if (p->inlined)
		table_set(t, F_INLINED, true);
	if (p->frame->guess)
		table_set(t, F_GUESS, true);
	if (p->frame->signal)
		table_set(t, F_SIGNAL, true);
	str_fini(&name);
}

void stacks_add_frames(struct table *t, const struct backtraces *b,
		       uint32_t thread)
{
	const struct backtrace *stack = &b->of[thread];

	for (size_t i = 0; i < stack->n; i++)
		for (size_t k = 0; k < n_places(b, stack, i); k++) {
			struct place p = place_of(b, stack, i, k);

			add_frame(t, b, &p);
		}
}

const char *stacks_end_word(const struct backtraces *b, uint32_t thread)
{
	static const char *const words[] = {
		[UNWIND_MORE] = "more", [UNWIND_DONE] = "outermost",
		[UNWIND_NO_TABLE] = "no_table",
		[UNWIND_NO_MEMORY] = "no_memory",
		[UNWIND_NO_CODE] = "no_code", [UNWIND_STUCK] = "stuck",
		[UNWIND_LIMIT] = "limit",
	};

	return words[b->of[thread].end];
}

/* ---- text ---- */

enum { S_WHO, S_COLUMNS };

static const struct column stack_columns[S_COLUMNS] = {
	[S_WHO] = COLUMN("threads", "", TEXT),
};

/* Escaped where it is made. */
static const struct column line_columns[1] = {
	COLUMN("line", "", TEXT),
};

enum {
	MAX_NAMED = 4,		/* threads of a stack that are listed */
	/* Of a stack, unless all rows are wanted: lines, first and last. */
	FIRST_LINES = 20,
	LAST_LINES = 4,
};

/* Threads that have one stack. */
struct group {
	uint32_t first;
	uint64_t threads;
};

static int by_threads(const void *a, const void *b)
{
	const struct group *x = a, *y = b;

	/* The first thread took the signal: nothing says more. */
	if (!x->first || !y->first)
		return x->first ? 1 : -1;
	return ORDER(y->threads, x->threads) ?: ORDER(x->first, y->first);
}

static void add_escaped(struct str *s, const char *text)
{
	str_add_escaped(s, text, strlen(text));
}

static void add_thread(struct report *r, struct str *s,
		       const struct space *sp, uint32_t i)
{
	const struct thread *t = &sp->threads[i];
	const char *name = t->name;
	char signal[16];

	if (!name[0] && t->tid == sp->pid && sp->program)
		name = sp->program;
	str_printf(s, "%" PRIu32, t->tid);
	if (name[0] && !r->options->redact) {
		str_addc(s, ' ');
		add_escaped(s, name);
	}
	if (i || !sp->signal)
		return;
	str_printf(s, " (%s", signal_name(sp->signal, signal));
	if (sp->has_fault_addr)
		str_printf(s, " at 0x%" PRIx64, sp->fault_addr);
	str_addc(s, ')');
}

/* "2 threads: 4711 appd (SIGABRT), 4712 worker" */
static void add_who(struct report *r, struct table *t,
		    const struct backtraces *b, const struct group *g)
{
	uint64_t left = g->threads, named = 0;
	struct str s;

	str_init(&s);
	if (g->threads == 1)
		str_adds(&s, "thread ");
	else
		str_printf(&s, "%" PRIu64 " threads: ", g->threads);
	for (uint32_t i = g->first; left; i++) {
		if (b->of[i].same != g->first)
			continue;
		left--;
		if (named == MAX_NAMED && left) {
			str_printf(&s, " and %" PRIu64 " more", left + 1);
			break;
		}
		str_adds(&s, named++ ? ", " : "");
		add_thread(r, &s, b->sp, i);
	}
	table_set_text(t, S_WHO, s.text);
	str_fini(&s);
}

/* "#3  strtol at strtol.c:106 in libc.so.6" */
static void place_text(const struct backtraces *b, const struct place *p,
		       struct str *s)
{
	struct str name;

	str_init(&name);
	str_printf(s, "#%-3" PRIu64 " ", p->number);
	if (p->frame->signal)
		str_adds(s, "way back from a signal handler: ");
	if (name_of(p, &name))
		add_escaped(s, name.text);
	else
		str_printf(s, "0x%" PRIx64, p->frame->pc);
	if (p->line && p->line->file && p->line->line) {
		str_adds(s, " at ");
		add_escaped(s, file_base_name(p->line->file));
		str_printf(s, ":%u", p->line->line);
	}
	if (p->inlined) {
		str_adds(s, ", inlined");
	} else if (module_of(b, p)) {
		str_adds(s, " in ");
		add_escaped(s, module_of(b, p));
	}
	if (p->frame->guess)
		str_adds(s, " (a guess)");
	str_fini(&name);
}

static void add_line(struct table *t, const char *text)
{
	table_row(t);
	table_set_text(t, 0, text);
}

/* What is left out of a text, counted in frames. */
struct gap {
	size_t from, to;	/* kept frames that are not shown */
	uint64_t frames;
};

static struct gap find_gap(const struct report *r,
			   const struct backtrace *stack)
{
	struct gap g = { stack->head, stack->head, stack->left_out };

	if (r->options->rows != TABLE_ALL_ROWS &&
	    stack->n > FIRST_LINES + LAST_LINES) {
		g.from = FIRST_LINES;
		g.to = stack->n - LAST_LINES;
		g.frames += g.to - g.from;
	}
	return g;
}

static void add_lines(struct report *r, struct table *t,
		      const struct backtraces *b,
		      const struct backtrace *stack)
{
	struct gap gap = find_gap(r, stack);
	struct str s;

	str_init(&s);
	for (size_t i = 0; i < stack->n; i++) {
		if (i == gap.from && gap.frames) {
			str_clear(&s);
			str_printf(&s, "     %" PRIu64 " frames more",
				   gap.frames);
			add_line(t, s.text);
		}
		if (i >= gap.from && i < gap.to)
			continue;
		for (size_t k = 0; k < n_places(b, stack, i); k++) {
			struct place p = place_of(b, stack, i, k);

			str_clear(&s);
			place_text(b, &p, &s);
			add_line(t, s.text);
		}
	}
	if (stack->end != UNWIND_DONE) {
		str_clear(&s);
		str_printf(&s, "     The stack goes on, but %s.",
			   unwind_end_text(stack->end));
		add_line(t, s.text);
	}
	str_fini(&s);
}

void stacks_build(struct report *r, const struct report_input *in)
{
	const struct backtraces *b = in->backtraces;
	size_t n = 0;
	struct group *groups = mem_zalloc(b->sp->n_threads * sizeof(*groups));
	uint32_t *number = mem_zalloc(b->sp->n_threads * sizeof(*number));
	struct table *t = report_add(r, SECTION_THREADS, "stacks", "STACKS",
				     stack_columns, S_COLUMNS);
	struct table *lines = report_add(r, SECTION_THREADS, "lines", "",
					 line_columns, 1);

	t->form = TABLE_SENTENCES;
	t->text_only = true;
	table_nest(t, lines);
	for (uint32_t i = 0; i < b->sp->n_threads; i++) {
		uint32_t same = b->of[i].same;

		if (same == i) {
			number[i] = (uint32_t)n;
			groups[n++].first = i;
		}
		groups[number[same]].threads++;
	}
	SORT(groups, n, by_threads);
	for (size_t i = 0; i < n; i++) {
		table_row(t);
		add_who(r, t, b, &groups[i]);
		add_lines(r, lines, b, &b->of[groups[i].first]);
	}
	free(groups);
	free(number);
}
