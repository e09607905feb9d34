/* SPDX-License-Identifier: MIT */
#include "replay/trace_read.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "base/mem.h"
#include "base/sort.h"
#include "replay/trace_file.h"

enum { BATCH = 1024, LET_GO = 64 << 10, LET_GO_BEHIND = 8 << 20,
	LET_GO_CHUNKS = 64 };

#if defined(__x86_64__)
static __attribute__((target("sse4.2"))) uint32_t
crc_by_instruction(uint64_t crc, const uint8_t *p, size_t n)
{
	for (; n >= 8; p += 8, n -= 8) {
		uint64_t word;

		memcpy(&word, p, 8);
		crc = __builtin_ia32_crc32di(crc, word);
	}
	while (n--)
		crc = __builtin_ia32_crc32qi((uint32_t)crc, *p++);
	return (uint32_t)crc;
}
#endif

uint32_t trace_crc32c(const void *data, size_t n)
{
	static uint32_t table[256];
	const uint8_t *p = data;
	uint32_t crc = ~0u;

#if defined(__x86_64__)
	if (__builtin_cpu_supports("sse4.2"))
		return ~crc_by_instruction(crc, p, n);
#endif
	for (uint32_t i = 0; !table[255] && i < 256; i++) {
		uint32_t x = i;

		for (int bit = 0; bit < 8; bit++)
			x = x >> 1 ^ (x & 1 ? 0x82f63b78u : 0);
		table[i] = x;
	}
	while (n--)
		crc = crc >> 8 ^ table[(crc ^ *p++) & 0xff];
	return ~crc;
}

void trace_complain(struct trace *t, const char *fmt, ...)
{
	va_list ap;

	if (t->damage.first[0])
		return;
	va_start(ap, fmt);
	vsnprintf(t->damage.first, sizeof(t->damage.first), fmt, ap);
	va_end(ap);
}

static bool unpack_payload(struct trace *t, const struct chunk_ref *c,
			   struct bytes *ret, uint8_t **ret_owned)
{
	size_t got;

	if (c->codec != TRACE_ZSTD || c->length > CHUNK_LENGTH_MAX) {
		t->damage.unknown++;
		trace_complain(t, "the chunk at byte %llu is compressed in "
			       "an unknown way",
			       (unsigned long long)c->offset);
		return false;
	}
	*ret_owned = mem_alloc((size_t)c->length + TRACE_SLACK);
	memset(*ret_owned + c->length, 0, TRACE_SLACK);
	got = ZSTD_decompress(*ret_owned, c->length, t->map + c->offset,
			      c->stored);
	if (ZSTD_isError(got) || got != c->length) {
		free(*ret_owned);
		*ret_owned = NULL;
		t->damage.chunks++;
		trace_complain(t, "the chunk at byte %llu does not "
			       "decompress", (unsigned long long)c->offset);
		return false;
	}
	*ret = (struct bytes){ *ret_owned, *ret_owned + got, false };
	return true;
}

bool trace_payload(struct trace *t, const struct chunk_ref *c,
		   struct bytes *ret, uint8_t **ret_owned)
{
	const uint8_t *p = t->map + c->offset;

	*ret_owned = NULL;
	if (!c->open && !c->cut && trace_crc32c(p, c->stored) != c->crc) {
		t->damage.chunks++;
		trace_complain(t, "the chunk at byte %llu has a wrong "
			       "checksum", (unsigned long long)c->offset);
		return false;
	}
	if (c->codec != TRACE_PLAIN)
		return unpack_payload(t, c, ret, ret_owned);
	*ret = (struct bytes){ p, p + c->stored, false };
	return true;
}

/*
 * The kernel brings in pages by groups of 64 KiB: all of those that touch the
 * range.  One that is wanted again comes from the page cache.
 */
void trace_let_go(const struct trace *t, uint64_t from, uint64_t to)
{
	from -= from % LET_GO;
	to = min_u64(round_up(to, LET_GO), t->size);
	if (from < to)
		madvise((void *)(uintptr_t)(t->map + from), to - from,
			MADV_DONTNEED);
}

static bool chunk_at(const struct trace *t, uint64_t at,
		     struct trace_chunk *ret)
{
	if (at > t->size || t->size - at < TRACE_CHUNK_SIZE)
		return false;
	memcpy(ret, t->map + at, sizeof(*ret));
	return ret->magic == TRACE_CHUNK_MAGIC &&
	       ret->header_crc == trace_crc32c(ret, offsetof(struct
						trace_chunk, header_crc));
}

/* The next place where a chunk's header holds; the end if there is none. */
static uint64_t search(const struct trace *t, uint64_t at)
{
	struct trace_chunk h;
	uint32_t magic;

	for (; at < t->size && t->size - at >= TRACE_CHUNK_SIZE;
	     at += TRACE_CHUNK_ALIGN) {
		if (at % LET_GO_BEHIND < TRACE_CHUNK_ALIGN)
			trace_let_go(t, at - min_u64(at, LET_GO_BEHIND), at);
		memcpy(&magic, t->map + at, sizeof(magic));
		if (magic == TRACE_CHUNK_MAGIC && chunk_at(t, at, &h))
			return at;
	}
	return t->size;
}

static void add_chunk(struct trace *t, uint64_t at,
		      const struct trace_chunk *h)
{
	uint64_t left = t->size - at - TRACE_CHUNK_SIZE;
	struct chunk_ref c = {
		.offset = at + TRACE_CHUNK_SIZE, .tick = h->tick,
		.stored = (uint32_t)min_u64(h->stored, left),
		.length = h->length, .stream = h->stream,
		.sequence = h->sequence, .crc = h->crc, .type = h->type,
		.codec = h->codec, .open = h->flags & TRACE_OPEN,
		.cut = h->stored > left,
	};

	if (c.cut) {
		t->damage.cut = true;
		trace_complain(t, "it ends inside the chunk at byte %llu",
			       (unsigned long long)at);
	}
	if (!h->type || h->type == TRACE_INDEX || h->type >= TRACE_TYPES) {
		t->damage.unknown += h->type != TRACE_INDEX &&
				     !(h->flags & TRACE_MAY_SKIP);
		return;
	}
	/* What an open chunk has no end for, has one where the file ends. */
	c.open |= c.cut;
	t->info.n_open += (h->flags & TRACE_OPEN) != 0;
	MEM_PUSH(t->chunks, t->n_chunks, t->cap_chunks) = c;
}

static void find_chunks(struct trace *t, uint64_t at)
{
	while (at < t->size) {
		struct trace_chunk h;
		uint64_t size;

		if (!chunk_at(t, at, &h)) {
			uint64_t next = search(t, round_up(at + 1,
						TRACE_CHUNK_ALIGN));

			t->damage.headers += next - at;
			trace_complain(t, "no chunk begins at byte %llu",
				       (unsigned long long)at);
			at = next;
			continue;
		}
		add_chunk(t, at, &h);
		if (t->n_chunks % LET_GO_CHUNKS == 0)
			trace_let_go(t, 0, at);
		size = TRACE_CHUNK_SIZE + (uint64_t)h.stored;
		if (h.room >= size)
			size = h.room;
		at = round_up(at + size, TRACE_CHUNK_ALIGN);
	}
}

static const struct trace *sorting;

static int by_stream(const void *a, const void *b)
{
	uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
	const struct chunk_ref *x = &sorting->chunks[i];
	const struct chunk_ref *y = &sorting->chunks[k];

	return ORDER(x->type, y->type) ?:
	       ORDER(x->stream, y->stream) ?:
	       ORDER(i, k);
}

static void add_stream(struct trace *t, const uint32_t *chunks, size_t n,
		       size_t *cap)
{
	const struct chunk_ref *c = &t->chunks[chunks[0]];
	struct stream s = {
		.id = c->stream, .type = c->type, .chunks = chunks,
		.n_chunks = n, .tick = c->tick, .thread = NO_THREAD,
	};

	for (size_t i = 1; i < n; i++)
		if (t->chunks[chunks[i]].sequence !=
		    t->chunks[chunks[i - 1]].sequence + 1) {
			t->damage.chunks++;
			trace_complain(t, "chunks of stream %u are missing",
				       c->stream);
		}
	MEM_PUSH(t->streams, t->n_streams, *cap) = s;
}

/* Chunks of events, those of a stream together. */
static void find_streams(struct trace *t)
{
	size_t n = 0, cap = 0;
	size_t start = 0;

	t->order = mem_alloc((t->n_chunks + 1) * sizeof(*t->order));
	for (size_t i = 0; i < t->n_chunks; i++)
		if (t->chunks[i].type <= TRACE_PACKED)
			t->order[n++] = (uint32_t)i;
	sorting = t;
	SORT(t->order, n, by_stream);
	for (size_t i = 1; i <= n; i++) {
		const struct chunk_ref *c = &t->chunks[t->order[start]];
		const struct chunk_ref *d = i < n ?
			&t->chunks[t->order[i]] : NULL;

		if (d && c->type == d->type && c->stream == d->stream)
			continue;
		add_stream(t, t->order + start, i - start, &cap);
		start = i;
	}
	t->info.n_streams = t->n_streams;
	t->heap = mem_alloc((t->n_streams + 1) * sizeof(*t->heap));
	t->batch = mem_alloc(BATCH * sizeof(*t->batch));
}

/* Ticks a second: no clock is slower than one or faster than a terahertz. */
static double sane_rate(double rate)
{
	return rate >= 1 && rate <= 1e12 ? rate : 1e9;
}

static bool read_header(struct trace *t, uint64_t *ret_first,
			struct err *err)
{
	struct trace_file_header h;
	uint64_t size;

	if (t->size < sizeof(h) ||
	    memcmp(t->map, TRACE_MAGIC, TRACE_MAGIC_SIZE)) {
		err_set(err, ERR_FORMAT, "%s: not a trace", t->name);
		return err_hint(err, "heapcore trace convert reads what "
				"heaptrack, memtrace or mtrace wrote.");
	}
	memcpy(&h, t->map, sizeof(h));
	if (h.major != TRACE_MAJOR)
		return err_set(err, ERR_UNSUPPORTED, "%s: a trace of version "
			       "%u; this program reads version %d", t->name,
			       h.major, TRACE_MAJOR);
	if (h.crc != trace_crc32c(&h, offsetof(struct trace_file_header,
					       crc)))
		trace_complain(t, "the header has a wrong checksum");
	size = max_u64(h.header_size, h.first_chunk);
	*ret_first = size >= sizeof(h) && size <= t->size ? size : sizeof(h);
	t->shift = h.tick_shift < 32 ? h.tick_shift : 0;
	t->info.flags = h.flags;
	t->info.pid = h.pid;
	t->info.page_size = h.page_size;
	t->info.machine = h.machine;
	t->info.start_ns = h.start_ns;
	t->info.ticks_per_s = sane_rate((double)h.ticks_per_s);
	return true;
}

/* The tick that is 0 s, and how long one takes. */
static void set_clock(struct trace *t)
{
	struct trace_info *info = &t->info;
	const struct trace_row *a = info->clocks.rows;
	const struct trace_row *b = info->clocks.n ? a + info->clocks.n - 1
						   : a;

	info->first_tick = info->clocks.n ? a->tick : UINT64_MAX;
	for (size_t i = 0; i < t->n_streams; i++)
		info->first_tick = min_u64(info->first_tick,
					   t->streams[i].tick);
	if (info->first_tick == UINT64_MAX)
		info->first_tick = 0;
	/* Less than a millisecond says less than the header. */
	if (info->clocks.n > 1 && b->tick > a->tick &&
	    b->value[0] > a->value[0] + 1000000)
		info->ticks_per_s =
			sane_rate((double)(b->tick - a->tick) * 1e9 /
				  (double)(b->value[0] - a->value[0]));
}

static void fill_info(struct trace *t)
{
	struct trace_info *info = &t->info;

	info->path = t->name;
	info->file_size = t->size;
	info->n_chunks = t->n_chunks;
	info->n_stacks = t->n_leaves ? (uint32_t)(t->n_leaves - 1) : 0;
	info->meta = t->meta;
	info->modules = t->modules;
	info->threads = t->threads;
	info->marks = t->marks;
	info->names = t->names;
	info->clocks.rows = t->clocks;
	info->rss.rows = t->rss;
	info->gcs.rows = t->gcs;
	info->lost.rows = t->lost;
	info->ends.rows = t->ends;
	for (size_t i = 0; i < info->lost.n; i++)
		if (t->lost[i].value[1] != TRACE_LOST_STACKS)
			t->damage.lost += t->lost[i].value[0];
	set_clock(t);
}

static bool load(struct trace *t, int fd, struct err *err)
{
	struct stat st;
	uint64_t first = 0;
	void *map;

	if (fstat(fd, &st))
		return err_system(err, "%s", t->name);
	if (!S_ISREG(st.st_mode))
		return err_set(err, ERR_FORMAT, "%s: not a file", t->name);
	if (!st.st_size)
		return err_set(err, ERR_FORMAT, "%s: not a trace: it is "
			       "empty", t->name);
	map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (map == MAP_FAILED)
		return err_system(err, "%s", t->name);
	t->map = map;
	t->size = (size_t)st.st_size;
	if (!read_header(t, &first, err))
		return false;
	find_chunks(t, first);
	for (size_t i = 0; i < t->n_chunks; i++)
		if (t->chunks[i].type == TRACE_LOG)
			trace_load_log(t, &t->chunks[i]);
		else if (t->chunks[i].type == TRACE_STACKS)
			trace_load_stacks(t, &t->chunks[i]);
		else if (t->chunks[i].type == TRACE_COUNTS)
			trace_load_counts(t, &t->chunks[i]);
	trace_let_go(t, 0, t->size);
	find_streams(t);
	fill_info(t);
	t->at_open = t->damage;
	return true;
}

struct trace *trace_open_fd(int fd, const char *name, struct err *err)
{
	struct trace *t = mem_zalloc(sizeof(*t));
	bool ok;

	t->name = mem_strdup(name);
	ok = load(t, fd, err);
	close(fd);
	if (!ok) {
		trace_close(t);
		return NULL;
	}
	return t;
}

struct trace *trace_open(const char *path, struct err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0) {
		err_system(err, "%s", path);
		return NULL;
	}
	return trace_open_fd(fd, path, err);
}

void trace_close(struct trace *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->n_streams; i++)
		trace_stream_reset(&t->streams[i]);
	for (size_t i = 0; i < t->n_texts; i++)
		free(t->texts[i]);
	if (t->map)
		munmap((void *)(uintptr_t)t->map, t->size);
	free(t->texts);
	free(t->chunks);
	free(t->order);
	free(t->streams);
	free(t->heap);
	free(t->batch);
	free(t->nodes);
	free(t->leaves);
	free(t->meta);
	free(t->modules);
	free(t->threads);
	free(t->marks);
	free(t->names);
	free(t->clocks);
	free(t->rss);
	free(t->gcs);
	free(t->lost);
	free(t->ends);
	map_fini(&t->thread_numbers);
	free(t->name);
	free(t);
}

/* The order of events: tick, frees first, lower stream. */
struct key {
	uint64_t tick;
	uint64_t rest;
};

static struct key key_of(const struct trace *t, uint32_t stream)
{
	const struct stream *s = &t->streams[stream];

	/* Not begun: its chunk has nothing earlier. */
	if (s->at == s->n)
		return (struct key){ s->tick, stream };
	return (struct key){ s->events[s->at].tick,
			     (uint64_t)!trace_is_free(s->events[s->at].kind)
			     << 32 | stream };
}

static bool key_less(struct key a, struct key b)
{
	return a.tick < b.tick || (a.tick == b.tick && a.rest < b.rest);
}

static void sift_down(struct trace *t, size_t i)
{
	uint32_t stream = t->heap[i];
	struct key key = key_of(t, stream);

	for (;;) {
		size_t child = 2 * i + 1;

		if (child >= t->n_heap)
			break;
		if (child + 1 < t->n_heap &&
		    key_less(key_of(t, t->heap[child + 1]),
			     key_of(t, t->heap[child])))
			child++;
		if (!key_less(key_of(t, t->heap[child]), key))
			break;
		t->heap[i] = t->heap[child];
		i = child;
	}
	t->heap[i] = stream;
}

static void begin_merge(struct trace *t)
{
	t->damage = t->at_open;
	t->n_heap = t->n_streams;
	for (size_t i = 0; i < t->n_heap; i++)
		t->heap[i] = (uint32_t)i;
	for (size_t i = t->n_heap; i-- > 0;)
		sift_down(t, i);
	t->merging = true;
}

/* The first stream's buffer is empty: more, or out with it. */
static void refill_first(struct trace *t)
{
	if (!trace_fill(t, &t->streams[t->heap[0]]))
		t->heap[0] = t->heap[--t->n_heap];
	if (t->n_heap)
		sift_down(t, 0);
}

/* What comes after the first stream's turn. */
static struct key second_key(const struct trace *t)
{
	struct key second = { UINT64_MAX, UINT64_MAX };

	for (size_t i = 1; i < 3 && i < t->n_heap; i++) {
		struct key k = key_of(t, t->heap[i]);

		if (key_less(k, second))
			second = k;
	}
	return second;
}

size_t trace_read(struct trace *t, const struct trace_event **ret)
{
	size_t n = 0;

	if (!t->merging)
		begin_merge(t);
	while (n < BATCH && t->n_heap) {
		uint32_t id = t->heap[0];
		struct stream *s = &t->streams[id];
		struct key second;

		if (s->at == s->n) {
			/* All that one buffer holds goes as it is. */
			refill_first(t);
			continue;
		}
		if (t->n_heap == 1 && !n) {
			*ret = s->events + s->at;
			n = s->n - s->at;
			s->at = s->n;
			return n;
		}
		second = second_key(t);
		do
			t->batch[n++] = s->events[s->at++];
		while (n < BATCH && s->at < s->n &&
		       key_less(key_of(t, id), second));
		if (s->at < s->n)
			sift_down(t, 0);
		else if (n < BATCH)
			refill_first(t);
	}
	*ret = t->batch;
	return n;
}

void trace_rewind(struct trace *t)
{
	t->merging = false;
	t->position = 0;
	for (size_t i = 0; i < t->n_streams; i++) {
		struct stream *s = &t->streams[i];

		trace_stream_reset(s);
		s->next_chunk = 0;
		s->thread = NO_THREAD;
		s->tick = t->chunks[s->chunks[0]].tick;
	}
}

const struct trace_info *trace_info(const struct trace *t)
{
	return &t->info;
}

const struct trace_damage *trace_damage(const struct trace *t)
{
	return &t->damage;
}

uint64_t trace_position(const struct trace *t)
{
	return t->position;
}

const vaddr *trace_stack(struct trace *t, uint32_t stack, size_t *ret_n)
{
	uint32_t node = stack < t->n_leaves ? t->leaves[stack] : 0;
	size_t n = 0;

	/* A node's parent is older: no loop, and no more than were added. */
	for (; node && n < TRACE_DEPTH_MAX; node = t->nodes[node].parent)
		t->frames[n++] = t->nodes[node].addr;
	*ret_n = n;
	return t->frames;
}

uint64_t trace_ns(const struct trace *t, uint64_t tick)
{
	double ns;

	if (tick <= t->info.first_tick)
		return 0;
	ns = (double)(tick - t->info.first_tick) * 1e9 / t->info.ticks_per_s;
	/* A damaged header can make them last longer than the world. */
	return ns < 0x1p63 ? (uint64_t)ns : INT64_MAX;
}

static bool module_holds(const struct trace_module *m, vaddr addr)
{
	for (size_t i = 0; i < m->n_segments; i++)
		if (addr - m->bias - m->segments[i].vaddr <
		    m->segments[i].memsz)
			return true;
	return false;
}

/* The youngest that was there at tick; else the first that came later. */
const struct trace_module *trace_module_at(const struct trace *t, vaddr addr,
					   uint64_t tick)
{
	const struct trace_module *best = NULL;

	for (size_t i = 0; i < t->info.n_modules; i++) {
		const struct trace_module *m = &t->modules[i];

		if (!module_holds(m, addr))
			continue;
		if (!best || m->tick <= tick)
			best = m;
	}
	return best;
}

const char *trace_meta_value(const struct trace *t, const char *key)
{
	for (size_t i = t->info.n_meta; i; i--)
		if (!strcmp(t->meta[i - 1].key.text, key))
			return t->meta[i - 1].value.text;
	return NULL;
}

bool trace_verify(struct trace *t, uint64_t *ret_events)
{
	const struct trace_event *events;
	size_t n;

	*ret_events = 0;
	trace_rewind(t);
	while ((n = trace_read(t, &events)))
		*ret_events += n;
	trace_rewind(t);
	return !t->damage.first[0];
}

const char *trace_kind_name(unsigned kind)
{
	static const char *const names[] = {
		[TRACE_MALLOC] = "malloc", [TRACE_CALLOC] = "calloc",
		[TRACE_FREE] = "free", [TRACE_ALIGNED] = "aligned",
		[TRACE_REALLOC_SAME] = "realloc",
		[TRACE_REALLOC_OLD] = "realloc-from",
		[TRACE_REALLOC_NEW] = "realloc-to",
		[TRACE_FREE_SIZED] = "free-sized",
		[TRACE_SAMPLE] = "sample", [TRACE_MAP] = "map",
		[TRACE_UNMAP] = "unmap",
	};

	return kind < countof(names) && names[kind] ? names[kind] : "unknown";
}
