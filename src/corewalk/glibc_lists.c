/* SPDX-License-Identifier: MIT */
/*
 * The lists of glibc's malloc: thread caches, fastbins and bins.  A chunk in
 * a thread cache or a fastbin looks like one in use; only these lists tell.
 */
#include "corewalk/glibc.h"

#include "base/mem.h"
#include "base/sort.h"

enum {
	TLS_REACH = 4096,	/* libc's variables are this near, mostly */
	TLS_FAR = 1 << 20,	/* and no further than this */
	TLS_VOTERS = 256,	/* threads that are asked */
	TLS_FEW = 4,		/* the same, far away */
	SMALL_TCACHE_BINS = 64,
};

/* The struct's size as a chunk. */
unsigned glibc_tcache_chunk(const struct glibc *g, enum tcache_kind kind)
{
	const struct tcache_layout *l = &glibc_tcache_layouts[kind];
	unsigned body = l->bins * l->count_size + l->bins * g->W;

	return (unsigned)round_up(body + g->W, g->A);
}

static vaddr tcache_entry(const struct glibc *g, vaddr mem,
			  enum tcache_kind kind, unsigned bin)
{
	const struct tcache_layout *l = &glibc_tcache_layouts[kind];

	return mem + l->bins * l->count_size + (uint64_t)bin * g->W;
}

static bool tcache_count(struct glibc *g, vaddr mem, enum tcache_kind kind,
			 unsigned bin, unsigned *ret)
{
	uint8_t c8;
	uint16_t c16;

	if (glibc_tcache_layouts[kind].count_size == 1) {
		if (!space_u8(g->sp, mem + bin, &c8))
			return false;
		*ret = c8;
		return true;
	}
	if (!space_u16(g->sp, mem + 2 * bin, &c16))
		return false;
	*ret = c16;
	return true;
}

/* Can a chunk of this size be in the bin?  Large bins came with 2.42. */
static bool tcache_fits(const struct glibc *g, unsigned bin, uint64_t size)
{
	uint64_t small_max = g->MIN + (SMALL_TCACHE_BINS - 1) * g->A;

	if (bin < SMALL_TCACHE_BINS)
		return size == g->MIN + (uint64_t)bin * g->A;
	if (size <= small_max || size > UINT32_MAX)
		return false;
	return bin == SMALL_TCACHE_BINS +
		(unsigned)__builtin_clz((unsigned)small_max) -
		(unsigned)__builtin_clz((unsigned)size);
}

static uint64_t demangle(const struct glibc *g, vaddr addr, uint64_t raw,
			 bool mangled)
{
	if (mangled)
		raw ^= addr >> 12;
	return g->W == 4 ? (uint32_t)raw : raw;
}

/*
 * Follow one list as a candidate would have it; false at the first member
 * that cannot be one, or if it is longer than most.  *ret is its length.
 */
static bool tcache_list_sane(struct glibc *g, vaddr entry, unsigned bin,
			     bool mangled, unsigned most, unsigned *ret)
{
	unsigned n = 0;

	while (entry) {
		uint64_t size, next;

		if (n == most || !g->budget)
			return false;
		g->budget--;
		if ((entry & (g->A - 1)) ||
		    !space_word(g->sp, entry - g->W, &size) ||
		    !tcache_fits(g, bin, size & ~(uint64_t)CHUNK_FLAGS) ||
		    !space_word(g->sp, entry, &next))
			return false;
		n++;
		entry = demangle(g, entry, next, mangled);
	}
	*ret = n;
	return true;
}

/* Up to 2.41: counts and lists must agree, in one of the two link forms. */
static int score_counts(struct glibc *g, vaddr mem, enum tcache_kind kind,
			int *ret_mangled)
{
	bool possible[2] = { true, true };
	int filled = 0;

	for (unsigned i = 0; i < SMALL_TCACHE_BINS; i++) {
		unsigned count, n;
		uint64_t entry;

		if (!tcache_count(g, mem, kind, i, &count) ||
		    !space_word(g->sp, tcache_entry(g, mem, kind, i),
				&entry) || !count != !entry)
			return 0;
		if (!count)
			continue;
		for (int m = 0; m < 2; m++)
			possible[m] = possible[m] &&
				tcache_list_sane(g, entry, i, m, count, &n) &&
				n == count;
		if (!possible[0] && !possible[1])
			return 0;
		filled++;
	}
	*ret_mangled = possible[0] && possible[1] ? -1 : possible[1];
	return 1 + filled;
}

/* From 2.42 on: free places plus members are the same in each small bin. */
static int score_slots(struct glibc *g, vaddr mem)
{
	unsigned bins = glibc_tcache_layouts[TCACHE_SLOTS].bins;
	unsigned all = 0;
	int filled = 0;

	for (unsigned i = 0; i < bins; i++) {
		unsigned slots, n = 0;
		uint64_t entry;

		if (!tcache_count(g, mem, TCACHE_SLOTS, i, &slots) ||
		    !space_word(g->sp, tcache_entry(g, mem, TCACHE_SLOTS, i),
				&entry))
			return 0;
		if (entry && !tcache_list_sane(g, entry, i, true, UINT16_MAX,
					       &n))
			return 0;
		filled += entry != 0;
		if (!i)
			all = slots + n;
		if (!all || (i < SMALL_TCACHE_BINS && slots + n != all))
			return 0;
	}
	if (g->par && g->par->tcache_bins && all != g->tcache_count)
		return 0;
	return 1 + filled;
}

int glibc_tcache_score(struct glibc *g, vaddr mem, enum tcache_kind kind,
		       int *ret_mangled)
{
	if (kind != TCACHE_SLOTS)
		return score_counts(g, mem, kind, ret_mangled);
	*ret_mangled = 1;
	return score_slots(g, mem);
}

/* Among the first n, which are sorted. */
static struct glibc_tcache *tcache_at(struct glibc *g, vaddr mem, size_t n)
{
	return FIND(g->tcaches, n, mem);
}

/* Elect the one form that the process has, and drop the other candidates. */
static void elect_kind(struct glibc *g)
{
	uint64_t votes[TCACHE_KINDS] = { 0 };
	size_t kept = 0;

	for (size_t i = 0; i < g->n_tcaches; i++)
		votes[g->tcaches[i].kind] += (unsigned)g->tcaches[i].score;
	for (int k = TCACHE_CHAR; k < TCACHE_KINDS; k++)
		if (votes[k] > votes[g->tcache])
			g->tcache = k;
	for (size_t i = 0; i < g->n_tcaches; i++)
		if (g->tcaches[i].kind == g->tcache)
			g->tcaches[kept++] = g->tcaches[i];
	g->n_tcaches = kept;
}

/* Which form of link fits a list of so many members?  -1 if both do or none. */
static int link_form(struct glibc *g, vaddr entry, unsigned bin,
		     unsigned count)
{
	bool fits[2];

	for (int m = 0; m < 2; m++) {
		unsigned n = 0;

		fits[m] = tcache_list_sane(g, entry, bin, m, count, &n) &&
			n == count;
	}
	return fits[0] == fits[1] ? -1 : fits[1];
}

/* Plain or mangled links: what most lists say, one broken list does not. */
static void elect_links(struct glibc *g)
{
	uint64_t links[2] = { 0 };

	for (size_t i = 0; i < g->n_tcaches; i++) {
		vaddr mem = g->tcaches[i].mem;

		links[1] += g->tcache == TCACHE_SLOTS;
		for (unsigned b = 0; g->tcache != TCACHE_SLOTS &&
		     b < SMALL_TCACHE_BINS; b++) {
			unsigned count;
			uint64_t entry;
			int form = -1;

			if (tcache_count(g, mem, g->tcache, b, &count) &&
			    space_word(g->sp, tcache_entry(g, mem, g->tcache,
							   b), &entry) &&
			    entry && count)
				form = link_form(g, entry, b, count);
			if (form >= 0)
				links[form]++;
		}
	}
	g->mangled_known = links[0] || links[1];
	g->mangled = links[1] > links[0] || (!g->mangled_known &&
					     g->first >= 32);
}

static void narrow_releases(struct glibc *g)
{
	if (g->tcache)
		glibc_releases(g, glibc_tcache_layouts[g->tcache].first,
			       glibc_tcache_layouts[g->tcache].last);
	if (g->mangled_known && g->mangled)
		glibc_releases(g, 32, 43);
	else if (g->mangled_known)
		glibc_releases(g, 17, 31);
}

static bool is_tcache(struct glibc *g, vaddr addr)
{
	return tcache_at(g, addr, g->n_tcaches) != NULL;
}

static bool is_arena(struct glibc *g, vaddr addr)
{
	return glibc_arena_at(g, addr) != NULL;
}

/* How many of the first n threads have one of ours at the offset? */
static unsigned hits_at(struct glibc *g, bool (*ours)(struct glibc *, vaddr),
			long off, size_t n)
{
	unsigned hits = 0;

	for (size_t t = 0; t < n; t++) {
		vaddr tp = g->sp->threads[t].tls;
		uint64_t word;

		hits += tp && space_word(g->sp, tp + (uint64_t)off, &word) &&
			word && ours(g, word);
	}
	return hits;
}

/*
 * The offset from the thread pointer at which most threads have an address
 * that is one of ours.  It depends on what else has static thread-local
 * storage, but is the same in all threads of a process.  A program with much
 * of its own has libc's far away: then a few threads are asked again.
 */
static unsigned vote(struct glibc *g, bool (*ours)(struct glibc *, vaddr),
		     long *ret)
{
	size_t all = min_u64(g->sp->n_threads, TLS_VOTERS), n = all;
	unsigned best = 0;

	for (long reach = TLS_REACH; reach <= TLS_FAR; reach *= 16) {
		for (long off = -reach; off < reach; off += (long)g->W) {
			unsigned hits = hits_at(g, ours, off, n);

			/* The few only say where all are worth asking. */
			if (hits && n < all)
				hits = hits_at(g, ours, off, all);
			if (hits > best) {
				best = hits;
				*ret = off;
			}
		}
		if (best * 2 > all)
			break;
		n = min_u64(all, TLS_FEW);
	}
	return best;
}

struct heap_extent *glibc_extent(struct glibc *g, vaddr chunk)
{
	/* The walk owns the heap: it may change what it looks up. */
	struct heap_extent *x =
		(struct heap_extent *)heap_extent_at(g->heap, chunk);

	if (!x || x->kind != EXTENT_BLOCKS || !extent_is_start(x, chunk))
		return NULL;
	return x;
}

/* A cache that is empty looks like any block of zeros: only TLS knows it. */
static void add_by_slot(struct glibc *g, vaddr mem, size_t sorted)
{
	uint64_t want = glibc_tcache_chunk(g, g->tcache), word, size;

	if (!mem || (mem & (g->A - 1)) || tcache_at(g, mem, sorted) ||
	    !glibc_extent(g, mem - 2 * g->W) ||
	    !space_word(g->sp, mem - g->W, &word))
		return;
	size = word & ~(uint64_t)CHUNK_FLAGS;
	if (size < want || size > want + 2 * g->A)
		return;
	MEM_PUSH(g->tcaches, g->n_tcaches, g->cap_tcaches) =
		(struct glibc_tcache){ .mem = mem, .kind = g->tcache };
}

static void sort_tcaches(struct glibc *g)
{
	size_t kept = 0;

	SORT_BY(g->tcaches, g->n_tcaches, mem);
	for (size_t i = 0; i < g->n_tcaches; i++)
		if (!kept || g->tcaches[kept - 1].mem != g->tcaches[i].mem)
			g->tcaches[kept++] = g->tcaches[i];
	g->n_tcaches = kept;
}

/* What a thread's `tcache' variable holds; 0 if that is not known. */
static vaddr tcache_slot(struct glibc *g, const struct thread *th)
{
	uint64_t mem;

	if (!th->tls ||
	    !space_word(g->sp, th->tls + (uint64_t)g->tcache_tls, &mem))
		return 0;
	return mem;
}

static void assign_threads(struct glibc *g)
{
	const struct thread *threads = g->sp->threads;
	size_t known = g->n_tcaches, n = 0;
	vaddr *found = mem_alloc(g->sp->n_threads * sizeof(*found));

	for (size_t t = 0; t < g->sp->n_threads; t++)
		found[n++] = tcache_slot(g, &threads[t]);
	for (size_t t = 0; t < n; t++)
		add_by_slot(g, found[t], known);
	sort_tcaches(g);
	for (size_t t = 0; t < n; t++) {
		struct glibc_tcache *tc = tcache_at(g, found[t], g->n_tcaches);

		if (tc)
			tc->tid = threads[t].tid;
	}
	free(found);
}

/*
 * Can a block of the right size, named in the right place, be a cache whose
 * lists are empty or damaged?  Its numbers must fit: no bin has more members
 * than malloc allows, and one without any is empty.
 */
static bool tcache_possible(struct glibc *g, vaddr mem, enum tcache_kind kind)
{
	unsigned most = g->par && g->par->tcache_bins ?
		(unsigned)g->tcache_count : UINT16_MAX;

	for (unsigned i = 0; i < SMALL_TCACHE_BINS; i++) {
		unsigned count;
		uint64_t entry;

		if (!tcache_count(g, mem, kind, i, &count) ||
		    !space_word(g->sp, tcache_entry(g, mem, kind, i),
				&entry) || count > most)
			return false;
		if (kind == TCACHE_SLOTS)
			count = most - count;
		if (!count != !entry)
			return false;
	}
	return true;
}

/*
 * All caches are empty or damaged: none was known by its content.  libc keeps
 * its `tcache' variable up to 64 bytes below `thread_arena'; a block of the
 * right size that is named there by each thread that names one is it.
 */
static bool slot_is_tcache(struct glibc *g, long off, enum tcache_kind kind)
{
	uint64_t want = glibc_tcache_chunk(g, kind), word, mem;
	size_t hits = 0;

	for (size_t t = 0; t < g->sp->n_threads; t++) {
		vaddr tp = g->sp->threads[t].tls;

		if (!tp || !space_word(g->sp, tp + (uint64_t)off, &mem) ||
		    !mem)
			continue;
		if ((mem & (g->A - 1)) ||
		    !glibc_extent(g, mem - 2 * g->W) ||
		    !space_word(g->sp, mem - g->W, &word) ||
		    (word & ~(uint64_t)CHUNK_FLAGS) - want > 2 * g->A ||
		    !tcache_possible(g, mem, kind))
			return false;
		hits++;
	}
	return hits > 0;
}

static void find_other_tcaches(struct glibc *g, long arena_off)
{
	for (int kind = TCACHE_CHAR; kind < TCACHE_KINDS; kind++)
		for (long below = (long)g->W; below <= 64;
		     below += (long)g->W) {
			if (glibc_tcache_layouts[kind].last < g->first ||
			    glibc_tcache_layouts[kind].first > g->last ||
			    !slot_is_tcache(g, arena_off - below, kind))
				continue;
			g->tcache = kind;
			g->tcache_tls = arena_off - below;
			g->tcache_tls_known = true;
			assign_threads(g);
			elect_links(g);
			narrow_releases(g);
			return;
		}
}

static void assign_arenas(struct glibc *g)
{
	long off = 0;

	if (!vote(g, is_arena, &off))
		return;
	if (!g->tcache)
		find_other_tcaches(g, off);
	for (size_t t = 0; t < g->sp->n_threads; t++) {
		const struct thread *th = &g->sp->threads[t];
		struct glibc_arena *a;
		uint64_t addr;

		if (!th->tls ||
		    !space_word(g->sp, th->tls + (uint64_t)off, &addr))
			continue;
		a = glibc_arena_at(g, addr);
		if (a)
			MEM_PUSH(g->heap->uses, g->heap->n_uses,
				 g->heap->cap_uses) =
				(struct thread_arena){ th->tid, a->id };
	}
}

static void register_tcache(struct glibc *g, struct glibc_tcache *tc)
{
	vaddr chunk = tc->mem - 2 * g->W;
	struct heap_extent *x = glibc_extent(g, chunk);

	if (x)
		extent_set_state(x, chunk, BLOCK_OVERHEAD);
	tc->id = heap_add_cache(g->heap, &(struct thread_cache){
		.addr = tc->mem, .allocator = g->allocator, .tid = tc->tid,
		.arena = x ? x->arena : g->arenas[0].id });
}

void glibc_settle_tcaches(struct glibc *g)
{
	heap_sort(g->heap);
	elect_kind(g);
	elect_links(g);
	narrow_releases(g);
	sort_tcaches(g);
	if (g->n_tcaches) {
		g->tcache_tls_votes = vote(g, is_tcache, &g->tcache_tls);
		g->tcache_tls_known = g->tcache_tls_votes > 0;
		if (g->tcache_tls_known)
			assign_threads(g);
	}
	assign_arenas(g);
	for (size_t i = 0; i < g->n_tcaches; i++)
		register_tcache(g, &g->tcaches[i]);
}

void glibc_note_unread(struct glibc *g, const struct glibc_member *m,
		       vaddr addr)
{
	heap_note(g->heap, "missing", m->a->id, addr, 0,
		  "%s %u goes on at 0x%llx, which cannot be read", m->list,
		  m->bin, (unsigned long long)addr);
}

bool glibc_mark(struct glibc *g, const struct glibc_member *m)
{
	struct heap_extent *x = glibc_extent(g, m->chunk);
	enum block_state was;
	uint64_t word;

	if (!x) {
		/* What is lost or damaged there was said by the walk, once. */
		const struct heap_extent *lost =
			heap_extent_at(g->heap, m->chunk);

		if (lost && lost->kind == EXTENT_UNDECODED)
			return false;
		heap_note(g->heap, "bad-list-member", m->a->id, m->chunk, 0,
			  "%s %u holds 0x%llx, which is no chunk", m->list,
			  m->bin, (unsigned long long)m->chunk);
		return false;
	}
	if (m->size && (!space_word(g->sp, m->chunk + g->W, &word) ||
			(word & ~(uint64_t)CHUNK_FLAGS) != m->size)) {
		heap_note(g->heap, "bad-list-member", m->a->id, m->chunk, 0,
			  "%s %u holds chunk 0x%llx of another size", m->list,
			  m->bin, (unsigned long long)m->chunk);
		return false;
	}
	was = extent_state(x, m->chunk);
	/* Its successor's header is damaged: only the list knows. */
	if (was == BLOCK_USED && m->want != BLOCK_USED &&
	    space_word(g->sp, m->chunk + g->W, &word) &&
	    m->chunk + (word & ~(uint64_t)CHUNK_FLAGS) == x->end)
		was = m->want;
	if (was != m->want) {
		bool twice = was == BLOCK_CACHED || was == BLOCK_FAST ||
			was == m->set;

		heap_note(g->heap, twice ? "double-free" : "bad-list-member",
			  m->a->id, m->chunk, 0, twice ?
			  "chunk 0x%llx is in %s %u, and also in a list as %s" :
			  "chunk 0x%llx is in %s %u, but its header says %s",
			  (unsigned long long)m->chunk, m->list, m->bin,
			  block_state_name(was));
		return false;
	}
	extent_set_state(x, m->chunk, m->set);
	return true;
}

/* Returns how many members the list should have had and did not. */
static unsigned mark_tcache_bin(struct glibc *g, struct glibc_tcache *tc,
				unsigned bin)
{
	struct glibc_member m = {
		.want = BLOCK_USED, .set = BLOCK_CACHED, .a = &g->arenas[0],
		.list = "thread cache bin", .bin = bin,
	};
	vaddr head = tcache_entry(g, tc->mem, g->tcache, bin);
	unsigned count = 0, n = 0;
	uint64_t entry = 0;

	if (!space_word(g->sp, head, &entry) ||
	    !tcache_count(g, tc->mem, g->tcache, bin, &count)) {
		glibc_note_unread(g, &m, head);
		return 0;
	}
	if (g->tcache == TCACHE_SLOTS)
		count = g->tcache_count > count ?
			(unsigned)g->tcache_count - count : 0;
	while (entry && n <= UINT16_MAX) {
		uint64_t word, size;

		m.chunk = entry - 2 * g->W;
		if (bin < SMALL_TCACHE_BINS)
			m.size = g->MIN + (uint64_t)bin * g->A;
		/* What leads nowhere is said by this, once. */
		if (!glibc_mark(g, &m) ||
		    !space_word(g->sp, entry - g->W, &word))
			break;
		size = word & ~(uint64_t)CHUNK_FLAGS;
		heap_add_cached(g->heap, tc->id, m.chunk, bin, size);
		n++;
		if (!space_word(g->sp, entry, &word)) {
			glibc_note_unread(g, &m, entry);
			break;
		}
		entry = glibc_link(g, entry, word);
	}
	return n < count && bin < SMALL_TCACHE_BINS ? count - n : 0;
}

/*
 * The word behind the link that tells a cached block: at least nine of ten
 * members share it (2.34 on), or it is its cache's address (2.29 to 2.33).
 */
struct tcache_key {
	bool known, own_address;
	uint64_t word;
};

static struct tcache_key find_key(struct glibc *g)
{
	const struct heap *h = g->heap;
	struct tcache_key key = { 0 };
	uint64_t lead = 0, same = 0, own = 0, total = 0, word;

	for (size_t i = 0; i < h->n_cached; i++) {
		if (!space_word(g->sp, h->cached[i].start + 3 * g->W, &word))
			continue;
		total++;
		own += word == h->caches[h->cached[i].cache].addr;
		if (!lead)
			key.word = word;
		lead += word == key.word ? 1 : (uint64_t)-1;
	}
	for (size_t i = 0; i < h->n_cached; i++)
		same += space_word(g->sp, h->cached[i].start + 3 * g->W,
				   &word) && word == key.word;
	key.own_address = total > 3 && own * 10 >= total * 9;
	key.known = key.own_address || (total > 3 && same * 10 >= total * 9);
	return key;
}

/* Members that lists should have had and did not, for each cache and bin. */
struct shortage {
	unsigned (*left)[SMALL_TCACHE_BINS];	/* owned */
	unsigned *filled;			/* owned; by cache */
	uint64_t by_bin[SMALL_TCACHE_BINS];	/* of all caches */
	size_t first[SMALL_TCACHE_BINS];	/* cache that may lack one */
	uint64_t total;
};

/* The cache that lacks a block of this bin with this word, -1 if none. */
static size_t who_lacks(struct glibc *g, struct shortage *s, unsigned bin,
			uint64_t word, const struct tcache_key *key)
{
	size_t i = g->n_tcaches;

	if (key->own_address) {
		struct glibc_tcache *tc = tcache_at(g, word, g->n_tcaches);

		if (tc && s->left[tc - g->tcaches][bin])
			i = (size_t)(tc - g->tcaches);
	} else if (word == key->word) {
		for (i = s->first[bin]; !s->left[i][bin]; i++)
			;
		s->first[bin] = i;
	}
	return i < g->n_tcaches ? i : SIZE_MAX;
}

/*
 * A broken list is shorter than its count: as many blocks of its size that
 * carry the key are the missing ones.  Never used without a shortage, since a
 * block handed out again may still carry a stale key.
 */
static void fill_shortage(struct glibc *g, struct shortage *s)
{
	struct tcache_key key = find_key(g);
	struct heap_iter it;
	struct block b;

	heap_iter_init(&it, g->heap);
	while (key.known && s->total && heap_iter_next(&it, &b)) {
		uint64_t bin = (b.size - g->MIN) / g->A, word;
		size_t i;

		if (b.state != BLOCK_USED || b.mmapped || b.size < g->MIN ||
		    bin >= SMALL_TCACHE_BINS || !s->by_bin[bin] ||
		    !space_word(g->sp, b.start + 3 * g->W, &word))
			continue;
		i = who_lacks(g, s, (unsigned)bin, word, &key);
		if (i == SIZE_MAX)
			continue;
		extent_set_state(glibc_extent(g, b.start), b.start,
				 BLOCK_CACHED);
		heap_add_cached(g->heap, g->tcaches[i].id, b.start,
				(unsigned)bin, b.size);
		s->left[i][bin]--;
		s->by_bin[bin]--;
		s->total--;
		s->filled[i]++;
	}
}

/* The arena that a cache's own structure is a block of. */
static uint32_t tcache_arena(const struct glibc *g,
			     const struct glibc_tcache *tc)
{
	return g->heap->caches[tc->id].arena;
}

static void note_shortage(struct glibc *g, const struct shortage *s, size_t i)
{
	const struct glibc_tcache *tc = &g->tcaches[i];
	unsigned missing = s->filled[i];

	for (unsigned b = 0; b < SMALL_TCACHE_BINS; b++)
		missing += s->left[i][b];
	if (!missing)
		return;
	/* One: taken out or put in by a thread that was stopped there. */
	if (missing == 1) {
		heap_note(g->heap, "short-tcache", tcache_arena(g, tc),
			  tc->mem, 0, "thread cache 0x%llx counts one block "
			  "more than its lists reach: its thread was inside "
			  "malloc, or a link was overwritten",
			  (unsigned long long)tc->mem);
		heap_note_is_minor(g->heap);
		return;
	}
	heap_note(g->heap, "broken-tcache", tcache_arena(g, tc), tc->mem, 0,
		  "thread cache 0x%llx: %u members are not reached by its "
		  "lists; %u recognised by their key",
		  (unsigned long long)tc->mem, missing, s->filled[i]);
}

static void mark_tcaches(struct glibc *g)
{
	unsigned bins = glibc_tcache_layouts[g->tcache].bins;
	struct shortage s = {
		.left = mem_zalloc(g->n_tcaches * sizeof(*s.left)),
		.filled = mem_zalloc(g->n_tcaches * sizeof(*s.filled)),
	};

	for (size_t i = 0; i < g->n_tcaches; i++)
		for (unsigned b = 0; b < bins; b++) {
			unsigned n = mark_tcache_bin(g, &g->tcaches[i], b);

			if (!n || b >= SMALL_TCACHE_BINS)
				continue;
			s.left[i][b] = n;
			s.by_bin[b] += n;
			s.total += n;
		}
	if (s.total) {
		fill_shortage(g, &s);
		for (size_t i = 0; i < g->n_tcaches; i++)
			note_shortage(g, &s, i);
	}
	free(s.left);
	free(s.filled);
}

void glibc_mark_lists(struct glibc *g)
{
	heap_sort(g->heap);
	mark_tcaches(g);
	glibc_mark_fastbins(g);
	glibc_mark_bins(g);
}

static bool add_anchor(struct glibc *g, struct glibc_arena *a, vaddr chunk)
{
	const struct seg *seg = space_seg(g->sp, chunk);

	if (!seg || !(seg->flags & SEG_W) || (chunk & (g->W - 1)) ||
	    !g->anchors_left || !g->budget)
		return false;
	g->anchors_left--;
	g->budget--;
	MEM_PUSH(a->anchors, a->n_anchors, a->cap_anchors) = chunk;
	return true;
}

/* Brent: a list that runs in a circle meets the mark set at powers of two. */
static void anchors_of_list(struct glibc *g, struct glibc_arena *a,
			    vaddr head, vaddr first, bool fast)
{
	vaddr chunk = first, mark_at = 0;
	uint64_t n = 0, next, back;

	while (chunk && chunk != head && chunk != mark_at) {
		if (!add_anchor(g, a, chunk))
			return;
		if (!(n & (n + 1)))
			mark_at = chunk;
		n++;
		if (!space_word(g->sp, chunk + 2 * g->W, &next))
			return;
		if (fast)
			next = demangle(g, chunk + 2 * g->W, next,
					g->first >= 32);
		/* In a bin the next member must point back. */
		else if (space_word(g->sp, next + 3 * g->W, &back) &&
			 back != chunk)
			return;
		chunk = next;
	}
}

void glibc_collect_anchors(struct glibc *g, struct glibc_arena *a)
{
	if (a->has_anchors || a->lost)
		return;
	a->has_anchors = true;
	for (unsigned b = 0; b < g->state->n_fast; b++) {
		uint64_t first;

		if (space_word(g->sp, a->addr + g->state->fast +
			       (uint64_t)b * g->W, &first))
			anchors_of_list(g, a, 0, first, true);
	}
	for (unsigned k = 0; k < GLIBC_BINS; k++) {
		vaddr head = a->addr + state_bin(g->state, k);
		uint64_t first;

		if (space_word(g->sp, head + 2 * g->W, &first))
			anchors_of_list(g, a, head, first, false);
	}
	a->n_anchors = num_sort_unique(a->anchors, a->n_anchors);
}
