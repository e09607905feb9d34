/* SPDX-License-Identifier: MIT */
#include "report/out.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/temp.h"
#include "report/blocks.h"
#include "report/pprof.h"
#include "report/report.h"

void out_open_fd(struct out *o, int fd)
{
	*o = (struct out){ .fd = fd };
	o->buf = mem_alloc(OUT_BUFFER);
}

void out_open_text(struct out *o, struct str *text)
{
	out_open_fd(o, -1);
	o->text = text;
}

void out_close_text(struct out *o)
{
	(void)!out_flush(o);
	free(o->buf);
	o->buf = NULL;
}

static void write_all(struct out *o, const char *bytes, size_t n)
{
	if (o->text) {
		str_add(o->text, bytes, n);
		return;
	}
	while (n && !o->error) {
		ssize_t done = write(o->fd, bytes, n);

		if (done >= 0) {
			bytes += done;
			n -= (size_t)done;
		} else if (errno != EINTR) {
			o->error = errno;
		}
	}
}

static void flush(struct out *o)
{
	write_all(o, o->buf, o->len);
	o->len = 0;
}

bool out_flush(struct out *o)
{
	flush(o);
	return !o->error;
}

/* The comment in a gzip header that has nothing else. */
static bool is_pprof(const char *head, size_t n)
{
	enum { COMMENT_AT = 10 };

	return n >= COMMENT_AT + sizeof(PPROF_COMMENT) &&
	       !memcmp(head, "\x1f\x8b\x08\x10", 4) &&
	       !memcmp(head + COMMENT_AT, PPROF_COMMENT,
		       sizeof(PPROF_COMMENT));
}

/* Did heapcore write the file that starts with head? */
static bool is_report(const char *head, size_t n)
{
	static const char *const starts[] = {
		"{\n  \"schema\": \"heapcore-",
		"{\"address\":\"0x",
		"{ \"kind\": \"look\"",
		("{\"$schema\":\"https://www.speedscope.app/file-format-"
		 "schema.json\",\n\"exporter\":\"heapcore\""),
		"desc: heapcore ",
		WATCH_HEADING,
		BLOCKS_HEADING,
	};
	const char *second = strchr(head, '\n');
	const char *end, *found;

	for (size_t i = 0; i < countof(starts); i++)
		if (!strncmp(head, starts[i], strlen(starts[i])))
			return true;
	if (is_pprof(head, n))
		return true;
	/* The rest of a long first line is indented. */
	while (second && !strncmp(second, "\n  ", 3))
		second = strchr(second + 1, '\n');
	if (second && (!strncmp(second + 1, REPORT_OF_SAMPLES,
				strlen(REPORT_OF_SAMPLES)) ||
		       !strncmp(second + 1, REPORT_OF_TRACE,
				strlen(REPORT_OF_TRACE))))
		return true;
	end = second ? strchr(second + 1, '\n') : NULL;
	found = second ? strstr(second, REPORT_OF_MEMORY) : NULL;
	return found && end && found < end;
}

static bool not_own(const char *path, struct err *err)
{
	err_set(err, ERR_USAGE, "%s: exists and is not a report of heapcore",
		path);
	return err_hint(err, "Use --force to replace it.");
}

/* Names with commas between: the headings of some CSV. */
static bool is_headings(const char *line, size_t n)
{
	size_t commas = 0;

	for (size_t i = 0; i < n; i++) {
		commas += line[i] == ',';
		if (!islower((unsigned char)line[i]) &&
		    !isdigit((unsigned char)line[i]) && !strchr("_,", line[i]))
			return false;
	}
	return commas > 0 && !isdigit((unsigned char)line[0]);
}

/* Lines such as "main;parse 4096", the last perhaps cut off. */
static bool is_folded(const char *text, size_t n)
{
	bool nested = false;

	if (strlen(text) != n)
		return false;
	for (const char *p = text; p < text + n;) {
		size_t blank = strcspn(p, " \n");
		size_t end = strcspn(p, "\n");
		bool cut = !p[end];

		nested |= memchr(p, ';', blank) != NULL;
		if (!blank || (!cut && blank + 1 >= end) || (blank < end &&
		    blank + 1 + strspn(p + blank + 1, "0123456789") != end))
			return false;
		p += end + !cut;
		if (cut)
			break;
	}
	return nested;
}

/*
 * May the file at path be replaced?  A CSV has nothing that says whose it is:
 * it gives way only to one with the same headings, and folded stacks to others,
 * seen in out_close().
 */
static bool check_replace(struct out *o, const char *path, struct err *err)
{
	size_t line;
	char head[4096];
	ssize_t n;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return err_system(err, "%s", path);
	n = read(fd, head, sizeof(head) - 1);
	if (n < 0)
		err_system(err, "%s", path);
	close(fd);
	if (n < 0)
		return false;
	head[n] = '\0';
	if (!n || is_report(head, (size_t)n))
		return true;
	o->folded = is_folded(head, (size_t)n);
	if (o->folded)
		return true;
	line = strcspn(head, "\n");
	if (!is_headings(head, line))
		return not_own(path, err);
	o->first_line = mem_printf("%.*s\n", (int)line, head);
	return true;
}

static bool first_line_is_right(const struct out *o)
{
	char head[4096];
	size_t n;

	if (o->folded) {
		ssize_t got = pread(o->fd, head, sizeof(head) - 1, 0);

		head[got > 0 ? got : 0] = '\0';
		return !got || (got > 0 && is_folded(head, (size_t)got));
	}
	if (!o->first_line)
		return true;
	n = strlen(o->first_line);
	return pread(o->fd, head, n, 0) == (ssize_t)n &&
	       !memcmp(head, o->first_line, n);
}

/* ---- the file, and its name ---- */

/* What a signal that ends us takes away; only one file has such a name. */
static char *volatile unfinished;
static const int ending[] = { SIGHUP, SIGINT, SIGTERM };

static void on_ending(int sig)
{
	char *path = unfinished;

	if (path)
		unlink(path);
	signal(sig, SIG_DFL);
	raise(sig);
}

/* Who handles or ignores a signal does so on. */
static void guard(char *path)
{
	struct sigaction old;

	unfinished = path;
	for (size_t i = 0; i < countof(ending); i++)
		if (!sigaction(ending[i], NULL, &old) &&
		    old.sa_handler == SIG_DFL)
			signal(ending[i], on_ending);
}

static void forget_temporary(struct out *o)
{
	if (unfinished == o->temporary)
		unfinished = NULL;
	free(o->temporary);
	o->temporary = NULL;
}

/* A new file beside path; its name ends in six random characters. */
static bool open_beside(struct out *o, struct err *err)
{
	o->temporary = mem_printf("%s.XXXXXX", o->path);
	o->fd = mkostemp(o->temporary, O_CLOEXEC);
	if (o->fd >= 0) {
		guard(o->temporary);
		return true;
	}
	err_system(err, "%s", o->path);
	forget_temporary(o);
	return false;
}

static bool open_new(struct out *o, struct err *err)
{
	o->fd = temp_unnamed(o->path);
	o->unnamed = o->fd >= 0;
	/* The umask may have taken what is needed to look at it. */
	if (o->unnamed)
		fchmod(o->fd, 0600);
	return o->unnamed || open_beside(o, err);
}

/* A file that has its name already gets no other. */
static bool give_name(struct out *o)
{
	if (o->unnamed && !temp_name(o->fd, o->path, true))
		return false;
	if (o->temporary && rename(o->temporary, o->path))
		return false;
	o->unnamed = false;
	forget_temporary(o);
	return true;
}

/* A device or a pipe: nothing to protect, nothing to rename. */
static bool open_special(struct out *o, struct err *err)
{
	o->fd = open(o->path, O_WRONLY | O_CLOEXEC);
	return o->fd >= 0 || err_system(err, "%s", o->path);
}

/* A link stays one: what it leads to is written. */
static bool follow_link(struct out *o, struct err *err)
{
	struct stat st;
	char *place;

	if (lstat(o->path, &st) || !S_ISLNK(st.st_mode))
		return true;
	place = realpath(o->path, NULL);
	if (!place && errno == ENOENT)
		return err_set(err, ERR_USAGE, "%s: a link to something that "
			       "is not there", o->path);
	if (!place)
		return err_system(err, "%s", o->path);
	free(o->path);
	o->path = place;
	return true;
}

static bool open_file(struct out *o, bool force, struct err *err)
{
	struct stat st;

	if (!stat(o->path, &st) && S_ISDIR(st.st_mode)) {
		errno = EISDIR;
		return err_system(err, "%s", o->path);
	}
	if (!stat(o->path, &st) && !S_ISREG(st.st_mode))
		return open_special(o, err);
	if (!follow_link(o, err))
		return false;
	if (!stat(o->path, &st) && !force && !check_replace(o, o->path, err))
		return false;
	return open_new(o, err);
}

bool out_open(struct out *o, const char *path, bool force, struct err *err)
{
	out_open_fd(o, STDOUT_FILENO);
	/* A limit of the shell on file sizes is an error, not a death. */
	signal(SIGXFSZ, SIG_IGN);
	if (!path || !strcmp(path, "-"))
		return true;
	o->fd = -1;
	o->path = mem_strdup(path);
	if (open_file(o, force, err))
		return true;
	out_abandon(o);
	return false;
}

bool out_publish(struct out *o, struct err *err)
{
	if (o->first_line || o->folded)
		return not_own(o->path, err);
	if (!give_name(o))
		return err_system(err, "%s", o->path);
	if (out_flush(o))
		return true;
	errno = o->error;
	return err_system(err, "%s", o->path ? o->path : "standard output");
}

bool out_close(struct out *o, struct err *err)
{
	bool ok;

	flush(o);
	if (!o->error && !first_line_is_right(o)) {
		not_own(o->path, err);
		out_abandon(o);
		return false;
	}
	if (!o->error && o->unnamed && !give_name(o))
		o->error = errno;
	/* Some file systems report a full disk only here. */
	if (close(o->fd) && !o->error)
		o->error = errno;
	o->fd = -1;
	if (!o->error && !give_name(o))
		o->error = errno;
	errno = o->error;
	ok = !errno ||
	     err_system(err, "%s", o->path ? o->path : "standard output");
	out_abandon(o);
	return ok;
}

void out_abandon(struct out *o)
{
	if (o->path && o->fd >= 0)
		close(o->fd);
	if (o->temporary)
		unlink(o->temporary);
	forget_temporary(o);
	free(o->path);
	free(o->first_line);
	free(o->buf);
	*o = (struct out){ .fd = -1 };
}

char *out_room(struct out *o, size_t n)
{
	if (o->len + n > OUT_BUFFER)
		flush(o);
	return o->buf + o->len;
}

void out_add(struct out *o, const void *bytes, size_t n)
{
	if (n > OUT_BUFFER) {
		flush(o);
		write_all(o, bytes, n);
		return;
	}
	memcpy(out_room(o, n), bytes, n);
	o->len += n;
}

void out_adds(struct out *o, const char *text)
{
	out_add(o, text, strlen(text));
}

void out_addc(struct out *o, char c)
{
	*out_room(o, 1) = c;
	o->len++;
}

void out_pad(struct out *o, char c, size_t n)
{
	while (n--)
		out_addc(o, c);
}

void out_printf(struct out *o, const char *fmt, ...)
{
	char small[256];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(small, sizeof(small), fmt, ap);
	va_end(ap);
	if (n < 0)
		return;
	if ((size_t)n < sizeof(small)) {
		out_add(o, small, (size_t)n);
		return;
	}
	char *large = mem_alloc((size_t)n + 1);

	va_start(ap, fmt);
	vsnprintf(large, (size_t)n + 1, fmt, ap);
	va_end(ap);
	out_add(o, large, (size_t)n);
	free(large);
}
