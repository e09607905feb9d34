/* SPDX-License-Identifier: MIT */
/*
 * Files of OCaml's memtrace, written here as memtrace.tsdl has them, and what
 * the import makes of them.
 */
#include "check.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/rand.h"
#include "base/str.h"
#include "replay/trace_import.h"
#include "replay/trace_read.h"

static const uint64_t start_us = UINT64_C(1700000000000000);

static void put(struct str *s, uint64_t value, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		str_addc(s, (char)(value >> 8 * i));
}

static void put_text(struct str *s, const char *text)
{
	str_add(s, text, strlen(text) + 1);
}

/* An event's head: us since the start, and its kind. */
static void put_head(struct str *s, uint64_t us, unsigned kind)
{
	put(s, ((start_us + us) & 0x1ffffff) | (uint64_t)kind << 25, 4);
}

static void add_packet(struct str *file, struct str *events, unsigned version,
		       uint64_t first, uint64_t begin_us)
{
	struct str s;

	str_init(&s);
	put(&s, start_us + begin_us, 8);
	put(&s, start_us + begin_us + 100, 8);
	put(&s, 0, 4);
	put(&s, version, 2);
	put(&s, 42, 8);
	put(&s, 0, version >= 3 ? 2 : 0);
	put(&s, 0xffff, 2);
	put(&s, 0, 2);
	put(&s, 0, 8);
	put(&s, first, 8);
	put(&s, first, 8);
	put(file, 0xc1fc1fc1, 4);
	put(file, (8 + s.len + events->len) * 8, 4);
	str_add(file, s.text, s.len);
	str_add(file, events->text, events->len);
	str_fini(&s);
	str_clear(events);
}

static void put_location(struct str *s, uint64_t code, unsigned line,
			 unsigned file, unsigned function)
{
	put_head(s, 0, 1);
	put(s, code, 8);
	put(s, 1, 1);
	put(s, line | (uint64_t)file << 38 | (uint64_t)function << 43, 6);
}

static void put_slot(struct str *s, unsigned slot, unsigned how)
{
	put(s, slot << 2 | how, 2);
}

/*
 * main calls f and g; allocations of 2 words by f, of 300 by g, of 2 by f;
 * the second is collected.
 */
static void make_file(struct str *file, unsigned version)
{
	double rate = 1e-4;
	uint64_t bits;
	struct str s;

	memcpy(&bits, &rate, sizeof(bits));
	str_init(&s);
	put_head(&s, 0, 0);
	put(&s, bits, 8);
	put(&s, 64, 1);
	for (int i = 0; i < 3; i++)
		put_text(&s, i ? "" : "prog.exe");
	put(&s, 42, 8);
	put_text(&s, "");
	add_packet(file, &s, version, 0, 0);

	put_location(&s, 0x100, 7, 31, 31);
	put_text(&s, "a.ml");
	put_text(&s, "main");
	put_location(&s, 0x200, 8, 0, 31);
	put_text(&s, "f");
	put_location(&s, 0x300, 9, 0, 31);
	put_text(&s, "g");
	put_head(&s, 10, 102);
	put(&s, 0, 1);
	put(&s, 2, 1);
	put_slot(&s, 5, 3);
	put(&s, 0x100, 8);
	put_slot(&s, 6, 3);
	put(&s, 0x200, 8);
	put_head(&s, 20, 2);
	put(&s, 253, 1);
	put(&s, 300, 2);
	put(&s, 1, 1);
	put(&s, 1, 1);
	put(&s, 1, 1);
	put(&s, 1, 2);
	put_slot(&s, 7, 3);
	put(&s, 0x300, 8);
	add_packet(file, &s, version, 0, 0);

	/* main, and what followed it when it was coded the last time: f. */
	put_head(&s, 36000000, 102);
	put(&s, 0, 1);
	put(&s, 1, 1);
	put_slot(&s, 5, 1);
	put_head(&s, 36000001, 3);
	put(&s, 0, 1);
	put_head(&s, 36000002, 4);
	put(&s, 1, 1);
	add_packet(file, &s, version, 2, 35999999);
	str_fini(&s);
}

static struct trace *import(const struct str *file, struct trace_import *in,
			    struct err *err)
{
	const char *path = "memtrace.trace";
	int fd = memfd_create("ctf", MFD_CLOEXEC);
	uint64_t events;

	if (write(fd, file->text, file->len) != (ssize_t)file->len ||
	    !trace_import(fd, in, path, true, &events, err))
		return NULL;
	return trace_open(path, err);
}

static void check_event(const struct trace_event *e, unsigned kind,
			uint64_t size, uint64_t stack)
{
	CHECK_U64(e->kind, kind);
	CHECK_U64(e->size, size);
	CHECK_U64(e->stack, stack);
	CHECK_U64(e->rate, kind == TRACE_SAMPLE ? 80000 : 0);
}

static void check_file(unsigned version)
{
	struct trace_import in = { .path = "ctf" };
	struct err err = { .msg = "" };
	const struct trace_event *e;
	const vaddr *frames;
	struct str file;
	struct trace *t;
	size_t n;

	str_init(&file);
	make_file(&file, version);
	t = import(&file, &in, &err);
	CHECK(t);
	str_fini(&file);
	CHECK_U64(in.bad, 0);
	CHECK_STR(in.format, "memtrace");
	CHECK(trace_info(t)->flags & TRACE_SAMPLED);
	CHECK_U64(trace_info(t)->n_names, 3);
	CHECK_STR(trace_info(t)->names[2].function.text, "g");
	CHECK_STR(trace_info(t)->names[2].file.text, "a.ml");
	CHECK_U64(trace_info(t)->names[2].line, 9);
	CHECK_U64(trace_read(t, &e), 4);
	check_event(&e[0], TRACE_SAMPLE, 23, 1);
	check_event(&e[1], TRACE_SAMPLE, 2407, 2);
	check_event(&e[2], TRACE_SAMPLE, 23, 1);
	check_event(&e[3], TRACE_FREE, 0, 0);
	CHECK_U64(e[3].addr, e[1].addr);
	/* 25 bits of us have wrapped in between; each event takes 1 ns. */
	CHECK_NEAR((double)(trace_ns(t, e[2].tick) - trace_ns(t, e[0].tick)),
		   35999990e3, 300);
	frames = trace_stack(t, 2, &n);
	CHECK_U64(n, 2);
	CHECK_U64(frames[0], 0x300);
	CHECK_U64(frames[1], 0x100);
	trace_close(t);
}

TEST(version_2)
{
	check_file(2);
}

TEST(version_3)
{
	check_file(3);
}

TEST(damaged)
{
	struct rand r;
	struct str file;

	str_init(&file);
	make_file(&file, 2);
	rand_init(&r, 1, 0);
	for (int i = 0; i < 2000; i++) {
		struct trace_import in = { .path = "ctf" };
		struct err err = { .msg = "" };
		struct trace *t;
		struct str bad;

		str_init(&bad);
		str_add(&bad, file.text, i & 1 ? file.len :
			4 + rand_u64(&r) % (file.len - 4));
		for (uint64_t k = rand_u64(&r) % 4; k--; )
				if (bad.len > 4)
				bad.text[4 + rand_u64(&r) % (bad.len - 4)] ^=
					(char)(1u << rand_u64(&r) % 8);
		t = import(&bad, &in, &err);
		CHECK(t);
		if (t)
			trace_close(t);
		str_fini(&bad);
	}
	str_fini(&file);
}
