/* SPDX-License-Identifier: MIT */
/*
 * Inside the replay: what replay.c and replay_events.c share.
 */
#ifndef REPLAY_REPLAY_IN_H
#define REPLAY_REPLAY_IN_H

#include "replay/replay.h"

/* replay_events.c: events between two instants. */
void replay_some(struct replay *r, const struct trace_event *events, size_t n);

/* What is live is what was live at the mark. */
void replay_set_mark(struct replay *r, uint64_t tick);

/* Numbers of events share their words with those of threads. */
enum { THREAD_BITS = 16 };

/* A block that was live at the mark is freed. */
void replay_keep_gone(struct replay *r, const struct live_block *b);

static inline bool replay_was_marked(const struct replay *r, uint64_t number)
{
	return number >> THREAD_BITS <= r->mark.number;
}

/* Before a site changes: are its live figures those of the mark? */
static inline void replay_keep_marked(struct replay_site *s, uint64_t marked,
				      uint64_t number)
{
	if (s->changed <= marked) {
		s->marked_bytes = s->live_bytes;
		s->marked_blocks = s->live_blocks;
	}
	s->changed = number;
}

#endif
