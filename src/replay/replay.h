/* SPDX-License-Identifier: MIT */
/*
 * Events -> what was allocated by whom, what was live when, for how long; as
 * it was, and as a sampling profiler would have seen it.
 *
 *	replay_init(&r, &options);
 *	replay_events(&r, events, n);	as often as there are some
 *	replay_finish(&r);
 *
 * A *site* is a number of a stack; 0 is the unknown one.  The *mark* is the
 * moment whose live heap is kept by site: the first at which live bytes are at
 * their maximum, or a given time.  Neither costs more than O(1) an event: a
 * site keeps its figures of the mark when it changes next.
 *
 * A *span* is two instants.  The *window* between them is as if a profiler had
 * been started at the first and stopped at the second: only blocks that were
 * allocated in it are known, and what is freed later is only counted.  *Growth*
 * follows everything, and has by site what has come and what is gone.  An
 * instant is behind all events of its tick.
 *
 * A realloc frees the old block and allocates the new one, also in place.  A
 * block that comes where one is live ends that one, whose free was lost.
 *
 * Memory: 30 to 130 bytes for each live block and a line for each site.  The
 * length of a trace does not matter.
 */
#ifndef REPLAY_REPLAY_H
#define REPLAY_REPLAY_H

#include "base/types.h"
#include "replay/lifetimes.h"
#include "replay/maps.h"
#include "replay/stock.h"
#include "replay/timeline.h"
#include "replay/trace_read.h"
#include "sampler/profile.h"

enum replay_mark {
	MARK_PEAK,		/* estimates: at the peak of their own */
	MARK_EXACT_PEAK,	/* those too at the peak as it was */
	MARK_TIME,
};

enum replay_span { SPAN_ALL, SPAN_WINDOW, SPAN_GROWTH };

struct replay_options {
	uint64_t rate;
	uint64_t seed;
	enum estimator estimator;
	enum sampler_unit unit;
	bool one_stream;	/* of the process, not one for each thread */
	enum replay_mark mark;
	enum replay_span span;	/* GROWTH needs MARK_TIME: the second one */
	uint64_t from_tick;
	uint64_t to_tick;	/* MARK_TIME without a span: that */
	uint64_t first_tick;
	uint32_t n_stacks;	/* numbers of stacks are 0 to this */
	double ns_per_tick;
	bool lifetimes;		/* by site, which costs a little */
	const uint64_t *instants;	/* borrowed; rising: see instants */
	size_t n_instants;
	bool blocks;		/* keep those live at the mark */
	bool objects;		/* addresses are numbers of objects */
};

/* What is exact; 64 bytes. */
struct replay_site {
	uint64_t allocated_bytes, allocations;
	uint64_t live_bytes, live_blocks;
	uint64_t marked_bytes, marked_blocks;
	uint64_t changed;	/* number of the event */
	uint64_t temporary;	/* freed by the next event of their thread */
};

/* Of freed blocks. */
struct replay_life {
	uint64_t blocks;
	double ticks;		/* sum */
	double byte_ticks;
};

/* Growth of a site between two instants. */
struct replay_change {
	uint64_t come_bytes, come_blocks;
	uint64_t gone_bytes, gone_blocks;
};

/* What a thread had allocated in the window that was live at its end. */
struct replay_owned {
	uint64_t blocks, bytes, samples;
};

/* All that was allocated until then, and what was live. */
struct replay_instant {
	uint64_t allocated, live;
};

/* What became of a window's blocks behind its end. */
struct replay_later {
	uint64_t blocks, bytes, samples;
};

/* By lifetime: steps of ten from below 1 us to 10000 s and more. */
enum { LIFE_STEPS = 12 };
struct replay_age {
	uint64_t blocks, bytes;
};

struct replay_thread {
	struct sampler sampler;
	uint64_t last;		/* address + 1 of its last event's block */
	bool ready;
};
enum { REPLAY_MAX_THREADS = 1 << 16 };
/* No program asks for more: such events are passed over. */
#define REPLAY_MAX_SIZE (UINT64_C(1) << 56)

/* A moment and what was live. */
struct replay_moment {
	uint64_t tick;
	uint64_t number;	/* of the event, 0 never */
	uint64_t bytes, blocks;
};

struct replay_block {
	uint64_t size;
	uint32_t stack;
};

struct replay {
	struct replay_options options;
	struct stock live;
	struct replay_site *sites;	/* owned; by stack */
	struct replay_life *lives;	/* owned; by stack, or NULL */
	struct lifetimes lifetimes;	/* the same */
	struct replay_change *changes;	/* owned; SPAN_GROWTH, by stack */
	struct replay_owned *owned;	/* owned; SPAN_WINDOW, by thread */
	struct replay_later later;	/* freed behind the window */
	struct replay_instant *instants;	/* owned; of the options' */
	size_t n_instants;	/* passed; all of them from finish on */
	enum { STAGE_BEFORE, STAGE_INSIDE, STAGE_AFTER } stage;
	size_t n_sites;
	struct replay_thread *threads;	/* owned */
	size_t n_threads;
	struct profile profile;
	struct timeline timeline;	/* exact, estimate, maps */
	uint64_t n_events, last_tick;
	uint64_t allocations, allocated_bytes, frees;
	uint64_t live_bytes, live_blocks;	/* blocks: from finish on */
	uint64_t temporary, temporary_bytes;
	struct replay_moment peak;	/* exact */
	struct replay_moment mark;	/* what marked_* are of */
	struct replay_moment estimated_peak;	/* bytes: the estimate */
	struct replay_age ages[LIFE_STEPS];
	uint64_t age_limit[LIFE_STEPS];	/* in ticks, exclusive */
	uint8_t age_first[64];	/* step of each power of two */
	uint64_t lost_frees;	/* blocks that came where one was live */
	uint64_t unknown_frees;
	uint64_t impossible;	/* allocations; passed over */
	struct maps maps;	/* what the program mapped itself */
	bool numbered;		/* live blocks have numbers */
	bool mapped;		/* such events came */
	bool sampled;		/* the trace itself holds samples */
	/* Live at the mark and freed since; owned. */
	struct replay_block *gone;
	size_t n_gone, cap_gone;
};

void replay_init(struct replay *r, const struct replay_options *options);
void replay_fini(struct replay *r);

void replay_events(struct replay *r, const struct trace_event *events,
		   size_t n);

/* After the last one: marked figures are right, sums are complete. */
void replay_finish(struct replay *r);

/* The blocks that were live at the mark; the caller frees them. */
struct replay_block *replay_marked_blocks(const struct replay *r,
					  size_t *ret_n);

/* Where an age step begins, in seconds; 0 for the first. */
double replay_age_start(unsigned step);

#endif
