/* SPDX-License-Identifier: MIT */
/*
 * The tables of --at=ADDR: what is there, its neighbours, its bytes.
 */
#include <inttypes.h>
#include <stdio.h>

#include "analysis/census.h"
#include "report/build.h"

enum {
	T_ADDRESS, T_TEXT, T_WHY, T_MAPPING, T_EXTENT, T_ARENA, T_BLOCK,
	T_TYPE, T_KNOWN, T_OFFSET, T_SIZE, T_USABLE, T_STATE, T_MMAPPED,
	T_THREAD, T_START,
	T_PREV, T_HEADER, T_NOTE, T_COLUMNS
};

static const struct column at_columns[T_COLUMNS] = {
	[T_ADDRESS] = COLUMN("address", "address", ADDR),
	[T_TEXT] = COLUMN("text", "what it is", TEXT),
	[T_WHY] = COLUMN("readable", "its byte is", TEXT),
	[T_MAPPING] = COLUMN("mapping", "mapping", TEXT),
	[T_EXTENT] = COLUMN("extent", "heap range", TEXT),
	[T_ARENA] = COLUMN("arena", "arena", TEXT),
	[T_BLOCK] = COLUMN("block", "block", ADDR),
	[T_TYPE] = COLUMN("type", "of type", TEXT, .flags = COLUMN_RAW),
	[T_KNOWN] = COLUMN("known_by", "known by", TEXT),
	[T_OFFSET] = COLUMN("offset", "offset in it", SIGNED),
	[T_SIZE] = COLUMN("size", "chunk size", COUNT),
	[T_USABLE] = COLUMN("usable", "usable", COUNT),
	[T_STATE] = COLUMN("state", "state", TEXT),
	[T_MMAPPED] = COLUMN("mmapped", "mmapped", FLAG),
	[T_THREAD] = COLUMN("thread", "in cache of thread", COUNT),
	[T_START] = COLUMN("chunk", "chunk", ADDR),
	[T_PREV] = COLUMN("previous_size_word", "word before it", ADDR,
			  .flags = COLUMN_CONTENT),
	[T_HEADER] = COLUMN("size_word", "size field", ADDR,
			    .flags = COLUMN_CONTENT),
	[T_NOTE] = COLUMN("damaged_at", "damaged at", ADDR),
};

static void set_extent(struct table *t, const struct heap *h,
		       const struct heap_extent *x)
{
	static const char *const kinds[] = {
		[EXTENT_BLOCKS] = "blocks",
		[EXTENT_MMAPPED] = "a block that is a mapping of its own",
		[EXTENT_OVERHEAD] = "the allocator's own",
		[EXTENT_FOREIGN] = "inside a heap, but somebody else's",
		[EXTENT_UNDECODED] = "not decoded",
		[EXTENT_RUNTIME] = "a runtime's heap, not walked",
	};

	table_printf(t, T_EXTENT, "0x%" PRIx64 " to 0x%" PRIx64 ", %s",
		     x->start, x->end, kinds[x->kind]);
	if (x->arena < h->n_arenas)
		table_set_text(t, T_ARENA, h->arenas[x->arena].name);
}

static void set_block(struct table *t, const struct heap *h,
		      const struct damage_at *a)
{
	table_set(t, T_BLOCK, a->block.addr);
	table_set_signed(t, T_OFFSET, a->offset);
	table_set(t, T_SIZE, a->block.size);
	table_set(t, T_USABLE, a->block.usable);
	table_set_text(t, T_STATE, heap_state_name(h, a->block.arena,
						   a->block.state));
	if (a->block.mmapped)
		table_set(t, T_MMAPPED, true);
	if (a->cache && a->cache->tid)
		table_set(t, T_THREAD, a->cache->tid);
	table_set(t, T_START, a->block.start);
	if (a->has_header) {
		table_set(t, T_PREV, a->header[0]);
		table_set(t, T_HEADER, a->header[1]);
	}
}

static void set_type(struct table *t, const struct census *c, vaddr addr)
{
	const struct type *type =
		types_get(&c->types, index_find(c->ix, addr));

	if (type->known == TYPE_UNKNOWN)
		return;
	table_set_text(t, T_TYPE, type->name);
	table_set_text(t, T_KNOWN, type_known_name(type->known));
}

static void build_at_object(struct report *r, const struct report_input *in)
{
	const struct damage_at *a = in->at;
	struct table *t = report_add(r, SECTION_AT, "at", "AT THIS ADDRESS",
				     at_columns, T_COLUMNS);

	t->form = TABLE_OBJECT;
	table_row(t);
	table_set(t, T_ADDRESS, a->addr);
	if (a->text)
		table_set_text(t, T_TEXT, a->text);
	table_set_text(t, T_WHY, damage_why_text(in->sp, a->why));
	if (a->map)
		table_printf(t, T_MAPPING, "0x%" PRIx64 " to 0x%" PRIx64
			     ", %s", a->map->start, a->map->end,
			     a->map->what);
	else if (a->seg)
		table_printf(t, T_MAPPING, "0x%" PRIx64 " to 0x%" PRIx64,
			     a->seg->start, a->seg->end);
	if (a->extent)
		set_extent(t, in->heap, a->extent);
	if (a->has_block)
		set_block(t, in->heap, a);
	if (a->has_block && in->census)
		set_type(t, in->census, a->block.addr);
	if (a->note_addr)
		table_set(t, T_NOTE, a->note_addr);
}

enum { E_WHICH, E_ADDRESS, E_SIZE, E_STATE, E_COLUMNS };

static const struct column neighbour_columns[E_COLUMNS] = {
	[E_WHICH] = COLUMN("which", "", TEXT, .width = 12),
	[E_ADDRESS] = COLUMN("address", "address", ADDR, .width = 20),
	[E_SIZE] = COLUMN("size", "size", COUNT, .width = 12),
	[E_STATE] = COLUMN("state", "state", TEXT),
};

static void add_neighbour(struct table *t, const struct heap *h,
			  const char *which, const struct block *b)
{
	table_row(t);
	table_set_text(t, E_WHICH, which);
	table_set(t, E_ADDRESS, b->addr);
	table_set(t, E_SIZE, b->size);
	table_set_text(t, E_STATE, heap_state_name(h, b->arena, b->state));
}

/* What lies behind the block may be what could not be decoded. */
static void add_undecoded(struct table *t, struct heap *h,
			  const struct damage_at *a)
{
	const struct heap_extent *x =
		heap_extent_at(h, a->block.start + a->block.size);

	if (!x || x->kind != EXTENT_UNDECODED)
		return;
	table_row(t);
	table_set_text(t, E_WHICH, "after");
	table_set(t, E_ADDRESS, x->start);
	table_set(t, E_SIZE, x->end - x->start);
	table_set_text(t, E_STATE, "not decoded");
}

static void build_neighbours(struct report *r, const struct report_input *in)
{
	const struct damage_at *a = in->at;
	struct table *t = report_add(r, SECTION_AT, "neighbours",
				     "NEIGHBOURS", neighbour_columns,
				     E_COLUMNS);

	if (a->has_before)
		add_neighbour(t, in->heap, "before", &a->before);
	if (a->has_block)
		add_neighbour(t, in->heap, "this", &a->block);
	if (a->has_after)
		add_neighbour(t, in->heap, "after", &a->after);
	else if (a->has_block)
		add_undecoded(t, in->heap, a);
}

/* Whoever refers is found in no time in a heap below this size. */
#define GLANCE_MAX (64 * MIB)

enum { X_ADDRESS, X_HEX, X_TEXT, X_COLUMNS };
enum {
	DUMP_LINE = 16,
	DUMP_LINES = 16,
	DUMP_BEFORE = 16,
	DUMP_AROUND = 64,	/* on each side of a damaged place */
};

static const struct column byte_columns[X_COLUMNS] = {
	[X_ADDRESS] = COLUMN("address", "", ADDR,
			     .flags = COLUMN_LEFT | COLUMN_CONTENT),
	[X_HEX] = COLUMN("hex", "", TEXT, .flags = COLUMN_CONTENT),
	[X_TEXT] = COLUMN("ascii", "", TEXT, .flags = COLUMN_CONTENT),
};

static void add_bytes(struct table *t, struct space *sp, vaddr addr)
{
	unsigned char bytes[DUMP_LINE];
	char hex[3 * DUMP_LINE + 1] = "";
	char text[DUMP_LINE + 1] = "";
	uint64_t n = space_read(sp, addr, bytes, DUMP_LINE);
	size_t h = 0;

	if (!n)
		return;
	for (uint64_t i = 0; i < n; i++) {
		h += (size_t)snprintf(hex + h, sizeof(hex) - h, "%s%02x",
				      i && i % 2 == 0 ? " " : "", bytes[i]);
		text[i] = (char)(bytes[i] >= 0x20 && bytes[i] < 0x7f
					 ? bytes[i] : '.');
	}
	table_row(t);
	table_set(t, X_ADDRESS, addr);
	table_set_text(t, X_HEX, hex);
	table_set_text(t, X_TEXT, text);
}

struct span {
	vaddr start, end;
};

/* From the block's header on, or around an address in no block. */
static struct span span_at(const struct damage_at *a)
{
	struct span span = { .start = round_down(a->addr, DUMP_LINE) };

	if (a->has_block && a->addr - a->block.start <
	    DUMP_LINE * (DUMP_LINES - 1))
		span.start = a->block.start;
	else if (span.start >= DUMP_BEFORE)
		span.start -= DUMP_BEFORE;
	if (!add_ok(span.start, DUMP_LINE * DUMP_LINES, &span.end))
		span.end = UINT64_MAX;
	/* One line more than the block: what an overflow would hit. */
	if (a->has_block)
		span.end = min_u64(span.end, a->block.start + a->block.size +
				   DUMP_LINE);
	return span;
}

/* Of a block that damage begins in: over its end, and what lies there now. */
static struct span span_of_damage(const struct damage *d,
				  const struct damage_at *a)
{
	struct span span = { 0 };

	for (size_t i = 0; i < d->n_cases; i++) {
		const struct damage_case *c = &d->cases[i];

		if (!a->has_block || !c->has_before || !c->addr ||
		    c->before.start != a->block.start)
			continue;
		span.start = max_u64(a->block.start,
				     round_down(c->addr, DUMP_LINE) -
				     DUMP_AROUND);
		if (!add_ok(span.start, 2 * DUMP_AROUND + DUMP_LINE,
			    &span.end))
			span.end = UINT64_MAX;
		break;
	}
	return span;
}

static void add_span(struct table *t, struct space *sp, struct span span)
{
	for (vaddr at = span.start; at < span.end && at >= span.start;
	     at += DUMP_LINE)
		add_bytes(t, sp, at);
}

static void build_bytes(struct report *r, struct space *sp,
			const struct damage *d, const struct damage_at *a)
{
	struct table *t = report_add(r, SECTION_AT, "bytes", "BYTES",
				     byte_columns, X_COLUMNS);
	struct span first = span_at(a);
	struct span second = span_of_damage(d, a);

	t->whole = true;
	/* Of a large block the beginning is enough then. */
	if (second.start > first.end && first.start + DUMP_AROUND < first.end)
		first.end = first.start + DUMP_AROUND;
	if (second.end && second.start <= first.end) {
		first.end = max_u64(first.end, second.end);
		second.end = 0;
	}
	add_span(t, sp, first);
	add_span(t, sp, second);
}

static const struct column rest_columns[] = {
	COLUMN("sentence", "", TEXT, .flags = COLUMN_NO_DATA),
};

/* In place of what is not looked for at a glance. */
static void build_rest(struct report *r)
{
	struct table *t = report_add(r, SECTION_AT, "at_rest",
				     "WHO REFERS TO IT", rest_columns,
				     countof(rest_columns));

	t->form = TABLE_SENTENCES;
	table_row(t);
	table_set_text(t, 0, "In a heap of this size that takes a moment: "
		       "Enter here looks, and for its type and a way to it "
		       "from a root.");
}

void build_at(struct report *r, const struct report_input *in)
{
	if (!in->at)
		return;
	build_at_object(r, in);
	build_at_members(r, in);
	build_at_words(r, in);
	build_neighbours(r, in);
	if (!r->options->glance || sum_heap(in->heap).used < GLANCE_MAX)
		build_at_refs(r, in);
	else
		build_rest(r);
	if (!r->options->redact)
		build_bytes(r, in->sp, in->damage, in->at);
}
