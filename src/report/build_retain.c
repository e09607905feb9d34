/* SPDX-License-Identifier: MIT */
/*
 * The tables of who keeps how much.
 */
#include "report/build.h"

#include <inttypes.h>
#include <string.h>

#include "analysis/census.h"
#include "analysis/retain.h"

enum { G_NAME, G_KIND, G_BLOCKS, G_BYTES, G_SHARE, G_ADDRESS, G_USED, G_NODE,
       G_COLUMNS };

static const struct column group_columns[G_COLUMNS] = {
	[G_NAME] = COLUMN("name", "", TEXT, .width = 40, .flags = COLUMN_RAW),
	[G_KIND] = DATA_COLUMN("kind", TEXT),
	[G_BLOCKS] = COLUMN("blocks", "blocks", COUNT, .flags = COLUMN_SUM,
			    .width = 10),
	[G_BYTES] = COLUMN("bytes", "bytes", BYTES, .flags = COLUMN_SUM,
			   .width = 10),
	[G_SHARE] = COLUMN("share", "of use", SHARE, .part = G_BYTES + 1,
			   .whole = G_USED + 1, .flags = COLUMN_OF_TOTAL),
	[G_ADDRESS] = DATA_COLUMN("address", ADDR),
	[G_USED] = OF_USED,
	[G_NODE] = COLUMN("node", "", COUNT,
			  .flags = COLUMN_NO_TEXT | COLUMN_NO_DATA),
};

static const char *kind_name(const struct retain_group *g)
{
	return g->kind == ROOT_STACK ? "thread" : root_kind_name(g->kind);
}

/* ---- the tree: a row's children below it, if it is opened ---- */

enum { CHILDREN = 20, TREE_DEPTH = 200 };

static bool is_opened(const struct report_options *o, uint32_t node)
{
	for (size_t i = 0; i < o->n_opened; i++)
		if (o->opened[i] == node)
			return true;
	return false;
}

static void add_mark(const struct report *r, uint32_t node, bool has_more,
		     unsigned depth, struct str *s)
{
	if (!r->options->is_tree)
		return;
	for (unsigned i = 0; i < depth; i++)
		str_adds(s, "  ");
	str_adds(s, !has_more ? "  " : is_opened(r->options, node) ? "- "
								   : "+ ");
}

static const char *type_name(const struct report_input *in, vaddr addr)
{
	const struct type *type = in->census ?
		types_get(&in->census->types,
			  index_find(in->census->ix, addr)) : NULL;

	return type && type->known != TYPE_UNKNOWN ? type->name : "block";
}

static void add_children(struct report *r, struct table *t,
			 const struct report_input *in, uint32_t node,
			 unsigned depth)
{
	struct retain_child list[CHILDREN];
	struct tally rest;
	struct str s;
	size_t n;

	if (!is_opened(r->options, node) || depth > TREE_DEPTH)
		return;
	n = retain_children(in->retain, node, list, CHILDREN, &rest);
	str_init(&s);
	for (size_t i = 0; i < n; i++) {
		str_clear(&s);
		add_mark(r, list[i].block, list[i].bytes > list[i].size, depth,
			 &s);
		str_printf(&s, "%s 0x%" PRIx64, type_name(in, list[i].addr),
			   list[i].addr);
		table_row(t);
		table_set_bytes(t, G_NAME, s.text, s.len);
		table_set_text(t, G_KIND, "block");
		table_set(t, G_BYTES, list[i].bytes);
		table_set(t, G_ADDRESS, list[i].addr);
		table_set(t, G_NODE, list[i].block);
		add_children(r, t, in, list[i].block, depth + 1);
	}
	if (rest.blocks) {
		table_row(t);
		table_printf(t, G_NAME, "%*s%" PRIu64 " more", 2 * depth + 2,
			     "", rest.blocks);
		table_set_text(t, G_KIND, "more");
		table_set(t, G_BYTES, rest.bytes);
	}
	str_fini(&s);
}

static void add_group(struct report *r, struct table *t,
		      const struct report_input *in, size_t i)
{
	const struct retain_group *g = &in->retain->groups[i];
	uint32_t node = RETAIN_GROUP | (uint32_t)i;
	struct str s;

	str_init(&s);
	add_mark(r, node, true, 0, &s);
	retain_group_text(in->names, g, &s);
	if (g->words > 1)
		str_printf(&s, " (%" PRIu32 " words)", g->words);
	table_row(t);
	table_set_bytes(t, G_NAME, s.text, s.len);
	table_set_text(t, G_KIND, kind_name(g));
	table_set(t, G_BLOCKS, g->retained.blocks);
	table_set(t, G_BYTES, g->retained.bytes);
	if (g->kind != ROOT_STACK)
		table_set(t, G_ADDRESS, g->addr);
	table_set(t, G_NODE, node);
	str_fini(&s);
	add_children(r, t, in, node, 1);
}

/* A row that is not a group's. */
struct sum {
	const char *kind;
	const struct retain_shared *shared;	/* or NULL */
	uint32_t node;		/* 0: none */
	struct tally t;
};

enum { MAX_SUMS = RETAIN_SHARED + 2 };

/* Where " in MODULE" begins; the end, if it does not. */
static size_t module_at(const struct str *s)
{
	const char *last = NULL, *at = s->text;

	while (at && (at = strstr(at, " in ")))
		last = at++;
	return last ? (size_t)(last - s->text) : s->len;
}

/* "A, B"; of one module: "A, B in MODULE" */
static void shared_text(const struct report_input *in, const uint32_t *group,
			struct str *s)
{
	struct str of[2];
	int n = 0;

	for (; n < 2 && group[n] != RETAIN_SEVERAL; n++) {
		str_init(&of[n]);
		retain_group_text(in->names, &in->retain->groups[group[n]],
				  &of[n]);
	}
	if (n == 2 && !strcmp(of[0].text + module_at(&of[0]),
			      of[1].text + module_at(&of[1])))
		of[0].text[of[0].len = module_at(&of[0])] = '\0';
	for (int i = 0; i < n; i++) {
		str_adds(s, i ? ", " : "");
		str_add(s, of[i].text, of[i].len);
		str_fini(&of[i]);
	}
}

static void add_sum(struct report *r, struct table *t,
		    const struct report_input *in, const struct sum *sum)
{
	struct str s;

	str_init(&s);
	add_mark(r, sum->node, sum->node, 0, &s);
	if (sum->shared) {
		shared_text(in, sum->shared->group, &s);
		if (sum->shared->group[1] == RETAIN_SEVERAL)
			str_adds(&s, " and others");
	} else {
		str_adds(&s, !strcmp(sum->kind, "nobody") ? "nobody" :
			     "several of these together");
	}
	table_row(t);
	table_set_bytes(t, G_NAME, s.text, s.len);
	table_set_text(t, G_KIND, sum->kind);
	table_set(t, G_BLOCKS, sum->t.blocks);
	table_set(t, G_BYTES, sum->t.bytes);
	str_fini(&s);
	if (!sum->node)
		return;
	table_set(t, G_NODE, sum->node);
	add_children(r, t, in, sum->node, 1);
}

/* Blocks in use that no root leads to; nothing if all can be reached. */
static struct tally not_live(const struct report_input *in)
{
	struct heap_sum sum = sum_heap(in->heap);
	const struct retain *r = in->retain;

	return (struct tally){
		sum.used_blocks - min_u64(sum.used_blocks, r->total.blocks),
		sum.used - min_u64(sum.used, r->total.bytes),
	};
}

static void push_sum(struct sum *list, size_t *n, struct sum sum)
{
	size_t at = *n;

	if (!sum.t.blocks)
		return;
	for (; at && list[at - 1].t.bytes < sum.t.bytes; at--)
		list[at] = list[at - 1];
	list[at] = sum;
	++*n;
}

/* Whom it belongs to that has no single root, the largest first. */
static size_t find_sums(const struct retain *r, const struct tally *lost,
			struct sum list[MAX_SUMS])
{
	struct tally rest = r->several;
	size_t n = 0;

	for (size_t i = 0; i < r->n_shared; i++) {
		const struct retain_shared *s = &r->shared[i];

		push_sum(list, &n, (struct sum){
			"several", s, retain_several(r, i), s->t,
		});
		rest.blocks -= s->t.blocks;
		rest.bytes -= s->t.bytes;
	}
	push_sum(list, &n, (struct sum){
		"several", NULL, retain_several(r, r->n_shared), rest,
	});
	push_sum(list, &n, (struct sum){ "nobody", NULL, 0, *lost });
	return n;
}

static void build_groups(struct report *r, const struct report_input *in)
{
	struct table *t = report_add(r, SECTION_RETAINERS, "retainers",
				     "WHO KEEPS IT ALIVE", group_columns,
				     G_COLUMNS);
	struct sum sums[MAX_SUMS];
	struct tally lost;
	size_t n, at = 0;

	t->more = "other roots";
	t->listed = leaks_all_listed(in);
	if (!in->retain)
		return;
	lost = not_live(in);
	n = find_sums(in->retain, &lost, sums);
	for (size_t i = 0; i < in->retain->n_groups; i++) {
		const struct tally *own = &in->retain->groups[i].retained;

		while (at < n && sums[at].t.bytes > own->bytes)
			add_sum(r, t, in, &sums[at++]);
		if (own->blocks)
			add_group(r, t, in, i);
	}
	while (at < n)
		add_sum(r, t, in, &sums[at++]);
	table_total_row(t);
	table_set_text(t, G_NAME, "total");
	table_set(t, G_BLOCKS, in->retain->total.blocks + lost.blocks);
	table_set(t, G_BYTES, in->retain->total.bytes + lost.bytes);
	table_set(t, G_USED, sum_heap(in->heap).used);
}

enum { B_NAME, B_TYPE, B_HOLDS, B_SIZE, B_BLOCKS, B_BYTES, B_SHARE, B_ADDRESS,
       B_HELD, B_KEPT, B_USED, B_COLUMNS };

/* Of who keeps a block: its whole name is in the table above. */
enum { KEPT_SHOWN = 22 };

static const struct column block_columns[B_COLUMNS] = {
	[B_NAME] = COLUMN("name", "", TEXT,
			  .flags = COLUMN_RAW | COLUMN_NO_DATA),
	[B_TYPE] = COLUMN("type", "", TEXT,
			  .flags = COLUMN_RAW | COLUMN_NO_TEXT),
	[B_HOLDS] = COLUMN("holds", "", TEXT,
			   .flags = COLUMN_RAW | COLUMN_NO_TEXT),
	[B_SIZE] = DATA_COLUMN("size", BYTES),
	[B_BLOCKS] = COLUMN("blocks", "blocks", COUNT),
	[B_BYTES] = COLUMN("bytes", "bytes", BYTES),
	[B_SHARE] = COLUMN("share", "", SHARE, .part = B_BYTES + 1,
			   .whole = B_USED + 1, .flags = COLUMN_NO_TEXT),
	[B_ADDRESS] = COLUMN("address", "address", ADDR),
	[B_HELD] = COLUMN("held_by", "", TEXT,
			  .flags = COLUMN_RAW | COLUMN_NO_TEXT),
	[B_KEPT] = COLUMN("kept_by", "kept by", TEXT,
			  .flags = COLUMN_RAW | COLUMN_LEFT | COLUMN_NO_DATA),
	[B_USED] = OF_USED,
};

/* NULL if it is known by less than that. */
static const struct type *type_known_by(const struct report_input *in,
					uint32_t block, enum type_known least)
{
	const struct type *type = in->census ?
		types_get(&in->census->types, block) : NULL;

	return type && type->known >= least ? type : NULL;
}

/* What "pointers" or a shape says of members is not worth the room. */
static const struct type *named_type(const struct report_input *in,
				     uint32_t block)
{
	return type_known_by(in, block, TYPE_TEXT);
}

/* The type that more than half of some members have; NULL: none has. */
static const struct type *type_of_members(const struct report_input *in,
					  const struct retain_block *b)
{
	const struct type *best = NULL;
	uint32_t lead = 0, n = 0;

	for (uint32_t i = 0; i < b->n_members; i++) {
		const struct type *type = named_type(in, b->members[i]);

		if (!lead)
			best = type;
		lead += type == best ? 1 : -1U;
	}
	for (uint32_t i = 0; i < b->n_members; i++)
		n += named_type(in, b->members[i]) == best;
	return 2 * n > b->n_members ? best : NULL;
}

static void set_types(struct table *t, const struct report_input *in,
		      const struct retain_block *b)
{
	const struct type *own = type_known_by(in, b->block, TYPE_CONTENT);
	const struct type *held = type_of_members(in, b);

	if (own)
		table_set_text(t, B_TYPE, own->name);
	if (held)
		table_set_text(t, B_HOLDS, held->name);
	if (held && (!own || own->known == TYPE_CONTENT))
		table_printf(t, B_NAME, "block of %s", held->name);
	else
		table_set_text(t, B_NAME, own ? own->name : "block");
}

static void add_block(struct table *t, const struct report_input *in,
		      const struct retain_block *b)
{
	struct str s;

	str_init(&s);
	if (b->group[0] == RETAIN_SEVERAL)
		str_adds(&s, "several");
	shared_text(in, b->group, &s);
	table_row(t);
	set_types(t, in, b);
	table_set(t, B_ADDRESS, b->addr);
	table_set(t, B_SIZE, b->size);
	table_set(t, B_BLOCKS, b->retained.blocks);
	table_set(t, B_BYTES, b->retained.bytes);
	table_set(t, B_USED, sum_heap(in->heap).used);
	table_set_bytes(t, B_HELD, s.text, s.len);
	if (s.len > KEPT_SHOWN)
		table_printf(t, B_KEPT, "%.*s...", KEPT_SHOWN - 3, s.text);
	else
		table_set_bytes(t, B_KEPT, s.text, s.len);
	str_fini(&s);
}

void build_retainers(struct report *r, const struct report_input *in)
{
	struct table *t;

	build_groups(r, in);
	t = report_add(r, SECTION_RETAINERS, "accumulations",
		       "ACCUMULATIONS", block_columns, B_COLUMNS);
	t->shapes = true;
	for (size_t i = 0; in->retain && i < in->retain->n_top; i++)
		add_block(t, in, &in->retain->top[i]);
}
