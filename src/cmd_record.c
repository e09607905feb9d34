/* SPDX-License-Identifier: MIT */
/*
 * heapcore record: run a program with the recorder preloaded.
 *
 * The program's output, status and death are its own: we print to standard
 * error when it has ended, end with its status, and die of its signal.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"
#include "cmd.h"
#include "cmd_record.h"
#include "replay/trace.h"
#include "replay/trace_pack.h"

#define RECORDER "libheapcore-record.so"

/* As env(1) and nohup(1) have them. */
enum { STATUS_CANNOT_RUN = 126, STATUS_NOT_FOUND = 127 };

struct args {
	struct common common;
	const char *depth;
	const char *unwind;
	const char *rate;
	const char *max;
	bool children;
	bool mmap;
	struct list words;
};

#define ARG(field) offsetof(struct args, field)
#define COMMON(field) (ARG(common) + offsetof(struct common, field))

static const struct option record_options[] = {
	{ 'o', "output", "FILE", "trace file; %p is the pid\n"
	  "[heapcore.PROG.%p.trace]", OPTION_VALUE, COMMON(output) },
	{ 0, "force", NULL, "replace FILE even if it is no trace",
	  OPTION_FLAG, COMMON(force) },
	{ 0, "depth", "N", "frames to keep for an allocation [32]; 0: none",
	  OPTION_VALUE, ARG(depth) },
	{ 0, "unwind", "cfi|fp", "fp: only by frame pointers [cfi]",
	  OPTION_VALUE, ARG(unwind) },
	{ 0, "rate", "SIZE", "record a sample: one block every SIZE bytes",
	  OPTION_VALUE, ARG(rate) },
	{ 0, "children", NULL, "also record the programs that PROG starts",
	  OPTION_FLAG, ARG(children) },
	{ 0, "mmap", NULL, "also record mmap, munmap, mremap and brk",
	  OPTION_FLAG, ARG(mmap) },
	{ 0, "max", "SIZE", "stop recording, not PROG, at this trace size",
	  OPTION_VALUE, ARG(max) },
	{ 'q', "quiet", NULL, "no last line, no warnings", OPTION_FLAG,
	  COMMON(quiet) },
};

static const struct option_group groups[] = {
	{ "Options", record_options, countof(record_options), 0 },
	COMMON_FROM(COMMON_HELP, ARG(common)),
};

/* The command line, checked. */
struct plan {
	char **argv;		/* owned; NULL last */
	char *pattern;		/* owned; absolute, with %p perhaps */
	char *recorder;		/* owned */
	char *options;		/* owned; for the recorder */
	bool force;
};

static void plan_fini(struct plan *plan)
{
	free(plan->argv);
	free(plan->pattern);
	free(plan->recorder);
	free(plan->options);
}

/* Beside the program, as built; where it is installed; where it was to be. */
static bool find_recorder(char **ret, struct err *err)
{
	static const char *const places[] = {
		"%s/" RECORDER, "%s/../libexec/heapcore/" RECORDER,
		LIBEXECDIR "/heapcore/" RECORDER,
	};
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *slash;

	self[n > 0 ? n : 0] = '\0';
	slash = strrchr(self, '/');
	if (slash)
		*slash = '\0';
	for (size_t i = 0; i < countof(places); i++) {
		struct str s;

		str_init(&s);
		if (i < 2)
			str_adds(&s, self);
		str_adds(&s, places[i] + (i < 2 ? 2 : 0));
		*ret = str_take(&s);
		if (!access(*ret, R_OK) && !strpbrk(*ret, ": "))
			return true;
		free(*ret);
	}
	*ret = NULL;
	return err_set(err, ERR_SYSTEM, "%s is neither beside the program "
		       "nor in %s/heapcore", RECORDER, LIBEXECDIR);
}

static bool check_number(const char *name, const char *text, uint64_t max,
			 struct str *options, struct err *err)
{
	uint64_t value;

	if (!text)
		return true;
	if (!num_parse_u64(text, &value) || value > max)
		return err_set(err, ERR_USAGE, "--%s is a number up to "
			       "%" PRIu64 ", not '%.40s'", name, max, text);
	str_printf(options, "%s=%" PRIu64 ",", name, value);
	return true;
}

static bool check_size(const char *name, const char *text, uint64_t min,
		       struct str *options, struct err *err)
{
	uint64_t value;

	if (!text)
		return true;
	if (!num_parse_size(text, &value) || value < min)
		return err_set(err, ERR_USAGE, "--%s is a size of %" PRIu64
			       " bytes or more, not '%.40s'", name, min,
			       text);
	str_printf(options, "%s=%" PRIu64 ",", name, value);
	return true;
}

static bool check_options(const struct args *a, char **ret, struct err *err)
{
	const char *unwind = a->unwind ? a->unwind : "cfi";
	struct str s;
	bool ok;

	str_init(&s);
	ok = check_number("depth", a->depth, TRACE_DEPTH_MAX, &s, err) &&
	     check_size("rate", a->rate, 1, &s, err) &&
	     check_size("max", a->max, 256 << 10, &s, err);
	if (ok && strcmp(unwind, "cfi") && strcmp(unwind, "fp"))
		ok = err_set(err, ERR_USAGE, "--unwind is cfi or fp, not "
			     "'%.40s'", unwind);
	str_printf(&s, "unwind=%s,children=%d,mmap=%d", unwind, a->children,
		   a->mmap);
	if (ok)
		*ret = str_take(&s);
	str_fini(&s);
	return ok;
}

/* Programs change their directory: a name that stays right. */
static bool make_pattern(const struct args *a, char **ret, struct err *err)
{
	const char *name = a->common.output;
	AUTO_FREE char *made = NULL;
	char directory[PATH_MAX];

	if (!name) {
		made = mem_printf("heapcore.%s.%%p.trace",
				  file_base_name(a->words.items[0]));
		name = made;
	}
	if (!strcmp(name, "-"))
		return err_set(err, ERR_USAGE, "a trace is not written in "
			       "one go: give a file, not a pipe");
	if (name[0] == '/') {
		*ret = mem_strdup(name);
		return true;
	}
	if (!getcwd(directory, sizeof(directory)))
		return err_system(err, "the current directory");
	*ret = mem_printf("%s/%s", directory, name);
	return true;
}

static bool prepare(const struct args *a, struct plan *plan, struct err *err)
{
	if (!a->words.n)
		return err_set(err, ERR_USAGE, "no program given: heapcore "
			       "record -- PROG");
	plan->argv = mem_zalloc((a->words.n + 1) * sizeof(*plan->argv));
	memcpy(plan->argv, a->words.items, a->words.n *
	       sizeof(*plan->argv));
	plan->force = a->common.force;
	return check_options(a, &plan->options, err) &&
	       make_pattern(a, &plan->pattern, err) &&
	       find_recorder(&plan->recorder, err);
}

/* The name for one process. */
static char *path_of(const char *pattern, pid_t pid)
{
	struct str s;

	str_init(&s);
	for (; *pattern; pattern++) {
		if (pattern[0] == '%' && pattern[1] == 'p') {
			str_printf(&s, "%d", (int)pid);
			pattern++;
		} else {
			str_addc(&s, *pattern);
		}
	}
	return str_take(&s);
}

/* An empty file for the recorder; only a trace is replaced. */
static bool make_file(const char *path, bool force, struct err *err)
{
	char magic[TRACE_MAGIC_SIZE];
	struct stat st;
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	bool ours;

	if (fd < 0 || fstat(fd, &st))
		return err_system(err, "%s", path);
	ours = !st.st_size || force ||
	       (read(fd, magic, sizeof(magic)) == sizeof(magic) &&
		!memcmp(magic, TRACE_MAGIC, sizeof(magic)));
	if (!S_ISREG(st.st_mode))
		err_set(err, ERR_USAGE, "%s: not a file", path);
	else if (!ours)
		err_set(err, ERR_USAGE, "%s: exists and is not a trace",
			path);
	else if (ftruncate(fd, 0))
		err_system(err, "%s", path);
	else
		return !close(fd);
	close(fd);
	return err_hint(err, "Give another name with --output.");
}

static void set_environment(const struct plan *plan, const char *path)
{
	const char *old = getenv("LD_PRELOAD");
	AUTO_FREE char *preload = mem_printf("%s%s%s", plan->recorder,
					     old && *old ? ":" : "",
					     old ? old : "");

	setenv("LD_PRELOAD", preload, 1);
	setenv("HEAPCORE_RECORD_FILE", plan->pattern, 1);
	setenv("HEAPCORE_RECORD_FIRST", path, 1);
	setenv("HEAPCORE_RECORD_OPTIONS", plan->options, 1);
}

/* In the child.  What goes wrong is said here, its status goes to the pipe. */
static void run_child(const struct plan *plan, int pipe_fd)
{
	AUTO_FREE char *path = path_of(plan->pattern, getpid());
	struct err err = { .kind = ERR_NONE };
	unsigned char status = STATUS_FAILED;

	if (!make_file(path, plan->force, &err)) {
		cmd_fail(&err);
	} else {
		set_environment(plan, path);
		execvp(plan->argv[0], plan->argv);
		status = errno == ENOENT ? STATUS_NOT_FOUND :
			STATUS_CANNOT_RUN;
		err_system(&err, "%s", plan->argv[0]);
		cmd_fail(&err);
		unlink(path);
	}
	(void)!write(pipe_fd, &status, 1);
	_exit(status);
}

static volatile sig_atomic_t child;

static void pass_on(int sig)
{
	if (child > 0)
		kill(child, sig);
}

/* Wait for the program; *ret_status as of waitpid.  False if there was none. */
static bool run_program(const struct plan *plan, pid_t *ret_pid,
			int *ret_status, struct err *err)
{
	unsigned char failed = 0;
	int fds[2];
	bool started;

	if (pipe2(fds, O_CLOEXEC))
		return err_system(err, "a pipe");
	*ret_pid = fork();
	if (*ret_pid < 0)
		return err_system(err, "fork");
	if (!*ret_pid)
		run_child(plan, fds[1]);
	child = *ret_pid;
	signal(SIGINT, SIG_IGN);
	signal(SIGQUIT, SIG_IGN);
	signal(SIGTERM, pass_on);
	signal(SIGHUP, pass_on);
	close(fds[1]);
	started = read(fds[0], &failed, 1) != 1;
	close(fds[0]);
	while (waitpid(*ret_pid, ret_status, 0) < 0)
		if (errno != EINTR)
			return err_system(err, "waiting for the program");
	child = 0;
	if (!started)
		*ret_status = failed << 8;
	return started;
}

/* The one line at the end, and one before it if there is a reason. */
static void say_end(const char *path, const struct trace_seal *s,
		    bool sampled)
{
	char size[NUM_MAX];

	num_format_size(size, s->file_size);
	if (s->stopped == TRACE_END_FULL)
		fprintf(stderr, "heapcore: %s: %s: recording ended early, the "
			"program went on\n", path,
			strerror((int)s->stopped_value));
	else if (s->stopped == TRACE_END_MAX)
		fprintf(stderr, "heapcore: %s: --max reached: recording "
			"ended early, the program went on\n", path);
	else if (s->stopped == TRACE_END_SECCOMP)
		fprintf(stderr, "heapcore: %s: the program confined itself "
			"with seccomp: recording ended there\n", path);
	if (s->lost)
		fprintf(stderr, "heapcore: %s: %" PRIu64 " events in signal "
			"handlers were missed\n", path, s->lost);
	fprintf(stderr, "heapcore: %s: %" PRIu64 " %s, %s; next: "
		"heapcore replay %s%s\n", path, s->events, sampled ?
		"events of sampled blocks" : "events", size,
		sampled ? "" : "--exact ", path);
}

static const char no_record[] = "it is static, setuid, of another "
	"architecture, or did not start";

static void say_nothing(const char *path)
{
	struct statvfs fs;

	if (!statvfs(path, &fs) && fs.f_bavail * fs.f_bsize < MIB)
		fprintf(stderr, "heapcore: %s: %s: nothing was recorded\n",
			path, strerror(ENOSPC));
	else
		fprintf(stderr, "heapcore: the program made no record: %s\n",
			no_record);
}

/* What became of it by exec, and has no file. */
static void say_unseen(const char *path, const struct trace_seal *s)
{
	if (s->executes[0])
		fprintf(stderr, "heapcore: %s ends where %s was executed, "
			"which made no record: %s\n", path, s->executes,
			no_record);
}

/* prctl is seen in time, a filter of seccomp(2) is not. */
static void say_filtered(const char *path)
{
	fprintf(stderr, "heapcore: %s: killed by SIGSYS: a seccomp filter of "
		"the program does not let the recorder go on; record it "
		"without that\n", path);
}

static void finish_trace(const char *path, int status, bool quiet,
			 bool sampled)
{
	struct trace_seal s = {
		.how = WIFSIGNALED(status) ? TRACE_END_SIGNAL :
			TRACE_END_EXIT,
		.value = (uint64_t)(WIFSIGNALED(status) ? WTERMSIG(status) :
				    WEXITSTATUS(status)),
	};
	struct stat st;
	struct err err;

	if (!stat(path, &st) && !st.st_size) {
		if (!quiet)
			say_nothing(path);
		unlink(path);
	} else if (!trace_seal(path, &s, &err)) {
		cmd_fail(&err);
	} else if (!quiet) {
		if (WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS)
			say_filtered(path);
		say_unseen(path, &s);
		say_end(path, &s, sampled);
	}
}

/* Most objects of Python are none that malloc sees. */
static void say_python(const struct plan *plan, const char *path)
{
	const char *slash = strrchr(plan->argv[0], '/');

	if (!strncmp(slash ? slash + 1 : plan->argv[0], "python", 6) &&
	    !getenv("PYTHONMALLOC"))
		fprintf(stderr, "heapcore: %s: Python cuts objects of up to "
			"512 bytes out of arenas of its own; with "
			"PYTHONMALLOC=malloc each would be recorded\n", path);
}

/* As the program died; without a core of ours beside its own. */
static int die_alike(int sig)
{
	struct rlimit none = { 0, 0 };
	sigset_t set;

	setrlimit(RLIMIT_CORE, &none);
	prctl(PR_SET_DUMPABLE, 0);
	signal(sig, SIG_DFL);
	sigemptyset(&set);
	sigaddset(&set, sig);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	raise(sig);
	return 128 + sig;
}

/* As headers of traces have it. */
static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static int record_program(const struct args *a, const struct plan *plan)
{
	struct err err = { .kind = ERR_NONE };
	uint64_t since = now_ns();
	AUTO_FREE char *path = NULL;
	struct images images;
	const char *last;
	int status = 0;
	pid_t pid = 0;

	if (!run_program(plan, &pid, &status, &err)) {
		if (err.kind != ERR_NONE)
			return cmd_fail(&err);
		return WEXITSTATUS(status);
	}
	path = path_of(plan->pattern, pid);
	images_find(&images, path, pid, since);
	last = images.n ? images.paths[images.n - 1] : path;
	if (!a->common.quiet)
		images_say(&images);
	finish_trace(last, status, a->common.quiet, a->rate);
	if (!a->common.quiet)
		say_python(plan, last);
	if (a->children)
		seal_children(plan->pattern, last);
	images_fini(&images);
	fflush(stderr);
	return WIFSIGNALED(status) ? die_alike(WTERMSIG(status)) :
		WEXITSTATUS(status);
}

static int record(const struct command *self, int argc, char **argv)
{
	struct args a = { .depth = NULL };
	struct plan plan = { .argv = NULL };
	struct err err = { .kind = ERR_NONE };
	int status;

	if (cmd_begin(self, argc, argv, &a, &a.words, &status))
		status = prepare(&a, &plan, &err) ?
			 record_program(&a, &plan) : cmd_usage(self, &err);
	plan_fini(&plan);
	list_fini(&a.words);
	return status;
}

const struct command command_record = {
	.name = "record",
	.summary = "run a program and record its allocations",
	.usage =
"Usage: heapcore record [OPTION]... -- PROG [ARG]...\n"
"Run PROG and write a trace of its allocations.\n"
"\n"
"  heapcore record -- ./appd --batch\n"
"  heapcore record -o /var/tmp/%p.trace --children -- make test\n"
"  heapcore record --rate=512k -o appd.trace -- ./appd\n",
	.groups = groups,
	.n_groups = countof(groups),
	.run = record,
};
