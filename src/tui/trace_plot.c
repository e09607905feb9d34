/* SPDX-License-Identifier: MIT */
/*
 * The live heap over time, as it stands above the tables.
 */
#include <string.h>

#include "base/num.h"
#include "tui/trace_in.h"

enum { MARGIN = 9, HIGH = 6, LOW = 3, HIGH_FROM = 22 };

struct plot {
	const struct timeline *line;
	const struct trace_source *source;
	unsigned curve;
	size_t steps;
	uint64_t top;		/* the largest value */
	int width, height;	/* cells */
};

static void plot_init(struct plot *p, const struct trace_source *s,
		      const struct tui *t, bool low)
{
	const struct replay *r = &s->pass[PASS_PEAK].replay;
	uint64_t ticks = r->last_tick - r->timeline.start;

	*p = (struct plot){
		.line = &r->timeline, .source = s, .curve = s->exact ? 0 : 1,
		.steps = min_u64((ticks >> r->timeline.shift) + 1,
				 TIMELINE_STEPS),
		.width = tui_page_width(t) - MARGIN - 3,
		.height = low || t->screen.h < HIGH_FROM ? LOW : HIGH,
	};
	p->top = timeline_max(p->line, p->curve, 0, TIMELINE_STEPS);
	if (p->width < 1)
		p->width = 1;
}

static size_t first_step(const struct plot *p, int column)
{
	return (size_t)column * p->steps / (size_t)p->width;
}

static uint64_t value_at(const struct plot *p, int column)
{
	size_t from = first_step(p, column), to = first_step(p, column + 1);

	return timeline_max(p->line, p->curve, from, max_u64(to, from + 1));
}

/* The column that shows a tick. */
static int column_of(const struct plot *p, uint64_t tick)
{
	uint64_t ticks = tick > p->line->start ? tick - p->line->start : 0;
	size_t step = min_u64(ticks >> p->line->shift, p->steps - 1);
	int ret = (int)(step * (size_t)p->width / p->steps);

	while (ret + 1 < p->width && first_step(p, ret + 1) <= step)
		ret++;
	return ret;
}

/* The end of a column; in that of the peak, the peak. */
static uint64_t tick_of(const struct plot *p, int column, uint64_t peak)
{
	const struct replay *r = &p->source->pass[PASS_PEAK].replay;
	size_t to = max_u64(first_step(p, column + 1),
			    first_step(p, column) + 1);
	uint64_t tick = p->line->start + ((uint64_t)to << p->line->shift);

	if (column_of(p, peak) == column)
		return peak;
	return min_u64(tick ? tick - 1 : 0, r->last_tick);
}

static uint64_t peak_tick(const struct trace_source *s)
{
	const struct replay *r = &s->pass[PASS_PEAK].replay;

	return s->exact ? r->mark.tick : r->estimated_peak.tick;
}

void trace_move(struct trace_source *s, const struct tui *t, int columns)
{
	struct plot p;
	int column;

	plot_init(&p, s, t, false);
	column = column_of(&p, s->at) + columns;
	if (column < 0 || column >= p.width)
		return;
	s->at = tick_of(&p, column, peak_tick(s));
	s->moved = s->at != peak_tick(s);
}

/* ---- drawing ---- */

static void draw_row(const struct plot *p, struct screen *s, int y, int row)
{
	char label[NUM_MAX] = "";

	if (row == p->height - 1)
		num_format_size(label, p->top);
	else if (row == p->height / 2 - 1 && p->height > LOW)
		num_format_size(label, p->top / 2);
	screen_puts(s, y, 1 + MARGIN - 2 - (int)strlen(label), ROLE_DIM,
		    label);
	for (int i = 0; i < p->width; i++) {
		double height = p->top ? (double)value_at(p, i) /
					 (double)p->top * p->height - row : 0;
		int level = (int)(height * LEVELS + 0.5);

		if (level > 0)
			screen_put(s, y, 1 + MARGIN + i, ROLE_GRAPH,
				   (char)(GLYPH_LEVEL + (level > LEVELS
					  ? LEVELS : level) - 1));
	}
}

static void put_below(const struct plot *p, struct screen *s, int y,
		      uint64_t tick, const char *sign)
{
	screen_puts(s, y, 1 + MARGIN + column_of(p, tick), ROLE_HEADING, sign);
}

static double seconds(const struct trace_source *s, uint64_t tick)
{
	return (double)trace_ns(s->trace, tick) / 1e9;
}

/* The times at the ends where no sign of an instant stands, and these. */
static void draw_axis(const struct plot *p, struct screen *s, int y,
		      bool instant)
{
	const struct trace_source *source = p->source;
	int at = column_of(p, source->at);
	int mark = source->marked ? column_of(p, source->mark) : at;
	char end[NUM_MAX];
	int len;

	num_format_duration(end, seconds(source, source->pass[PASS_PEAK].
					 replay.last_tick));
	len = (int)strlen(end);
	if (!instant || (at > 3 && mark > 3))
		screen_puts(s, y, 1 + MARGIN, ROLE_DIM, "0 s");
	if (!instant || (at < p->width - len - 1 && mark < p->width - len - 1))
		screen_puts(s, y, 1 + MARGIN + p->width - len, ROLE_DIM, end);
	if (instant && source->marked)
		put_below(p, s, y, source->mark, "d");
	if (instant)
		put_below(p, s, y, source->at, "^");
}

/* "LIVE HEAP at 1.2 s: 3.4M" or "CHANGE from 1.2 s to 2.3 s" */
static void draw_title(const struct trace_source *s, struct screen *screen,
		       int y, bool instant)
{
	const struct replay *r = &s->pass[PASS_PEAK].replay;
	char text[NUM_MAX], other[NUM_MAX], peak[NUM_MAX];
	struct str line;

	str_init(&line);
	num_format_duration(text, seconds(s, s->at));
	num_format_duration(other, seconds(s, s->mark));
	if (!instant)
		str_adds(&line, "LIVE HEAP");
	else if (s->marked)
		str_printf(&line, "LIVE HEAP, from %s to %s",
			   s->mark < s->at ? other : text,
			   s->mark < s->at ? text : other);
	else
		str_printf(&line, "LIVE HEAP at %s", text);
	num_format_size(peak, s->exact ? r->mark.bytes
				       : r->estimated_peak.bytes);
	num_format_duration(text, seconds(s, peak_tick(s)));
	str_printf(&line, "    peak %s at %s", peak, text);
	screen_puts(screen, y, 1, ROLE_HEADING, line.text);
	str_fini(&line);
}

int trace_picture(void *context, struct tui *t, int y)
{
	const struct trace_source *s = context;
	const struct page *page = tui_page(t);
	bool instant = page->at == TRACE_AT_INSTANT;
	struct plot p;
	int at = y;

	if (!instant && page != t->root[0])
		return 0;
	plot_init(&p, s, t, !instant);
	draw_title(s, &t->screen, at++, instant);
	for (int row = p.height; row--; )
		draw_row(&p, &t->screen, at++, row);
	draw_axis(&p, &t->screen, at, instant);
	return at + 2 - y;
}
