/* SPDX-License-Identifier: MIT */
#include "cmd_export.h"

#include "report/pprof.h"
#include "report/replay_export.h"

#define EXPORT(field) offsetof(struct export_args, field)

const struct option export_options[EXPORT_OPTIONS] = {
	{ 0, "pprof", "FILE", "also write a gzipped pprof profile",
	  OPTION_VALUE, EXPORT(pprof) },
	{ 0, "folded", "FILE", "also write folded stacks for flame graphs",
	  OPTION_VALUE, EXPORT(folded) },
	{ 0, "speedscope", "FILE", "also write JSON for speedscope",
	  OPTION_VALUE, EXPORT(speedscope) },
};

static bool export_pprof(const struct export *e, struct out *o,
			 struct err *err)
{
	return pprof_write(e->in, e->exact, e->said, o, err);
}

static bool export_folded(const struct export *e, struct out *o,
			  struct err *err)
{
	(void)err;
	folded_write(e->in, e->exact, o);
	return true;
}

static bool export_speedscope(const struct export *e, struct out *o,
			      struct err *err)
{
	(void)err;
	speedscope_write(e->in, o);
	return true;
}

bool export_file(const struct export *e, const char *path, bool force,
		 bool (*write)(const struct export *, struct out *,
			       struct err *), struct err *err)
{
	struct out out;

	if (!path)
		return true;
	if (!out_open(&out, path, force, err))
		return false;
	if (write(e, &out, err))
		return out_close(&out, err);
	out_abandon(&out);
	return false;
}

bool export_profiles(const struct export *e, const struct export_args *a,
		     bool force, struct err *err)
{
	return export_file(e, a->pprof, force, export_pprof, err) &&
	       export_file(e, a->folded, force, export_folded, err) &&
	       export_file(e, a->speedscope, force, export_speedscope, err);
}

const char *export_wanted(const struct export_args *a)
{
	return a->pprof ? "pprof" : a->folded ? "folded" :
	       a->speedscope ? "speedscope" : NULL;
}
