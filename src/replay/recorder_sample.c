/* SPDX-License-Identifier: MIT */
/*
 * Sampling in the program: bytes are marked independently with chance 1/T, a
 * block with a marked byte is recorded, and so is its end.
 *
 * The gap to the next marked byte is geometric, by inversion:
 * floor(ln u / ln(1 - 1/T)) + 1 with u in (0, 1] of 53 bits.  A block's length
 * is its size + 1, so that empty ones have a chance too.
 *
 * Most frees are of blocks that were not sampled.  A byte for each of 65,536
 * hashes of addresses counts the sampled ones; only where it is not 0 does a
 * free go further, to an exact set.
 */
#include "replay/recorder.h"

enum {
	SET_FIRST = 4096,	/* a power of two */
	TAG_FULL = 255,		/* stays: nobody knows how many there are */
};

__thread int64_t rec_gap;
uint8_t rec_tags[1 << REC_TAG_BITS];

static uintptr_t *set;		/* open addressing; 0: free */
static size_t set_size, set_used;

/* ln x for 0 < x <= 1, to some 1e-15: 2^e times m, m near 1. */
static double log_of(double x)
{
	union { double d; uint64_t u; } bits = { .d = x };
	int e = (int)(bits.u >> 52) - 1023;
	double m, z, term, sum;

	bits.u = (bits.u & 0xfffffffffffffu) | (uint64_t)1023 << 52;
	m = bits.d;
	if (m > 1.4142135623730951) {
		m /= 2;
		e++;
	}
	/* ln m = 2 artanh z, and z is at most 0.172. */
	z = (m - 1) / (m + 1);
	term = sum = z;
	for (int k = 3; k < 24; k += 2) {
		term *= z * z;
		sum += term / k;
	}
	return 2 * sum + e * 0.69314718055994530942;
}

/* ln(1 - p) for the small p of a sampler. */
static double log1p_of(double p)
{
	double term = p, sum = p;

	if (p > 0.01)
		return log_of(1 - p);
	for (int k = 2; k < 9; k++) {
		term *= p;
		sum += term / k;
	}
	return -sum;
}

static int64_t draw(struct rec_writer *w)
{
	uint64_t x = w->random += 0x9e3779b97f4a7c15u;
	double u, gap;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	x ^= x >> 31;
	u = (double)((x >> 11) + 1) * 0x1p-53;
	if (rec.rate < 2)
		return 1;
	gap = log_of(u) / log1p_of(1.0 / (double)rec.rate);
	return gap < 0x1p62 ? (int64_t)gap + 1 : (int64_t)1 << 62;
}

static size_t home(uintptr_t p)
{
	return (size_t)(p * 0x9e3779b97f4a7c15u >> 20) & (set_size - 1);
}

static void set_put(uintptr_t p)
{
	size_t i = home(p);

	while (set[i] && set[i] != p)
		i = (i + 1) & (set_size - 1);
	set_used += !set[i];
	set[i] = p;
}

/* With the lock, as all of the set. */
static bool set_grow(void)
{
	uintptr_t *old = set;
	size_t old_size = set_size;
	size_t size = old ? old_size * 2 : SET_FIRST;
	uintptr_t *fresh = rec_map(size * sizeof(*set));

	if (!fresh)
		return false;
	set = fresh;
	set_size = size;
	set_used = 0;
	for (size_t i = 0; i < old_size; i++)
		if (old[i])
			set_put(old[i]);
	rec_unmap(old, old_size * sizeof(*old));
	return true;
}

static bool remember(void *p)
{
	uint8_t *tag = &rec_tags[rec_tag_of(p)];
	bool ok;

	rec_lock();
	ok = set_used * 2 < set_size || set_grow();
	if (ok) {
		set_put((uintptr_t)p);
		if (*tag < TAG_FULL)
			__atomic_store_n(tag, *tag + 1, __ATOMIC_RELAXED);
	}
	rec_unlock();
	return ok;
}

/* Close the hole at i: what would not be found any more moves up. */
static void set_take(size_t i)
{
	size_t mask = set_size - 1;

	for (size_t j = (i + 1) & mask; set[j]; j = (j + 1) & mask) {
		if (((j - home(set[j])) & mask) < ((j - i) & mask))
			continue;
		set[i] = set[j];
		i = j;
	}
	set[i] = 0;
	set_used--;
}

bool rec_sample_forget(const void *p)
{
	uint8_t *tag = &rec_tags[rec_tag_of(p)];
	bool found = false;

	rec_lock();
	if (set_size) {
		size_t i = home((uintptr_t)p);

		while (set[i] && set[i] != (uintptr_t)p)
			i = (i + 1) & (set_size - 1);
		found = set[i] != 0;
		if (found) {
			set_take(i);
			if (*tag < TAG_FULL)
				__atomic_store_n(tag, *tag - 1,
						 __ATOMIC_RELAXED);
		}
	}
	rec_unlock();
	return found;
}

/* In a child: what its parent sampled is not in its trace. */
void rec_sample_reset(void)
{
	for (size_t i = 0; i < sizeof(rec_tags); i++)
		rec_tags[i] = 0;
	rec_unmap(set, set_size * sizeof(*set));
	set = NULL;
	set_size = set_used = 0;
}

void rec_sample_hit(void *p, uint64_t size, void *const *frame)
{
	int64_t length = (int64_t)size + 1;
	int64_t gap = rec_gap + length;
	struct rec_writer *w = rec_enter();

	if (!w)
		return;
	if (!gap) {
		gap = draw(w);
		rec_gap = gap - length;
	}
	if (rec_gap <= 0) {
		struct rec_event e = {
			.kind = TRACE_SAMPLE, .addr = (uintptr_t)p,
			.size = size, .gap = (uint64_t)gap, .rate = rec.rate,
			.stack = rec_stack(w, frame),
		};

		rec_gap = draw(w);
		e.tick = rec_tick();
		if (remember(p))
			rec_event(w, &e);
	}
	rec_leave();
}
