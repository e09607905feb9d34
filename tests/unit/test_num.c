/* SPDX-License-Identifier: MIT */
#include "base/num.h"

#include "check.h"

static uint64_t size(const char *text)
{
	uint64_t ret = 12345;

	return num_parse_size(text, &ret) ? ret : UINT64_MAX;
}

TEST(rounding_at_the_top)
{
	CHECK_U64(round_up(0, 4096), 0);
	CHECK_U64(round_up(4095, 4096), 4096);
	CHECK_U64(round_up(UINT64_MAX - 4095, 4096), UINT64_MAX - 4095);
	CHECK_U64(round_up(UINT64_MAX - 4094, 4096), UINT64_MAX);
	CHECK_U64(round_up(UINT64_MAX, 4096), UINT64_MAX);
	CHECK_U64(round_up(UINT64_MAX, 1), UINT64_MAX);
}

TEST(sizes_are_read)
{
	CHECK_U64(size("0"), 0);
	CHECK_U64(size("512"), 512);
	CHECK_U64(size("512k"), 524288);
	CHECK_U64(size("512K"), 524288);
	CHECK_U64(size("512KB"), 524288);
	CHECK_U64(size("512kib"), 524288);
	CHECK_U64(size("7b"), 7);
	CHECK_U64(size("1.5M"), 1572864);
	CHECK_U64(size("0.1k"), 102);
	CHECK_U64(size("2G"), UINT64_C(2) << 30);
	CHECK_U64(size("1.25T"), UINT64_C(5) << 38);
	CHECK_U64(size("1.00000000000000000001G"), UINT64_C(1) << 30);
	CHECK_U64(size("0.9999999T"), 1099511517824);
	CHECK_U64(size("16777215T"), UINT64_C(16777215) << 40);
}

TEST(what_is_no_size_is_refused)
{
	static const char *const bad[] = {
		"", "k", "-1", "+1", " 1", "1 ", "1 k", "1x", "1kk", "1.",
		".5", "1.5", "1.5B", "1e3", "0x10", "1ki", "16777216T",
		"18446744073709551616", "1.5.5k", "99999999999999999999k",
	};

	for (size_t i = 0; i < countof(bad); i++)
		if (!CHECK(size(bad[i]) == UINT64_MAX))
			printf("# accepted: '%s'\n", bad[i]);
}

TEST(failure_leaves_the_value)
{
	uint64_t u = 7;

	CHECK(!num_parse_size("x", &u));
	CHECK(!num_parse_u64("0x", &u));
	CHECK(!num_parse_addr("0xg", &u));
	CHECK_U64(u, 7);
}

TEST(numbers_and_addresses)
{
	uint64_t u = 0;

	CHECK(num_parse_u64("18446744073709551615", &u));
	CHECK_U64(u, UINT64_MAX);
	CHECK(num_parse_u64("0xFf", &u));
	CHECK_U64(u, 255);
	CHECK(!num_parse_u64("18446744073709551616", &u));
	CHECK(!num_parse_u64("12a", &u));
	CHECK(num_parse_addr("7f12a4003f40", &u));
	CHECK_U64(u, UINT64_C(0x7f12a4003f40));
	CHECK(num_parse_addr("0XFFFFFFFFFFFFFFFF", &u));
	CHECK_U64(u, UINT64_MAX);
	CHECK(!num_parse_addr("10000000000000000", &u));
	CHECK(!num_parse_addr("", &u));
}

TEST(a_column_has_the_unit_of_its_biggest)
{
	CHECK_U64((uint64_t)num_unit(0), 0);
	CHECK_U64((uint64_t)num_unit(9999), 0);
	CHECK_U64((uint64_t)num_unit(10000), 'K');
	CHECK_U64((uint64_t)num_unit(10000 * KIB - 1), 'K');
	CHECK_U64((uint64_t)num_unit(10000 * KIB), 'M');
	CHECK_U64((uint64_t)num_unit(1843 * MIB), 'M');
	CHECK_U64((uint64_t)num_unit(10000 * GIB), 'T');
	CHECK_U64((uint64_t)num_unit(UINT64_MAX), 'T');
}

static const char *in(uint64_t bytes, char unit)
{
	static char ret[NUM_MAX];

	num_format_in(ret, bytes, unit);
	return ret;
}

TEST(cells)
{
	CHECK_STR(in(1932525568, 'M'), "1843.0M");
	CHECK_STR(in(0, 'M'), "0");
	CHECK_STR(in(1, 'M'), "<0.1M");
	CHECK_STR(in(MIB / 20 - 1, 'M'), "<0.1M");
	CHECK_STR(in(MIB / 20 + 1, 'M'), "0.1M");
	CHECK_STR(in(512, '\0'), "512");
	CHECK_STR(in(UINT64_MAX, 'T'), "16777216.0T");
	CHECK_STR(in(UINT64_MAX, '\0'), "18446744073709551615");
}

static const char *text(uint64_t bytes)
{
	static char ret[NUM_MAX];

	num_format_size(ret, bytes);
	return ret;
}

TEST(running_text_has_three_digits)
{
	CHECK_STR(text(0), "0 bytes");
	CHECK_STR(text(1), "1 byte");
	CHECK_STR(text(1023), "1023 bytes");
	CHECK_STR(text(1024), "1.0K");
	CHECK_STR(text(3664), "3.6K");
	CHECK_STR(text(1932525568), "1.80G");
	CHECK_STR(text(402 * MIB), "402M");
	CHECK_STR(text(48444211), "46.2M");
	/* Never 1024 of a unit. */
	CHECK_STR(text(MIB - 1), "1.00M");
	CHECK_STR(text(1023 * KIB), "1023K");
	CHECK_STR(text(UINT64_MAX), "16777216T");
}

TEST(shares)
{
	char ret[NUM_MAX];

	CHECK_NEAR(num_share(1, 4), 0.25, 0);
	CHECK_NEAR(num_share(1, 0), 0, 0);
	num_format_share(ret, 0.368);
	CHECK_STR(ret, "36.8%");
	num_format_share(ret, 0);
	CHECK_STR(ret, "0.0%");
	num_format_share(ret, 1);
	CHECK_STR(ret, "100.0%");
}
