/* SPDX-License-Identifier: MIT */
/*
 * The words at --at that mean something: what they point to.
 */
#include <inttypes.h>

#include "analysis/census.h"
#include "analysis/refs.h"
#include "report/build.h"

enum { W_OFFSET, W_VALUE, W_MEANING, W_COLUMNS };
enum {
	WORDS_SCANNED = 8192,	/* of a block */
	WORDS_SHOWN = 64,
	WORDS_OF_DATA = 8,	/* of what is no block */
};

static const struct column word_columns[W_COLUMNS] = {
	[W_OFFSET] = COLUMN("offset", "at", COUNT, .width = 10,
			    .flags = COLUMN_LEFT),
	[W_VALUE] = COLUMN("value", "value", ADDR, .width = 18,
			   .flags = COLUMN_CONTENT),
	[W_MEANING] = COLUMN("leads_to", "which is", TEXT,
			     .flags = COLUMN_RAW | COLUMN_LEFT),
};

static void block_text(const struct report_input *in, const struct block *b,
		       vaddr value, struct str *ret)
{
	const struct type *type = NULL;
	bool named;

	if (in->census && b->state == BLOCK_USED)
		type = types_get(&in->census->types,
				 index_find(in->census->ix, b->addr));
	named = type && type->known != TYPE_UNKNOWN;
	str_printf(ret, "%s%s of %" PRIu64 " bytes",
		   b->state == BLOCK_USED ? "" : "free ",
		   named ? type->name : "block", b->size);
	if (value != b->addr)
		str_printf(ret, ", at %" PRId64, (int64_t)(value - b->addr));
}

/* False if the word points nowhere that has a name. */
static bool meaning(const struct report_input *in, vaddr value,
		    struct str *ret)
{
	struct block b;

	str_clear(ret);
	if (value < KIB)
		return false;
	if (heap_find(in->heap, value, &b)) {
		if (b.state == BLOCK_TOP || b.state == BLOCK_OVERHEAD)
			return false;
		block_text(in, &b, value, ret);
		return true;
	}
	return in->names && refs_symbol_text(in->names, value, ret);
}

void build_at_words(struct report *r, const struct report_input *in)
{
	const struct damage_at *a = in->at;
	struct table *t = report_add(r, SECTION_AT, "words",
				     "WORDS THAT POINT SOMEWHERE",
				     word_columns, W_COLUMNS);
	unsigned size = in->sp->word;
	vaddr from = a->has_block ? a->block.addr : a->addr / size * size;
	uint64_t n = a->has_block ? min_u64(a->block.usable / size,
					    WORDS_SCANNED) : WORDS_OF_DATA;
	struct str s;

	str_init(&s);
	for (uint64_t i = 0; i < n && t->n_rows < WORDS_SHOWN; i++) {
		uint64_t value;

		if (!space_word(in->sp, from + i * size, &value) ||
		    !meaning(in, value, &s))
			continue;
		table_row(t);
		table_set(t, W_OFFSET, i * size);
		table_set(t, W_VALUE, value);
		table_set_bytes(t, W_MEANING, s.text, s.len);
	}
	str_fini(&s);
}
