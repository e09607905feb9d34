/* SPDX-License-Identifier: MIT */
/*
 * The tables of --search: what was found, and how much of it there is.
 */
#include "report/build.h"

#include <inttypes.h>

#include "analysis/refs.h"
#include "analysis/search.h"
#include "base/num.h"

enum {
	H_ADDRESS, H_BLOCK, H_OFFSET, H_SIZE, H_STATE, H_ARENA, H_TYPE,
	H_WHAT, H_LENGTH, H_TEXT, H_COLUMNS
};

static const struct column hit_columns[H_COLUMNS] = {
	[H_ADDRESS] = COLUMN("address", "", ADDR, .flags = COLUMN_LEFT),
	[H_BLOCK] = COLUMN("block", "block", ADDR),
	[H_OFFSET] = COLUMN("offset", "offset", COUNT),
	[H_SIZE] = COLUMN("size", "size", BYTES),
	[H_STATE] = COLUMN("state", "state", TEXT, .flags = COLUMN_NO_TEXT),
	[H_ARENA] = DATA_COLUMN("arena", TEXT),
	[H_TYPE] = COLUMN("type", "", TEXT,
			  .flags = COLUMN_NO_TEXT | COLUMN_RAW),
	[H_WHAT] = DATA_COLUMN("mapping", TEXT),
	[H_LENGTH] = DATA_COLUMN("length", COUNT),
	[H_TEXT] = COLUMN("text", "text", TEXT,
			  .flags = COLUMN_RAW | COLUMN_CONTENT | COLUMN_LEFT),
};

/* So much of a match is shown. */
enum { TEXT_KEPT = 256 };

static void set_block(struct table *t, const struct report_input *in,
		      const struct search_hit *hit)
{
	const struct block *b = &hit->block;
	uint64_t vtable;
	struct str s;

	table_set(t, H_BLOCK, b->addr);
	table_set(t, H_OFFSET, hit->addr - b->addr);
	table_set(t, H_SIZE, b->size);
	table_set_text(t, H_STATE, block_state_name(b->state));
	table_set_text(t, H_ARENA, in->heap->arenas[b->arena].name);
	str_init(&s);
	if (b->state == BLOCK_USED && space_word(in->sp, b->addr, &vtable) &&
	    refs_class(in->names, vtable, &s))
		table_set_bytes(t, H_TYPE, s.text, s.len);
	str_fini(&s);
}

static void add_hit(struct table *t, const struct report_input *in,
		    const struct search_hit *hit)
{
	const struct where_map *map = where_map_at(in->where, hit->addr);

	table_row(t);
	table_set(t, H_ADDRESS, hit->addr);
	table_set(t, H_LENGTH, hit->n);
	table_set_bytes(t, H_TEXT, hit->bytes, min_u64(hit->n, TEXT_KEPT));
	if (map)
		table_set_text(t, H_WHAT, map->what);
	if (hit->in_block)
		set_block(t, in, hit);
}

enum {
	T_SENTENCE, T_MATCHES, T_BYTES, T_BLOCKS, T_LOOKED_BYTES, T_GAVE_UP,
	T_ENDED, T_COLUMNS
};

static const struct column sum_columns[T_COLUMNS] = {
	[T_SENTENCE] = COLUMN("sentence", "", TEXT, .flags = COLUMN_NO_DATA),
	[T_MATCHES] = DATA_COLUMN("matches", COUNT),
	[T_BYTES] = DATA_COLUMN("matched_bytes", BYTES),
	[T_BLOCKS] = DATA_COLUMN("blocks", COUNT),
	[T_LOOKED_BYTES] = DATA_COLUMN("searched_bytes", BYTES),
	[T_GAVE_UP] = DATA_COLUMN("gave_up", COUNT),
	[T_ENDED] = DATA_COLUMN("ended", FLAG),
};

static void explain(struct str *ret, const struct search *s)
{
	char size[NUM_MAX];

	num_format_size(size, s->bytes);
	if (s->matches)
		str_printf(ret, "%" PRIu64 " match%s in %" PRIu64 " block%s "
			   "and %s of memory", s->matches,
			   s->matches == 1 ? "" : "es", s->blocks,
			   s->blocks == 1 ? "" : "s", size);
	else
		str_printf(ret, "No match in %s of memory", size);
	if (s->matches > s->n)
		str_printf(ret, "; the first %zu are listed", s->n);
	str_addc(ret, '.');
	if (s->gave_up)
		str_printf(ret, "  The pattern took too many steps in %" PRIu64
			   " place%s: there may be more.", s->gave_up,
			   s->gave_up == 1 ? "" : "s");
	if (s->ended)
		str_adds(ret, "  So the search was ended before all of memory "
			 "was seen.");
}

static void build_sums(struct report *r, const struct search *s,
		       const char *title)
{
	struct table *t = add_sums(r, SECTION_SEARCH, "search", title,
				   sum_columns, T_COLUMNS);
	struct str text;

	str_init(&text);
	explain(&text, s);
	table_set_bytes(t, T_SENTENCE, text.text, text.len);
	str_fini(&text);
	table_set(t, T_MATCHES, s->matches);
	table_set(t, T_BYTES, s->matched_bytes);
	table_set(t, T_BLOCKS, s->blocks);
	table_set(t, T_LOOKED_BYTES, s->bytes);
	table_set(t, T_GAVE_UP, s->gave_up);
	table_set(t, T_ENDED, s->ended);
}

void build_search(struct report *r, const struct report_input *in)
{
	const struct search *s = in->search;
	struct table *t;

	if (!s)
		return;
	/* The sentence says that there is nothing. */
	if (s->n || r->options->format != REPORT_TEXT) {
		t = report_add(r, SECTION_SEARCH, "search", "FOUND",
			       hit_columns, H_COLUMNS);
		for (size_t i = 0; i < s->n; i++)
			add_hit(t, in, &s->hits[i]);
	}
	build_sums(r, s, s->n ? "FOUND, IN WORDS" : "FOUND");
}
