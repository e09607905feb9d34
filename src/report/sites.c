/* SPDX-License-Identifier: MIT */
#include "report/sites.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/sort.h"
#include "base/str.h"

enum { FIRST_BUCKETS = 1 << 10 };

/* Groups while they are made; by the functions of their frames. */
struct grouping {
	struct sites *sites;
	struct frames *frames;
	size_t depth;
	uint32_t *buckets;	/* owned; index + 1 */
	size_t n_buckets;
	uint32_t **keys;	/* owned; by site: length, functions */
	size_t n_keys, cap_keys;
};

size_t sites_frames(struct frames *f, uint32_t stack, uint32_t *ret,
		    size_t max)
{
	size_t n, n_ret = 0;
	const vaddr *addrs = trace_stack(f->trace, stack, &n);

	for (size_t i = 0; i < n && n_ret < max; i++) {
		uint32_t frame = frames_find(f, addrs[i]);

		for (bool more = true; more && n_ret < max; frame++) {
			more = f->frames[frame].inlined;
			if (n_ret || (i + 1 == n && !more) ||
			    !frames_function(f, frame)->allocator)
				ret[n_ret++] = frame;
		}
	}
	return n_ret;
}

static uint64_t hash_key(const uint32_t *key)
{
	uint64_t h = 0;

	for (uint32_t i = 0; i <= key[0]; i++)
		h = (h ^ key[i]) * UINT64_C(0x9e3779b97f4a7c15);
	return h ^ h >> 32;
}

static bool same_key(const uint32_t *a, const uint32_t *b)
{
	return a[0] == b[0] &&
	       !memcmp(a + 1, b + 1, a[0] * sizeof(*a));
}

static size_t bucket_of(const struct grouping *g, const uint32_t *key)
{
	size_t mask = g->n_buckets - 1;
	size_t i = hash_key(key) & mask;

	for (; g->buckets[i]; i = (i + 1) & mask)
		if (same_key(g->keys[g->buckets[i] - 1], key))
			break;
	return i;
}

static void grow_buckets(struct grouping *g)
{
	free(g->buckets);
	g->n_buckets *= 2;
	g->buckets = mem_zalloc(g->n_buckets * sizeof(*g->buckets));
	for (size_t i = 0; i < g->n_keys; i++)
		g->buckets[bucket_of(g, g->keys[i])] = (uint32_t)i + 1;
}

/* "parse_batch  batch.cc:211", "main < start  appd" */
static char *site_name(struct frames *f, const uint32_t *frames, size_t n)
{
	const struct named_frame *inner;
	const struct frame_function *first;
	struct str s;

	if (!n)
		return mem_strdup("unknown");
	inner = &f->frames[frames[0]];
	first = &f->functions[inner->function];
	str_init(&s);
	for (size_t i = 0; i < n; i++)
		str_printf(&s, "%s%s", i ? " < " : "",
			   frames_function(f, frames[i])->name);
	if (first->named && first->object[0])
		str_printf(&s, "  %s", first->object);
	if (first->named && inner->line)
		str_printf(&s, ":%llu", (unsigned long long)inner->line);
	return str_take(&s);
}

static uint32_t new_site(struct grouping *g, const uint32_t *key,
			 const uint32_t *frames)
{
	size_t size = (key[0] + 1) * sizeof(*key);
	uint32_t *copy = mem_alloc(size);
	struct sites *s = g->sites;

	memcpy(copy, key, size);
	MEM_PUSH(g->keys, g->n_keys, g->cap_keys) = copy;
	MEM_PUSH(s->sites, s->n, s->cap) = (struct site){
		.name = site_name(g->frames, frames, key[0]),
	};
	return (uint32_t)s->n;
}

static uint32_t group_of(struct grouping *g, uint32_t stack)
{
	uint32_t frames[TRACE_DEPTH_MAX], key[TRACE_DEPTH_MAX + 1];
	size_t slot;

	frames[0] = 0;
	key[0] = (uint32_t)sites_frames(g->frames, stack, frames, g->depth);
	for (uint32_t i = 0; i < key[0]; i++)
		key[i + 1] = g->frames->frames[frames[i]].function;
	if (g->n_keys >= g->n_buckets / 2)
		grow_buckets(g);
	slot = bucket_of(g, key);
	if (!g->buckets[slot])
		g->buckets[slot] = new_site(g, key, frames);
	return g->buckets[slot] - 1;
}

static void add_exact(struct replay_site *to, const struct replay_site *s)
{
	to->allocated_bytes += s->allocated_bytes;
	to->allocations += s->allocations;
	to->live_bytes += s->live_bytes;
	to->live_blocks += s->live_blocks;
	to->marked_bytes += s->marked_bytes;
	to->marked_blocks += s->marked_blocks;
	to->temporary += s->temporary;
}

static void add_life(struct replay_life *to, const struct replay_life *life)
{
	to->blocks += life->blocks;
	to->ticks += life->ticks;
	to->byte_ticks += life->byte_ticks;
}

void sites_add(struct site *to, const struct site *s)
{
	add_exact(&to->exact, &s->exact);
	add_life(&to->life, &s->life);
	for (unsigned v = 0; v < PROFILE_VIEWS; v++)
		profile_sum_add(&to->view[v], &s->view[v]);
}

static void add_stack(struct site *to, const struct replay *r, uint32_t stack)
{
	const struct profile_row *row = profile_find(&r->profile, stack);

	add_exact(&to->exact, &r->sites[stack]);
	if (r->changes) {
		const struct replay_change *c = &r->changes[stack];

		to->change.come_bytes += c->come_bytes;
		to->change.come_blocks += c->come_blocks;
		to->change.gone_bytes += c->gone_bytes;
		to->change.gone_blocks += c->gone_blocks;
	}
	if (r->lives)
		add_life(&to->life, &r->lives[stack]);
	for (unsigned v = 0; row && v < PROFILE_VIEWS; v++)
		profile_sum_add(&to->view[v], &row->view[v]);
}

/* ---- lifetimes ---- */

struct life_row {
	uint32_t site;
	struct life_count count;
};

static int compare_lives(const void *a, const void *b)
{
	const struct life_row *x = a, *y = b;

	return ORDER(x->site, y->site) ?:
	       ORDER(x->count.bucket, y->count.bucket);
}

static void set_lives(struct site_lives *ret, const struct life_count *counts,
		      size_t n)
{
	static const double shares[SITE_QUANTILES] = { 0.5, 0.9, 0.99 };

	for (size_t i = 0; i < n; i++) {
		ret->freed += counts[i].freed;
		ret->alive += counts[i].alive;
	}
	for (unsigned i = 0; i < SITE_QUANTILES; i++) {
		ret->quantile[i] = life_quantile(counts, n, shares[i], true);
		ret->pairs[i] = life_quantile(counts, n, shares[i], false);
	}
}

/* Buckets of all stacks as those of their sites, in order. */
static struct life_row *life_rows(const struct sites *s,
				  const struct lifetimes *l, size_t *ret_n)
{
	struct life_row *ret = mem_alloc((l->used + 1) * sizeof(*ret));
	size_t n = 0;

	for (size_t i = 0; i < l->size; i++) {
		const struct life_slot *slot = &l->slots[i];

		if (!slot->key)
			continue;
		ret[n++] = (struct life_row){
			.site = s->of_stack[(slot->key - 1) >>
					    LIFE_BUCKET_BITS],
			.count = {
				.bucket = (slot->key - 1) &
					  ((1 << LIFE_BUCKET_BITS) - 1),
				.freed = slot->freed, .alive = slot->alive,
			},
		};
	}
	SORT(ret, n, compare_lives);
	*ret_n = n;
	return ret;
}

static void add_lives(struct sites *s, const struct lifetimes *l)
{
	struct life_count all[1 << LIFE_BUCKET_BITS] = { { .bucket = 0 } };
	AUTO_FREE struct life_count *counts =
		mem_alloc((l->used + 1) * sizeof(*counts));
	size_t n, from = 0;
	AUTO_FREE struct life_row *rows = life_rows(s, l, &n);

	for (size_t i = 0; i < n; i++) {
		struct life_count *to = &all[rows[i].count.bucket];

		to->freed += rows[i].count.freed;
		to->alive += rows[i].count.alive;
		counts[i] = rows[i].count;
		if (i + 1 < n && rows[i + 1].site == rows[i].site)
			continue;
		set_lives(&s->sites[rows[i].site].lives, counts + from,
			  i + 1 - from);
		from = i + 1;
	}
	for (unsigned i = 0; i < countof(all); i++)
		all[i].bucket = i;
	set_lives(&s->total.lives, all, countof(all));
}

static size_t depth_of(size_t depth)
{
	return depth && depth < TRACE_DEPTH_MAX ? depth : TRACE_DEPTH_MAX;
}

void sites_name(struct frames *f, size_t depth)
{
	uint32_t n = trace_info(f->trace)->n_stacks, frames[TRACE_DEPTH_MAX];

	for (uint32_t stack = 1; stack <= n; stack++)
		sites_frames(f, stack, frames, depth_of(depth));
}

void sites_init(struct sites *s, const struct replay *r, struct frames *f,
		size_t depth)
{
	struct grouping g = {
		.sites = s,
		.frames = f,
		.depth = depth_of(depth),
		.n_buckets = FIRST_BUCKETS,
	};

	*s = (struct sites){ .n_stacks = r->n_sites };
	s->of_stack = mem_zalloc((r->n_sites + 1) * sizeof(*s->of_stack));
	g.buckets = mem_zalloc(g.n_buckets * sizeof(*g.buckets));
	for (uint32_t stack = 0; stack < r->n_sites; stack++) {
		if (!r->sites[stack].allocations)
			continue;
		s->of_stack[stack] = group_of(&g, stack);
		add_stack(&s->sites[s->of_stack[stack]], r, stack);
		add_stack(&s->total, r, stack);
	}
	if (r->options.lifetimes)
		add_lives(s, &r->lifetimes);
	for (size_t i = 0; i < g.n_keys; i++)
		free(g.keys[i]);
	free(g.keys);
	free(g.buckets);
}

static void add_functions(struct function_sites *s, const struct replay *r,
			  struct frames *f, uint32_t stack, uint32_t *seen)
{
	uint32_t frames[TRACE_DEPTH_MAX];
	size_t n = sites_frames(f, stack, frames, TRACE_DEPTH_MAX);

	for (size_t i = 0; i < n; i++) {
		uint32_t function = f->frames[frames[i]].function;

		if (!i)
			add_stack(&s->exclusive[function], r, stack);
		if (seen[function] != stack + 1)
			add_stack(&s->inclusive[function], r, stack);
		seen[function] = stack + 1;
	}
}

void function_sites_init(struct function_sites *s, const struct replay *r,
			 struct frames *f)
{
	uint32_t frames[TRACE_DEPTH_MAX];
	AUTO_FREE uint32_t *seen = NULL;

	/* Names first, so that their number is known. */
	for (uint32_t stack = 0; stack < r->n_sites; stack++)
		if (r->sites[stack].allocations)
			sites_frames(f, stack, frames, TRACE_DEPTH_MAX);
	*s = (struct function_sites){ .n = f->n_functions };
	s->inclusive = mem_zalloc((s->n + 1) * sizeof(*s->inclusive));
	s->exclusive = mem_zalloc((s->n + 1) * sizeof(*s->exclusive));
	seen = mem_zalloc((s->n + 1) * sizeof(*seen));
	for (uint32_t stack = 0; stack < r->n_sites; stack++)
		if (r->sites[stack].allocations)
			add_functions(s, r, f, stack, seen);
}

void function_sites_fini(struct function_sites *s)
{
	free(s->inclusive);
	free(s->exclusive);
	*s = (struct function_sites){ .n = 0 };
}

void sites_fini(struct sites *s)
{
	for (size_t i = 0; i < s->n; i++)
		free(s->sites[i].name);
	free(s->sites);
	free(s->of_stack);
	*s = (struct sites){ .n = 0 };
}
