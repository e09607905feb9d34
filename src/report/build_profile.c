/* SPDX-License-Identifier: MIT */
/*
 * The profile that is still in the process: who holds the heap by the samples
 * that its allocator keeps, how that compares with the walk, and who made it
 * grow.
 */
#include <string.h>

#include "base/num.h"
#include "report/build.h"
#include "report/estimate.h"
#include "report/profiled.h"

/* ---- in words ---- */

static const struct column word_columns[1] = { COLUMN("text", "", TEXT) };

/* What the rate is known by. */
static const char *rate_source(const char *from)
{
	static const char *const sources[][2] = {
		{ "allocator", "as the allocator has it" },
		{ "variable", "as the allocator's variable has it" },
		{ "environment", "as its environment asked for" },
		{ "weights", "by the weights of the samples" },
		{ "default", "the default: nothing else is known" },
		{ "option", "as you say" },
	};

	for (size_t i = 0; from && i < countof(sources); i++)
		if (!strcmp(from, sources[i][0]))
			return sources[i][1];
	return "?";
}

static void add_live_words(struct table *t, const struct profiled *p,
			   const struct profiled_part *part)
{
	const char *name =
		p->heap->allocators[part->profile->allocator].name;
	char bytes[NUM_MAX], rate[NUM_MAX];

	num_format_size(bytes, part->bytes);
	num_format_size(rate, part->rate.bytes);
	table_row(t);
	if (!part->rate.bytes) {
		table_printf(t, 0, "%s has kept %zu samples of its blocks in "
			     "use, of %s.  How far apart they are is not "
			     "known: nothing is estimated.  --rate=SIZE says "
			     "it.", name, part->profile->n, bytes);
		return;
	}
	table_printf(t, 0, "%s has kept %zu samples of its blocks in use, of "
		     "%s, one every %s on average: %s.", name,
		     part->profile->n, bytes, rate,
		     rate_source(part->rate.from));
}

static void add_estimate_words(struct table *t, const struct profiled *p)
{
	char value[NUM_MAX], low[NUM_MAX], high[NUM_MAX], exact[NUM_MAX];
	struct profile_figures f;
	struct interval i;

	profile_get(profile_total(&p->live.profile), VIEW_LIVE, &f);
	i = interval_score(&f.bytes, (double)p->rate);
	num_format_size(value, (uint64_t)f.bytes.value);
	num_format_size(low, (uint64_t)i.low);
	num_format_size(high, (uint64_t)i.high);
	num_format_size(exact, p->exact.total.used.bytes);
	table_row(t);
	table_printf(t, 0, "In use: estimate %s (%s to %s), exact %s.", value,
		     low, high, exact);
}

/* What makes the profile differ from the heap, beside chance. */
static void add_caveats(struct table *t, const struct profiled *p,
			const struct profiled_part *part)
{
	char bytes[NUM_MAX];

	if (!part->profile->blind)
		return;
	num_format_size(bytes, part->profile->blind);
	table_row(t);
	table_printf(t, 0, "%s samples nothing of the first %s that the first "
		     "thread asks for: what is left of that is in the exact "
		     "figures only.", p->heap->allocators[
		     part->profile->allocator].name, bytes);
}

static void add_cost(struct table *t, const struct profiled *p)
{
	char bytes[NUM_MAX];

	if (!p->cost)
		return;
	num_format_size(bytes, p->cost);
	table_row(t);
	table_printf(t, 0, "Samples have pages of their own, which take %s "
		     "more than the blocks would: not counted here.", bytes);
}

static void add_growth_words(struct table *t, const struct profiled *p,
			     const struct profiled_part *part)
{
	char bytes[NUM_MAX];

	num_format_size(bytes, part->bytes);
	table_row(t);
	table_printf(t, 0, "%s has grown %zu times, by %s%s.",
		     p->heap->allocators[part->profile->allocator].name,
		     part->profile->n, bytes, part->profile->n_pcs ? "" :
		     ", and has not kept who was asking");
}

static void build_words(struct report *r, const struct profiled *p)
{
	struct table *t = report_add(r, SECTION_PROFILE, "profile_text",
				     "THE PROFILE IN THE PROCESS",
				     word_columns, 1);
	bool live = false;

	t->form = TABLE_SENTENCES;
	t->text_only = true;
	for (size_t i = 0; i < p->n_parts; i++) {
		bool is_live = p->parts[i].profile->kind == HEAP_PROFILE_LIVE;

		live |= is_live;
		if (is_live)
			add_live_words(t, p, &p->parts[i]);
		else
			add_growth_words(t, p, &p->parts[i]);
	}
	if (live && p->rate)
		add_estimate_words(t, p);
	for (size_t i = 0; i < p->n_parts; i++)
		add_caveats(t, p, &p->parts[i]);
	add_cost(t, p);
	if (live)
		return;
	table_row(t);
	table_set_text(t, 0, "No allocator here has samples of its blocks in "
		       "use.  tcmalloc keeps some if it was started with "
		       "TCMALLOC_SAMPLE_PARAMETER=524288, jemalloc with "
		       "MALLOC_CONF=prof:true.");
}

/* ---- as data ---- */

enum {
	P_ALLOCATOR, P_KIND, P_RATE, P_FROM, P_BLIND, P_N, P_BYTES, P_COLUMNS
};

static const struct column part_columns[P_COLUMNS] = {
	[P_ALLOCATOR] = COLUMN("allocator", "", TEXT),
	[P_KIND] = COLUMN("kind", "", TEXT),
	[P_RATE] = COLUMN("rate", "", COUNT),
	[P_FROM] = COLUMN("rate_from", "", TEXT),
	[P_BLIND] = COLUMN("blind_bytes", "", BYTES),
	[P_N] = COLUMN("n", "", COUNT),
	[P_BYTES] = COLUMN("bytes", "", BYTES),
};

enum {
	A_ADDR, A_REQUESTED, A_ALLOCATED, A_WEIGHT, A_BORN, A_STACK,
	A_COLUMNS
};

static const struct column sample_columns[A_COLUMNS] = {
	[A_ADDR] = COLUMN("addr", "", ADDR),
	[A_REQUESTED] = COLUMN("requested_bytes", "", BYTES),
	[A_ALLOCATED] = COLUMN("allocated_bytes", "", BYTES),
	[A_WEIGHT] = COLUMN("weight_bytes", "", BYTES),
	[A_BORN] = COLUMN("before_newest_s", "", SECONDS,
			  .flags = COLUMN_FINE),
	[A_STACK] = COLUMN("stack", "", COUNT),
};

static void add_samples(struct table *t, const struct profiled *p,
			const struct profiled_part *part)
{
	for (size_t i = 0; i < part->profile->n; i++) {
		const struct heap_sample *s = &part->profile->samples[i];

		table_row(t);
		if (s->addr)
			table_set(t, A_ADDR, s->addr);
		table_set(t, A_REQUESTED, s->requested);
		table_set(t, A_ALLOCATED, s->allocated);
		if (s->weight)
			table_set(t, A_WEIGHT, s->weight);
		if (s->born_ns)
			table_set_real(t, A_BORN, (double)(p->newest_ns -
				s->born_ns) / 1e9);
		table_set(t, A_STACK, part->stacks[i]);
	}
}

static void build_parts(struct report *r, const struct profiled *p)
{
	struct table *t = report_add(r, SECTION_PROFILE, "profiles", "",
				     part_columns, P_COLUMNS);
	struct table *samples = report_add(r, SECTION_PROFILE, "samples", "",
					   sample_columns, A_COLUMNS);

	t->data_only = true;
	table_nest(t, samples);
	for (size_t i = 0; i < p->n_parts; i++) {
		const struct profiled_part *part = &p->parts[i];
		bool live = part->profile->kind == HEAP_PROFILE_LIVE;

		table_row(t);
		table_set_text(t, P_ALLOCATOR, p->heap->allocators[
			part->profile->allocator].name);
		table_set_text(t, P_KIND, live ? "live" : "growth");
		if (live && part->rate.bytes) {
			table_set(t, P_RATE, part->rate.bytes);
			table_set_text(t, P_FROM, part->rate.from);
		}
		if (part->profile->blind)
			table_set(t, P_BLIND, part->profile->blind);
		table_set(t, P_N, part->profile->n);
		table_set(t, P_BYTES, part->bytes);
		add_samples(samples, p, part);
	}
}

enum {
	T_SAMPLES, T_BYTES, T_BLOCKS = T_BYTES + ESTIMATE_COLUMNS,
	T_COLUMNS = T_BLOCKS + ESTIMATE_COLUMNS
};

static const struct column total_columns[T_COLUMNS] = {
	[T_SAMPLES] = COLUMN("samples", "", COUNT),
	ESTIMATE_OF_BYTES(T_BYTES, ESTIMATE_SHOWN, ESTIMATE_SHOWN),
	ESTIMATE_OF_BLOCKS(T_BLOCKS, ESTIMATE_SHOWN, ESTIMATE_SHOWN),
};

static void build_total(struct report *r, const struct profiled *p)
{
	struct table *t = report_add(r, SECTION_PROFILE, "profile", "",
				     total_columns, T_COLUMNS);
	const struct tally *used = &p->exact.total.used;
	struct profile_figures f;

	t->form = TABLE_OBJECT;
	t->data_only = true;
	profile_get(profile_total(&p->live.profile), VIEW_LIVE, &f);
	table_row(t);
	table_set(t, T_SAMPLES, f.bytes.n);
	if (!p->rate)
		return;
	estimate_set(t, T_BYTES, &f.bytes, (double)p->rate, &used->bytes);
	estimate_set(t, T_BLOCKS, &f.blocks, -1, &used->blocks);
}

/* ---- how old ---- */

enum {
	O_AGE, O_MIN, O_SAMPLES, O_BYTES,
	O_COLUMNS = O_BYTES + ESTIMATE_COLUMNS
};

static const struct column age_columns[O_COLUMNS] = {
	[O_AGE] = COLUMN("age", "", TEXT, .flags = COLUMN_NO_DATA,
			 .width = 30),
	[O_MIN] = DATA_COLUMN("min_s", SECONDS),
	[O_SAMPLES] = COLUMN("samples", "samples", COUNT, .width = 9),
	ESTIMATE_OF_BYTES(O_BYTES, ESTIMATE_SHOWN, ESTIMATE_HIDDEN),
};

static const struct {
	const char *name;
	double from_s;
} ages[] = {
	{ "below 1 s", 0 }, { "1 s - 10 s", 1 }, { "10 s - 100 s", 10 },
	{ "100 s - 1000 s", 100 }, { "1000 s - 10000 s", 1000 },
	{ "10000 s and more", 10000 },
};

static uint32_t age_of(const struct profiled *p, const struct heap_sample *s)
{
	double age = (double)(p->newest_ns - s->born_ns) / 1e9;
	uint32_t step = countof(ages) - 1;

	while (step && age < ages[step].from_s)
		step--;
	return step;
}

/* A core has no time of its own: ages are those at the newest sample. */
static void build_ages(struct report *r, const struct profiled *p)
{
	struct table *t = report_add(r, SECTION_PROFILE, "profile_ages",
				     "BEFORE THE NEWEST SAMPLE", age_columns,
				     O_COLUMNS);
	struct profile_figures f;
	struct profile by_age;

	t->whole = true;
	profile_init(&by_age, ESTIMATOR_HT);
	for (size_t i = 0; i < p->n_parts; i++) {
		const struct heap_profile *h = p->parts[i].profile;

		for (size_t k = 0; k < h->n && p->rate; k++) {
			struct sample s = profiled_sample(&p->parts[i], k);

			if (h->samples[k].born_ns)
				profile_add(&by_age,
					    age_of(p, &h->samples[k]), &s);
		}
	}
	for (uint32_t i = 0; i < countof(ages); i++) {
		const struct profile_row *row = profile_find(&by_age, i);

		if (!row)
			continue;
		profile_get(row, VIEW_LIVE, &f);
		table_row(t);
		table_set_text(t, O_AGE, ages[i].name);
		table_set_real(t, O_MIN, ages[i].from_s);
		table_set(t, O_SAMPLES, f.bytes.n);
		estimate_set(t, O_BYTES, &f.bytes, (double)p->rate, NULL);
	}
	profile_fini(&by_age);
}

/* ---- who made it grow ---- */

enum { G_SITE, G_BYTES, G_SHARE, G_TIMES, G_COLUMNS };

static const struct column growth_columns[G_COLUMNS] = {
	[G_SITE] = COLUMN("site", "", TEXT, .width = 40),
	[G_BYTES] = COLUMN("bytes", "bytes", BYTES, .flags = COLUMN_SUM,
			   .width = 10),
	[G_SHARE] = COLUMN("share", "share", SHARE, .flags = COLUMN_OF_TOTAL,
			   .width = 8, .part = G_BYTES + 1,
			   .whole = G_BYTES + 1),
	[G_TIMES] = COLUMN("times", "times", COUNT, .flags = COLUMN_SUM,
			   .width = 8),
};

static void build_growth_sites(struct report *r, const struct profiled *p)
{
	struct table *t = report_add(r, SECTION_PROFILE, "profile_growth",
				     "WHO MADE THE HEAP GROW", growth_columns,
				     G_COLUMNS);

	t->more = "other sites";
	for (size_t i = 0; i < p->growth_sites.n; i++) {
		const struct site *s = &p->growth_sites.sites[i];

		table_row(t);
		table_set_text(t, G_SITE, s->name);
		table_set(t, G_BYTES, s->exact.live_bytes);
		table_set(t, G_TIMES, s->exact.live_blocks);
	}
	table_sort(t, G_BYTES, false);
	if (t->n_rows)
		table_add_total(t);
}

/* ---- stacks ---- */

enum { K_STACK, K_COLUMNS };

static const struct column stack_columns[K_COLUMNS] = {
	[K_STACK] = COLUMN("stack", "", COUNT),
};

enum {
	F_PC, F_NAME, F_MODULE, F_FILE, F_LINE, F_INLINED, F_COLUMNS
};

static const struct column frame_columns[F_COLUMNS] = {
	[F_PC] = COLUMN("pc", "", ADDR),
	[F_NAME] = COLUMN("name", "", TEXT),
	[F_MODULE] = COLUMN("module", "", TEXT,
			    .flags = COLUMN_RAW | COLUMN_PATH),
	[F_FILE] = COLUMN("file", "", TEXT, .flags = COLUMN_PATH),
	[F_LINE] = COLUMN("line", "", COUNT),
	[F_INLINED] = COLUMN("inlined", "", FLAG),
};

/* All functions that an address is in, innermost first. */
static void add_frames(struct table *t, struct profiled *p, vaddr pc)
{
	struct frames *f = &p->frames;
	uint32_t i = frames_find(f, pc);

	for (bool more = true; more; i++) {
		const struct named_frame *frame = &f->frames[i];
		const struct frame_function *function = frames_function(f, i);

		more = frame->inlined;
		table_row(t);
		table_set(t, F_PC, frame->addr);
		table_set_text(t, F_NAME, function->name);
		if (frame->module)
			table_set_text(t, F_MODULE, trace_info(p->trace)->
				modules[frame->module - 1].path.text);
		if (function->file[0])
			table_set_text(t, F_FILE, function->file);
		if (frame->line)
			table_set(t, F_LINE, frame->line);
		if (frame->inlined)
			table_set(t, F_INLINED, true);
	}
}

static void build_profile_stacks(struct report *r, struct profiled *p)
{
	struct table *t = report_add(r, SECTION_PROFILE, "profile_stacks", "",
				     stack_columns, K_COLUMNS);
	struct table *frames = report_add(r, SECTION_PROFILE, "frames", "",
					  frame_columns, F_COLUMNS);
	uint32_t n = trace_info(p->trace)->n_stacks;

	t->data_only = true;
	table_nest(t, frames);
	for (uint32_t i = 1; i <= n; i++) {
		const vaddr *stack;
		size_t depth;

		table_row(t);
		table_set(t, K_STACK, i);
		stack = trace_stack(p->trace, i, &depth);
		for (size_t k = 0; k < depth; k++)
			add_frames(frames, p, stack[k]);
	}
}

void build_profile(struct report *r, const struct report_input *in)
{
	struct profiled *p = in->profiled;
	struct table *t;

	if (!p)
		return;
	build_words(r, p);
	build_parts(r, p);
	build_total(r, p);
	replay_add_sites(r, SECTION_PROFILE, "profile_sites",
			 "WHO HOLDS THE HEAP", &p->live_input);
	if (p->rate) {
		t = sample_add_classes(r, SECTION_PROFILE, "profile_classes",
				       "THE SAME BY SIZE, BESIDE THE WALK",
				       &p->classes, &p->exact, in->heap,
				       p->rate);
		t->more = "other sizes";
	}
	build_ages(r, p);
	build_growth_sites(r, p);
	build_profile_stacks(r, p);
}
