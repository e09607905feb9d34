/* SPDX-License-Identifier: MIT */
/*
 * What commands share that write a profile to files for other tools.
 */
#ifndef CMD_EXPORT_H
#define CMD_EXPORT_H

#include "cmd.h"
#include "report/replay.h"

struct export_args {
	const char *pprof, *folded, *speedscope;
};
enum { EXPORT_OPTIONS = 3 };
extern const struct option export_options[EXPORT_OPTIONS];

/* What to export: estimates, or what is exact; said is the command line. */
struct export {
	const struct replay_input *in;
	bool exact;
	const char *said;
};

/* One file by a function; nothing without a path. */
bool export_file(const struct export *e, const char *path, bool force,
		 bool (*write)(const struct export *, struct out *,
			       struct err *), struct err *err) MUST_CHECK;

/* All that were asked for. */
bool export_profiles(const struct export *e, const struct export_args *a,
		     bool force, struct err *err) MUST_CHECK;

/* The option of one that was asked for; NULL if none was. */
const char *export_wanted(const struct export_args *a);

#endif
