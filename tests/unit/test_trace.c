/* SPDX-License-Identifier: MIT */
/*
 * The format of traces, in both directions: what the reader makes of chunks
 * built by hand, of damage, and of what the writer writes.
 */
#include "base/rand.h"
#include "check.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "replay/objects.h"
#include "replay/trace_file.h"
#include "replay/trace_import.h"
#include "replay/trace_pack.h"
#include "replay/trace_write.h"

/* A trace under construction. */
struct image {
	struct str bytes;
	uint32_t sequence[8];
};

static void put(struct str *s, uint64_t value)
{
	for (; value >= 0x80; value >>= 7)
		str_addc(s, (char)(value | 0x80));
	str_addc(s, (char)value);
}

static void put_signed(struct str *s, int64_t value)
{
	put(s, (uint64_t)value << 1 ^ (uint64_t)(value >> 63));
}

static void image_init(struct image *im)
{
	struct trace_file_header h = {
		.major = TRACE_MAJOR, .header_size = TRACE_HEADER_SIZE,
		.pid = 42, .page_size = 4096, .ticks_per_s = 1000000000,
		.pointer_size = 8, .tick_shift = 4,
		.first_chunk = TRACE_HEADER_SIZE,
	};

	memcpy(h.magic, TRACE_MAGIC, TRACE_MAGIC_SIZE);
	h.crc = trace_crc32c(&h, offsetof(struct trace_file_header, crc));
	memset(im, 0, sizeof(*im));
	str_init(&im->bytes);
	str_add(&im->bytes, &h, sizeof(h));
}

/* What add_chunk() does not set itself. */
struct chunk_spec {
	unsigned type, flags;
	uint32_t stream, room;
	uint64_t tick;
};

static size_t add_chunk(struct image *im, struct chunk_spec spec,
			struct str *payload)
{
	struct trace_chunk c = {
		.magic = TRACE_CHUNK_MAGIC, .type = (uint8_t)spec.type,
		.flags = (uint16_t)spec.flags, .stream = spec.stream,
		.tick = spec.tick, .room = spec.room,
		.stored = (uint32_t)payload->len,
		.length = (uint32_t)payload->len,
		.sequence = im->sequence[spec.stream % 8]++,
		.crc = trace_crc32c(payload->text, payload->len),
	};
	size_t at = im->bytes.len;

	c.header_crc = trace_crc32c(&c, offsetof(struct trace_chunk,
						 header_crc));
	str_add(&im->bytes, &c, sizeof(c));
	str_add(&im->bytes, payload->text, payload->len);
	while (im->bytes.len % TRACE_CHUNK_ALIGN ||
	       im->bytes.len < at + spec.room)
		str_addc(&im->bytes, 0);
	str_fini(payload);
	return at;
}

static struct trace *open_image(const struct image *im, struct err *err)
{
	int fd = memfd_create("trace", MFD_CLOEXEC);

	if (write(fd, im->bytes.text, im->bytes.len) !=
	    (ssize_t)im->bytes.len)
		return NULL;
	return trace_open_fd(fd, "image", err);
}

/* All events, copied; the caller frees. */
static struct trace_event *read_all(struct trace *t, size_t *ret_n)
{
	struct trace_event *all = NULL;
	const struct trace_event *e;
	size_t cap = 0, n;

	*ret_n = 0;
	while ((n = trace_read(t, &e)))
		for (size_t i = 0; i < n; i++)
			MEM_PUSH(all, *ret_n, cap) = e[i];
	return all;
}

/* A malloc at 16 times addr, by the stack of that number. */
static void put_malloc(struct str *s, uint64_t ticks, int64_t addr,
		       uint64_t size, int64_t stack)
{
	str_addc(s, TRACE_MALLOC);
	put(s, ticks);
	put_signed(s, addr);
	put(s, size);
	put_signed(s, stack);
}

static void put_free(struct str *s, uint64_t ticks, int64_t addr)
{
	str_addc(s, TRACE_FREE);
	put(s, ticks);
	put_signed(s, addr);
}

static void put_thread(struct str *s, uint64_t tid)
{
	str_addc(s, TRACE_OTHER);
	put(s, TRACE_OTHER_THREAD);
	put(s, tid < 128 ? 1 : 2);
	put(s, tid);
}

TEST(classes_tile_all_sizes)
{
	for (unsigned i = 0; i < TRACE_CLASSES; i++) {
		CHECK_U64(trace_class(trace_class_from(i)), i);
		CHECK_U64(trace_class(trace_class_from(i + 1) - 1), i);
	}
	CHECK_U64(trace_class_from(TRACE_CLASSES) - 1, UINT64_MAX);
}

TEST(every_kind_of_record)
{
	struct image im;
	struct str s;
	struct err err = { .msg = "" };
	struct trace_event *e;
	struct trace *t;
	size_t n;

	image_init(&im);
	str_init(&s);
	put_thread(&s, 77);
	put_malloc(&s, 1, 0x1000, 100, 3);
	str_addc(&s, TRACE_CALLOC | TRACE_SAME_STACK | TRACE_ODD_ADDRESS);
	put(&s, 0);
	put_signed(&s, 9);		/* 0x10009 */
	put(&s, 7);
	str_addc(&s, TRACE_ALIGNED);
	put(&s, 2);
	put_signed(&s, 0x1000);		/* 0x20000 */
	put(&s, 12);
	put(&s, 4096);
	put_signed(&s, -1);
	str_addc(&s, TRACE_REALLOC_OLD);
	put(&s, 0);
	put_signed(&s, -0x1000);	/* 0x10000 */
	str_addc(&s, TRACE_REALLOC_NEW | TRACE_SAME_STACK);
	put(&s, 1);
	put_signed(&s, 0x2000);		/* 0x30000 */
	put(&s, 1 << 20);
	str_addc(&s, TRACE_FREE_SIZED);
	put(&s, 0);
	put_signed(&s, 0);
	put(&s, 1 << 20);
	str_addc(&s, TRACE_SAMPLE | TRACE_SAME_STACK);
	put(&s, 5);
	put_signed(&s, 1);
	put(&s, 1000);
	put(&s, 17);
	put(&s, 524288);
	str_addc(&s, TRACE_OTHER);	/* of a later release */
	put(&s, 99);
	put(&s, 3);
	str_adds(&s, "abc");
	put_free(&s, 1, -1);
	add_chunk(&im, (struct chunk_spec){ TRACE_EVENTS, 0, 1, 0, 1600 },
		  &s);
	t = open_image(&im, &err);
	if (!CHECK(t))
		return;
	e = read_all(t, &n);
	CHECK_U64(n, 8);
	CHECK_U64(e[0].tick, 1616);
	CHECK_U64(e[0].addr, 0x10000);
	CHECK_U64(e[0].stack, 3);
	CHECK_U64(e[0].size, 100);
	CHECK_U64(trace_info(t)->threads[e[0].thread].tid, 77);
	CHECK_U64(e[1].addr, 0x10009);
	CHECK_U64(e[1].stack, 3);
	CHECK_U64(e[2].addr, 0x20000);
	CHECK_U64(e[2].align, 12);
	CHECK_U64(e[2].stack, 2);
	CHECK_U64(e[3].kind, TRACE_REALLOC_OLD);
	CHECK_U64(e[3].addr, 0x10000);
	CHECK_U64(e[4].addr, 0x30000);
	CHECK_U64(e[4].size, 1 << 20);
	CHECK_U64(e[5].kind, TRACE_FREE_SIZED);
	CHECK_U64(e[5].size, 1 << 20);
	CHECK_U64(e[6].gap, 17);
	CHECK_U64(e[6].rate, 524288);
	CHECK_U64(e[7].addr, 0x30000);
	CHECK_U64(e[7].tick, 1600 + 16 * 10);
	CHECK_U64(trace_damage(t)->unknown, 1);
	CHECK_STR(trace_damage(t)->first, "");
	free(e);
	trace_close(t);
	str_fini(&im.bytes);
}

/* Three streams: by tick; frees before allocations; then the lower stream. */
TEST(streams_are_merged)
{
	struct image im;
	struct str s;
	struct err err;
	struct trace_event *e;
	struct trace *t;
	size_t n;
	const uint64_t want[] = { 0x10, 0x20, 0x30, 0x40, 0x50, 0x60, 0x70 };

	image_init(&im);
	str_init(&s);
	put_malloc(&s, 0, 1, 1, 0);	/* 0x10 at 0 */
	put_malloc(&s, 5, 4, 1, 0);	/* 0x50 at 80 */
	add_chunk(&im, (struct chunk_spec){ TRACE_EVENTS, 0, 2, 0, 0 }, &s);
	str_init(&s);
	put_malloc(&s, 1, 2, 1, 0);	/* 0x20 at 16 */
	put_free(&s, 4, 2);		/* 0x40 at 80, a free */
	put_malloc(&s, 4, 3, 1, 0);	/* 0x70 at 144 */
	add_chunk(&im, (struct chunk_spec){ TRACE_EVENTS, 0, 3, 0, 0 }, &s);
	str_init(&s);
	put_malloc(&s, 0, 3, 1, 0);	/* 0x30 at 32 */
	add_chunk(&im, (struct chunk_spec){ TRACE_EVENTS, 0, 1, 0, 32 }, &s);
	str_init(&s);
	put_malloc(&s, 0, 6, 1, 0);	/* 0x60 at 96: its second chunk */
	add_chunk(&im, (struct chunk_spec){ TRACE_EVENTS, 0, 1, 0, 96 }, &s);
	t = open_image(&im, &err);
	if (!CHECK(t))
		return;
	for (int round = 0; round < 2; round++) {
		e = read_all(t, &n);
		CHECK_U64(n, countof(want));
		for (size_t i = 0; i < n && i < countof(want); i++)
			CHECK_U64(e[i].addr, want[i]);
		free(e);
		trace_rewind(t);
	}
	CHECK_U64(trace_info(t)->n_streams, 3);
	CHECK_STR(trace_damage(t)->first, "");
	trace_close(t);
	str_fini(&im.bytes);
}

/* A stream that several threads wrote, one after the other. */
TEST(threads_of_a_stream)
{
	struct image im;
	struct str s;
	struct err err;
	struct trace_event *e;
	struct trace *t;
	size_t n;

	image_init(&im);
	str_init(&s);
	put_malloc(&s, 0, 1, 1, 0);
	put_thread(&s, 5);
	put_malloc(&s, 0, 1, 1, 0);
	put_thread(&s, 300);
	put_malloc(&s, 0, 1, 1, 0);
	put_thread(&s, 5);
	put_malloc(&s, 0, 1, 1, 0);
	str_addc(&s, TRACE_OTHER);
	put(&s, TRACE_OTHER_LOST);
	put(&s, 1);
	put(&s, 9);
	add_chunk(&im, (struct chunk_spec){ TRACE_EVENTS, 0, 1, 0, 0 }, &s);
	t = open_image(&im, &err);
	if (!CHECK(t))
		return;
	e = read_all(t, &n);
	CHECK_U64(n, 4);
	CHECK_U64(trace_info(t)->n_threads, 3);
	CHECK_U64(trace_info(t)->threads[e[0].thread].tid, 0);
	CHECK_U64(trace_info(t)->threads[e[1].thread].tid, 5);
	CHECK_U64(trace_info(t)->threads[e[2].thread].tid, 300);
	CHECK_U64(e[3].thread, e[1].thread);
	CHECK_U64(trace_damage(t)->lost, 9);
	free(e);
	trace_close(t);
	str_fini(&im.bytes);
}

/* Open chunks end at a tag of 0, wherever the program was killed. */
TEST(open_chunks_end_anywhere)
{
	struct image im;
	struct str s;
	struct err err;
	struct trace *t;
	uint64_t events;

	image_init(&im);
	str_init(&s);
	for (int i = 0; i < 10; i++)
		put_malloc(&s, 1, 1, 1, 0);
	/* The payload of an eleventh, whose tag was not yet stored. */
	str_add(&s, "\0\x7f\x7f\x7f", 4);
	while (s.len < 4096 - TRACE_CHUNK_SIZE)
		str_addc(&s, 0);
	add_chunk(&im, (struct chunk_spec){ TRACE_EVENTS, TRACE_OPEN, 1, 4096,
					    0 }, &s);
	str_init(&s);
	put_malloc(&s, 1, 1, 1, 0);
	add_chunk(&im, (struct chunk_spec){ TRACE_EVENTS, 0, 2, 0, 0 }, &s);
	t = open_image(&im, &err);
	if (!CHECK(t))
		return;
	CHECK(trace_verify(t, &events));
	CHECK_U64(events, 11);
	CHECK_U64(trace_info(t)->n_open, 1);
	trace_close(t);
	/* The same, cut in the open chunk: the file system was full. */
	im.bytes.len = TRACE_HEADER_SIZE + TRACE_CHUNK_SIZE + 12;
	t = open_image(&im, &err);
	if (!CHECK(t))
		return;
	trace_verify(t, &events);
	CHECK_U64(events, 2);
	CHECK(trace_damage(t)->cut);
	trace_close(t);
	str_fini(&im.bytes);
}

static struct trace *three_chunks(struct image *im, size_t at[3])
{
	struct err err;
	struct str s;

	image_init(im);
	for (uint32_t i = 0; i < 3; i++) {
		str_init(&s);
		for (int k = 0; k < 5; k++)
			put_malloc(&s, 1, 1, 1, 0);
		at[i] = add_chunk(im, (struct chunk_spec){ TRACE_EVENTS, 0,
				  i + 1, 0, 0 }, &s);
	}
	return open_image(im, &err);
}

/* One chunk is damaged: the others are there. */
TEST(damage_stays_where_it_is)
{
	struct image im;
	struct trace *t;
	struct err err;
	uint64_t events;
	size_t at[3];

	t = three_chunks(&im, at);
	if (!CHECK(t))
		return;
	trace_verify(t, &events);
	CHECK_U64(events, 15);
	trace_close(t);

	im.bytes.text[at[1] + TRACE_CHUNK_SIZE + 3] ^= 1;
	t = open_image(&im, &err);
	CHECK(!trace_verify(t, &events));
	CHECK_U64(events, 10);
	CHECK_U64(trace_damage(t)->chunks, 1);
	CHECK(strstr(trace_damage(t)->first, "wrong checksum"));
	trace_close(t);
	im.bytes.text[at[1] + TRACE_CHUNK_SIZE + 3] ^= 1;

	im.bytes.text[at[1] + 8] ^= 1;
	t = open_image(&im, &err);
	CHECK(!trace_verify(t, &events));
	CHECK_U64(events, 10);
	CHECK_U64(trace_damage(t)->headers, at[2] - at[1]);
	trace_close(t);
	im.bytes.text[at[1] + 8] ^= 1;

	/* A missing chunk in the middle of a stream. */
	im.bytes.text[at[1] + 20] ^= 4;
	for (int i = 0; i < 2; i++) {
		uint32_t crc = trace_crc32c(im.bytes.text + at[1], 44);

		memcpy(im.bytes.text + at[1] + 44, &crc, 4);
	}
	t = open_image(&im, &err);
	trace_verify(t, &events);
	CHECK_U64(events, 15);
	trace_close(t);
	str_fini(&im.bytes);
}

TEST(what_is_no_trace_is_refused)
{
	struct image im;
	struct err err;

	image_init(&im);
	im.bytes.text[0] = 'x';
	CHECK(!open_image(&im, &err));
	CHECK(strstr(err.msg, "not a trace"));
	str_fini(&im.bytes);
	image_init(&im);
	im.bytes.text[8] = 2;
	CHECK(!open_image(&im, &err));
	CHECK(strstr(err.msg, "version 2"));
	/* Another minor version is read. */
	im.bytes.text[8] = 1;
	im.bytes.text[10] = 9;
	struct trace *t = open_image(&im, &err);

	CHECK(t);
	trace_close(t);
	im.bytes.len = 63;
	CHECK(!open_image(&im, &err));
	im.bytes.len = 0;
	CHECK(!open_image(&im, &err));
	str_fini(&im.bytes);
}

TEST(stacks_share_their_outer_frames)
{
	struct image im;
	struct str s;
	struct err err;
	struct trace *t;
	const vaddr *f;
	size_t n;

	image_init(&im);
	str_init(&s);
	str_addc(&s, TRACE_STACK_TAG);
	put(&s, 0);
	put(&s, 3);
	put_signed(&s, 0x1000);
	put_signed(&s, 0x20);
	put_signed(&s, -0x10);
	str_addc(&s, TRACE_STACK_TAG);
	put(&s, 2);
	put(&s, 1);
	put_signed(&s, 5);
	str_addc(&s, TRACE_STACK_TAG);
	put(&s, 1);
	put(&s, 0);
	add_chunk(&im, (struct chunk_spec){ TRACE_STACKS, 0, 0, 0, 1 }, &s);
	t = open_image(&im, &err);
	if (!CHECK(t))
		return;
	CHECK_U64(trace_info(t)->n_stacks, 3);
	f = trace_stack(t, 1, &n);
	CHECK_U64(n, 3);
	CHECK_U64(f[0], 0x1010);
	CHECK_U64(f[2], 0x1000);
	f = trace_stack(t, 2, &n);
	CHECK_U64(n, 3);
	CHECK_U64(f[0], 0x1025);
	CHECK_U64(f[1], 0x1020);
	f = trace_stack(t, 3, &n);
	CHECK_U64(n, 1);
	CHECK_U64(f[0], 0x1000);
	trace_stack(t, 0, &n);
	CHECK_U64(n, 0);
	trace_stack(t, 4, &n);
	CHECK_U64(n, 0);
	trace_close(t);
	str_fini(&im.bytes);
}

/* More shared frames than there are: no frame from elsewhere. */
TEST(stacks_that_lie)
{
	struct image im;
	struct str s;
	struct err err;
	struct trace *t;

	image_init(&im);
	str_init(&s);
	str_addc(&s, TRACE_STACK_TAG);
	put(&s, 7);
	put(&s, 1);
	put_signed(&s, 1);
	add_chunk(&im, (struct chunk_spec){ TRACE_STACKS, 0, 0, 0, 1 }, &s);
	str_init(&s);
	str_addc(&s, TRACE_STACK_TAG);
	put(&s, 0);
	put(&s, UINT64_MAX);
	add_chunk(&im, (struct chunk_spec){ TRACE_STACKS, 0, 0, 0, 1 }, &s);
	str_init(&s);
	str_addc(&s, TRACE_STACK_TAG);
	put(&s, 0);
	put(&s, 0);
	add_chunk(&im, (struct chunk_spec){ TRACE_STACKS, 0, 0, 0,
					    UINT64_MAX / 2 }, &s);
	t = open_image(&im, &err);
	if (!CHECK(t))
		return;
	CHECK_U64(trace_info(t)->n_stacks, 0);
	CHECK_U64(trace_damage(t)->records, 3);
	trace_close(t);
	str_fini(&im.bytes);
}

/* Random events: what the writer writes, the reader reads. */
enum { MANY = 200000, ADDRESSES = 3000 };

static uint32_t random_below(uint64_t *state, uint32_t n)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)((*state >> 33) % n);
}

static struct trace_event random_event(uint64_t *state, uint64_t *tick,
				       bool live[ADDRESSES])
{
	static const uint8_t kinds[] = {
		TRACE_MALLOC, TRACE_CALLOC, TRACE_ALIGNED, TRACE_SAMPLE,
		TRACE_MALLOC, TRACE_MALLOC,
	};
	uint32_t a = random_below(state, ADDRESSES);
	struct trace_event e = {
		.addr = 0x10000 + 16 * (uint64_t)a,
		.thread = random_below(state, 3),
		.kind = kinds[random_below(state, 6)],
	};

	*tick += random_below(state, 5000);
	e.tick = *tick;
	if (live[a])
		e.kind = random_below(state, 8) ? TRACE_FREE :
			random_below(state, 2) ? TRACE_REALLOC_SAME :
			TRACE_FREE_SIZED;
	live[a] = e.kind != TRACE_FREE && e.kind != TRACE_FREE_SIZED;
	if (1u << e.kind & TRACE_KINDS_SIZED)
		e.size = random_below(state, 4) ? 64 :
			(uint64_t)random_below(state, 1u << 30) << 12;
	if (1u << e.kind & TRACE_KINDS_STACKED)
		e.stack = random_below(state, 5);
	if (e.kind == TRACE_ALIGNED)
		e.align = (uint8_t)random_below(state, 20);
	if (e.kind == TRACE_SAMPLE) {
		e.gap = random_below(state, 1000);
		e.rate = 4096;
	}
	return e;
}

static struct trace_writer *new_writer(const char *path)
{
	struct trace_head head = { .pid = 7, .ticks_per_s = 2000000000 };
	struct err err;

	return trace_writer_new(path, true, &head, &err);
}

/* Everything but the address, which is a number now, and fine time. */
static bool same_event(const struct trace_event *a,
		       const struct trace_event *b)
{
	return a->kind == b->kind && a->size == b->size &&
	       a->stack == b->stack && a->thread == b->thread &&
	       a->align == b->align && a->gap == b->gap &&
	       a->rate == b->rate && a->tick >= b->tick &&
	       a->tick - b->tick < 256;
}

static void write_random(struct trace_writer *w, uint64_t seed)
{
	static const struct trace_thread threads[] = {
		{ 10, 0, { "main", 4 }, 0 }, { 11, 5, { "", 0 }, 7 },
		{ 12, 9, { "", 0 }, 0 },
	};
	static bool live[ADDRESSES];
	uint64_t tick = 1000;
	vaddr frames[4] = { 4, 3, 2, 1 };

	memset(live, 0, sizeof(live));
	for (size_t i = 1; i <= 4; i++)
		trace_writer_stack(w, frames + 4 - i, i);
	for (int i = 0; i < MANY; i++) {
		struct trace_event e = random_event(&seed, &tick, live);

		trace_writer_event(w, &e);
	}
	for (size_t i = 0; i < countof(threads); i++)
		trace_writer_thread(w, &threads[i]);
	trace_writer_meta(w, "program", "a\0b", 3);
}

TEST(packed_there_and_back)
{
	struct trace_writer *w = new_writer("packed.trace");
	static bool live[ADDRESSES];
	struct objects numbers;
	const struct trace_event *e;
	uint64_t seed = 5, tick = 1000, next = 1, wrong = 0, i = 0;
	struct err err;
	struct trace *t;
	size_t n;

	write_random(w, seed);
	if (!CHECK(trace_writer_close(w, &err)))
		return;
	t = trace_open("packed.trace", &err);
	if (!CHECK(t))
		return;
	objects_init(&numbers);
	memset(live, 0, sizeof(live));
	for (; (n = trace_read(t, &e)); i += n)
		for (size_t k = 0; k < n; k++) {
			struct trace_event want =
				random_event(&seed, &tick, live);
			uint64_t number = objects_find(&numbers, want.addr);

			if (trace_is_alloc(want.kind) &&
			    want.kind != TRACE_REALLOC_SAME)
				objects_put(&numbers, want.addr,
					    number = next++);
			want.tick -= want.tick % 256;
			wrong += !same_event(&e[k], &want) ||
				 e[k].addr != number;
		}
	CHECK_U64(i, MANY);
	CHECK_U64(wrong, 0);
	CHECK_STR(trace_damage(t)->first, "");
	CHECK_U64(trace_info(t)->n_stacks, 4);
	CHECK_U64(trace_info(t)->n_threads, 3);
	CHECK_STR(trace_info(t)->threads[0].name.text, "main");
	CHECK_U64(trace_info(t)->meta[0].value.len, 3);
	CHECK_U64(trace_stack(t, 4, &n)[0], 4);
	objects_fini(&numbers);
	trace_close(t);
}

TEST(a_file_that_is_no_trace_stays)
{
	struct trace_head head = { .pid = 1 };
	struct err err;
	FILE *f = fopen("precious", "w");

	fputs("do not touch this file", f);
	fclose(f);
	CHECK(!trace_writer_new("precious", false, &head, &err));
	CHECK(strstr(err.msg, "is not a trace"));
	CHECK(!trace_writer_new("no/such/folder", false, &head, &err));
}

/* Sealing: nothing is lost, nothing stays open, and twice is as good. */
TEST(sealed)
{
	struct trace_seal how = { .how = TRACE_END_EXIT, .value = 3 };
	struct image im;
	struct str s;
	struct err err;
	struct trace *t;
	uint64_t events;

	image_init(&im);
	for (uint32_t i = 0; i < 3; i++) {
		str_init(&s);
		for (uint32_t k = 0; k < 10 * (2 - i); k++)
			put_malloc(&s, 1, 1, 1, 0);
		while (s.len < 16384 - TRACE_CHUNK_SIZE)
			str_addc(&s, 0);
		add_chunk(&im, (struct chunk_spec){ TRACE_EVENTS, TRACE_OPEN,
			  i + 1, 16384, 0 }, &s);
	}
	FILE *f = fopen("open.trace", "w");

	fwrite(im.bytes.text, 1, im.bytes.len, f);
	fclose(f);
	for (int i = 0; i < 2; i++) {
		if (!CHECK(trace_seal("open.trace", &how, &err)))
			return;
		CHECK_U64(how.events, 30);
		t = trace_open("open.trace", &err);
		CHECK(trace_verify(t, &events));
		CHECK_U64(events, 30);
		CHECK_U64(trace_info(t)->n_open, 0);
		CHECK(trace_info(t)->flags & TRACE_FINISHED);
		CHECK_U64(trace_info(t)->ends.rows[0].value[0],
			  TRACE_END_EXIT);
		CHECK_U64(trace_info(t)->ends.rows[0].value[1], 3);
		CHECK(trace_info(t)->file_size < 18000);
		trace_close(t);
	}
	str_fini(&im.bytes);
}

TEST(objects_are_found)
{
	static uint64_t truth[5000];
	struct objects o;
	uint64_t seed = 1, wrong = 0, live = 0;

	objects_init(&o);
	for (uint64_t i = 1; i < 200000; i++) {
		uint32_t a = random_below(&seed, countof(truth));

		if (random_below(&seed, 2)) {
			objects_put(&o, a * 16, i);
			live += !truth[a];
			truth[a] = i;
		} else {
			wrong += objects_take(&o, a * 16) != truth[a];
			live -= truth[a] != 0;
			truth[a] = 0;
		}
	}
	for (uint32_t a = 0; a < countof(truth); a++)
		wrong += objects_find(&o, a * 16) != truth[a];
	CHECK_U64(wrong, 0);
	CHECK_U64(o.used, live);
	objects_fini(&o);
}

/* Change some bytes, mend the checksums of half of them, read. */
static void mutate(struct image *im, const struct str *from, uint64_t *seed)
{
	im->bytes.len = 0;
	str_add(&im->bytes, from->text, from->len);
	for (uint32_t i = random_below(seed, 4) + 1; i; i--) {
		uint32_t at = random_below(seed, (uint32_t)from->len);

		im->bytes.text[at] ^= (char)(1 << random_below(seed, 8));
		if (!random_below(seed, 4))
			im->bytes.text[at] = (char)0xff;
	}
	if (!random_below(seed, 8))
		im->bytes.len = random_below(seed, (uint32_t)from->len);
	for (size_t at = TRACE_HEADER_SIZE; random_below(seed, 50) &&
	     at + TRACE_CHUNK_SIZE <= im->bytes.len; at += 8) {
		struct trace_chunk c;

		memcpy(&c, im->bytes.text + at, sizeof(c));
		if (c.magic != TRACE_CHUNK_MAGIC)
			continue;
		if (c.stored <= im->bytes.len - at - sizeof(c))
			c.crc = trace_crc32c(im->bytes.text + at + sizeof(c),
					     c.stored);
		c.header_crc = trace_crc32c(&c, 44);
		memcpy(im->bytes.text + at, &c, sizeof(c));
	}
}

static void read_mutants(const struct str *from, uint64_t n, uint64_t seed)
{
	struct image im;

	memset(&im, 0, sizeof(im));
	str_init(&im.bytes);
	for (uint64_t i = 0; i < n; i++) {
		struct err err = { .msg = "" };
		struct trace *t;
		uint64_t events;

		mutate(&im, from, &seed);
		t = open_image(&im, &err);
		if (!t) {
			CHECK(err.msg[0]);
			continue;
		}
		trace_verify(t, &events);
		/* Nothing yields more events than it has bytes. */
		if (events > im.bytes.len * 200)
			CHECK(false);
		trace_close(t);
	}
	str_fini(&im.bytes);
}

static void read_file(const char *path, struct str *ret)
{
	char buffer[4096];
	FILE *f = fopen(path, "r");
	size_t n;

	while (f && (n = fread(buffer, 1, sizeof(buffer), f)))
		str_add(ret, buffer, n);
	if (f)
		fclose(f);
}

TEST(mutants)
{
	const char *text = getenv("MUTATIONS");
	uint64_t n = text ? strtoull(text, NULL, 10) : 2000;
	struct trace_writer *w = new_writer("small.trace");
	struct image im;
	struct err err;
	struct str s;
	size_t at[3];
	struct trace_event e = { .kind = TRACE_MALLOC, .addr = 16, .size = 9 };
	const struct trace_thread thread = { 1, 0, { "", 0 }, 0 };

	trace_writer_thread(w, &thread);
	trace_writer_meta(w, "program", "prog", 4);
	for (vaddr i = 1; i < 50; i++) {
		trace_writer_stack(w, &i, 1);
		e.addr = 16 * i;
		e.kind = i % 3 ? TRACE_MALLOC : TRACE_FREE;
		trace_writer_event(w, &e);
	}
	if (!CHECK(trace_writer_close(w, &err)))
		return;
	str_init(&s);
	read_file("small.trace", &s);
	read_mutants(&s, n / 2, 1);
	str_fini(&s);
	trace_close(three_chunks(&im, at));
	read_mutants(&im.bytes, n / 2, 2);
	str_fini(&im.bytes);
}

static const char heaptrack_raw[] =
	"v 10400 3\nx b /usr/bin/ls\nX /bin/ls\n- 5\n\nx /\nI 1000 5e2990\n"
	"m 1 -\n"
	"m 1 x 5000 0 36c0 4000 15759\nm 4 lib1 7000 0 1522\n"
	"t 5b9f 0\nt 7b03 1\n+ 1c00 1 65540\n+ 10 2 65560\nc a\n"
	"- 65540\nR 46f\n+ 0 1 65540\n- 99\nc 14\n";
static const char heaptrack_interpreted[] =
	"v 10400 3\nx 3 /ls\nI 1000 10\ns 4 main\ns 3 a.c\n"
	"i 5001 0 1 2 7\ni 6001 0\nt 1 0\nt 2 1\na 40 1\na 8 2\n"
	"+ 0\n+ 1\n+ 0\nc 5\n- 0\n- 1\n- 1\n";
static const char mtrace_text[] =
	"= Start\n@ ./p:(main+0x10)[0x401136] + 0x1000 0x10\n"
	"@ ./p:[0x401140] + 0x2000 0\n@ ./p:[0x401150] < 0x1000\n"
	"@ ./p:[0x401150] > 0x3000 0x40\n@ ./p:[0x401160] - 0x2000\n"
	"@ ./p:[0x401160] ! 0x2000 0x9999\n= End\n";
static const char csv_text[] =
	"op,address,size,thread,ns\nmalloc,0x10,5,1,100\nfree,16,,2,200\n"
	"realloc-to,32,7\nfree,32\n";

static bool import_text(const char *text, size_t n, struct trace_import *in,
			uint64_t *ret_events)
{
	int fd = memfd_create("text", MFD_CLOEXEC);
	struct err err = { .msg = "" };

	in->path = "text";
	*ret_events = 0;
	if (write(fd, text, n) != (ssize_t)n)
		abort();
	if (trace_import(fd, in, "import.trace", true, ret_events, &err))
		return true;
	CHECK(err.msg[0]);
	return false;
}

TEST(imports)
{
	struct trace_import in;
	const struct trace_event *e;
	struct err err;
	struct trace *t;
	uint64_t events;
	size_t n;

	CHECK(import_text(heaptrack_raw, strlen(heaptrack_raw), &in,
			  &events));
	CHECK_U64(events, 5);
	CHECK_U64(in.bad, 0);
	t = trace_open("import.trace", &err);
	CHECK_U64(trace_info(t)->n_modules, 2);
	CHECK_STR(trace_info(t)->modules[0].path.text, "/usr/bin/ls");
	CHECK_STR(trace_meta_value(t, "arguments"), "/bin/ls\n- 5\n\nx /");
	CHECK_U64(trace_read(t, &e), 5);
	CHECK_U64(trace_stack(t, e[1].stack, &n)[1], 0x5ba0);
	CHECK_U64(n, 2);
	CHECK(trace_ns(t, e[2].tick) >= 10000000);
	CHECK_U64(e[2].addr, e[0].addr);
	trace_close(t);

	CHECK(import_text(heaptrack_interpreted,
			  strlen(heaptrack_interpreted), &in, &events));
	CHECK_U64(events, 5);
	/* One free too many. */
	CHECK_U64(in.bad, 1);
	CHECK_U64(in.first_bad, 18);
	t = trace_open("import.trace", &err);
	CHECK_U64(trace_info(t)->n_names, 1);
	CHECK_STR(trace_info(t)->names[0].function.text, "main");
	CHECK_U64(trace_info(t)->names[0].line, 7);
	CHECK_U64(trace_read(t, &e), 5);
	CHECK_U64(e[0].size, 0x40);
	/* The one that came last goes first. */
	CHECK_U64(e[3].addr, e[2].addr);
	CHECK_U64(trace_stack(t, e[1].stack, &n)[1],
		  trace_info(t)->names[0].addr);
	trace_close(t);

	CHECK(import_text(mtrace_text, strlen(mtrace_text), &in, &events));
	CHECK_U64(events, 5);
	CHECK_U64(in.bad, 0);
	t = trace_open("import.trace", &err);
	CHECK_U64(trace_read(t, &e), 5);
	CHECK_U64(trace_stack(t, e[0].stack, &n)[0], 0x401136);
	trace_close(t);

	CHECK(import_text(csv_text, strlen(csv_text), &in, &events));
	CHECK_U64(events, 4);
	CHECK_U64(in.bad, 0);
	CHECK(!import_text("hello\n", 6, &in, &events));
}

TEST(imports_of_damaged_text)
{
	static const char *const texts[] = {
		heaptrack_raw, heaptrack_interpreted, mtrace_text, csv_text,
	};
	uint64_t seed = 3;

	for (int i = 0; i < 1200; i++) {
		char text[600];
		size_t n = strlen(texts[i % 4]);
		struct trace_import in;
		uint64_t events;

		memcpy(text, texts[i % 4], n);
		for (uint32_t k = random_below(&seed, 6) + 1; k; k--)
			text[3 + random_below(&seed, (uint32_t)n - 3)] =
				"0f7 \n-+ts,[]"[random_below(&seed, 13)];
		import_text(text, n, &in, &events);
		CHECK(events < 100);
	}
}

/* Of the file mapped into us, in KiB; UINT64_MAX: not known. */
static uint64_t file_pages(void)
{
	FILE *f = fopen("/proc/self/status", "re");
	unsigned long long kib;
	char line[200];

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "RssFile: %llu", &kib) == 1) {
			fclose(f);
			return kib;
		}
	if (f)
		fclose(f);
	return UINT64_MAX;
}

/*
 * Some 20 MB that do not compress, read from end to end: what was read does
 * not stay in memory, neither from opening nor from reading.
 */
TEST(memory_does_not_follow_the_file)
{
	struct trace_writer *w = new_writer("long.trace");
	struct trace_event e = { .kind = TRACE_MALLOC };
	const struct trace_event *got;
	uint64_t before = file_pages(), most = 0, events = 0;
	struct trace *t;
	struct rand r;
	struct err err;
	size_t n;

	if (!CHECK(w))
		return;
	rand_init(&r, 7, 7);
	for (uint64_t i = 0; i < 2000000; i++) {
		e.tick = i * 100;
		e.addr = 16 + i % 5000 * 16;
		e.kind = i / 5000 % 2 ? TRACE_FREE : TRACE_MALLOC;
		e.size = e.kind == TRACE_FREE ? 0 : rand_u64(&r) >> 16;
		trace_writer_event(w, &e);
	}
	if (!CHECK(trace_writer_close(w, &err)))
		return;
	t = trace_open("long.trace", &err);
	if (!CHECK(t))
		return;
	CHECK(trace_info(t)->file_size > 6 << 20);
	most = file_pages();
	for (uint64_t i = 0; (n = trace_read(t, &got)); i++) {
		events += n;
		if (i % 64 == 0)
			most = max_u64(most, file_pages());
	}
	CHECK_U64(events, 2000000);
	if (before != UINT64_MAX)
		CHECK(most < before + (2 << 10));
	trace_close(t);
	unlink("long.trace");
}
