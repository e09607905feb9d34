/* SPDX-License-Identifier: MIT */
/*
 * A unit test is one file that includes this one, once:
 *
 *	TEST(a_half_rounds_up)
 *	{
 *		CHECK_U64(half(3), 2);
 *		CHECK_STR(half_text(3), "2");
 *		if (!CHECK(half_ptr(3)))
 *			return;
 *	}
 *
 * The tests run in the order of the file, or those named by arguments; TAP
 * goes to stdout.  A failed check goes on, so that one run shows all that is
 * wrong, and yields false.  In each macro the value got comes first.  A test
 * that cannot run here says why: SKIP("no FAT file system").
 */
#ifndef UNIT_CHECK_H
#define UNIT_CHECK_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEST(name)							\
	static void test_##name(void);					\
	__attribute__((constructor)) static void add_##name(void)	\
	{								\
		check_add(#name, test_##name);				\
	}								\
	static void test_##name(void)

#define CHECK_AT __FILE__, __LINE__
#define CHECK(cond) check_true((cond), #cond, CHECK_AT)
#define CHECK_U64(got, want) check_u64((got), (want), #got, CHECK_AT)
#define CHECK_STR(got, want) check_str((got), (want), #got, CHECK_AT)
#define CHECK_MEM(got, want, n) check_mem((got), (want), (n), #got, CHECK_AT)
/* Within an absolute distance. */
#define CHECK_NEAR(got, want, off) \
	check_near((got), (want), (off), #got, CHECK_AT)
#define SKIP(reason)							\
	do {								\
		check_skipped = (reason);				\
		return;							\
	} while (0)

enum { CHECK_MAX_TESTS = 500 };
static struct {
	const char *name;
	void (*run)(void);
} check_tests[CHECK_MAX_TESTS];
static int check_n_tests, check_n_failures;
static const char *check_skipped;

static void check_add(const char *name, void (*run)(void))
{
	if (check_n_tests == CHECK_MAX_TESTS)
		abort();
	check_tests[check_n_tests].name = name;
	check_tests[check_n_tests++].run = run;
}

__attribute__((unused, format(printf, 4, 5)))
static bool check_result(bool ok, const char *file, int line,
			 const char *fmt, ...)
{
	__builtin_va_list ap;

	if (ok)
		return true;
	check_n_failures++;
	printf("# %s:%d: ", file, line);
	__builtin_va_start(ap, fmt);
	vprintf(fmt, ap);
	__builtin_va_end(ap);
	putchar('\n');
	return false;
}

__attribute__((unused))
static bool check_true(bool ok, const char *what, const char *file, int line)
{
	return check_result(ok, file, line, "not true: %s", what);
}

__attribute__((unused))
static bool check_u64(uint64_t got, uint64_t want, const char *what,
		      const char *file, int line)
{
	return check_result(got == want, file, line,
			    "%s is %" PRIu64 " (0x%" PRIx64 "), not %" PRIu64
			    " (0x%" PRIx64 ")", what, got, got, want, want);
}

__attribute__((unused))
static bool check_str(const char *got, const char *want, const char *what,
		      const char *file, int line)
{
	bool same = got && want ? !strcmp(got, want) : got == want;

	return check_result(same, file, line, "%s is\n#   %s\n# not\n#   %s",
			    what, got ? got : "NULL", want ? want : "NULL");
}

__attribute__((unused))
static bool check_mem(const void *got, const void *want, size_t n,
		      const char *what, const char *file, int line)
{
	const unsigned char *a = got, *b = want;
	size_t i = 0;

	while (i < n && a[i] == b[i])
		i++;
	return check_result(i == n, file, line, "byte %zu of %s is 0x%02x,"
			    " not 0x%02x", i, what, i < n ? a[i] : 0,
			    i < n ? b[i] : 0);
}

__attribute__((unused))
static bool check_near(double got, double want, double off, const char *what,
		       const char *file, int line)
{
	return check_result(got >= want - off && got <= want + off, file, line,
			    "%s is %.9g, not %.9g within %.3g", what, got,
			    want, off);
}

static bool check_wanted(const char *name, int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (!strcmp(argv[i], name))
			return true;
	return argc < 2;
}

int main(int argc, char **argv)
{
	int n = 0, n_failed = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	for (int i = 0; i < check_n_tests; i++)
		n += check_wanted(check_tests[i].name, argc, argv);
	printf("1..%d\n", n);
	n = 0;
	for (int i = 0; i < check_n_tests; i++) {
		if (!check_wanted(check_tests[i].name, argc, argv))
			continue;
		check_n_failures = 0;
		check_skipped = NULL;
		check_tests[i].run();
		printf("%sok %d - %s", check_n_failures ? "not " : "", ++n,
		       check_tests[i].name);
		if (check_skipped)
			printf(" # SKIP %s", check_skipped);
		putchar('\n');
		n_failed += check_n_failures > 0;
	}
	return n_failed > 0 || !n;
}

#endif
