/* SPDX-License-Identifier: MIT */
/*
 * The makers of the report's tables; report.c calls those that are wanted.
 */
#ifndef REPORT_BUILD_H
#define REPORT_BUILD_H

#include "report/report.h"

/* The name in a redacted report, where it is another one. */
#define HIDDEN_NAME DATA_COLUMN("redacted_name", TEXT)
/* What shares of all that is in use are of: set in a row, or in the total. */
#define OF_USED COLUMN("of_used_bytes", "", BYTES,			\
		       .flags = COLUMN_NO_TEXT | COLUMN_NO_DATA)
/* The row of totals, if there are rows, with all that is in use in a column. */
void add_total_of_used(struct table *t, size_t column,
		       const struct report_input *in);

/*
 * A table of one sentence in text; in JSON its sums, and the table of that name
 * before it as their rows.  The row is begun.
 */
struct table *add_sums(struct report *r, unsigned section, const char *name,
		       const char *title, const struct column *columns,
		       size_t n);

/* build_target.c: the process */
void build_target(struct report *r, const struct report_input *in);
void build_mappings(struct report *r, const struct report_input *in);
void build_modules(struct report *r, const struct report_input *in);

/* build_threads.c: the threads and their stacks */
void build_threads(struct report *r, const struct report_input *in);

/* build_stacks.c: for build_threads, where each thread stands */
struct backtrace_frame;
struct backtraces;
/* The table of frames; its rows are of the thread that was begun last. */
struct table *stacks_frames_table(struct report *r);
void stacks_add_frames(struct table *t, const struct backtraces *b,
		       uint32_t thread);
/* Why a stack ends, as a word. */
const char *stacks_end_word(const struct backtraces *b, uint32_t thread);
/* Threads that stand at the same place, with their stack, for text. */
void stacks_build(struct report *r, const struct report_input *in);

/* build_heap.c: the heap */
void build_totals(struct report *r, const struct report_input *in);
void build_where(struct report *r, const struct report_input *in);
void build_residency(struct report *r, const struct report_input *in);
void build_allocators(struct report *r, const struct report_input *in);
void build_settings(struct report *r, const struct report_input *in);
void build_arenas(struct report *r, const struct report_input *in);
void build_classes(struct report *r, const struct report_input *in);
void build_fragmentation(struct report *r, const struct report_input *in);
/* What blocks start with: two columns, the commonest and all. */
struct looked;
void set_looked(struct table *t, size_t first, size_t all,
		const struct space *sp, const struct looked *looked);

/* build_spans.c: fragmentation of allocators with spans */
void build_spans(struct report *r, const struct report_input *in);

/* build_types.c: what the blocks are */
void build_types(struct report *r, const struct report_input *in);

/* build_sample.c: as a sampling profiler would see it */
void build_sample(struct report *r, const struct report_input *in);
/* Size classes: a profile whose keys are places in usage.classes beside it. */
struct profile;
struct table *sample_add_classes(struct report *r, unsigned section,
				 const char *name, const char *title,
				 const struct profile *profile,
				 const struct usage *u, const struct heap *h,
				 uint64_t rate);

/* build_profile.c: the profile that is still in the process */
void build_profile(struct report *r, const struct report_input *in);

/* build_leaks.c: what is lost */
void build_leaks(struct report *r, const struct report_input *in);
/*
 * What an interpreter has that refers to all its values, as half a sentence:
 * they count as reached, whether the program can reach them or not.  NULL: none
 * was found.
 */
const char *leaks_all_listed(const struct report_input *in);

/* build_retain.c: who keeps how much */
void build_retainers(struct report *r, const struct report_input *in);

/* build_patterns.c: what repeats */
void build_strings(struct report *r, const struct report_input *in);
/* build_repeats.c: equal blocks; records and unused tails */
void build_duplicates(struct report *r, const struct report_input *in);
void build_patterns(struct report *r, const struct report_input *in);

/* build_php.c: what a PHP program holds */
void build_php(struct report *r, const struct report_input *in);

/* build_search.c: where a pattern is */
void build_search(struct report *r, const struct report_input *in);

/* build_refs.c: who refers */
void build_at_refs(struct report *r, const struct report_input *in);
void build_culprits(struct report *r, const struct report_input *in);

/* build_find.c: what is remarkable */
void build_standout(struct report *r, const struct report_input *in);
void build_findings(struct report *r, const struct report_input *in);
void build_abort(struct report *r, const struct report_input *in);
void build_at(struct report *r, const struct report_input *in);

/* build_words.c: what words at --at point to */
void build_at_words(struct report *r, const struct report_input *in);

/* build_members.c: the structure at --at */
void build_at_members(struct report *r, const struct report_input *in);
/*
 * The number at an address, if the structure at --at declares one there, is
 * added to ret.  Its size in bytes; 0: none.
 */
uint64_t build_at_number(const struct report_input *in, vaddr addr,
			 struct str *ret);

/* A running one: what a core stores is what is resident there. */
bool is_process(const struct space *sp);

/* "SIGABRT", or "signal 77" in ret. */
const char *signal_name(int signal, char ret[16]);

/* What takes memory of the machine, as VmRSS of proc(5), if that is known. */
uint64_t find_rss(const struct where *w);

/*
 * Two columns, resident and swapped bytes, of rows that also have a column of
 * stored ones.  Where each page is known they are set, and stand in the text
 * for what the file stores; swapped ones if there are any.
 */
void set_pages(struct table *t, size_t resident, size_t swapped,
	       const struct report_input *in, const struct residency *pages);
void show_pages(struct table *t, size_t stored, size_t resident,
		size_t swapped, const struct report_input *in);

/* Mappings that were cut off, or left out by the core's writer. */
size_t count_missing(const struct space *sp);

/* Used, free and so on of some arenas together. */
struct heap_sum {
	uint64_t mapped, used, free, cached, fast, overhead, foreign;
	uint64_t undecoded, mmapped, trimmable, runtime;
	uint64_t runtime_used, runtime_free;
	uint64_t used_blocks, free_blocks, cached_blocks, mmapped_blocks;
};
void sum_arena(struct heap_sum *sum, const struct arena *a);
struct heap_sum sum_heap(const struct heap *h);
/* Free blocks' resident bytes: 0 if it is not known of each page. */
uint64_t sum_free_resident(const struct where *w);

#endif
