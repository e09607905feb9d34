/* SPDX-License-Identifier: MIT */
/*
 * Ranges that a traced program maps and unmaps, against a map of its bytes.
 */
#include "check.h"

#include <string.h>

#include "base/rand.h"
#include "replay/maps.h"

enum { SPACE = 512 };

static struct trace_event event(unsigned kind, uint64_t addr, uint64_t size,
				uint64_t flags)
{
	return (struct trace_event){
		.kind = (uint8_t)kind, .addr = addr, .size = size,
		.rate = flags, .tick = addr,
	};
}

TEST(as_byte_by_byte)
{
	char bytes[SPACE] = { 0 };
	uint64_t peak = 0;
	struct maps m;
	struct rand r;

	maps_init(&m);
	rand_init(&r, 7, 0);
	for (int round = 0; round < 20000; round++) {
		uint64_t x = rand_u64(&r);
		uint64_t at = x % SPACE, n = x >> 20 & 63;
		bool map = x >> 40 & 1, none = x >> 41 & 1;
		bool access = map && x >> 42 & 1;
		struct trace_event e = event(map ? TRACE_MAP : TRACE_UNMAP,
			at, n, (none ? TRACE_MAP_NONE : TRACE_MAP_FILE) |
			(access ? TRACE_MAP_ACCESS : 0));
		uint64_t open = 0, reserved = 0;

		n = at + n > SPACE ? SPACE - at : n;
		e.size = n;
		maps_event(&m, &e);
		for (uint64_t i = at; i < at + n; i++)
			if (!access || bytes[i])
				bytes[i] = map ? 1 + none : 0;
		for (int i = 0; i < SPACE; i++) {
			open += bytes[i] == 1;
			reserved += bytes[i] == 2;
		}
		peak = max_u64(peak, open);
		CHECK_U64(m.bytes, open);
		CHECK_U64(m.reserved, reserved);
	}
	CHECK_U64(m.peak_bytes, peak);
	CHECK(m.n_nodes <= SPACE + 2);
	maps_fini(&m);
}

TEST(ends_of_the_address_space)
{
	struct trace_event e = event(TRACE_MAP, UINT64_MAX - 4095,
				     UINT64_MAX, 0);
	struct maps m;

	maps_init(&m);
	maps_event(&m, &e);
	CHECK_U64(m.bytes, 4095);
	e = event(TRACE_UNMAP, 0, UINT64_MAX, 0);
	maps_event(&m, &e);
	CHECK_U64(m.bytes, 0);
	e = event(TRACE_MAP, 5, 0, 0);
	maps_event(&m, &e);
	CHECK_U64(m.bytes, 0);
	maps_fini(&m);
}
