/* SPDX-License-Identifier: MIT */
/*
 * The profile that an allocator has left in the process, as a replay of a
 * recording that was sampled would have it: stacks, sites, estimates; and
 * beside it what the walk has found.
 *
 * *live*: the blocks in use that the sampler picked, of all allocators that
 * have one.  *growth*: what they asked the system for, which is all of it.
 * *exact*: the blocks in use of the arenas of those allocators; one that is a
 * sample counts with the size that it would have else.
 */
#ifndef REPORT_PROFILED_H
#define REPORT_PROFILED_H

#include "analysis/profile_rate.h"
#include "analysis/usage.h"
#include "report/replay.h"

/* What is read of one of the heap's profiles. */
struct profiled_part {
	const struct heap_profile *profile;	/* borrowed */
	struct profile_rate rate;
	uint32_t *stacks;	/* owned; by sample */
	uint64_t bytes;		/* sum of its samples' */
};

struct profiled {
	const struct heap *heap;	/* borrowed */
	struct profiled_part *parts;	/* owned; as in the heap */
	size_t n_parts;
	struct trace *trace;	/* owned; has stacks and modules only */
	struct frames frames;
	bool *allocators;	/* owned; modules that are nothing else */
	struct replay live, growth;
	struct sites live_sites, growth_sites;
	struct profile classes;	/* by place in exact */
	struct usage exact;
	uint64_t cost;		/* bytes that blocks take for being samples */
	uint64_t rate;		/* the largest of the live parts; 0 unknown */
	uint64_t newest_ns;	/* birth; 0: not known */
	/* For tables and exports. */
	struct replay_input live_input, growth_input;
};

struct profiled_options {
	uint64_t rate;		/* instead of what is found; 0: none */
	size_t depth;		/* frames that make a site */
	const struct target_options *target;
	struct debug *debug;
};

/* One of its samples, as the sampler has them. */
struct sample profiled_sample(const struct profiled_part *part, size_t i);

/* All is borrowed until profiled_fini(). */
bool profiled_init(struct profiled *p, struct space *sp, struct heap *h,
		   struct symbols *symbols,
		   const struct profiled_options *options,
		   struct err *err) MUST_CHECK;
void profiled_fini(struct profiled *p);

#endif
