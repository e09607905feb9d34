/* SPDX-License-Identifier: MIT */
/*
 * What changed, in words.
 *
 * Each rule may say one sentence, which begins with an amount.  Those that
 * speak of less than a hundredth of all that moved are left out, and of the
 * rest the SAID_MAX with the most bytes stay.  What is in use and what is only
 * kept are never one number: that the heap grew says nothing about a leak.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/where.h"
#include "base/mem.h"
#include "base/num.h"
#include "report/compare.h"

/* ---- the list of sentences ---- */

static void drop_item(struct said *s, size_t i)
{
	free(s->item[i].text);
	memmove(&s->item[i], &s->item[i + 1],
		(s->n - i - 1) * sizeof(s->item[0]));
	s->n--;
}

/* Takes the text.  Among equals the first one said stays first. */
static void say(struct said *s, const char *rule, uint64_t weight,
		int64_t change, struct str *text)
{
	size_t at = s->n;

	while (at && s->item[at - 1].weight < weight)
		at--;
	if (at == SAID_MAX) {
		str_fini(text);
		return;
	}
	if (s->n == SAID_MAX)
		drop_item(s, s->n - 1);
	memmove(&s->item[at + 1], &s->item[at],
		(s->n - at) * sizeof(s->item[0]));
	s->item[at] = (struct said_item){
		.rule = rule, .weight = weight, .change = change,
		.text = str_take(text),
	};
	s->n++;
}

void said_fini(struct said *s)
{
	for (size_t i = 0; i < s->n; i++)
		free(s->item[i].text);
	s->n = 0;
}

static void add_bytes(struct str *s, uint64_t bytes)
{
	char size[NUM_MAX];

	num_format_size(size, bytes);
	str_adds(s, size);
}

static const char *more_or_less(int64_t change)
{
	return change < 0 ? "less" : "more";
}

/* "1.20G more is in use (+45.0%)"; of very much more, "(from 313K)". */
static void begin(struct str *s, const struct change *c, const char *what)
{
	str_init(s);
	add_bytes(s, num_abs(c->change));
	str_printf(s, " %s %s", more_or_less(c->change), what);
	if (!c->known[0] || !c->amount[0])
		return;
	if (c->change / 10 < (int64_t)c->amount[0]) {
		str_printf(s, " (%+.1f%%)", 100 * (double)c->change /
						    (double)c->amount[0]);
		return;
	}
	str_adds(s, " (from ");
	add_bytes(s, c->amount[0]);
	str_addc(s, ')');
}

static bool same_sign(int64_t a, int64_t b)
{
	return (a < 0) == (b < 0) && a && b;
}

/* ---- what is in use ---- */

/*
 * The pair that moved most in the same direction as change; n_pairs if none
 * did.  skip is one that does not count.
 */
static size_t find_most(const struct compare *c, enum compare_list list,
			size_t column, int64_t change, size_t skip)
{
	size_t best = c->n_pairs[list];
	uint64_t most = 0;

	for (size_t i = 0; i < c->n_pairs[list]; i++) {
		struct change x = compare_change(c, list, i, column);

		if (i == skip || !x.sure || !same_sign(x.change, change) ||
		    num_abs(x.change) <= most)
			continue;
		most = num_abs(x.change);
		best = i;
	}
	return best;
}

/* Whose blocks these are, if there are blocks of several: " of pymalloc". */
static void add_allocator(struct str *s, const struct compare *c, size_t pair)
{
	const struct table *t, *other;
	const struct cell *is = compare_label(c, COMPARE_CLASSES, pair,
					      CLASSES_ALLOCATOR, &t);

	for (size_t i = 0; is->known && i < c->n_pairs[COMPARE_CLASSES]; i++) {
		const struct cell *x = compare_label(c, COMPARE_CLASSES, i,
						     CLASSES_ALLOCATOR, &other);

		if (!x->known || (x->text.len == is->text.len &&
				  !memcmp(table_text(other, x),
					  table_text(t, is), x->text.len)))
			continue;
		str_adds(s, " of ");
		str_add_escaped(s, table_text(t, is), is->text.len);
		return;
	}
}

/*
 * "9876543 more blocks of 112 bytes".  Blocks of a range of sizes may have
 * grown without becoming more: then their number says nothing.
 */
static void add_blocks(struct str *s, const struct compare *c, size_t pair,
		       int64_t change)
{
	struct change n = compare_change(c, COMPARE_CLASSES, pair,
					 CLASSES_USED_BLOCKS);

	if (n.sure && same_sign(n.change, change))
		str_printf(s, "%" PRIu64 " %s block%s of ", num_abs(n.change),
			   n.change < 0 ? "fewer" : "more",
			   num_abs(n.change) == 1 ? "" : "s");
	else
		str_adds(s, "blocks of ");
	compare_size_text(c, pair, s);
	add_allocator(s, c, pair);
}

/* A part of change, as "1.10G of it"; more than all of it is none of it. */
static void add_part(struct str *s, int64_t part, int64_t change)
{
	uint64_t size = num_abs(part);
	uint64_t whole = num_abs(change);

	if (size <= whole && size >= whole - whole / 100) {
		str_adds(s, "all of it");
		return;
	}
	add_bytes(s, size);
	if (size <= whole)
		str_adds(s, " of it");
	else
		str_printf(s, " %s", more_or_less(part));
}

/* A name of the program's own, and not what blocks look like. */
static bool is_named(const struct compare *c, size_t pair)
{
	static const char *const guesses[] = {
		"unknown", "shape", "content", "text", "symbol",
	};
	const struct table *t;
	const struct cell *known = compare_label(c, COMPARE_TYPES, pair,
						 TYPES_KNOWN_BY, &t);

	for (size_t i = 0; i < countof(guesses); i++)
		if (table_says(t, known, guesses[i]))
			return false;
	return known->known;
}

/* The named type that moved most after the one before; n_pairs if none. */
static size_t next_type(const struct compare *c, int64_t change,
			size_t before)
{
	size_t n = c->n_pairs[COMPARE_TYPES], best = n;
	uint64_t most = 0, last = UINT64_MAX;

	if (before < n)
		last = num_abs(compare_change(c, COMPARE_TYPES, before,
					      TYPES_BYTES).change);
	for (size_t i = 0; i < n; i++) {
		struct change x = compare_change(c, COMPARE_TYPES, i,
						 TYPES_BYTES);
		uint64_t size = num_abs(x.change);

		if (!x.sure || !same_sign(x.change, change) || size <= most ||
		    size > last || (size == last && i <= before) ||
		    !is_named(c, i))
			continue;
		most = size;
		best = i;
	}
	return best;
}

static void add_type(struct str *s, const struct compare *c, size_t pair)
{
	struct change n = compare_change(c, COMPARE_TYPES, pair, TYPES_BLOCKS);
	const struct table *t;
	const struct cell *name = compare_label(c, COMPARE_TYPES, pair,
						TYPES_NAME, &t);

	if (n.sure && n.change)
		str_printf(s, "%" PRIu64 " %s ", num_abs(n.change),
			   n.change < 0 ? "fewer" : "more");
	str_add_name(s, table_text(t, name), name->text.len);
}

enum { TYPES_SAID = 3 };

/*
 * Types, where those with a name tell of at least half: they say more than a
 * size.  False if they do not.
 */
static bool add_types(struct str *s, const struct compare *c, int64_t change)
{
	size_t none = c->n_pairs[COMPARE_TYPES];
	uint64_t sum = 0;
	size_t at[TYPES_SAID], n = 0;

	for (size_t pair = none; n < TYPES_SAID; n++) {
		uint64_t size;

		pair = next_type(c, change, pair);
		if (pair == none)
			break;
		size = num_abs(compare_change(c, COMPARE_TYPES, pair,
					      TYPES_BYTES).change);
		if (size < num_abs(change) / 20)
			break;
		sum += size;
		at[n] = pair;
	}
	if (!n || sum < num_abs(change) / 2)
		return false;
	for (size_t i = 0; i < n; i++) {
		str_adds(s, i ? ", " : ": ");
		add_part(s, compare_change(c, COMPARE_TYPES, at[i],
					   TYPES_BYTES).change, change);
		str_adds(s, " in ");
		add_type(s, c, at[i]);
	}
	return true;
}

/* The two sizes that make up most of it, if they do. */
static void add_classes(struct str *s, const struct compare *c,
			int64_t change)
{
	size_t n = c->n_pairs[COMPARE_CLASSES];
	size_t first = find_most(c, COMPARE_CLASSES, CLASSES_USED, change, n);
	size_t pair = first;

	for (int i = 0; i < 2 && pair < n; i++) {
		struct change x = compare_change(c, COMPARE_CLASSES, pair,
						 CLASSES_USED);

		if (num_abs(x.change) < num_abs(change) / 4)
			return;
		str_adds(s, i ? ", " : ": ");
		add_part(s, x.change, change);
		str_adds(s, " in ");
		add_blocks(s, c, pair, x.change);
		pair = find_most(c, COMPARE_CLASSES, CLASSES_USED, change,
				 first);
	}
}

static void add_name(struct str *s, const struct compare *c, size_t pair)
{
	const struct table *t;
	const struct cell *name = compare_label(c, COMPARE_ARENAS, pair,
						ARENAS_NAME, &t);

	if (name->known)
		str_add_escaped(s, table_text(t, name), name->text.len);
	else
		str_addc(s, '?');
}

/* How many arenas moved in the direction of change. */
static size_t count_arenas(const struct compare *c, int64_t change)
{
	size_t n = 0;

	for (size_t i = 0; i < c->n_pairs[COMPARE_ARENAS]; i++) {
		struct change x = compare_change(c, COMPARE_ARENAS, i,
						 ARENAS_USED);

		n += x.sure && same_sign(x.change, change);
	}
	return n;
}

static void add_arena(struct str *s, const struct compare *c, int64_t change)
{
	size_t n = c->n_pairs[COMPARE_ARENAS];
	size_t pair = find_most(c, COMPARE_ARENAS, ARENAS_USED, change, n);
	struct change x;

	if (n < 2 || pair == n)
		return;
	x = compare_change(c, COMPARE_ARENAS, pair, ARENAS_USED);
	if (num_abs(x.change) < num_abs(change) / 2) {
		str_printf(s, "; in %zu arenas", count_arenas(c, change));
		return;
	}
	str_adds(s, "; ");
	add_part(s, x.change, change);
	str_adds(s, " in arena ");
	add_name(s, c, pair);
}

static void say_used(struct said *s, const struct compare *c,
		     const struct change *used)
{
	struct str text;

	if (!used->sure || !used->change)
		return;
	begin(&text, used, "is in use");
	if (!add_types(&text, c, used->change))
		add_classes(&text, c, used->change);
	add_arena(&text, c, used->change);
	str_addc(&text, '.');
	say(s, "used", num_abs(used->change), used->change, &text);
}

/* What is lost is in use too: the sentence before has it in its sum. */
static void say_leaked(struct said *s, const struct compare *c)
{
	struct change lost = compare_total(c, TOTALS_LEAKED);
	struct change n = compare_total(c, TOTALS_LEAKED_BLOCKS);
	struct str text;

	if (!lost.sure || !lost.change)
		return;
	begin(&text, &lost, "is lost: nothing was found that refers to it");
	if (n.sure && same_sign(n.change, lost.change))
		str_printf(&text, "; %" PRIu64 " %s block%s",
			   num_abs(n.change), n.change < 0 ? "fewer" : "more",
			   num_abs(n.change) == 1 ? "" : "s");
	str_addc(&text, '.');
	say(s, "leaked", num_abs(lost.change), lost.change, &text);
}

/* The variable of a PHP program that grew most is why it grew. */
static void say_php(struct said *s, const struct compare *c,
		    const struct change *used)
{
	enum compare_list list = COMPARE_PHP_HOLDERS;
	const struct table *t;
	const struct cell *name;
	struct change holds;
	struct str text;
	size_t best;

	if (!c->has[list] || !used->sure || !used->change)
		return;
	best = find_most(c, list, PHP_HOLDERS_HOLDS, used->change,
			 SIZE_MAX);
	if (best == c->n_pairs[list])
		return;
	holds = compare_change(c, list, best, PHP_HOLDERS_HOLDS);
	if (num_abs(holds.change) < num_abs(used->change) / 10)
		return;
	name = compare_label(c, list, best, PHP_HOLDERS_NAME, &t);
	str_init(&text);
	add_bytes(&text, num_abs(holds.change));
	str_printf(&text, " %s is held by PHP's ", more_or_less(holds.change));
	str_add_name(&text, table_text(t, name), name->text.len);
	str_addc(&text, '.');
	say(s, "php", num_abs(holds.change), holds.change, &text);
}

/* As much is in use as before, but not the same. */
static void say_sizes(struct said *s, const struct compare *c,
		      const struct change *used)
{
	size_t n = c->n_pairs[COMPARE_CLASSES];
	size_t up = find_most(c, COMPARE_CLASSES, CLASSES_USED, 1, n);
	size_t down = find_most(c, COMPARE_CLASSES, CLASSES_USED, -1, n);
	struct change more, less;
	struct str text;

	if (up == n || down == n)
		return;
	more = compare_change(c, COMPARE_CLASSES, up, CLASSES_USED);
	less = compare_change(c, COMPARE_CLASSES, down, CLASSES_USED);
	if (num_abs(used->change) > num_abs(more.change) / 2)
		return;
	str_init(&text);
	add_bytes(&text, num_abs(more.change));
	str_adds(&text, " more is in ");
	add_blocks(&text, c, up, more.change);
	str_adds(&text, ", and ");
	add_bytes(&text, num_abs(less.change));
	str_adds(&text, " less in ");
	add_blocks(&text, c, down, less.change);
	str_addc(&text, '.');
	say(s, "sizes", num_abs(more.change), more.change, &text);
}

/* ---- what is free ---- */

static struct change trimmable(const struct compare *c)
{
	struct change sum = { .sure = c->has[COMPARE_ARENAS] };

	for (size_t i = 0; i < c->n_pairs[COMPARE_ARENAS]; i++) {
		struct change x = compare_change(c, COMPARE_ARENAS, i,
						 ARENAS_TRIMMABLE);

		sum.change = (int64_t)((uint64_t)sum.change +
				       (uint64_t)x.change);
		sum.amount[1] += x.amount[1];
	}
	return sum;
}

static void add_trimmable(struct str *s, const struct compare *c,
			  int64_t free_change)
{
	struct change trim = trimmable(c);

	if (!trim.sure || trim.change <= free_change / 4)
		return;
	str_adds(s, "; malloc_trim(3) would now return ");
	add_bytes(s, trim.amount[1]);
}

/* Why there is more of it. */
static void add_kept(struct str *s, const struct change *used,
		     const struct change *mapped, int64_t more)
{
	if (used->change < 0 && num_abs(used->change) >= (uint64_t)more / 2) {
		str_adds(s, ": what the program freed was not given back");
	} else if (mapped->sure && mapped->change >= more / 2 &&
		   used->change <= more) {
		str_adds(s, ": the heaps grew by ");
		add_bytes(s, num_abs(mapped->change));
		if (used->change > 0) {
			str_adds(s, ", of which only ");
			add_bytes(s, num_abs(used->change));
			str_adds(s, " is in use");
		} else {
			str_adds(s, ", none of which is in use");
		}
	}
}

/* Where it went. */
static void add_gone(struct str *s, const struct change *used,
		     const struct change *mapped, int64_t change)
{
	bool shrank = mapped->sure && mapped->change < 0;

	if (used->change > 0 &&
	    num_abs(used->change) >= num_abs(change) / 4) {
		str_adds(s, shrank ? ": part of it is in use now"
				   : ": it is in use now");
		if (mapped->sure && mapped->change)
			str_adds(s, ", and the heaps ");
	} else if (shrank) {
		str_adds(s, ": the heaps ");
	} else {
		return;
	}
	if (!mapped->sure || !mapped->change)
		return;
	str_adds(s, shrank ? "shrank by " : "grew by ");
	add_bytes(s, num_abs(mapped->change));
}

static void say_free(struct said *s, const struct compare *c,
		     const struct change *used)
{
	struct change kept = compare_total(c, TOTALS_FREE);
	struct change mapped = compare_total(c, TOTALS_MAPPED);
	struct str text;

	if (!kept.sure || !kept.change)
		return;
	begin(&text, &kept, "is free, kept by the allocators");
	if (kept.change > 0) {
		add_kept(&text, used, &mapped, kept.change);
		add_trimmable(&text, c, kept.change);
	} else {
		add_gone(&text, used, &mapped, kept.change);
	}
	str_addc(&text, '.');
	say(s, "free", num_abs(kept.change), kept.change, &text);
}

/* A file without holes stores what was never touched, too. */
static bool knows_holes(const struct compare *c, int side)
{
	for (size_t i = 0; i < c->n_pairs[COMPARE_WHERE]; i++) {
		struct change size = compare_change(c, COMPARE_WHERE, i,
						    WHERE_BYTES);
		struct change there = compare_change(c, COMPARE_WHERE, i,
						     WHERE_STORED);

		if (there.known[side] &&
		    there.amount[side] < size.amount[side])
			return true;
	}
	return false;
}

/*
 * Pages that were given back, or touched for the first time: RSS moves, and
 * what is in use or free does not.
 */
static void say_touched(struct said *s, const struct compare *c,
			const char *row, const char *text)
{
	struct change size = compare_where(c, row, WHERE_BYTES);
	struct change there = compare_where(c, row, WHERE_STORED);
	struct str str;

	if (!size.sure || !there.sure || !knows_holes(c, 0) ||
	    !knows_holes(c, 1) ||
	    num_abs(size.change) >= num_abs(there.change) / 2)
		return;
	begin(&str, &there, text);
	str_printf(&str, ": it was %s.", there.change < 0
		   ? "given back, and its addresses are kept" : "touched");
	say(s, "touched", num_abs(there.change), there.change, &str);
}

/*
 * A core of gdb stores pages that are not there as zeros: how many there were
 * it does not tell.  What a process lacks is said all the same.
 */
static void say_untouched(struct said *s, const struct compare *c)
{
	struct change size = compare_where(c, "free", WHERE_BYTES);
	struct change there = compare_where(c, "free", WHERE_STORED);
	int side = knows_holes(c, 1);
	uint64_t gone;
	struct str str;

	if (!size.sure || !there.sure || knows_holes(c, !side) ||
	    !knows_holes(c, side) ||
	    !compare_side_is_process(c->side[side]) ||
	    there.amount[side] >= size.amount[side] / 2)
		return;
	gone = size.amount[side] - there.amount[side];
	str_init(&str);
	add_bytes(&str, gone);
	str_adds(&str, " of the ");
	add_bytes(&str, size.amount[side]);
	str_printf(&str, " that %s free %s no memory; how much took none %s "
		   "is not known.", side ? "is" : "was",
		   side ? "takes" : "took", side ? "before" : "later");
	say(s, "untouched", gone, -(int64_t)gone, &str);
}

/* ---- what is not blocks ---- */

static const struct {
	const char *what;	/* row of WHERE */
	const char *rule;	/* static */
	const char *text;
} others[] = {
	{ "anonymous", "anonymous", "is in other anonymous mappings, which "
	  "no known allocator owns" },
	{ "stacks", "stacks", "is stacks of threads" },
	{ "dead_stacks", "dead-stacks", "is stacks of threads that are "
	  "gone" },
	{ "data", "data", "is data of programs and libraries" },
	{ "overhead", "overhead", "is the allocators' own" },
	{ "undecoded", "undecoded", "could not be decoded" },
};

static void add_threads(struct str *s, const struct compare *c)
{
	struct change n;

	if (!c->n_pairs[COMPARE_TARGET])
		return;
	n = compare_change(c, COMPARE_TARGET, 0, TARGET_THREADS);
	if (n.sure && n.change)
		str_printf(s, ": %" PRIu64 " thread%s became %" PRIu64,
			   n.amount[0], n.amount[0] == 1 ? "" : "s",
			   n.amount[1]);
}

/* What is untouched takes no memory: it counts as far as it is there. */
static void say_other(struct said *s, const struct compare *c, size_t i)
{
	struct change size = compare_where(c, others[i].what, WHERE_BYTES);
	struct change there = compare_where(c, others[i].what, WHERE_STORED);
	uint64_t weight = num_abs(size.change);
	struct str text;

	if (!size.sure || !size.change)
		return;
	begin(&text, &size, others[i].text);
	if (!strcmp(others[i].what, "stacks"))
		add_threads(&text, c);
	if (there.sure && num_abs(there.change) < weight - weight / 8) {
		str_adds(&text, "; ");
		if (there.change)
			add_bytes(&text, num_abs(there.change));
		else
			str_adds(&text, "none");
		str_adds(&text, " of that was touched");
		weight = num_abs(there.change);
	}
	str_addc(&text, '.');
	say(s, others[i].rule, weight, size.change, &text);
}

/* ---- arenas, damage ---- */

static void say_arenas(struct said *s, const struct compare *c)
{
	uint64_t mapped = 0;
	size_t n = 0;
	struct str text;

	for (size_t i = 0; i < c->n_pairs[COMPARE_ARENAS]; i++) {
		struct change x = compare_change(c, COMPARE_ARENAS, i,
						 ARENAS_MAPPED);
		const struct table *t;

		if (c->pairs[COMPARE_ARENAS][i].row[0] != COMPARE_NO_ROW ||
		    !compare_label(c, COMPARE_ARENAS, i, ARENAS_ADDRESS,
				   &t)->known)
			continue;
		mapped += x.amount[1];
		n++;
	}
	if (n < 2)
		return;
	str_init(&text);
	add_bytes(&text, mapped);
	str_printf(&text, " is the heap of %zu arenas that were not there "
		   "before: threads that allocate at once get their own.", n);
	say(s, "arenas", mapped, (int64_t)mapped, &text);
}

static void say_findings(struct said *s, const struct compare *c)
{
	struct change n = compare_total(c, TOTALS_FINDINGS);
	struct str text;

	if (!n.sure || n.change <= 0)
		return;
	str_init(&text);
	str_printf(&text, "%" PRId64 " more finding%s: heapcore analyze says "
		   "what is odd or damaged.", n.change,
		   n.change == 1 ? "" : "s");
	say(s, "findings", UINT64_MAX, 0, &text);
}

/* ---- all of them ---- */

static uint64_t all_that_moved(const struct compare *c)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < c->n_pairs[COMPARE_WHERE]; i++)
		sum += num_abs(compare_change(c, COMPARE_WHERE, i,
					      WHERE_BYTES).change);
	return sum;
}

static bool anything_moved(const struct compare *c)
{
	static const struct {
		enum compare_list list;
		size_t column;
	} amounts[] = {
		{ COMPARE_WHERE, WHERE_BYTES },
		{ COMPARE_ARENAS, ARENAS_MAPPED },
		{ COMPARE_ARENAS, ARENAS_USED },
		{ COMPARE_ARENAS, ARENAS_FREE },
		{ COMPARE_CLASSES, CLASSES_USED },
		{ COMPARE_CLASSES, CLASSES_FREE },
	};

	for (size_t k = 0; k < countof(amounts); k++)
		for (size_t i = 0; i < c->n_pairs[amounts[k].list]; i++)
			if (compare_change(c, amounts[k].list, i,
					   amounts[k].column).change)
				return true;
	return false;
}

static void say_nothing(struct said *s, const struct compare *c)
{
	struct str text;

	str_init(&text);
	if (anything_moved(c))
		str_adds(&text, "Nothing changed in sum; single arenas or "
			 "sizes did.");
	else if (c->has[COMPARE_ARENAS] && c->has[COMPARE_CLASSES])
		str_adds(&text, "Nothing changed: no kind of memory, no "
			 "arena and no size of blocks.");
	else
		str_adds(&text, "Nothing changed of what can be compared.");
	say(s, "nothing", 0, 0, &text);
}

void said_init(struct said *s, const struct compare *c)
{
	struct change used = compare_total(c, TOTALS_USED);
	uint64_t least = all_that_moved(c) / 100;

	*s = (struct said){ .n = 0 };
	if (!used.sure)
		used = compare_where(c, "used", WHERE_BYTES);
	say_findings(s, c);
	say_used(s, c, &used);
	say_leaked(s, c);
	say_php(s, c, &used);
	say_sizes(s, c, &used);
	say_free(s, c, &used);
	say_touched(s, c, "free", "memory is taken by what is free");
	say_untouched(s, c);
	say_touched(s, c, "used", "memory is taken by what is in use");
	for (size_t i = 0; i < countof(others); i++)
		say_other(s, c, i);
	say_arenas(s, c);
	while (s->n > 1 && s->item[s->n - 1].weight < least)
		drop_item(s, s->n - 1);
	if (!s->n)
		say_nothing(s, c);
}
