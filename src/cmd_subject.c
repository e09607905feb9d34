/* SPDX-License-Identifier: MIT */
#include "cmd_subject.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/num.h"
#include "corewalk/target.h"
#include "report/sample.h"

#define SUBJECT(field) offsetof(struct subject_args, field)

const struct option subject_process_options[SUBJECT_PROCESS_OPTIONS] = {
	{ 0, "max-pause", "TIME", "give up if it had to stand still for "
	  "longer [10s]", OPTION_VALUE, SUBJECT(max_pause) },
	{ 0, "no-stop", NULL, "read it while it runs; less is sure",
	  OPTION_FLAG, SUBJECT(no_stop) },
	{ 0, "no-swapin", NULL, "leave in swap what is there", OPTION_FLAG,
	  SUBJECT(no_swapin) },
};

const struct option subject_file_options[SUBJECT_FILE_OPTIONS] = {
	{ 0, "exe", "FILE", "the program, if the core's own path is wrong",
	  OPTION_VALUE, SUBJECT(exe) },
	{ 0, "sysroot", "DIR", "look for programs and libraries below DIR;\n"
	  "may be repeated", OPTION_LIST, SUBJECT(sysroots) },
	{ 0, "debug-dir", "DIR", "more places for debug files: by build id,\n"
	  "by their path below DIR, or in DIR itself",
	  OPTION_LIST, SUBJECT(debug_dirs) },
	{ 0, "no-files", NULL, "read nothing but the core", OPTION_FLAG,
	  SUBJECT(no_files) },
	{ 0, "tmpdir", "DIR", "where a compressed core is unpacked\n"
	  "[$TMPDIR or /tmp]", OPTION_VALUE, SUBJECT(tmpdir) },
	{ 0, "allocator", "glibc|gtcmalloc|jemalloc|pymalloc|tcmalloc|zend",
	  "do not guess", OPTION_VALUE, SUBJECT(allocator) },
};

void subject_args_fini(struct subject_args *a)
{
	list_fini(&a->sysroots);
	list_fini(&a->debug_dirs);
}

const char *subject_process_option(const struct subject_args *a)
{
	return a->no_stop ? "no-stop" : a->no_swapin ? "no-swapin" :
	       a->max_pause ? "max-pause" : NULL;
}

void subject_init(struct subject *s)
{
	*s = (struct subject){ .sp = NULL };
	heap_init(&s->heap);
	s->input = (struct report_input){
		.heap = &s->heap, .where = &s->where, .usage = &s->usage,
		.fragment = &s->fragment, .damage = &s->damage,
		.standout = &s->standout, .residency = &s->residency,
	};
}

void subject_fini(struct subject *s)
{
	if (s->input.php)
		php_view_fini(&s->php);
	if (s->input.profiled)
		profiled_fini(&s->profiled);
	if (s->input.search)
		search_fini(&s->search);
	if (s->input.periods)
		periods_fini(&s->periods);
	if (s->input.dup_blocks)
		dup_blocks_fini(&s->dup_blocks);
	if (s->input.strings)
		strings_fini(&s->strings);
	if (s->input.typed)
		typed_fini(&s->typed);
	if (s->input.sampled && s->input.sampled != s->input.census)
		census_fini(&s->sampled);
	if (s->input.census)
		census_fini(&s->census);
	index_fini(&s->index);
	if (s->input.retain)
		retain_fini(&s->retain);
	if (s->input.reach) {
		reach_fini(&s->reach);
		graph_fini(&s->graph);
	}
	if (s->input.backtraces)
		backtraces_fini(&s->backtraces);
	cfi_free(s->cfi);
	debug_free(s->debug);
	refs_names_fini(&s->names);
	standout_fini(&s->standout);
	damage_fini(&s->damage);
	fragment_fini(&s->fragment);
	residency_fini(&s->residency);
	usage_fini(&s->usage);
	where_fini(&s->where);
	heap_fini(&s->heap);
	space_close(s->sp);
}

bool subject_allocator(const struct subject_args *a,
		       const struct allocator **ret,
		       struct err *err)
{
	*ret = NULL;
	if (!a->allocator)
		return true;
	*ret = alloc_by_name(a->allocator);
	if (*ret)
		return true;
	err_set(err, ERR_USAGE, "--allocator: '%.40s' is not known",
		a->allocator);
	err_hint(err, "Known are");
	for (size_t i = 0; allocators[i]; i++) {
		size_t used = strlen(err->hint);

		snprintf(err->hint + used, sizeof(err->hint) - used,
			 "%s %s%s", i ? "," : "", allocators[i]->name,
			 allocators[i + 1] ? "" : ".");
	}
	return false;
}

static struct target_options target_options(const struct subject_args *a,
					    struct progress *p)
{
	return (struct target_options){
		.exe = a->exe,
		.sysroots = a->sysroots.items,
		.n_sysroots = a->sysroots.n,
		.debug_dirs = a->debug_dirs.items,
		.n_debug_dirs = a->debug_dirs.n,
		.no_files = a->no_files,
		.tmpdir = a->tmpdir,
		.progress = p,
		.no_stop = a->no_stop,
		.no_swapin = a->no_swapin,
	};
}

/* A path that was mistyped must not pass for one that holds nothing. */
static bool is_there(const char *option, const char *path, struct err *err)
{
	if (!path || !access(path, R_OK))
		return true;
	return err_set(err, ERR_SYSTEM, "--%s: %.160s: %s", option, path,
		       strerror(errno));
}

static bool paths_are_there(const struct subject_args *a, struct err *err)
{
	bool ok = is_there("exe", a->exe, err);

	for (size_t i = 0; ok && i < a->sysroots.n; i++)
		ok = is_there("sysroot", a->sysroots.items[i], err);
	for (size_t i = 0; ok && i < a->debug_dirs.n; i++)
		ok = is_there("debug-dir", a->debug_dirs.items[i], err);
	return ok;
}

static void take_space(struct subject *s)
{
	s->input.sp = s->sp;
	if (s->sp)
		s->sp->nameless = s->nameless;
}

bool subject_no_file(const char *path, struct err *err)
{
	AUTO_FREE char *process = mem_printf("/proc/%.40s", path);

	if (*path && !path[strspn(path, "0123456789")] &&
	    access(path, F_OK) && !access(process, F_OK))
		err_set(err, ERR_SYSTEM, "%s: no file, but a process; did you "
			"mean -p %s?", path, path);
	return false;
}

bool subject_open_core(struct subject *s, const struct subject_args *a,
		       const char *path, struct progress *p, struct err *err)
{
	struct target_options options = target_options(a, p);

	if (!paths_are_there(a, err))
		return false;
	progress_phase(p, "opening the core");
	s->options = options;
	s->sp = target_open_core(path, &options, err);
	take_space(s);
	return s->sp || subject_no_file(path, err);
}

bool subject_open_live(struct subject *s, const struct subject_args *a,
		       const char *pid, struct progress *p, struct err *err)
{
	struct target_options options = target_options(a, p);
	uint32_t number;

	if (!paths_are_there(a, err) || !cmd_pid(pid, &number, err) ||
	    !cmd_seconds(a->max_pause, &options.max_pause_s, err))
		return false;
	progress_phase(p, "reading the process");
	s->options = options;
	s->sp = target_open_live(number, &options, err);
	take_space(s);
	return s->sp != NULL;
}

bool subject_walk(struct subject *s, const struct allocator *allocator,
		  struct progress *p, struct err *err)
{
	progress_phase(p, "walking the heap");
	s->input.heap_found = alloc_walk(s->sp, allocator, allocator,
					 &s->heap, p, err);
	if (s->input.heap_found)
		return true;
	err_prefix(err, "%s", s->sp->path ? s->sp->path : "?");
	return !allocator;
}

static struct debug *debug_files(struct subject *s)
{
	if (!s->debug)
		s->debug = debug_new(s->sp, &s->options);
	return s->debug;
}

void subject_where(struct subject *s, struct progress *p)
{
	progress_phase(p, "adding up");
	where_init(&s->where, s->sp, &s->heap);
	refs_names_init(&s->names, s->sp, &s->heap, &s->where,
			debug_files(s));
	s->input.names = &s->names;
}

/* A hundredth of what is in use is worth a sentence. */
static void say_leaks(struct subject *s)
{
	struct tally lost, certain;
	char size[NUM_MAX];

	if (!s->input.reach)
		return;
	lost = reach_lost(s->input.reach);
	if (lost.bytes < MIB / 16 ||
	    lost.bytes < s->where.row[WHERE_USED].bytes / 100)
		return;
	num_format_size(size, lost.bytes);
	certain = s->input.reach->grade[REACH_CERTAIN];
	standout_add(&s->standout, "leaked", lost.bytes,
		     "%s in %llu block%s cannot be reached from any root: "
		     "%sleaked.", size, (unsigned long long)lost.blocks,
		     lost.blocks == 1 ? "" : "s",
		     certain.blocks ? "" : "likely ");
}

/* "4000 look-alike blocks of 80 bytes", "4000 blocks of Session", ... */
static void type_text(const struct type *type, const struct tally *total,
		      struct str *ret)
{
	const char *s = total->blocks == 1 ? "" : "s";

	if (type->known == TYPE_SHAPE)
		str_printf(ret, "%llu look-alike block%s of %s%llu bytes",
			   (unsigned long long)total->blocks, s,
			   total->bytes % total->blocks ? "about " : "",
			   (unsigned long long)(total->bytes / total->blocks));
	else if (type->known <= TYPE_TEXT)
		str_printf(ret, "%llu block%s with %s",
			   (unsigned long long)total->blocks, s, type->name);
	else
		str_printf(ret, "%llu block%s of %s",
			   (unsigned long long)total->blocks, s, type->name);
}

/* The largest type, if it takes a fifth of what is in use. */
static void say_types(struct subject *s)
{
	const struct census *c = s->input.census;
	const struct census_row *row;
	char size[NUM_MAX];
	struct str text;

	if (!c || !c->n_rows)
		return;
	row = &c->rows[0];
	if (row->total.blocks < 100 || row->total.bytes < MIB ||
	    row->total.bytes < c->total.bytes / 5)
		return;
	str_init(&text);
	type_text(&c->types.items[row->type], &row->total, &text);
	num_format_size(size, row->total.bytes);
	standout_add(&s->standout, "type", row->total.bytes,
		     "%s of what is in use is %s, such as 0x%llx.", size,
		     text.text, (unsigned long long)row->example);
	str_fini(&text);
	/* What they are says more than of which size they are. */
	standout_drop(&s->standout, "one-size");
}

/* A twentieth of what is in use is worth a sentence, from a megabyte on. */
static void say_strings(struct subject *s)
{
	const struct strings *t = s->input.strings;
	char size[NUM_MAX], saved[NUM_MAX];

	if (!t || t->saved < MIB ||
	    t->saved < s->where.row[WHERE_USED].bytes / 20)
		return;
	num_format_size(size, t->own_bytes);
	num_format_size(saved, t->saved);
	standout_add(&s->standout, "strings", t->saved,
		     "%s in %llu copies of %llu strings; sharing would save "
		     "%s.", size, (unsigned long long)t->own_copies,
		     (unsigned long long)t->own_distinct, saved);
}

void subject_say(struct subject *s)
{
	struct standout_input in = {
		.sp = s->sp, .heap = &s->heap, .where = &s->where,
		.usage = &s->usage, .fragment = &s->fragment,
		.damage = &s->damage,
	};

	standout_fini(&s->standout);
	standout_init(&s->standout, &in);
	say_leaks(s);
	say_strings(s);
	if (s->input.php)
		php_say(&s->standout, s->input.php);
	pyarenas_say(&s->standout, &s->heap);
	say_types(s);
}

struct count_job {
	struct subject *s;
	bool last;
};

/* What it reads are planes alone; the other thread may read the target. */
static void *count_blocks(void *arg)
{
	struct count_job *job = arg;

	usage_init(&job->s->usage, &job->s->heap, USAGE_ALL_ARENAS);
	if (job->last)
		space_forget(job->s->sp);
	return NULL;
}

/* Below this many bytes in use a thread costs more than it saves. */
enum { THREAD_MIN = 16 << 20 };

void subject_analyse(struct subject *s, bool last)
{
	bool large = s->where.row[WHERE_USED].bytes >= THREAD_MIN;
	struct count_job job = { s, last && large };
	pthread_t thread;
	bool started = large &&
		!pthread_create(&thread, NULL, count_blocks, &job);

	fragment_init(&s->fragment, s->sp, &s->heap);
	if (started)
		pthread_join(thread, NULL);
	else
		count_blocks(&job);
	residency_init(&s->residency, s->sp, &s->heap, &s->usage);
	damage_init(&s->damage, s->sp, &s->heap);
	subject_say(s);
}

void subject_reach(struct subject *s, bool asked, struct progress *p)
{
	struct report_input *in = &s->input;

	if (!in->heap_found)
		return;
	if (!asked && s->where.row[WHERE_USED].bytes > SUBJECT_REACH_FREELY) {
		in->no_reach = "in a heap of this size it takes a moment; "
			       "--only=leaks does";
		return;
	}
	if (graph_init(&s->graph, s->sp, &s->heap, &s->where, 0, p,
		       &s->reach_err)) {
		if (!asked && s->graph.roots.no_main_stack) {
			graph_fini(&s->graph);
			in->no_reach = "no stack is in the file, everything "
				       "would look lost; --only=leaks tries";
			return;
		}
		reach_init(&s->reach, &s->graph, &s->heap, p);
		in->reach = &s->reach;
		return;
	}
	in->no_reach = s->reach_err.msg;
	in->reach_refused = asked;
}

static struct cfi *call_frames(struct subject *s)
{
	if (!s->cfi)
		s->cfi = cfi_new(s->sp, debug_files(s));
	return s->cfi;
}

/* A block that is asked about, and those that its words point into. */
struct near {
	vaddr *blocks;		/* owned: addresses of user data */
	size_t n, cap;
};

/* By debug information, which takes its time. */
static void find_types(struct subject *s, const struct index *ix,
		       const struct near *near, struct progress *p)
{
	struct typed_input in = {
		.sp = s->sp, .heap = &s->heap, .ix = ix,
		.symbols = s->names.symbols, .debug = debug_files(s),
		.cfi = call_frames(s), .hints = s->hints, .progress = p,
		.wanted = near ? near->blocks : NULL,
		.n_wanted = near ? near->n : 0,
		.graph = near && s->input.reach ? &s->graph : NULL,
	};

	typed_init(&s->typed, &in);
	s->input.typed = &s->typed;
	for (size_t i = 0; i < s->typed.n_notes; i++)
		space_warn(s->sp, "%s", s->typed.notes[i].text);
}

/* The index of the census may take as much as that of a graph. */
#define CENSUS_MAX_BYTES (8 * GIB)

/* What a census looks at; false, with a warning, if there is no index. */
static bool census_ready(struct subject *s, struct census_input *in,
			 struct progress *p)
{
	struct err err;

	*in = (struct census_input){
		.sp = s->sp, .heap = &s->heap, .symbols = s->names.symbols,
		.progress = p, .ix = &s->index,
	};
	if (s->input.reach)
		in->ix = &s->graph.ix;
	else if (!s->index.used &&
		 !index_init(&s->index, &s->heap, CENSUS_MAX_BYTES, &err)) {
		space_warn(s->sp, "blocks get no types: %s", err.msg);
		return false;
	}
	return true;
}

void subject_census(struct subject *s, bool asked, struct progress *p)
{
	struct census_input in;

	if (!s->input.heap_found)
		return;
	if (!asked && s->where.row[WHERE_USED].bytes > SUBJECT_REACH_FREELY) {
		s->input.census_limit = SUBJECT_REACH_FREELY;
		return;
	}
	s->input.census_limit = 0;
	if (!census_ready(s, &in, p)) {
		s->input.census_refused = asked;
		return;
	}
	if (asked) {
		find_types(s, in.ix, NULL, p);
		in.typed = &s->typed;
	}
	census_init(&s->census, &in);
	s->input.census = &s->census;
	if (s->input.reach)
		reach_group_types(&s->reach, &s->heap, &s->census.types);
}

static void look_near(struct near *near, struct subject *s, vaddr addr)
{
	enum { LOOKED_AT = 1 << 16 };	/* bytes */
	struct block b, to;
	uint64_t word;

	*near = (struct near){ .n = 0 };
	if (!heap_find(&s->heap, addr, &b))
		return;
	MEM_PUSH(near->blocks, near->n, near->cap) = b.addr;
	for (uint64_t at = 0; at < min_u64(b.usable, LOOKED_AT);
	     at += s->sp->word)
		if (space_word(s->sp, b.addr + at, &word) &&
		    heap_find(&s->heap, word, &to))
			MEM_PUSH(near->blocks, near->n, near->cap) = to.addr;
}

/* How the block, if it is in use, can be reached, and no more. */
static void reach_near(struct subject *s, const struct near *near,
		       struct progress *p)
{
	struct block b;

	if (!near->n || !heap_find(&s->heap, near->blocks[0], &b) ||
	    b.state != BLOCK_USED)
		return;
	if (!graph_init_near(&s->graph, s->sp, &s->heap, &s->where,
			     near->blocks, near->n, p, &s->reach_err)) {
		s->input.no_reach = s->reach_err.msg;
		s->input.reach_refused = true;
		return;
	}
	reach_init(&s->reach, &s->graph, &s->heap, p);
	s->input.reach = &s->reach;
}

static uint64_t *pick_near(const struct near *near, const struct index *ix)
{
	uint64_t *ret = mem_zalloc((ix->n / 64 + 1) * sizeof(*ret));

	for (size_t i = 0; i < near->n; i++) {
		uint32_t number = index_find(ix, near->blocks[i]);

		ret[number >> 6] |= UINT64_C(1) << (number & 63);
	}
	return ret;
}

static void census_of(struct subject *s, struct census_input *in,
		      uint64_t *picked)
{
	in->only = picked;
	census_init(&s->census, in);
	s->input.census = &s->census;
	free(picked);
}

void subject_census_near(struct subject *s, vaddr addr, struct progress *p)
{
	struct census_input in;
	struct near near;

	if (!s->input.heap_found)
		return;
	look_near(&near, s, addr);
	if (!s->input.reach && !s->input.reach_refused)
		reach_near(s, &near, p);
	if (census_ready(s, &in, p)) {
		if (near.n)
			find_types(s, in.ix, &near, p);
		in.typed = &s->typed;
		census_of(s, &in, pick_near(&near, in.ix));
	}
	free(near.blocks);
}

static uint64_t *pick_top(const struct retain *r, const struct index *ix)
{
	uint64_t *ret = mem_zalloc((ix->n / 64 + 1) * sizeof(*ret));

	for (size_t i = 0; i < r->n_top; i++) {
		const struct retain_block *b = &r->top[i];

		ret[b->block >> 6] |= UINT64_C(1) << (b->block & 63);
		for (uint32_t k = 0; k < b->n_members; k++)
			ret[b->members[k] >> 6] |= UINT64_C(1) <<
				(b->members[k] & 63);
	}
	return ret;
}

void subject_census_top(struct subject *s, struct progress *p)
{
	struct census_input in;

	if (!s->input.retain || s->input.census || s->input.sampled ||
	    !census_ready(s, &in, p))
		return;
	if (s->where.row[WHERE_USED].bytes <= SUBJECT_REACH_FREELY) {
		find_types(s, in.ix, NULL, p);
		in.typed = &s->typed;
	}
	census_of(s, &in, pick_top(s->input.retain, in.ix));
}

void subject_php(struct subject *s, bool asked, struct progress *p)
{
	struct census_input in;

	if (s->input.php || !php_present(&s->heap) ||
	    (!asked && s->where.row[WHERE_USED].bytes > SUBJECT_REACH_FREELY))
		return;
	if (!census_ready(s, &in, p)) {
		s->input.census_refused = asked;
		return;
	}
	php_view_init(&s->php, s->sp, &s->heap, in.ix, p);
	s->input.php = &s->php;
}

void subject_sample(struct subject *s, uint64_t rate, uint64_t seed,
		    struct progress *p)
{
	struct census_input in;
	uint64_t *picked;

	s->input.sampled = s->input.census;
	if (!s->input.heap_found || s->input.census ||
	    !census_ready(s, &in, p))
		return;
	picked = sample_pick(&s->heap, in.ix, rate, seed);
	in.only = picked;
	census_init(&s->sampled, &in);
	s->input.sampled = &s->sampled;
	free(picked);
}

void subject_backtraces(struct subject *s, struct progress *p)
{
	progress_phase(p, "following stacks");
	backtraces_init(&s->backtraces, s->sp, call_frames(s), s->debug,
			s->names.symbols);
	s->input.backtraces = &s->backtraces;
}

void subject_retain(struct subject *s, struct progress *p)
{
	if (!s->input.reach)
		return;
	retain_init(&s->retain, &s->graph, &s->names, p);
	s->input.retain = &s->retain;
}

void subject_strings(struct subject *s, bool asked, struct progress *p)
{
	if (!s->input.heap_found ||
	    (!asked && s->where.row[WHERE_USED].bytes >
	     SUBJECT_STRINGS_FREELY))
		return;
	strings_init(&s->strings, s->sp, &s->heap, p);
	s->input.strings = &s->strings;
}

void subject_duplicates(struct subject *s, struct progress *p)
{
	if (!s->input.heap_found)
		return;
	dup_blocks_init(&s->dup_blocks, s->sp, &s->heap, p);
	s->input.dup_blocks = &s->dup_blocks;
}

void subject_patterns(struct subject *s, struct progress *p)
{
	if (!s->input.heap_found)
		return;
	periods_init(&s->periods, s->sp, &s->heap, p);
	s->input.periods = &s->periods;
	tails_init(&s->tails, s->sp, &s->heap, &s->where, p);
	s->input.tails = &s->tails;
}

void subject_search(struct subject *s, const struct search_pattern *pattern,
		    enum search_in in, size_t limit, struct progress *p)
{
	search_init(&s->search, pattern, s->sp, &s->heap, in, limit, p);
	s->input.search = &s->search;
}

bool subject_profile(struct subject *s, uint64_t rate, struct progress *p,
		     struct err *err)
{
	const struct profiled_options options = {
		.rate = rate, .depth = 1, .target = &s->options,
		.debug = debug_files(s),
	};

	progress_phase(p, "reading the profile");
	if (!profiled_init(&s->profiled, s->sp, &s->heap, s->names.symbols,
			   &options, err))
		return false;
	s->input.profiled = &s->profiled;
	return true;
}
