/* SPDX-License-Identifier: MIT */
/*
 * What conditions on a replay are about.
 */
#include <math.h>

#include "base/num.h"
#include "report/replay.h"

enum {
	C_PEAK, C_END, C_AT, C_ALLOCATED, C_ALLOCATIONS, C_TEMPORARY,
	C_TEMPORARY_SHARE, C_GROWTH, C_DURATION, C_MAX_PAUSE, C_PAUSES,
	C_PAUSED_SHARE, C_COLUMNS
};

static const struct column columns[C_COLUMNS] = {
	[C_PEAK] = COLUMN("peak_bytes", "", BYTES),
	[C_END] = COLUMN("end_bytes", "", BYTES),
	[C_AT] = COLUMN("at_bytes", "", BYTES),
	[C_ALLOCATED] = COLUMN("allocated_bytes", "", BYTES),
	[C_ALLOCATIONS] = COLUMN("allocations", "", COUNT),
	[C_TEMPORARY] = COLUMN("temporary", "", COUNT),
	[C_TEMPORARY_SHARE] = COLUMN("temporary_share", "", SHARE),
	[C_GROWTH] = COLUMN("growth_bytes", "", CHANGE),
	[C_DURATION] = COLUMN("duration_s", "", SECONDS),
	[C_MAX_PAUSE] = COLUMN("max_pause_s", "", SECONDS),
	[C_PAUSES] = COLUMN("pauses", "", COUNT),
	[C_PAUSED_SHARE] = COLUMN("paused_share", "", SHARE),
};

const struct column *replay_total_columns(size_t *ret_n)
{
	_Static_assert((int)C_COLUMNS == (int)REPLAY_TOTAL_COLUMNS,
		      "callers have room");
	*ret_n = C_COLUMNS;
	return columns;
}

static uint64_t bytes_of(const struct replay_input *in,
			 enum replay_metric metric)
{
	const struct site *all = &in->sites->total;
	struct profile_figures f;

	if (in->exact)
		return replay_exact_bytes(metric, &all->exact);
	profile_sum_get(&all->view[replay_view(metric)], &f);
	return num_whole(f.bytes.value);
}

static struct cell real(double value)
{
	return (struct cell){ .share = value, .known = true };
}

static int64_t growth_of(const struct replay_input *in)
{
	const struct site *all = &in->sites->total;
	struct profile_figures come, gone;

	if (in->exact)
		return (int64_t)(all->change.come_bytes -
				 all->change.gone_bytes);
	profile_sum_get(&all->view[VIEW_COME], &come);
	profile_sum_get(&all->view[VIEW_GONE], &gone);
	return llround(come.bytes.value - gone.bytes.value);
}

static void pause_totals(const struct replay_input *in, struct cell *ret)
{
	struct pauses_summary s;

	pauses_sum_up(in->pauses, PAUSES_ALL, &s);
	ret[C_PAUSES] = cell_number(s.n);
	ret[C_MAX_PAUSE] = real(s.max);
	if (replay_pauses_end(in) > 0)
		ret[C_PAUSED_SHARE] = real(s.sum / replay_pauses_end(in));
}

void replay_totals(const struct replay_input *in,
		   struct cell ret[REPLAY_TOTAL_COLUMNS])
{
	const struct replay *r = in->replay;

	for (unsigned i = 0; i < C_COLUMNS; i++)
		ret[i] = (struct cell){ .known = false };
	if (r->options.mark == MARK_TIME)
		ret[C_AT] = cell_number(bytes_of(in, METRIC_PEAK));
	if (in->exact)
		ret[C_PEAK] = cell_number(r->peak.bytes);
	else
		ret[C_PEAK] = cell_number(r->estimated_peak.bytes);
	ret[C_END] = cell_number(bytes_of(in, METRIC_END));
	ret[C_ALLOCATED] = cell_number(bytes_of(in, METRIC_ALLOCATED));
	ret[C_DURATION] = real(replay_seconds(in, in->end_tick));
	if (in->exact) {
		ret[C_ALLOCATIONS] = cell_number(r->allocations);
		ret[C_TEMPORARY] = cell_number(r->temporary);
		ret[C_TEMPORARY_SHARE] = real(num_share(r->temporary,
							r->allocations));
	}
	if (in->pauses)
		pause_totals(in, ret);
	if (r->options.span == SPAN_GROWTH)
		ret[C_GROWTH] = (struct cell){ .i = growth_of(in),
					       .known = true };
}
