/* SPDX-License-Identifier: MIT */
/*
 * zlib says what a stream holds and whether it is one; all buffers are exactly
 * as large as said, so that a sanitizer sees what goes beyond.
 */
#include "corewalk/inflate.h"

#include <zlib.h>

#include "base/rand.h"
#include "check.h"

enum { MAX_DATA = 200000 };

static uint64_t number(struct rand *r, uint64_t below)
{
	return rand_u64(r) % below;
}

/* Bytes of some alphabet, with copies of what was before: short and long. */
static uint8_t *make_data(struct rand *r, size_t n)
{
	uint8_t *ret = malloc(n ? n : 1);
	uint64_t alphabet = UINT64_C(1) << number(r, 9);
	uint64_t copies = number(r, 100);

	for (size_t at = 0; at < n;) {
		size_t len, back;

		if (!at || number(r, 100) >= copies) {
			ret[at++] = (uint8_t)number(r, alphabet);
			continue;
		}
		len = number(r, 600) % (n - at) + 1;
		back = number(r, number(r, 2) ? at : 9) % at + 1;
		for (; len--; at++)
			ret[at] = ret[at - back];
	}
	return ret;
}

static uint8_t *pack(struct rand *r, const uint8_t *data, size_t n,
		     size_t *ret_n)
{
	z_stream z = { .next_in = (uint8_t *)data, .avail_in = (uInt)n };
	uint8_t *ret;

	deflateInit2(&z, (int)number(r, 10), Z_DEFLATED, 15,
		     (int)number(r, 9) + 1, (int)number(r, 5));
	*ret_n = deflateBound(&z, n);
	ret = malloc(*ret_n);
	z.next_out = ret;
	z.avail_out = (uInt)*ret_n;
	deflate(&z, Z_FINISH);
	*ret_n = z.total_out;
	deflateEnd(&z);
	return realloc(ret, *ret_n);
}

/* Both read it, or both do not; returns whether they do. */
static bool compare(const uint8_t *packed, size_t n, size_t size)
{
	uint8_t *want = calloc(1, size + 1), *is = malloc(size);
	uLongf got = size;
	bool good = uncompress(size ? want : NULL, &got, packed, n) == Z_OK &&
		    got == size;

	/* It takes no room for no bytes. */
	if (!size)
		good = uncompress(want, &(uLongf){ 1 }, packed, n) == Z_OK;
	if (CHECK(inflate_whole(packed, n, is, size) == good) && good)
		CHECK_MEM(is, want, size);
	free(want);
	free(is);
	return good;
}

/* A bit, some bytes, or the end. */
static void damage(struct rand *r, uint8_t *packed, size_t *n)
{
	switch (number(r, 4)) {
	case 0:
		*n = number(r, *n);
		break;
	case 1:
		for (unsigned i = 0; i < 4; i++)
			packed[number(r, *n)] = (uint8_t)number(r, 256);
		break;
	case 2:
		/* Where tables are. */
		packed[number(r, *n < 64 ? *n : 64)] ^=
			(uint8_t)(1 << number(r, 8));
		break;
	default:
		packed[number(r, *n)] ^= (uint8_t)(1 << number(r, 8));
	}
}

TEST(what_zlib_packs)
{
	struct rand r;

	rand_init(&r, 1, 0);
	for (unsigned i = 0; i < 300; i++) {
		size_t size = number(&r, i % 8 ? 3000 : MAX_DATA), n;
		uint8_t *data = make_data(&r, i < 40 ? i : size);
		uint8_t *packed = pack(&r, data, i < 40 ? i : size, &n);

		CHECK(compare(packed, n, i < 40 ? i : size));
		free(data);
		free(packed);
	}
}

/* Not one byte more or less than is said. */
TEST(another_size)
{
	struct rand r;
	size_t n;
	uint8_t *data, *packed, *out = malloc(1100);

	rand_init(&r, 2, 0);
	data = make_data(&r, 1000);
	packed = pack(&r, data, 1000, &n);
	for (size_t size = 0; size < 1100; size++)
		CHECK(inflate_whole(packed, n, out, size) == (size == 1000));
	free(data);
	free(packed);
	free(out);
}

/*
 * If zlib can follow it to an end, the checksum is made right, else nobody
 * would see what became of it.
 */
static size_t mend(uint8_t *packed, size_t n)
{
	enum { MAX = 1 << 18 };
	uint8_t *out = malloc(MAX);
	z_stream z = { .next_in = packed + 2, .avail_in = (uInt)n - 2,
		       .next_out = out, .avail_out = MAX };
	uint32_t sum;

	inflateInit2(&z, -15);
	if (inflate(&z, Z_FINISH) == Z_STREAM_END && z.avail_in >= 4) {
		sum = (uint32_t)adler32_z(1, out, z.total_out);
		for (unsigned i = 0; i < 4; i++)
			packed[2 + z.total_in + i] =
				(uint8_t)(sum >> (24 - 8 * i));
	}
	inflateEnd(&z);
	free(out);
	return z.total_out;
}

TEST(mutants)
{
	const char *more = getenv("MUTATIONS");
	unsigned long n_mutants = more ? strtoul(more, NULL, 10) : 10000;
	unsigned long good = 0;
	struct rand r;

	rand_init(&r, 3, 0);
	for (unsigned long i = 0; i < n_mutants;) {
		size_t size = number(&r, 2000), n;
		uint8_t *data = make_data(&r, size);
		uint8_t *packed = pack(&r, data, size, &n);

		for (unsigned k = 0; k < 50; k++, i++) {
			size_t m = n;
			uint8_t *copy = malloc(n);

			memcpy(copy, packed, n);
			damage(&r, copy, &m);
			copy = realloc(copy, m ? m : 1);
			good += compare(copy, m, m > 6 ? mend(copy, m) : size);
			free(copy);
		}
		free(data);
		free(packed);
	}
	/* Enough of both, or this shows nothing. */
	CHECK(good > n_mutants / 10 && good < n_mutants * 9 / 10);
}

/* Bits of a stream, of which a code's first one is its highest. */
static void put_code(uint8_t *to, unsigned *at, unsigned code, unsigned n)
{
	while (n--) {
		to[*at / 8] |= (uint8_t)((code >> n & 1) << *at % 8);
		++*at;
	}
}

/* A match that begins before the output, where the right bytes are. */
TEST(too_far_back)
{
	uint8_t in[16] = { 0x78, 1 }, out[8] = "...b";
	uint32_t sum = (uint32_t)adler32_z(1, (const uint8_t *)"abab", 4);
	unsigned at = 16;

	put_code(in, &at, 1, 1);		/* the last block, */
	put_code(in, &at, 2, 2);		/* with fixed codes */
	put_code(in, &at, 0x30 + 'a', 8);
	put_code(in, &at, 1, 7);		/* 3 bytes, */
	put_code(in, &at, 1, 5);		/* from 2 before */
	put_code(in, &at, 0, 7);		/* the end */
	at = (at + 7) / 8;
	for (unsigned i = 4; i-- > 0; at++)
		in[at] = (uint8_t)(sum >> 8 * i);
	CHECK(!inflate_whole(in, at, out + 4, 4));
	CHECK_U64(out[4], 'a');
}
