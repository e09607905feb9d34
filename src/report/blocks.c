/* SPDX-License-Identifier: MIT */
#include "report/blocks.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/census.h"
#include "analysis/residency.h"
#include "analysis/retain.h"
#include "base/mem.h"
#include "base/sort.h"
#include "report/blocks_in.h"

enum {
	B_ADDRESS, B_SIZE, B_USABLE, B_STATE, B_ARENA, B_MMAPPED, B_THREAD,
	B_LEAKED, B_GRADE, B_REFS, B_RESIDENT, B_SWAPPED, B_TYPE, B_KNOWN,
	B_RETAINED,
	B_ALLOCATOR, B_USED, B_FREE, B_COLUMNS = BLOCK_COLUMNS
};

static const char *const state_words[] = {
	"used", "tcache", "fastbin", "unsorted", "bin", "unlisted", "top",
	"overhead", NULL
};

static const char *const grade_words[] = {
	"live", "certain", "likely", "possible", NULL
};

/* The last ones are only keys of --filter. */
static const struct column columns[B_COLUMNS] = {
	[B_ADDRESS] = COLUMN("address", "ADDRESS", ADDR,
			     .flags = COLUMN_LEFT, .width = 18),
	[B_SIZE] = COLUMN("size", "SIZE", BYTES, .width = 12),
	[B_USABLE] = DATA_COLUMN("usable", BYTES),
	[B_STATE] = COLUMN("state", "STATE", TEXT, .width = 12,
			   .words = state_words),
	[B_ARENA] = COLUMN("arena", "ARENA", TEXT, .width = 17),
	[B_MMAPPED] = DATA_COLUMN("mmapped", FLAG),
	[B_THREAD] = DATA_COLUMN("thread", COUNT),
	[B_LEAKED] = DATA_COLUMN("leaked", FLAG),
	[B_GRADE] = COLUMN("leak_grade", "", TEXT, .flags = COLUMN_NO_TEXT,
			   .words = grade_words),
	[B_REFS] = DATA_COLUMN("refs", COUNT),
	[B_RESIDENT] = DATA_COLUMN("resident", BYTES),
	[B_SWAPPED] = DATA_COLUMN("swapped", BYTES),
	[B_TYPE] = COLUMN("type", "TYPE", TEXT),
	[B_KNOWN] = DATA_COLUMN("known_by", TEXT),
	[B_RETAINED] = DATA_COLUMN("retained", BYTES),
	[B_ALLOCATOR] = COLUMN("allocator", "", TEXT,
			       .flags = COLUMN_NO_TEXT | COLUMN_NO_DATA),
	[B_USED] = COLUMN("used", "", FLAG,
			  .flags = COLUMN_NO_TEXT | COLUMN_NO_DATA),
	[B_FREE] = COLUMN("free", "", FLAG,
			  .flags = COLUMN_NO_TEXT | COLUMN_NO_DATA),
};

const struct column *block_columns(size_t *ret_n)
{
	*ret_n = B_COLUMNS;
	return columns;
}

bool blocks_want_reach(const struct filter *filter)
{
	return filter_uses(filter, B_LEAKED) || filter_uses(filter, B_GRADE) ||
	       filter_uses(filter, B_REFS) || blocks_want_retained(filter);
}

bool blocks_want_retained(const struct filter *filter)
{
	return filter_uses(filter, B_RETAINED);
}

bool blocks_want_types(const struct filter *filter)
{
	return filter_uses(filter, B_TYPE) || filter_uses(filter, B_KNOWN);
}

/*
 * The words a line may hold, made once: names of states, arenas and
 * allocators in one pool, as cells that point into it.
 */
struct words {
	struct str pool;
	struct cell (*state)[BLOCK_STATES];	/* owned; by arena */
	struct cell *arena;	/* owned; by arena */
	struct cell *allocator;	/* owned; by arena */
	struct cell grade[REACH_GRADES];
	bool wants_thread;	/* somebody looks at the thread */
	const struct reach *reach;	/* borrowed; or NULL */
	const struct retain *retain;	/* borrowed; or NULL */
	uint32_t *refs;		/* owned; by number in the index, or NULL */
	struct residency_cursor at;
	struct residency pages;	/* of the block at hand */
	const struct census *census;	/* borrowed; or NULL */
	struct cell *type;	/* owned; by type */
	struct cell *quoted;	/* owned; the same as the format wants it */
	size_t longest;		/* of those */
	struct cell known[TYPE_KNOWN];
};

static struct cell add_word(struct words *w, const char *text)
{
	struct cell c = { .known = true };

	c.text.off = (uint32_t)w->pool.len;
	c.text.len = (uint32_t)strlen(text);
	str_adds(&w->pool, text);
	return c;
}

/* A type's name as a string of JSON or a field of CSV. */
static struct cell add_quoted(struct words *w, const char *text,
			      enum report_format format)
{
	struct cell c = { .known = true };
	bool quote = format == REPORT_CSV && strpbrk(text, ",\"");

	c.text.off = (uint32_t)w->pool.len;
	if (quote)
		str_addc(&w->pool, '"');
	for (; *text; text++) {
		if (format == REPORT_JSON && strchr("\"\\", *text))
			str_addc(&w->pool, '\\');
		else if (quote && *text == '"')
			str_addc(&w->pool, '"');
		str_addc(&w->pool, *text);
	}
	if (quote)
		str_addc(&w->pool, '"');
	c.text.len = (uint32_t)(w->pool.len - c.text.off);
	w->longest = max_u64(w->longest, c.text.len);
	return c;
}

static void add_types(struct words *w, enum report_format format)
{
	const struct types *t = &w->census->types;

	w->type = mem_alloc(t->n * sizeof(*w->type));
	w->quoted = mem_alloc(t->n * sizeof(*w->quoted));
	for (size_t i = 0; i < t->n; i++) {
		w->type[i] = add_word(w, t->items[i].name);
		w->quoted[i] = add_quoted(w, t->items[i].name, format);
	}
	for (int i = 0; i < TYPE_KNOWN; i++)
		w->known[i] = add_word(w, type_known_name(i));
}

static void words_init(struct words *w, const struct report_input *in,
		       enum report_format format)
{
	const struct heap *h = in->heap;

	residency_seek(&w->at, in->sp);
	w->reach = in->reach;
	w->retain = in->retain;
	w->census = in->census;
	str_init(&w->pool);
	if (w->census)
		add_types(w, format);
	for (int g = 0; w->reach && g < REACH_GRADES; g++)
		w->grade[g] = add_word(w, reach_grade_name(g));
	if (w->reach)
		w->refs = graph_count_refs(w->reach->g);
	w->state = mem_alloc(h->n_arenas * sizeof(*w->state));
	w->arena = mem_alloc(h->n_arenas * sizeof(*w->arena));
	w->allocator = mem_alloc(h->n_arenas * sizeof(*w->allocator));
	for (size_t i = 0; i < h->n_arenas; i++) {
		const struct arena *a = &h->arenas[i];

		for (int s = 0; s < BLOCK_STATES; s++)
			w->state[i][s] = add_word(w, heap_state_name(
				h, (uint32_t)i, (enum block_state)s));
		w->arena[i] = add_word(w, a->name);
		w->allocator[i] = add_word(w,
					   h->allocators[a->allocator].name);
	}
}

static void words_fini(struct words *w)
{
	str_fini(&w->pool);
	free(w->state);
	free(w->arena);
	free(w->allocator);
	free(w->refs);
	free(w->type);
	free(w->quoted);
}

/* Whose thread cache holds the block; unknown if nobody's. */
static struct cell thread_cell(const struct heap *h, const struct block *b)
{
	const struct cached *c;

	if (b->state != BLOCK_CACHED)
		return (struct cell){ 0 };
	c = heap_cached(h, b->start);
	if (!c || !h->caches[c->cache].tid)
		return (struct cell){ 0 };
	return cell_number(h->caches[c->cache].tid);
}

static void reach_cells(const struct words *w, const struct block *b,
			struct cell ret[B_COLUMNS])
{
	const struct reach *r = w->reach;
	uint32_t node = b->state == BLOCK_USED
		? index_find(&r->g->ix, b->addr) : 0;
	enum reach_grade grade;

	for (int i = B_LEAKED; i <= B_REFS; i++)
		ret[i].known = node != 0;
	ret[B_RETAINED].known = false;
	if (!node)
		return;
	grade = reach_grade(r, node);
	ret[B_LEAKED].u = grade == REACH_CERTAIN || grade == REACH_LIKELY;
	ret[B_GRADE] = w->grade[grade];
	ret[B_REFS].u = w->refs[node];
	if (w->retain && grade == REACH_LIVE)
		ret[B_RETAINED] = cell_number(w->retain->bytes[node]);
}

static void page_cells(struct words *w, const struct block *b,
		       struct cell ret[B_COLUMNS])
{
	if (!w->at.sp)
		return;
	w->pages = (struct residency){ 0 };
	residency_of(&w->at, b->start, b->start + b->size, &w->pages);
	ret[B_RESIDENT] = cell_number(w->pages.resident);
	ret[B_SWAPPED] = cell_number(w->pages.swapped);
}

/* The number of a block's type; 0: not known, or not in use. */
static uint32_t type_of(const struct words *w, const struct block *b)
{
	uint32_t number;

	if (!w->census || b->state != BLOCK_USED)
		return 0;
	number = index_find(w->census->ix, b->addr);
	return number ? types_of(&w->census->types, number) : 0;
}

static void type_cells(const struct words *w, const struct block *b,
		       struct cell ret[B_COLUMNS])
{
	uint32_t type = type_of(w, b);

	ret[B_TYPE].known = ret[B_KNOWN].known = type != 0;
	if (!type)
		return;
	ret[B_TYPE] = w->type[type];
	ret[B_KNOWN] = w->known[w->census->types.items[type].known];
}

static void block_cells(const struct heap *h, struct words *w,
			const struct block *b, struct cell ret[B_COLUMNS])
{
	ret[B_ADDRESS] = cell_number(b->addr);
	ret[B_SIZE] = cell_number(b->size);
	ret[B_USABLE] = cell_number(b->usable);
	ret[B_STATE] = w->state[b->arena][b->state];
	ret[B_ARENA] = w->arena[b->arena];
	ret[B_MMAPPED] = cell_number(b->mmapped);
	if (w->wants_thread)
		ret[B_THREAD] = thread_cell(h, b);
	if (w->reach)
		reach_cells(w, b, ret);
	page_cells(w, b, ret);
	if (w->census)
		type_cells(w, b, ret);
	ret[B_ALLOCATOR] = w->allocator[b->arena];
	ret[B_USED] = cell_number(b->state == BLOCK_USED);
	ret[B_FREE] = cell_number(block_state_free(b->state));
}

/* Digits are written backwards into the end of a scratch area. */
static char *put_decimal(char *to, uint64_t value)
{
	char digits[20];
	char *p = digits + sizeof(digits);
	size_t n;

	do {
		*--p = (char)('0' + value % 10);
		value /= 10;
	} while (value);
	n = (size_t)(digits + sizeof(digits) - p);
	memcpy(to, p, n);
	return to + n;
}

static char *put_hex(char *to, uint64_t value)
{
	static const char hex[] = "0123456789abcdef";
	int shift = value ? (63 - __builtin_clzll(value)) & ~3 : 0;

	*to++ = '0';
	*to++ = 'x';
	for (; shift >= 0; shift -= 4)
		*to++ = hex[value >> shift & 15];
	return to;
}

static char *put(char *to, const char *text, size_t n)
{
	memcpy(to, text, n);
	return to + n;
}

#define PUT(to, literal) put((to), "" literal, sizeof(literal) - 1)

static char *put_word(char *to, const struct words *w, const struct cell *c)
{
	return put(to, w->pool.text + c->text.off, c->text.len);
}

/* Names of states and arenas are ours: letters, digits, blanks. */
static char *put_cell(char *to, const struct words *w, size_t column,
		      const struct cell *c)
{
	switch (columns[column].type) {
	case COLUMN_ADDR:
		return put_hex(to, c->u);
	case COLUMN_TEXT:
		return put_word(to, w, c);
	case COLUMN_FLAG:
		return c->u ? PUT(to, "true") : PUT(to, "false");
	default:
		return put_decimal(to, c->u);
	}
}

static bool is_quoted(size_t column)
{
	return columns[column].type == COLUMN_ADDR ||
	       columns[column].type == COLUMN_TEXT;
}

#define KEY(column, text) { column, text, sizeof(text) - 1 }

/* What is unknown is absent, and of flags of few blocks what is false. */
static char *put_json(char *to, const struct words *w, const struct cell *c)
{
	static const struct {
		unsigned column;
		const char *text;
		size_t n;
	} keys[] = {
		KEY(B_ADDRESS, "{\"address\":\""), KEY(B_SIZE, ",\"size\":"),
		KEY(B_USABLE, ",\"usable\":"), KEY(B_STATE, ",\"state\":\""),
		KEY(B_ARENA, ",\"arena\":\""),
		KEY(B_MMAPPED, ",\"mmapped\":"),
		KEY(B_THREAD, ",\"thread\":"), KEY(B_REFS, ",\"refs\":"),
		KEY(B_LEAKED, ",\"leaked\":"),
		KEY(B_GRADE, ",\"leak_grade\":\""),
		KEY(B_RESIDENT, ",\"resident\":"),
		KEY(B_SWAPPED, ",\"swapped\":"), KEY(B_TYPE, ",\"type\":\""),
		KEY(B_KNOWN, ",\"known_by\":\""),
		KEY(B_RETAINED, ",\"retained\":"),
	};

	for (size_t i = 0; i < countof(keys); i++) {
		unsigned column = keys[i].column;

		if (!c[column].known || (column == B_MMAPPED && !c[column].u))
			continue;
		to = put(to, keys[i].text, keys[i].n);
		to = put_cell(to, w, column, &c[column]);
		if (is_quoted(column))
			to = PUT(to, "\"");
	}
	return PUT(to, "}\n");
}

static char *put_csv(char *to, const struct words *w, const struct cell *c)
{
	for (size_t i = 0; i < B_ALLOCATOR; i++) {
		if (i)
			to = PUT(to, ",");
		if (c[i].known)
			to = put_cell(to, w, i, &c[i]);
	}
	return PUT(to, "\n");
}

static char *pad(char *to, const char *from, size_t width)
{
	size_t n = (size_t)(to - from);

	if (n < width) {
		memset(to, ' ', width - n);
		to += width - n;
	}
	return to;
}

/* Columns of text: where each begins, and the end of the sizes. */
enum { TEXT_SIZE = 18, TEXT_SIZE_END = 30, TEXT_STATE_WIDTH = 10,
       TEXT_ARENA_WIDTH = 15 };

static char *put_text(char *to, const struct words *w, const struct cell *c)
{
	char *line = to;
	char size[20];
	size_t n = (size_t)(put_decimal(size, c[B_SIZE].u) - size);

	to = put_hex(to, c[B_ADDRESS].u);
	to = pad(to, line, TEXT_SIZE);
	to = pad(to, line, TEXT_SIZE_END - n);
	to = put(to, size, n);
	to = PUT(to, "  ");
	line = to;
	to = put_word(to, w, &c[B_STATE]);
	to = pad(to, line, TEXT_STATE_WIDTH);
	line = to;
	to = put_word(to, w, &c[B_ARENA]);
	to = pad(to, line, TEXT_ARENA_WIDTH);
	if (c[B_TYPE].known)
		to = put_word(to, w, &c[B_TYPE]);
	else
		to = PUT(to, "-");
	return PUT(to, "\n");
}

/*
 * No line is longer but for the name of a type: seven numbers, two names of at
 * most 40, the words.
 */
enum { LINE_MAX_BYTES = 512 };

static void write_head(enum report_format format, struct out *o)
{
	if (format == REPORT_TEXT)
		out_adds(o, BLOCKS_HEADING);
	else if (format == REPORT_CSV)
		columns_write_csv(columns, B_COLUMNS, o);
}

static void write_block(const struct words *w, const struct cell *cells,
			enum report_format format, struct out *o)
{
	char *start = out_room(o, LINE_MAX_BYTES + w->longest);
	char *end = start;

	switch (format) {
	case REPORT_TEXT:
		end = put_text(start, w, cells);
		break;
	case REPORT_JSON:
		end = put_json(start, w, cells);
		break;
	case REPORT_CSV:
		end = put_csv(start, w, cells);
		break;
	}
	out_done(o, (size_t)(end - start));
}

uint64_t blocks_write(const struct report_input *in,
		      const struct filter *filter, uint64_t max,
		      enum report_format format, struct out *o)
{
	const struct heap *h = in->heap;
	struct cell cells[B_COLUMNS] = { { .known = false } };
	struct words w = { .wants_thread = true };
	struct heap_iter it;
	struct block b;
	uint64_t n = 0;

	words_init(&w, in, format);
	write_head(format, o);
	heap_iter_init(&it, h);
	while (!o->error && n < max && heap_iter_next(&it, &b)) {
		block_cells(h, &w, &b, cells);
		if (filter && !filter_match(filter, cells, w.pool.text))
			continue;
		if (cells[B_TYPE].known)
			cells[B_TYPE] = w.quoted[type_of(&w, &b)];
		write_block(&w, cells, format, o);
		n++;
	}
	words_fini(&w);
	return n;
}

enum { CLASS_SLOTS = USAGE_EXACT + 64 };

/* The place of a class: its size, or behind those the power of two. */
static size_t class_slot(uint32_t allocator, uint64_t size)
{
	size_t first = (size_t)allocator * CLASS_SLOTS;

	if (size < USAGE_EXACT)
		return first + size;
	return first + USAGE_EXACT + (size_t)(63 - __builtin_clzll(size));
}

static void class_add(struct usage_class *c, const struct block *b,
		      const struct residency *pages)
{
	struct tally *tallies[2] = { NULL, NULL };

	tallies[0] = b->mmapped ? &c->mmapped : &c->state[b->state];
	if (b->state == BLOCK_USED)
		tallies[1] = &c->used;
	else if (block_state_free(b->state))
		tallies[1] = &c->free;
	for (size_t i = 0; i < countof(tallies) && tallies[i]; i++) {
		tallies[i]->blocks++;
		tallies[i]->bytes += b->size;
	}
	residency_add(residency_of_class(c, b->state), pages);
	if (!c->example)
		c->example = b->addr;
}

static struct usage_class *class_of(struct usage *u, uint32_t *index,
				    uint32_t allocator, uint64_t size)
{
	uint32_t *at = &index[class_slot(allocator, size)];
	struct usage_class *c;

	if (*at)
		return &u->classes[*at - 1];
	c = &MEM_PUSH(u->classes, u->n_classes, u->cap_classes);
	*c = (struct usage_class){
		.allocator = allocator, .min = size, .max = size,
	};
	if (size >= USAGE_EXACT) {
		c->min = UINT64_C(1) << (63 - __builtin_clzll(size));
		c->max = c->min + (c->min - 1);
	}
	*at = (uint32_t)u->n_classes;
	return c;
}

void blocks_usage(struct usage *u, const struct report_input *in,
		  const struct filter *filter)
{
	const struct heap *h = in->heap;
	struct cell cells[B_COLUMNS] = { { .known = false } };
	struct words w = {
		.wants_thread = filter_uses(filter, B_THREAD),
	};
	uint32_t *index = mem_zalloc(h->n_allocators * CLASS_SLOTS *
				     sizeof(*index));
	struct heap_iter it;
	struct block b;

	*u = (struct usage){ .arena = USAGE_ALL_ARENAS };
	words_init(&w, in, REPORT_TEXT);
	heap_iter_init(&it, h);
	while (heap_iter_next(&it, &b)) {
		block_cells(h, &w, &b, cells);
		if (!filter_match(filter, cells, w.pool.text))
			continue;
		class_add(class_of(u, index, h->arenas[b.arena].allocator,
				   b.size), &b, &w.pages);
		class_add(&u->total, &b, &w.pages);
	}
	SORT(u->classes, u->n_classes, usage_order);
	words_fini(&w);
	free(index);
}

struct block_words {
	const struct heap *heap;	/* borrowed */
	struct words words;
};

struct block_words *block_words_new(const struct report_input *in)
{
	struct block_words *w = mem_zalloc(sizeof(*w));

	w->heap = in->heap;
	words_init(&w->words, in, REPORT_TEXT);
	return w;
}

void block_words_free(struct block_words *w)
{
	words_fini(&w->words);
	free(w);
}

void block_words_cells(struct block_words *w, const struct block *b,
		       struct cell ret[BLOCK_COLUMNS])
{
	w->words.wants_thread = true;
	block_cells(w->heap, &w->words, b, ret);
}

struct cell block_words_cell(struct block_words *w, const struct block *b,
			     size_t column)
{
	struct cell cells[BLOCK_COLUMNS] = { { .known = false } };

	if (column == B_SIZE)
		return cell_number(b->size);
	if (column == B_STATE)
		return w->words.state[b->arena][b->state];
	if (column == B_ARENA)
		return w->words.arena[b->arena];
	block_words_cells(w, b, cells);
	return cells[column];
}

bool block_words_match(const struct block_words *w,
		       const struct filter *filter, const struct cell *cells)
{
	return filter_match(filter, cells, w->words.pool.text);
}

uint64_t block_words_prefix(const struct block_words *w, const struct cell *c)
{
	const unsigned char *p = (const unsigned char *)w->words.pool.text +
				 c->text.off;
	uint64_t ret = 0;

	for (uint32_t i = 0; i < 8; i++)
		ret = ret << 8 | (c->known && i < c->text.len ? p[i] : 0);
	return ret;
}

void block_words_row(const struct block_words *w, const struct cell *cells,
		     struct table *t)
{
	table_row(t);
	for (size_t i = 0; i < B_COLUMNS; i++) {
		if (!cells[i].known)
			continue;
		if (columns[i].type == COLUMN_TEXT)
			table_set_bytes(t, i, w->words.pool.text +
					cells[i].text.off, cells[i].text.len);
		else
			table_set(t, i, cells[i].u);
	}
}
