/* SPDX-License-Identifier: MIT */
#include "analysis/usage.h"

#include "base/mem.h"
#include "corewalk/target.h"
#include "unit/check.h"

/* The same numbers in every run: xorshift64. */
static uint64_t below(uint64_t *state, uint64_t n)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state % n;
}

enum { HEAP = 0x10000000, LIB = 0x20000000 };

/* Sizes in granules, states by number; the last size runs to the end. */
static size_t add_blocks(struct heap *h, uint32_t arena, vaddr start,
			 unsigned shift, uint64_t bytes)
{
	return heap_add_blocks(h, arena, start, start + bytes, shift,
			       shift == 4 ? 16 : 8, shift == 4 ? 8 : 4);
}

static void mark(struct heap *h, size_t i, vaddr at, enum block_state state)
{
	extent_mark(&h->extents[i], at);
	extent_set_state(&h->extents[i], at, state);
}

static void begin(struct heap *h)
{
	uint32_t id;

	heap_init(h);
	id = heap_add_allocator(h, "glibc", "x", "x");
	heap_add_arena(h, id, 0, "glibc main");
	heap_add_arena(h, id, 0, "glibc 1");
}

static const struct usage_class *class_of(const struct usage *u, uint64_t size)
{
	for (size_t i = 0; i < u->n_classes; i++)
		if (size >= u->classes[i].min && size <= u->classes[i].max)
			return &u->classes[i];
	return NULL;
}

TEST(nothing_at_all)
{
	struct heap h;
	struct usage u;

	begin(&h);
	heap_finish(&h);
	usage_init(&u, &h, USAGE_ALL_ARENAS);
	CHECK(usage_check(&u, &h));
	CHECK_U64(u.n_classes, 0);
	CHECK_U64(u.total.used.blocks, 0);
	usage_fini(&u);
	heap_fini(&h);
}

TEST(classes_of_a_small_heap)
{
	struct heap h;
	struct usage u;
	size_t i;

	begin(&h);
	i = add_blocks(&h, 0, HEAP, 4, 0x40000);
	mark(&h, i, HEAP, BLOCK_CACHED);
	mark(&h, i, HEAP + 0x20, BLOCK_USED);
	mark(&h, i, HEAP + 0x40, BLOCK_USED);
	mark(&h, i, HEAP + 0x90, BLOCK_FAST);
	mark(&h, i, HEAP + 0x140, BLOCK_OVERHEAD);
	mark(&h, i, HEAP + 0x160, BLOCK_USED);
	mark(&h, i, HEAP + 0x160 + USAGE_EXACT - 16, BLOCK_USED);
	mark(&h, i, HEAP + 0x150 + 2 * USAGE_EXACT, BLOCK_TOP);
	heap_add_mmapped(&h, 1, LIB, LIB + 0x30000, LIB + 16, 0);
	heap_add_mmapped(&h, 1, LIB + 0x40000, LIB + 0x41000, LIB + 0x40010,
			 0);
	heap_finish(&h);
	usage_init(&u, &h, USAGE_ALL_ARENAS);
	CHECK(usage_check(&u, &h));
	CHECK_U64(class_of(&u, 0x20)->state[BLOCK_CACHED].blocks, 1);
	CHECK_U64(class_of(&u, 0x20)->used.blocks, 1);
	CHECK_U64(class_of(&u, 0x20)->free.bytes, 0x20);
	CHECK_U64(class_of(&u, 0x20)->state[BLOCK_OVERHEAD].blocks, 1);
	CHECK_U64(class_of(&u, 0x20)->example, HEAP + 0x30);
	CHECK_U64(class_of(&u, 0xb0)->example, HEAP + 0xa0);
	CHECK(!class_of(&u, 0x30));
	CHECK_U64(class_of(&u, USAGE_EXACT - 16)->min, USAGE_EXACT - 16);
	CHECK_U64(class_of(&u, USAGE_EXACT)->max, 2 * USAGE_EXACT - 1);
	CHECK_U64(class_of(&u, USAGE_EXACT)->used.bytes, USAGE_EXACT);
	CHECK_U64(class_of(&u, 2 * USAGE_EXACT)->mmapped.bytes, 0x30000);
	CHECK_U64(class_of(&u, 0x1000)->mmapped.blocks, 1);
	CHECK_U64(u.total.used.bytes + u.total.free.bytes + 0x20,
		  0x40000 + 0x31000);
	usage_fini(&u);
	usage_init(&u, &h, 1);
	CHECK(usage_check(&u, &h));
	CHECK_U64(u.n_classes, 2);
	usage_fini(&u);
	heap_fini(&h);
}

/* One size, two allocators: two classes, and each finds its own. */
TEST(classes_of_two_allocators)
{
	struct usage u;
	struct heap h;
	uint32_t other;
	size_t i;

	begin(&h);
	other = heap_add_allocator(&h, "zend", "x", "x");
	heap_add_arena(&h, other, 0, "zend 1");
	i = add_blocks(&h, 0, HEAP, 4, 0x50);
	mark(&h, i, HEAP, BLOCK_USED);
	mark(&h, i, HEAP + 0x20, BLOCK_USED);
	i = add_blocks(&h, 2, HEAP + 0x1000, 4, 0x50);
	mark(&h, i, HEAP + 0x1000, BLOCK_USED);
	mark(&h, i, HEAP + 0x1020, BLOCK_CACHED);
	heap_finish(&h);
	usage_init(&u, &h, USAGE_ALL_ARENAS);
	CHECK(usage_check(&u, &h));
	CHECK_U64(u.n_classes, 4);
	CHECK_U64(u.total.min, 0x20);
	CHECK_U64(u.total.max, 0x30);
	CHECK_U64(u.classes[usage_find(&u, 0, 0x20)].allocator, 0);
	i = usage_find(&u, other, 0x20);
	CHECK_U64(u.classes[i].allocator, other);
	CHECK_U64(u.classes[i].used.blocks, 1);
	CHECK_U64(u.classes[i].used.bytes, 0x20);
	CHECK_U64(u.classes[usage_find(&u, other, 0x30)].free.blocks, 1);
	usage_resize(&u, other, 0x20, 0x28);
	CHECK_U64(u.n_classes, 5);
	CHECK_U64(u.classes[usage_find(&u, other, 0x28)].used.blocks, 1);
	CHECK_U64(u.classes[usage_find(&u, 0, 0x20)].used.blocks, 1);
	usage_fini(&u);
	heap_fini(&h);
}

/* Against the blocks one by one, with every size and granule. */
TEST(the_same_as_block_by_block)
{
	uint64_t r = 7;

	for (int round = 0; round < 200; round++) {
		struct usage_class want = { 0 };
		struct heap_iter it;
		struct heap h;
		struct block b;
		struct usage u;
		uint64_t used = 0;

		begin(&h);
		for (uint64_t e = 0; e < 1 + below(&r, 4); e++) {
			unsigned shift = 3 + (unsigned)below(&r, 2);
			uint64_t bytes = 1 + below(&r, 300000);
			vaddr at = HEAP + e * 0x1000000, end = at + bytes;
			size_t i = add_blocks(&h, e & 1, at, shift, bytes);

			while (at < end) {
				mark(&h, i, at, (enum block_state)
				     below(&r, BLOCK_STATES));
				at += (1 + below(&r, 1 << below(&r, 14))) <<
				      shift;
				if (end - (at & ~UINT64_C(15)) < 16)
					break;
			}
		}
		heap_finish(&h);
		usage_init(&u, &h, USAGE_ALL_ARENAS);
		CHECK(usage_check(&u, &h));
		heap_iter_init(&it, &h);
		while (heap_iter_next(&it, &b)) {
			const struct usage_class *k = class_of(&u, b.size);

			if (!CHECK(k && k->state[b.state].blocks))
				break;
			used += b.state == BLOCK_USED ? b.size : 0;
			want.free.blocks += block_state_free(b.state);
		}
		CHECK_U64(u.total.used.bytes, used);
		CHECK_U64(u.total.free.blocks, want.free.blocks);
		for (size_t i = 1; i < u.n_classes; i++)
			CHECK(u.classes[i - 1].max < u.classes[i].min);
		usage_fini(&u);
		heap_fini(&h);
	}
}

static struct look look_at(struct space *sp, struct heap *h, uint64_t first,
			   uint64_t second)
{
	struct block b = { .addr = HEAP + 16, .usable = 24 };

	memcpy(target_mem_at(sp, HEAP + 16), &first, 8);
	memcpy(target_mem_at(sp, HEAP + 24), &second, 8);
	return usage_look(sp, h, &b);
}

TEST(what_blocks_look_like)
{
	struct space *sp = target_mem_new(MACHINE_X86_64);
	char text[LOOK_TEXT_MAX];
	struct look a, b;
	struct heap h;
	size_t i;

	target_mem_add(sp, HEAP, 0x2000, SEG_R | SEG_W, NULL, 0x1000, NULL);
	target_mem_add(sp, LIB, 0x1000, SEG_R, NULL, 0x1000, "/usr/bin/appd");
	sp->modules = mem_zalloc(sizeof(*sp->modules));
	sp->n_modules = 1;
	sp->modules[0] = (struct module){ .start = LIB, .end = LIB + 0x1000 };
	target_mem_done(sp);
	begin(&h);
	i = add_blocks(&h, 0, HEAP, 4, 0x1000);
	mark(&h, i, HEAP, BLOCK_USED);
	heap_finish(&h);

	a = look_at(sp, &h, LIB + 0x8a8, 3);
	CHECK(a.kind[0] == LOOK_CODE && a.kind[1] == LOOK_SMALL);
	look_text(text, sp, &a);
	CHECK_STR(text, "0x200008a8 in appd, 3");
	b = look_at(sp, &h, LIB + 0x8a8, 65535);
	CHECK(look_alike(&a, &b));
	b = look_at(sp, &h, LIB + 0x8b0, 3);
	CHECK(!look_alike(&a, &b));

	a = look_at(sp, &h, HEAP + 32, HEAP + 0x1800);
	CHECK(a.kind[0] == LOOK_BLOCK && a.kind[1] == LOOK_ADDRESS);
	look_text(text, sp, &a);
	CHECK_STR(text, "block 0x10000020, 0x10001800");

	a = look_at(sp, &h, UINT64_C(0xa1a1a1a1a1a1a1a1),
		    UINT64_C(0xa1a1a1a1a1a1a1a1));
	look_text(text, sp, &a);
	CHECK_STR(text, "bytes 0xa1");

	a = look_at(sp, &h, 0x776f72, UINT64_C(0x1b72656d6f747375));
	CHECK(a.kind[0] == LOOK_TEXT && a.kind[1] == LOOK_OTHER);
	look_text(text, sp, &a);
	CHECK_STR(text, "\"row\", 0x1b72656d6f747375");

	a = look_at(sp, &h, 0, UINT64_C(0x0a72656d6f747375));
	look_text(text, sp, &a);
	CHECK_STR(text, "0, 0xa72656d6f747375");

	/* A block whose second word is not in the file. */
	a = usage_look(sp, &h, &(struct block){ .addr = HEAP + 0xff8,
						.usable = 40 });
	CHECK(a.kind[0] == LOOK_ZERO && a.kind[1] == LOOK_NONE);
	look_text(text, sp, &a);
	CHECK_STR(text, "0");
	heap_fini(&h);
	space_close(sp);
}
