/* SPDX-License-Identifier: MIT */
#include "sampler/profile.h"

#include "check.h"

/* A sample that is certain: its weight is its size. */
static uint32_t add(struct profile *p, uint32_t key, uint64_t size)
{
	struct sample s = { .size = size, .length = size + 1, .rate = 1,
			    .first = 1 };

	return profile_add(p, key, &s);
}

static double bytes_of(const struct profile *p, uint32_t key,
		       enum profile_view view)
{
	const struct profile_row *row = profile_find(p, key);
	struct profile_figures f;

	if (!row)
		return -1;
	profile_get(row, view, &f);
	return f.bytes.value;
}

static double total_of(const struct profile *p, enum profile_view view)
{
	struct profile_figures f;

	profile_get(profile_total(p), view, &f);
	return f.bytes.value;
}

TEST(views_of_keys)
{
	struct profile p;
	uint32_t a;

	profile_init(&p, ESTIMATOR_HT);
	a = add(&p, 7, 100);
	add(&p, 9, 10);
	add(&p, 7, 5);
	profile_remove(&p, a);
	profile_finish(&p);
	CHECK_NEAR(bytes_of(&p, 7, VIEW_ALLOCATED), 105, 0);
	CHECK_NEAR(bytes_of(&p, 7, VIEW_LIVE), 5, 0);
	CHECK_NEAR(bytes_of(&p, 9, VIEW_LIVE), 10, 0);
	CHECK(!profile_find(&p, 8));
	CHECK(!profile_find(&p, 1000000));
	CHECK_NEAR(total_of(&p, VIEW_ALLOCATED), 115, 0);
	CHECK_NEAR(total_of(&p, VIEW_LIVE), 15, 0);
	CHECK_NEAR(total_of(&p, VIEW_MARKED), 0, 0);
	CHECK_U64(p.n_freed, 1);
	profile_fini(&p);
}

TEST(the_last_mark_counts)
{
	struct profile p;
	uint32_t a, b;

	profile_init(&p, ESTIMATOR_HT);
	a = add(&p, 1, 100);
	profile_mark(&p);
	b = add(&p, 2, 50);
	add(&p, 1, 1);
	profile_mark(&p);
	profile_remove(&p, a);
	profile_remove(&p, b);
	add(&p, 3, 9);
	profile_finish(&p);
	CHECK_NEAR(bytes_of(&p, 1, VIEW_MARKED), 101, 0);
	CHECK_NEAR(bytes_of(&p, 2, VIEW_MARKED), 50, 0);
	CHECK_NEAR(bytes_of(&p, 3, VIEW_MARKED), 0, 0);
	CHECK_NEAR(total_of(&p, VIEW_MARKED), 151, 0);
	profile_fini(&p);
}

TEST(a_row_that_did_not_change_since_the_mark)
{
	struct profile p;

	profile_init(&p, ESTIMATOR_HT);
	add(&p, 1, 100);
	add(&p, 2, 50);
	profile_mark(&p);
	profile_finish(&p);
	CHECK_NEAR(bytes_of(&p, 1, VIEW_MARKED), 100, 0);
	CHECK_NEAR(total_of(&p, VIEW_MARKED), 150, 0);
	profile_fini(&p);
}

TEST(sums_leave_nothing_behind)
{
	static uint32_t handle[1000];
	struct profile p;
	struct sampler s;
	struct sample hit;

	profile_init(&p, ESTIMATOR_TCMALLOC);
	sampler_init(&s, 512, 1, 0);
	for (uint64_t i = 0; i < 1000; i++) {
		if (!sampler_step(&s, 100 + i * i, &hit))
			continue;
		hit.size = i * i;
		handle[i] = profile_add(&p, (uint32_t)(i % 7), &hit);
	}
	for (size_t i = 0; i < 1000; i++)
		if (handle[i * 7 % 1000])
			profile_remove(&p, handle[i * 7 % 1000]);
	for (uint32_t key = 0; key < 7; key++)
		CHECK_NEAR(bytes_of(&p, key, VIEW_LIVE), 0, 0);
	CHECK(profile_live(&p) == 0);
	CHECK(p.total.view[VIEW_LIVE].bytes_variance == 0);
	CHECK_U64(p.total.view[VIEW_LIVE].n, 0);
	profile_fini(&p);
}

TEST(handles_are_used_again)
{
	struct profile p;

	profile_init(&p, ESTIMATOR_HT);
	for (int i = 0; i < 1000; i++)
		profile_remove(&p, add(&p, 1, 8));
	CHECK_U64(p.n_samples, 1);
	profile_fini(&p);
}

/* Nothing that a trace can claim makes the sums undefined. */
TEST(absurd_samples)
{
	struct profile p;
	struct sample s = {
		.size = UINT64_MAX, .length = 1, .rate = SAMPLER_MAX_RATE,
		.first = 1, .marks = UINT64_MAX,
	};

	for (int e = ESTIMATOR_HT; e <= ESTIMATOR_STATMEMPROF; e++) {
		profile_init(&p, e);
		profile_remove(&p, profile_add(&p, 0, &s));
		CHECK(profile_live(&p) == 0);
		profile_fini(&p);
	}
}
