/* SPDX-License-Identifier: MIT */
/*
 * The tables of what a PHP program holds.
 */
#include "report/build.h"

#include <inttypes.h>

#include "analysis/php_view.h"
#include "base/num.h"

#define SUM COLUMN_SUM
#define DATA COLUMN_NO_TEXT
/* Names have namespaces. */
#define NAME (COLUMN_RAW | COLUMN_BACKSLASH)

/* The last column of each: which heap, where there are several. */
#define HEAP_COLUMN COLUMN("heap", "heap", TEXT, .flags = COLUMN_LEFT)

static struct table *add_table(struct report *r, const struct report_input *in,
			       const char *name, const char *title,
			       const struct column *columns, size_t n)
{
	struct table *t = report_add(r, SECTION_PHP, name, title, columns, n);

	if (in->php->n_requests < 2)
		table_hide(t, n - 1);
	return t;
}

static void begin(struct table *t, const struct report_input *in,
		  const struct php_request *q)
{
	table_row(t);
	table_set_text(t, t->n_columns - 1, in->heap->arenas[q->arena].name);
}

/* ---- the heaps ---- */

enum {
	H_SENTENCE, H_VERSION, H_API, H_ZTS, H_DEBUG, H_USED, H_PEAK,
	H_REAL, H_REAL_PEAK, H_LIMIT, H_SHARE, H_WALKED, H_FOUND, H_COMPLETE,
	H_DEPTH, H_STRINGS, H_STRING_BYTES, H_SAVED, H_LOST, H_LOST_BYTES,
	H_LOST_VALUES, H_GC, H_GC_ROOTS, H_GC_THRESHOLD, H_GC_RUNS,
	H_GC_COLLECTED, H_HEAP, H_COLUMNS
};

static const struct column heap_columns[H_COLUMNS] = {
	[H_SENTENCE] = COLUMN("sentence", "", TEXT, .flags = COLUMN_NO_DATA),
	[H_VERSION] = DATA_COLUMN("version", TEXT),
	[H_API] = DATA_COLUMN("api", COUNT),
	[H_ZTS] = DATA_COLUMN("zts", FLAG),
	[H_DEBUG] = DATA_COLUMN("debug", FLAG),
	[H_USED] = DATA_COLUMN("memory_usage_bytes", BYTES),
	[H_PEAK] = DATA_COLUMN("memory_peak_bytes", BYTES),
	[H_REAL] = DATA_COLUMN("memory_real_bytes", BYTES),
	[H_REAL_PEAK] = DATA_COLUMN("memory_real_peak_bytes", BYTES),
	[H_LIMIT] = DATA_COLUMN("memory_limit_bytes", BYTES),
	[H_SHARE] = COLUMN("share_of_limit", "", SHARE, .part = H_REAL + 1,
			   .whole = H_LIMIT + 1, .flags = DATA),
	[H_WALKED] = DATA_COLUMN("used_bytes", BYTES),
	[H_FOUND] = DATA_COLUMN("engine_found", FLAG),
	[H_COMPLETE] = DATA_COLUMN("complete", FLAG),
	[H_DEPTH] = DATA_COLUMN("calls_running", COUNT),
	[H_STRINGS] = DATA_COLUMN("repeated_strings", COUNT),
	[H_STRING_BYTES] = DATA_COLUMN("repeated_string_bytes", BYTES),
	[H_SAVED] = DATA_COLUMN("repeated_saved_bytes", BYTES),
	[H_LOST] = DATA_COLUMN("garbage_objects", COUNT),
	[H_LOST_BYTES] = DATA_COLUMN("garbage_bytes", BYTES),
	[H_LOST_VALUES] = DATA_COLUMN("garbage_values", COUNT),
	[H_GC] = DATA_COLUMN("gc_enabled", FLAG),
	[H_GC_ROOTS] = DATA_COLUMN("gc_roots", COUNT),
	[H_GC_THRESHOLD] = DATA_COLUMN("gc_threshold", COUNT),
	[H_GC_RUNS] = DATA_COLUMN("gc_runs", COUNT),
	[H_GC_COLLECTED] = DATA_COLUMN("gc_collected", COUNT),
	[H_HEAP] = DATA_COLUMN("heap", TEXT),
};

static void add_size(struct str *s, const char *before, uint64_t bytes,
		     const char *after)
{
	char size[NUM_MAX];

	num_format_size(size, bytes);
	str_printf(s, "%s%s%s", before, size, after);
}

static void say_version(struct str *s, const struct report_input *in,
			const struct php_request *q)
{
	const struct php_view *v = in->php;

	if (v->release)
		str_printf(s, "PHP %s (%s%s)", v->release,
			   v->zts ? "ZTS" : "NTS", v->debug ? ", debug" : "");
	else
		str_adds(s, "PHP of unknown release");
	if (v->n_requests > 1)
		str_printf(s, ", heap %s", in->heap->arenas[q->arena].name);
}

static void say_limit(struct str *s, const struct php_request *q)
{
	char share[NUM_MAX];

	/* As memory_limit = -1 is. */
	if (q->limit > INT64_MAX / 2) {
		str_adds(s, ", without a limit");
		return;
	}
	num_format_share(share, num_share(q->real, q->limit));
	add_size(s, ", ", q->limit, " allowed");
	str_printf(s, " (%s)", share);
}

static void say_collector(struct str *s, const struct php_request *q)
{
	if (q->lost_objects)
		str_printf(s, "  %" PRIu64 " object%s in cycles that nobody "
			   "refers to wait%s for the collector",
			   q->lost_objects,
			   q->lost_objects == 1 ? "" : "s",
			   q->lost_objects == 1 ? "s" : "");
	else
		str_adds(s, "  No object waits for the collector of cycles");
	if (q->collector_found)
		str_printf(s, ", which is %s: %" PRIu32 " runs, %" PRIu32
			   " values collected, %" PRIu32 " possible roots "
			   "before it starts at %" PRIu32,
			   q->collector_on ? "on" : "off", q->runs,
			   q->collected, q->roots, q->threshold);
	str_addc(s, '.');
}

static void say_heap(struct str *s, const struct report_input *in,
		     const struct php_request *q)
{
	say_version(s, in, q);
	add_size(s, ": ", q->used, " in use of ");
	add_size(s, "", q->real, " from the kernel");
	say_limit(s, q);
	add_size(s, "; at its peak ", q->peak, " in use.");
	if (!q->walked) {
		str_adds(s, "  It waits for a request.");
		return;
	}
	if (!q->found) {
		str_adds(s, in->php->api && !in->php->known ?
			 "  Where this release keeps its variables is not "
			 "known: blocks have types by their shape alone, see "
			 "--only=types." :
			 "  The engine's variables were not found: blocks "
			 "have types by their shape alone, see --only=types.");
		return;
	}
	if (!q->n_running)
		str_adds(s, "  No call is running.");
	say_collector(s, q);
	if (q->cut)
		str_adds(s, "  NOT ALL was looked at: there is too much of "
			 "it, or it is damaged.");
}

static void set_heap(struct table *t, const struct report_input *in,
		     const struct php_request *q)
{
	const struct php_view *v = in->php;

	if (v->release)
		table_set_text(t, H_VERSION, v->release);
	if (v->api) {
		table_set(t, H_API, v->api);
		table_set(t, H_ZTS, v->zts);
		table_set(t, H_DEBUG, v->debug);
	}
	table_set(t, H_USED, q->used);
	table_set(t, H_PEAK, q->peak);
	table_set(t, H_REAL, q->real);
	table_set(t, H_REAL_PEAK, q->real_peak);
	table_set(t, H_WALKED, q->walked);
	if (q->limit <= INT64_MAX / 2)
		table_set(t, H_LIMIT, q->limit);
	table_set(t, H_FOUND, q->found);
}

static void set_found(struct table *t, const struct php_request *q)
{
	table_set(t, H_COMPLETE, !q->cut);
	table_set(t, H_DEPTH, q->n_running);
	table_set(t, H_STRINGS, q->repeated.blocks);
	table_set(t, H_STRING_BYTES, q->repeated.bytes);
	table_set(t, H_SAVED, q->saved);
	table_set(t, H_LOST, q->lost_objects);
	table_set(t, H_LOST_BYTES, q->lost.bytes);
	table_set(t, H_LOST_VALUES, q->lost.blocks);
	if (!q->collector_found)
		return;
	table_set(t, H_GC, q->collector_on);
	table_set(t, H_GC_ROOTS, q->roots);
	table_set(t, H_GC_THRESHOLD, q->threshold);
	table_set(t, H_GC_RUNS, q->runs);
	table_set(t, H_GC_COLLECTED, q->collected);
}

static void build_heaps(struct report *r, const struct report_input *in)
{
	struct table *t = report_add(r, SECTION_PHP, "php", "PHP",
				     heap_columns, H_COLUMNS);

	t->form = TABLE_SENTENCES;
	for (size_t i = 0; i < in->php->n_requests; i++) {
		const struct php_request *q = &in->php->requests[i];
		struct str s;

		str_init(&s);
		begin(t, in, q);
		set_heap(t, in, q);
		if (q->found)
			set_found(t, q);
		say_heap(&s, in, q);
		table_set_bytes(t, H_SENTENCE, s.text, s.len);
		str_fini(&s);
	}
}

/* ---- calls ---- */

enum { C_FRAME, C_FUNCTION, C_LINE, C_LEFT, C_FILE, C_HEAP, C_COLUMNS };

static const struct column call_columns[C_COLUMNS] = {
	[C_FRAME] = COLUMN("frame", "call", COUNT),
	[C_FUNCTION] = COLUMN("function", "function", TEXT,
			      .flags = NAME | COLUMN_LEFT),
	[C_LINE] = COLUMN("line", "line", COUNT),
	[C_LEFT] = COLUMN("left", "left", FLAG),
	[C_FILE] = COLUMN("file", "file", TEXT, .flags = COLUMN_RAW |
			  COLUMN_LEFT | COLUMN_PATH),
	[C_HEAP] = HEAP_COLUMN,
};

static void build_calls(struct report *r, const struct report_input *in)
{
	struct table *t = add_table(r, in, "php_calls", "PHP CALLS",
				    call_columns, C_COLUMNS);
	bool left = false;

	t->more = "outer calls";
	for (size_t i = 0; i < in->php->n_requests; i++) {
		const struct php_request *q = &in->php->requests[i];

		for (size_t k = 0; k < q->n_calls; k++) {
			const struct php_call *c = &q->calls[k];

			begin(t, in, q);
			table_set(t, C_FRAME, k);
			table_set_text(t, C_FUNCTION, c->function);
			table_set(t, C_LEFT, c->left);
			if (c->line)
				table_set(t, C_LINE, c->line);
			table_set_text(t, C_FILE, c->file ? c->file :
				       c->line ? "[not told]" : "[internal]");
			left |= c->left;
		}
	}
	if (!left)
		table_hide(t, C_LEFT);
}

/* ---- holders ---- */

enum {
	O_NAME, O_KIND, O_HOLDS, O_SHARE, O_HIDDEN, O_USED, O_HEAP, O_COLUMNS
};

static const struct column holder_columns[O_COLUMNS] = {
	[O_NAME] = COLUMN("name", "", TEXT, .width = 34,
			  .flags = NAME),
	[O_KIND] = DATA_COLUMN("kind", TEXT),
	[O_HOLDS] = COLUMN("holds_bytes", "holds", BYTES, .width = 9),
	[O_SHARE] = COLUMN("share", "of use", SHARE, .part = O_HOLDS + 1,
			   .whole = O_USED + 1, .flags = COLUMN_BAR),
	[O_HIDDEN] = HIDDEN_NAME,
	[O_USED] = OF_USED,
	[O_HEAP] = HEAP_COLUMN,
};

static void build_holders(struct report *r, const struct report_input *in)
{
	struct table *t = add_table(r, in, "php_holders", "PHP VARIABLES, AND "
				    "WHAT THEY ALONE HOLD", holder_columns,
				    O_COLUMNS);

	for (size_t i = 0; i < in->php->n_requests; i++) {
		const struct php_request *q = &in->php->requests[i];

		for (size_t k = 0; k < q->n_holders; k++) {
			const struct php_holder_row *h = &q->holders[k];

			begin(t, in, q);
			table_set_text(t, O_NAME, h->name);
			table_set_text(t, O_KIND, php_root_word(h->kind));
			table_set(t, O_HOLDS, h->holds);
			if (h->hidden)
				table_set_text(t, O_HIDDEN, h->hidden);
			table_set(t, O_USED, q->walked);
		}
	}
}

/* ---- classes ---- */

enum {
	K_NAME, K_OBJECTS, K_BYTES, K_SHARE, K_HOLDS, K_HIDDEN, K_USED, K_HEAP,
	K_COLUMNS
};

static const struct column class_columns[K_COLUMNS] = {
	[K_NAME] = COLUMN("name", "", TEXT, .width = 34,
			  .flags = NAME),
	[K_OBJECTS] = COLUMN("objects", "objects", COUNT, .width = 9,
			     .flags = SUM),
	[K_BYTES] = COLUMN("bytes", "bytes", BYTES, .width = 9, .flags = SUM),
	[K_SHARE] = COLUMN("share", "of use", SHARE, .part = K_BYTES + 1,
			   .whole = K_USED + 1),
	[K_HOLDS] = COLUMN("holds_bytes", "hold", BYTES),
	[K_HIDDEN] = HIDDEN_NAME,
	[K_USED] = OF_USED,
	[K_HEAP] = HEAP_COLUMN,
};

static void add_classes(struct table *t, const struct report_input *in,
			const struct php_request *q,
			const struct php_class_row *rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		begin(t, in, q);
		table_set_text(t, K_NAME, rows[i].name);
		if (rows[i].hidden)
			table_set_text(t, K_HIDDEN, rows[i].hidden);
		table_set(t, K_OBJECTS, rows[i].objects.blocks);
		table_set(t, K_BYTES, rows[i].objects.bytes);
		table_set(t, K_HOLDS, rows[i].holds);
		table_set(t, K_USED, q->walked);
	}
}

static void build_classes_of(struct report *r, const struct report_input *in,
			     bool garbage)
{
	struct table *t = add_table(r, in, garbage ? "php_garbage" :
				    "php_classes", garbage ?
				    "PHP OBJECTS THAT ARE GARBAGE" :
				    "PHP OBJECTS BY CLASS", class_columns,
				    K_COLUMNS);

	t->more = "other classes";
	for (size_t i = 0; i < in->php->n_requests; i++) {
		const struct php_request *q = &in->php->requests[i];

		if (garbage)
			add_classes(t, in, q, q->garbage, q->n_garbage);
		else
			add_classes(t, in, q, q->classes, q->n_classes);
	}
}

/* ---- arrays ---- */

enum {
	A_ARRAYS, A_ADDRESS, A_ELEMENTS, A_ROOM, A_BYTES, A_HOLDS,
	A_HOLDER, A_PATH, A_HEAP, A_COLUMNS
};

static const struct column array_columns[A_COLUMNS] = {
	[A_ARRAYS] = COLUMN("arrays", "arrays", COUNT),
	[A_ADDRESS] = DATA_COLUMN("example", ADDR),
	[A_ELEMENTS] = COLUMN("elements", "elements", COUNT),
	[A_ROOM] = DATA_COLUMN("room", COUNT),
	[A_BYTES] = COLUMN("bytes", "bytes", BYTES),
	[A_HOLDS] = COLUMN("holds_bytes", "holds", BYTES),
	[A_HOLDER] = COLUMN("holder", "who has it", TEXT,
			    .flags = NAME | COLUMN_LEFT),
	[A_PATH] = COLUMN("path", "where, the first", TEXT,
			  .flags = NAME | COLUMN_LEFT |
				   COLUMN_CONTENT),
	[A_HEAP] = HEAP_COLUMN,
};

static void build_arrays(struct report *r, const struct report_input *in)
{
	struct table *t = add_table(r, in, "php_arrays", "PHP ARRAYS",
				    array_columns, A_COLUMNS);

	t->more = "smaller ones";
	for (size_t i = 0; i < in->php->n_requests; i++) {
		const struct php_request *q = &in->php->requests[i];

		for (size_t k = 0; k < q->n_arrays; k++) {
			const struct php_array_row *a = &q->arrays[k];

			begin(t, in, q);
			table_set(t, A_ADDRESS, a->addr);
			table_set(t, A_ELEMENTS, a->elements);
			table_set(t, A_ROOM, a->room);
			table_set(t, A_ARRAYS, a->arrays);
			table_set(t, A_BYTES, a->bytes);
			table_set(t, A_HOLDS, a->holds);
			table_set_text(t, A_HOLDER, a->holder);
			table_set_text(t, A_PATH, a->path);
		}
	}
}

/* ---- values ---- */

enum { V_NAME, V_COUNT, V_BYTES, V_SHARE, V_USED, V_HEAP, V_COLUMNS };

static const struct column value_columns[V_COLUMNS] = {
	[V_NAME] = COLUMN("name", "", TEXT, .width = 34),
	[V_COUNT] = COLUMN("count", "count", COUNT, .width = 9, .flags = SUM),
	[V_BYTES] = COLUMN("bytes", "bytes", BYTES, .width = 9, .flags = SUM),
	[V_SHARE] = COLUMN("share", "of use", SHARE, .part = V_BYTES + 1,
			   .whole = V_USED + 1, .flags = COLUMN_OF_TOTAL),
	[V_USED] = OF_USED,
	[V_HEAP] = HEAP_COLUMN,
};

static void build_values(struct report *r, const struct report_input *in)
{
	struct table *t = add_table(r, in, "php_values", "PHP VALUES",
				    value_columns, V_COLUMNS);
	uint64_t used = 0;

	t->whole = in->php->n_requests == 1;
	for (size_t i = 0; i < in->php->n_requests; i++) {
		const struct php_request *q = &in->php->requests[i];

		if (!q->found)
			continue;
		used += q->walked;
		for (unsigned k = 0; k < PHP_TOLD; k++) {
			if (!q->told[k].blocks)
				continue;
			begin(t, in, q);
			table_set_text(t, V_NAME, php_told_name(k));
			table_set(t, V_COUNT, q->told[k].blocks);
			table_set(t, V_BYTES, q->told[k].bytes);
		}
	}
	table_sort(t, V_BYTES, false);
	if (t->n_rows) {
		table_add_total(t);
		table_set(t, V_USED, used);
	}
}

/* ---- strings ---- */

enum {
	S_COPIES, S_BYTES, S_SAVED, S_LENGTH, S_EXAMPLE, S_TEXT,
	S_HEAP, S_COLUMNS
};

static const struct column string_columns[S_COLUMNS] = {
	[S_COPIES] = COLUMN("copies", "copies", COUNT, .width = 9),
	[S_BYTES] = COLUMN("bytes", "bytes", BYTES),
	[S_SAVED] = COLUMN("saved_bytes", "if shared", BYTES),
	[S_LENGTH] = COLUMN("length", "length", COUNT),
	[S_EXAMPLE] = DATA_COLUMN("example", ADDR),
	[S_TEXT] = COLUMN("text", "text", TEXT, .flags = COLUMN_RAW |
			  COLUMN_LEFT | COLUMN_CONTENT),
	[S_HEAP] = HEAP_COLUMN,
};

static void build_repeated(struct report *r, const struct report_input *in)
{
	struct table *t = add_table(r, in, "php_strings",
				    "PHP STRINGS THAT REPEAT", string_columns,
				    S_COLUMNS);

	t->more = "other texts";
	for (size_t i = 0; i < in->php->n_requests; i++) {
		const struct php_request *q = &in->php->requests[i];

		for (size_t k = 0; k < q->n_strings; k++) {
			const struct php_string_row *row = &q->strings[k];
			uint8_t text[64];
			uint64_t n;

			begin(t, in, q);
			n = space_read(in->sp, row->addr + PHP_STRING_BYTES,
				       text, min_u64(row->len, sizeof(text)));
			table_set(t, S_COPIES, row->copies);
			table_set(t, S_BYTES, row->bytes);
			table_set(t, S_SAVED, row->saved);
			table_set(t, S_LENGTH, row->len);
			table_set(t, S_EXAMPLE, row->addr);
			table_set_bytes(t, S_TEXT, text, n);
		}
	}
}

void build_php(struct report *r, const struct report_input *in)
{
	if (!in->php)
		return;
	build_heaps(r, in);
	build_calls(r, in);
	build_holders(r, in);
	build_classes_of(r, in, false);
	build_arrays(r, in);
	build_values(r, in);
	build_repeated(r, in);
	build_classes_of(r, in, true);
}
