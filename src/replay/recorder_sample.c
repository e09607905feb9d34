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
 * tags of addresses counts the sampled ones; only where it is not 0 does a
 * free go further, to an exact set, and takes the lock only if it is there.
 */
#include "replay/recorder.h"

#include <sys/mman.h>
#include <unistd.h>

enum { SET_FIRST = 4096 };	/* a power of two */

static struct rec_fast rec_fast_none;
__thread struct rec_fast *rec_fast = &rec_fast_none;
/* Frees of null pointers do not pass: they are not counted. */
uint8_t rec_tags[REC_TAGS] = { REC_TAG_STAYS };

/*
 * Open addressing, at most half full; 0: free.  version is odd while it
 * changes.  A set that has become too small stays mapped for those who look
 * into it without the lock; all of those take less than the last one.
 */
struct set {
	size_t size, used;
	uintptr_t slots[];
};

static struct set *set;
static uint32_t version;

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

static size_t home(const struct set *s, uintptr_t p)
{
	return (size_t)(p * 0x9e3779b97f4a7c15u >> 20) & (s->size - 1);
}

static uintptr_t get(const struct set *s, size_t i)
{
	return __atomic_load_n(&s->slots[i], __ATOMIC_RELAXED);
}

static void put(struct set *s, size_t i, uintptr_t p)
{
	__atomic_store_n(&s->slots[i], p, __ATOMIC_RELAXED);
}

/* Where p is, or the free place where it would be. */
static size_t place(const struct set *s, uintptr_t p)
{
	size_t i = home(s, p);

	for (size_t n = 0; n < s->size; n++) {
		uintptr_t at = get(s, i);

		if (!at || at == p)
			break;
		i = (i + 1) & (s->size - 1);
	}
	return i;
}

static void begin_change(void)
{
	__atomic_store_n(&version, version + 1, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
}

static void end_change(void)
{
	__atomic_store_n(&version, version + 1, __ATOMIC_RELEASE);
}

static size_t bytes_of(size_t size)
{
	return sizeof(struct set) + size * sizeof(uintptr_t);
}

/* With the lock, as all that changes the set. */
static bool grow(void)
{
	size_t size = set ? set->size * 2 : SET_FIRST;
	struct set *fresh = rec_map(bytes_of(size));

	if (!fresh)
		return false;
	fresh->size = size;
	for (size_t i = 0; set && i < set->size; i++)
		if (set->slots[i])
			put(fresh, place(fresh, set->slots[i]),
			    set->slots[i]);
	fresh->used = set ? set->used : 0;
	__atomic_store_n(&set, fresh, __ATOMIC_RELEASE);
	return true;
}

static bool remember(void *p)
{
	uint8_t *tag = rec_tag(p);
	bool ok;

	rec_lock();
	ok = (set && set->used * 2 < set->size) || grow();
	if (ok) {
		size_t i = place(set, (uintptr_t)p);

		begin_change();
		set->used += !set->slots[i];
		put(set, i, (uintptr_t)p);
		end_change();
		if (*tag < REC_TAG_STAYS)
			__atomic_store_n(tag, *tag + 1, __ATOMIC_RELAXED);
	}
	rec_unlock();
	return ok;
}

/* Close the hole at i: what would not be found any more moves up. */
static void take(size_t i)
{
	size_t mask = set->size - 1;

	begin_change();
	for (size_t j = (i + 1) & mask; set->slots[j]; j = (j + 1) & mask) {
		if (((j - home(set, set->slots[j])) & mask) < ((j - i) & mask))
			continue;
		put(set, i, set->slots[j]);
		i = j;
	}
	put(set, i, 0);
	set->used--;
	end_change();
}

/*
 * Whoever frees p has it from the one that got it: what is in the set of it,
 * is to be seen here, unless the set is changing.
 */
static bool may_hold(const void *p)
{
	uint32_t before = __atomic_load_n(&version, __ATOMIC_ACQUIRE);
	const struct set *s = __atomic_load_n(&set, __ATOMIC_ACQUIRE);

	if (!s || !*rec_tag(p))
		return false;
	if (before & 1 || get(s, place(s, (uintptr_t)p)) == (uintptr_t)p)
		return true;
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return __atomic_load_n(&version, __ATOMIC_RELAXED) != before;
}

static bool forget(const void *p)
{
	uint8_t *tag = rec_tag(p);
	bool found;
	size_t i;

	if (!may_hold(p))
		return false;
	rec_lock();
	i = place(set, (uintptr_t)p);
	found = set->slots[i] == (uintptr_t)p;
	if (found) {
		take(i);
		if (*tag < REC_TAG_STAYS)
			__atomic_store_n(tag, *tag - 1, __ATOMIC_RELAXED);
	}
	rec_unlock();
	return found;
}

/* The thread's page of what passes, and its counts in the file. */
static __attribute__((noinline)) bool attach(struct rec_writer *w)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct rec_fast *f = w->fast;

	if (!f) {
		f = rec_map(page);
		if (!f)
			return false;
		rec_lock();
		if (madvise(f, page, MADV_WIPEONFORK) || !*rec_live ||
		    !rec_chunk_next(&w->counts, TRACE_COUNTS, w->stream, 0,
				    (uint32_t)page)) {
			rec_unmap(f, page);
			f = NULL;
		} else {
			f->counts = (struct trace_counts *)(void *)
				w->counts.at;
			f->frees = &f->counts->frees;
		}
		rec_unlock();
		w->fast = f;
	}
	if (f)
		rec_fast = f;
	return f;
}

/* With the lock.  Others notice at their next call. */
void rec_sample_stop(void)
{
	for (struct rec_writer *w = rec.writers; w; w = w->next)
		if (w->fast) {
			w->fast->gap = 0;
			__atomic_store_n(&w->fast->frees, NULL,
					 __ATOMIC_RELAXED);
		}
}

/* In a child: what its parent sampled is not in its trace. */
void rec_sample_reset(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	for (size_t i = 0; i < sizeof(rec_tags); i++)
		if (rec_tags[i] != REC_TAG_STAYS)
			rec_tags[i] = 0;
	if (set)
		rec_unmap(set, bytes_of(set->size));
	set = NULL;
	version = 0;
	rec_fast = &rec_fast_none;
	for (struct rec_writer *w = rec.writers; w; w = w->next) {
		rec_unmap(w->counts.map, w->counts.room);
		rec_unmap(w->fast, page);
	}
}

void rec_sample(void *p, uint64_t size, const struct rec_frame *caller)
{
	struct rec_writer *w = rec_enter();
	struct rec_event e = {
		.kind = TRACE_SAMPLE, .addr = (uintptr_t)p, .size = size,
		.rate = rec.rate,
	};

	if (!w)
		return;
	if (rec_likely(rec_fast == w->fast) || attach(w)) {
		if (!rec_fast->drawn)
			rec_fast->gap = (uint64_t)draw(w) - 1;
		rec_fast->drawn = true;
		if (!rec_pass(size)) {
			rec_count(rec_fast->counts, size);
			e.gap = rec_fast->gap + 1;
			e.stack = rec_stack(w, caller);
			rec_fast->gap = (uint64_t)draw(w) - 1;
			e.tick = rec_tick();
			if (remember(p))
				rec_event(w, &e);
		}
	}
	rec_leave();
}

bool rec_sample_free(struct rec_writer *w, const void *p)
{
	if ((rec_likely(rec_fast == w->fast) || attach(w)) && rec_fast->frees)
		++*rec_fast->frees;
	return forget(p);
}
