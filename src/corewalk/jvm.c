/* SPDX-License-Identifier: MIT */
#include "corewalk/jvm.h"

#include <string.h>

#include "corewalk/symbol.h"

/*
 * HotSpot, src/hotspot/share/runtime/vmStructs.hpp, the same in 8 to 25:
 * struct VMStructEntry is the names of a type and of a field, that of the
 * field's type, whether it is static, its offset, and its address if it is.
 * A type without a name is the end.
 */
enum {
	ENTRY_TYPE, ENTRY_FIELD, ENTRY_FIELD_TYPE, ENTRY_STATIC, ENTRY_OFFSET,
	ENTRY_ADDRESS, ENTRY_WORDS,
	ENTRIES_MAX = 1 << 14,
};

static bool is_text(struct space *sp, vaddr at, const char *text)
{
	char is[32];
	uint64_t n = strlen(text) + 1;

	return n <= sizeof(is) && space_read(sp, at, is, n) == n &&
	       !memcmp(is, text, n);
}

static bool is_field(struct space *sp, const uint64_t *entry, const char *type,
		     const char *field)
{
	return is_text(sp, entry[ENTRY_FIELD], field) &&
	       is_text(sp, entry[ENTRY_TYPE], type);
}

/* Where the table of the library's structures begins. */
static bool find_table(struct space *sp, const struct module *m, vaddr *ret)
{
	struct symbols *symbols = symbols_new(sp, NULL);
	bool found = symbols_named(symbols, m, "gHotSpotVMStructs", ret);

	symbols_free(symbols);
	return found && space_u64(sp, *ret, ret);
}

bool jvm_reserved(struct space *sp, const struct module *m, vaddr *ret_start,
		  uint64_t *ret_words)
{
	vaddr at, heap = 0, reserved;
	uint64_t entry[ENTRY_WORDS], offset = 0;

	if (!find_table(sp, m, &at))
		return false;
	for (unsigned i = 0; i < ENTRIES_MAX && !(heap && offset); i++) {
		if (space_read(sp, at, entry, sizeof(entry)) !=
		    sizeof(entry) || !entry[ENTRY_TYPE])
			return false;
		if (is_field(sp, entry, "Universe", "_collectedHeap"))
			heap = entry[ENTRY_ADDRESS];
		else if (is_field(sp, entry, "CollectedHeap", "_reserved"))
			offset = entry[ENTRY_OFFSET];
		at += sizeof(entry);
	}
	/* A MemRegion: its start, and its size in words. */
	return heap && offset && space_u64(sp, heap, &heap) &&
	       add_ok(heap, offset, &reserved) &&
	       space_u64(sp, reserved, ret_start) &&
	       space_u64(sp, reserved + 8, ret_words);
}
