/* SPDX-License-Identifier: MIT */
#include "tui/view.h"

#include <inttypes.h>
#include <string.h>

#include "base/num.h"

#define BIT(section) (1u << (section))

const struct view core_views[CORE_VIEWS] = {
	{ "Overview", "where the memory is, and what stands out",
	  BIT(SECTION_WHERE) | BIT(SECTION_STANDOUT) |
	  BIT(SECTION_ALLOCATORS) },
	{ "Arenas", "the heap by arena and by size",
	  BIT(SECTION_ARENAS) | BIT(SECTION_CLASSES) },
	{ "Types", "what the blocks are", BIT(SECTION_TYPES) },
	{ "Blocks", "all blocks, one a line", 0 },
	{ "Map", "mappings; Enter draws one",
	  BIT(SECTION_MAPPINGS) | BIT(SECTION_RESIDENCY) },
	{ "Retainers", "who keeps the memory alive",
	  BIT(SECTION_RETAINERS) | BIT(SECTION_PHP) },
	{ "Threads", "threads and their stacks", BIT(SECTION_THREADS) },
	{ "Findings", "what is leaked, and what is damaged",
	  BIT(SECTION_LEAKS) | BIT(SECTION_ABORT) | BIT(SECTION_CULPRITS) |
	  BIT(SECTION_FINDINGS) },
};

/* Rows that lead to a page, by what a cell of theirs says. */
static const struct {
	const char *table, *key, *value;	/* value NULL: any other */
	const char *name;
	unsigned sections;
} pages[] = {
	{ "where", "what", "used", "Types", BIT(SECTION_TYPES) },
	{ "where", "what", "free", "Arenas",
	  BIT(SECTION_ARENAS) | BIT(SECTION_CLASSES) },
	{ "where", "what", "overhead", "Arenas",
	  BIT(SECTION_ARENAS) | BIT(SECTION_CLASSES) },
	{ "where", "what", "undecoded", "Findings", BIT(SECTION_FINDINGS) },
	{ "where", "what", "stacks", "Threads", BIT(SECTION_THREADS) },
	{ "where", "what", NULL, "Map", BIT(SECTION_MAPPINGS) },
	{ "standout", "rule", "leaked", "Leaks", BIT(SECTION_LEAKS) },
	{ "standout", "rule", "type", "Types", BIT(SECTION_TYPES) },
	{ "standout", "rule", "strings", "Strings", BIT(SECTION_STRINGS) },
	{ "standout", "rule", "php-holder", "PHP", BIT(SECTION_PHP) },
	{ "standout", "rule", "php-limit", "PHP", BIT(SECTION_PHP) },
	{ "standout", "rule", "php-garbage", "PHP", BIT(SECTION_PHP) },
	{ "standout", "rule", "php-strings", "PHP", BIT(SECTION_PHP) },
	{ "standout", "rule", "php-free", "PHP", BIT(SECTION_PHP) },
	{ "standout", "rule", "abort", "Findings", BIT(SECTION_ABORT) |
	  BIT(SECTION_CULPRITS) | BIT(SECTION_FINDINGS) },
	{ "standout", "rule", "damage", "Findings", BIT(SECTION_CULPRITS) |
	  BIT(SECTION_FINDINGS) },
	{ "standout", "rule", "undecoded", "Findings",
	  BIT(SECTION_FINDINGS) },
	{ "standout", "rule", "one-size", "Sizes", BIT(SECTION_CLASSES) },
	{ "standout", "rule", "anonymous", "Map", BIT(SECTION_MAPPINGS) },
	{ "standout", "rule", "data", "Map", BIT(SECTION_MAPPINGS) },
	{ "standout", "rule", "stacks", "Threads", BIT(SECTION_THREADS) },
	{ "standout", "rule", "dead-stacks", "Map", BIT(SECTION_MAPPINGS) },
	{ "standout", "rule", "untouched", "Map",
	  BIT(SECTION_MAPPINGS) | BIT(SECTION_RESIDENCY) },
	{ "standout", "rule", "swapped", "Map",
	  BIT(SECTION_MAPPINGS) | BIT(SECTION_RESIDENCY) },
	{ "standout", "rule", NULL, "Fragmentation",
	  BIT(SECTION_FRAGMENTATION) },
	{ "retainers", "kind", "nobody", "Leaks", BIT(SECTION_LEAKS) },
	{ "allocators", "name", NULL, "Arenas",
	  BIT(SECTION_ARENAS) | BIT(SECTION_CLASSES) },
};

/* Where an address of a row is, the best one first. */
static const char *const address_keys[] = {
	"block", "address", "example", "value", "stack_address", "pc",
};

void goal_init(struct goal *g)
{
	*g = (struct goal){ .kind = GOAL_NONE };
	str_init(&g->filter);
}

void goal_fini(struct goal *g)
{
	str_fini(&g->filter);
}

static bool leads_to_page(const struct table *t, const struct cell *row,
			  struct goal *ret)
{
	for (size_t i = 0; i < countof(pages); i++) {
		const struct cell *c;

		if (strcmp(pages[i].table, t->name))
			continue;
		c = table_known(t, row, pages[i].key);
		if (!c || (pages[i].value &&
			   !table_says(t, c, pages[i].value)))
			continue;
		ret->kind = GOAL_SECTIONS;
		ret->name = pages[i].name;
		ret->sections = pages[i].sections;
		return true;
	}
	return false;
}

/* key="text", with quotes that the text does not have; else false. */
static bool add_term(struct goal *g, const char *key, const struct table *t,
		     const struct cell *c)
{
	const char *text = table_text(t, c);
	char quote = memchr(text, '"', c->text.len) ? '\'' : '"';

	if (memchr(text, quote, c->text.len))
		return false;
	str_printf(&g->filter, "%s%s=%c%.*s%c", g->filter.len ? " " : "", key,
		   quote, (int)c->text.len, text, quote);
	return true;
}

static bool is_of(const struct table *t, const char *name)
{
	return !strcmp(t->name, name);
}

/* Those of an arena, a type, a class of sizes, of what is leaked. */
static bool leads_to_blocks(const struct table *t, const struct cell *row,
			    struct goal *ret)
{
	const struct cell *name = table_known(t, row, "name");
	const struct cell *min = table_known(t, row, "min_bytes");
	const struct cell *max = table_known(t, row, "max_bytes");
	const struct cell *size = table_known(t, row, "size");
	const struct cell *owner = table_known(t, row, "allocator");
	bool ok = false;

	if (is_of(t, "arenas") && name)
		ok = add_term(ret, "arena", t, name);
	if (is_of(t, "types") && name)
		ok = add_term(ret, "type", t, name);
	if (is_of(t, "classes") && min && max) {
		str_printf(&ret->filter, "size>=%" PRIu64 " size<=%" PRIu64,
			   min->u, max->u);
		ok = !owner || add_term(ret, "allocator", t, owner);
	}
	if (is_of(t, "leaks")) {
		str_adds(&ret->filter, "leaked");
		ok = true;
		if (size)
			str_printf(&ret->filter, " size=%" PRIu64, size->u);
		else if (name)
			ok = add_term(ret, "type", t, name);
	}
	if (ok)
		ret->kind = GOAL_BLOCKS;
	else
		str_clear(&ret->filter);
	return ok;
}

static bool leads_to_picture(const struct table *t, const struct cell *row,
			     struct goal *ret)
{
	const struct cell *start = table_known(t, row, "address");
	const struct cell *end = table_known(t, row, "end");

	if (!is_of(t, "mappings") || !start || !end || end->u <= start->u)
		return false;
	ret->kind = GOAL_PICTURE;
	ret->addr = start->u;
	ret->end = end->u;
	return true;
}

/* A member whose value is a pointer. */
static bool leads_to_member(const struct table *t, const struct cell *row,
			    struct goal *ret)
{
	const struct cell *value = table_known(t, row, "value");
	char text[24];

	if (!is_of(t, "members") || !value ||
	    value->text.len >= sizeof(text))
		return false;
	memcpy(text, table_text(t, value), value->text.len);
	text[value->text.len] = '\0';
	if (strncmp(text, "0x", 2) || !num_parse_addr(text, &ret->addr))
		return false;
	ret->kind = GOAL_ADDRESS;
	return true;
}

/* What several roots share has no address. */
static bool leads_to_branch(const struct table *t, const struct cell *row)
{
	const struct cell *kind = table_known(t, row, "kind");

	return is_of(t, "retainers") && kind && table_says(t, kind, "several");
}

void view_goal(const struct table *t, const struct cell *row, struct goal *ret)
{
	if (is_of(t, "at_rest")) {
		ret->kind = GOAL_REST;
		return;
	}
	if (leads_to_branch(t, row)) {
		ret->kind = GOAL_BRANCH;
		return;
	}
	if (leads_to_page(t, row, ret) || leads_to_blocks(t, row, ret) ||
	    leads_to_member(t, row, ret) || leads_to_picture(t, row, ret))
		return;
	for (size_t i = 0; i < countof(address_keys); i++) {
		int k = column_find(t->columns, t->n_columns, address_keys[i]);

		if (k < 0 || !row[k].known ||
		    t->columns[k].type != COLUMN_ADDR)
			continue;
		ret->kind = GOAL_ADDRESS;
		ret->addr = row[k].u;
		return;
	}
}
