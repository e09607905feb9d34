/* SPDX-License-Identifier: MIT */
#include "base/progress.h"

#include <unistd.h>

#include "check.h"

/* What run writes to stderr; valid until the next call. */
static const char *stderr_of(void (*run)(void))
{
	static char text[4096];
	FILE *file = tmpfile();
	int saved = dup(2);
	size_t n;

	fflush(stderr);
	dup2(fileno(file), 2);
	run();
	fflush(stderr);
	dup2(saved, 2);
	close(saved);
	rewind(file);
	n = fread(text, 1, sizeof(text) - 1, file);
	text[n] = '\0';
	fclose(file);
	return text;
}

static void plain(void)
{
	struct progress p;

	progress_init(&p, PROGRESS_PLAIN);
	progress_phase(&p, "walking");
	progress_step(&p, 1, 2, 3, "blocks");
	progress_phase(&p, "adding up");
	progress_phase(&p, NULL);
	progress_fini(&p);
}

TEST(plain_is_a_line_for_each_phase)
{
	CHECK_STR(stderr_of(plain),
		  "heapcore: walking\nheapcore: adding up\n");
}

static void none(void)
{
	struct progress p;

	progress_init(&p, PROGRESS_NONE);
	progress_phase(&p, "walking");
	progress_step(&p, 1, 2, 3, "blocks");
	progress_fini(&p);
	progress_phase(NULL, "x");
	progress_step(NULL, 1, 2, 3, "blocks");
}

TEST(none_is_silent)
{
	CHECK_STR(stderr_of(none), "");
}

static void quick(void)
{
	struct progress p;

	progress_init(&p, PROGRESS_TERMINAL);
	progress_phase(&p, "walking");
	progress_step(&p, 1, 2, 3, "blocks");
	progress_fini(&p);
}

TEST(nothing_is_drawn_in_the_first_half_second)
{
	CHECK_STR(stderr_of(quick), "");
}

static void slow(void)
{
	struct progress p;

	progress_init(&p, PROGRESS_TERMINAL);
	p.start_ns -= 600000000;
	progress_phase(&p, "walking");
	progress_step(&p, 78, 100, 4812190, "blocks");
	/* Too soon after the last. */
	progress_step(&p, 79, 100, 4812191, "blocks");
	progress_fini(&p);
	progress_fini(&p);
}

TEST(one_line_is_drawn_and_removed)
{
	CHECK_STR(stderr_of(slow),
		  "\r\33[Kheapcore: walking   78%   4812190 blocks\r\33[K");
}

static void beyond(void)
{
	struct progress p;

	progress_init(&p, PROGRESS_TERMINAL);
	p.start_ns -= 600000000;
	progress_phase(&p, "reading");
	progress_step(&p, UINT64_MAX, 100, 0, NULL);
	progress_fini(&p);
}

TEST(a_share_never_exceeds_the_whole)
{
	CHECK_STR(stderr_of(beyond),
		  "\r\33[Kheapcore: reading   100%\r\33[K");
}
