/* SPDX-License-Identifier: MIT */
/*
 * The recorder's file: chunks are taken from its end and mapped, one after the
 * other.  Their blocks are allocated before they are mapped, since a store
 * into a hole of a full disk would be a SIGBUS of the program.
 *
 * Programs close descriptors that are not theirs.  Ours is a high number, and
 * is compared with what was opened before each use.
 */
#include "replay/recorder.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

enum {
	LOG_ROOM = 64 << 10,
	LOG_RESERVE = 64,	/* for the last words */
	ROOM_LEAST = 16 << 10,
	FD_FLOOR = 900,
};

static bool same_file(int fd)
{
	struct stat st;

	return !fstat(fd, &st) && st.st_dev == rec.file_dev &&
	       st.st_ino == rec.file_ino;
}

/* Out of the way of programs that expect the next number to be 3. */
static int move_up(int fd)
{
	struct rlimit limit;
	int floor = FD_FLOOR;
	int high;

	if (!getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_cur <= FD_FLOOR)
		floor = (int)limit.rlim_cur - 1;
	high = (int)syscall(SYS_fcntl, fd, F_DUPFD_CLOEXEC, floor);
	if (high < 0)
		return fd;
	syscall(SYS_close, fd);
	return high;
}

static bool check_fd(void)
{
	long fd;

	if (rec.fd >= 0 && same_file(rec.fd))
		return true;
	fd = syscall(SYS_openat, AT_FDCWD, rec.path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return false;
	rec.fd = move_up((int)fd);
	return same_file(rec.fd);
}

static bool write_all(const void *data, size_t n, uint64_t offset)
{
	const char *p = data;

	while (n) {
		long put = syscall(SYS_pwrite64, rec.fd, p, n, offset);

		if (put < 0 && errno == EINTR)
			continue;
		if (put <= 0)
			return false;
		p += put;
		n -= (size_t)put;
		offset += (uint64_t)put;
	}
	return true;
}

/* Blocks for all of it; by hand where the file system has no fallocate. */
static bool extend(uint64_t offset, uint64_t size)
{
	char zeros[REC_TEXT] = { 0 };

	while (syscall(SYS_fallocate, rec.fd, 0, offset, size)) {
		if (errno == EINTR)
			continue;
		if (errno != EOPNOTSUPP && errno != ENOSYS)
			return false;
		for (uint64_t done = 0; done < size; done += sizeof(zeros))
			if (!write_all(zeros, sizeof(zeros), offset + done))
				return false;
		break;
	}
	return true;
}

/* Going past this limit would not only fail but be a signal. */
static bool over_limit(uint64_t end)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_FSIZE, &limit) || end <= limit.rlim_cur)
		return false;
	errno = EFBIG;
	return true;
}

static void fill_header(struct trace_file_header *h)
{
	memcpy(h->magic, TRACE_MAGIC, TRACE_MAGIC_SIZE);
	h->major = TRACE_MAJOR;
	h->minor = TRACE_MINOR;
	h->header_size = TRACE_HEADER_SIZE;
	h->flags = rec.rate ? TRACE_SAMPLED : 0;
	h->pid = (uint32_t)rec.pid;
	h->page_size = (uint32_t)sysconf(_SC_PAGESIZE);
	h->start_ns = rec_clock_ns(CLOCK_REALTIME);
	h->ticks_per_s = rec.ticks_per_s;
	h->pointer_size = sizeof(void *);
	h->tick_shift = (uint8_t)rec.shift;
#if defined(__x86_64__)
	h->machine = 62;
#elif defined(__aarch64__)
	h->machine = 183;
#endif
	h->first_chunk = TRACE_OPEN_ALIGN;
	h->crc = rec_crc32c(h, offsetof(struct trace_file_header, crc));
}

/*
 * fresh: the file must not be there.  Otherwise it must be empty; that is how
 * the parent hands one over.
 */
bool rec_file_open(const char *path, bool fresh)
{
	struct trace_file_header h = { .pid = 0 };
	struct stat st;
	int flags = fresh ? O_CREAT | O_EXCL | O_NOFOLLOW : 0;
	long fd = syscall(SYS_openat, AT_FDCWD, path,
			  O_RDWR | O_CLOEXEC | flags, 0600);

	if (fd < 0)
		return false;
	if (fstat((int)fd, &st) || st.st_size || !S_ISREG(st.st_mode)) {
		syscall(SYS_close, fd);
		errno = EEXIST;
		return false;
	}
	rec.fd = move_up((int)fd);
	rec.file_dev = st.st_dev;
	rec.file_ino = st.st_ino;
	rec.file_end = TRACE_OPEN_ALIGN;
	fill_header(&h);
	return !over_limit(TRACE_OPEN_ALIGN) && extend(0, TRACE_OPEN_ALIGN) &&
	       write_all(&h, sizeof(h), 0);
}

/* Room at the file's end; less than asked for where there is not as much. */
static bool take_room(uint32_t *room)
{
	for (;; *room /= 4) {
		bool last = *room <= ROOM_LEAST;

		if (rec.max && rec.file_end + *room > rec.max) {
			if (!last)
				continue;
			rec_stop(TRACE_END_MAX, rec.max);
			return false;
		}
		if (!over_limit(rec.file_end + *room) && check_fd() &&
		    extend(rec.file_end, *room))
			return true;
		if (last) {
			rec_stop(TRACE_END_FULL, (uint64_t)errno);
			return false;
		}
	}
}

/* The next chunk of a kind; what was there before is whole as it is. */
bool rec_chunk_next(struct rec_chunk *c, unsigned type, uint32_t stream,
		    uint64_t tick, uint32_t room)
{
	struct trace_chunk head = {
		.magic = TRACE_CHUNK_MAGIC, .type = (uint8_t)type,
		.stream = stream,
		.flags = TRACE_OPEN | (type == TRACE_COUNTS ? TRACE_MAY_SKIP :
				       0),
		.sequence = c->sequence, .tick = tick,
	};
	uint8_t *map;

	if (!take_room(&room))
		return false;
	head.room = room;
	head.stored = room - TRACE_CHUNK_SIZE;
	map = (uint8_t *)syscall(SYS_mmap, NULL, room, PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_POPULATE, rec.fd,
				 rec.file_end);
	if (map == MAP_FAILED) {
		rec_stop(TRACE_END_FULL, (uint64_t)errno);
		return false;
	}
	head.header_crc = rec_crc32c(&head, offsetof(struct trace_chunk,
						     header_crc));
	memcpy(map, &head, sizeof(head));
	rec.file_end += room;
	rec_unmap(c->map, c->room);
	c->map = map;
	c->room = room;
	c->sequence++;
	c->at = map + TRACE_CHUNK_SIZE;
	c->end = map + room - TRACE_RECORD_MAX;
	return true;
}

uint8_t *rec_put_text(uint8_t *p, const char *text, size_t n)
{
	p = rec_put(p, n);
	memcpy(p, text, n);
	return p + n;
}

static void log_write(unsigned tag, const void *payload, size_t n)
{
	uint8_t *start = rec.log.at;
	uint8_t *p = rec_put(start + 1, n);

	memcpy(p, payload, n);
	rec.log.at = p + n;
	rec_commit(start, (uint8_t)tag);
}

/* What is larger than a chunk's room is left out. */
void rec_log(unsigned tag, const void *payload, size_t n)
{
	size_t need = n + 8 + LOG_RESERVE;

	if (!*rec_live || need > LOG_ROOM / 2)
		return;
	if ((!rec.log.map || rec.log.at + need > rec.log.end) &&
	    !rec_chunk_next(&rec.log, TRACE_LOG, 0, 0, LOG_ROOM))
		return;
	log_write(tag, payload, n);
}

void rec_log_meta(const char *key, const char *value, size_t n)
{
	uint8_t payload[REC_TEXT + 64];
	uint8_t *p = payload;

	if (n > REC_TEXT)
		n = REC_TEXT;
	p = rec_put_text(p, key, strlen(key));
	p = rec_put_text(p, value, n);
	rec_log(TRACE_LOG_META, payload, (size_t)(p - payload));
}

/*
 * No more events: the live word falls, and the log says why.  Writers keep
 * what they have; what is in their chunks is whole.
 */
void rec_stop(unsigned why, uint64_t value)
{
	uint8_t payload[32];
	uint8_t *p = payload;

	if (!*rec_live)
		return;
	*rec_live = 0;
	rec_sample_stop();
	p = rec_put(p, rec_tick());
	p = rec_put(p, why);
	p = rec_put(p, value);
	if (rec.log.map && rec.log.at + sizeof(payload) <= rec.log.end)
		log_write(TRACE_LOG_END, payload, (size_t)(p - payload));
}

void rec_log_clock(void)
{
	uint8_t payload[32];
	uint8_t *p = payload;

	p = rec_put(p, rec_tick());
	p = rec_put(p, rec_clock_ns(CLOCK_MONOTONIC));
	p = rec_put(p, rec_clock_ns(CLOCK_REALTIME));
	rec_log(TRACE_LOG_CLOCK, payload, (size_t)(p - payload));
}

/* Pages in memory, from statm; swapped is not told there. */
void rec_log_rss(uint64_t tick)
{
	char text[128];
	size_t n = rec_slurp("/proc/self/statm", text, sizeof(text) - 1);
	uint8_t payload[32];
	uint8_t *p = payload;
	char *second;

	text[n] = '\0';
	second = strchr(text, ' ');
	if (!second)
		return;
	p = rec_put(p, tick);
	p = rec_put(p, rec_number(second + 1) *
		       (uint64_t)sysconf(_SC_PAGESIZE));
	p = rec_put(p, 0);
	rec_log(TRACE_LOG_RSS, payload, (size_t)(p - payload));
}

static void meta_number(const char *key, uint64_t value)
{
	char text[24];
	char *p = text + sizeof(text);

	do
		*--p = (char)('0' + value % 10);
	while (value /= 10);
	rec_log_meta(key, p, (size_t)(text + sizeof(text) - p));
}

/* Settings of the allocator change what a run does. */
static void meta_environment(void)
{
	static const char *const names[] = {
		"GLIBC_TUNABLES=", "MALLOC_", "PYTHONMALLOC=", "GLIBCXX_",
		"G_SLICE=", "PERL_DESTRUCT", "USE_ZEND_ALLOC",
	};

	for (char **e = environ; *e; e++)
		for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
			if (!strncmp(*e, names[i], strlen(names[i])))
				rec_log_meta("environment", *e, strlen(*e));
}

/*
 * Who is recorded, and how.  A child may be in the middle of a setenv: its
 * environment is not looked at.
 */
void rec_log_start(bool environment)
{
	char text[REC_TEXT];
	struct utsname host;
	long n = syscall(SYS_readlinkat, AT_FDCWD, "/proc/self/exe", text,
			 sizeof(text));

	rec_log_clock();
	if (n > 0)
		rec_log_meta("program", text, (size_t)n);
	n = (long)rec_slurp("/proc/self/cmdline", text, sizeof(text));
	if (n > 0)
		rec_log_meta("arguments", text, (size_t)n - !text[n - 1]);
	rec_log_meta("recorder", "heapcore " VERSION,
		     strlen("heapcore " VERSION));
	if (!uname(&host))
		rec_log_meta("kernel", host.release, strlen(host.release));
	meta_number("parent", (uint64_t)syscall(SYS_getppid));
	meta_number("depth", rec.no_stacks ? 0 : rec.depth);
	if (rec.rate)
		meta_number("rate", rec.rate);
	rec_log_meta("unwind", rec.no_stacks ? "none" : rec.frame_pointers ?
		     "fp" : "cfi", rec.no_stacks ? 4 : rec.frame_pointers ?
		     2 : 3);
	if (environment)
		meta_environment();
}
