/* SPDX-License-Identifier: MIT */
#include "corewalk/dwarf_names.h"

#include <string.h>

#include "base/mem.h"

enum { SLOTS_MIN = 1024, MAX_NAMES = 1 << 26 };

/* ---- names ---- */

/*
 * Texts with a length, read without the blank of "> >", which compilers used
 * to write.
 */
struct reader {
	const char *at, *end;
	char last;
};

static int next_char(struct reader *r)
{
	if (r->at == r->end || !*r->at)
		return 0;
	if (*r->at == ' ' && r->last == '>' && r->at + 1 != r->end &&
	    r->at[1] == '>')
		r->at++;
	r->last = *r->at++;
	return (unsigned char)r->last;
}

static uint64_t hash_of(uint32_t scope, const char *text, size_t len)
{
	struct reader r = { .at = text, .end = text + len };
	uint64_t h = UINT64_C(0xcbf29ce484222325) ^ scope;
	int c;

	while ((c = next_char(&r)))
		h = (h ^ (uint64_t)c) * UINT64_C(0x100000001b3);
	return h ^ h >> 32;
}

static bool same_text(const char *a, size_t a_len, const char *b, size_t b_len)
{
	struct reader x = { .at = a, .end = a + a_len };
	struct reader y = { .at = b, .end = b + b_len };
	int c;

	if (a == b && a_len == b_len)
		return true;
	do {
		c = next_char(&x);
		if (c != next_char(&y))
			return false;
	} while (c);
	return true;
}

static uint32_t *slot_of(const struct dwarf_types *t, uint32_t scope,
			 const char *text, size_t len)
{
	size_t at = hash_of(scope, text, len) & (t->n_slots - 1);

	for (; t->slots[at]; at = (at + 1) & (t->n_slots - 1)) {
		const struct dwarf_name *name = &t->names[t->slots[at]];

		if (name->scope == scope &&
		    same_text(name->text, strlen(name->text), text, len))
			break;
	}
	return &t->slots[at];
}

static void more_slots(struct dwarf_types *t)
{
	if (t->n_names * 2 < t->n_slots)
		return;
	free(t->slots);
	t->n_slots *= 2;
	t->slots = mem_zalloc(t->n_slots * sizeof(*t->slots));
	for (size_t i = 1; i < t->n_names; i++)
		*slot_of(t, t->names[i].scope, t->names[i].text,
			 strlen(t->names[i].text)) = (uint32_t)i;
}

void dwarf_names_init(struct dwarf_types *t)
{
	t->n_slots = SLOTS_MIN;
	t->slots = mem_zalloc(t->n_slots * sizeof(*t->slots));
	MEM_PUSH(t->names, t->n_names, t->cap_names) =
		(struct dwarf_name){ .text = "" };
}

void dwarf_names_fini(struct dwarf_types *t)
{
	free(t->names);
	free(t->slots);
}

uint32_t dwarf_name_add(struct dwarf_types *t, uint32_t scope,
			const char *text)
{
	uint32_t *slot = slot_of(t, scope, text, strlen(text));

	if (*slot)
		return *slot;
	if (t->n_names >= MAX_NAMES) {
		t->n_skipped++;
		return 0;
	}
	*slot = (uint32_t)t->n_names;
	MEM_PUSH(t->names, t->n_names, t->cap_names) =
		(struct dwarf_name){ .text = text, .scope = scope };
	more_slots(t);
	return (uint32_t)t->n_names - 1;
}

/* 0 if there is none. */
static uint32_t dwarf_name_find(const struct dwarf_types *t, uint32_t scope,
				const char *text, size_t len)
{
	return *slot_of(t, scope, text, len);
}

void dwarf_name_text(const struct dwarf_types *t, uint32_t name,
		     struct str *s)
{
	uint32_t chain[DWARF_MAX_CHAIN];
	unsigned n = 0;

	for (; name && n < DWARF_MAX_CHAIN; name = t->names[name].scope)
		chain[n++] = name;
	while (n) {
		const char *text = t->names[chain[--n]].text;
		struct reader r = { .at = text, .end = text + strlen(text) };
		int c;

		while ((c = next_char(&r)))
			str_addc(s, (char)c);
		if (n)
			str_adds(s, "::");
	}
}

/* Where the part of a name that starts at text ends: at "::" or the end. */
static size_t part_len(const char *text, size_t len)
{
	unsigned open = 0;
	size_t i;

	for (i = 0; i < len; i++) {
		if (text[i] == '<' || text[i] == '(')
			open++;
		else if ((text[i] == '>' || text[i] == ')') && open)
			open--;
		else if (!open && text[i] == ':' && i + 1 < len &&
			 text[i + 1] == ':')
			break;
	}
	return i;
}

uint32_t dwarf_find_type(struct dwarf_types *t, const char *name, size_t len)
{
	uint32_t id = 0;
	Dwarf_Die die;

	for (;;) {
		size_t n = part_len(name, len);

		id = dwarf_name_find(t, id, name, n);
		if (!id)
			return 0;
		if (n >= len || len - n <= 2)
			break;
		name += n + 2;
		len -= n + 2;
	}
	if (!t->names[id].die)
		return t->names[id].type;
	if (!dwarf_die_addr_die(t->files[t->names[id].file].dw,
				t->names[id].die, &die))
		return 0;
	return dwarf_type_of_entry(t, &die);
}
