/* SPDX-License-Identifier: MIT */
#include "base/num.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/types.h"

static const char units[] = "\0KMGT";

static int digit_of(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return 99;
}

/* The digits at *text; moves *text behind them. False: none, or too many. */
static bool parse_digits(const char **text, unsigned base, uint64_t *ret)
{
	const char *p = *text;
	uint64_t value = 0;

	for (unsigned d; (d = (unsigned)digit_of(*p)) < base; p++)
		if (!mul_ok(value, base, &value) || !add_ok(value, d, &value))
			return false;
	if (p == *text)
		return false;
	*text = p;
	*ret = value;
	return true;
}

/* "k", "KB", "kib", "B", "": the power of 1024, -1 if it is none. */
static int parse_unit(const char *text)
{
	static const char letters[] = "kmgt";
	const char *at = NULL;
	char c = *text | 0x20;
	int power = 0;

	if (*text)
		at = strchr(letters, c);
	if (at && *at) {
		power = (int)(at - letters) + 1;
		text++;
		if ((*text | 0x20) == 'i' && (text[1] | 0x20) == 'b')
			text++;
	}
	if ((*text | 0x20) == 'b')
		text++;
	return *text ? -1 : power;
}

/* The digits behind the point; those behind the seventh do not matter. */
static bool parse_fraction(const char **text, uint64_t *ret_num,
			   uint64_t *ret_den)
{
	uint64_t num = 0;
	uint64_t den = 1;
	const char *p = *text;

	for (; *p >= '0' && *p <= '9'; p++)
		if (den < 10000000) {
			num = num * 10 + (uint64_t)(*p - '0');
			den *= 10;
		}
	if (p == *text)
		return false;
	*text = p;
	*ret_num = num;
	*ret_den = den;
	return true;
}

bool num_parse_size(const char *text, uint64_t *ret)
{
	uint64_t whole;
	uint64_t num = 0;
	uint64_t den = 1;
	uint64_t unit;
	int power;

	if (!parse_digits(&text, 10, &whole))
		return false;
	if (*text == '.') {
		text++;
		if (!parse_fraction(&text, &num, &den))
			return false;
	}
	power = parse_unit(text);
	if (power < 0 || (power == 0 && num))
		return false;
	unit = UINT64_C(1) << (10 * power);
	if (!mul_ok(whole, unit, &whole))
		return false;
	/* num < 10^7 and unit <= 2^40: the product fits. */
	return add_ok(whole, num * unit / den, ret);
}

bool num_parse_u64(const char *text, uint64_t *ret)
{
	unsigned base = 10;
	uint64_t value;

	if (text[0] == '0' && (text[1] | 0x20) == 'x') {
		base = 16;
		text += 2;
	}
	if (!parse_digits(&text, base, &value) || *text)
		return false;
	*ret = value;
	return true;
}

bool num_parse_addr(const char *text, vaddr *ret)
{
	uint64_t value;

	if (text[0] == '0' && (text[1] | 0x20) == 'x')
		text += 2;
	if (!parse_digits(&text, 16, &value) || *text)
		return false;
	*ret = value;
	return true;
}

static int power_of(char unit)
{
	const char *at = unit ? strchr(units + 1, unit) : NULL;

	return at ? (int)(at - units) : 0;
}

char num_unit(uint64_t bytes)
{
	int power = 0;

	while (power < 4 && bytes >> (10 * power) >= 10000)
		power++;
	return units[power];
}

/* bytes in units of 1024^power with decimals, rounded to nearest. */
static void format_fixed(char ret[NUM_MAX], uint64_t bytes, int power,
			 int decimals)
{
	double value = (double)bytes / (double)(UINT64_C(1) << (10 * power));

	snprintf(ret, NUM_MAX, "%.*f%c", decimals, value, units[power]);
}

void num_format_in(char ret[NUM_MAX], uint64_t bytes, char unit)
{
	int power = power_of(unit);

	if (!power)
		snprintf(ret, NUM_MAX, "%llu", (unsigned long long)bytes);
	else if (!bytes)
		snprintf(ret, NUM_MAX, "0");
	else if (bytes < (UINT64_C(1) << (10 * power)) / 20)
		snprintf(ret, NUM_MAX, "<0.1%c", unit);
	else
		format_fixed(ret, bytes, power, 1);
}

void num_format_size(char ret[NUM_MAX], uint64_t bytes)
{
	int power = 0;
	uint64_t whole;
	int decimals;

	if (bytes < KIB) {
		snprintf(ret, NUM_MAX, "%u byte%s", (unsigned)bytes,
			 bytes == 1 ? "" : "s");
		return;
	}
	/* 1023.6K is 1.00M: look at what will be printed. */
	while (power < 4 && (bytes >> (10 * power)) +
	       (power && bytes >> (10 * power - 1) & 1) >= 1024)
		power++;
	whole = bytes >> (10 * power);
	decimals = whole >= 100 ? 0 : whole >= 10 || power == 1 ? 1 : 2;
	format_fixed(ret, bytes, power, decimals);
}

void num_format_share(char ret[NUM_MAX], double share)
{
	snprintf(ret, NUM_MAX, "%.1f%%", share * 100);
}

uint64_t num_whole(double value)
{
	return value > 0 ? (uint64_t)fmin(value + 0.5, 0x1p62) : 0;
}

double num_share(uint64_t part, uint64_t whole)
{
	return whole ? (double)part / (double)whole : 0;
}

void num_format_duration(char ret[NUM_MAX], double seconds)
{
	static const char *const names[] = { "ns", "us", "ms", "s" };
	double value = seconds > 0 ? seconds * 1e9 : 0;
	unsigned unit = 0;

	/* What would be rounded to 1000 is one of the next unit. */
	for (; value >= 999.5 && unit + 1 < countof(names); unit++)
		value /= 1000;
	snprintf(ret, NUM_MAX, "%.3g %s", value, names[unit]);
	if (value >= 999.5)
		snprintf(ret, NUM_MAX, "%.0f s", value < 1e15 ? value : 1e15);
}

int num_compare_u64(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

size_t num_sort_unique(uint64_t *values, size_t n)
{
	size_t kept = 0;

	if (n)
		qsort(values, n, sizeof(*values), num_compare_u64);
	for (size_t i = 0; i < n; i++)
		if (!kept || values[kept - 1] != values[i])
			values[kept++] = values[i];
	return kept;
}
