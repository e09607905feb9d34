/* SPDX-License-Identifier: MIT */
#include "report/compare.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "check.h"

/*
 * A report, as analyze writes it, from a few numbers.  Where used, free and
 * the size of class 112 are given, the rest follows, so that sums agree.
 */
struct given {
	const char *program, *kind;	/* NULL: appd, core */
	uint64_t used, free, mapped, anonymous, trimmable;
	uint64_t blocks;	/* of 112 bytes, part of used */
	const char *arenas;	/* in place of the one that follows */
	const char *more;	/* further keys, with their comma */
	bool several;		/* each class is of another allocator */
	uint64_t free_stored;	/* 0: not told */
};

static void make_json(struct str *s, const struct given *g)
{
	uint64_t small = g->blocks * 112;

	str_init(s);
	str_printf(s, "{\n \"schema\": \"heapcore-report/1\",\n"
		   " \"complete\": true,\n \"target\": { \"kind\": \"%s\", "
		   "\"program\": \"%s\", \"pid\": 7, \"threads\": 1, "
		   "\"private_bytes\": %" PRIu64 " },\n",
		   g->kind ? g->kind : "core",
		   g->program ? g->program : "appd",
		   g->mapped + g->anonymous);
	str_printf(s, " \"totals\": { \"private_bytes\": %" PRIu64 ", "
		   "\"mapped_bytes\": %" PRIu64 ", \"used_bytes\": %" PRIu64
		   ", \"used_blocks\": %" PRIu64 ", \"free_bytes\": %" PRIu64
		   ", \"undecoded_bytes\": 0, \"findings\": 0 },\n",
		   g->mapped + g->anonymous, g->mapped, g->used,
		   g->blocks + 1, g->free);
	str_printf(s, " \"where\": [ { \"what\": \"used\", \"bytes\": %"
		   PRIu64 " }, { \"what\": \"free\", \"bytes\": %" PRIu64
		   "", g->used, g->free);
	if (g->free_stored)
		str_printf(s, ", \"stored_bytes\": %" PRIu64,
			   g->free_stored);
	str_adds(s, " }");
	if (g->anonymous)
		str_printf(s, ", { \"what\": \"anonymous\", \"bytes\": %"
			   PRIu64 " }", g->anonymous);
	str_adds(s, " ],\n \"arenas\": [ ");
	if (g->arenas)
		str_adds(s, g->arenas);
	else
		str_printf(s, "{ \"name\": \"glibc main\", \"mapped_bytes\": "
			   "%" PRIu64 ", \"used_bytes\": %" PRIu64
			   ", \"free_bytes\": %" PRIu64
			   ", \"trimmable_bytes\": %" PRIu64
			   ", \"used_blocks\": 1 }", g->mapped, g->used,
			   g->free, g->trimmable);
	str_printf(s, " ],\n \"classes\": [ { %s\"min_bytes\": 112, "
		   "\"max_bytes\": 112, \"used_bytes\": %" PRIu64
		   ", \"used_blocks\": %" PRIu64 ", \"free_bytes\": 0, "
		   "\"free_blocks\": 0 }, { %s\"min_bytes\": 65536, "
		   "\"max_bytes\": 131071, \"used_bytes\": %" PRIu64
		   ", \"used_blocks\": 1, \"free_bytes\": %" PRIu64
		   ", \"free_blocks\": 1 } ]%s\n}\n",
		   g->several ? "\"allocator\": \"zend\", " : "", small,
		   g->blocks, g->several ? "\"allocator\": \"glibc\", " : "",
		   g->used - small, g->free, g->more ? g->more : "");
}

/* Two sides and what comes of them. */
struct pair {
	struct compare_side side[2];
	struct compare c;
};

static bool side_from_text(struct compare_side *side, const char *name,
			   const char *text, size_t n)
{
	struct err err;
	struct saved *s = saved_open_memory(name, text, n, &err);

	if (!s)
		return false;
	compare_side_init(side, name);
	compare_side_from_saved(side, s);
	saved_close(s);
	return true;
}

static void pair_init(struct pair *p, const struct given *old,
		      const struct given *new)
{
	const struct given *given[2] = { old, new };
	struct str s;

	for (int i = 0; i < 2; i++) {
		make_json(&s, given[i]);
		CHECK(side_from_text(&p->side[i], i ? "new.json" : "old.json",
				     s.text, s.len));
		str_fini(&s);
	}
	compare_init(&p->c, &p->side[0], &p->side[1], false);
}

static void pair_fini(struct pair *p)
{
	compare_fini(&p->c);
	compare_side_fini(&p->side[0]);
	compare_side_fini(&p->side[1]);
}

/* The report in a format; the caller frees it. */
static char *render(const struct compare *c, enum report_format format,
		    const char *only)
{
	struct report_options options = {
		.kind = &report_diff, .format = format, .rows = 6,
	};
	struct err err = { .kind = ERR_NONE };
	int fd = memfd_create("report", 0);
	struct report r;
	struct out out;
	off_t size;
	char *text;

	options.sections = report_default_sections(&report_diff,
						   format == REPORT_JSON);
	if (only)
		CHECK(report_parse_sections(&report_diff, only, false,
					    &options.sections, &err));
	report_init(&r, &options);
	CHECK(compare_build(&r, c, &err));
	out_open_fd(&out, dup(fd));
	CHECK(report_write(&r, &out, &err));
	CHECK(out_close(&out, &err));
	report_fini(&r);
	size = lseek(fd, 0, SEEK_END);
	text = mem_zalloc((size_t)size + 1);
	CHECK(pread(fd, text, (size_t)size, 0) == size);
	close(fd);
	return text;
}

/* The sentences, with the rules in front of them. */
static char *sentences(const struct given *old, const struct given *new)
{
	struct pair p;
	struct said said;
	struct str s;

	pair_init(&p, old, new);
	said_init(&said, &p.c);
	str_init(&s);
	for (size_t i = 0; i < said.n; i++)
		str_printf(&s, "%s%s: %s", i ? "\n" : "", said.item[i].rule,
			   said.item[i].text);
	said_fini(&said);
	pair_fini(&p);
	return str_take(&s);
}

static const struct given base = {
	.used = 200 * MIB, .free = 40 * MIB, .mapped = 240 * MIB,
	.blocks = 1000,
};

static void check_said(const struct given *new, const char *want)
{
	AUTO_FREE char *got = sentences(&base, new);

	CHECK_STR(got, want);
}

TEST(nothing_changed)
{
	check_said(&base, "nothing: Nothing changed: no kind of memory, no "
		   "arena and no size of blocks.");
}

TEST(growth_in_use_names_the_size)
{
	struct given new = base;

	new.used += 112 * 100000;
	new.mapped += 112 * 100000;
	new.blocks += 100000;
	check_said(&new, "used: 10.7M more is in use (+5.3%): all of it in "
		   "100000 more blocks of 112 bytes.");
}

TEST(growth_that_is_only_kept_is_said_so)
{
	struct given new = base;

	new.free += 100 * MIB;
	new.mapped += 100 * MIB;
	new.trimmable = 90 * MIB;
	check_said(&new, "free: 100M more is free, kept by the allocators "
		   "(+250.0%): the heaps grew by 100M, none of which is in "
		   "use; malloc_trim(3) would now return 90.0M.");
	new.used += 5 * MIB;
	new.mapped += 5 * MIB;
	check_said(&new, "free: 100M more is free, kept by the allocators "
		   "(+250.0%): the heaps grew by 105M, of which only 5.00M is "
		   "in use; malloc_trim(3) would now return 90.0M.\n"
		   "used: 5.00M more is in use (+2.5%): all of it in "
		   "blocks of 64K to 128K.");
}

TEST(what_was_freed_is_kept_or_given_back)
{
	struct given new = base;

	new.used -= 80 * MIB;
	new.free += 80 * MIB;
	check_said(&new, "used: 80.0M less is in use (-40.0%): all of it in "
		   "blocks of 64K to 128K.\n"
		   "free: 80.0M more is free, kept by the allocators "
		   "(+200.0%): what the program freed was not given back.");
	new.free = base.free - 30 * MIB;
	new.used = base.used;
	new.mapped = base.mapped - 30 * MIB;
	check_said(&new, "free: 30.0M less is free, kept by the allocators "
		   "(-75.0%): the heaps shrank by 30.0M.");
	new.used = base.used + 20 * MIB;
	new.mapped = base.mapped - 10 * MIB;
	check_said(&new, "free: 30.0M less is free, kept by the allocators "
		   "(-75.0%): part of it is in use now, and the heaps shrank "
		   "by 10.0M.\n"
		   "used: 20.0M more is in use (+10.0%): all of it in "
		   "blocks of 64K to 128K.");
}

/* malloc_trim() gives pages back, and all blocks stay what they are. */
TEST(what_only_rss_shows_is_said)
{
	struct given old = base, new = base;
	struct pair p;
	struct said s;

	old.free_stored = 39 * MIB;
	new.free_stored = 4 * MIB;
	new.free -= MIB;
	pair_init(&p, &old, &new);
	said_init(&s, &p.c);
	CHECK_STR(s.item[0].rule, "touched");
	CHECK_STR(s.item[0].text, "35.0M less memory is taken by what is free "
		  "(-89.7%): it was given back, and its addresses are kept.");
	said_fini(&s);
	pair_fini(&p);
	/* A file without holes does not know it. */
	old.free_stored = old.free;
	new.kind = "process";
	pair_init(&p, &old, &new);
	said_init(&s, &p.c);
	CHECK_STR(s.item[0].rule, "untouched");
	CHECK_STR(s.item[0].text, "35.0M of the 39.0M that is free takes no "
		  "memory; how much took none before is not known.");
	said_fini(&s);
	pair_fini(&p);
}

TEST(what_is_not_malloc_has_its_own_sentence)
{
	struct given new = base;

	new.anonymous = 512 * MIB;
	check_said(&new, "anonymous: 512M more is in other anonymous "
		   "mappings, which no known allocator owns.");
}

TEST(small_changes_beside_large_ones_are_not_spoken_of)
{
	struct given new = base;

	new.anonymous = 512 * MIB;
	new.used += MIB;
	new.mapped += MIB;
	check_said(&new, "anonymous: 512M more is in other anonymous "
		   "mappings, which no known allocator owns.");
}

TEST(of_several_allocators_the_one_is_named)
{
	struct given old = base, new = base;
	char *got;

	old.several = new.several = true;
	new.blocks += 100000;
	new.used += 100000 * 112;
	got = sentences(&old, &new);
	CHECK_STR(got, "used: 10.7M more is in use (+5.3%): all of it in "
		  "100000 more blocks of 112 bytes of zend.");
	free(got);
}

TEST(as_much_as_before_in_other_sizes)
{
	struct given new = base;

	new.blocks += 100000;
	check_said(&new, "sizes: 10.7M more is in 100000 more blocks of 112 "
		   "bytes, and 10.7M less in blocks of 64K to 128K.");
}

#define ARENA(name, address, mapped, used)				\
	"{ \"name\": \"" name "\", \"address\": \"" address "\", "	\
	"\"mapped_bytes\": " mapped ", \"used_bytes\": " used ", "	\
	"\"free_bytes\": 0, \"used_blocks\": 1 }"

/* A new arena is the first in the ring: the others have new numbers then. */
TEST(arenas_of_one_process_are_paired_by_address)
{
	struct given old = base, new = base;
	struct pair p;
	char *text;

	old.arenas = ARENA("glibc main", "0x1000", "8", "8") ","
		     ARENA("glibc 1", "0x2000", "5000", "5000");
	new.arenas = ARENA("glibc main", "0x1000", "8", "8") ","
		     ARENA("glibc 1", "0x3000", "4000", "4000") ","
		     ARENA("glibc 2", "0x2000", "5000", "5000");
	pair_init(&p, &old, &new);
	text = render(&p.c, REPORT_CSV, "arenas");
	CHECK(strstr(text, "glibc 1,,0x3000,,4000,4000,"));
	CHECK(strstr(text, "glibc 2,glibc 1,0x2000,5000,5000,0,"));
	free(text);
	pair_fini(&p);
}

TEST(arenas_of_two_processes_are_paired_by_name)
{
	struct given old = base, new = base;
	struct pair p;
	char *text;

	old.arenas = ARENA("glibc main", "0x1000", "8", "8") ","
		     ARENA("glibc 1", "0x2000", "5000", "5000");
	new.arenas = ARENA("glibc main", "0x9000", "8", "8") ","
		     ARENA("glibc 1", "0xa000", "7000", "7000");
	pair_init(&p, &old, &new);
	text = render(&p.c, REPORT_CSV, "arenas");
	CHECK(strstr(text, "glibc 1,,0xa000,5000,7000,2000,"));
	free(text);
	pair_fini(&p);
}

/* The list of pymalloc's arenas moves as it grows; and others may do so. */
TEST(an_only_arena_that_moved_is_paired_by_name)
{
	struct given old = base, new = base;
	struct pair p;
	char *text;

	old.arenas = ARENA("glibc main", "0x1000", "8", "8") ","
		     ARENA("pymalloc", "0x5000", "5000", "5000") ","
		     ARENA("zend", "0x7000", "300", "300") ","
		     ARENA("ocaml minor", "0x8000", "20", "20");
	new.arenas = ARENA("glibc main", "0x1000", "8", "8") ","
		     ARENA("pymalloc", "0x2000", "9000", "9000") ","
		     ARENA("zend 1", "0x7000", "400", "400") ","
		     ARENA("zend 2", "0x6000", "600", "600") ","
		     ARENA("ocaml minor", "0x9000", "20", "20") ","
		     ARENA("ocaml minor", "0xa000", "20", "20");
	pair_init(&p, &old, &new);
	text = render(&p.c, REPORT_CSV, "arenas");
	CHECK(strstr(text, "\npymalloc,,0x2000,5000,9000,4000,"));
	CHECK(!strstr(text, "\npymalloc,,0x5000"));
	CHECK(strstr(text, "\nzend 1,zend,0x7000,300,400,100,"));
	CHECK(strstr(text, "\nzend 2,,0x6000,,600,600,"));
	/* Which of two it is nobody knows. */
	CHECK(strstr(text, "\nocaml minor,,0x8000,20,,-20,"));
	free(text);
	pair_fini(&p);
}

TEST(new_arenas_are_counted)
{
	struct given new = base;

	new.arenas = ARENA("glibc main", "0x1000", "251658240", "209715200")
		"," ARENA("glibc 1", "0x2000", "1048576", "0")
		"," ARENA("glibc 2", "0x3000", "2097152", "0");
	check_said(&new, "arenas: 3.00M is the heap of 2 arenas that were "
		   "not there before: threads that allocate at once get "
		   "their own.");
}

TEST(look_alikes_have_the_name_that_analyze_gives)
{
	struct given g = base;
	struct pair p;
	char *text;

	g.more = ", \"types\": [ { \"name\": \"64: ptr num\", \"bytes\": 64, "
		 "\"blocks\": 1 }, { \"name\": \"48: num\", \"bytes\": 48, "
		 "\"blocks\": 1 }, { \"name\": \"48: ptr\", \"bytes\": 48, "
		 "\"blocks\": 1 } ]";
	pair_init(&p, &g, &g);
	text = render(&p.c, REPORT_CSV, "types");
	CHECK(strstr(text, "\n64: ptr num,64,64,0,1,1,0\n"));
	CHECK(strstr(text, "\n48: several shapes,96,96,0,2,2,0\n"));
	free(text);
	pair_fini(&p);
}

/* A class says more than a size; what blocks look like does not. */
TEST(types_with_a_name_are_spoken_of_before_sizes)
{
	struct given old = base, new = base;
	struct pair p;
	struct said s;

	old.more = ", \"types\": [ { \"name\": \"Product\", \"known_by\": "
		   "\"runtime\", \"bytes\": 0, \"blocks\": 0 } ]";
	new.more = ", \"types\": [ { \"name\": \"Product\", \"known_by\": "
		   "\"runtime\", \"bytes\": 11200000, \"blocks\": 100000 } ]";
	new.used += 112 * 100000;
	new.blocks += 100000;
	pair_init(&p, &old, &new);
	said_init(&s, &p.c);
	CHECK(strstr(s.item[0].text, ": all of it in 100000 more Product"));
	said_fini(&s);
	pair_fini(&p);
	new.more = ", \"types\": [ { \"name\": \"zeros\", \"known_by\": "
		   "\"content\", \"bytes\": 11200000, \"blocks\": 100000 } ]";
	pair_init(&p, &old, &new);
	said_init(&s, &p.c);
	CHECK(strstr(s.item[0].text, "more blocks of 112 bytes"));
	said_fini(&s);
	pair_fini(&p);
}

/* Reports list no types yet: nothing but the table of lists knows of them. */
TEST(types_are_compared_if_both_have_them)
{
	struct given old = base, new = base;
	struct pair p;
	char *text;

	old.more = ", \"types\": [ { \"name\": \"Session\", \"bytes\": 100, "
		   "\"blocks\": 2 }, { \"name\": \"Gone\", \"bytes\": 7, "
		   "\"blocks\": 1 } ]";
	new.more = ", \"types\": [ { \"name\": \"Session\", \"bytes\": 900, "
		   "\"blocks\": 18 } ]";
	pair_init(&p, &old, &new);
	CHECK(p.c.complete);
	text = render(&p.c, REPORT_CSV, "types");
	CHECK_STR(text, "name,old_bytes,new_bytes,change_bytes,blocks_old,"
		  "blocks_new,blocks_change\n"
		  "Session,100,900,800,2,18,16\nGone,7,,-7,1,,-1\n");
	free(text);
	pair_fini(&p);
	pair_init(&p, &old, &base);
	CHECK(p.c.complete);
	if (CHECK(p.c.n_notes == 1))
		CHECK_STR(p.c.notes[0].text, "it has no types: these are not "
			  "compared");
	pair_fini(&p);
}

/* A report says how much is lost only if it was looked for. */
static void make_leaky(struct str *s, struct given *g, const char *totals,
		       const char *leaks)
{
	struct str plain;
	char *at;

	g->more = leaks;
	make_json(&plain, g);
	at = strstr(plain.text, "\"findings\"");
	str_init(s);
	str_add(s, plain.text, (size_t)(at - plain.text));
	str_adds(s, totals);
	str_adds(s, at);
	str_fini(&plain);
}

#define LEAK(name, grade, bytes, blocks)				\
	"{ \"name\": \"" name "\", \"grade\": \"" grade "\", "	\
	"\"bytes\": " bytes ", \"blocks\": " blocks " }"

TEST(leaks_are_compared_if_both_looked_for_them)
{
	struct given given = base;
	struct pair p;
	struct str old, new;
	char *text;

	make_leaky(&old, &given, "\"leaked_bytes\": 1000, "
		   "\"leaked_blocks\": 10, ",
		   ", \"leaks\": { \"looked\": true, \"rows\": [ "
		   LEAK("Session", "certain", "1000", "10") " ] }");
	make_leaky(&new, &given, "\"leaked_bytes\": 5000, "
		   "\"leaked_blocks\": 50, ",
		   ", \"leaks\": { \"looked\": true, \"rows\": [ "
		   LEAK("Session", "likely", "3000", "30") ", "
		   LEAK("Session", "certain", "2000", "20") " ] }");
	CHECK(side_from_text(&p.side[0], "old", old.text, old.len));
	CHECK(side_from_text(&p.side[1], "new", new.text, new.len));
	compare_init(&p.c, &p.side[0], &p.side[1], false);
	CHECK(p.c.complete);
	text = render(&p.c, REPORT_CSV, "leaks");
	CHECK_STR(text, "name,grade,old_bytes,new_bytes,change_bytes,"
		  "blocks_old,blocks_new,blocks_change\n"
		  "Session,likely,,3000,3000,,30,30\n"
		  "Session,certain,1000,2000,1000,10,20,10\n");
	free(text);
	text = render(&p.c, REPORT_JSON, "changed");
	CHECK(strstr(text, "3.9K more is lost: nothing was found that refers "
		     "to it (+400.0%); 40 more blocks."));
	free(text);
	pair_fini(&p);
	/* The older one did not look. */
	str_fini(&old);
	make_leaky(&old, &given, "", ", \"leaks\": { \"looked\": false, "
		   "\"rows\": [ ] }");
	CHECK(side_from_text(&p.side[0], "old", old.text, old.len));
	CHECK(side_from_text(&p.side[1], "new", new.text, new.len));
	compare_init(&p.c, &p.side[0], &p.side[1], false);
	CHECK(!p.c.has[COMPARE_LEAKS]);
	/* It need not have: the reports are as complete as they were. */
	CHECK(p.c.complete);
	if (CHECK_U64(p.c.n_notes, 1))
		CHECK_STR(p.c.notes[0].text,
			  "it has no leaks: these are not compared");
	text = render(&p.c, REPORT_TEXT, NULL);
	CHECK(!strstr(text, "INCOMPLETE"));
	free(text);
	text = render(&p.c, REPORT_JSON, NULL);
	CHECK(!strstr(text, "is lost"));
	CHECK(!strstr(text, "\"leaks\""));
	free(text);
	pair_fini(&p);
	str_fini(&old);
	str_fini(&new);
}

static void check_note(const char *old, const char *code, const char *text)
{
	struct str s;
	struct pair p;
	bool found = false;

	make_json(&s, &base);
	CHECK(side_from_text(&p.side[0], "old", old, strlen(old)));
	CHECK(side_from_text(&p.side[1], "new", s.text, s.len));
	str_fini(&s);
	compare_init(&p.c, &p.side[0], &p.side[1], false);
	CHECK(!p.c.complete);
	for (size_t i = 0; i < p.c.n_notes; i++)
		found |= p.c.notes[i].side == 0 &&
			 !strcmp(p.c.notes[i].code, code) &&
			 !strcmp(p.c.notes[i].text, text);
	if (!CHECK(found))
		for (size_t i = 0; i < p.c.n_notes; i++)
			printf("# %s: %s\n", p.c.notes[i].code,
			       p.c.notes[i].text);
	pair_fini(&p);
}

TEST(what_an_older_or_newer_report_lacks_is_said)
{
	check_note("{\"schema\":\"heapcore-report/2\"}", "schema",
		   "it is of a newer kind, heapcore-report/2: only what is "
		   "known of it is compared");
	check_note("{\"schema\":\"heapcore-report/1\"}", "missing-list",
		   "it has no size classes: these are not compared");
	check_note("{\"schema\":\"heapcore-report/1\",\"totals\":[]}",
		   "missing-list", "it has no totals: these are not "
		   "compared");
	check_note("{\"schema\":\"heapcore-report/1\",\"where\":[{\"what\":"
		   "\"used\"},{\"what\":\"free\",\"bytes\":1}]}",
		   "missing-key", "1 of its rows of where lack bytes: what "
		   "is missing is not compared");
	check_note("{\"schema\":\"heapcore-report/1\",\"where\":[7]}", "odd",
		   "1 values in it are not what they should be");
}

#define CLASS(owner, blocks)						\
	"{" owner "\"min_bytes\":48,\"max_bytes\":48,\"free_bytes\":0,"	\
	"\"used_bytes\":" #blocks "0,\"used_blocks\":" #blocks		\
	",\"free_blocks\":0}"
#define GLIBC "\"allocator\":\"glibc\","
#define ZEND "\"allocator\":\"zend\","

static void compare_classes(struct pair *p, const char *old, const char *new)
{
	const char *lists[2] = { old, new };

	for (int i = 0; i < 2; i++) {
		AUTO_FREE char *text =
			mem_printf("{\"schema\":\"heapcore-report/1\","
				   "\"classes\":[%s]}", lists[i]);

		CHECK(side_from_text(&p->side[i], i ? "new" : "old", text,
				     strlen(text)));
	}
	compare_init(&p->c, &p->side[0], &p->side[1], false);
}

static int64_t more_blocks(const struct pair *p, size_t pair)
{
	return compare_change(&p->c, COMPARE_CLASSES, pair,
			      CLASSES_USED_BLOCKS).change;
}

TEST(classes_pair_by_allocator_if_both_tell)
{
	static const char whose[] = CLASS(GLIBC, 4) "," CLASS(ZEND, 1);
	struct pair p;

	compare_classes(&p, whose, CLASS(ZEND, 3) "," CLASS(GLIBC, 6));
	CHECK_U64(p.c.n_pairs[COMPARE_CLASSES], 2);
	CHECK(more_blocks(&p, 0) == 2);
	CHECK(more_blocks(&p, 1) == 2);
	pair_fini(&p);
	compare_classes(&p, CLASS("", 4), whose);
	CHECK_U64(p.c.n_pairs[COMPARE_CLASSES], 1);
	CHECK(more_blocks(&p, 0) == 1);
	pair_fini(&p);
	compare_classes(&p, whose, CLASS("", 3));
	CHECK_U64(p.c.n_pairs[COMPARE_CLASSES], 1);
	CHECK(more_blocks(&p, 0) == -2);
	pair_fini(&p);
}

TEST(a_filtered_report_is_recognised)
{
	struct given old = base;
	struct pair p;
	struct str s;
	char *used;

	make_json(&s, &old);
	/* One block less than the totals say. */
	used = strstr(s.text, "\"used_bytes\": 112000");
	if (!CHECK(used))
		return;
	memcpy(used, "\"used_bytes\": 111888", 20);
	CHECK(side_from_text(&p.side[0], "old", s.text, s.len));
	CHECK(side_from_text(&p.side[1], "new", s.text, s.len));
	str_fini(&s);
	compare_init(&p.c, &p.side[0], &p.side[1], false);
	CHECK(!p.c.complete);
	CHECK_U64(p.c.n_notes, 2);
	CHECK_STR(p.c.notes[0].code, "filtered");
	pair_fini(&p);
}

TEST(different_programs_are_noted_and_harmless)
{
	struct given old = base, new = base;
	struct pair p;

	old.program = "/usr/bin/appd";
	new.program = "appd";
	pair_init(&p, &old, &new);
	CHECK_U64(p.c.n_notes, 0);
	pair_fini(&p);
	new.program = "ap\\u001bpd";
	pair_init(&p, &old, &new);
	CHECK(p.c.complete);
	if (CHECK(p.c.n_notes == 1))
		CHECK_STR(p.c.notes[0].text, "these are of different "
			  "programs: appd and ap\\x1bpd");
	pair_fini(&p);
}

TEST(totals_for_conditions)
{
	struct given new = base;
	struct pair p;
	size_t n;
	const struct column *columns = compare_total_columns(&n);
	struct cell cells[64];
	struct filter f;
	struct err err;
	static const struct {
		const char *text;
		bool holds;
	} cases[] = {
		{ "used_change>10M", false }, { "used_change>=10M", true },
		{ "used_change_bytes=10M", true },
		{ "free_change<-4M", true }, { "free_change<-5M", false },
		{ "used_growth_share>4.9%", true },
		{ "used_growth_share>5%", false },
		{ "findings_change>0", false },
	};

	new.used += 10 * MIB;
	new.free -= 5 * MIB;
	new.mapped += 5 * MIB;
	pair_init(&p, &base, &new);
	if (!CHECK(n <= countof(cells)))
		return;
	compare_totals(&p.c, cells);
	for (size_t i = 0; i < countof(cases); i++) {
		if (!CHECK(filter_compile(&f, "--fail-if", cases[i].text,
					  columns, n, &err)))
			continue;
		if (!CHECK(filter_match(&f, cells, "") == cases[i].holds))
			printf("# %s\n", cases[i].text);
		filter_fini(&f);
	}
	pair_fini(&p);
}

/* What is not known is not above anything, and not below either. */
TEST(a_condition_on_what_is_unknown_does_not_hold)
{
	static const char empty[] = "{\"schema\":\"heapcore-report/1\"}";
	struct pair p;
	size_t n;
	const struct column *columns = compare_total_columns(&n);
	struct cell cells[64];
	struct filter f;
	struct err err;

	CHECK(side_from_text(&p.side[0], "a", empty, strlen(empty)));
	CHECK(side_from_text(&p.side[1], "b", empty, strlen(empty)));
	compare_init(&p.c, &p.side[0], &p.side[1], false);
	compare_totals(&p.c, cells);
	CHECK(filter_compile(&f, "--fail-if", "used_change<=0", columns, n,
			     &err));
	CHECK(!filter_match(&f, cells, ""));
	filter_fini(&f);
	pair_fini(&p);
}

TEST(text_of_a_comparison)
{
	struct given new = base;
	struct pair p;
	char *text;

	new.used += 112 * 100000;
	new.mapped += 112 * 100000;
	new.blocks += 100000;
	new.anonymous = 20 * MIB;
	pair_init(&p, &base, &new);
	text = render(&p.c, REPORT_TEXT, NULL);
	CHECK_STR(text,
"old  old.json: appd, pid 7, 240M of private memory, all decoded\n"
"new  new.json: appd, pid 7, 271M of private memory, all decoded\n"
"\n"
"WHERE THE MEMORY IS                       old       new    change\n"
"  other anonymous mappings                  -     20.0M    +20.0M\n"
"  in use by the program                200.0M    210.7M    +10.7M\n"
"  free, kept by the allocators          40.0M     40.0M         0\n"
"  total private memory                 240.0M    270.7M    +30.7M\n"
"\n"
"WHAT CHANGED\n"
"  1. 20.0M more is in other anonymous mappings, which no known allocator "
"owns.\n"
"  2. 10.7M more is in use (+5.3%): all of it in 100000 more blocks of 112\n"
"     bytes.\n"
"\n"
"ARENAS                     old       new    change    in use      free\n"
"  glibc main            240.0M    250.7M    +10.7M    +10.7M         0\n"
"  total                 240.0M    250.7M    +10.7M    +10.7M         0\n"
"\n"
"SIZES OF BLOCKS          old       new    change    blocks      free\n"
"  112 bytes             0.1M     10.8M    +10.7M   +100000         0\n"
"  64K to 128K         199.9M    199.9M         0         0         0\n"
"  total               200.0M    210.7M    +10.7M   +100000         0\n"
"\n"
"More: heapcore diff --only=classes --rows=20 old.json new.json\n");
	free(text);
	pair_fini(&p);
}

/* Whatever was read can be compared and written in each format. */
static void compare_text(const char *a, size_t n_a, const char *b, size_t n_b)
{
	struct pair p;

	if (!side_from_text(&p.side[0], "a", a, n_a))
		return;
	if (CHECK(side_from_text(&p.side[1], "b", b, n_b))) {
		compare_init(&p.c, &p.side[0], &p.side[1], false);
		free(render(&p.c, REPORT_TEXT, NULL));
		free(render(&p.c, REPORT_JSON, NULL));
		free(render(&p.c, REPORT_CSV, "classes"));
		compare_fini(&p.c);
		compare_side_fini(&p.side[1]);
	}
	compare_side_fini(&p.side[0]);
}

TEST(a_report_cut_off_anywhere_is_refused)
{
	struct compare_side side;
	struct str s;

	make_json(&s, &base);
	/* Without the newline it is whole. */
	for (size_t n = 0; n < s.len - 1; n++) {
		AUTO_FREE char *copy = mem_alloc(n + 1);

		memcpy(copy, s.text, n);
		if (!CHECK(!side_from_text(&side, "cut", copy, n)))
			compare_side_fini(&side);
	}
	str_fini(&s);
}

/* Each byte becomes a few others: mostly refused, never a crash. */
TEST(damaged_reports_do_no_harm)
{
	static const char others[] = "\0\"0-}],{e\x80";
	struct str s;
	struct str bad;

	make_json(&s, &base);
	str_init(&bad);
	for (size_t i = 0; i < s.len; i++)
		for (size_t k = 0; k < sizeof(others) - 1; k++) {
			str_clear(&bad);
			str_add(&bad, s.text, s.len);
			bad.text[i] = others[k];
			compare_text(bad.text, bad.len, s.text, s.len);
		}
	str_fini(&bad);
	str_fini(&s);
}

/* Numbers at the ends of their range, rows twice, keys that are no text. */
TEST(strange_values_do_no_harm)
{
	static const char strange[] = "{\"schema\":\"heapcore-report/1\","
		"\"target\":{\"program\":\"\",\"private_bytes\":0},"
		"\"totals\":{\"used_bytes\":9223372036854775807,"
		"\"free_bytes\":9223372036854775807,\"mapped_bytes\":0},"
		"\"where\":[{\"what\":\"used\",\"bytes\":9223372036854775807},"
		"{\"what\":\"used\",\"bytes\":9223372036854775807},"
		"{\"what\":\"used\",\"bytes\":9223372036854775807},{},{}],"
		"\"arenas\":[{\"name\":\"glibc main\",\"address\":\"0x0\"},"
		"{\"name\":\"glibc main\",\"address\":"
		"\"0xffffffffffffffff\"},{\"name\":\"\"},{}],"
		"\"classes\":[{\"min_bytes\":0,\"max_bytes\":"
		"9223372036854775807,\"used_bytes\":9223372036854775807,"
		"\"used_blocks\":9223372036854775807},{\"min_bytes\":5},{}],"
		"\"types\":[{},{\"name\":\"\\u001b[2J\",\"bytes\":5}]}";
	struct str s;

	make_json(&s, &base);
	compare_text(strange, strlen(strange), s.text, s.len);
	compare_text(s.text, s.len, strange, strlen(strange));
	compare_text(strange, strlen(strange), strange, strlen(strange));
	str_fini(&s);
}
