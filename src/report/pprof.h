/* SPDX-License-Identifier: MIT */
/*
 * Profiles for other tools: pprof's profile.proto, gzipped, and folded stacks
 * for flame graphs.
 */
#ifndef REPORT_PPROF_H
#define REPORT_PPROF_H

#include "report/out.h"
#include "report/replay.h"

/* In the head of the gzipped file. */
#define PPROF_COMMENT "heapcore"

/*
 * Five values a stack: allocated objects and bytes, live ones at the end, and
 * the bytes of the moment that the report is about.  Estimates, or what is
 * exact if that was asked for: either way final, nobody has to scale them.
 * Where only what is live is known, its objects and bytes.
 */
bool pprof_write(const struct replay_input *in, bool exact,
		 const char *command_line, struct out *o, struct err *err)
	MUST_CHECK;

/* "main;run_batch;parse_batch 4096": bytes by the metric of the input. */
void folded_write(const struct replay_input *in, bool exact, struct out *o);

#endif
