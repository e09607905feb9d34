/* SPDX-License-Identifier: MIT */
#define PCRE2_CODE_UNIT_WIDTH 8

#include "analysis/search.h"

#include <pcre2.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/pattern.h"
#include "base/mem.h"
#include "base/sort.h"
#include "base/str.h"

enum {
	/* Steps of one match, and KiB for it; of PCRE2's interpreter too. */
	MATCH_LIMIT = 10000000, HEAP_LIMIT_KIB = 32 << 10,
	JIT_STACK = 32 << 10, JIT_STACK_MAX = 4 << 20,
	/*
	 * Steps are counted from the start of a call: long subjects are
	 * matched in windows, with so much behind them for what begins there.
	 */
	WINDOW = 1 << 20, AHEAD = 64 << 10,
};

struct search_pattern {
	pcre2_code *code;	/* owned */
	bool jit;
};

/* ---- patterns ---- */

static struct search_pattern *compile(const char *regex, const char *option,
				      struct err *err)
{
	struct search_pattern *p;
	PCRE2_UCHAR why[120];
	PCRE2_SIZE at;
	int code;
	pcre2_compile_context *context = pcre2_compile_context_create(NULL);
	pcre2_code *compiled;

	/* Lines are strings: their zeros end them. */
	pcre2_set_newline(context, PCRE2_NEWLINE_NUL);
	compiled = pcre2_compile((PCRE2_SPTR)regex, PCRE2_ZERO_TERMINATED,
				 PCRE2_NEVER_UTF | PCRE2_MULTILINE, &code, &at,
				 context);
	pcre2_compile_context_free(context);
	if (!compiled) {
		pcre2_get_error_message(code, why, sizeof(why));
		err_set(err, ERR_USAGE, "%s: '%.60s': %s at character %zu",
			option, regex, (const char *)why, (size_t)at + 1);
		return NULL;
	}
	p = mem_alloc(sizeof(*p));
	p->code = compiled;
	p->jit = !pcre2_jit_compile(compiled, PCRE2_JIT_COMPLETE |
				    PCRE2_JIT_PARTIAL_HARD);
	return p;
}

struct search_pattern *search_compile(const char *regex, struct err *err)
{
	if (*regex)
		return compile(regex, "--search", err);
	err_set(err, ERR_USAGE, "--search: the pattern is empty");
	return NULL;
}

static int hex_digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' :
	       c >= 'a' && c <= 'f' ? c - 'a' + 10 :
	       c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

struct search_pattern *search_compile_hex(const char *hex, struct err *err)
{
	struct search_pattern *ret = NULL;
	struct str regex;
	const char *p = hex;

	str_init(&regex);
	while (*p) {
		if (*p == ' ') {
			p++;
			continue;
		}
		if (hex_digit(p[0]) < 0 || hex_digit(p[1]) < 0)
			break;
		str_printf(&regex, "\\x%.2s", p);
		p += 2;
	}
	if (*p || !regex.len) {
		err_set(err, ERR_USAGE, "--search-hex: '%.60s' is not bytes in "
			"hexadecimal", hex);
		err_hint(err, "Two digits for each, as in "
			 "--search-hex='7f 45 4c 46'.");
	} else {
		ret = compile(regex.text, "--search-hex", err);
	}
	str_fini(&regex);
	return ret;
}

void search_pattern_free(struct search_pattern *p)
{
	if (!p)
		return;
	pcre2_code_free(p->code);
	free(p);
}

/* ---- matching ---- */

/* What one worker finds. */
struct finder {
	const struct search_pattern *pattern;
	pcre2_general_context *memory;	/* owned */
	pcre2_match_data *data;		/* owned */
	pcre2_match_context *context;	/* owned */
	pcre2_jit_stack *stack;		/* owned */
	struct search found;
	size_t cap, limit;
	vaddr last;		/* the last block with a match */
};

static void *take(size_t size, void *unused)
{
	(void)unused;
	return mem_alloc(size);
}

static void give(void *p, void *unused)
{
	(void)unused;
	free(p);
}

static void finder_init(struct finder *f, const struct search_pattern *p,
			size_t limit)
{
	*f = (struct finder){ .pattern = p, .limit = limit };
	f->memory = pcre2_general_context_create(take, give, NULL);
	f->data = pcre2_match_data_create(1, f->memory);
	f->context = pcre2_match_context_create(f->memory);
	/* Without one of its own it uses 32K of ours. */
	f->stack = pcre2_jit_stack_create(JIT_STACK, JIT_STACK_MAX, NULL);
	pcre2_set_match_limit(f->context, MATCH_LIMIT);
	pcre2_set_heap_limit(f->context, HEAP_LIMIT_KIB);
	pcre2_jit_stack_assign(f->context, NULL, f->stack);
}

static void finder_fini(struct finder *f)
{
	pcre2_jit_stack_free(f->stack);
	pcre2_match_context_free(f->context);
	pcre2_match_data_free(f->data);
	pcre2_general_context_free(f->memory);
}

enum outcome {
	MATCH,
	NO_MATCH,		/* or given up */
	CUT,			/* what lies behind the end decides */
};

/* The next match in bytes[at, n). */
static enum outcome match(struct finder *f, const uint8_t *bytes, uint64_t n,
		  uint64_t at, uint32_t options)
{
	const pcre2_code *code = f->pattern->code;
	int rc;

	options |= PCRE2_NOTEMPTY;
	if (f->pattern->jit && !(options & PCRE2_ANCHORED))
		rc = pcre2_jit_match(code, bytes, n, at, options, f->data,
				     f->context);
	else
		rc = pcre2_match(code, bytes, n, at, options, f->data,
				 f->context);
	if (rc >= 0)
		return MATCH;
	if (rc == PCRE2_ERROR_PARTIAL)
		return CUT;
	if (rc != PCRE2_ERROR_NOMATCH) {
		f->found.gave_up++;
		f->found.ended = f->found.gave_up >=
			SEARCH_GIVE_UP / PATTERN_WORKERS;
	}
	return NO_MATCH;
}

static void add_hit(struct finder *f, const struct pattern_piece *p,
		    uint64_t from, uint64_t to)
{
	struct search *s = &f->found;
	struct search_hit *hit;

	s->matches++;
	s->matched_bytes += to - from;
	if (s->n == f->limit)
		return;
	hit = &MEM_PUSH(s->hits, s->n, f->cap);
	*hit = (struct search_hit){
		.addr = p->addr + from, .n = to - from,
		.bytes = p->bytes + from, .in_block = p->block != NULL,
	};
	if (p->block)
		hit->block = *p->block;
}

/*
 * All matches that begin in [from, to) of a piece; where the next one can
 * begin.
 */
static uint64_t match_window(struct finder *f, const struct pattern_piece *p,
			     uint64_t from, uint64_t to)
{
	const PCRE2_SIZE *pair = pcre2_get_ovector_pointer(f->data);
	uint64_t end = min_u64(p->n, to + AHEAD);
	uint32_t options = end < p->n ? PCRE2_PARTIAL_HARD : 0;

	while (from < to) {
		enum outcome outcome = match(f, p->bytes, end, from, options);

		if (outcome == NO_MATCH || pair[0] >= to)
			break;
		from = max_u64(from, pair[0]) + 1;
		if (outcome == CUT)
			outcome = match(f, p->bytes, p->n, pair[0],
					PCRE2_ANCHORED);
		/* With \K a match can end before it starts. */
		if (outcome != MATCH || pair[1] <= pair[0])
			continue;
		add_hit(f, p, pair[0], pair[1]);
		from = max_u64(from, pair[1]);
	}
	return max_u64(from, to);
}

static void search_piece(void *worker, const struct pattern_piece *p)
{
	struct finder *f = worker;
	uint64_t before = f->found.matches;

	if (f->found.ended)
		return;
	f->found.bytes += p->n;
	for (uint64_t at = 0; at < p->n && !f->found.ended;)
		at = match_window(f, p, at, min_u64(p->n, at + WINDOW));
	if (!p->block || f->found.matches == before ||
	    p->block->addr == f->last)
		return;
	f->found.blocks++;
	f->last = p->block->addr;
}

/* ---- memory that is in no block ---- */

static bool has_blocks(const struct heap_extent *x)
{
	return x->kind == EXTENT_BLOCKS || x->kind == EXTENT_MMAPPED;
}

static void search_range(struct finder *f, struct space *sp, vaddr at,
			 vaddr end)
{
	struct pattern_piece piece = { .block = NULL };

	while (at < end && pattern_next(sp, &at, end, true, &piece)) {
		search_piece(f, &piece);
		at += piece.n;
	}
}

/* Between the extents that consist of blocks. */
static void search_rest(struct finder *f, struct space *sp,
			const struct heap *h)
{
	size_t x = 0;

	for (size_t i = 0; i < sp->n_segs; i++) {
		const struct seg *seg = &sp->segs[i];
		vaddr at = seg->start;

		if (seg->flags & SEG_FROM_FILE)
			continue;
		while (x < h->n_extents && h->extents[x].end <= seg->start)
			x++;
		for (size_t k = x; k < h->n_extents &&
		     h->extents[k].start < seg->end; k++) {
			if (!has_blocks(&h->extents[k]))
				continue;
			if (h->extents[k].start > at)
				search_range(f, sp, at, h->extents[k].start);
			at = max_u64(at, h->extents[k].end);
		}
		if (at < seg->end)
			search_range(f, sp, at, seg->end);
	}
}

/* ---- the answer ---- */

static void add_found(struct search *s, struct search *more, size_t limit)
{
	s->hits = mem_realloc(s->hits, (s->n + more->n + 1) *
			      sizeof(*s->hits));
	if (more->n)
		memcpy(s->hits + s->n, more->hits,
		       more->n * sizeof(*s->hits));
	s->n += more->n;
	SORT_BY(s->hits, s->n, addr);
	s->n = min_u64(s->n, limit);
	s->matches += more->matches;
	s->matched_bytes += more->matched_bytes;
	s->blocks += more->blocks;
	s->bytes += more->bytes;
	s->gave_up += more->gave_up;
	s->ended |= more->ended;
	free(more->hits);
}

void search_init(struct search *s, const struct search_pattern *pattern,
		 const struct space *sp, const struct heap *h,
		 enum search_in in, size_t limit, struct progress *p)
{
	struct finder finders[PATTERN_WORKERS + 1];
	void *workers[PATTERN_WORKERS];
	struct space copy = *sp;

	*s = (struct search){ .n = 0 };
	progress_phase(p, "searching");
	for (size_t i = 0; i < countof(finders); i++)
		finder_init(&finders[i], pattern, limit);
	for (size_t i = 0; i < PATTERN_WORKERS; i++)
		workers[i] = &finders[i];
	pattern_each(sp, h, in == SEARCH_BLOCKS ? PATTERN_USED : PATTERN_ANY,
		     search_piece, workers, p);
	if (in == SEARCH_ALL)
		search_rest(&finders[PATTERN_WORKERS], &copy, h);
	for (size_t i = 0; i < countof(finders); i++) {
		add_found(s, &finders[i].found, limit);
		finder_fini(&finders[i]);
	}
}

void search_fini(struct search *s)
{
	free(s->hits);
	*s = (struct search){ .n = 0 };
}
