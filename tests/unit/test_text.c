/* SPDX-License-Identifier: MIT */
#include "analysis/text.h"
#include "unit/check.h"

static uint8_t block[256];

/* What a block of n usable bytes with these first bytes holds. */
static struct text find(const char *bytes, size_t size, uint64_t n)
{
	struct text t;

	memset(block, 0, sizeof(block));
	memcpy(block, bytes, size);
	text_find(block, n, n, &t);
	return t;
}

#define FIND(literal, n) find(literal, sizeof(literal) - 1, n)

TEST(a_string_that_is_what_the_block_is_for)
{
	struct text t = FIND("hello, world", 24);

	CHECK_U64(t.kind, TEXT_PLAIN);
	CHECK_U64(t.len, 12);
	CHECK(t.ended);
	CHECK_U64(FIND("hello, world", 40).kind, TEXT_PLAIN);
	CHECK_U64(FIND("hello, world", 200).kind, TEXT_NONE);
	CHECK_U64(FIND("abc", 8).kind, TEXT_NONE);
	CHECK_U64(FIND("abcd\1", 24).kind, TEXT_NONE);
}

TEST(a_text_that_fills_its_block)
{
	struct text t = FIND("abcdefgh", 8);

	CHECK_U64(t.kind, TEXT_PLAIN);
	CHECK_U64(t.len, 8);
	CHECK(!t.ended);
}

TEST(well_formed_utf_8_is_text)
{
	CHECK_U64(FIND("gr\xc3\xbc\xc3\x9f" "e \xe2\x82\xac "
		       "\xf0\x9f\x98\x80", 24).len, 16);
	/* Overlong, a surrogate, cut off, control, above Unicode. */
	CHECK_U64(FIND("abcdef\xc0\xaf", 24).kind, TEXT_NONE);
	CHECK_U64(FIND("abcdef\xe0\x80\xaf", 24).kind, TEXT_NONE);
	CHECK_U64(FIND("abcdef\xed\xa0\x80", 24).kind, TEXT_NONE);
	CHECK_U64(FIND("abcdef\xe2\x82", 24).kind, TEXT_NONE);
	CHECK_U64(FIND("abcdef\xc2\x80", 24).kind, TEXT_NONE);
	CHECK_U64(FIND("abcdef\xf4\x90\x80\x80", 24).kind, TEXT_NONE);
}

TEST(utf_16_is_text)
{
	struct text t = FIND("h\0e\0l\0l\0o\0", 24);

	CHECK_U64(t.kind, TEXT_UTF16);
	CHECK_U64(t.len, 10);
}

TEST(a_header_with_the_length)
{
	/* sds of redis: length, capacity, form. */
	struct text t = FIND("\x0b\x0b\x01hello there", 24);

	CHECK_U64(t.kind, TEXT_COUNTED);
	CHECK_U64(t.off, 3);
	CHECK_U64(t.len, 11);
	t = FIND("\x2c\x01\x2c\x01\x02hello", 24);
	CHECK_U64(t.kind, TEXT_NONE);
	t = FIND("\x01\0\0\0\0\0\0\0\x0b\0\0\0\0\0\0\0hello there", 40);
	CHECK_U64(t.off, 16);
	CHECK_U64(t.kind, TEXT_COUNTED);
	CHECK_U64(FIND("\x01\x02\x03hello there", 24).kind, TEXT_NONE);
}

/* Byte by byte, what text_run() does eight at a time. */
TEST(runs_are_what_single_bytes_say)
{
	uint32_t seed = 1, wrong = 0;

	for (int round = 0; round < 20000; round++) {
		uint8_t bytes[40];
		uint64_t want = 0;

		for (size_t i = 0; i < sizeof(bytes); i++) {
			seed = seed * 1103515245 + 12345;
			bytes[i] = (uint8_t)(seed >> 16 & 127);
			if (bytes[i] < 0x20 && seed >> 24 & 15)
				bytes[i] += 0x20;
		}
		while (want < sizeof(bytes) &&
		       ((bytes[want] >= 0x20 && bytes[want] < 0x7f) ||
			(bytes[want] && strchr("\t\n\r", bytes[want]))))
			want++;
		wrong += text_run(bytes, sizeof(bytes)) != want;
	}
	CHECK_U64(wrong, 0);
}
