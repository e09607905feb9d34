/* SPDX-License-Identifier: MIT */
/*
 * Damages real cores in every way that a header can be wrong, and walks them:
 * bytes and words of the ELF header, program headers, notes, malloc's own
 * structures and chunk headers are changed, and files are cut at any length.
 * A mutation is known by its number: what fails can be had again.
 *
 * Usage: mutate [-n COUNT] [-f FIRST] [-m MAX_MB] [-o FILE] CORE...
 *
 * -n mutations of each core, from number -f on; no child may take more than
 * -m megabytes; -o writes the first mutation to a file and does nothing else.
 * Children do a batch each, so that one that dies does not end the run.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "fuzz/invariants.h"
#include "fuzz/nasty.h"

/* Seconds of the processor: others may have it for much longer. */
enum { BATCH = 50, HANG_SECONDS = 10, MAX_FAILURES = 20, LINE = 64 };

/* A part of the file that is worth changing. */
struct part {
	uint64_t start, end;
};

struct victim {
	const char *path;
	uint8_t *data;		/* owned */
	uint64_t size;
	struct part *parts[5];	/* owned, by kind */
	size_t n_parts[5], cap_parts[5];
};
enum { PART_ELF, PART_PHDR, PART_NOTE, PART_MALLOC, PART_CHUNK };

/* What a child tells its parent. */
struct report {
	uint64_t number;	/* of the mutation under way */
	uint64_t slowest_ns, slowest_number;
	uint64_t opened, found;	/* cores that could be opened, heaps seen */
};

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void add_part(struct victim *v, int kind, uint64_t start, uint64_t end)
{
	if (start < end && end <= v->size)
		MEM_PUSH(v->parts[kind], v->n_parts[kind],
			 v->cap_parts[kind]) = (struct part){ start, end };
}

/* The part of the file that holds [addr, addr + n). */
static void add_memory(struct victim *v, struct space *sp, int kind,
		       vaddr addr, uint64_t n)
{
	const struct seg *seg = space_seg(sp, addr);

	if (seg && addr - seg->start < seg->stored)
		add_part(v, kind, seg->core_off + (addr - seg->start),
			 seg->core_off + min_u64(addr - seg->start + n,
						 seg->stored));
}

static void add_headers(struct victim *v)
{
	bool is64 = v->data[4] == 2;
	uint64_t size = is64 ? 56 : 32, at = is64 ? 64 : 52, off = 0, len = 0;
	unsigned n = v->data[is64 ? 56 : 44] | v->data[is64 ? 57 : 45] << 8;

	add_part(v, PART_ELF, 0, at);
	add_part(v, PART_PHDR, at, at + n * size);
	for (unsigned i = 0; i < n; i++, at += size) {
		memcpy(&off, v->data + at + (is64 ? 8 : 4), is64 ? 8 : 4);
		memcpy(&len, v->data + at + (is64 ? 32 : 16), is64 ? 8 : 4);
		if (v->data[at] == 4)
			add_part(v, PART_NOTE, off, off + len);
	}
}

/* Lines of it that are not zero: structures of other allocators. */
static void add_lines(struct victim *v, struct space *sp, vaddr start,
		      vaddr end)
{
	static const uint8_t zero[LINE];
	uint8_t line[LINE];

	for (vaddr at = start; at < end; at += LINE)
		if (space_read(sp, at, line, LINE) == LINE &&
		    memcmp(line, zero, LINE))
			add_memory(v, sp, PART_MALLOC, at, LINE);
}

static void add_own(struct victim *v, struct space *sp, const struct heap *h)
{
	for (size_t i = 0; i < h->n_extents; i++)
		if (h->extents[i].kind == EXTENT_OVERHEAD)
			add_lines(v, sp, h->extents[i].start,
				  h->extents[i].end);
}

/* malloc's structures and chunks are where a walk of the whole core says. */
static void add_heap(struct victim *v, struct space *sp)
{
	struct heap_iter it;
	struct heap h;
	struct block b;

	if (!walk_and_check(sp, &h)) {
		fprintf(stderr, "mutate: %s: no heap in it\n", v->path);
		exit(2);
	}
	for (size_t i = 0; i < h.n_arenas; i++)
		if (h.arenas[i].addr)
			add_memory(v, sp, PART_MALLOC, h.arenas[i].addr - 0xa00,
				   0xa00 + 0x900);
	for (size_t i = 0; i < h.n_caches; i++)
		add_memory(v, sp, PART_MALLOC, h.caches[i].addr, 0x300);
	add_own(v, sp, &h);
	heap_iter_init(&it, &h);
	while (heap_iter_next(&it, &b))
		if (b.state == BLOCK_OVERHEAD)
			add_lines(v, sp, b.start, b.start + b.size);
		else
			add_memory(v, sp, PART_CHUNK, b.start, 4 * sp->word);
	heap_fini(&h);
}

static void load_victim(struct victim *v, const char *path)
{
	const struct target_options options = { .no_files = true };
	struct space *sp;
	struct err err;
	FILE *f = fopen(path, "rb");
	struct stat st;

	*v = (struct victim){ .path = path };
	if (!f || fstat(fileno(f), &st)) {
		perror(path);
		exit(2);
	}
	v->size = (uint64_t)st.st_size;
	v->data = mem_alloc(v->size);
	if (fread(v->data, 1, v->size, f) != v->size)
		exit(2);
	fclose(f);
	sp = target_open_core_memory(v->data, v->size, &options, &err);
	if (!sp) {
		fprintf(stderr, "mutate: %s\n", err.msg);
		exit(2);
	}
	add_headers(v);
	add_heap(v, sp);
	space_close(sp);
}

static void change(const struct victim *v, uint8_t *data, uint64_t *rng)
{
	uint64_t r = splitmix(rng);
	int kind = (int)(r % 6);
	struct part p = { 0, v->size };
	uint64_t at, word;

	if (kind < 5 && v->n_parts[kind])
		p = v->parts[kind][(r >> 8) % v->n_parts[kind]];
	at = p.start + (r >> 32) % (p.end - p.start);
	if (splitmix(rng) & 1) {
		data[at] = (uint8_t)splitmix(rng);
		return;
	}
	at &= ~UINT64_C(7);
	if (at + 8 > v->size)
		return;
	memcpy(&word, data + at, 8);
	word = nasty(rng, word);
	memcpy(data + at, &word, splitmix(rng) & 1 ? 8 : 4);
}

/* Mutation number i of a core: the same bytes each time.  Owned by caller. */
static uint8_t *mutate(const struct victim *v, uint64_t i, uint64_t *ret_size)
{
	uint64_t rng = i * UINT64_C(0xd1342543de82ef95) + v->size;
	uint64_t r = splitmix(&rng), n = 1 + (r & 7), size = v->size;
	uint8_t *data = mem_alloc(v->size), *cut;

	memcpy(data, v->data, v->size);
	while (n--)
		change(v, data, &rng);
	if ((r >> 8 & 7) == 0)
		size = splitmix(&rng) % (size + 1);
	else if ((r >> 8 & 7) == 1)
		size = splitmix(&rng) % 16384 % (size + 1);
	/* Of exactly the size, so that sanitizers see its end. */
	cut = mem_alloc(size);
	memcpy(cut, data, size);
	free(data);
	*ret_size = size;
	return cut;
}

/* From now on; 0: for ever. */
static void limit_time(time_t seconds)
{
	const struct itimerval t = { .it_value.tv_sec = seconds };

	setitimer(ITIMER_PROF, &t, NULL);
}

static void run_one(const struct victim *v, uint64_t i, struct report *report)
{
	uint64_t size, start = now_ns(), took;
	uint8_t *data = mutate(v, i, &size);

	report->number = i;
	limit_time(HANG_SECONDS);
	how_much = i % 8 ? USUAL : ALL_OF_IT;
	report->found += check_core(data, size);
	limit_time(0);
	free(data);
	took = now_ns() - start;
	if (took > report->slowest_ns) {
		report->slowest_ns = took;
		report->slowest_number = i;
	}
}

/* A child for [first, last); false if it did not come to its end. */
static bool run_batch(const struct victim *v, uint64_t first, uint64_t last,
		      struct report *report, uint64_t *ret_kb)
{
	struct rusage usage;
	int status;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid < 0)
		exit(2);
	if (!pid) {
		for (uint64_t i = first; i < last; i++)
			run_one(v, i, report);
		_exit(0);
	}
	if (wait4(pid, &status, 0, &usage) != pid)
		exit(2);
	*ret_kb = max_u64(*ret_kb, (uint64_t)usage.ru_maxrss);
	if (!status)
		return true;
	printf("# %s: mutation %" PRIu64 " ends with %s %d\n", v->path,
	       report->number, WIFSIGNALED(status) ? "signal" : "status",
	       WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
	return false;
}

/* The number of failures. */
static unsigned run_victim(const struct victim *v, uint64_t first, uint64_t n,
			   uint64_t max_mb)
{
	struct report *report = mmap(NULL, sizeof(*report),
				     PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	uint64_t kb = 0, i = first, last = first + n;
	unsigned failures = 0;

	if (report == MAP_FAILED)
		exit(2);
	while (i < last && failures < MAX_FAILURES) {
		uint64_t end = min_u64(i + BATCH, last);

		if (run_batch(v, i, end, report, &kb)) {
			i = end;
		} else {
			failures++;
			i = report->number + 1;
		}
	}
	printf("bar: mutated: %" PRIu64 ", %u failed\n", i - first, failures);
	printf("# %s: %" PRIu64 " mutations, a heap in %" PRIu64
	       ", slowest %.2f s (%" PRIu64 "), at most %" PRIu64 " MB\n",
	       v->path, i - first, report->found,
	       (double)report->slowest_ns / 1e9, report->slowest_number,
	       kb / 1024);
	if (max_mb && kb / 1024 > max_mb) {
		printf("# that is more than %" PRIu64 " MB\n", max_mb);
		failures++;
	}
	munmap(report, sizeof(*report));
	return failures;
}

static int write_one(const struct victim *v, uint64_t i, const char *path)
{
	uint64_t size;
	uint8_t *data = mutate(v, i, &size);
	FILE *f = fopen(path, "wb");

	if (!f || fwrite(data, 1, size, f) != size || fclose(f)) {
		perror(path);
		return 2;
	}
	return 0;
}

int main(int argc, char **argv)
{
	uint64_t n = 1000, first = 0, max_mb = 0;
	const char *out = NULL;
	unsigned failures = 0;
	int opt;

	while ((opt = getopt(argc, argv, "n:f:m:o:")) != -1) {
		if (opt == 'o')
			out = optarg;
		else if (opt == '?')
			return 2;
		else
			*(opt == 'n' ? &n : opt == 'f' ? &first : &max_mb) =
				strtoull(optarg, NULL, 10);
	}
	printf("1..%d\n", argc - optind);
	for (int i = optind; i < argc; i++) {
		struct victim v;
		unsigned bad;

		load_victim(&v, argv[i]);
		if (out)
			return write_one(&v, first, out);
		bad = run_victim(&v, first, n, max_mb);
		printf("%sok %d - %s\n", bad ? "not " : "", i - optind + 1,
		       argv[i]);
		failures += bad;
		for (size_t k = 0; k < countof(v.parts); k++)
			free(v.parts[k]);
		free(v.data);
	}
	return failures ? 1 : 0;
}
