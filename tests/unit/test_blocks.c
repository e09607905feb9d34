/* SPDX-License-Identifier: MIT */
#include "analysis/census.h"
#include "report/blocks.h"

#include <sys/mman.h>
#include <unistd.h>

#include "base/mem.h"
#include "check.h"

enum { HEAP = 0x10000, BIG = 0x7f0000000 };

/* used 48, tcache 32 of thread 7, bin 64, used 112; one mmapped. */
static void make(struct heap *h)
{
	uint32_t id;
	size_t x;

	heap_init(h);
	id = heap_add_allocator(h, "glibc", "2.36", "by hand");
	heap_add_arena(h, id, 1, "glibc main");
	heap_add_arena(h, id, 0, "glibc mmapped");
	x = heap_add_blocks(h, 0, HEAP, HEAP + 256, 4, 16, 8);
	extent_mark(&h->extents[x], HEAP);
	extent_mark(&h->extents[x], HEAP + 48);
	extent_set_state(&h->extents[x], HEAP + 48, BLOCK_CACHED);
	extent_mark(&h->extents[x], HEAP + 80);
	extent_set_state(&h->extents[x], HEAP + 80, BLOCK_BINNED);
	extent_mark(&h->extents[x], HEAP + 144);
	heap_add_mmapped(h, 1, BIG, BIG + 0x21000, BIG + 16, 0);
	MEM_PUSH(h->caches, h->n_caches, h->cap_caches) =
		(struct thread_cache){ .tid = 7, .blocks = 1, .bytes = 32 };
	MEM_PUSH(h->cached, h->n_cached, h->cap_cached) =
		(struct cached){ .start = HEAP + 48, .cache = 0 };
	heap_finish(h);
}

static struct err err;
static struct space sp;

static uint64_t max_lines = UINT64_MAX;
static const struct census *known_types;

static const char *list(const char *expr, enum report_format format)
{
	static char text[5000];
	struct filter filter = { 0 };
	struct heap h;
	struct report_input in = { .sp = &sp, .heap = &h };
	struct out o;
	int fd = memfd_create("blocks", 0);
	ssize_t n;
	size_t n_columns;
	const struct column *columns = block_columns(&n_columns);

	make(&h);
	if (expr && !CHECK(filter_compile(&filter, "--filter", expr, columns,
					  n_columns, &err)))
		printf("# %s\n", err.msg);
	out_open_fd(&o, dup(fd));
	in.census = known_types;
	blocks_write(&in, expr ? &filter : NULL, max_lines, format, &o);
	CHECK(out_close(&o, &err));
	filter_fini(&filter);
	heap_fini(&h);
	n = pread(fd, text, sizeof(text) - 1, 0);
	text[n] = '\0';
	close(fd);
	return text;
}

TEST(lines_of_text)
{
	CHECK_STR(list(NULL, REPORT_TEXT),
"ADDRESS                   SIZE  STATE     ARENA          TYPE\n"
"0x10010                     48  used      glibc main     -\n"
"0x10040                     32  tcache    glibc main     -\n"
"0x10060                     64  bin       glibc main     -\n"
"0x100a0                    112  used      glibc main     -\n"
"0x7f0000010             135168  used      glibc mmapped  -\n");
}

TEST(no_more_lines_than_wanted)
{
	max_lines = 2;
	CHECK_STR(list("state=used", REPORT_TEXT),
"ADDRESS                   SIZE  STATE     ARENA          TYPE\n"
"0x10010                     48  used      glibc main     -\n"
"0x100a0                    112  used      glibc main     -\n");
	max_lines = UINT64_MAX;
}

TEST(lines_of_json)
{
	CHECK_STR(list(NULL, REPORT_JSON),
"{\"address\":\"0x10010\",\"size\":48,\"usable\":40,\"state\":\"used\","
"\"arena\":\"glibc main\"}\n"
"{\"address\":\"0x10040\",\"size\":32,\"usable\":24,\"state\":\"tcache\","
"\"arena\":\"glibc main\",\"thread\":7}\n"
"{\"address\":\"0x10060\",\"size\":64,\"usable\":48,\"state\":\"bin\","
"\"arena\":\"glibc main\"}\n"
"{\"address\":\"0x100a0\",\"size\":112,\"usable\":104,\"state\":\"used\","
"\"arena\":\"glibc main\"}\n"
"{\"address\":\"0x7f0000010\",\"size\":135168,\"usable\":135152,"
"\"state\":\"used\",\"arena\":\"glibc mmapped\",\"mmapped\":true}\n");
}

TEST(lines_of_csv)
{
	CHECK_STR(list("state=tcache", REPORT_CSV),
"address,size,usable,state,arena,mmapped,thread,leaked,leak_grade,"
"refs,resident,swapped,type,known_by,retained\n"
"0x10040,32,24,tcache,glibc main,false,7,,,,,,,,\n");
}

/* The first column of each line, apart by blanks. */
static const char *addresses(const char *expr)
{
	static char ret[200];
	const char *text = list(expr, REPORT_CSV);
	size_t n = 0;

	ret[0] = '\0';
	while ((text = strchr(text, '\n')) && text[1]) {
		text++;
		n += (size_t)snprintf(ret + n, sizeof(ret) - n, "%s%.*s",
				      n ? " " : "", (int)strcspn(text, ","),
				      text);
	}
	return ret;
}

TEST(filters_choose)
{
	CHECK_STR(addresses("used"), "0x10010 0x100a0 0x7f0000010");
	CHECK_STR(addresses("free"), "0x10040 0x10060");
	CHECK_STR(addresses("!used !free"), "");
	CHECK_STR(addresses("mmapped"), "0x7f0000010");
	CHECK_STR(addresses("thread=7"), "0x10040");
	CHECK_STR(addresses("thread!=7 free"), "0x10060");
	CHECK_STR(addresses("size>=48 size<112"), "0x10010 0x10060");
	CHECK_STR(addresses("usable=40"), "0x10010");
	CHECK_STR(addresses("arena=\"glibc main\" size>64"), "0x100a0");
	CHECK_STR(addresses("allocator=tcmalloc"), "");
	CHECK_STR(addresses("address>=0x10060 address<7f0000000"),
		  "0x10060 0x100a0");
}

static void usage_of(const char *expr, struct usage *ret)
{
	struct filter filter;
	struct heap h;
	size_t n;
	const struct column *columns = block_columns(&n);

	make(&h);
	CHECK(filter_compile(&filter, "--filter", expr, columns, n, &err));
	blocks_usage(ret, &(struct report_input){ .sp = &sp, .heap = &h },
		     &filter);
	filter_fini(&filter);
	heap_fini(&h);
}

TEST(classes_of_matching_blocks)
{
	struct usage u;

	usage_of("size>=48", &u);
	CHECK_U64(u.n_classes, 4);
	CHECK_U64(u.classes[0].min, 48);
	CHECK_U64(u.classes[0].used.bytes, 48);
	CHECK_U64(u.classes[1].free.blocks, 1);
	CHECK_U64(u.classes[3].min, 131072);
	CHECK_U64(u.classes[3].max, 262143);
	CHECK_U64(u.classes[3].mmapped.blocks, 1);
	CHECK_U64(u.classes[3].used.bytes, 135168);
	CHECK_U64(u.classes[3].example, BIG + 16);
	CHECK_U64(u.total.used.blocks, 3);
	CHECK_U64(u.total.free.bytes, 64);
	usage_fini(&u);
}

/* The same as the usage of all, if the filter lets all pass. */
TEST(a_filter_of_all_gives_the_usage_of_all)
{
	struct usage all, u;
	struct heap h;

	make(&h);
	usage_init(&all, &h, USAGE_ALL_ARENAS);
	usage_of("size>0", &u);
	CHECK_U64(u.n_classes, all.n_classes);
	for (size_t i = 0; i < u.n_classes && i < all.n_classes; i++) {
		CHECK_U64(u.classes[i].min, all.classes[i].min);
		CHECK_U64(u.classes[i].max, all.classes[i].max);
		CHECK_U64(u.classes[i].used.bytes, all.classes[i].used.bytes);
		CHECK_U64(u.classes[i].free.bytes, all.classes[i].free.bytes);
	}
	usage_fini(&all);
	usage_fini(&u);
	heap_fini(&h);
}

TEST(pages_of_blocks)
{
	struct page_run runs[] = {
		{ HEAP, 1, PAGE_PRESENT },
		{ BIG, 1, PAGE_PRESENT }, { BIG + 0x4000, 2, PAGE_SWAPPED },
	};
	struct usage u;

	sp.page = 4096;
	sp.pages = runs;
	sp.n_pages = countof(runs);
	CHECK_STR(list("mmapped", REPORT_JSON),
"{\"address\":\"0x7f0000010\",\"size\":135168,\"usable\":135152,"
"\"state\":\"used\",\"arena\":\"glibc mmapped\",\"mmapped\":true,"
"\"resident\":4096,\"swapped\":8192}\n");
	CHECK_STR(addresses("resident=4096"), "0x7f0000010");
	CHECK_STR(addresses("swapped>0"), "0x7f0000010");
	usage_of("used", &u);
	CHECK_U64(u.total.used_pages.resident, 48 + 112 + 4096);
	CHECK_U64(u.total.used_pages.swapped, 8192);
	CHECK_U64(u.total.free_pages.resident, 0);
	usage_fini(&u);
	usage_of("size=64", &u);
	CHECK_U64(u.classes[0].free_pages.resident, 64);
	usage_fini(&u);
	sp.pages = NULL;
}

/* The first block has a type whose name needs quoting everywhere. */
static const char *list_typed(const char *expr, enum report_format format)
{
	struct census census = { .ix = NULL };
	struct index ix;
	struct heap h;
	const char *ret;
	uint32_t type;

	make(&h);
	CHECK(index_init(&ix, &h, UINT64_MAX, &err));
	census.ix = &ix;
	types_init(&census.types, ix.n);
	type = types_add(&census.types, "A<\"x,\\\">", TYPE_RTTI, 0, 0);
	types_set(&census.types, index_find(&ix, HEAP + 16), type);
	heap_fini(&h);
	known_types = &census;
	ret = list(expr, format);
	known_types = NULL;
	types_fini(&census.types);
	index_fini(&ix);
	return ret;
}

TEST(types_are_listed_and_quoted)
{
	const char *expr = "type~^A known_by=rtti";

	CHECK_STR(list_typed(expr, REPORT_TEXT),
"ADDRESS                   SIZE  STATE     ARENA          TYPE\n"
"0x10010                     48  used      glibc main     "
"A<\"x,\\x5c\">\n");
	CHECK(strstr(list_typed(expr, REPORT_JSON),
		     ",\"type\":\"A<\\\"x,\\\\x5c\\\">\","
		     "\"known_by\":\"rtti\"}"));
	CHECK(strstr(list_typed(expr, REPORT_CSV),
		     ",\"A<\"\"x,\\x5c\"\">\",rtti,\n"));
	CHECK(!strstr(list_typed("!type~A used", REPORT_TEXT), "0x10010"));
}
