/* SPDX-License-Identifier: MIT */
/*
 * google/tcmalloc's tables, by what must hold of them: the sizes of the
 * classes are a rising row, and each central list, which is the end of a
 * transfer cache, carries the number and the size of its class.  Where in a
 * transfer cache the objects are follows from where all pointers are objects
 * of the class.
 */
#include "corewalk/gtcmalloc.h"

#include <string.h>

#include "base/mem.h"

enum {
	MAX_BASE = 90,			/* classes up to the biggest */
	MIN_BASE = 20,
	MAX_STRIDE = 8192,		/* of transfer caches */
	PROBE_CLASS = 5,		/* of which the list is looked for */
	MAX_MODULE = 64 << 20,		/* bytes of it that are searched */
	MAX_SLOTS = 1 << 20,
	MAX_BAD = 2,			/* classes whose fields are damaged */
	BEFORE = 256,			/* bytes of a cache before its class */
};

/* The module's memory; owned by the caller. */
static uint8_t *copy_module(const struct gtcmalloc *t, size_t *ret_n)
{
	uint8_t *copy;

	*ret_n = (size_t)min_u64(t->hi - t->lo, MAX_MODULE);
	copy = mem_zalloc(*ret_n);
	space_read(t->sp, t->lo, copy, *ret_n);
	return copy;
}

/* ---- size classes ---- */

static bool possible_size(uint32_t size)
{
	return size <= GTC_BIGGEST && !(size & 7);
}

/* uint32 0, 8, 16, rising to the biggest; then of partitions the same. */
static bool read_table(struct gtcmalloc *t, const uint8_t *p, size_t n)
{
	unsigned base = 1, k;

	for (k = 0; k < GTC_MAX_CLASSES && (k + 1) * 4 <= n; k++) {
		t->size[k] = load_u32(p + 4 * k);
		if (!possible_size(t->size[k]))
			break;
	}
	memset(t->size + k, 0, (GTC_MAX_CLASSES - k) * sizeof(*t->size));
	while (base < k && t->size[base] > t->size[base - 1])
		base++;
	return base >= MIN_BASE && base <= MAX_BASE &&
		t->size[base - 1] == GTC_BIGGEST;
}

void gtc_find_sizes(struct gtcmalloc *t)
{
	size_t n;
	uint8_t *copy = copy_module(t, &n);

	for (size_t i = 0; i + 16 <= n && !t->sizes; i += 4) {
		const uint8_t *p = copy + i;

		if (!load_u32(p) && load_u32(p + 4) == 8 &&
		    load_u32(p + 8) == 16 && (load_u32(p + 12) == 24 ||
					      load_u32(p + 12) == 32) &&
		    read_table(t, p, n - i))
			t->sizes = t->lo + i;
	}
	free(copy);
}

/* ---- central lists ---- */

/* How many lists there are if that of class 5 is at i; 0 if they are none. */
static unsigned run_of(const struct gtcmalloc *t, const uint8_t *copy,
		       size_t n, size_t i, size_t stride)
{
	size_t at = i - PROBE_CLASS * stride;
	unsigned k = 0;

	while (k < GTC_MAX_CLASSES && at + 16 <= n &&
	       load_u64(copy + at) == k &&
	       load_u64(copy + at + 8) == t->size[k]) {
		k++;
		at += stride;
	}
	return k;
}

static void try_central(struct gtcmalloc *t, const uint8_t *copy, size_t n,
			size_t i)
{
	size_t last = (size_t)min_u64(MAX_STRIDE, i / PROBE_CLASS);

	for (size_t stride = 16; stride <= last; stride += 8) {
		unsigned run;

		if (i + stride + 16 > n ||
		    load_u64(copy + i + stride) != PROBE_CLASS + 1)
			continue;
		run = run_of(t, copy, n, i, stride);
		if (run >= MIN_BASE && run > t->n_classes) {
			t->n_classes = run;
			t->stride = (uint32_t)stride;
			t->central = t->lo + i - PROBE_CLASS * stride;
		}
	}
}

static void find_lists(struct gtcmalloc *t)
{
	size_t n;
	uint8_t *copy = copy_module(t, &n);

	for (size_t i = t->lo & 7 ? 8 - (t->lo & 7) : 0; i + 16 <= n; i += 8)
		if (load_u64(copy + i) == PROBE_CLASS &&
		    load_u64(copy + i + 8) == t->size[PROBE_CLASS])
			try_central(t, copy, n, i);
	free(copy);
}

/* ---- transfer caches ---- */

bool gtc_transfer_list(const struct gtcmalloc *t, unsigned class,
		       int used_off, int slots_off, struct gtc_list *ret)
{
	vaddr at = t->central + (vaddr)class * t->stride;
	uint64_t word, slots;
	uint32_t used, most;

	if (!space_u64(t->sp, at + (vaddr)(int64_t)used_off, &word) ||
	    !space_u64(t->sp, at + (vaddr)(int64_t)slots_off, &slots))
		return false;
	used = (uint32_t)word;
	most = (uint32_t)(word >> 32);
	*ret = (struct gtc_list){ .at = slots, .n = used };
	return used <= most && most <= MAX_SLOTS && (!used || !(slots & 7));
}

/* Objects in all of them; false if these are not the offsets. */
static bool count_objects(const struct gtcmalloc *t, int used_off,
			  int slots_off, uint64_t *ret)
{
	unsigned bad = 0;

	*ret = 0;
	for (unsigned c = 1; c < t->n_classes && bad <= MAX_BAD; c++) {
		struct gtc_list list;
		vaddr object;
		uint64_t i = 0;

		if (!t->size[c])
			continue;
		if (!gtc_transfer_list(t, c, used_off, slots_off, &list)) {
			bad++;
			continue;
		}
		while (i < list.n &&
		       space_u64(t->sp, list.at + 8 * i, &object) &&
		       gtc_is_object(t, object, c))
			i++;
		bad += i < list.n;
		*ret += i;
	}
	return bad <= MAX_BAD;
}

static void find_transfer(struct gtcmalloc *t)
{
	static const int usual[][2] = { { -24, -16 }, { -32, -16 } };
	uint64_t most = 0, n;
	int before = -(int)min_u64(t->stride - 8, BEFORE);

	for (int used = before; used < 0; used += 4)
		for (int slots = used + 8; slots <= used + 16; slots += 4)
			if (!(slots & 7) &&
			    count_objects(t, used, slots, &n) && n > most) {
				t->transfer = true;
				t->used_off = used;
				t->slots_off = slots;
				most = n;
			}
	/* They may be empty. */
	for (size_t i = 0; i < countof(usual) && !t->transfer; i++)
		if (count_objects(t, usual[i][0], usual[i][1], &n)) {
			t->transfer = true;
			t->used_off = usual[i][0];
			t->slots_off = usual[i][1];
		}
}

void gtc_find_central(struct gtcmalloc *t)
{
	find_lists(t);
	if (t->n_classes)
		find_transfer(t);
}
