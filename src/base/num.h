/* SPDX-License-Identifier: MIT */
/*
 * Numbers for people: sizes are powers of 1024, one decimal, no grouping and
 * no locale.
 */
#ifndef BASE_NUM_H
#define BASE_NUM_H

#include "base/types.h"

enum { NUM_MAX = 32 };		/* room for any text made here */

/*
 * "512", "512k", "1.5M", "2G", "512KB", "512KiB": powers of 1024, case does
 * not matter.  False if text is anything else or does not fit.
 */
bool num_parse_size(const char *text, uint64_t *ret) MUST_CHECK;

/* Decimal, or hexadecimal with 0x; nothing before or behind. */
bool num_parse_u64(const char *text, uint64_t *ret) MUST_CHECK;

/* Hexadecimal with or without 0x. */
bool num_parse_addr(const char *text, vaddr *ret) MUST_CHECK;

/*
 * The unit of a column whose biggest number is bytes: the first of none ('\0'),
 * 'K', 'M', 'G', 'T' in which it is below 10000.
 */
char num_unit(uint64_t bytes);

/*
 * bytes in that unit, one decimal: "1843.0M", "-" never.  0 gives "0"; a
 * non-zero value that would print as 0.0 gives "<0.1M".
 */
void num_format_in(char ret[NUM_MAX], uint64_t bytes, char unit);

/*
 * Running text: three digits and the fitting unit, "1.80G", "402M", "3.6K",
 * and below 1024 the word: "512 bytes".
 */
void num_format_size(char ret[NUM_MAX], uint64_t bytes);

/* To the nearest whole number, which is at most 2^62; below 0: 0. */
uint64_t num_whole(double value);

/* The size of a difference. */
static inline uint64_t num_abs(int64_t value)
{
	return value < 0 ? -(uint64_t)value : (uint64_t)value;
}

/* "850 ns", "12.5 us", "3.4 s": three digits. */
void num_format_duration(char ret[NUM_MAX], double seconds);

/* "36.8%"; part of 0 is "0.0%". */
void num_format_share(char ret[NUM_MAX], double share);

/* part / whole, 0 if whole is 0. */
double num_share(uint64_t part, uint64_t whole);

/* For qsort() and bsearch() of uint64_t. */
int num_compare_u64(const void *a, const void *b);
/* Sorts them, each value once; returns how many are left. */
size_t num_sort_unique(uint64_t *values, size_t n);

#endif
