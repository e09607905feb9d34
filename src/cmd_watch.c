/* SPDX-License-Identifier: MIT */
/*
 * heapcore watch: one line about a process at a time.
 *
 * Looks begin at multiples of the interval; one that is late is left out.
 * Between two of them the process runs for at least REST times as long as it
 * stood still, whatever the interval.  Nothing is kept of a look but its line,
 * so that this can run for days.
 *
 * Signals that end it are blocked and read from a descriptor: they wait for
 * the end of a look.  Another descriptor stands for the process and tells of
 * its end at once, also if its number has a new owner.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/num.h"
#include "cmd.h"
#include "cmd_subject.h"
#include "report/build.h"
#include "report/table.h"

enum { REST = 4, HEADING_EVERY = 22 };

struct args {
	struct common common;
	const char *pid;
	const char *every;
	const char *count;
	const char *for_time;
	struct subject_args how;
	struct list files;
};

#define ARG(field) offsetof(struct args, field)

static const struct option pid_option[] = {
	{ 'p', "pid", "PID", "the process", OPTION_ONE, ARG(pid) },
};

static const struct option watch_options[] = {
	{ 'n', "every", "TIME", "from one look to the next, as in 500ms,\n"
	  "10s, 1m [10s]", OPTION_VALUE, ARG(every) },
	{ 0, "count", "N", "end after so many looks", OPTION_VALUE,
	  ARG(count) },
	{ 0, "for", "TIME", "end after this time", OPTION_VALUE,
	  ARG(for_time) },
};

static const struct option_group groups[] = {
	{ "Watch", watch_options, countof(watch_options), 0 },
	{ "Input", pid_option, countof(pid_option), 0 },
	{ NULL, subject_process_options, SUBJECT_PROCESS_OPTIONS, ARG(how) },
	{ NULL, subject_file_options, SUBJECT_FILE_OPTIONS, ARG(how) },
	{ "Output", common_options, COMMON_OPTIONS, ARG(common) },
};

/* What a look found. */
struct look_line {
	double time, elapsed;	/* seconds: since 1970, since the first */
	uint64_t rss;
	bool rss_known;
	bool read;		/* the process could be read */
	bool heap;		/* and an allocator was found */
	struct heap_sum sum;
	uint64_t free_resident;
	bool pages;		/* that is known */
	uint64_t arenas;
	double pause;
};

enum why { WHY_NONE, WHY_COUNT, WHY_TIME, WHY_SIGNAL, WHY_GONE, WHY_OUTPUT };

struct watch {
	struct args args;
	uint32_t pid;
	uint64_t every_ns, for_ns;	/* for_ns 0: without end */
	uint64_t count;			/* 0: without end */
	const struct allocator *allocator;
	struct progress progress;
	bool color;
	int pid_fd, signal_fd;
	struct out out;
	bool out_tty;
	struct table table;
	struct str program;		/* its name, safe for a terminal */
	char date[16];
	uint64_t since_heading;		/* lines */

	uint64_t start_ns, n_looks, n_failed;
	struct look_line first, last;	/* that were read */
	bool any;			/* there are such */
	double pause_max, pause_sum;
	struct str incomplete;	/* why the last look that was so is */
};

/* ---- the command line ---- */

static bool prepare(struct watch *w, struct err *err)
{
	const struct args *a = &w->args;
	double pause;

	if (a->files.n)
		return err_set(err, ERR_USAGE, "'%.60s' is too much: the "
			       "process is --pid", a->files.items[0]);
	if (!a->pid)
		return err_set(err, ERR_USAGE, "no process given: --pid=PID");
	if (a->count && (!num_parse_u64(a->count, &w->count) || !w->count))
		return err_set(err, ERR_USAGE, "--count: '%.40s' is not a "
			       "number from 1 on", a->count);
	w->every_ns = UINT64_C(10000000000);
	return cmd_pid(a->pid, &w->pid, err) &&
	       cmd_seconds(a->how.max_pause, &pause, err) &&
	       (!a->every ||
		cmd_time("every", a->every, &w->every_ns, err)) &&
	       (!a->for_time ||
		cmd_time("for", a->for_time, &w->for_ns, err)) &&
	       subject_allocator(&a->how, &w->allocator, err) &&
	       cmd_color(&a->common, &w->color, err);
}

/* ---- waiting ---- */

static uint64_t now_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/*
 * Those that end it by a key, by order, or by the end of the terminal, unless
 * nohup(1) said that this is none.  They stay blocked.
 */
static int open_signals(void)
{
	struct sigaction hup;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	if (!sigaction(SIGHUP, NULL, &hup) && hup.sa_handler != SIG_IGN)
		sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* Until then, a signal, or the end of the process. */
static enum why wait_until(const struct watch *w, uint64_t when_ns)
{
	/* Of a descriptor of -1 poll says nothing. */
	struct pollfd fds[2] = {
		{ .fd = w->signal_fd, .events = POLLIN },
		{ .fd = w->pid_fd, .events = POLLIN },
	};

	for (;;) {
		uint64_t now = now_ns(CLOCK_MONOTONIC);
		uint64_t left = when_ns > now ? when_ns - now : 0;
		struct timespec t = {
			.tv_sec = (time_t)(left / 1000000000),
			.tv_nsec = (long)(left % 1000000000),
		};
		int n = ppoll(fds, 2, &t, NULL);

		if (n > 0 && fds[0].revents)
			return WHY_SIGNAL;
		if (n > 0 && fds[1].revents)
			return WHY_GONE;
		if (n == 0)
			return WHY_NONE;
		if (errno != EINTR)
			return WHY_SIGNAL;
	}
}

static bool is_gone(const struct watch *w)
{
	struct pollfd fd = { .fd = w->pid_fd, .events = POLLIN };

	if (w->pid_fd < 0)
		return kill((pid_t)w->pid, 0) && errno == ESRCH;
	return poll(&fd, 1, 0) > 0;
}

/* ---- looking ---- */

/* As ps(1) shows it. */
static bool read_rss(uint32_t pid, uint64_t *ret)
{
	char path[64], text[256];
	unsigned long long pages;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%u/statm", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0)
		return false;
	text[n] = '\0';
	if (sscanf(text, "%*u %llu", &pages) != 1)
		return false;
	*ret = pages * (uint64_t)sysconf(_SC_PAGESIZE);
	return true;
}

static void take_heap(struct look_line *l, struct subject *s)
{
	fragment_init(&s->fragment, s->sp, &s->heap);
	l->sum = sum_heap(&s->heap);
	l->pages = space_pages_known(s->sp);
	l->free_resident = sum_free_resident(&s->where);
	for (size_t i = 0; i < s->heap.n_arenas; i++)
		l->arenas += s->heap.arenas[i].addr != 0;
	l->heap = true;
}

/* The first look says what there is to warn of; the others would repeat it. */
static void warn_once(struct watch *w, const struct subject *s,
		      const struct err *err)
{
	if (w->n_looks)
		return;
	if (s->sp->program)
		str_add_escaped(&w->program, s->sp->program,
				strlen(s->sp->program));
	if (!w->args.common.quiet)
		cmd_warn(s->sp, false);
	if (!s->input.heap_found)
		cmd_fail(err);
}

static void note_incomplete(struct watch *w, const struct report_input *in)
{
	struct str why;

	str_init(&why);
	if (!report_complete(in, &why)) {
		str_clear(&w->incomplete);
		str_add(&w->incomplete, why.text, why.len);
	}
	str_fini(&why);
}

static bool look(struct watch *w, struct look_line *ret, struct err *err)
{
	struct look_line l = { .read = false };
	struct subject s;
	bool ok;

	subject_init(&s);
	l.time = (double)now_ns(CLOCK_REALTIME) / 1e9;
	l.elapsed = (double)(now_ns(CLOCK_MONOTONIC) - w->start_ns) / 1e9;
	l.rss_known = read_rss(w->pid, &l.rss);
	ok = subject_open_live(&s, &w->args.how, w->args.pid, &w->progress,
			       err);
	if (ok) {
		l.pause = s.sp->torn ? 0 : s.sp->stopped_s;
		ok = subject_walk(&s, w->allocator, &w->progress, err);
	}
	if (ok) {
		l.read = true;
		warn_once(w, &s, err);
		subject_where(&s, &w->progress);
		if (s.input.heap_found)
			take_heap(&l, &s);
		note_incomplete(w, &s.input);
	}
	progress_phase(&w->progress, NULL);
	subject_fini(&s);
	*ret = l;
	return ok;
}

/* ---- printing ---- */

enum {
	L_KIND, L_CLOCK, L_TIME, L_ELAPSED, L_RSS, L_USED, L_CHANGE, L_FREE,
	L_FREE_RESIDENT, L_TRIMMABLE, L_MMAPPED, L_ARENAS, L_PAUSE, L_MAPPED,
	L_USED_BLOCKS, L_COLUMNS
};

static const struct column line_columns[L_COLUMNS] = {
	[L_KIND] = DATA_COLUMN("kind", TEXT),
	[L_CLOCK] = COLUMN("clock", "", TEXT, .flags = COLUMN_NO_DATA),
	[L_TIME] = DATA_COLUMN("time_s", SECONDS),
	[L_ELAPSED] = DATA_COLUMN("elapsed_s", SECONDS),
	[L_RSS] = COLUMN("rss_bytes", "RSS", BYTES, .width = 8),
	[L_USED] = COLUMN("used_bytes", "in use", BYTES, .width = 8),
	[L_CHANGE] = COLUMN("used_change_bytes", "change", CHANGE,
			    .width = 9),
	[L_FREE] = COLUMN("free_bytes", "free", BYTES, .width = 8),
	[L_FREE_RESIDENT] = COLUMN("free_resident_bytes", "free RSS", BYTES,
				   .width = 9),
	[L_TRIMMABLE] = COLUMN("trimmable_bytes", "trim", BYTES, .width = 8),
	[L_MMAPPED] = COLUMN("mmapped_bytes", "mmapped", BYTES, .width = 9),
	[L_ARENAS] = COLUMN("arenas", "arenas", COUNT, .width = 8),
	[L_PAUSE] = COLUMN("stopped_s", "pause", SECONDS, .width = 9),
	[L_MAPPED] = DATA_COLUMN("mapped_bytes", BYTES),
	[L_USED_BLOCKS] = DATA_COLUMN("used_blocks", COUNT),
};

static void set_heap(struct table *t, const struct watch *w,
		     const struct look_line *l)
{
	table_set(t, L_USED, l->sum.used);
	if (w->any && w->last.heap)
		table_set_signed(t, L_CHANGE, (int64_t)(l->sum.used -
							w->last.sum.used));
	table_set(t, L_FREE, l->sum.free);
	if (l->pages)
		table_set(t, L_FREE_RESIDENT, l->free_resident);
	table_set(t, L_TRIMMABLE, l->sum.trimmable);
	table_set(t, L_MMAPPED, l->sum.mmapped);
	table_set(t, L_ARENAS, l->arenas);
	table_set(t, L_MAPPED, l->sum.mapped);
	table_set(t, L_USED_BLOCKS, l->sum.used_blocks);
}

static void fill_row(struct watch *w, const struct look_line *l,
		     const char *clock)
{
	struct table *t = &w->table;

	table_clear(t);
	table_row(t);
	table_set_text(t, L_KIND, "look");
	table_set_text(t, L_CLOCK, clock);
	table_set_real(t, L_TIME, l->time);
	table_set_real(t, L_ELAPSED, l->elapsed);
	if (l->rss_known)
		table_set(t, L_RSS, l->rss);
	if (l->read)
		table_set_real(t, L_PAUSE, l->pause);
	if (l->heap)
		set_heap(t, w, l);
}

/*
 * Free memory that was given back keeps its addresses: beside RSS stands what
 * is resident of it, where that is known.
 */
static void choose_columns(struct watch *w, const struct look_line *l)
{
	table_hide(&w->table, l->pages ? L_FREE : L_FREE_RESIDENT);
}

/* The date is the heading of the times below it. */
static void print_heading(struct watch *w, const char *date)
{
	struct text_style style = { .color = w->color, .stream = true };
	bool new_day = strcmp(w->date, date);
	bool new_page = w->out_tty && w->since_heading >= HEADING_EVERY;

	if (!new_day && !new_page)
		return;
	snprintf(w->date, sizeof(w->date), "%s", date);
	w->table.title = w->date;
	table_clear(&w->table);
	table_write_text(&w->table, &style, &w->out);
	w->since_heading = 0;
}

static void print_look(struct watch *w, const struct look_line *l)
{
	struct text_style style = { .color = w->color, .stream = true };
	time_t seconds = (time_t)l->time;
	char date[16], clock[16];
	struct tm tm;

	localtime_r(&seconds, &tm);
	strftime(date, sizeof(date), "%Y-%m-%d", &tm);
	strftime(clock, sizeof(clock), "%H:%M:%S", &tm);
	if (!w->args.common.json)
		print_heading(w, date);
	fill_row(w, l, clock);
	if (w->args.common.json)
		table_write_ndjson(&w->table, 0, &w->out);
	else
		table_write_text(&w->table, &style, &w->out);
	w->since_heading++;
}

/* How long the process must run after a look. */
static uint64_t rest_after(const struct look_line *l)
{
	return (uint64_t)(REST * l->pause * 1e9);
}

/* The first look tells whether the interval can be kept. */
static void print_start(struct watch *w, const struct look_line *l)
{
	if (w->args.common.json)
		return;
	out_printf(&w->out, WATCH_HEADING "%u: %s, every %.6g s", w->pid,
		   w->program.len ? w->program.text : "?",
		   (double)w->every_ns / 1e9);
	if (rest_after(l) + (uint64_t)(l->pause * 1e9) > w->every_ns)
		out_printf(&w->out, " or less often:\n  it runs at least %d "
			   "times as long as it stood still (\"pause\")",
			   REST);
	out_adds(&w->out, "\n\n");
}

enum {
	E_KIND, E_WHY, E_TEXT, E_LOOKS, E_FAILED, E_ELAPSED, E_RSS, E_USED,
	E_FREE, E_FREE_RESIDENT, E_PAUSE_MAX, E_PAUSE_SUM, E_COLUMNS
};

static const struct column end_columns[E_COLUMNS] = {
	[E_KIND] = DATA_COLUMN("kind", TEXT),
	[E_WHY] = DATA_COLUMN("why", TEXT),
	[E_TEXT] = COLUMN("text", "", TEXT),
	[E_LOOKS] = DATA_COLUMN("looks", COUNT),
	[E_FAILED] = DATA_COLUMN("failed_looks", COUNT),
	[E_ELAPSED] = DATA_COLUMN("elapsed_s", SECONDS),
	[E_RSS] = DATA_COLUMN("rss_change_bytes", CHANGE),
	[E_USED] = DATA_COLUMN("used_change_bytes", CHANGE),
	[E_FREE] = DATA_COLUMN("free_change_bytes", CHANGE),
	[E_FREE_RESIDENT] = DATA_COLUMN("free_resident_change_bytes", CHANGE),
	[E_PAUSE_MAX] = DATA_COLUMN("stopped_max_s", SECONDS),
	[E_PAUSE_SUM] = DATA_COLUMN("stopped_sum_s", SECONDS),
};

static void add_change(struct str *s, const char *what, int64_t change)
{
	char size[NUM_MAX];

	num_format_size(size, num_abs(change));
	str_printf(s, "; %s %s%s", what, change < 0 ? "-" : change ? "+" : "",
		   change ? size : "as before");
}

static void add_free_change(struct str *s, const struct look_line *first,
			    const struct look_line *last)
{
	if (first->pages && last->pages)
		add_change(s, "free RSS", (int64_t)(last->free_resident -
						    first->free_resident));
	else
		add_change(s, "free", (int64_t)(last->sum.free -
						first->sum.free));
}

/* "8640 looks in 86390 s: in use +1.2M; RSS +1.3M; ..." */
static void set_end_text(struct table *t, const struct watch *w)
{
	struct str s;

	str_init(&s);
	str_printf(&s, "%" PRIu64 " look%s in %.1f s", w->n_looks,
		   w->n_looks == 1 ? "" : "s", w->last.elapsed);
	if (w->n_failed)
		str_printf(&s, ", %" PRIu64 " failed", w->n_failed);
	if (w->first.heap && w->last.heap) {
		add_change(&s, "in use", (int64_t)(w->last.sum.used -
						   w->first.sum.used));
		add_free_change(&s, &w->first, &w->last);
	}
	if (w->first.rss_known && w->last.rss_known)
		add_change(&s, "RSS", (int64_t)(w->last.rss - w->first.rss));
	if (w->pause_sum > 0)
		str_printf(&s, "; stopped for %.1f ms at most, %.3f s in all",
			   1000 * w->pause_max, w->pause_sum);
	str_addc(&s, '.');
	table_set_text(t, E_TEXT, s.text);
	str_fini(&s);
}

static void set_end_data(struct table *t, const struct watch *w)
{
	table_set(t, E_LOOKS, w->n_looks);
	table_set(t, E_FAILED, w->n_failed);
	table_set_real(t, E_ELAPSED, w->last.elapsed);
	table_set_real(t, E_PAUSE_MAX, w->pause_max);
	table_set_real(t, E_PAUSE_SUM, w->pause_sum);
	if (w->first.rss_known && w->last.rss_known)
		table_set_signed(t, E_RSS, (int64_t)(w->last.rss -
						     w->first.rss));
	if (!w->first.heap || !w->last.heap)
		return;
	table_set_signed(t, E_USED, (int64_t)(w->last.sum.used -
					      w->first.sum.used));
	table_set_signed(t, E_FREE, (int64_t)(w->last.sum.free -
					      w->first.sum.free));
	if (w->first.pages && w->last.pages)
		table_set_signed(t, E_FREE_RESIDENT,
				 (int64_t)(w->last.free_resident -
					   w->first.free_resident));
}

static void print_end(struct watch *w, enum why why)
{
	static const char *const reasons[] = {
		[WHY_NONE] = "", [WHY_COUNT] = "count", [WHY_TIME] = "time",
		[WHY_SIGNAL] = "signal", [WHY_GONE] = "gone",
		[WHY_OUTPUT] = "",
	};
	struct text_style style = { .color = w->color };
	struct table t;

	table_init(&t, "end", "IN ALL", end_columns, E_COLUMNS);
	t.form = TABLE_SENTENCES;
	table_row(&t);
	table_set_text(&t, E_KIND, "end");
	table_set_text(&t, E_WHY, reasons[why]);
	set_end_text(&t, w);
	set_end_data(&t, w);
	if (w->args.common.json) {
		table_write_ndjson(&t, 0, &w->out);
	} else {
		out_addc(&w->out, '\n');
		table_write_text(&t, &style, &w->out);
	}
	table_fini(&t);
}

/* ---- the loop ---- */

static void count_look(struct watch *w, const struct look_line *l, bool ok)
{
	w->n_looks++;
	w->n_failed += !ok;
	w->pause_sum += l->pause;
	if (l->pause > w->pause_max)
		w->pause_max = l->pause;
	if (!ok)
		return;
	if (!w->any)
		w->first = *l;
	w->last = *l;
	w->any = true;
}

/* When the next look is due. */
static uint64_t next_look(const struct watch *w, const struct look_line *l)
{
	uint64_t now = now_ns(CLOCK_MONOTONIC);
	uint64_t next = w->start_ns +
			((now - w->start_ns) / w->every_ns + 1) * w->every_ns;

	return max_u64(next, now + rest_after(l));
}

static enum why is_over(const struct watch *w, uint64_t next)
{
	if (w->count && w->n_looks >= w->count)
		return WHY_COUNT;
	if (w->for_ns && next > w->start_ns + w->for_ns)
		return WHY_TIME;
	return WHY_NONE;
}

/* One look and its line.  False if the watch cannot go on. */
static bool look_once(struct watch *w, enum why *ret_why, uint64_t *ret_next,
		      struct err *err)
{
	struct look_line l;
	bool ok = look(w, &l, err);

	if (!ok && !w->any)
		return false;
	if (!ok && is_gone(w)) {
		*ret_why = WHY_GONE;
		return true;
	}
	if (!ok)
		cmd_fail(err);
	if (!w->n_looks)
		print_start(w, &l);
	if (!w->n_looks)
		choose_columns(w, &l);
	print_look(w, &l);
	count_look(w, &l, ok);
	*ret_next = next_look(w, &l);
	*ret_why = is_over(w, *ret_next);
	if (w->n_looks == 1 && !out_publish(&w->out, err))
		return false;
	if (!out_flush(&w->out))
		*ret_why = WHY_OUTPUT;
	return true;
}

/* What is left of --for passes without a look, unless something ends it. */
static enum why wait_rest(const struct watch *w)
{
	enum why why = wait_until(w, w->start_ns + w->for_ns);

	return why == WHY_NONE ? WHY_TIME : why;
}

static int watch_process(struct watch *w, struct err *err)
{
	enum why why = WHY_NONE;
	uint64_t next = 0;

	w->start_ns = now_ns(CLOCK_MONOTONIC);
	while (why == WHY_NONE) {
		if (!look_once(w, &why, &next, err)) {
			out_abandon(&w->out);
			return cmd_fail(err);
		}
		if (why == WHY_NONE)
			why = wait_until(w, next);
	}
	if (why == WHY_TIME)
		why = wait_rest(w);
	progress_fini(&w->progress);
	if (why != WHY_OUTPUT)
		print_end(w, why);
	if (!out_close(&w->out, err))
		return cmd_fail(err);
	if (why == WHY_GONE)
		fprintf(stderr, "heapcore: process %u: has ended\n", w->pid);
	if (w->incomplete.len && !w->args.common.quiet)
		fprintf(stderr, "heapcore: process %u: incomplete (status 3): "
			"%s\n", w->pid, w->incomplete.text);
	return why == WHY_GONE || w->incomplete.len || w->n_failed
		? STATUS_INCOMPLETE : STATUS_COMPLETE;
}

static void watch_fini(struct watch *w)
{
	table_fini(&w->table);
	str_fini(&w->program);
	str_fini(&w->incomplete);
	if (w->pid_fd >= 0)
		close(w->pid_fd);
	if (w->signal_fd >= 0)
		close(w->signal_fd);
	subject_args_fini(&w->args.how);
	list_fini(&w->args.files);
}

static int run_watch(struct watch *w, struct err *err)
{
	w->signal_fd = open_signals();
	/* Since Linux 5.3; without it the number alone says who it is. */
	w->pid_fd = (int)syscall(SYS_pidfd_open, w->pid, 0);
	w->out_tty = isatty(w->out.fd);
	return watch_process(w, err);
}

static int watch(const struct command *self, int argc, char **argv)
{
	struct watch w = { .pid_fd = -1, .signal_fd = -1 };
	struct args *a = &w.args;
	struct err err = { .kind = ERR_NONE };
	int status;

	str_init(&w.program);
	str_init(&w.incomplete);
	table_init(&w.table, "watch", "", line_columns, L_COLUMNS);
	if (cmd_begin(self, argc, argv, a, &a->files, &status) &&
	    cmd_start(self, prepare(&w, &err), &a->common, &w.progress,
		      &w.out, &err, &status))
		status = run_watch(&w, &err);
	watch_fini(&w);
	return status;
}

const struct command command_watch = {
	.name = "watch",
	.summary = "a line about a process, again and again",
	.usage =
"Usage: heapcore watch [OPTION]... -p PID\n"
"Print a line about the heap of a process, until Ctrl-C or its end.  For each\n"
"look it stands still for as long as the column \"pause\" says.\n"
"\n"
"  heapcore watch -p 1234\n"
"  heapcore watch --every=1m --for=8h -p 1234\n"
"  heapcore watch --every=500ms --count=20 -p 1234\n"
"  heapcore watch --json -p 1234 >>appd.ndjson\n",
	.groups = groups,
	.n_groups = countof(groups),
	.run = watch,
};
