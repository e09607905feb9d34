/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as a core file: whatever opens is then read all over, at the edges
 * of every segment, at every thread and module.
 *
 * Code: corewalk/(target_core|core_|space|unpack|module|own|elf)
 */
#include <stdlib.h>
#include <string.h>

#include "corewalk/module.h"
#include "corewalk/target.h"

enum {
	MAX_INPUT = 1 << 20,
	MAX_LOOKS = 300,	/* segments that are looked at */
};

static void look_at(struct space *sp, vaddr addr)
{
	char text[65];
	uint8_t buf[64];
	const uint8_t *view;
	uint64_t n, word;
	uint32_t half;

	space_word(sp, addr, &word);
	space_u32(sp, addr, &half);
	space_read(sp, addr, buf, sizeof(buf));
	space_string(sp, addr, text, 64);
	view = space_view_max(sp, addr, &n);
	if (!view != !n)
		abort();
	if (space_why(sp, addr) == SPACE_OK && (!n || view[0] != buf[0]))
		abort();
	if (n && view[n - 1] == 0xff)
		space_view(sp, addr, n);
	space_run_end(sp, addr);
	space_module(sp, addr);
}

static void check_segs(struct space *sp)
{
	uint64_t sum = 0;
	size_t i;

	for (i = 0; i < sp->n_segs; i++) {
		const struct seg *seg = &sp->segs[i];

		if (seg->start >= seg->end ||
		    (i && seg->start < seg[-1].end) ||
		    seg->avail > seg->end - seg->start ||
		    seg->stored > seg->avail || !seg->host != !seg->avail ||
		    /* Of a file, or zeros behind a guard. */
		    (seg->stored < seg->avail &&
		     !(seg->flags & SEG_FROM_FILE) &&
		     (seg->stored || seg->flags & (SEG_R | SEG_W))) ||
		    (seg->file != SEG_NO_FILE && seg->file >= sp->n_files))
			abort();
		sum += seg->stored;
		if (space_stored(sp, seg->start, seg->end) > seg->stored)
			abort();
	}
	if (sum > 2 * sp->core_size)
		abort();
}

static void look_around(struct space *sp)
{
	size_t i;

	for (i = 0; i < sp->n_segs && i < MAX_LOOKS; i++) {
		const struct seg *seg = &sp->segs[i];

		look_at(sp, seg->start);
		look_at(sp, seg->start + seg->avail - 1);
		look_at(sp, seg->start + seg->avail);
		look_at(sp, seg->end - 1);
		look_at(sp, seg->end);
		space_seg_private(sp, seg);
	}
	for (i = 0; i < sp->n_threads && i < MAX_LOOKS; i++) {
		look_at(sp, sp->threads[i].sp);
		look_at(sp, sp->threads[i].tls);
	}
	for (i = 0; i < sp->n_modules; i++) {
		const struct module *m = &sp->modules[i];

		if (m->start >= m->end || (i && m->start < m[-1].end) ||
		    m->path || m->file >= sp->n_files ||
		    space_module(sp, m->start) != m)
			abort();
	}
	look_at(sp, 0);
	look_at(sp, UINT64_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct target_options options = { .no_files = true };
	struct err err = { 0 };
	struct space *sp;

	if (size > MAX_INPUT)
		return 0;
	sp = target_open_core_memory(data, size, &options, &err);
	if (!sp) {
		if (!err.msg[0] || err.kind == ERR_NONE)
			abort();
		return 0;
	}
	check_segs(sp);
	look_around(sp);
	space_close(sp);
	return 0;
}
