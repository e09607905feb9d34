/* SPDX-License-Identifier: MIT */
/*
 * A replay in the formats of other tools' viewers: speedscope's JSON, and
 * Massif's for ms_print and massif-visualizer.
 */
#ifndef REPORT_REPLAY_EXPORT_H
#define REPORT_REPLAY_EXPORT_H

#include "report/out.h"
#include "report/replay.h"

/*
 * One profile each for what was live at the moment of the report, live at the
 * end, and allocated: as estimated, and as it was if that is known.
 */
void speedscope_write(const struct replay_input *in, struct out *o);

/*
 * The live heap over time, with trees of callers at the moment of the report
 * and at the end.  Estimates, or what is exact if that was asked for.
 */
void massif_write(const struct replay_input *in, bool exact,
		  const char *command_line, struct out *o);

/* A path as an export may have it; see redact. */
const char *replay_path(const struct replay_input *in, const char *path);

/* What one stack has by a metric, estimated or exact; 0: nothing. */
uint64_t replay_stack_bytes(const struct replay_input *in, uint32_t stack,
			    enum replay_metric metric, bool exact);

#endif
