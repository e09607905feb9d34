/* SPDX-License-Identifier: MIT */
/*
 * The first lines of the report on a trace, and the plot of its live heap.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/num.h"
#include "report/replay.h"

enum { PLOT_WIDTH = 66, PLOT_HEIGHT = 6, MARGIN = 8, ARGS_MAX = 32 };

/* Arguments are separated by zeros. */
static void add_arguments(struct str *s, const struct trace *t)
{
	const struct trace_info *info = trace_info(t);

	for (size_t i = 0; i < info->n_meta; i++) {
		const struct trace_text *v = &info->meta[i].value;
		size_t n = min_u64(v->len, ARGS_MAX);

		if (strcmp(info->meta[i].key.text, "arguments"))
			continue;
		for (size_t k = 0; k < n; k++)
			if (v->text[k])
				str_add_escaped(s, v->text + k, 1);
			else if (k + 1 < v->len)
				str_addc(s, ' ');
		if (n < v->len)
			str_adds(s, "...");
		return;
	}
	const char *program = trace_meta_value(t, "program");

	if (program)
		str_add_escaped(s, program, strlen(program));
	else
		str_addc(s, '?');
}

/* "trace.bin: appd --batch, 84.1 s, 412883190 events, complete" */
static void head_trace(struct report *r, const struct replay_input *in)
{
	const struct trace_info *info = trace_info(in->trace);
	const char *path = r->options->redact ? file_base_name(info->path)
					      : info->path;
	struct str *s = &r->head[0];

	str_add_escaped(s, path, strlen(path));
	str_adds(s, ": ");
	if (!r->options->redact) {
		add_arguments(s, in->trace);
		str_adds(s, ", ");
	}
	str_printf(s, "%.3g s, %" PRIu64 " events, %s",
		   replay_seconds(in, in->end_tick),
		   in->replay->n_events,
		   replay_complete(in->trace) ? "complete" : "INCOMPLETE");
}

void replay_rate_text(char ret[NUM_MAX], const struct replay_input *in,
		      uint64_t rate)
{
	enum sampler_unit unit = in->replay->options.unit;

	if (unit == UNIT_REQUESTED)
		num_format_size(ret, rate);
	else
		snprintf(ret, NUM_MAX, "%" PRIu64 " %s", rate,
			 unit == UNIT_WORDS ? "words" : "allocations");
}

enum { COARSE = 16 };	/* at fewer samples of the peak all may be half off */

/* What a heap of so few samples is better asked. */
static void add_coarse(struct str *s, const struct replay_input *in)
{
	uint64_t peak = in->sites->total.exact.marked_bytes;
	char size[NUM_MAX];

	if (!in->exact || in->replay->options.unit != UNIT_REQUESTED ||
	    peak / COARSE >= in->replay->options.rate)
		return;
	num_format_size(size, peak);
	str_printf(s, ".\n  Far too few for a heap of %s: heapcore replay "
		   "--exact says who allocates", size);
}

/* "sampled every 512K on average (seed 1): 211044 samples, 0.1% of ..." */
static void head_sampler(struct report *r, const struct replay_input *in)
{
	const struct replay *p = in->replay;
	uint64_t n = p->profile.total.view[VIEW_ALLOCATED].n;
	struct str *s = &r->head[1];
	double percent = 100 * num_share(n, p->allocations);
	char rate[NUM_MAX];

	if (in->only_exact) {
		str_printf(s, REPORT_OF_TRACE "%" PRIu64 " allocations",
			   p->allocations);
		return;
	}
	replay_rate_text(rate, in, p->options.rate);
	if (p->sampled) {
		str_printf(s, REPORT_OF_SAMPLES "%s on average while it was "
			   "recorded: %" PRIu64 " samples", rate, n);
		return;
	}
	str_printf(s, REPORT_OF_SAMPLES "%s on average (seed %" PRIu64 "): %"
		   PRIu64 " samples, %.*g%% of allocations", rate,
		   p->options.seed, n, percent < 99.5 ? 2 : 3, percent);
	add_coarse(s, in);
}

/* ---- the plot ---- */

struct plot {
	const struct timeline *line;
	unsigned curve;
	size_t steps;
	uint64_t top;
};

static uint64_t plot_column(const struct plot *p, size_t column)
{
	size_t from = column * p->steps / PLOT_WIDTH;
	size_t to = (column + 1) * p->steps / PLOT_WIDTH;

	return timeline_max(p->line, p->curve, from, to > from ? to
							       : from + 1);
}

/* Thirds of a cell: " ", ".", ":", "#". */
static char plot_cell(const struct plot *p, size_t column, unsigned row)
{
	double height = (double)plot_column(p, column) / (double)p->top *
			PLOT_HEIGHT - row;

	if (height <= 1 / 6.0)
		return ' ';
	return height <= 0.5 ? '.' : height <= 5 / 6.0 ? ':' : '#';
}

static void plot_row(struct str *s, const struct plot *p, unsigned row)
{
	char label[NUM_MAX] = "";
	size_t blanks = 0;

	if (row == PLOT_HEIGHT - 1)
		num_format_size(label, p->top);
	else if (row == PLOT_HEIGHT / 2 - 1)
		num_format_size(label, p->top / 2);
	str_printf(s, "%*s |", MARGIN, label);
	for (size_t i = 0; i < PLOT_WIDTH; i++) {
		char cell = plot_cell(p, i, row);

		if (cell == ' ') {
			blanks++;
			continue;
		}
		str_printf(s, "%*s", (int)blanks, "");
		blanks = 0;
		str_addc(s, cell);
	}
	str_addc(s, '\n');
}

static void plot_axis(struct str *s, double seconds)
{
	char right[NUM_MAX], middle[NUM_MAX];
	int gap = PLOT_WIDTH / 2;
	int n;

	str_printf(s, "%*s +", MARGIN, "0");
	for (unsigned i = 0; i < PLOT_WIDTH; i++)
		str_addc(s, '-');
	n = snprintf(right, sizeof(right), "%.3g s", seconds);
	snprintf(middle, sizeof(middle), "%.3g s", seconds / 2);
	str_printf(s, "\n%*s  %-*s%-*s%s", MARGIN, "", gap, "0 s", gap - n,
		   middle, right);
}

/* "1.59G +-3.4% at 61.2 s"; without a sample "at most 1.9M" */
static void add_estimate(struct str *s, const struct replay_input *in,
			 const struct estimate *e)
{
	const struct replay *p = in->replay;
	bool own = p->options.mark == MARK_PEAK;
	double unseen = replay_unseen(p);
	struct interval i = interval_score(e, fmax(unseen, 0));
	char size[NUM_MAX];

	if (!e->n) {
		num_format_size(size, (uint64_t)i.high);
		str_printf(s, unseen >= 0 ? "unseen, at most %s" : "unseen",
			   size);
		return;
	}
	num_format_size(size, e->value > 0 ? (uint64_t)e->value : 0);
	str_adds(s, size);
	if (unseen >= 0)
		str_printf(s, " +-%.1f%%", 100 * interval_error(&i, e->value));
	str_printf(s, " at %.3g s", replay_seconds(in,
		own ? p->estimated_peak.tick : p->mark.tick));
}

/* "peak 1.59G +-3.4% at 61.2 s (exact 1.58G)" */
static void plot_title(struct str *s, const struct replay_input *in)
{
	const struct site *all = &in->sites->total;
	struct profile_figures f;
	char size[NUM_MAX];

	profile_sum_get(&all->view[VIEW_MARKED], &f);
	str_printf(s, "\n\n%-32s%s ", "LIVE HEAP",
		   in->replay->options.mark == MARK_TIME ? "shown" : "peak");
	num_format_size(size, all->exact.marked_bytes);
	if (in->only_exact)
		str_printf(s, "%s at %.3g s", size,
			   replay_seconds(in, in->replay->mark.tick));
	else
		add_estimate(s, in, &f.bytes);
	if (in->exact && !in->only_exact)
		str_printf(s, " (exact %s)", size);
	str_addc(s, '\n');
}

static void add_plot(struct str *s, const struct replay_input *in)
{
	const struct timeline *line = &in->replay->timeline;
	struct plot p = { .line = line, .curve = in->exact ? 0 : 1 };
	uint64_t ticks = in->replay->last_tick - line->start;

	p.steps = min_u64((ticks >> line->shift) + 1, TIMELINE_STEPS);
	p.top = timeline_max(line, p.curve, 0, TIMELINE_STEPS);
	if (!p.top)
		return;
	plot_title(s, in);
	for (unsigned row = PLOT_HEIGHT; row--; )
		plot_row(s, &p, row);
	plot_axis(s, replay_seconds(in, in->replay->last_tick));
}

/* The plot stands for the table of the time line. */
static bool wants_plot(const struct report *r)
{
	return r->options->format == REPORT_TEXT &&
	       r->options->sections ==
	       report_default_sections(r->options->kind, false);
}

static void add_more(struct report *r, const struct replay_input *in)
{
	/* What was sampled can't be sampled again. */
	const char *const commands[] = {
		"\nMore: heapcore replay --metric=allocated --rows=20 ",
		in->replay->sampled ? "      heapcore tui " :
		"      heapcore replay --rate=64k,512k,2M --seeds=100 ",
	};

	for (size_t i = 0; i < countof(commands); i++) {
		str_adds(&r->more, commands[i]);
		report_add_word(&r->more, trace_info(in->trace)->path);
		str_addc(&r->more, '\n');
	}
}

void replay_heads(struct report *r, const struct replay_input *in)
{
	head_trace(r, in);
	head_sampler(r, in);
	if (wants_plot(r))
		add_plot(&r->head[1], in);
	add_more(r, in);
}
