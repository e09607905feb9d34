/* SPDX-License-Identifier: MIT */
#include "analysis/vtable.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "base/demangle.h"

enum {
	NAME_MAX_LEN = 4095,	/* of a mangled name */
};

/* ---- C++ ---- */

/* The first template argument of "std::_Sp_counted_ptr_inplace<T, ...>". */
static bool shared_object(const char *name, const char **ret, size_t *ret_n)
{
	static const char prefix[] = "std::_Sp_counted_ptr_inplace<";
	size_t i = sizeof(prefix) - 1;
	int depth = 0;

	if (strncmp(name, prefix, i) != 0)
		return false;
	*ret = name + i;
	for (; name[i]; i++) {
		if (strchr("<({[", name[i]))
			depth++;
		else if (!depth && (name[i] == ',' || name[i] == '>'))
			break;
		else if (strchr(">)}]", name[i]))
			depth--;
	}
	*ret_n = (size_t)(name + i - *ret);
	return name[i];
}

/* What programmers write as std::string. */
static void shorten(const char *name, size_t n, struct str *ret)
{
	static const char full[] = "std::__cxx11::basic_string<char, "
		"std::char_traits<char>, std::allocator<char> >";
	const size_t len = sizeof(full) - 1;

	for (size_t i = 0; i < n;) {
		if (n - i >= len && !memcmp(name + i, full, len)) {
			str_adds(ret, "std::string");
			i += len;
		} else {
			str_addc(ret, name[i++]);
		}
	}
}

/* The class that a mangled name behind "_ZTV" or "_ZTS" is of. */
static void add_class(const char *mangled, struct str *ret)
{
	const char *object;
	struct str name;
	size_t n;

	str_init(&name);
	if (!demangle_type(mangled, &name)) {
		str_adds(ret, mangled);
	} else if (shared_object(name.text, &object, &n)) {
		shorten(object, n, ret);
		str_adds(ret, " of make_shared");
	} else {
		shorten(name.text, name.len, ret);
	}
	str_fini(&name);
}

/* Is it where the vtable of a whole object can be?  Gets its type_info. */
static bool vtable_at(struct space *sp, vaddr word, vaddr *ret_info)
{
	uint64_t top;

	return word > 2 * sp->word && !(word & (sp->word - 1)) &&
	       space_word(sp, word - 2 * sp->word, &top) && !top &&
	       space_word(sp, word - sp->word, ret_info);
}

/* The name in a type_info, as far as it can be one. */
static bool info_name(struct space *sp, vaddr info,
		      char ret[NAME_MAX_LEN + 1])
{
	uint64_t name;
	char *p = ret;

	if (info & (sp->word - 1) || !space_module(sp, info) ||
	    !space_word(sp, info + sp->word, &name) ||
	    !space_module(sp, name) ||
	    !space_string(sp, name, ret, NAME_MAX_LEN))
		return false;
	/* Of classes without linkage. */
	if (*p == '*')
		memmove(p, p + 1, strlen(p));
	if (!isdigit((unsigned char)*p) && !strchr("NSZ", *p))
		return false;
	while (isalnum((unsigned char)*p) || *p == '_' || *p == '.' ||
	       *p == '$')
		p++;
	return !*p && p > ret;
}

/* Is it the type_info of a class?  Then its own class is one of three. */
static bool is_class_info(struct space *sp, vaddr info)
{
	static const char *const classes[] = {
		"N10__cxxabiv117__class_type_infoE",
		"N10__cxxabiv120__si_class_type_infoE",
		"N10__cxxabiv121__vmi_class_type_infoE",
	};
	char name[NAME_MAX_LEN + 1];
	vaddr own;
	uint64_t vtable;

	if (info & (sp->word - 1) || !space_module(sp, info) ||
	    !space_word(sp, info, &vtable) ||
	    !vtable_at(sp, vtable, &own) || !info_name(sp, own, name))
		return false;
	for (size_t i = 0; i < countof(classes); i++)
		if (!strcmp(name, classes[i]))
			return true;
	return false;
}

/* A word of the target, or none: then nothing speaks against it. */
static bool top_is_sane(struct space *sp, vaddr word)
{
	uint64_t top;

	return !space_word(sp, word - 2 * sp->word, &top) || !top;
}

enum type_known vtable_mangled(struct space *sp, struct symbols *symbols,
			       vaddr word, struct str *ret)
{
	char name[NAME_MAX_LEN + 1];
	struct symbol symbol;
	vaddr info;

	if (symbols_find(symbols, word, &symbol) &&
	    !strncmp(symbol.name, "_ZTV", 4) &&
	    word - symbol.start >= 2 * sp->word && top_is_sane(sp, word)) {
		str_adds(ret, symbol.name + 4);
		return TYPE_VTABLE;
	}
	if (!vtable_at(sp, word, &info) || !is_class_info(sp, info) ||
	    !info_name(sp, info, name))
		return TYPE_UNKNOWN;
	str_adds(ret, name);
	return TYPE_RTTI;
}

enum type_known vtable_class(struct space *sp, struct symbols *symbols,
			     vaddr word, struct str *ret)
{
	struct str mangled;
	enum type_known known;

	str_init(&mangled);
	known = vtable_mangled(sp, symbols, word, &mangled);
	if (known != TYPE_UNKNOWN)
		add_class(mangled.text, ret);
	str_fini(&mangled);
	return known;
}

/* ---- C ---- */

bool vtable_symbol(struct symbols *symbols, vaddr word, struct str *ret)
{
	struct symbol symbol;

	if (!symbols_find(symbols, word, &symbol) ||
	    (symbol.is_code && word != symbol.start) || !symbol.size)
		return false;
	str_adds(ret, "{&");
	if (!demangle(symbol.name, ret))
		str_adds(ret, symbol.name);
	if (word != symbol.start)
		str_printf(ret, "+%" PRIu64, word - symbol.start);
	str_adds(ret, ", ...}");
	return true;
}
