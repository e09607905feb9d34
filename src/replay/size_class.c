/* SPDX-License-Identifier: MIT */
#include "replay/size_class.h"

enum {
	PAGE = 4096, TCMALLOC_PAGE = 8192, TCMALLOC_MOVED = 32,
	JEMALLOC_SMALL = 14336,
};

static void add(struct size_classes *c, uint32_t size, uint32_t span)
{
	c->list[c->n++] = (struct size_class){ size, span };
}

static unsigned bits(uint64_t value)
{
	return 63 - (unsigned)__builtin_clzll(value);
}

/* ---- gperftools ---- */

static uint32_t tcmalloc_step(uint32_t size)
{
	if (size < 16)
		return 8;
	if (size < 128)
		return 16;
	return (uint32_t)min_u64(1u << (bits(size) - 3), TCMALLOC_PAGE);
}

static uint32_t tcmalloc_span(uint32_t size)
{
	uint32_t moved = (uint32_t)min_u64(max_u64(65536 / size, 2),
					   TCMALLOC_MOVED);
	uint32_t span = 0;

	do
		span += TCMALLOC_PAGE;
	while (span % size > span / 8 || span / size < moved / 4);
	return span;
}

static void make_tcmalloc(struct size_classes *c)
{
	for (uint32_t size = 8; size <= SIZE_CLASS_MAX;
	     size += tcmalloc_step(size)) {
		uint32_t span = tcmalloc_span(size);
		struct size_class *last = &c->list[c->n ? c->n - 1 : 0];

		if (c->n && span == last->span &&
		    span / size == last->span / last->size)
			last->size = size;
		else
			add(c, size, span);
	}
}

/* ---- jemalloc ---- */

/* Four classes a power of two, steps of 16 at least. */
static uint64_t jemalloc_round(uint64_t size)
{
	uint64_t step = 16;

	if (size <= 8)
		return 8;
	if (size > 64)
		step = UINT64_C(1) << (bits(size - 1) - 2);
	return round_up(size, step);
}

static void make_jemalloc(struct size_classes *c)
{
	for (uint64_t size = 8; size <= JEMALLOC_SMALL;
	     size = jemalloc_round(size + 1)) {
		uint32_t span = PAGE;

		while (span % size)
			span += PAGE;
		add(c, (uint32_t)size, span);
	}
}

/* ---- PHP ---- */

static void make_zend(struct size_classes *c)
{
	static const uint8_t pages[] = {
		1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
		1, 5, 3, 1, 1, 5, 3, 2, 2, 5, 3, 7, 4, 5, 3,
	};
	uint32_t size = 0;

	/* Steps of 8 up to 64, then four for each power of two. */
	for (size_t i = 0; i < countof(pages); i++) {
		size += size < 64 ? 8 : 1u << (bits(size) - 2);
		add(c, size, pages[i] * PAGE);
	}
}

void size_classes_init(struct size_classes *c, enum size_model model)
{
	*c = (struct size_classes){ .model = model };
	if (model == MODEL_TCMALLOC)
		make_tcmalloc(c);
	else if (model == MODEL_JEMALLOC)
		make_jemalloc(c);
	else if (model == MODEL_ZEND)
		make_zend(c);
	for (unsigned i = 0, k = 0; c->n && i < countof(c->of) &&
	     i * 8 <= c->list[c->n - 1].size; i++) {
		k += i * 8 > c->list[k].size;
		c->of[i] = (uint8_t)k;
	}
}

uint64_t size_class_large(const struct size_classes *c, uint64_t size,
			  bool mapped)
{
	switch (c->model) {
	case MODEL_GLIBC:
		if (mapped)
			return round_up(round_up(size + 8, 16) + 8, PAGE);
		return max_u64(round_up(size + 8, 16), 32);
	case MODEL_TCMALLOC:
		return round_up(size, TCMALLOC_PAGE);
	case MODEL_JEMALLOC:
		return jemalloc_round(size);
	case MODEL_ZEND:
		return round_up(size, PAGE);
	}
	return size;
}

const char *size_model_name(enum size_model model)
{
	static const char *const names[] = {
		[MODEL_GLIBC] = "glibc", [MODEL_TCMALLOC] = "tcmalloc",
		[MODEL_JEMALLOC] = "jemalloc", [MODEL_ZEND] = "zend",
	};

	return names[model];
}
