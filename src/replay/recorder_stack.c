/* SPDX-License-Identifier: MIT */
/*
 * Call stacks: walked, and numbered.
 *
 * Most of a stack is the same as the last time.  A frame is decided by the
 * place of its return address, that address and the frame pointer; where a
 * walk meets a frame of the last one, everything outside follows if the return
 * addresses there are still in their places, which takes a load and a compare
 * for each, and no unwind rule.
 *
 * The table of stacks knows them by 64 bits of hash.  An entry's hash is stored
 * after its number, so looking needs no lock.  A table that is half full is
 * replaced; who looks in the old one and finds nothing takes the lock and
 * looks again.
 */
#include "replay/recorder.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
	TABLE_BITS = 15,	/* of the first table */
	STACKS_MAX = 1 << 24,
	STACK_BYTES = 16 + TRACE_DEPTH_MAX * 10,	/* one, at most */
	STACKS_ROOM_FIRST = 64 << 10,
	STACKS_ROOM = 512 << 10,
	MAIN_STACK_MAX = 100 << 20,	/* Linux keeps 128 MiB below it free */
	ADDRESS_MIN = 65536,
};

struct entry {
	uint64_t hash;		/* 0: free */
	uint32_t number;
};

struct table {
	size_t size;		/* of the mapping */
	uint64_t mask;
	struct entry entries[];
};

static struct table *table;
static uint32_t n_stacks;
static uintptr_t last_stack[TRACE_DEPTH_MAX];	/* outermost first */
static unsigned last_n;
static uint64_t factor[TRACE_DEPTH_MAX];	/* odd, of each place */

/* What runs for every frame: calls would cost as much as the work. */
#define REC_INLINE inline __attribute__((always_inline))
#define REC_APART __attribute__((noinline))

extern void *__libc_stack_end __attribute__((weak));

static uint64_t mix(uint64_t x)
{
	/* SplitMix64's finaliser (Steele, Lea, Flood 2014). */
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

static struct table *table_new(unsigned bits)
{
	size_t size = sizeof(struct table) + (sizeof(struct entry) << bits);
	struct table *t = rec_map(size);

	if (t) {
		t->size = size;
		t->mask = ((uint64_t)1 << bits) - 1;
	}
	return t;
}

/* With the lock, or before anybody else is there. */
void rec_stacks_reset(void)
{
	for (unsigned i = 0; i < TRACE_DEPTH_MAX; i++)
		factor[i] = mix((i + 1) * 0x9e3779b97f4a7c15u) | 1;
	if (table)
		rec_unmap(table, table->size);
	table = table_new(TABLE_BITS);
	n_stacks = 0;
	last_n = 0;
}

static void add_entry(struct table *t, uint64_t hash, uint32_t number)
{
	uint64_t i = hash >> 1 & t->mask;

	while (t->entries[i].hash)
		i = (i + 1) & t->mask;
	t->entries[i].number = number;
	__atomic_store_n(&t->entries[i].hash, hash, __ATOMIC_RELEASE);
}

static uint32_t lookup(const struct table *t, uint64_t hash)
{
	for (uint64_t i = hash >> 1 & t->mask;; i = (i + 1) & t->mask) {
		uint64_t found = __atomic_load_n(&t->entries[i].hash,
						 __ATOMIC_ACQUIRE);

		if (found == hash)
			return t->entries[i].number;
		if (!found)
			return 0;
	}
}

static bool grow(void)
{
	struct table *now = table;
	struct table *next;
	unsigned bits = 64 - (unsigned)__builtin_clzl(now->mask) + 1;

	next = table_new(bits);
	if (!next)
		return false;
	for (uint64_t i = 0; i <= now->mask; i++)
		if (now->entries[i].hash)
			add_entry(next, now->entries[i].hash,
				  now->entries[i].number);
	/* The old one stays mapped: somebody may be looking in it. */
	__atomic_store_n(&table, next, __ATOMIC_RELEASE);
	return true;
}

/* The record of a new stack: what it shares with the last one, and the rest. */
static bool write_stack(const struct rec_frame *frames, unsigned n)
{
	unsigned shared = 0;
	uint8_t *start, *p;
	uintptr_t last;

	if (!rec.stacks.map || rec.stacks.at + STACK_BYTES > rec.stacks.end) {
		if (!rec_chunk_next(&rec.stacks, TRACE_STACKS, 0,
				    n_stacks + 1, n_stacks ?
				    STACKS_ROOM : STACKS_ROOM_FIRST))
			return false;
		last_n = 0;
	}
	while (shared < n && shared < last_n &&
	       last_stack[shared] == frames[n - 1 - shared].pc)
		shared++;
	start = rec.stacks.at;
	p = rec_put(start + 1, shared);
	p = rec_put(p, n - shared);
	last = shared ? last_stack[shared - 1] : 0;
	for (unsigned i = shared; i < n; i++) {
		last_stack[i] = frames[n - 1 - i].pc;
		p = rec_put(p, rec_zigzag((int64_t)(last_stack[i] - last)));
		last = last_stack[i];
	}
	last_n = n;
	rec.stacks.at = p;
	rec_commit(start, TRACE_STACK_TAG);
	return true;
}

static uint32_t add_stack(uint64_t hash, const struct rec_frame *frames,
			  unsigned n)
{
	uint32_t number;

	rec_lock();
	number = table ? lookup(table, hash) : 0;
	if (!number && table && *rec_live && n_stacks < STACKS_MAX &&
	    (n_stacks * 2 < table->mask || grow()) &&
	    write_stack(frames, n)) {
		number = ++n_stacks;
		add_entry(table, hash, number);
	}
	rec_unlock();
	return number;
}

static uint32_t number_of(const struct rec_walk *k, unsigned n)
{
	const struct rec_frame *frames = k->frames + k->base;
	struct table *t = __atomic_load_n(&table, __ATOMIC_ACQUIRE);
	uint64_t hash = (uint64_t)k->modules << 32 | n;
	uint32_t number;

	/* Multilinear: places are independent, so are the multiplications. */
	for (unsigned i = 0; i < n; i++)
		hash += frames[i].pc * factor[i];
	hash = mix(hash) | 1;
	number = t ? lookup(t, hash) : 0;
	return number ? number : add_stack(hash, frames, n);
}

static REC_APART struct rec_rule find_rule(uintptr_t pc)
{
	struct rec_rule fp = { .kind = REC_RULE_FP };
	struct rec_module m;

#if defined(__x86_64__)
	if (!rec.frame_pointers && rec_module_at(pc - 1, &m))
		return rec_cfi_rule(&m, pc - 1);
#else
	/* Frame pointers it is; but the object is to be known. */
	rec_module_at(pc - 1, &m);
#endif
	return fp;
}

/* Two places for each address, the one used last in front. */
static REC_INLINE const struct rec_rule *rule_of(struct rec_walk *k,
						 uintptr_t pc)
{
	struct rec_cached_rule *c =
		&k->rules[pc * 0x9e3779b97f4a7c15u >> 32 & (REC_RULES - 2)];
	struct rec_cached_rule other;

	if (rec_likely(c->key == pc))
		return &c->rule;
	other = c[1];
	c[1] = c[0];
	if (other.key != pc)
		other = (struct rec_cached_rule){ pc, find_rule(pc) };
	*c = other;
	return &c->rule;
}

static uintptr_t load(uintptr_t at)
{
	return *(const uintptr_t *)at;
}

/* A word of the stack that lies outside of sp. */
static inline bool on_stack(uintptr_t at, uintptr_t sp, uintptr_t limit)
{
	return at >= sp && at < limit && limit - at >= sizeof(at) &&
	       !(at & (sizeof(at) - 1));
}

static inline bool frame_at(uintptr_t slot, uintptr_t bp, struct rec_frame *ret)
{
	*ret = (struct rec_frame){ slot, load(slot), bp };
	return ret->pc >= ADDRESS_MIN;
}

/* [bp] is the caller's bp, [bp + 8] the return address: both machines. */
static REC_APART bool by_frame_pointer(const struct rec_frame *f,
				       uintptr_t limit, struct rec_frame *ret)
{
	uintptr_t slot = f->bp + sizeof(slot);

	if (f->bp <= f->slot || !on_stack(f->bp, f->slot, limit) ||
	    !on_stack(slot, f->slot, limit))
		return false;
	return frame_at(slot, load(f->bp), ret);
}

#if defined(__x86_64__)
/*
 * What a signal interrupted: Linux's struct ucontext, whose general registers
 * start at 40; rbp is the tenth, rsp and rip the 15th and 16th, from 0.
 */
static REC_APART bool interrupted(const struct rec_walk *k,
				  const struct rec_frame *f,
				  uintptr_t *limit, struct rec_frame *ret)
{
	uintptr_t regs = f->slot + 8 + 40;
	uintptr_t sp;

	if (!on_stack(regs, f->slot, *limit) ||
	    !on_stack(regs + 8 * 16, f->slot, *limit))
		return false;
	sp = load(regs + 8 * 15);
	if (sp >= k->low && sp < k->high)
		*limit = k->high;
	else if (sp <= f->slot || sp >= *limit)
		return false;
	/* One more, since return addresses are looked up one less. */
	*ret = (struct rec_frame){ sp - 8, load(regs + 8 * 16) + 1,
				   load(regs + 8 * 10) };
	return ret->pc >= ADDRESS_MIN;
}

static REC_INLINE bool by_rule(const struct rec_rule *rule,
			       const struct rec_frame *f, uintptr_t limit,
			       struct rec_frame *ret)
{
	uintptr_t cfa, saved;
	uintptr_t bp = f->bp;

	if (rule->kind == REC_RULE_SP)
		cfa = f->slot + 8 + (uintptr_t)(intptr_t)rule->cfa;
	else
		cfa = bp + (uintptr_t)(intptr_t)rule->cfa;
	saved = cfa;
	if (rule->kind == REC_RULE_DEREF) {
		if (!on_stack(cfa, f->slot, limit))
			return false;
		saved = bp;
		cfa = load(cfa);
	}
	if (cfa - 8 <= f->slot || !on_stack(cfa - 8, f->slot, limit))
		return false;
	if (rule->saved_bp) {
		saved += (uintptr_t)(intptr_t)rule->bp;
		if (!on_stack(saved, f->slot, limit))
			return false;
		bp = load(saved);
	}
	return frame_at(cfa - 8, bp, ret);
}
#endif

/* The frame outside of f; false where the stack ends. */
static REC_INLINE bool next_frame(struct rec_walk *k,
				  const struct rec_frame *f,
				  uintptr_t *limit, struct rec_frame *ret)
{
	const struct rec_rule *rule = rule_of(k, f->pc);

	switch (rule->kind) {
#if defined(__x86_64__)
	case REC_RULE_SP:
	case REC_RULE_BP:
	case REC_RULE_DEREF:
		return by_rule(rule, f, *limit, ret);
	case REC_RULE_SIGNAL:
		return interrupted(k, f, limit, ret);
#endif
	case REC_RULE_FP:
		return by_frame_pointer(f, *limit, ret);
	default:
		return false;
	}
}

/* Is it all still mapped?  msync tells, and does nothing else here. */
static bool still_mapped(uintptr_t low, uintptr_t high)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);

	low &= ~(page - 1);
	return !syscall(SYS_msync, low, high - low, MS_ASYNC);
}

/* Where the stack that sp is on ends; 0 if it is not known. */
static uintptr_t limit_of(struct rec_walk *k, uintptr_t sp)
{
	if (rec_likely(sp >= k->low && sp < k->high))
		return k->high;
	if (sp >= k->other_low && sp < k->other_high &&
	    still_mapped(sp, k->other_high))
		return k->other_high;
	if (!rec_mapping_at(sp, &k->other_low, &k->other_high))
		k->other_low = k->other_high = 0;
	return k->other_high;
}

/*
 * Bounds of the thread's own stack: of the first thread, what the linker kept;
 * of others the thread control block, which lies at the stack's end (glibc,
 * nptl/allocatestack.c, 2.36), if it is in the same mapping.
 */
void rec_stack_start(struct rec_writer *w)
{
	struct rec_walk *k = &w->walk;
	uintptr_t sp = (uintptr_t)__builtin_frame_address(0);
	uintptr_t end = &__libc_stack_end ? (uintptr_t)__libc_stack_end : 0;
	uintptr_t self = (uintptr_t)__builtin_thread_pointer();

	k->base = k->top = TRACE_DEPTH_MAX;
	k->whole = false;
	k->id = 0;
	k->low = k->high = k->other_low = k->other_high = 0;
	if (sp < end && end - sp < MAIN_STACK_MAX) {
		k->low = end - MAIN_STACK_MAX;
		k->high = end & ~(uintptr_t)7;
		return;
	}
	if (!rec_mapping_at(sp, &k->low, &k->high))
		k->low = k->high = 0;
	else if (self > sp && self < k->high)
		k->high = self & ~(uintptr_t)7;
}

/* frames[from] on, at most n of them; those that are as they were. */
static unsigned verify(const struct rec_walk *k, unsigned from, unsigned n,
		       uintptr_t limit)
{
	unsigned end = k->top - from < n ? k->top : from + n;
	unsigned i = from + 1;

	while (i < end && k->frames[i].slot < limit &&
	       load(k->frames[i].slot) == k->frames[i].pc)
		i++;
	return i;
}

/* The fresh frames come in front of frames[at]; at == top: nothing is kept. */
static void join(struct rec_walk *k, unsigned n_fresh, unsigned at)
{
	unsigned kept = k->top - at;

	if (!kept) {
		at = k->top = TRACE_DEPTH_MAX;
	} else if (at < n_fresh) {
		memmove(&k->frames[REC_FRAMES - kept], &k->frames[at],
			kept * sizeof(k->frames[0]));
		at = REC_FRAMES - kept;
		k->top = REC_FRAMES;
	}
	k->base = at - n_fresh;
	memcpy(&k->frames[k->base], k->fresh, n_fresh *
	       sizeof(k->frames[0]));
}

/* Frames outside of the last one, until there are enough. */
static REC_APART void extend(struct rec_walk *k, uintptr_t *limit)
{
	while (!k->whole && k->top - k->base < rec.depth) {
		if (k->top == REC_FRAMES) {
			unsigned n = k->top - k->base;

			memmove(k->frames, &k->frames[k->base],
				n * sizeof(k->frames[0]));
			k->base = 0;
			k->top = n;
		}
		if (next_frame(k, &k->frames[k->top - 1], limit,
			       &k->frames[k->top]))
			k->top++;
		else
			k->whole = true;
	}
}

/*
 * Walk from f outwards until a frame of the last walk is met.  True if
 * nothing at all has changed.
 */
static bool walk(struct rec_walk *k, struct rec_frame f, uintptr_t limit)
{
	unsigned last_base = k->base, last_top = k->top;
	unsigned j = k->base;
	unsigned n = 0;
	bool more = true;

	for (;; more = next_frame(k, &f, &limit, &f)) {
		if (!more || n == rec.depth) {
			k->top = j = last_top;
			join(k, n, j);
			k->whole = !more;
			return false;
		}
		while (j < last_top && k->frames[j].slot < f.slot)
			j++;
		if (j < last_top && k->frames[j].slot == f.slot &&
		    k->frames[j].pc == f.pc && k->frames[j].bp == f.bp)
			break;
		k->fresh[n++] = f;
	}
	k->top = verify(k, j, rec.depth - n, limit);
	k->whole &= k->top == last_top;
	if (!n && j == last_base && k->top == last_top &&
	    (k->whole || k->top - k->base == rec.depth))
		return true;
	join(k, n, j);
	extend(k, &limit);
	return false;
}

static void forget_rules(struct rec_walk *k)
{
	memset(k->rules, 0, sizeof(k->rules));
	k->base = k->top = TRACE_DEPTH_MAX;
	k->whole = false;
	k->id = 0;
}

uint32_t rec_stack(struct rec_writer *w, const struct rec_frame *caller)
{
	struct rec_walk *k = &w->walk;
	uint32_t modules = __atomic_load_n(&rec.modules, __ATOMIC_ACQUIRE);
	uintptr_t limit;

	if (rec.no_stacks)
		return 0;
	if (rec_unlikely(k->modules != modules)) {
		forget_rules(k);
		k->modules = modules;
	}
	limit = limit_of(k, caller->slot);
	if (!limit)
		return 0;
	if (!walk(k, *caller, limit) || !k->id)
		k->id = number_of(k, k->top - k->base);
	return k->id;
}
