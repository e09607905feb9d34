/* SPDX-License-Identifier: MIT */
/*
 * A *code* is a prefix of the bits that are next, a *symbol* what it stands
 * for.  Tables are looked up with FIRST bits of a code; where codes are longer
 * an entry leads to a table for the rest.  An entry, 32 bits:
 *
 *	bits 0-7	bits to take: of the code, and extra bits behind it
 *	bits 8-12	of these, extra bits; of LINK, bits of the next table
 *	bits 13-15	what it is
 *	bits 16-31	literal, base of a length or distance, or next table
 *
 * Limits on codes are those of zlib, which takes no set that is over-full, and
 * of those with gaps only one code of one bit.
 */
#include "corewalk/inflate.h"

#include <string.h>
#include <zlib.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define INLINE static inline __attribute__((always_inline))

enum {
	LENGTH = 0 << 13,	/* of a match; or a distance */
	LITERAL = 1 << 13,
	LINK = 2 << 13,
	END = 3 << 13,
	INVALID = 4 << 13,
	WHAT = 7 << 13,

	MAX_BITS = 15,
	N_LENGTHS = 19, N_LITERALS = 288, N_DISTANCES = 32,
	FIRST_LITERAL = 11, FIRST_DISTANCE = 8, FIRST_LENGTH = 7,
	/* The most that tables of these sizes need: zlib's enough.c. */
	LITERAL_ENTRIES = 2342, DISTANCE_ENTRIES = 402,
	LENGTH_ENTRIES = 1 << FIRST_LENGTH,
	MATCH_MAX = 258, WORD = 8,
	ADLER = 65521, VECTOR = 16, MANY_VECTORS = 1 << 12,
	ROOM = MATCH_MAX + 2 * WORD,	/* of one match, copied by words */
};

/* The bits that are next are the lowest ones. */
struct bits {
	uint64_t word;
	unsigned n;		/* of them in word; what is above is valid */
	const uint8_t *at, *end;
	unsigned past;		/* bytes of zeros read behind the end */
};

struct output {
	uint8_t *start, *at, *end;
};

/* How a block ended; scarce: not yet. */
enum ending { RIGHT, WRONG, SCARCE };

struct tables {
	uint32_t literals[LITERAL_ENTRIES];
	uint32_t distances[DISTANCE_ENTRIES];
};

/* At least 56 bits are there then; a word can be read. */
INLINE void refill_word(struct bits *b)
{
	b->word |= load_u64(b->at) << b->n;
	b->at += (63 - b->n) >> 3;
	b->n |= 56;
}

/* The same; zeros behind the end. */
INLINE void refill(struct bits *b)
{
	if (__builtin_expect(b->end - b->at >= WORD, 1)) {
		refill_word(b);
		return;
	}
	for (; b->n < 56; b->n += 8) {
		if (b->at < b->end)
			b->word |= (uint64_t)*b->at++ << b->n;
		else
			b->past++;
	}
}

INLINE void take(struct bits *b, unsigned n)
{
	b->word >>= n;
	b->n -= n;
}

INLINE unsigned get(struct bits *b, unsigned n)
{
	unsigned ret = (unsigned)(b->word & ((1u << n) - 1));

	take(b, n);
	return ret;
}

/* More bits were taken than there are. */
INLINE bool ran_out(const struct bits *b)
{
	return b->past * 8 > b->n;
}

/* ---- tables ---- */

static unsigned reversed(unsigned code, unsigned n)
{
	unsigned ret = 0;

	for (; n; n--, code >>= 1)
		ret = ret << 1 | (code & 1);
	return ret;
}

/* How many codes of each length there are; false: they do not fit. */
static bool count_lengths(const uint8_t *lengths, unsigned n, bool may_gap,
			  unsigned count[MAX_BITS + 1])
{
	unsigned used = 0;

	memset(count, 0, (MAX_BITS + 1) * sizeof(*count));
	for (unsigned i = 0; i < n; i++)
		count[lengths[i]]++;
	for (unsigned i = 1; i <= MAX_BITS; i++)
		used += count[i] << (MAX_BITS - i);
	if (used == 1 << MAX_BITS)
		return true;
	return may_gap && count[0] >= n - 1 && count[0] + count[1] == n;
}

/* Symbols in the order of their codes; those without one come first. */
static void sort_symbols(const uint8_t *lengths, unsigned n,
			 const unsigned count[MAX_BITS + 1],
			 uint16_t sorted[N_LITERALS])
{
	unsigned next[MAX_BITS + 1] = { 0 };

	for (unsigned i = 1; i <= MAX_BITS; i++)
		next[i] = next[i - 1] + count[i - 1];
	for (unsigned i = 0; i < n; i++)
		sorted[next[lengths[i]]++] = (uint16_t)i;
}

/* Bits of the next table: until all codes with this start are in it. */
static unsigned link_bits(const unsigned *left, unsigned len, unsigned first)
{
	unsigned bits = len - first, room = 1u << bits;

	while (bits + first < MAX_BITS && left[bits + first] < room) {
		room = (room - left[bits + first]) << 1;
		bits++;
	}
	return bits;
}

static void fill(uint32_t *table, unsigned bits, unsigned at, unsigned step,
		 uint32_t entry)
{
	for (; at < 1u << bits; at += 1u << step)
		table[at] = entry;
}

/* A table while it is made. */
struct build {
	uint32_t *table;
	unsigned first, used;	/* used: entries */
	unsigned left[MAX_BITS + 1];	/* codes of each length to come */
	unsigned start;		/* of the codes in the last link */
	uint32_t *next;		/* where it leads, */
	unsigned bits;		/* a table for so many bits */
};

/* bits are those of the code, the first one lowest. */
static void put(struct build *b, unsigned bits, unsigned len, uint32_t entry)
{
	unsigned start = bits & ((1u << b->first) - 1);

	if (len <= b->first) {
		fill(b->table, b->first, bits, len, entry + len);
		return;
	}
	if (start != b->start) {
		b->start = start;
		b->bits = link_bits(b->left, len, b->first);
		b->next = b->table + b->used;
		b->table[start] = b->used << 16 | LINK | b->bits << 8 |
				  b->first;
		b->used += 1u << b->bits;
	}
	fill(b->next, b->bits, bits >> b->first, len - b->first,
	     entry + len - b->first);
}

/*
 * entries has one for each symbol, without the bits of its code.  Codes of one
 * length follow each other in the order of symbols (RFC 1951, 3.2.2).
 */
static bool build(uint32_t *table, unsigned first, const uint8_t *lengths,
		  const uint32_t *entries, unsigned n, bool may_gap)
{
	struct build b = {
		.table = table, .first = first, .used = 1u << first,
		.start = UINT32_MAX,
	};
	uint16_t sorted[N_LITERALS];
	unsigned code = 0, len = 0;

	if (!count_lengths(lengths, n, may_gap, b.left))
		return false;
	sort_symbols(lengths, n, b.left, sorted);
	fill(table, first, 0, 0, INVALID);
	for (unsigned i = b.left[0]; i < n; i++, code++) {
		for (; len < lengths[sorted[i]]; len++)
			code <<= 1;
		put(&b, reversed(code, len), len, entries[sorted[i]]);
		b.left[len]--;
	}
	return true;
}

/* count symbols with the next bases; in groups of some with 1 bit more. */
static void set_bases(uint32_t *entries, unsigned count, unsigned group,
		      unsigned base)
{
	for (unsigned i = 0; i < count; i++) {
		unsigned extra = i < 2 * group ? 0 : i / group - 1;

		entries[i] = base << 16 | LENGTH | extra << 8 | extra;
		base += 1u << extra;
	}
}

/* What symbols stand for (RFC 1951, 3.2.5). */
static void set_entries(uint32_t literals[N_LITERALS],
			uint32_t distances[N_DISTANCES])
{
	for (unsigned i = 0; i < 256; i++)
		literals[i] = i << 16 | LITERAL;
	literals[256] = END;
	set_bases(literals + 257, 28, 4, 3);
	literals[285] = MATCH_MAX << 16 | LENGTH;
	literals[286] = literals[287] = INVALID;
	set_bases(distances, 30, 2, 1);
	distances[30] = distances[31] = INVALID;
}

struct state {
	struct bits bits;
	struct output out;
	struct tables tables;
	uint32_t literals[N_LITERALS], distances[N_DISTANCES];
};

static bool fixed_tables(struct state *s)
{
	uint8_t lengths[N_LITERALS], fives[N_DISTANCES];

	memset(lengths, 8, N_LITERALS);
	memset(lengths + 144, 9, 112);
	memset(lengths + 256, 7, 24);
	memset(fives, 5, N_DISTANCES);
	return build(s->tables.literals, FIRST_LITERAL, lengths, s->literals,
		     N_LITERALS, false) &&
	       build(s->tables.distances, FIRST_DISTANCE, fives,
		     s->distances, N_DISTANCES, false);
}

INLINE uint32_t look_up(const uint32_t *table, unsigned first,
			const struct bits *b)
{
	return table[b->word & ((1u << first) - 1)];
}

/* The bits that led to a link are taken. */
INLINE uint32_t follow(const uint32_t *table, uint32_t link, struct bits *b)
{
	take(b, link & 255);
	return table[(link >> 16) +
		     (b->word & ((1u << (link >> 8 & 31)) - 1))];
}

/* The lengths of the codes, which are coded themselves. */
static bool read_lengths(struct bits *b, const uint32_t *table,
			 uint8_t *lengths, unsigned n)
{
	for (unsigned i = 0; i < n;) {
		unsigned symbol, times, value = 0;
		uint32_t e;

		refill(b);
		e = look_up(table, FIRST_LENGTH, b);
		symbol = e >> 16;
		if ((e & WHAT) == INVALID || ran_out(b))
			return false;
		take(b, e & 255);
		if (symbol < 16) {
			lengths[i++] = (uint8_t)symbol;
			continue;
		}
		if (symbol == 16 && !i)
			return false;
		value = symbol == 16 ? lengths[i - 1] : 0;
		times = symbol == 16 ? 3 + get(b, 2) :
			symbol == 17 ? 3 + get(b, 3) : 11 + get(b, 7);
		if (times > n - i)
			return false;
		memset(lengths + i, (int)value, times);
		i += times;
	}
	return true;
}

static bool dynamic_tables(struct state *s)
{
	static const uint8_t order[N_LENGTHS] = {
		16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1,
		15,
	};
	uint8_t own[N_LENGTHS] = { 0 }, lengths[N_LITERALS + N_DISTANCES];
	uint32_t table[LENGTH_ENTRIES], entries[N_LENGTHS];
	struct bits *b = &s->bits;
	unsigned n_literals, n_distances, n;

	refill(b);
	n_literals = 257 + get(b, 5);
	n_distances = 1 + get(b, 5);
	n = 4 + get(b, 4);
	if (n_literals > 286 || n_distances > 30)
		return false;
	for (unsigned i = 0; i < n; i++) {
		refill(b);
		own[order[i]] = (uint8_t)get(b, 3);
	}
	for (unsigned i = 0; i < N_LENGTHS; i++)
		entries[i] = i << 16 | LITERAL;
	return build(table, FIRST_LENGTH, own, entries, N_LENGTHS, false) &&
	       read_lengths(b, table, lengths, n_literals + n_distances) &&
	       lengths[256] &&
	       build(s->tables.literals, FIRST_LITERAL, lengths, s->literals,
		     n_literals, true) &&
	       build(s->tables.distances, FIRST_DISTANCE,
		     lengths + n_literals, s->distances, n_distances, true);
}

/* ---- blocks ---- */

/* Bytes up to a whole one are left out; those in the word are given back. */
static bool copy_stored(struct bits *b, struct output *out)
{
	unsigned ahead, n;

	refill(b);
	ahead = b->n / 8;
	if (b->past > ahead)
		return false;
	b->at -= ahead - b->past;
	b->word = b->n = b->past = 0;
	if (b->end - b->at < 4)
		return false;
	n = b->at[0] | b->at[1] << 8;
	if ((n ^ 0xffff) != (unsigned)(b->at[2] | b->at[3] << 8))
		return false;
	b->at += 4;
	if (n > b->end - b->at || n > out->end - out->at)
		return false;
	memcpy(out->at, b->at, n);
	b->at += n;
	out->at += n;
	return true;
}

/* The base of an entry, and what its extra bits add; these are taken. */
INLINE unsigned value_of(struct bits *b, uint32_t entry)
{
	unsigned extra = entry >> 8 & 31, all = entry & 255;
	uint64_t low = b->word & ((UINT64_C(1) << all) - 1);

	take(b, all);
	return (entry >> 16) + (unsigned)(low >> (all - extra));
}

/*
 * A copy may overlap what it makes: then it repeats.  With room behind it,
 * whole words are copied.
 */
INLINE void copy(uint8_t *to, const uint8_t *end, size_t distance, bool room)
{
	const uint8_t *from = to - distance;

	if (!room || distance < WORD) {
		while (to < end)
			*to++ = *from++;
		return;
	}
	do {
		memcpy(to, from, WORD);
		to += WORD;
		from += WORD;
	} while (to < end);
}

INLINE bool is_literal(uint32_t entry)
{
	return (entry & WHAT) == LITERAL;
}

INLINE void put_literal(uint8_t **at, struct bits *b, uint32_t entry)
{
	*(*at)++ = (uint8_t)(entry >> 16);
	take(b, entry & 255);
}

/*
 * Literals and matches, as long as there is plenty of both buffers, or to the
 * end: nothing is looked at that is not there, but what is next is looked up
 * before it is known if it is to be.
 */
INLINE enum ending decode(const struct tables *t, struct bits *bits,
			  struct output *out, bool plenty)
{
	struct bits b = *bits;		/* in registers */
	uint8_t *at = out->at;
	enum ending ret = WRONG;
	uint32_t e;

	for (;;) {
		size_t length, distance;
		uint8_t *to = at;

		if (plenty && (b.end - b.at < 3 * WORD ||
			       out->end - at < ROOM)) {
			ret = SCARCE;
			break;
		}
		plenty ? refill_word(&b) : refill(&b);
		if (!plenty && b.past && ran_out(&b))
			break;
		e = look_up(t->literals, FIRST_LITERAL, &b);
		if (plenty && is_literal(e)) {
			put_literal(&at, &b, e);
			e = look_up(t->literals, FIRST_LITERAL, &b);
			if (is_literal(e)) {
				put_literal(&at, &b, e);
				e = look_up(t->literals, FIRST_LITERAL, &b);
			}
		}
		if (__builtin_expect((e & WHAT) == LINK, 0))
			e = follow(t->literals, e, &b);
		if (is_literal(e)) {
			if (at == out->end)
				break;
			put_literal(&at, &b, e);
			continue;
		}
		if ((e & WHAT) != LENGTH) {
			take(&b, e & 255);
			ret = (e & WHAT) == END && !ran_out(&b) ? RIGHT : WRONG;
			break;
		}
		length = value_of(&b, e);
		plenty ? refill_word(&b) : refill(&b);
		e = look_up(t->distances, FIRST_DISTANCE, &b);
		if (__builtin_expect((e & WHAT) == LINK, 0))
			e = follow(t->distances, e, &b);
		distance = value_of(&b, e);
		to = at;
		if ((e & WHAT) != LENGTH ||
		    distance > (size_t)(to - out->start) ||
		    length > (size_t)(out->end - to))
			break;
		at += length;
		copy(to, at, distance, plenty);
	}
	*bits = b;
	out->at = at;
	return ret;
}

static bool decode_block(const struct tables *t, struct bits *b,
			 struct output *out)
{
	enum ending e = decode(t, b, out, true);

	return (e == SCARCE ? decode(t, b, out, false) : e) == RIGHT;
}

static bool read_block(struct state *s, unsigned type)
{
	if (type == 0)
		return copy_stored(&s->bits, &s->out);
	return (type == 1 ? fixed_tables(s) :
		type == 2 && dynamic_tables(s)) &&
	       decode_block(&s->tables, &s->bits, &s->out);
}

#ifdef __SSE2__
static uint64_t add_lanes(__m128i v)
{
	uint32_t lane[4];

	memcpy(lane, &v, sizeof(lane));
	return (uint64_t)lane[0] + lane[1] + lane[2] + lane[3];
}

/*
 * Adler-32 of whole vectors: a, the sum of bytes, and b, that of all sums on
 * the way, to which each of 16 bytes adds as often as bytes follow it.  So few
 * bytes that no lane overflows.
 */
static void add_vectors(const uint8_t *p, size_t n, uint64_t *a, uint64_t *b)
{
	const __m128i first = _mm_set_epi16(9, 10, 11, 12, 13, 14, 15, 16);
	const __m128i second = _mm_set_epi16(1, 2, 3, 4, 5, 6, 7, 8);
	const __m128i zero = _mm_setzero_si128();
	__m128i bytes = zero, before = zero, inside = zero;

	for (size_t i = 0; i < n; i += VECTOR) {
		__m128i v = _mm_loadu_si128((const __m128i *)(p + i));

		before = _mm_add_epi32(before, bytes);
		bytes = _mm_add_epi32(bytes, _mm_sad_epu8(v, zero));
		inside = _mm_add_epi32(inside, _mm_add_epi32(
			_mm_madd_epi16(_mm_unpacklo_epi8(v, zero), first),
			_mm_madd_epi16(_mm_unpackhi_epi8(v, zero), second)));
	}
	*b += *a * n + VECTOR * add_lanes(before) + add_lanes(inside);
	*a += add_lanes(bytes);
}

/* adler32_z() takes 2 ms for what is unpacked in 10. */
static uint32_t checksum(const uint8_t *p, size_t n)
{
	uint64_t a = 1, b = 0;

	while (n >= VECTOR) {
		size_t some = min_u64(n, MANY_VECTORS) / VECTOR * VECTOR;

		add_vectors(p, some, &a, &b);
		a %= ADLER;
		b %= ADLER;
		p += some;
		n -= some;
	}
	return (uint32_t)adler32_z((uLong)(b << 16 | a), p, n);
}
#else
static uint32_t checksum(const uint8_t *p, size_t n)
{
	return (uint32_t)adler32_z(1, p, n);
}
#endif

/* Adler-32, behind the last bits. */
static bool right_sum(struct bits *b, const uint8_t *out, size_t size)
{
	uint32_t is = checksum(out, size), said = 0;

	take(b, b->n & 7);
	for (unsigned i = 0; i < 4; i++) {
		refill(b);
		said = said << 8 | get(b, 8);
	}
	return !ran_out(b) && said == is;
}

bool inflate_whole(const uint8_t *in, size_t in_size, uint8_t *out,
		   size_t out_size)
{
	struct state s = {
		.bits = { .at = in, .end = in + in_size },
		.out = { out, out, out + out_size },
	};
	unsigned last;

	/* Deflate, a window that there is, no dictionary. */
	if (in_size < 2 || (in[0] & 15) != 8 || in[0] >> 4 > 7 ||
	    (in[0] << 8 | in[1]) % 31 || in[1] & 32)
		return false;
	s.bits.at += 2;
	set_entries(s.literals, s.distances);
	do {
		refill(&s.bits);
		last = get(&s.bits, 1);
		if (!read_block(&s, get(&s.bits, 2)))
			return false;
	} while (!last);
	return s.out.at == s.out.end && right_sum(&s.bits, out, out_size);
}
