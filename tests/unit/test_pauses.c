/* SPDX-License-Identifier: MIT */
#include "replay/pauses.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/rand.h"
#include "check.h"

static void add(struct pauses *p, double start, double duration, bool full)
{
	MEM_PUSH(p->list, p->n, p->cap) = (struct pause){
		.start = start, .duration = duration, .full = full,
	};
}

TEST(nearest_rank)
{
	struct pauses p = { .n = 0 };
	struct pauses_summary s;

	for (int i = 1; i <= 200; i++)
		add(&p, 1000 - i, i, i > 150);
	pauses_sum_up(&p, PAUSES_ALL, &s);
	CHECK_U64(s.n, 200);
	CHECK_NEAR(s.p50, 100, 0);
	CHECK_NEAR(s.p90, 180, 0);
	CHECK_NEAR(s.p99, 198, 0);
	CHECK_NEAR(s.max, 200, 0);
	CHECK_NEAR(s.sum, 200 * 201 / 2, 0);
	pauses_sum_up(&p, PAUSES_FULL, &s);
	CHECK_U64(s.n, 50);
	CHECK_NEAR(s.p50, 175, 0);
	pauses_sum_up(&p, PAUSES_OTHER, &s);
	CHECK_U64(s.n, 150);
	CHECK_NEAR(s.p99, 149, 0);
	pauses_fini(&p);
	pauses_sum_up(&p, PAUSES_ALL, &s);
	CHECK_NEAR(s.max, 0, 0);
}

TEST(utilisation_by_hand)
{
	struct pauses p = { .n = 0 };

	CHECK_NEAR(pauses_utilisation(&p, 1, 10), 1, 0);
	add(&p, 2, 1, false);
	add(&p, 4, 2, true);
	CHECK_NEAR(pauses_utilisation(&p, 0.5, 10), 0, 0);
	CHECK_NEAR(pauses_utilisation(&p, 2, 10), 0, 0);
	/* From 2 to 6. */
	CHECK_NEAR(pauses_utilisation(&p, 4, 10), 0.25, 1e-12);
	CHECK_NEAR(pauses_utilisation(&p, 10, 10), 0.7, 1e-12);
	CHECK_NEAR(pauses_utilisation(&p, 100, 10), 0.7, 1e-12);
	CHECK_NEAR(pauses_utilisation(&p, 1, 0), 1, 0);
	/* One inside of another counts once. */
	add(&p, 4.5, 0.5, false);
	pauses_sort(&p);
	CHECK_NEAR(pauses_utilisation(&p, 10, 10), 0.7, 1e-12);
	pauses_fini(&p);
}

/* Every window that starts at a multiple of 1; pauses are multiples too. */
static double worst_window(const bool *paused, int n, int window)
{
	int worst = 0;

	for (int i = 0; i + window <= n; i++) {
		int sum = 0;

		for (int k = i; k < i + window; k++)
			sum += paused[k];
		worst = sum > worst ? sum : worst;
	}
	return 1 - (double)worst / window;
}

TEST(utilisation_of_all_windows)
{
	enum { END = 300 };
	struct rand r;

	rand_init(&r, 1, 1);
	for (int round = 0; round < 200; round++) {
		struct pauses p = { .n = 0 };
		bool paused[END] = { false };
		int n = (int)(rand_u64(&r) % 12);

		for (int i = 0; i < n; i++) {
			int from = (int)(rand_u64(&r) % END);
			int d = (int)(rand_u64(&r) % 40);

			add(&p, from, d, false);
			for (int k = from; k < from + d && k < END; k++)
				paused[k] = true;
		}
		pauses_sort(&p);
		for (int w = 1; w <= END; w = w * 2 + 1)
			CHECK_NEAR(pauses_utilisation(&p, w, END),
				   worst_window(paused, END, w), 1e-9);
		CHECK_NEAR(pauses_utilisation(&p, END, END),
			   worst_window(paused, END, END), 1e-9);
		pauses_fini(&p);
	}
}

static bool read_bytes(struct pauses *p, const void *bytes, size_t n,
		       struct err *err)
{
	static const struct pauses_options o = { .unit = 1e-3, .at = 5 };
	char path[] = "/tmp/heapcore-test-XXXXXX";
	int fd = mkstemp(path);
	bool ok = false;

	CHECK(fd >= 0);
	if (write(fd, bytes, n) == (ssize_t)n)
		ok = pauses_read(p, path, &o, err);
	close(fd);
	unlink(path);
	return ok;
}

static bool read_text(struct pauses *p, const char *text, struct err *err)
{
	return read_bytes(p, text, strlen(text), err);
}

TEST(lines)
{
	struct pauses p;
	struct err err;

	CHECK(read_text(&p, "{\"start\": 2000, \"duration\": 3.5}\n\n"
			"{\"kind\":\"pause\",\"at\":1,\"dur\":2,\"full\":true}"
			"\n{\"kind\":\"mark\",\"what\":[]}\n"
			"{\"ts\":1.5e3,\"dur\":0,\"more\":null}", &err));
	CHECK_U64(p.n, 3);
	CHECK_NEAR(p.list[0].start, 5.001, 1e-9);
	CHECK_NEAR(p.list[0].duration, 0.002, 1e-9);
	CHECK(p.list[0].full && !p.list[1].full);
	CHECK_NEAR(p.list[1].start, 6.5, 1e-9);
	CHECK_NEAR(p.list[2].start, 7, 1e-9);
	pauses_fini(&p);
	CHECK(read_text(&p, "", &err));
	CHECK_U64(p.n, 0);
}

TEST(lines_that_are_wrong)
{
	static const struct {
		const char *text, *says;
	} wrong[] = {
		{ "{\"start\":1,\"dur\":1}\n{", ":2: no JSON" },
		{ "\n\n[1,2]\n", ":3: not an object" },
		{ "7\n", ":1: not an object" },
		{ "{\"dur\":1}\n", ":1: no \"start\"" },
		{ "{\"start\":1}\n", ":1: no \"duration\"" },
		{ "{\"start\":\"1\",\"dur\":1}", "\"start\" is no number" },
		{ "{\"start\":1,\"dur\":-1}", "\"duration\" is out of" },
		{ "{\"start\":1e300,\"dur\":1}", "\"start\" is out of" },
		{ "{\"start\":1,\"start\":2,\"dur\":1}", "no JSON" },
		{ "{\"start\":1,\"dur\":1,\"full\":1}", "\"full\" is" },
		{ "{\"start\":1,\"dur\":NaN}", "no JSON" },
		{ "{\"start\":1,\"dur\":1} {}", "no JSON" },
	};
	struct pauses p;
	struct err err;

	for (size_t i = 0; i < countof(wrong); i++) {
		CHECK(!read_text(&p, wrong[i].text, &err));
		CHECK(strstr(err.msg, wrong[i].says));
		CHECK_U64(p.n, 0);
	}
	CHECK(!read_bytes(&p, "{}\0\n", 4, &err));
	CHECK(strstr(err.msg, "zero byte"));
	CHECK(!pauses_read(&p, "/nowhere/at/all", NULL, &err));
}

/* One line of any length; nesting of any depth; bytes that were changed. */
TEST(lines_of_anything)
{
	static char text[PAUSE_LINE_MAX * 2];
	static const char good[] = "{\"start\":12.5,\"dur\":1,\"full\":true}\n"
		"{\"kind\":\"pause\",\"at\":2e1,\"dur\":2}\n";
	struct pauses p;
	struct err err;
	struct rand r;

	memset(text, ' ', sizeof(text));
	CHECK(!read_bytes(&p, text, sizeof(text), &err));
	CHECK(strstr(err.msg, "too long"));
	memset(text, '[', sizeof(text) / 3);
	CHECK(!read_bytes(&p, text, sizeof(text) / 3, &err));
	rand_init(&r, 3, 3);
	for (int i = 0; i < 3000; i++) {
		memcpy(text, good, sizeof(good));
		for (uint64_t n = rand_u64(&r) % 4 + 1; n--; )
			text[rand_u64(&r) % (sizeof(good) - 1)] =
				(char)rand_u64(&r);
		if (read_bytes(&p, text, sizeof(good) - 1, &err))
			CHECK(p.n <= 3);
		pauses_fini(&p);
	}
}
