/* SPDX-License-Identifier: MIT */
/*
 * heapcore snapshot: a process as a core file.
 */
#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "base/progress.h"
#include "cmd.h"
#include "cmd_subject.h"
#include "corewalk/snapshot.h"
#include "corewalk/target.h"
#include "report/out.h"

struct args {
	struct common common;
	const char *pid;
	struct subject_args how;
	bool all;
	bool fork;
	const char *compress;
	const char *tmpdir;
	struct list files;
};

#define ARG(field) offsetof(struct args, field)
#define COMMON(field) (ARG(common) + offsetof(struct common, field))

static const struct option input_options[] = {
	{ 'p', "pid", "PID", "the process", OPTION_ONE, ARG(pid) },
	{ 0, "fork", NULL, "let it fork, and read the child: a shorter "
	  "pause", OPTION_FLAG, ARG(fork) },
	{ 0, "all", NULL, "shared memory and files too", OPTION_FLAG,
	  ARG(all) },
	{ 0, "tmpdir", "DIR", "where a copy goes that does not fit in "
	  "memory\n[$TMPDIR or /tmp]", OPTION_VALUE, ARG(tmpdir) },
};

static const struct option output_options[] = {
	{ 'o', "output", "FILE", "the core file to write", OPTION_VALUE,
	  COMMON(output) },
	{ 0, "force", NULL, "replace FILE if it exists", OPTION_FLAG,
	  COMMON(force) },
	{ 0, "compress", "zstd|none", "how to pack it [zstd]",
	  OPTION_VALUE, ARG(compress) },
	{ 'q', "quiet", NULL, "no progress, no warnings, no last line",
	  OPTION_FLAG, COMMON(quiet) },
};

static const struct option_group groups[] = {
	{ "Process", input_options, countof(input_options), 0 },
	{ NULL, subject_process_options, SUBJECT_PROCESS_OPTIONS, ARG(how) },
	{ "Output", output_options, countof(output_options), 0 },
	COMMON_ONE(COMMON_PROGRESS, ARG(common)),
	COMMON_FROM(COMMON_HELP, ARG(common)),
};

/* The command line, checked. */
struct plan {
	uint32_t pid;
	bool compress;
	struct target_options options;
	struct progress progress;
};

static bool check_compress(const char *how, bool *ret, struct err *err)
{
	if (!how || !strcmp(how, "zstd"))
		*ret = true;
	else if (!strcmp(how, "none"))
		*ret = false;
	else
		return err_set(err, ERR_USAGE, "--compress is zstd or none, "
			       "not '%.40s'", how);
	return true;
}

static bool prepare(const struct args *a, struct plan *ret, struct err *err)
{
	if (a->files.n)
		return err_set(err, ERR_USAGE, "'%.60s' is too much: the "
			       "process is --pid, the file --output",
			       a->files.items[0]);
	if (!a->pid)
		return err_set(err, ERR_USAGE, "no process given: --pid=PID");
	if (!a->common.output)
		return err_set(err, ERR_USAGE, "no file given: "
			       "--output=FILE");
	if (!strcmp(a->common.output, "-"))
		return err_set(err, ERR_USAGE, "a core is not written in one "
			       "go: give a file, not a pipe");
	if (a->fork && a->how.no_stop)
		return err_set(err, ERR_USAGE, "--fork and --no-stop exclude "
			       "each other");
	ret->options = (struct target_options){
		.no_files = true,
		.tmpdir = a->tmpdir,
		.no_stop = a->how.no_stop,
		.no_swapin = a->how.no_swapin,
		.all = a->all,
		.fork = a->fork,
	};
	return cmd_pid(a->pid, &ret->pid, err) &&
	       cmd_seconds(a->how.max_pause, &ret->options.max_pause_s, err) &&
	       check_compress(a->compress, &ret->compress, err) &&
	       cmd_progress(&a->common, &ret->progress, err);
}

/* On stderr: "core.1: 1.80G, 312M on disk; process 1 stood still for 0.2 s" */
static void say_done(const struct args *a, const struct space *sp,
		     uint64_t size)
{
	char copied[NUM_MAX], on_disk[NUM_MAX];

	num_format_size(copied, sp->core_size);
	num_format_size(on_disk, size);
	fprintf(stderr, "heapcore: %s: %s of memory in a file of %s; %s ",
		a->common.output, copied, on_disk, sp->path);
	if (sp->torn)
		fprintf(stderr, "was not stopped\n");
	else
		fprintf(stderr, "stood still for %.3f s\n", sp->stopped_s);
}

static int take(const struct args *a, struct plan *plan)
{
	struct target_options options = plan->options;
	struct progress *progress = &plan->progress;
	struct snapshot_file *file;
	struct space *sp;
	struct err err;
	uint64_t size = 0;
	bool ok;

	/* A file that cannot be written is no reason to stop a process. */
	file = snapshot_file_new(a->common.output, a->common.force,
				 plan->compress, &err);
	if (!file)
		return cmd_fail(&err);
	options.progress = progress;
	progress_phase(progress, "reading the process");
	sp = target_open_live(plan->pid, &options, &err);
	if (!sp) {
		progress_fini(progress);
		snapshot_file_abandon(file);
		return cmd_fail(&err);
	}
	progress_phase(progress, "writing the snapshot");
	ok = snapshot_write(sp, file, progress, &size, &err);
	progress_fini(progress);
	if (ok && !a->common.quiet) {
		cmd_warn(sp, false);
		say_done(a, sp, size);
	}
	space_close(sp);
	return ok ? STATUS_COMPLETE : cmd_fail(&err);
}

static int snapshot(const struct command *self, int argc, char **argv)
{
	struct args a = { .pid = NULL };
	struct plan plan;
	struct err err = { .kind = ERR_NONE };
	int status;

	if (cmd_begin(self, argc, argv, &a, &a.files, &status))
		status = prepare(&a, &plan, &err) ?
			 take(&a, &plan) : cmd_usage(self, &err);
	list_fini(&a.files);
	return status;
}

const struct command command_snapshot = {
	.name = "snapshot",
	.summary = "write a core file of a running process",
	.usage =
"Usage: heapcore snapshot [OPTION]... -p PID -o FILE\n"
"Write a core file of a process, which is stopped for a moment and runs on.\n"
"\n"
"  heapcore snapshot -p 1234 -o appd.core.zst\n"
"  heapcore snapshot --compress=none -p 1234 -o appd.core\n"
"  heapcore analyze appd.core.zst\n",
	.groups = groups,
	.n_groups = countof(groups),
	.run = snapshot,
};
