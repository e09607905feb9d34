/* SPDX-License-Identifier: MIT */
/*
 * What takes long says so: on stderr, if that is a terminal, after half a
 * second, at most ten times a second, on one line that is removed again.
 */
#ifndef BASE_PROGRESS_H
#define BASE_PROGRESS_H

#include "base/types.h"

enum progress_mode {
	PROGRESS_NONE,
	PROGRESS_TERMINAL,
	PROGRESS_PLAIN,		/* one line for each phase */
	PROGRESS_CALL,		/* as TERMINAL, but somebody else shows it */
};

struct progress {
	enum progress_mode mode;
	const char *phase;	/* static; NULL between phases */
	uint64_t start_ns;	/* of the whole, monotonic */
	uint64_t drawn_ns;	/* when the line was last drawn; 0 never */
	bool drawn;		/* a line is on the screen now */
	void (*call)(void *context, const char *text);	/* PROGRESS_CALL */
	void *context;
};

void progress_init(struct progress *p, enum progress_mode mode);
/* Removes the line. */
void progress_fini(struct progress *p);

/* A new phase, in the words of the user: "walking glibc arenas". */
void progress_phase(struct progress *p, const char *phase);

/*
 * done of total (in one unit; total 0: unknown) and a count of noun so far.
 * Cheap enough for every megabyte; p may be NULL.
 */
void progress_step(struct progress *p, uint64_t done, uint64_t total,
		   uint64_t count, const char *noun);

#endif
