/* SPDX-License-Identifier: MIT */
/*
 * A hand-made heap of google/tcmalloc with damage.  An input is the era, what
 * holds the caches and whether terabytes are claimed, and then eleven bytes
 * for each change: where, in which of its structures, and what is written
 * there.
 *
 * Code: corewalk/(gtcmalloc_|alloc_gtcmalloc)
 */
#include "fuzz/choose.h"
#include "fuzz/undo.h"
#include "unit/gtc_image.h"

enum { CHANGE = 11, MAX_CHANGES = 64, SPANS = 70, CLAIMED_SHIFT = 42 };

static const struct part {
	vaddr start;
	uint32_t bytes;
} parts[] = {
	{ GI_SPAN, 64 * (SPANS + 3) },
	{ GI_LEAF, 8192 + 32768 + 128 },
	{ GI_META, 32768 },
	{ GI_PROG, GI_ROOT + 16384 },
	{ GI_PROG + GI_SIZES, 128 },
	{ GI_PROG + GI_CENTRAL, 22 * GI_STRIDE },
	{ GI_CACHE, 24 * 21 + 64 },
	{ GI_SLABS, 8192 },
	{ GI_BEGINS, 64 },
	{ GI_RECORD, 640 },
	{ GI_SLOTS, 512 * 21 },
	{ GI_HEAP, 8 * GI_PAGE },
};

/* Some numbers lead somewhere: those are tried more often than chance does. */
static uint64_t value_of(const uint8_t *p, uint64_t was)
{
	static const vaddr places[] = {
		0, GI_HEAP, GI_META, GI_LEAF, GI_SPAN, GI_CACHE, GI_SLABS,
		GI_PROG, UINT64_MAX,
	};
	uint64_t word = load_u64(p + 3);

	switch (p[2] % 5) {
	case 0:
		return was ^ UINT64_C(1) << (word & 63);
	case 1:
		return was + (word & 0xff) - 128;
	case 2:
		return places[word % countof(places)] +
			(word >> 8 & 0xffff) * 8;
	case 3:
		return word & 0xffff;
	}
	return word;
}

static void change(struct space *sp, const uint8_t *p)
{
	const struct part *part = &parts[p[2] / 5 % countof(parts)];
	uint32_t off = (uint32_t)(p[0] | p[1] << 8) * 8 % part->bytes;
	uint8_t *at = target_mem_at(sp, part->start + (off & ~7u));

	poke(at, value_of(p, load_u64(at)));
}

/* Each is made once. */
static struct space *image_of(const uint8_t *data)
{
	static struct gi images[countof(gi_eras)][2][3];
	unsigned era = data[0] % countof(gi_eras);
	bool claims = data[1] / 3 % 16 == 1;
	struct gi *g = &images[era][claims][data[1] % 3];

	if (!g->sp)
		gi_init_some(g, &gi_eras[era], data[1] % 3 * 4, SPANS,
			     claims ? UINT64_C(1) << CLAIMED_SHIFT : 0);
	return g->sp;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct space *sp;
	struct heap h;

	if (size < 2)
		return 0;
	choose("gtcmalloc", data, size);
	sp = image_of(data);
	for (size_t i = 2; i + CHANGE <= size &&
	     i < 2 + MAX_CHANGES * CHANGE; i += CHANGE)
		change(sp, data + i);
	walk_and_check(sp, &h);
	heap_fini(&h);
	undo_all();
	return 0;
}
