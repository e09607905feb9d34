/* SPDX-License-Identifier: MIT */
/*
 * Words that every module uses.
 */
#ifndef BASE_TYPES_H
#define BASE_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/*
 * An address in the target.  It is never cast to a pointer, and a pointer of
 * ours never becomes one.
 */
typedef uint64_t vaddr;

#define MUST_CHECK __attribute__((warn_unused_result))
#define PRINTF_LIKE(fmt, args) __attribute__((format(printf, fmt, args)))
#define countof(array) (sizeof(array) / sizeof((array)[0]))

#define KIB (UINT64_C(1) << 10)
#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)

/* *ret = a + b; false, and *ret untouched, if that overflows. */
static inline bool add_ok(uint64_t a, uint64_t b, uint64_t *ret)
{
	uint64_t sum;

	if (__builtin_add_overflow(a, b, &sum))
		return false;
	*ret = sum;
	return true;
}

/* *ret = a * b; false, and *ret untouched, if that overflows. */
static inline bool mul_ok(uint64_t a, uint64_t b, uint64_t *ret)
{
	uint64_t product;

	if (__builtin_mul_overflow(a, b, &product))
		return false;
	*ret = product;
	return true;
}

/* Unaligned, in the order of this machine: the target's is the same. */
static inline uint16_t load_u16(const uint8_t *p)
{
	uint16_t value;

	memcpy(&value, p, sizeof(value));
	return value;
}

static inline uint32_t load_u32(const uint8_t *p)
{
	uint32_t value;

	memcpy(&value, p, sizeof(value));
	return value;
}

static inline uint64_t load_u64(const uint8_t *p)
{
	uint64_t value;

	memcpy(&value, p, sizeof(value));
	return value;
}

/* A word of the target, of 8 or 4 bytes. */
static inline uint64_t load_word(const uint8_t *p, unsigned word)
{
	return word == 8 ? load_u64(p) : load_u32(p);
}

/* The multiple of a power of two at or below, at or above value. */
static inline uint64_t round_down(uint64_t value, uint64_t unit)
{
	return value & ~(unit - 1);
}

/*
 * At the very top of the address space there is no such multiple: UINT64_MAX,
 * which ends every walk upwards.
 */
static inline uint64_t round_up(uint64_t value, uint64_t unit)
{
	return value > ~(unit - 1) ? UINT64_MAX :
				     (value + unit - 1) & ~(unit - 1);
}

static inline uint64_t min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static inline uint64_t max_u64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/*
 * The first i in [from, to) for which an expression is false, else to.  The
 * items are sorted: once it is false it stays so.
 */
#define BISECT(i, from, to, before) __extension__ ({			\
	size_t bisect_lo = (from), bisect_hi = (to);			\
									\
	while (bisect_lo < bisect_hi) {					\
		size_t i = bisect_lo + (bisect_hi - bisect_lo) / 2;	\
									\
		if (before)						\
			bisect_lo = i + 1;				\
		else							\
			bisect_hi = i;					\
	}								\
	bisect_lo;							\
})

#endif
