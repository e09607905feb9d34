/* SPDX-License-Identifier: MIT */
#include "analysis/standout_in.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"

/* Thresholds are shares of private memory that is stored. */
#define SHARE_MIN 0.10
#define UNDECODED_MIN 0.001	/* of the heaps */

enum { BYTES_MIN = 1 << 20 };	/* below, a share means nothing */

/* ---- items ---- */

static void add_item(struct standout *s, const char *rule, uint64_t weight,
		     char *text)
{
	size_t i = s->n_items;

	while (i && s->item[i - 1].weight < weight) {
		s->item[i] = s->item[i - 1];
		i--;
	}
	s->item[i] = (struct standout_item){ rule, weight, text };
	if (s->n_items < STANDOUT_MAX)
		s->n_items++;
	else
		free(s->item[STANDOUT_MAX].text);
	free(s->nothing);
	s->nothing = NULL;
}

static char *format(const char *fmt, va_list ap)
{
	char *text;
	va_list again;
	int n;

	va_copy(again, ap);
	n = vsnprintf(NULL, 0, fmt, again);
	va_end(again);
	text = mem_alloc((size_t)(n < 0 ? 0 : n) + 1);
	*text = '\0';
	if (n > 0)
		vsnprintf(text, (size_t)n + 1, fmt, ap);
	return text;
}

static void free_advice(struct standout_advice *a)
{
	free(a->text);
	free(a->reason);
	free(a->command);
}

void standout_add(struct standout *s, const char *rule, uint64_t weight,
		  const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	add_item(s, rule, weight, format(fmt, ap));
	va_end(ap);
}

void standout_drop(struct standout *s, const char *rule)
{
	for (size_t i = 0; i < s->n_items; i++) {
		if (strcmp(s->item[i].rule, rule))
			continue;
		free(s->item[i].text);
		s->n_items--;
		memmove(&s->item[i], &s->item[i + 1],
			(s->n_items - i) * sizeof(s->item[0]));
		return;
	}
}

static bool goes_before(const struct standout_advice *a,
			const struct standout_advice *b)
{
	return a->rank != b->rank ? a->rank > b->rank : a->bytes > b->bytes;
}

void standout_advise(struct standout *s, enum standout_rank rank,
		     const char *rule, uint64_t bytes, const char *text,
		     const char *reason)
{
	struct standout_advice new = {
		.rank = rank, .rule = rule, .bytes = bytes,
	};
	size_t at = s->n_advice;

	while (at && goes_before(&new, &s->advice[at - 1]))
		at--;
	if (at == ADVICE_MAX ||
	    (s->n_advice && s->advice[0].rank == ADVICE_ALONE))
		return;
	if (s->n_advice == ADVICE_MAX)
		free_advice(&s->advice[--s->n_advice]);
	memmove(&s->advice[at + 1], &s->advice[at],
		(s->n_advice++ - at) * sizeof(s->advice[0]));
	new.text = mem_strdup(text);
	new.reason = mem_strdup(reason);
	s->advice[at] = new;
}

void set_text(char **text, const char *fmt, ...)
{
	va_list ap;

	free(*text);
	va_start(ap, fmt);
	*text = format(fmt, ap);
	va_end(ap);
}

/* ---- figures ---- */

struct size size(uint64_t bytes)
{
	struct size s;

	num_format_size(s.text, bytes);
	return s;
}

bool is_much(const struct judge *j, uint64_t bytes)
{
	return bytes >= BYTES_MIN && num_share(bytes, j->total) >= SHARE_MIN;
}

static bool is_main(const struct arena *a)
{
	return a->contiguous || strstr(a->name, " main");
}

bool is_live(const struct space *sp)
{
	return sp->kind && !strcmp(sp->kind, "process");
}

const char *basis(const struct judge *j, enum where_row row)
{
	const struct where_amount *w = &j->in->where->row[row];

	if (w->stored == w->bytes)
		return "";
	return is_live(j->in->sp) ? " resident" : " in the file";
}

const char *allocator_of(const struct judge *j, const struct arena *a)
{
	const struct heap *h = j->in->heap;

	return a->allocator < h->n_allocators ?
		h->allocators[a->allocator].name : "glibc";
}

static void count_arenas(struct judge *j)
{
	const struct heap *h = j->in->heap;

	for (size_t i = 0; i < h->n_arenas; i++) {
		const struct arena *a = &h->arenas[i];
		const struct fragment_arena *f = &j->in->fragment->arenas[i];

		if (!a->addr || is_main(a) ||
		    strcmp(allocator_of(j, a), "glibc"))
			continue;
		j->thread_arenas++;
		j->orphans += a->attached == 0;
		j->thread_free += f->free.stored;
		j->thread_trimmable += f->trimmable.stored;
		j->largest_free = max_u64(j->largest_free, f->free.stored);
	}
}

/* ---- rules ---- */

/* The first that is of another kind than the first of all; else NULL. */
static const struct damage_case *other_kind(const struct damage *d)
{
	for (size_t i = 1; i < d->n_cases; i++) {
		enum damage_kind kind = d->cases[i].kind;

		if (kind != d->cases[0].kind && kind != DAMAGE_UNKNOWN &&
		    kind != DAMAGE_NOT_IN_FILE)
			return &d->cases[i];
	}
	return NULL;
}

/* Gravest of all: what the C library said, then what the walk met. */
static void rule_damage(struct judge *j)
{
	const struct damage *d = j->in->damage;
	const struct damage_case *other = other_kind(d);
	uint64_t n = d->n_cases + d->cases_dropped;
	char block[80] = "";

	if (d->abort.has_block)
		snprintf(block, sizeof(block), ": 0x%" PRIx64 ", %" PRIu64
			 " usable bytes", d->abort.block.addr,
			 d->abort.block.usable);
	if (d->abort.code)
		standout_add(j->s, "abort", UINT64_MAX,
			     "glibc ended the process: %s%s.  Usual cause: "
			     "%s.", d->abort.noticed, block, d->abort.meaning);
	else if (d->abort.found)
		standout_add(j->s, "abort", UINT64_MAX,
			     "The C library ended the process with a message.");
	if (n == 1)
		standout_add(j->s, "damage", UINT64_MAX - 1,
			     "The heap is damaged: %s.", d->cases[0].text);
	else if (n)
		standout_add(j->s, "damage", UINT64_MAX - 1,
			     "The heap is damaged in %" PRIu64 " places.  The "
			     "first: %s.%s%s%s", n, d->cases[0].text,
			     other ? "  The first of another kind: " : "",
			     other ? other->text : "", other ? "." : "");
}

static void rule_undecoded(struct judge *j)
{
	const struct where *w = j->in->where;
	uint64_t bytes = w->row[WHERE_UNDECODED].bytes;
	uint64_t heap = bytes + w->row[WHERE_USED].bytes +
		w->row[WHERE_FREE].bytes + w->row[WHERE_CACHED].bytes +
		w->row[WHERE_OVERHEAD].bytes;

	if (bytes && num_share(bytes, heap) >= UNDECODED_MIN)
		standout_add(j->s, "undecoded", UINT64_MAX - 2,
			     "%s of the heaps could not be decoded; all "
			     "figures may be off by so much.",
			     size(bytes).text);
}

/* What makes the report incomplete although every byte was decoded. */
static void rule_unread(struct judge *j)
{
	const struct heap *h = j->in->heap;

	for (size_t i = 0; i < h->n_notes; i++)
		if (h->notes[i].grave && !h->notes[i].skipped_bytes) {
			standout_add(j->s, "unread", UINT64_MAX - 3,
				     "Not all of the heap could be read: %s.",
				     h->notes[i].text);
			return;
		}
}

static void rule_trimmable(struct judge *j)
{
	const struct fragment *f = j->in->fragment;
	uint64_t bytes = f->total.trimmable.stored;
	uint64_t threads = j->thread_trimmable;
	char more[80] = "";

	if (!is_much(j, bytes))
		return;
	if (threads)
		snprintf(more, sizeof(more), "  %s of that is in the thread "
			 "arenas.", threads == bytes ? "All" :
			 size(threads).text);
	standout_add(j->s, "trimmable", bytes,
		     "%s of the free memory lies in whole pages: "
		     "malloc_trim(3) would return it.%s", size(bytes).text,
		     more);
}

void pin_text(const struct fragment_pin *p, char *ret, size_t n)
{
	const char *what = p->blocks == 1 ? "block" : "blocks";

	if (p->state == BLOCK_CACHED)
		what = "free blocks in thread caches";
	else if (p->state == BLOCK_OVERHEAD)
		what = p->blocks == 1 ? "piece of overhead"
				      : "pieces of overhead";
	snprintf(ret, n, "%" PRIu64 " %s of %s%" PRIu64 " bytes", p->blocks,
		 what, p->size >= USAGE_EXACT ? "at least " : "", p->size);
}

struct release largest_release(const struct judge *j)
{
	struct release best = { 0 }, r;

	for (size_t i = 0; i < j->in->heap->n_allocators; i++)
		if (release_of(j->in->fragment, j->in->heap, (uint32_t)i,
			       &r) && r.bytes > best.bytes)
			best = r;
	return best;
}

static void rule_release(struct judge *j)
{
	struct release r = largest_release(j);

	if (is_much(j, r.bytes))
		standout_add(j->s, "releasable", r.bytes,
			     "%s of the free memory are whole pages that %s "
			     "keeps: %s would release it.",
			     size(r.bytes).text,
			     j->in->heap->allocators[r.allocator].name,
			     r.call);
}

static void rule_pinned(struct judge *j)
{
	const struct fragment *f = j->in->fragment;
	uint64_t bytes = f->total.pinned_bytes;
	char pin[96];

	if (!is_much(j, bytes) || !f->n_pins)
		return;
	pin_text(&f->pins[0], pin, sizeof(pin));
	standout_add(j->s, "pinned", bytes,
		     "%s of the free memory is on %" PRIu64 " pages that also "
		     "hold blocks in use%s, and cannot be returned; %s hold %s "
		     "of it.", size(bytes).text, f->total.pinned_pages,
		     f->pins[0].state == BLOCK_OVERHEAD ?
		     " or the allocator's own data" : "", pin,
		     size(f->pins[0].free_bytes).text);
}

/* The largest mapping that has bytes in a row. */
static const struct where_map *largest_map(const struct where *w,
					   enum where_row row)
{
	const struct where_map *best = NULL;

	for (size_t i = 0; i < w->n_maps; i++) {
		const struct where_map *m = &w->maps[i];

		if (m->stored_row[row] &&
		    (!best || m->stored_row[row] > best->stored_row[row]))
			best = m;
	}
	return best;
}

/* What looks into the heap of a runtime; each name is runtime.c's. */
static const char *tool_of(const char *runtime)
{
	static const char *const tools[][2] = {
		{ "go", "net/http/pprof, for Go" },
		{ "v8", "node --heapsnapshot-signal=SIGUSR2, for Node" },
		{ "jvm", "jcmd PID GC.class_histogram, for Java" },
		{ "ocaml major", "memtrace, for OCaml" },
	};

	for (size_t i = 0; i < countof(tools); i++)
		if (!strcmp(tools[i][0], runtime))
			return tools[i][1];
	return "its own tools";
}

static void rule_runtime(struct judge *j)
{
	const struct heap *h = j->in->heap;
	uint64_t bytes = j->in->where->row[WHERE_RUNTIME].stored;
	const struct arena *most = h->arenas;
	char values[80] = "";

	if (!bytes || !is_much(j, bytes))
		return;
	for (size_t i = 0; i < h->n_arenas; i++)
		if (h->arenas[i].runtime_bytes > most->runtime_bytes)
			most = &h->arenas[i];
	if (most->runtime_used)
		snprintf(values, sizeof(values), " %s of it is in values.",
			 size(most->runtime_used).text);
	standout_add(j->s, "runtime", bytes, "%s%s is the heap of a language "
		     "runtime, %s, which is not walked: ask %s.%s",
		     size(bytes).text, basis(j, WHERE_RUNTIME), most->name,
		     tool_of(most->name), values);
}

static void rule_anonymous(struct judge *j)
{
	const struct where *w = j->in->where;
	uint64_t bytes = w->row[WHERE_ANONYMOUS].stored;
	const struct where_map *map = largest_map(w, WHERE_ANONYMOUS);

	if (!is_much(j, bytes) || !map)
		return;
	standout_add(j->s, "anonymous", bytes,
		     "%s%s is anonymous memory of no allocator known here; "
		     "the largest piece, %s, begins at 0x%" PRIx64 ".",
		     size(bytes).text, basis(j, WHERE_ANONYMOUS),
		     size(map->stored_row[WHERE_ANONYMOUS]).text, map->start);
}

static void rule_cached(struct judge *j)
{
	uint64_t bytes = j->in->where->row[WHERE_CACHED].stored;

	if (is_much(j, bytes))
		standout_add(j->s, "cached", bytes,
			     "%s%s is free, but in thread caches and "
			     "fastbins, where only the next request of the "
			     "same size finds it.", size(bytes).text,
			     basis(j, WHERE_CACHED));
}

static void rule_arenas(struct judge *j)
{
	char orphans[64] = "";

	if (!is_much(j, j->thread_free) || j->thread_arenas < ARENAS_MIN)
		return;
	if (j->orphans)
		snprintf(orphans, sizeof(orphans),
			 "; %" PRIu64 " of them have no thread", j->orphans);
	standout_add(j->s, "arenas", j->thread_free,
		     "%s%s is free in %" PRIu64 " thread arenas%s.",
		     size(j->thread_free).text, basis(j, WHERE_FREE),
		     j->thread_arenas, orphans);
}

static void rule_stacks(struct judge *j)
{
	const struct where *w = j->in->where;
	uint64_t living = w->row[WHERE_STACKS].stored;
	uint64_t dead = w->row[WHERE_DEAD_STACKS].stored;
	uint64_t n = 0;

	for (size_t i = 0; i < w->n_stacks; i++)
		n += w->stacks[i].thread != WHERE_NO_THREAD;
	if (is_much(j, living))
		standout_add(j->s, "stacks", living,
			     "%s%s is the stacks of %" PRIu64 " threads.",
			     size(living).text, basis(j, WHERE_STACKS), n);
	if (is_much(j, dead))
		standout_add(j->s, "dead-stacks", dead,
			     "%s%s is stacks of threads that are gone, kept "
			     "for new ones.", size(dead).text,
			     basis(j, WHERE_DEAD_STACKS));
}

static void rule_data(struct judge *j)
{
	const struct where *w = j->in->where;
	uint64_t bytes = w->row[WHERE_DATA].stored;
	const struct where_map *map = largest_map(w, WHERE_DATA);

	if (!is_much(j, bytes) || !map)
		return;
	standout_add(j->s, "data", bytes,
		     "%s%s is data of the program and its libraries; the "
		     "most, %s, is %s.", size(bytes).text,
		     basis(j, WHERE_DATA),
		     size(map->stored_row[WHERE_DATA]).text, map->what);
}

/*
 * Is there heap of which the core stores nothing at all?  Then it does not
 * tell memory that was never touched from what its program kept out.
 */
static bool kept_out(const struct judge *j)
{
	const struct space *sp = j->in->sp;

	for (size_t i = 0; i < sp->n_segs; i++)
		if (!sp->segs[i].stored && space_seg_anon(&sp->segs[i]) &&
		    (sp->segs[i].flags & SEG_W) &&
		    heap_extent_at(j->in->heap, sp->segs[i].start))
			return true;
	return false;
}

static bool is_much_of_used(const struct judge *j, uint64_t bytes)
{
	return bytes >= BYTES_MIN &&
	       num_share(bytes, j->in->where->row[WHERE_USED].bytes) >=
	       SHARE_MIN;
}

static void rule_untouched(struct judge *j)
{
	const struct where_amount *used = &j->in->where->row[WHERE_USED];
	bool known = space_pages_known(j->in->sp);
	uint64_t bytes = known ? used->pages.absent + used->pages.zero :
			 used->bytes - used->stored;

	if ((!known && j->in->sp->holes != HOLES_KEPT) ||
	    !is_much_of_used(j, bytes))
		return;
	if (!known && kept_out(j))
		standout_add(j->s, "untouched", bytes,
			     "%s of the blocks in use is not in the file: it "
			     "was never touched, or the program keeps it out "
			     "of cores.", size(bytes).text);
	else
		standout_add(j->s, "untouched", bytes,
			     "%s of the blocks in use was never touched and "
			     "costs no memory.", size(bytes).text);
}

static void rule_swapped(struct judge *j)
{
	uint64_t bytes = j->in->where->row[WHERE_USED].pages.swapped;

	if (is_much_of_used(j, bytes))
		standout_add(j->s, "swapped", bytes,
			     "%s of the blocks in use is in swap; the program "
			     "waits for it when it uses it again.",
			     size(bytes).text);
}

static void rule_one_size(struct judge *j)
{
	const struct usage *u = j->in->usage;
	const struct usage_class *best = NULL;

	for (size_t i = 0; i < u->n_classes; i++)
		if (!best || u->classes[i].used.bytes > best->used.bytes)
			best = &u->classes[i];
	/* A few large blocks are no pattern. */
	if (!best || best->used.blocks < 100 || best->min != best->max ||
	    !is_much(j, best->used.bytes))
		return;
	standout_add(j->s, "one-size", best->used.bytes,
		     "%s is %" PRIu64 " blocks in use of one size, %" PRIu64
		     " bytes.", size(best->used.bytes).text,
		     best->used.blocks, best->min);
}

/* ---- all of them ---- */

static void say_nothing(struct judge *j)
{
	const struct where *w = j->in->where;
	char share[NUM_MAX];

	if (!j->in->heap->n_arenas) {
		set_text(&j->s->nothing, "No heap was found.");
		return;
	}
	num_format_share(share, num_share(w->row[WHERE_FREE].stored +
					  w->row[WHERE_CACHED].stored,
					  j->total));
	set_text(&j->s->nothing, "Nothing unusual: %s free.", share);
}

void standout_init(struct standout *s, const struct standout_input *in)
{
	static void (*const rules[])(struct judge *) = {
		rule_damage, rule_undecoded, rule_unread, rule_trimmable,
		rule_release, rule_pinned, rule_runtime, rule_anonymous,
		rule_cached, rule_arenas, rule_stacks, rule_data,
		rule_untouched, rule_swapped, rule_one_size,
	};
	struct judge j = { .s = s, .in = in, .total = in->where->total.stored };

	*s = (struct standout){ 0 };
	count_arenas(&j);
	for (size_t i = 0; i < countof(rules); i++)
		rules[i](&j);
	if (!s->n_items)
		say_nothing(&j);
	advise(&j);
}

void standout_fini(struct standout *s)
{
	for (size_t i = 0; i < s->n_items; i++)
		free(s->item[i].text);
	free(s->nothing);
	for (size_t i = 0; i < s->n_advice; i++)
		free_advice(&s->advice[i]);
	*s = (struct standout){ 0 };
}
