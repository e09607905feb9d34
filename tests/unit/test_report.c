/* SPDX-License-Identifier: MIT */
#include "report/report.h"

#include <sys/mman.h>
#include <unistd.h>

#include "base/mem.h"
#include "check.h"
#include "corewalk/target.h"

enum { HEAP = 0x100000, HEAP_BYTES = 0x21000, STACK = 0x7ff000000 };

/* A process of one heap, one anonymous mapping and one stack. */
struct process {
	struct space *sp;
	struct heap heap;
	struct where where;
	struct usage usage;
	struct fragment fragment;
	struct residency_heap residency;
	struct damage damage;
	struct standout standout;
	struct report_input input;
};

static void add_heap(struct heap *h)
{
	uint32_t id = heap_add_allocator(h, "glibc", "2.36", "by hand");
	struct arena *a = heap_add_arena(h, id, 0x5000, "glibc main");
	size_t x;

	a->claimed_bytes = HEAP_BYTES;
	a->attached = 1;
	a->top = HEAP + 0x1000;
	x = heap_add_blocks(h, 0, HEAP, HEAP + HEAP_BYTES, 4, 16, 8);
	extent_mark(&h->extents[x], HEAP);
	extent_mark(&h->extents[x], HEAP + 0x800);
	extent_set_state(&h->extents[x], HEAP + 0x800, BLOCK_BINNED);
	extent_mark(&h->extents[x], HEAP + 0xc00);
	extent_set_state(&h->extents[x], HEAP + 0xc00, BLOCK_FAST);
	extent_mark(&h->extents[x], HEAP + 0x1000);
	extent_set_state(&h->extents[x], HEAP + 0x1000, BLOCK_TOP);
	heap_add_setting(h, id, "mmap_threshold", 131072, true, true);
}

static void process_init(struct process *p, bool with_heap)
{
	struct standout_input in;

	*p = (struct process){ .sp = target_mem_new(MACHINE_X86_64) };
	target_mem_add(p->sp, HEAP, HEAP_BYTES, SEG_R | SEG_W, NULL,
		       HEAP_BYTES, NULL);
	target_mem_add(p->sp, 0x300000, 0x4000, SEG_R | SEG_W, NULL, 0x4000,
		       NULL);
	target_mem_done(p->sp);
	heap_init(&p->heap);
	if (with_heap)
		add_heap(&p->heap);
	heap_finish(&p->heap);
	where_init(&p->where, p->sp, &p->heap);
	usage_init(&p->usage, &p->heap, USAGE_ALL_ARENAS);
	fragment_init(&p->fragment, p->sp, &p->heap);
	damage_init(&p->damage, p->sp, &p->heap);
	in = (struct standout_input){ p->sp, &p->heap, &p->where, &p->usage,
				      &p->fragment, &p->damage };
	standout_init(&p->standout, &in);
	p->input = (struct report_input){
		.sp = p->sp, .heap = &p->heap, .where = &p->where,
		.usage = &p->usage, .fragment = &p->fragment,
		.residency = &p->residency,
		.damage = &p->damage, .standout = &p->standout,
		.heap_found = with_heap,
	};
}

static void process_fini(struct process *p)
{
	standout_fini(&p->standout);
	damage_fini(&p->damage);
	fragment_fini(&p->fragment);
	usage_fini(&p->usage);
	where_fini(&p->where);
	heap_fini(&p->heap);
	space_close(p->sp);
}

static struct err err;

static const char *render(const struct process *p,
			  const struct report_options *options)
{
	static char text[100000];
	struct report r;
	struct out o;
	int fd = memfd_create("report", 0);
	ssize_t n;

	report_init(&r, options);
	out_open_fd(&o, dup(fd));
	err.msg[0] = '\0';
	if (report_build(&r, &p->input, &err))
		(void)!report_write(&r, &o, &err);
	report_fini(&r);
	if (err.msg[0])
		out_abandon(&o);
	else
		CHECK(out_close(&o, &err));
	n = pread(fd, text, sizeof(text) - 1, 0);
	text[n] = '\0';
	close(fd);
	return text;
}

static bool is_complete(const struct process *p)
{
	struct str why;
	bool complete;

	str_init(&why);
	complete = report_complete(&p->input, &why);
	CHECK_U64(why.len == 0, complete);
	str_fini(&why);
	return complete;
}

static unsigned sections(const char *list)
{
	unsigned ret = 0;

	CHECK(report_parse_sections(&report_analyze, list, false, &ret, &err));
	return ret;
}

TEST(words_of_only)
{
	unsigned ret = 77, all = 0;

	CHECK_U64(sections("where"), 1u << SECTION_WHERE);
	CHECK_U64(sections("arenas,where"),
		  1u << SECTION_WHERE | 1u << SECTION_ARENAS);
	CHECK_U64(sections("findings"),
		  1u << SECTION_FINDINGS | 1u << SECTION_ABORT |
		  1u << SECTION_CULPRITS);
	CHECK(sections("all") & 1u << SECTION_SETTINGS);
	CHECK(!(sections("all") & 1u << SECTION_TARGET));
	CHECK(report_parse_sections(&report_analyze, "all", true, &all, &err));
	CHECK_U64(all & report_default_sections(&report_analyze, true),
		  report_default_sections(&report_analyze, true));
	CHECK(!report_parse_sections(&report_analyze, "where,", false, &ret,
				     &err));
	CHECK(!report_parse_sections(&report_analyze, "target", false, &ret,
				     &err));
	CHECK(!report_parse_sections(&report_analyze, "", false, &ret,
				     &err));
	CHECK(!report_parse_sections(&report_analyze, "wher", false, &ret,
				     &err));
	CHECK_U64(ret, 77);
	CHECK_STR(err.msg, "--only: no section 'wher'");
	CHECK(strstr(err.hint, "where, standout,"));
}

TEST(text_opens_with_two_lines_and_where)
{
	const struct report_options options = {
		.kind = &report_analyze,
		.sections = sections("where"), .exact = true,
	};
	struct process p;

	process_init(&p, true);
	CHECK_STR(render(&p, &options),
"image: ?, 0 threads\n"
"148K of private memory, all decoded; glibc malloc 2.36\n"
"\n"
"WHERE THE MEMORY IS                        size   share\n"
"  free, kept by the allocators           132096   87.2%  "
"######################\n"
"  other anonymous mappings                16384   10.8%  ###\n"
"  in use by the program                    2048    1.4%\n"
"  free, in thread caches and fastbins      1024    0.7%\n"
"  total private memory                   151552  100.0%\n");
	CHECK(is_complete(&p));
	process_fini(&p);
}

TEST(json_of_arenas_adds_up)
{
	const struct report_options options = {
		.kind = &report_analyze,
		.format = REPORT_JSON, .sections = sections("arenas"),
	};
	struct process p;
	const char *text;

	process_init(&p, true);
	text = render(&p, &options);
	CHECK(strstr(text, "{\n  \"schema\": \"heapcore-report/1\",\n"));
	CHECK(strstr(text, "\"complete\": true,\n  \"target\": { \"kind\": "));
	CHECK(strstr(text, "\"private_bytes\": 151552, "));
	/* As malloc_info(3): rest is the binned block and the top. */
	CHECK(strstr(text, "\"mapped_bytes\": 135168, \"used_bytes\": 2048, "
		     "\"free_bytes\": 133120, "));
	CHECK(strstr(text, "\"fast_blocks\": 1, \"fast_bytes\": 1024, "
		     "\"rest_blocks\": 2, \"rest_bytes\": 132096, "));
	CHECK(strstr(text, "\"system_bytes\": 135168, "));
	CHECK(!strstr(text, "\"where\""));
	process_fini(&p);
}

TEST(csv_and_sort_need_one_section)
{
	struct report_options options = {
		.kind = &report_analyze,
		.format = REPORT_CSV, .sections = sections("settings"),
	};
	struct process p;

	process_init(&p, true);
	CHECK_STR(render(&p, &options),
		  "allocator,name,bytes,value,default\n"
		  "glibc,mmap_threshold,131072,,true\n");
	options.sort = "nothing";
	render(&p, &options);
	CHECK_STR(err.msg,
		  "--sort: no column 'nothing' in section settings");
	options.sort = NULL;
	options.sections |= sections("where");
	render(&p, &options);
	CHECK_STR(err.msg, "--csv needs one section");
	process_fini(&p);
}

/* Each with its own unit, as whoever sets it writes it. */
TEST(settings_have_units_of_their_own)
{
	struct report_options options = {
		.kind = &report_analyze, .sections = sections("settings"),
	};
	struct process p;
	const char *text;

	process_init(&p, true);
	heap_add_setting(&p.heap, 0, "trim_threshold", UINT64_MAX, true,
			 false);
	heap_add_setting(&p.heap, 0, "tcache_count", 7, false, true);
	text = render(&p, &options);
	CHECK(strstr(text, "\n  glibc.malloc.mmap_threshold  131072    128K  "
		     "   default\n"));
	CHECK(strstr(text, "\n  glibc.malloc.trim_threshold  no limit  -     "
		     "   the program or user\n"));
	CHECK(strstr(text, "\n  glibc.malloc.tcache_count    7         -     "
		     "   default\n"));
	process_fini(&p);
}

TEST(rows_of_one_section_can_be_filtered)
{
	struct report_options options = {
		.kind = &report_analyze,
		.format = REPORT_CSV, .sections = sections("where"),
		.row_filter = "bytes>2k !what=anonymous",
	};
	struct process p;

	process_init(&p, true);
	CHECK_STR(render(&p, &options),
		  "what,bytes,stored_bytes,share,stored_share,"
		  "resident_bytes,resident_share,swapped_bytes\n"
		  "free,132096,132096,1.0000,1.0000,,,\n");
	options.row_filter = "size>2k";
	render(&p, &options);
	CHECK_STR(err.msg, "--filter: unknown key 'size'");
	/* Not the words that only the text report has. */
	CHECK_STR(err.hint, "Known are what, bytes, stored_bytes, share, "
		  "stored_share, resident_bytes, resident_share, "
		  "swapped_bytes.");
	process_fini(&p);
}

TEST(no_heap_is_an_answer_too)
{
	const struct report_options options = {
		.kind = &report_analyze,
		.sections = report_default_sections(&report_analyze, false),
		.exact = true,
	};
	struct process p;
	const char *text;

	process_init(&p, false);
	text = render(&p, &options);
	CHECK(strstr(text, "148K of private memory, no heap decoded; "
		     "no known allocator\n"));
	CHECK(strstr(text, "  other anonymous mappings             151552"));
	CHECK(!strstr(text, "ARENAS"));
	CHECK(!is_complete(&p));
	process_fini(&p);
}

TEST(an_empty_section_says_so)
{
	const struct report_options options = {
		.kind = &report_analyze,
		.sections = sections("findings"),
	};
	const struct report_options all = {
		.kind = &report_analyze, .sections = sections("all"),
	};
	struct process p;

	process_init(&p, true);
	CHECK(strstr(render(&p, &options), "\n\nFINDINGS\n  none\n"));
	CHECK(!strstr(render(&p, &all), "FINDINGS"));
	process_fini(&p);
}

TEST(what_is_missing_is_said)
{
	const struct report_options options = {
		.kind = &report_analyze,
		.sections = sections("where"),
	};
	struct process p;

	process_init(&p, true);
	p.sp->undumped_segs = 1;
	CHECK(strstr(render(&p, &options), "148K of private memory, "
		     "INCOMPLETE: 1 of 2 mappings are not in the file;\n"
		     "  glibc malloc 2.36\n"));
	CHECK(!is_complete(&p));
	p.sp->undumped_segs = 0;
	p.sp->damaged = true;
	CHECK(strstr(render(&p, &options), "148K of private memory, "
		     "INCOMPLETE: the compressed file is damaged;"));
	CHECK(!is_complete(&p));
	p.sp->damaged = false;
	CHECK(is_complete(&p));
	p.sp->core_wanted = p.sp->core_size + 1;
	CHECK(!is_complete(&p));
	process_fini(&p);
}

TEST(findings_show_or_hide_what_they_quote)
{
	struct report_options options = {
		.kind = &report_analyze,
		.sections = sections("findings"),
	};
	struct process p;

	process_init(&p, true);
	heap_note(&p.heap, "bad-chunk-size", 0, 0x101234, 48, "size SECRET");
	CHECK(strstr(render(&p, &options), "\nNOT DECODED\n"
		     "  arena glibc main: size SECRET, 48 bytes skipped\n"));
	options.redact = true;
	CHECK(strstr(render(&p, &options), "\nNOT DECODED\n"
		     "  arena glibc main: bad-chunk-size at 0x101234, "
		     "48 bytes skipped\n"));
	options.format = REPORT_JSON;
	CHECK(!strstr(render(&p, &options), "SECRET"));
	options.redact = false;
	CHECK(strstr(render(&p, &options), "\"text\": \"size SECRET\""));
	process_fini(&p);
}

/* gdb stores pages that were never touched; other writers are no news. */
TEST(a_core_of_gdb_does_not_tell_what_is_resident)
{
	static const char words[] = "\nWhat is resident this core of gdb does "
				    "not tell: heapcore snapshot and -p do\n";
	struct report_options options = {
		.kind = &report_analyze,
		.sections = 1u << SECTION_WHERE,
		.rows = 5,
	};
	struct process p;

	process_init(&p, true);
	p.sp->holes = HOLES_LOST;
	CHECK(!strstr(render(&p, &options), words));
	p.sp->writer = "gdb";
	CHECK(strstr(render(&p, &options), words));
	process_fini(&p);
}

TEST(totals_for_conditions)
{
	struct process p;
	struct filter f;
	struct cell totals[16] = { { .known = false } };
	size_t n;
	const struct column *columns = report_total_columns(&n);
	static const char *const hold[] = {
		"free>100k", "used=2k", "free_share>98%", "undecoded=0",
		"findings<1", "free>1 used>1",
	};

	process_init(&p, true);
	if (!CHECK(n <= countof(totals)))
		return;
	report_totals(&p.input, totals);
	for (size_t i = 0; i < countof(hold); i++) {
		CHECK(filter_compile(&f, "--fail-if", hold[i], columns, n,
				     &err));
		if (!CHECK(filter_match(&f, totals, "")))
			printf("# %s\n", hold[i]);
		filter_fini(&f);
	}
	CHECK(filter_compile(&f, "--fail-if", "free>1M", columns, n, &err));
	CHECK(!filter_match(&f, totals, ""));
	filter_fini(&f);
	process_fini(&p);
}
