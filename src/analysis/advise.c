/* SPDX-License-Identifier: MIT */
#include "analysis/standout_in.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"

static struct standout_advice *add_advice(struct judge *j,
					  enum standout_rank rank,
					  const char *rule, uint64_t bytes)
{
	struct standout_advice *a = &j->s->advice[j->s->n_advice++];

	a->rank = rank;
	a->rule = rule;
	a->bytes = bytes;
	return a;
}

/* Did malloc itself give up?  NULL and what others print is no. */
static bool is_heap_abort(const char *code)
{
	static const char *const others[] = {
		"assertion", "stack-smashing", "fortify", "pointer-guard",
		"break-moved",
	};

	for (size_t i = 0; code && i < countof(others); i++)
		if (!strcmp(code, others[i]))
			return false;
	return code;
}

static bool has_word(const char *code, const char *const *words, size_t n)
{
	for (size_t i = 0; code && i < n; i++)
		if (strstr(code, words[i]))
			return true;
	return false;
}

/* By the gravest damaged place; without any, by what glibc noticed. */
static enum damage_kind kind_of_damage(const struct damage *d)
{
	static const char *const twice[] = {
		"double-free-tcache", "double-free-fasttop",
		"double-free-not-prev", "double-free-top", "prev-inuse",
	};
	static const char *const stale[] = {
		"unaligned", "-list", "fastbin",
	};

	if (d->n_cases && d->cases[0].kind != DAMAGE_UNKNOWN)
		return d->cases[0].kind;
	if (d->abort.code && !strcmp(d->abort.code, "double-free"))
		return DAMAGE_DOUBLE_FREE;
	if (!d->n_cases && has_word(d->abort.code, twice, countof(twice)))
		return DAMAGE_DOUBLE_FREE;
	if (has_word(d->abort.code, stale, countof(stale)))
		return DAMAGE_USE_AFTER_FREE;
	return DAMAGE_OVERFLOW;
}

static void advise_damage(struct judge *j)
{
	struct standout_advice *a = add_advice(j, ADVICE_ALONE,
					       "damage", 0);

	switch (kind_of_damage(j->in->damage)) {
	case DAMAGE_DOUBLE_FREE:
		set_text(&a->text, "Run the program with AddressSanitizer or "
			 "valgrind: they print both calls of free() and the "
			 "one that allocated the block.");
		set_text(&a->reason, "malloc sees only the second one, and "
			 "keeps no record of the first.");
		break;
	case DAMAGE_USE_AFTER_FREE:
		set_text(&a->text, "Run the program with AddressSanitizer or "
			 "valgrind: they stop at the write to the freed "
			 "block, and print who freed it.");
		set_text(&a->reason, "malloc notices an overwritten link only "
			 "when it follows it, long after the write.");
		break;
	default:
		set_text(&a->text, "Run the program with AddressSanitizer or "
			 "valgrind: they stop at the wrong write itself.");
		set_text(&a->reason, "malloc notices an overwritten header "
			 "only when it meets it, long after the write.");
		break;
	}
}

/*
 * A debugger can make the call in a process that knows nothing of it: gdb
 * uses the main thread, which must not be inside malloc with a lock held.
 */
static void advise_trim(struct judge *j, uint64_t bytes)
{
	struct standout_advice *a = add_advice(j, ADVICE_CERTAIN,
					       "trim", bytes);
	const struct space *sp = j->in->sp;
	char pid[16] = "PID";

	if (sp->pid && is_live(sp))
		snprintf(pid, sizeof(pid), "%" PRIu32, sp->pid);
	set_text(&a->text, "malloc_trim(3) with 0 would give back %s: let the "
		 "program call it after a peak, or do it from outside as "
		 "below.", size(bytes).text);
	set_text(&a->reason, "That hangs a process whose main thread is inside "
		 "malloc just then; free() alone returns only what is at the "
		 "end of a heap.");
	set_text(&a->command, "gdb -p %s -batch -ex 'call (int)malloc_trim(0)'",
		 pid);
}

static void advise_release(struct judge *j, uint64_t bytes)
{
	struct release r = largest_release(j);
	struct standout_advice *a = add_advice(j, ADVICE_CERTAIN,
					       "release", bytes);

	set_text(&a->text, "%s would give back %s: let the program call it "
		 "after a peak%s%s%s.", r.call, size(bytes).text,
		 r.setting ? ", or start it with " : "",
		 r.setting ? r.setting : "",
		 r.setting ? " in its environment" : "");
	set_text(&a->reason, "These are whole free pages; malloc_trim(3) does "
		 "not reach the memory of %s.",
		 j->in->heap->allocators[r.allocator].name);
}

/* The largest of the thread arenas would still keep what it keeps. */
static void advise_arenas(struct judge *j, uint64_t bytes)
{
	bool trims = j->s->n_advice &&
		!strcmp(j->s->advice[0].rule, "trim") &&
		j->thread_trimmable > j->thread_free / 2;
	struct standout_advice *a = add_advice(j, ADVICE_PERHAPS,
					       "arenas", bytes);

	set_text(&a->text, "MALLOC_ARENA_MAX=2 in the environment of the next "
		 "run may keep up to %s less, if its threads do not need that "
		 "at the same time.", size(bytes).text);
	set_text(&a->reason, "No thread can use what is free in the arena of "
		 "another%s.", trims ? "; the call above gives back most of "
		 "it too" : "");
}

/* The allocator that has most of the pinned memory, NULL if it is malloc's. */
static const char *pinned_in(const struct judge *j)
{
	const struct fragment *f = j->in->fragment;
	const char *name;
	size_t most = 0;

	for (size_t i = 1; i < f->n_arenas; i++)
		if (f->arenas[i].pinned_bytes > f->arenas[most].pinned_bytes)
			most = i;
	if (!f->n_arenas)
		return NULL;
	name = allocator_of(j, &j->in->heap->arenas[most]);
	return strcmp(name, "glibc") ? name : NULL;
}

static void advise_pinned(struct judge *j, uint64_t bytes)
{
	const struct fragment *f = j->in->fragment;
	const char *other = pinned_in(j);
	struct standout_advice *a = add_advice(j, ADVICE_PERHAPS,
					       "pinned", bytes);
	char trim[96] = "", pin[96];

	pin_text(&f->pins[0], pin, sizeof(pin));
	if (other)
		snprintf(trim, sizeof(trim), ": malloc_trim(3) does not reach "
			 "the memory of %s", other);
	else if (!is_much(j, f->total.trimmable.stored))
		snprintf(trim, sizeof(trim), ": malloc_trim(3) would give "
			 "back %s", f->total.trimmable.stored ?
			 size(f->total.trimmable.stored).text : "nothing");
	set_text(&a->text, "Allocate what lives long apart from what is freed "
		 "soon%s.", trim);
	set_text(&a->reason, "Up to %s of the free memory is pinned, most by "
		 "%s.", size(bytes).text, pin);
}

static void advise_elsewhere(struct judge *j)
{
	uint64_t bytes = j->in->where->row[WHERE_ANONYMOUS].stored;
	struct standout_advice *a = add_advice(j, ADVICE_PERHAPS,
					       "not-malloc", 0);
	char share[NUM_MAX];

	num_format_share(share, num_share(bytes, j->total));
	set_text(&a->text, "Look for mmap(2) or another allocator: this is "
		 "not malloc's memory.");
	set_text(&a->reason, "%s%s, %s of all, is anonymous memory that no "
		 "allocator known here has.", size(bytes).text,
		 basis(j, WHERE_ANONYMOUS), share);
}

/*
 * What fewer arenas may save.  Two are main_arena and one for all threads: of
 * no use to a process that has this limit already.
 */
static uint64_t spared_by_few_arenas(const struct judge *j)
{
	const struct heap *h = j->in->heap;

	for (size_t i = 0; i < h->n_allocators; i++)
		for (size_t k = 0; k < h->allocators[i].n_settings; k++) {
			const struct setting *s = &h->allocators[i].settings[k];

			if (!strcmp(s->name, "arena_max") && s->value &&
			    s->value <= 2)
				return 0;
		}
	if (j->thread_arenas < ARENAS_MIN ||
	    j->thread_free <= j->in->fragment->total.free.stored / 2)
		return 0;
	return j->thread_free - j->largest_free;
}

/*
 * The plan that would give back most of those that were not taken yet, and
 * much; none is certain before all that are certain were.
 */
static bool advise_next(struct judge *j, unsigned *taken)
{
	const struct fragment *f = j->in->fragment;
	const struct plan {
		bool certain;
		uint64_t bytes;
		void (*advise)(struct judge *j, uint64_t bytes);
	} plans[] = {
		{ true, f->total.trimmable.stored, advise_trim },
		{ true, largest_release(j).bytes, advise_release },
		{ false, spared_by_few_arenas(j), advise_arenas },
		{ false, f->n_pins ? f->total.pinned_bytes : 0,
		  advise_pinned },
	};
	const struct plan *best = NULL;

	for (size_t i = 0; i < countof(plans); i++) {
		const struct plan *p = &plans[i];

		if (*taken >> i & 1 || !is_much(j, p->bytes))
			continue;
		if (!best || p->certain > best->certain ||
		    (p->certain == best->certain && p->bytes > best->bytes))
			best = p;
	}
	if (!best)
		return false;
	*taken |= 1u << (best - plans);
	best->advise(j, best->bytes);
	return true;
}

/* Damage goes before all; where malloc's memory is little, look elsewhere. */
void advise(struct judge *j)
{
	const struct damage *d = j->in->damage;
	unsigned taken = 0;

	if (d->n_cases || is_heap_abort(d->abort.code)) {
		advise_damage(j);
		return;
	}
	while (j->s->n_advice < ADVICE_MAX && advise_next(j, &taken))
		;
	if (j->s->n_advice < ADVICE_MAX &&
	    is_much(j, j->in->where->row[WHERE_ANONYMOUS].stored))
		advise_elsewhere(j);
}

