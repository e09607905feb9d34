/* SPDX-License-Identifier: MIT */
/*
 * The words at --at: what they point to, texts, numbers, runs of zeros.  With
 * --redact only those that point.
 */
#include <inttypes.h>

#include "analysis/census.h"
#include "analysis/refs.h"
#include "report/build.h"

enum {
	W_OFFSET, W_WORD, W_MEANING, W_VALUE, W_LEADS, W_WORDS, W_COLUMNS
};
enum {
	WORDS_SCANNED = 8192,	/* of a block */
	WORDS_SHOWN = 256,	/* rows */
	TEXT_SHOWN = 64,
	TEXT_LEAST = 4,
	WORDS_OF_DATA = 8,	/* of what is no block */
};

static const struct column word_columns[W_COLUMNS] = {
	[W_OFFSET] = COLUMN("offset", "at", COUNT, .width = 10,
			    .flags = COLUMN_LEFT),
	[W_WORD] = COLUMN("word", "value", ADDR, .width = 18,
			  .flags = COLUMN_CONTENT),
	[W_MEANING] = COLUMN("meaning", "which is", TEXT,
			     .flags = COLUMN_RAW | COLUMN_LEFT),
	[W_VALUE] = COLUMN("value", "", ADDR,
			   .flags = COLUMN_CONTENT | COLUMN_NO_TEXT),
	[W_LEADS] = COLUMN("leads_to", "", TEXT,
			   .flags = COLUMN_RAW | COLUMN_NO_TEXT),
	[W_WORDS] = DATA_COLUMN("words", COUNT),
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
	const struct heap_extent *x;
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
	x = heap_extent_at(in->heap, value);
	if (x && x->kind == EXTENT_RUNTIME) {
		str_printf(ret, "in the %s heap",
			   in->heap->arenas[x->arena].name);
		return true;
	}
	return in->names && refs_symbol_text(in->names, value, ret);
}

/* ---- those that point nowhere ---- */

/* Words of which the next row is made. */
struct run {
	struct space *sp;
	vaddr from;
	uint64_t left;		/* words from there to the end */
};

static bool word_at(const struct run *run, uint64_t i, uint64_t *ret)
{
	return i < run->left &&
	       space_word(run->sp, run->from + i * run->sp->word, ret);
}

static uint64_t zeros(const struct run *run)
{
	uint64_t n = 0, value;

	while (word_at(run, n, &value) && !value)
		n++;
	return n;
}

/* How many words a text takes, with the zero at its end; 0: it is none. */
static uint64_t text(const struct run *run, struct str *ret)
{
	unsigned char bytes[TEXT_SHOWN];
	unsigned size = run->sp->word;
	uint64_t n = space_read(run->sp, run->from, bytes,
				min_u64(sizeof(bytes), run->left * size));
	uint64_t len = 0;

	while (len < n && bytes[len] >= 0x20 && bytes[len] < 0x7f)
		len++;
	if (len < TEXT_LEAST || (len < n && bytes[len] && len < size))
		return 0;
	str_printf(ret, "\"%.*s\"", (int)len, (const char *)bytes);
	return max_u64(len / size + (len < n && !bytes[len]), 1);
}

static void number(uint64_t value, struct str *ret)
{
	uint64_t low = value & UINT32_MAX, high = value >> 32;

	if (!high)
		str_printf(ret, "%" PRIu64, value);
	else if ((int64_t)value < 0 && (int64_t)value >= INT32_MIN)
		str_printf(ret, "%" PRId64, (int64_t)value);
	else if (low < MIB && high < MIB)
		str_printf(ret, "%" PRIu64 ", %" PRIu64, low, high);
}

/* What the first words of a run are together; how many. */
static uint64_t plain(const struct run *run, uint64_t value, struct str *ret)
{
	uint64_t n = value ? text(run, ret) : zeros(run);

	if (!value && n > 1)
		str_printf(ret, "%" PRIu64 " words of zeros", n);
	else if (!n || !value)
		number(value, ret);
	return max_u64(n, 1);
}

/* By the types of a structure's members; false: no number is known here. */
static bool typed_number(const struct report_input *in, vaddr addr,
			 struct str *ret)
{
	struct str next;
	uint64_t size = build_at_number(in, addr, ret);

	if (!size || size >= in->sp->word)
		return size;
	str_init(&next);
	if (build_at_number(in, addr + size, &next))
		str_printf(ret, ", %s", next.text);
	str_fini(&next);
	return true;
}

static uint64_t add_words(struct table *t, const struct report_input *in,
			  const struct run *run, vaddr start, bool redact)
{
	uint64_t value, n = 1;
	struct str s;
	bool points;

	if (!word_at(run, 0, &value))
		return 1;
	str_init(&s);
	points = meaning(in, value, &s);
	if (!points && !redact && !typed_number(in, run->from, &s))
		n = plain(run, value, &s);
	if (points || !redact) {
		table_row(t);
		table_set(t, W_OFFSET, run->from - start);
		table_set(t, W_WORD, value);
		table_set(t, W_WORDS, n);
	}
	if (s.len)
		table_set_bytes(t, W_MEANING, s.text, s.len);
	if (points) {
		table_set(t, W_VALUE, value);
		table_set_bytes(t, W_LEADS, s.text, s.len);
	}
	str_fini(&s);
	return n;
}

void build_at_words(struct report *r, const struct report_input *in)
{
	const struct damage_at *a = in->at;
	struct table *t = report_add(r, SECTION_AT, "words", "WORDS",
				     word_columns, W_COLUMNS);
	unsigned size = in->sp->word;
	vaddr from = a->has_block ? a->block.addr : a->addr / size * size;
	struct run run = { in->sp, from, WORDS_OF_DATA };

	if (a->has_block)
		run.left = min_u64(a->block.usable / size, WORDS_SCANNED);
	while (run.left && t->n_rows < WORDS_SHOWN) {
		uint64_t n = add_words(t, in, &run, from, r->options->redact);

		run.from += n * size;
		run.left -= min_u64(n, run.left);
	}
}
