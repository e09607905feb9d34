/* SPDX-License-Identifier: MIT */
/*
 * From the name that a class has in its type information to the class.
 *
 * Debug information does not have that name.  But it has the mangled names of
 * virtual functions, "_ZN2ns3Foo3barEv", of which "2ns3Foo" is the class, and
 * that is also what "N2ns3FooE" consists of: substitutions come out alike,
 * since both start with it.  So names are not taken apart: template arguments
 * are written in as many ways as there are compilers and demanglers.
 */
#include <dwarf.h>
#include <stdio.h>
#include <string.h>

#include "corewalk/dwarf_names.h"

enum { MAX_FUNCTIONS = 4096, MAX_MANGLED = 1 << 16 };

static uint64_t hash_of(const char *text, size_t n)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325);

	for (size_t i = 0; i < n; i++)
		h = (h ^ (uint8_t)text[i]) * UINT64_C(0x100000001b3);
	return h ? h : 1;
}

/* The last place of a word in text. */
static const char *find_last(const char *text, const char *word)
{
	const char *found = NULL;

	for (const char *p = text; (p = strstr(p, word)); p++)
		found = p;
	return found;
}

/*
 * The class in the mangled name of a function; its length, 0 if it cannot be
 * told.
 */
static size_t class_part(const char *mangled, const char *function,
			 const char **ret)
{
	char word[300];
	const char *end = NULL;

	if (strncmp(mangled, "_ZN", 3) ||
	    strnlen(mangled, MAX_MANGLED) >= MAX_MANGLED)
		return 0;
	mangled += 3;
	mangled += strspn(mangled, "VK");
	if (function[0] == '~') {
		for (const char *d = "0124"; *d && !end; d++) {
			snprintf(word, sizeof(word), "D%cEv", *d);
			end = find_last(mangled, word);
		}
	} else if (strlen(function) < 256) {
		snprintf(word, sizeof(word), "%zu%s", strlen(function),
			 function);
		end = find_last(mangled, word);
	}
	*ret = mangled;
	return end ? (size_t)(end - mangled) : 0;
}

static const char *text_of(Dwarf_Die *die, unsigned name)
{
	Dwarf_Attribute at;

	return dwarf_attr(die, name, &at) ? dwarf_formstring(&at) : NULL;
}

/* By its first virtual function whose name tells. */
static void note_class(struct dwarf_types *t, uint32_t name, Dwarf_Die *die)
{
	Dwarf_Die child;

	if (dwarf_child(die, &child))
		return;
	for (unsigned i = 0; i < MAX_FUNCTIONS; i++) {
		const char *mangled = NULL, *function, *part;
		size_t n;

		if (dwarf_tag(&child) == DW_TAG_subprogram &&
		    dwarf_hasattr(&child, DW_AT_virtuality))
			mangled = text_of(&child, DW_AT_linkage_name);
		function = mangled ? dwarf_diename(&child) : NULL;
		n = function ? class_part(mangled, function, &part) : 0;
		if (n) {
			uint64_t key = hash_of(part, n);

			if (!map_get(&t->classes, key))
				map_put(&t->classes, key, name);
			return;
		}
		if (!dwarf_forward(&child))
			return;
	}
}

static void note_classes(struct dwarf_types *t)
{
	t->classes_known = true;
	for (uint32_t i = 1; i < t->n_names; i++) {
		const struct dwarf_name *name = &t->names[i];
		Dwarf_Die die;

		if (name->die &&
		    dwarf_die_addr_die(t->files[name->file].dw, name->die,
				       &die) &&
		    dwarf_hasattr(&die, DW_AT_containing_type))
			note_class(t, i, &die);
	}
}

/* "N2ns3FooE" without templates is ns::Foo; adds that.  False: it has some. */
static bool simple_name(const char *mangled, size_t n, struct str *s)
{
	const char *end = mangled + n;

	while (mangled < end) {
		size_t len = 0;

		while (mangled < end && *mangled >= '0' && *mangled <= '9' &&
		       len < MAX_MANGLED)
			len = len * 10 + (size_t)(*mangled++ - '0');
		if (!len || len > (size_t)(end - mangled))
			return false;
		if (s->len)
			str_adds(s, "::");
		if (len == 12 && !memcmp(mangled, "_GLOBAL__N_1", len))
			str_adds(s, "(anonymous namespace)");
		else
			str_add(s, mangled, len);
		mangled += len;
	}
	return true;
}

uint32_t dwarf_find_class(struct dwarf_types *t, const char *mangled)
{
	size_t n = strnlen(mangled, MAX_MANGLED);
	uint32_t name, type = 0;
	struct str s;
	Dwarf_Die die;

	if (!t->classes_known)
		note_classes(t);
	if (n && mangled[0] == 'N' && mangled[n - 1] == 'E') {
		mangled++;
		n -= 2;
	}
	name = map_get(&t->classes, hash_of(mangled, n));
	if (name && dwarf_die_addr_die(t->files[t->names[name].file].dw,
				       t->names[name].die, &die))
		return dwarf_type_of_entry(t, &die);
	str_init(&s);
	if (simple_name(mangled, n, &s))
		type = dwarf_find_type(t, s.text, s.len);
	str_fini(&s);
	return type;
}
