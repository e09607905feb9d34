/* SPDX-License-Identifier: MIT */
#include "base/map.h"

#include "base/mem.h"

enum { SLOTS_MIN = 256 };

static size_t place_of(const struct map *m, uint64_t key)
{
	size_t at = (key * UINT64_C(0x9e3779b97f4a7c15) >> 20) & (m->cap - 1);

	while (m->keys[at] && m->keys[at] != key)
		at = (at + 1) & (m->cap - 1);
	return at;
}

void map_fini(struct map *m)
{
	free(m->keys);
	free(m->values);
}

uint32_t map_get(const struct map *m, uint64_t key)
{
	return m->cap ? m->values[place_of(m, key)] : 0;
}

static void grow(struct map *m)
{
	struct map old = *m;

	m->cap = old.cap ? 2 * old.cap : SLOTS_MIN;
	m->keys = mem_zalloc(m->cap * sizeof(*m->keys));
	m->values = mem_zalloc(m->cap * sizeof(*m->values));
	for (size_t i = 0; i < old.cap; i++) {
		size_t at;

		if (!old.keys[i])
			continue;
		at = place_of(m, old.keys[i]);
		m->keys[at] = old.keys[i];
		m->values[at] = old.values[i];
	}
	map_fini(&old);
}

uint32_t *map_at(struct map *m, uint64_t key)
{
	size_t at;

	if (m->n * 2 >= m->cap)
		grow(m);
	at = place_of(m, key);
	m->n += !m->keys[at];
	m->keys[at] = key;
	return &m->values[at];
}

void map_put(struct map *m, uint64_t key, uint32_t value)
{
	*map_at(m, key) = value;
}
