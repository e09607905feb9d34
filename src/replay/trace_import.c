/* SPDX-License-Identifier: MIT */
#include "replay/trace_import.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "replay/trace_import_file.h"

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Words end at a blank; false at the line's end. */
bool line_word(struct line *l, const char **ret, size_t *ret_n)
{
	const char *start;

	while (l->p < l->end && (*l->p == ' ' || *l->p == '\t'))
		l->p++;
	start = l->p;
	while (l->p < l->end && *l->p != ' ' && *l->p != '\t')
		l->p++;
	*ret = start;
	*ret_n = (size_t)(l->p - start);
	return *ret_n != 0;
}

static int hex_digit(char c)
{
	if (is_digit(c))
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

/* A number in hex, 0x or not, that is the whole word. */
bool line_hex(struct line *l, uint64_t *ret)
{
	uint64_t value = 0;
	const char *word;
	size_t n;

	if (!line_word(l, &word, &n))
		return false;
	if (n > 2 && word[0] == '0' && (word[1] == 'x' || word[1] == 'X')) {
		word += 2;
		n -= 2;
	}
	if (n > 16)
		return false;
	for (size_t i = 0; i < n; i++) {
		int digit = hex_digit(word[i]);

		if (digit < 0)
			return false;
		value = value << 4 | (unsigned)digit;
	}
	*ret = value;
	return true;
}

bool import_line(struct import *im, struct line *ret)
{
	const char *newline;

	if (im->p == im->end)
		return false;
	newline = memchr(im->p, '\n', (size_t)(im->end - im->p));
	ret->p = im->p;
	ret->end = newline ? newline : im->end;
	im->p = newline ? newline + 1 : im->end;
	if (ret->end > ret->p && ret->end[-1] == '\r')
		ret->end--;
	im->line++;
	return true;
}

void import_bad(struct import *im)
{
	if (!im->in->bad++)
		im->in->first_bad = im->line;
}

/*
 * Ticks are nanoseconds.  Formats with coarse time, or none, get one more for
 * each event, so that their order stays.
 */
void import_event(struct import *im, unsigned kind, vaddr addr,
		  uint64_t size, uint32_t stack)
{
	struct trace_event e = {
		.kind = (uint8_t)kind, .addr = addr, .size = size,
		.stack = stack, .tick = im->tick++, .thread = im->thread,
	};

	trace_writer_event(im->out, &e);
	im->events++;
}

void import_sample(struct import *im, const struct trace_event *e)
{
	struct trace_event copy = *e;

	copy.tick = im->tick++;
	copy.thread = im->thread;
	trace_writer_event(im->out, &copy);
	im->events++;
}

void import_time(struct import *im, uint64_t ns)
{
	im->tick = max_u64(im->tick, ns);
}

/* A stack of one frame. */
static uint32_t import_site(struct import *im, vaddr addr)
{
	uint64_t known = objects_find(&im->sites, addr);

	if (!known) {
		known = trace_writer_stack(im->out, &addr, 1);
		objects_put(&im->sites, addr, known);
	}
	return (uint32_t)known;
}

/*
 * mtrace: "./prog:(main+0x10)[0x401136]".  A name may hold blanks: up to the
 * word that ends in ']'.
 */
static uint32_t mtrace_site(struct import *im, struct line *l)
{
	const char *word, *open;
	size_t n;
	struct line inner;
	uint64_t addr;

	do {
		if (!line_word(l, &word, &n))
			return 0;
	} while (word[n - 1] != ']');
	open = memrchr(word, '[', n);
	if (!open)
		return 0;
	inner = (struct line){ open + 1, word + n - 1 };
	return line_hex(&inner, &addr) ? import_site(im, addr) : 0;
}

static bool mtrace_event(struct import *im, const char *op, size_t n,
			 struct line *l, uint32_t site)
{
	uint64_t addr, size = 0;

	if (n != 1 || !line_hex(l, &addr))
		return false;
	switch (*op) {
	case '+':
		if (!line_hex(l, &size))
			return false;
		import_event(im, TRACE_MALLOC, addr, size, site);
		return true;
	case '-':
		import_event(im, TRACE_FREE, addr, 0, 0);
		return true;
	case '<':
		im->realloc_from = addr;
		return true;
	case '>':
		if (!line_hex(l, &size))
			return false;
		import_event(im, TRACE_REALLOC_OLD, im->realloc_from, 0, 0);
		import_event(im, TRACE_REALLOC_NEW, addr, size, site);
		return true;
	case '!':
		/* A realloc that failed: the old block stays. */
		return true;
	}
	return false;
}

static void import_mtrace(struct import *im)
{
	struct line l;

	while (import_line(im, &l)) {
		const char *word;
		size_t n;
		uint32_t site = 0;

		if (!line_word(&l, &word, &n) || *word == '=')
			continue;
		if (n == 1 && *word == '@') {
			site = mtrace_site(im, &l);
			if (!line_word(&l, &word, &n)) {
				import_bad(im);
				continue;
			}
		}
		if (!mtrace_event(im, word, n, &l, site))
			import_bad(im);
	}
}

/* A number of a CSV: decimal, or hex with 0x. */
static bool csv_number(struct line *l, uint64_t *ret)
{
	char text[32];
	const char *comma = memchr(l->p, ',', (size_t)(l->end - l->p));
	size_t n = (size_t)((comma ? comma : l->end) - l->p);
	char *end;

	if (!n || n >= sizeof(text))
		return false;
	memcpy(text, l->p, n);
	text[n] = '\0';
	l->p = comma ? comma + 1 : l->end;
	*ret = strtoull(text, &end, 0);
	return is_digit(text[0]) && !*end;
}

static const struct {
	const char *word;
	enum trace_kind kind;
} csv_kinds[] = {
	{ "malloc", TRACE_MALLOC }, { "alloc", TRACE_MALLOC },
	{ "calloc", TRACE_CALLOC }, { "free", TRACE_FREE },
	{ "realloc", TRACE_REALLOC_SAME },
	{ "realloc-from", TRACE_REALLOC_OLD },
	{ "realloc-to", TRACE_REALLOC_NEW },
};

static unsigned csv_kind(struct line *l)
{
	const char *comma = memchr(l->p, ',', (size_t)(l->end - l->p));
	size_t n = comma ? (size_t)(comma - l->p) : 0;

	for (size_t i = 0; i < countof(csv_kinds); i++)
		if (strlen(csv_kinds[i].word) == n &&
		    !memcmp(l->p, csv_kinds[i].word, n)) {
			l->p = comma + 1;
			return csv_kinds[i].kind;
		}
	return 0;
}

static void csv_thread(struct import *im, uint64_t tid)
{
	uint64_t known = objects_find(&im->threads, tid);

	if (!known) {
		struct trace_thread t = { tid, im->tick, { "", 0 }, 0 };

		trace_writer_thread(im->out, &t);
		known = ++im->n_threads;
		objects_put(&im->threads, tid, known);
	}
	im->thread = (uint32_t)known - 1;
}

static void import_csv(struct import *im)
{
	struct line l;

	while (import_line(im, &l)) {
		unsigned kind = csv_kind(&l);
		uint64_t addr, size = 0, tid = 0, ns;

		/* The first line may be headings. */
		if (l.p == l.end || (!kind && im->line == 1))
			continue;
		if (!kind || !csv_number(&l, &addr) ||
		    (l.p < l.end && *l.p != ',' && !csv_number(&l, &size))) {
			import_bad(im);
			continue;
		}
		if (l.p < l.end && *l.p == ',')
			l.p++;
		if (l.p < l.end && csv_number(&l, &tid) && l.p < l.end &&
		    csv_number(&l, &ns))
			import_time(im, ns);
		csv_thread(im, tid);
		import_event(im, kind, addr, size, 0);
	}
}

static bool starts_with(const struct import *im, const char *text)
{
	size_t n = strlen(text);

	return (size_t)(im->end - im->p) >= n && !memcmp(im->p, text, n);
}

static const struct {
	const char *name, *start;
	void (*run)(struct import *im);
	bool own_threads;
	bool sampled;
} formats[] = {
	{ "heaptrack", "v ", import_heaptrack, false, false },
	{ "memtrace", "\xc1\x1f\xfc\xc1", import_memtrace, false, true },
	{ "mtrace", "= Start", import_mtrace, false, false },
	{ "mtrace", "@ ", import_mtrace, false, false },
	{ "CSV", "op,", import_csv, true, false },
	{ "CSV", "malloc,", import_csv, true, false },
	{ "CSV", "calloc,", import_csv, true, false },
};

static bool run(struct import *im, size_t format, const char *out,
		bool force, struct err *err)
{
	struct trace_head head = { .page_size = 4096 };
	const struct trace_thread only = { 0, 0, { "", 0 }, 0 };
	struct trace_row end = { 0, { TRACE_END_IMPORT, 0, 0, 0 } };

	head.flags = formats[format].sampled ? TRACE_SAMPLED : 0;
	im->out = trace_writer_new(out, force, &head, err);
	if (!im->out)
		return false;
	im->in->format = formats[format].name;
	trace_writer_meta(im->out, "imported", formats[format].name,
			  strlen(formats[format].name));
	if (!formats[format].own_threads)
		trace_writer_thread(im->out, &only);
	formats[format].run(im);
	end.tick = im->tick;
	trace_writer_row(im->out, TRACE_LOG_END, &end, 2);
	return trace_writer_close(im->out, err);
}

static bool detect(struct import *im, size_t *ret, struct err *err)
{
	for (size_t i = 0; i < countof(formats); i++)
		if (starts_with(im, formats[i].start)) {
			*ret = i;
			return true;
		}
	err_set(err, ERR_FORMAT, "%s: of no known format; looked for "
		"heaptrack, memtrace, mtrace, CSV", im->in->path);
	return starts_with(im, TRACE_MAGIC) ?
		err_hint(err, "It is a trace already.") : false;
}

bool trace_import(int fd, struct trace_import *in, const char *out,
		  bool force, uint64_t *ret_events, struct err *err)
{
	struct import im = { .in = in };
	struct stat st;
	void *map = MAP_FAILED;
	size_t format = 0;
	bool ok;

	in->bad = in->first_bad = 0;
	if (!fstat(fd, &st) && st.st_size)
		map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE,
			   fd, 0);
	close(fd);
	if (map == MAP_FAILED)
		return err_set(err, ERR_FORMAT, "%s: cannot be read, or is "
			       "empty", in->path);
	im.p = map;
	im.end = im.p + st.st_size;
	objects_init(&im.sites);
	objects_init(&im.threads);
	ok = detect(&im, &format, err) && run(&im, format, out, force, err);
	objects_fini(&im.sites);
	objects_fini(&im.threads);
	munmap(map, (size_t)st.st_size);
	*ret_events = im.events;
	return ok;
}
