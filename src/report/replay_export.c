/* SPDX-License-Identifier: MIT */
/*
 * speedscope: the file format of its release 1.25, "sampled" profiles, whose
 * samples are stacks, outermost frame first, each with a weight.
 *
 * Massif: the output of valgrind 3.19, which ms_print and massif-visualizer
 * read.  A tree hangs on the allocation functions, callers are below.
 */
#include "report/replay_export.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/num.h"
#include "base/sort.h"

uint64_t replay_stack_bytes(const struct replay_input *in, uint32_t stack,
			    enum replay_metric metric, bool exact)
{
	const struct replay *r = in->replay;
	const struct profile_row *row = profile_find(&r->profile, stack);
	struct profile_figures f;

	if (exact)
		return replay_exact_bytes(metric, &r->sites[stack]);
	if (!row)
		return 0;
	profile_get(row, replay_view(metric), &f);
	return num_whole(f.bytes.value);
}

const char *replay_path(const struct replay_input *in, const char *path)
{
	const char *slash = in->redact ? strrchr(path, '/') : NULL;

	return slash ? slash + 1 : path;
}

/* ---- speedscope ---- */

static void json_text(struct out *o, const char *text)
{
	json_write_string(o, text, strlen(text));
}

static void speedscope_frames(const struct replay_input *in, struct out *o)
{
	const struct frames *f = in->frames;

	for (size_t i = 0; i < f->n_frames; i++) {
		const struct frame_function *function =
			frames_function(f, (uint32_t)i);

		out_adds(o, i ? ",\n" : "\n");
		out_adds(o, "{\"name\":");
		json_text(o, function->name);
		out_adds(o, ",\"file\":");
		json_text(o, function->file[0]
			  ? replay_path(in, function->file)
			  : function->object);
		if (f->frames[i].line)
			out_printf(o, ",\"line\":%" PRIu64,
				   f->frames[i].line);
		out_addc(o, '}');
	}
}

static void speedscope_stack(const struct replay_input *in, uint32_t stack,
			     bool first, struct out *o)
{
	uint32_t frames[TRACE_DEPTH_MAX];
	size_t n = sites_frames(in->frames, stack, frames, TRACE_DEPTH_MAX);

	out_adds(o, first ? "[" : ",\n[");
	while (n--)
		out_printf(o, "%" PRIu32 "%s", frames[n], n ? "," : "");
	out_addc(o, ']');
}

static void speedscope_profile(const struct replay_input *in,
			       enum replay_metric metric, bool exact,
			       const char *name, struct out *o)
{
	uint64_t total = 0;
	bool first = true;

	out_printf(o, "{\"type\":\"sampled\",\"name\":\"%s, %s\","
		   "\"unit\":\"bytes\",\n\"samples\":[", name,
		   exact ? "exact" : "estimated");
	for (uint32_t i = 0; i < in->replay->n_sites; i++)
		if (replay_stack_bytes(in, i, metric, exact)) {
			speedscope_stack(in, i, first, o);
			first = false;
		}
	out_adds(o, "],\n\"weights\":[");
	first = true;
	for (uint32_t i = 0; i < in->replay->n_sites; i++) {
		uint64_t bytes = replay_stack_bytes(in, i, metric, exact);

		if (!bytes)
			continue;
		out_printf(o, "%s%" PRIu64, first ? "" : ",", bytes);
		first = false;
		total += bytes;
	}
	out_printf(o, "],\n\"startValue\":0,\"endValue\":%" PRIu64 "}", total);
}

/* Frames get their numbers when they are first asked for. */
static void number_frames(const struct replay_input *in)
{
	uint32_t frames[TRACE_DEPTH_MAX];

	for (uint32_t i = 0; i < in->replay->n_sites; i++)
		if (in->replay->sites[i].allocations)
			sites_frames(in->frames, i, frames, TRACE_DEPTH_MAX);
}

void speedscope_write(const struct replay_input *in, struct out *o)
{
	bool at = in->replay->options.mark == MARK_TIME;
	bool first = true;
	const struct {
		enum replay_metric metric;
		const char *name;
	} views[] = {
		{ METRIC_PEAK, at ? "live at the time" : "live at the peak" },
		{ METRIC_END, "live at the end" },
		{ METRIC_ALLOCATED, "allocated" },
	};

	number_frames(in);
	out_adds(o, "{\"$schema\":\"https://www.speedscope.app/"
		 "file-format-schema.json\",\n\"exporter\":\"heapcore\","
		 "\"activeProfileIndex\":0,\n\"shared\":{\"frames\":[");
	speedscope_frames(in, o);
	out_adds(o, "]},\n\"profiles\":[\n");
	for (size_t i = 0; i < countof(views); i++)
		for (int exact = in->only_exact; exact <= in->exact; exact++) {
			if (in->live_only && views[i].metric != METRIC_END)
				continue;
			if (!first)
				out_adds(o, ",\n");
			first = false;
			speedscope_profile(in, views[i].metric, exact,
					   views[i].name, o);
		}
	out_adds(o, "]}\n");
}

/* ---- Massif ---- */

enum { SNAPSHOTS = 100, THRESHOLD = 100 /* a hundredth is shown */ };

/* A stack with something, its frames innermost first. */
struct leaf {
	uint64_t bytes;
	uint32_t *frames;	/* owned */
	size_t n;
};

/* Leaves from a place on that have the same frame there. */
struct branch {
	uint64_t bytes;
	size_t from, n;
};

static int compare_leaves(const void *a, const void *b)
{
	const struct leaf *x = a, *y = b;

	for (size_t i = 0; i < x->n && i < y->n; i++)
		if (x->frames[i] != y->frames[i])
			return x->frames[i] < y->frames[i] ? -1 : 1;
	return ORDER(x->n, y->n);
}

static int compare_branches(const void *a, const void *b)
{
	const struct branch *x = a, *y = b;

	return ORDER(y->bytes, x->bytes) ?: ORDER(x->from, y->from);
}

static struct leaf *find_leaves(const struct replay_input *in,
				enum replay_metric metric, bool exact,
				size_t *ret_n, uint64_t *ret_total)
{
	struct leaf *ret = mem_zalloc((in->replay->n_sites + 1) *
				      sizeof(*ret));
	uint32_t frames[TRACE_DEPTH_MAX];
	size_t n = 0;

	*ret_total = 0;
	for (uint32_t i = 0; i < in->replay->n_sites; i++) {
		struct leaf *l = &ret[n];

		l->bytes = replay_stack_bytes(in, i, metric, exact);
		if (!l->bytes)
			continue;
		l->n = sites_frames(in->frames, i, frames, TRACE_DEPTH_MAX);
		l->frames = mem_alloc((l->n + 1) * sizeof(*frames));
		memcpy(l->frames, frames, l->n * sizeof(*frames));
		*ret_total += l->bytes;
		n++;
	}
	SORT(ret, n, compare_leaves);
	*ret_n = n;
	return ret;
}

/* Those that end here are in none. */
static size_t find_branches(const struct leaf *leaves, size_t n, size_t depth,
			    struct branch *ret)
{
	size_t n_ret = 0;

	for (size_t i = 0; i < n; i++) {
		if (leaves[i].n <= depth)
			continue;
		if (!n_ret || leaves[ret[n_ret - 1].from].frames[depth] !=
			      leaves[i].frames[depth])
			ret[n_ret++] = (struct branch){ .from = i };
		ret[n_ret - 1].bytes += leaves[i].bytes;
		ret[n_ret - 1].n = i + 1 - ret[n_ret - 1].from;
	}
	SORT(ret, n_ret, compare_branches);
	return n_ret;
}

static void massif_place(const struct replay_input *in, uint32_t frame,
			 struct out *o)
{
	const struct frames *f = in->frames;
	const struct named_frame *at = &f->frames[frame];
	const struct frame_function *function = frames_function(f, frame);

	out_printf(o, "0x%" PRIX64 ": %s", at->addr ? at->addr - 1 : 0,
		   function->name);
	if (at->line && function->file[0])
		out_printf(o, " (%s:%" PRIu64 ")\n",
			   replay_path(in, function->file), at->line);
	else if (function->object[0])
		out_printf(o, " (in %s)\n", function->object);
	else
		out_addc(o, '\n');
}

/* frame UINT32_MAX: the root.  As deep as stacks are. */
static void massif_tree(const struct replay_input *in,
			const struct leaf *leaves, size_t n, uint64_t bytes,
			uint64_t total, uint32_t frame, size_t depth,
			struct out *o)
{
	AUTO_FREE struct branch *branches =
		mem_alloc((n + 1) * sizeof(*branches));
	size_t n_branches = find_branches(leaves, n, depth, branches);
	size_t shown = 0;
	uint64_t rest = 0;

	while (shown < n_branches &&
	       branches[shown].bytes >= total / THRESHOLD)
		shown++;
	for (size_t i = shown; i < n_branches; i++)
		rest += branches[i].bytes;
	out_pad(o, ' ', depth);
	out_printf(o, "n%zu: %" PRIu64 " ", shown + (shown < n_branches),
		   bytes);
	if (frame == UINT32_MAX)
		out_adds(o, "(heap allocation functions) malloc/new/new[], "
			 "--alloc-fns, etc.\n");
	else
		massif_place(in, frame, o);
	for (size_t i = 0; i < shown; i++) {
		const struct leaf *first = leaves + branches[i].from;

		massif_tree(in, first, branches[i].n, branches[i].bytes,
			    total, first->frames[depth], depth + 1, o);
	}
	if (shown == n_branches)
		return;
	out_pad(o, ' ', depth + 1);
	out_printf(o, "n0: %" PRIu64 " in %zu place%s, below massif's "
		   "threshold (1.00%%)\n", rest, n_branches - shown,
		   n_branches - shown == 1 ? "" : "s, all");
}

static uint64_t massif_snapshot(uint64_t number, double seconds,
				uint64_t bytes, const char *tree,
				struct out *o)
{
	out_printf(o, "#-----------\nsnapshot=%" PRIu64 "\n#-----------\n"
		   "time=%.0f\nmem_heap_B=%" PRIu64 "\nmem_heap_extra_B=0\n"
		   "mem_stacks_B=0\nheap_tree=%s\n", number,
		   seconds * 1e3, bytes, tree);
	return number + 1;
}

static uint64_t massif_detail(const struct replay_input *in,
			      enum replay_metric metric, bool exact,
			      uint64_t number, double seconds,
			      const char *tree, struct out *o)
{
	uint64_t total;
	size_t n;
	AUTO_FREE struct leaf *leaves = find_leaves(in, metric, exact, &n,
						    &total);

	number = massif_snapshot(number, seconds, total, tree, o);
	massif_tree(in, leaves, n, total, total, UINT32_MAX, 0, o);
	for (size_t i = 0; i < n; i++)
		free(leaves[i].frames);
	return number;
}

void massif_write(const struct replay_input *in, bool exact,
		  const char *command_line, struct out *o)
{
	const struct replay *r = in->replay;
	const struct timeline *line = &r->timeline;
	const char *program = trace_meta_value(in->trace, "program");
	double marked = replay_seconds(in, exact || r->options.mark != MARK_PEAK
		? r->mark.tick : r->estimated_peak.tick);
	size_t steps = timeline_steps(line);
	bool done = false;
	uint64_t n = 0;

	out_printf(o, "desc: %s\ncmd: ", command_line);
	for (const char *p = program ? replay_path(in, program) : "?"; *p;
	     p++)
		out_addc(o, *p < ' ' ? '?' : *p);
	out_adds(o, "\ntime_unit: ms\n");
	n = massif_snapshot(n, 0, 0, "empty", o);
	for (size_t i = 0; i < SNAPSHOTS; i++) {
		size_t from = i * steps / SNAPSHOTS;
		size_t to = (i + 1) * steps / SNAPSHOTS;
		double at = replay_seconds(in, min_u64(r->last_tick,
			line->start + ((uint64_t)to << line->shift)));

		if (from == to)
			continue;
		if (!done && at >= marked) {
			n = massif_detail(in, METRIC_PEAK, exact, n, marked,
					  "peak", o);
			done = true;
		}
		n = massif_snapshot(n, at, timeline_max(line, !exact, from,
							to), "empty", o);
	}
	massif_detail(in, METRIC_END, exact, n,
		      replay_seconds(in, r->last_tick), "detailed", o);
}
