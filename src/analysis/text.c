/* SPDX-License-Identifier: MIT */
#include "analysis/text.h"

#include <string.h>

enum {
	HEADER_MAX = 24,
	SMALL = 40,	/* malloc's smallest blocks leave much unused */
};

static const uint8_t printable[256] = {
	['\t'] = 1, ['\n'] = 1, ['\r'] = 1, [' ' ... '~'] = 1,
};

/* Are these eight bytes all from blank to tilde? */
static bool eight_printable(const uint8_t *p)
{
	const uint64_t ones = UINT64_C(0x0101010101010101);
	uint64_t v = load_u64(p);

	/* Bit 7 of a byte: above 0x7e, below 0x20, or not ASCII. */
	return !((v | (v + ones) | (v - ones * 0x20)) & ones << 7);
}

/* Bytes of the UTF-8 character at p, 0 if there is none. */
static unsigned utf8_char(const uint8_t *p, uint64_t n)
{
	static const uint32_t least[5] = { 0, 0, 0xa0, 0x800, 0x10000 };
	unsigned len = *p >= 0xf0 ? 4 : *p >= 0xe0 ? 3 : 2;
	uint32_t c = *p & (0x7fu >> len);

	if (*p < 0xc2 || *p > 0xf4 || len > n)
		return 0;
	for (unsigned i = 1; i < len; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (p[i] & 0x3f);
	}
	if (c < least[len] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
		return 0;
	return len;
}

uint64_t text_run(const uint8_t *bytes, uint64_t n)
{
	uint64_t i = 0;

	for (;;) {
		while (n - i >= 8 && eight_printable(bytes + i))
			i += 8;
		while (i < n && printable[bytes[i]])
			i++;
		if (i >= n || bytes[i] < 0x80)
			return i;
		unsigned len = utf8_char(bytes + i, n - i);

		if (!len)
			return i;
		i += len;
	}
}

/* The same as text_run() of UTF-16 in bytes, an even number. */
static uint64_t text_run_utf16(const uint8_t *bytes, uint64_t n)
{
	uint64_t i = 0;

	while (i + 2 <= n && printable[bytes[i]] && !bytes[i + 1])
		i += 2;
	return i;
}

static uint64_t field(const uint8_t *end, unsigned size)
{
	uint64_t v = 0;

	memcpy(&v, end - size, size);
	return v;
}

/* Does a header that ends at text say how long the text is? */
static bool header_has(const uint8_t *text, uint64_t off, uint64_t len)
{
	for (unsigned size = 1; size <= 8 && size <= off; size *= 2) {
		uint64_t v = field(text, size);

		if (v == len || v == len + 1)
			return true;
		/* Length, capacity, and a byte of flags: the form's number. */
		if (2 * size + 1 <= off && (text[-1] & 7) ==
		    (unsigned)__builtin_ctz(size) + 1 &&
		    field(text - 1 - size, size) == len)
			return true;
	}
	/* Text, and a length before the last word. */
	return off >= 16 && field(text - 8, 8) == len;
}

static bool long_enough(uint64_t bytes, uint64_t n)
{
	return n <= SMALL ? bytes * 4 >= n : bytes * 2 >= n;
}

/* Where in the first bytes does text begin that a header speaks of? */
static bool find_counted(const uint8_t *bytes, uint64_t n, uint64_t n_there,
			 struct text *ret)
{
	for (uint64_t off = 1; off <= HEADER_MAX && off + TEXT_MIN <= n_there;
	     off++) {
		uint64_t len;

		if (!printable[bytes[off]] || printable[bytes[off - 1]])
			continue;
		len = text_run(bytes + off, n_there - off);
		if (len < TEXT_MIN || off + len >= n_there ||
		    bytes[off + len] || !long_enough(off + len + 1, n))
			continue;
		if (!header_has(bytes + off, off, len))
			continue;
		*ret = (struct text){ TEXT_COUNTED, off, len, true };
		return true;
	}
	return false;
}

bool text_find(const uint8_t *bytes, uint64_t n, uint64_t n_there,
	       struct text *ret)
{
	uint64_t len;

	*ret = (struct text){ TEXT_NONE, 0, 0, false };
	if (n_there < TEXT_MIN)
		return false;
	len = text_run(bytes, n_there);
	if (len >= TEXT_MIN && (len == n_there || !bytes[len]) &&
	    long_enough(len + 1, n)) {
		*ret = (struct text){ TEXT_PLAIN, 0, len, len < n_there };
		return true;
	}
	if (!bytes[1] && !bytes[3]) {
		len = text_run_utf16(bytes, n_there);
		if (len >= 2 * TEXT_MIN && len + 2 <= n_there &&
		    !bytes[len] && !bytes[len + 1] &&
		    long_enough(len + 2, n)) {
			*ret = (struct text){ TEXT_UTF16, 0, len, true };
			return true;
		}
	}
	return find_counted(bytes, n, n_there, ret);
}
