/* SPDX-License-Identifier: MIT */
/*
 * heapcore trace: what is in a trace, whether all of it is, and other forms.
 */
#include "cmd_trace.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"
#include "cmd.h"
#include "replay/maps.h"
#include "replay/objects.h"
#include "replay/trace_import.h"
#include "replay/trace_pack.h"
#include "report/out.h"
#include "report/replay.h"
#include "report/table.h"

struct args {
	struct common common;
	const char *rows;
	bool stacks;
	const char *tmpdir;
	struct list words;
};

#define ARG(field) offsetof(struct args, field)
#define COMMON(field) (ARG(common) + offsetof(struct common, field))

static const struct option what_options[] = {
	{ 0, "rows", "N|all", "events that dump prints [all]", OPTION_VALUE,
	  ARG(rows) },
	{ 0, "stacks", NULL, "dump: each call stack, when it first appears",
	  OPTION_FLAG, ARG(stacks) },
	{ 0, "tmpdir", "DIR", "where to unpack a compressed trace\n"
	  "[$TMPDIR or /tmp]", OPTION_VALUE, ARG(tmpdir) },
};

static const struct option output_options[] = {
	{ 'o', "output", "FILE", "write there; pack and convert need it",
	  OPTION_VALUE, COMMON(output) },
	{ 0, "force", NULL, "replace FILE even if it is no report",
	  OPTION_FLAG, COMMON(force) },
	{ 0, "json", NULL, "info as one JSON document", OPTION_FLAG,
	  COMMON(json) },
};

static const struct option_group groups[] = {
	{ "What", what_options, countof(what_options), 0 },
	{ "Output", output_options, countof(output_options), 0 },
	COMMON_FROM(COMMON_PROGRESS, ARG(common)),
};

/* What all four do with their file. */
struct job {
	const struct args *a;
	struct progress *progress;
	const char *path;
};

enum {
	INFO_PROGRAM, INFO_ARGUMENTS, INFO_PID, INFO_ENDED, INFO_SECONDS,
	INFO_EVENTS, INFO_LIVE_BLOCKS, INFO_LIVE_BYTES, INFO_STRANGE,
	INFO_MAPPED, INFO_MAPPED_PEAK, INFO_RESERVED,
	INFO_THREADS, INFO_STACKS, INFO_MODULES, INFO_SAMPLED,
	INFO_COUNTED, INFO_COUNTED_BYTES, INFO_COUNTED_FREES,
	INFO_FILE, INFO_PER_EVENT, INFO_RECORDER, INFO_LOST, INFO_DAMAGE,
};

static const struct column info_columns[] = {
	[INFO_PROGRAM] = COLUMN("program", "program", TEXT,
				.flags = COLUMN_RAW),
	[INFO_ARGUMENTS] = COLUMN("arguments", "arguments", TEXT,
				  .flags = COLUMN_RAW),
	[INFO_PID] = COLUMN("pid", "pid", COUNT),
	[INFO_ENDED] = COLUMN("ended", "ended", TEXT),
	[INFO_SECONDS] = COLUMN("seconds", "seconds", SECONDS),
	[INFO_EVENTS] = COLUMN("events", "events", COUNT),
	[INFO_LIVE_BLOCKS] = COLUMN("live_blocks", "live at the end", COUNT),
	[INFO_LIVE_BYTES] = COLUMN("live_bytes", "bytes in them", BYTES),
	[INFO_STRANGE] = COLUMN("unknown_frees", "frees of unknown blocks",
				COUNT),
	[INFO_MAPPED] = COLUMN("mapped_bytes", "mapped by itself", BYTES),
	[INFO_MAPPED_PEAK] = COLUMN("mapped_peak_bytes", "and at most", BYTES),
	[INFO_RESERVED] = COLUMN("reserved_bytes", "mapped without access",
				 BYTES),
	[INFO_THREADS] = COLUMN("threads", "threads", COUNT),
	[INFO_STACKS] = COLUMN("stacks", "call stacks", COUNT),
	[INFO_MODULES] = COLUMN("modules", "modules", COUNT),
	[INFO_SAMPLED] = COLUMN("sampled_rate_bytes", "sampled every", BYTES),
	[INFO_COUNTED] = COLUMN("counted_blocks", "all blocks, counted",
				COUNT),
	[INFO_COUNTED_BYTES] = COLUMN("counted_bytes", "bytes in them",
				      BYTES),
	[INFO_COUNTED_FREES] = COLUMN("counted_frees", "frees, counted",
				      COUNT),
	[INFO_FILE] = COLUMN("file_bytes", "file", BYTES),
	[INFO_PER_EVENT] = COLUMN("bytes_per_event", "bytes an event", TEXT),
	[INFO_RECORDER] = COLUMN("recorder", "recorder", TEXT,
				 .flags = COLUMN_RAW),
	[INFO_LOST] = COLUMN("lost_events", "lost events", COUNT),
	[INFO_DAMAGE] = COLUMN("damage", "damage", TEXT),
};

enum { CLASS_FROM, CLASS_TO, CLASS_BLOCKS, CLASS_BYTES };

static const struct column class_columns[] = {
	[CLASS_FROM] = COLUMN("from_bytes", "from", COUNT),
	[CLASS_TO] = COLUMN("to_bytes", "to", COUNT),
	[CLASS_BLOCKS] = COLUMN("blocks", "blocks", COUNT,
				.flags = COLUMN_SUM),
	[CLASS_BYTES] = COLUMN("bytes", "bytes", BYTES,
			       .flags = COLUMN_SUM),
};

enum { KIND_NAME, KIND_COUNT, KIND_BYTES };

static const struct column kind_columns[] = {
	[KIND_NAME] = COLUMN("kind", "", TEXT),
	[KIND_COUNT] = COLUMN("events", "events", COUNT,
			      .flags = COLUMN_SUM),
	[KIND_BYTES] = COLUMN("bytes", "bytes", BYTES),
};

/* Sums over a trace, and how long it is. */
struct sums {
	uint64_t events;
	uint64_t last_tick;
	uint64_t count[16], bytes[16];
	struct objects live;	/* size + 1 at each address */
	uint64_t live_bytes;
	uint64_t strange;
	struct maps maps;
};

static void drop_block(struct sums *sums, vaddr addr, bool strange)
{
	uint64_t size = objects_take(&sums->live, addr);

	sums->live_bytes -= size ? size - 1 : 0;
	sums->strange += !size && strange;
}

static void add_event(struct sums *sums, const struct trace_event *e)
{
	sums->count[e->kind]++;
	sums->bytes[e->kind] += e->size;
	if (trace_is_free(e->kind))
		drop_block(sums, e->addr, e->kind != TRACE_REALLOC_SAME);
	if (trace_is_alloc(e->kind)) {
		drop_block(sums, e->addr, false);
		objects_put(&sums->live, e->addr, e->size + 1);
		sums->live_bytes += e->size;
	}
	if (trace_is_map(e->kind))
		maps_event(&sums->maps, e);
}

static void add_up(struct trace *t, struct progress *p, struct sums *ret)
{
	const struct trace_event *e;
	size_t n;

	*ret = (struct sums){ .events = 0 };
	objects_init(&ret->live);
	maps_init(&ret->maps);
	progress_phase(p, "reading the trace");
	while ((n = trace_read(t, &e))) {
		for (size_t i = 0; i < n; i++)
			add_event(ret, &e[i]);
		ret->events += n;
		ret->last_tick = e[n - 1].tick;
		progress_step(p, trace_position(t), trace_info(t)->file_size,
			      ret->events, "events");
	}
}

/* Zeros between arguments become blanks. */
static void set_meta(struct table *table, size_t column, const struct trace *t,
		     const char *key)
{
	const struct trace_info *info = trace_info(t);

	for (size_t i = 0; i < info->n_meta; i++) {
		const struct trace_text *value = &info->meta[i].value;
		struct str s;

		if (strcmp(info->meta[i].key.text, key))
			continue;
		str_init(&s);
		str_add(&s, value->text, value->len);
		for (size_t k = 0; k < s.len; k++)
			if (!s.text[k])
				s.text[k] = ' ';
		table_set_bytes(table, column, s.text, s.len);
		str_fini(&s);
		return;
	}
}

/* Of the first: it is why recording ended; a parent writes another. */
static void add_ended(struct str *s, const struct trace_row *row)
{
	static const char *const how[] = {
		[TRACE_END_EXIT] = "with status ",
		[TRACE_END_SIGNAL] = "by signal ",
		[TRACE_END_FULL] = "no room in the file system, error ",
		[TRACE_END_MAX] = "at the limit, ",
		[TRACE_END_IMPORT] = "with the imported file",
		[TRACE_END_SECCOMP] = "the program confined itself with "
				      "seccomp",
		[TRACE_END_EXEC] = "by executing another program",
	};

	if (row->value[0] >= countof(how) || !how[row->value[0]])
		return;
	str_adds(s, how[row->value[0]]);
	if (row->value[0] < TRACE_END_IMPORT)
		str_printf(s, "%" PRIu64, row->value[1]);
	if (row->value[0] == TRACE_END_MAX)
		str_adds(s, " bytes");
}

static void set_ended(struct table *table, const struct trace *t)
{
	const struct trace_info *info = trace_info(t);
	struct str s;

	str_init(&s);
	if (replay_stopped_early(t))
		str_adds(&s, "recording: ");
	if (info->ends.n)
		add_ended(&s, &info->ends.rows[0]);
	else
		str_adds(&s, "not told: killed, or still running");
	if (s.len)
		table_set_text(table, INFO_ENDED, s.text);
	str_fini(&s);
}

static void fill_counts(struct table *table, const struct trace_counts *c)
{
	uint64_t bytes;

	table_set(table, INFO_COUNTED, trace_counted(c, &bytes));
	table_set(table, INFO_COUNTED_BYTES, bytes);
	table_set(table, INFO_COUNTED_FREES, c->frees);
}

static void fill_info(struct table *table, const struct trace *t,
		      const struct sums *sums)
{
	const struct trace_info *info = trace_info(t);
	const struct trace_damage *d = trace_damage(t);
	const char *rate = trace_meta_value(t, "rate");
	uint64_t bytes;

	table_row(table);
	set_meta(table, INFO_PROGRAM, t, "program");
	set_meta(table, INFO_ARGUMENTS, t, "arguments");
	table_set(table, INFO_PID, info->pid);
	set_ended(table, t);
	table_set_real(table, INFO_SECONDS, (double)trace_ns(t,
		       sums->last_tick) / 1e9);
	table_set(table, INFO_EVENTS, sums->events);
	table_set(table, INFO_LIVE_BLOCKS, sums->live.used);
	table_set(table, INFO_LIVE_BYTES, sums->live_bytes);
	table_set(table, INFO_STRANGE, sums->strange);
	if (sums->count[TRACE_MAP] || sums->count[TRACE_UNMAP]) {
		table_set(table, INFO_MAPPED, sums->maps.bytes);
		table_set(table, INFO_MAPPED_PEAK, sums->maps.peak_bytes);
		table_set(table, INFO_RESERVED, sums->maps.reserved);
	}
	table_set(table, INFO_THREADS, info->n_threads);
	table_set(table, INFO_STACKS, info->n_stacks);
	table_set(table, INFO_MODULES, info->n_modules);
	if (rate && num_parse_u64(rate, &bytes))
		table_set(table, INFO_SAMPLED, bytes);
	if (info->counted)
		fill_counts(table, &info->counts);
	table_set(table, INFO_FILE, info->file_size);
	if (sums->events)
		table_printf(table, INFO_PER_EVENT, "%.2f",
			     (double)info->file_size / (double)sums->events);
	set_meta(table, INFO_RECORDER, t, "recorder");
	table_set(table, INFO_LOST, d->lost);
	table_set_text(table, INFO_DAMAGE, d->first[0] ? d->first : "none");
}

static void fill_kinds(struct table *table, const struct sums *sums)
{
	for (unsigned kind = 0; kind < countof(sums->count); kind++) {
		if (!sums->count[kind])
			continue;
		table_row(table);
		table_set_text(table, KIND_NAME, trace_kind_name(kind));
		table_set(table, KIND_COUNT, sums->count[kind]);
		if (1u << kind & TRACE_KINDS_SIZED)
			table_set(table, KIND_BYTES, sums->bytes[kind]);
	}
	table_add_total(table);
}

/* One row for each power of two, or for each class that was counted. */
static void fill_classes(struct table *table, const struct trace_counts *c,
			 bool fine)
{
	for (unsigned i = 0; i < TRACE_CLASSES;) {
		uint64_t from = trace_class_from(i), to = from;
		uint64_t blocks = 0, bytes = 0;

		do {
			blocks += c->classes[i].blocks;
			bytes += c->classes[i].bytes;
			to = trace_class_from(++i) - 1;
		} while (!fine && i < TRACE_CLASSES && to & (to + 1));
		if (!blocks)
			continue;
		table_row(table);
		table_set(table, CLASS_FROM, from);
		table_set(table, CLASS_TO, to);
		table_set(table, CLASS_BLOCKS, blocks);
		table_set(table, CLASS_BYTES, bytes);
	}
	table_add_total(table);
}

static void write_info(const struct table *info, const struct table *kinds,
		       const struct table *classes, bool json,
		       struct out *out)
{
	struct text_style style = { .rows = TABLE_ALL_ROWS };

	if (json) {
		out_adds(out, "{\n  \"schema\": \"heapcore-trace/1\",\n");
		table_write_json(info, out);
		out_adds(out, ",\n");
		table_write_json(kinds, out);
		if (classes->n_rows)
			out_adds(out, ",\n");
		if (classes->n_rows)
			table_write_json(classes, out);
		out_adds(out, "\n}\n");
	} else {
		table_write_text(info, &style, out);
		out_addc(out, '\n');
		table_write_text(kinds, &style, out);
		if (classes->n_rows)
			out_addc(out, '\n');
		if (classes->n_rows)
			table_write_text(classes, &style, out);
	}
}

static int finish(struct out *out, int status)
{
	struct err err;

	return out_close(out, &err) ? status : cmd_fail(&err);
}

static int damage_status(const struct trace *t)
{
	const struct trace_damage *d = trace_damage(t);

	return d->first[0] || d->lost ? STATUS_INCOMPLETE : STATUS_COMPLETE;
}

static int run_info(const struct job *job, struct trace *t)
{
	const struct trace_info *known = trace_info(t);
	struct table info, kinds, classes;
	struct sums sums;
	struct out out;
	struct err err;

	if (!out_open(&out, job->a->common.output, job->a->common.force,
		      &err))
		return cmd_fail(&err);
	table_init(&info, "trace", "TRACE", info_columns,
		   countof(info_columns));
	info.form = TABLE_OBJECT;
	table_init(&kinds, "kinds", "EVENTS", kind_columns,
		   countof(kind_columns));
	table_init(&classes, "classes", "ALL BLOCKS BY SIZE", class_columns,
		   countof(class_columns));
	add_up(t, job->progress, &sums);
	progress_fini(job->progress);
	fill_info(&info, t, &sums);
	fill_kinds(&kinds, &sums);
	if (known->counted)
		fill_classes(&classes, &known->counts, job->a->common.json);
	write_info(&info, &kinds, &classes, job->a->common.json, &out);
	table_fini(&info);
	table_fini(&kinds);
	table_fini(&classes);
	objects_fini(&sums.live);
	maps_fini(&sums.maps);
	return finish(&out, damage_status(t));
}

static void say_damage(const struct trace_damage *d, struct out *out)
{
	static const struct {
		size_t at;
		const char *what;
	} rows[] = {
		{ offsetof(struct trace_damage, headers),
		  "bytes that belong to no chunk" },
		{ offsetof(struct trace_damage, chunks),
		  "chunks missing or damaged" },
		{ offsetof(struct trace_damage, records),
		  "chunks given up at a record" },
		{ offsetof(struct trace_damage, unknown),
		  "chunks or records of an unknown kind" },
		{ offsetof(struct trace_damage, lost),
		  "events that the recorder missed" },
	};

	for (size_t i = 0; i < countof(rows); i++) {
		uint64_t n;

		memcpy(&n, (const char *)d + rows[i].at, sizeof(n));
		if (n)
			out_printf(out, "%" PRIu64 " %s\n", n, rows[i].what);
	}
	if (d->first[0])
		out_printf(out, "first: %s\n", d->first);
}

static int run_verify(const struct job *job, struct trace *t)
{
	const struct trace_info *info = trace_info(t);
	struct out out;
	struct err err;
	struct str s;
	uint64_t events;

	if (!out_open(&out, job->a->common.output, job->a->common.force,
		      &err))
		return cmd_fail(&err);
	progress_phase(job->progress, "reading the trace");
	trace_verify(t, &events);
	progress_fini(job->progress);
	str_init(&s);
	str_adds(&s, damage_status(t) ? "not whole" : "whole");
	if (!damage_status(t) && info->n_open)
		str_adds(&s, ", not sealed");
	if (replay_stopped_early(t)) {
		str_adds(&s, ", but recording ended early: ");
		add_ended(&s, &info->ends.rows[0]);
	}
	out_printf(&out, "%s: %" PRIu64 " events in %zu chunks, %zu streams, "
		   "%" PRIu32 " stacks: %s\n", info->path, events,
		   info->n_chunks, info->n_streams, info->n_stacks, s.text);
	str_fini(&s);
	say_damage(trace_damage(t), &out);
	return finish(&out, damage_status(t));
}

/* "  /usr/lib/libc.so.6+0x8b12", or the name that an import knew. */
static void dump_stack(struct trace *t, const struct trace_event *e,
		       struct out *out)
{
	size_t n;
	const vaddr *frames = trace_stack(t, e->stack, &n);

	out_printf(out, "stack %" PRIu32 "\n", e->stack);
	for (size_t i = 0; i < n; i++) {
		const struct trace_module *m =
			trace_module_at(t, frames[i], e->tick);
		struct str s;

		str_init(&s);
		if (m)
			str_add_escaped(&s, m->path.text, m->path.len);
		out_printf(out, "  %s+0x%" PRIx64 "\n", m ? s.text : "",
			   frames[i] - (m ? m->bias : 0));
		str_fini(&s);
	}
}

static void dump_map_flags(uint64_t flags, struct out *out)
{
	static const char *const names[] = {
		"file", "shared", "none", "brk", "mremap", "mprotect",
	};

	for (size_t i = 0; i < countof(names); i++)
		if (flags >> i & 1)
			out_printf(out, " %s", names[i]);
}

static void dump_event(const struct trace *t, const struct trace_event *e,
		       struct out *out)
{
	uint64_t ns = trace_ns(t, e->tick);

	out_printf(out, "%" PRIu64 ".%09" PRIu64 " %" PRIu64 " %s 0x%" PRIx64,
		   ns / 1000000000, ns % 1000000000,
		   trace_info(t)->threads[e->thread].tid,
		   trace_kind_name(e->kind), e->addr);
	if (1u << e->kind & TRACE_KINDS_SIZED)
		out_printf(out, " %" PRIu64, e->size);
	if (e->kind == TRACE_ALIGNED)
		out_printf(out, " align=%" PRIu64, e->align < 64 ?
			   UINT64_C(1) << e->align : 0);
	if (e->kind == TRACE_MAP)
		dump_map_flags(e->rate, out);
	if (e->kind == TRACE_SAMPLE)
		out_printf(out, " gap=%" PRIu64 " rate=%" PRIu64, e->gap,
			   e->rate);
	if (e->stack)
		out_printf(out, " stack=%" PRIu32, e->stack);
	out_addc(out, '\n');
}

static int run_dump(const struct job *job, struct trace *t)
{
	AUTO_FREE bool *seen = mem_zalloc((size_t)trace_info(t)->n_stacks + 1);
	const char *rows = job->a->rows;
	const struct trace_event *e;
	uint64_t left = UINT64_MAX;
	struct out out;
	struct err err = { .kind = ERR_NONE };
	size_t n;

	if (rows && strcmp(rows, "all") && !num_parse_u64(rows, &left)) {
		err_set(&err, ERR_USAGE, "--rows is a number or all, not "
			"'%.40s'", rows);
		return cmd_fail(&err);
	}
	if (!out_open(&out, job->a->common.output, job->a->common.force,
		      &err))
		return cmd_fail(&err);
	while (left && (n = trace_read(t, &e)))
		for (size_t i = 0; i < n && left; i++, left--) {
			uint32_t stack = e[i].stack;

			if (job->a->stacks && stack &&
			    stack <= trace_info(t)->n_stacks && !seen[stack]) {
				seen[stack] = true;
				dump_stack(t, &e[i], &out);
			}
			dump_event(t, &e[i], &out);
		}
	return finish(&out, damage_status(t));
}

static bool need_output(const struct job *job, struct err *err)
{
	const char *output = job->a->common.output;

	if (!output || !strcmp(output, "-"))
		return err_set(err, ERR_USAGE, "no file given: "
			       "--output=FILE");
	return true;
}

static void say_written(const struct job *job, uint64_t events)
{
	if (!job->a->common.quiet)
		fprintf(stderr, "heapcore: %s: %" PRIu64 " events\n",
			job->a->common.output, events);
}

static int run_pack(const struct job *job, struct trace *t)
{
	struct err err = { .kind = ERR_NONE };
	uint64_t events;

	if (!need_output(job, &err) ||
	    !trace_pack(t, job->a->common.output, job->a->common.force,
			job->progress, &events, &err)) {
		progress_fini(job->progress);
		return cmd_fail(&err);
	}
	progress_fini(job->progress);
	say_written(job, events);
	return damage_status(t);
}

static int with_trace(const struct job *job,
		      int (*run)(const struct job *, struct trace *))
{
	struct err err = { .kind = ERR_NONE };
	struct trace *t = cmd_trace_open(job->path, job->a->tmpdir,
					 job->progress, &err);
	int status;

	if (!t) {
		progress_fini(job->progress);
		return cmd_fail(&err);
	}
	status = run(job, t);
	if (!job->a->common.quiet && run != run_verify)
		cmd_trace_warn(t);
	trace_close(t);
	return status;
}

static int run_convert(const struct job *job)
{
	struct err err = { .kind = ERR_NONE };
	struct trace_import in = { .path = job->path };
	uint64_t events = 0;
	int fd;

	if (!need_output(job, &err))
		return cmd_fail(&err);
	fd = cmd_trace_file(job->path, job->a->tmpdir, job->progress, &err);
	if (fd < 0 || !trace_import(fd, &in, job->a->common.output,
				    job->a->common.force, &events, &err)) {
		progress_fini(job->progress);
		return cmd_fail(&err);
	}
	progress_fini(job->progress);
	if (in.bad && !job->a->common.quiet)
		fprintf(stderr, "heapcore: %s: %" PRIu64 " lines were not "
			"understood; the first is line %" PRIu64 "\n",
			job->path, in.bad, in.first_bad);
	say_written(job, events);
	return in.bad ? STATUS_INCOMPLETE : STATUS_COMPLETE;
}

static int dispatch(const struct command *self, const struct args *a,
		    struct progress *p)
{
	const char *what = a->words.n ? a->words.items[0] : NULL;
	struct job job = { .a = a, .progress = p };
	struct words_near near;
	struct err err = { .kind = ERR_NONE };

	if (!what) {
		err_set(&err, ERR_USAGE, "nothing to do: info, verify, dump, "
			"pack or convert");
		return cmd_usage(self, &err);
	}
	if (a->words.n != 2) {
		err_set(&err, ERR_USAGE, "one file is needed: heapcore trace "
			"%.40s FILE", what);
		return cmd_usage(self, &err);
	}
	job.path = a->words.items[1];
	if (!strcmp(what, "info"))
		return with_trace(&job, run_info);
	if (!strcmp(what, "verify"))
		return with_trace(&job, run_verify);
	if (!strcmp(what, "dump"))
		return with_trace(&job, run_dump);
	if (!strcmp(what, "pack"))
		return with_trace(&job, run_pack);
	if (!strcmp(what, "convert"))
		return run_convert(&job);
	near_init(&near, what);
	for (const char *const *w = (const char *const []){ "info", "verify",
	     "dump", "pack", "convert", NULL }; *w; w++)
		near_try(&near, *w);
	err_set(&err, ERR_USAGE, near.best ? "'%.40s' is none of info, "
		"verify, dump, pack and convert; did you mean '%s'?" :
		"'%.40s' is none of info, verify, dump, pack and convert%s",
		what, near.best ? near.best : "");
	return cmd_usage(self, &err);
}

static int trace(const struct command *self, int argc, char **argv)
{
	struct args a = { .rows = NULL };
	struct progress progress = { .mode = PROGRESS_NONE };
	struct err err = { .kind = ERR_NONE };
	int status;

	if (cmd_begin(self, argc, argv, &a, &a.words, &status)) {
		status = cmd_progress(&a.common, &progress, &err) ?
			 dispatch(self, &a, &progress) : cmd_usage(self, &err);
		progress_fini(&progress);
	}
	list_fini(&a.words);
	return status;
}

const struct command command_trace = {
	.name = "trace",
	.summary = "look into a trace, check it, pack it, import one",
	.usage =
"Usage: heapcore trace info|verify|dump [OPTION]... FILE\n"
"  or:  heapcore trace pack|convert [OPTION]... -o FILE FILE\n"
"Look into a trace of allocations, or write it in another form.\n"
"\n"
"  heapcore trace info t.trace              what is in it?\n"
"  heapcore trace verify t.trace            is all of it there?\n"
"  heapcore trace dump --rows=20 t.trace    events as text\n"
"  heapcore trace pack -o small.trace t.trace\n"
"  heapcore trace convert -o t.trace heaptrack.prog.123.raw.zst\n",
	.groups = groups,
	.n_groups = countof(groups),
	.run = trace,
};
