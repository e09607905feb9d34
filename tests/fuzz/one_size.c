/* SPDX-License-Identifier: MIT */
/*
 * One overwritten chunk size in a large core: how many blocks does a walk
 * lose, or take for something else?
 *
 * Usage: one_size CORE MOST: fails if a change costs more than MOST blocks.
 * Sizes of chunks spread over the heap are overwritten, one at a time, with
 * what cannot be a size and with what can.
 */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "fuzz/invariants.h"

enum { PLACES = 48 };

struct known {
	vaddr start;
	uint64_t size;
	enum block_state state;
};

static uint8_t *data;
static uint64_t data_size;
static struct known *known;
static size_t n_known, cap_known;

static struct space *open_core(struct heap *h)
{
	const struct target_options options = { .no_files = true };
	struct err err;
	struct space *sp = target_open_core_memory(data, data_size, &options,
						   &err);

	heap_init(h);
	if (sp && alloc_walk(sp, NULL, false, h, NULL, &err))
		return sp;
	fprintf(stderr, "one_size: %s\n", err.msg);
	exit(2);
}

static uint64_t *place_of(struct space *sp, vaddr addr)
{
	const struct seg *seg = space_seg(sp, addr);

	return (uint64_t *)(data + seg->core_off + (addr - seg->start));
}

/* Both are in address order: one pass. */
static uint64_t count_lost(struct heap *h)
{
	struct heap_iter it;
	struct block b;
	uint64_t same = 0;
	size_t i = 0;

	heap_iter_init(&it, h);
	while (heap_iter_next(&it, &b)) {
		while (i < n_known && known[i].start < b.start)
			i++;
		if (i < n_known && known[i].start == b.start)
			same += known[i].size == b.size &&
				known[i].state == b.state;
	}
	return n_known - same;
}

/* Number i of the wrong sizes that a chunk can get. */
static uint64_t wrong_size(unsigned i, uint64_t was)
{
	const uint64_t wrong[] = {
		0, 0x4141414141414141, UINT64_MAX, 0x7fffffffffffff01,
		was + 1, was ^ 2, was | 4, was & ~UINT64_C(1), was + 8,
		/* What can be a size: */
		0x21, 0x31, was + 16, was - 16, was * 2 - 1, was + 160,
		0x411, 0x1001, 0x20001, 0x100001, 0x2000001,
	};

	return wrong[i % countof(wrong)];
}

static uint64_t try_place(unsigned i)
{
	size_t at = (size_t)((uint64_t)n_known * (2 * i + 1) / (2 * PLACES));
	uint64_t *word, was, wrong, lost;
	struct space *sp;
	struct heap h;

	/* A block in use, of the main arena. */
	while (known[at].state != BLOCK_USED)
		at++;
	sp = open_core(&h);
	word = place_of(sp, known[at].start + 8);
	heap_fini(&h);
	space_close(sp);
	was = *word;
	wrong = wrong_size(i, was);
	if (wrong == was)
		return 0;
	*word = wrong;
	sp = open_core(&h);
	must_sum(&h);
	lost = count_lost(&h);
	printf("# 0x%" PRIx64 ": size 0x%" PRIx64 " becomes 0x%" PRIx64 ": %"
	       PRIu64 " of %zu blocks lost, %" PRIu64 " notes\n",
	       known[at].start, was, wrong, lost, n_known,
	       (uint64_t)h.n_notes);
	if (!h.n_notes)
		lost = UINT64_MAX;	/* nothing was said */
	heap_fini(&h);
	space_close(sp);
	*word = was;
	return lost;
}

static void load(const char *path)
{
	int fd = open(path, O_RDONLY);
	struct stat st;

	if (fd < 0 || fstat(fd, &st)) {
		perror(path);
		exit(2);
	}
	data_size = (uint64_t)st.st_size;
	data = mmap(NULL, data_size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd,
		    0);
	close(fd);
	if (data == MAP_FAILED)
		exit(2);
}

static void remember(void)
{
	struct heap_iter it;
	struct heap h;
	struct block b;
	struct space *sp;

	sp = open_core(&h);
	heap_iter_init(&it, &h);
	while (heap_iter_next(&it, &b))
		MEM_PUSH(known, n_known, cap_known) =
			(struct known){ b.start, b.size, b.state };
	heap_fini(&h);
	space_close(sp);
}

int main(int argc, char **argv)
{
	uint64_t worst = 0, most;

	if (argc != 3)
		return 2;
	most = strtoull(argv[2], NULL, 10);
	load(argv[1]);
	remember();
	for (unsigned i = 0; i < PLACES; i++)
		worst = max_u64(worst, try_place(i));
	printf("bar: damage: %" PRIu64 " of %zu blocks\n", worst, n_known);
	printf("%sok 1 - one overwritten size\n1..1\n",
	       worst > most ? "not " : "");
	return worst > most;
}
