/* SPDX-License-Identifier: MIT */
/*
 * A program that becomes another one by exec, in the same process: scripts and
 * the shims of version managers end so, and what is wanted is the record of
 * what they become.  Since the program's environment shows nothing of us, the
 * one that is handed on gets it back, on its way.
 *
 * Only the process that is recorded does so; children are told by their pid,
 * those of vfork too.  Each image has a file of its own: the next one finds
 * that the first is taken.
 */
#include "replay/recorder.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT int execve(const char *path, char *const argv[], char *const envp[]);
EXPORT int execv(const char *path, char *const argv[]);
EXPORT int execvp(const char *file, char *const argv[]);
EXPORT int execvpe(const char *file, char *const argv[], char *const envp[]);
EXPORT int execl(const char *path, const char *arg, ...);
EXPORT int execlp(const char *file, const char *arg, ...);
EXPORT int execle(const char *path, const char *arg, ...);
EXPORT int fexecve(int fd, char *const argv[], char *const envp[]);

enum {
	/* One that starts itself over and over fills no disk. */
	IMAGES_MAX = 32,
	ARGS_ON_STACK = 256,
	/* Preload, file, first, options, pid, image; and the end. */
	OURS = 6,
	NUMBERS = 64,
	/* Or a part of one, where they are larger. */
	PAGE = 4096,
};

/* What is to be run: a path, a name to look for, or a descriptor. */
struct target {
	const char *path;
	bool search, by_fd;
	int fd;
};

static struct {
	int (*execve)(const char *, char *const[], char *const[]);
	int (*execvpe)(const char *, char *const[], char *const[]);
	int (*fexecve)(int, char *const[], char *const[]);
} real;

/* As it was in the environment, when there was something in it. */
static char preload[REC_PATH], options[REC_TEXT];
static unsigned image;

void rec_exec_resolve(void)
{
	real.execvpe = dlsym(RTLD_NEXT, "execvpe");
	real.fexecve = dlsym(RTLD_NEXT, "fexecve");
	real.execve = dlsym(RTLD_NEXT, "execve");
}

static const char *variable(char *const *envp, const char *name)
{
	size_t n = strlen(name);

	for (; envp && *envp; envp++)
		if (!strncmp(*envp, name, n) && (*envp)[n] == '=')
			return *envp + n + 1;
	return NULL;
}

static void keep(char *to, size_t size, const char *name)
{
	const char *text = variable(environ, name);
	size_t n = text ? strlen(text) : 0;

	if (n < size)
		memcpy(to, text ? text : "", n + 1);
}

bool rec_exec_start(bool *ret_again)
{
	const char *pid = variable(environ, "HEAPCORE_RECORD_PID");
	const char *n = variable(environ, "HEAPCORE_RECORD_IMAGE");

	keep(preload, sizeof(preload), "LD_PRELOAD");
	preload[strcspn(preload, ": ")] = '\0';
	keep(options, sizeof(options), "HEAPCORE_RECORD_OPTIONS");
	image = n ? (unsigned)rec_number(n) : 1;
	*ret_again = pid != NULL;
	return !pid || rec_number(pid) == (uint64_t)rec.pid;
}

static char *put(char *to, const char *text)
{
	size_t n = strlen(text);

	memcpy(to, text, n + 1);
	return to + n;
}

static char *put_number(char *to, uint64_t value)
{
	char digits[24];
	size_t k = sizeof(digits);

	digits[--k] = '\0';
	do
		digits[--k] = (char)('0' + value % 10);
	while (value /= 10);
	return put(to, digits + k);
}

/* Our variables, one behind the other; the next free byte of the text. */
static char *put_ours(char **list, char *text, const char *old_preload)
{
	*list++ = text;
	text = put(put(text, "LD_PRELOAD="), preload);
	if (old_preload && *old_preload)
		text = put(put(text, ":"), old_preload);
	*list++ = ++text;
	text = put(put(text, "HEAPCORE_RECORD_FILE="), rec.pattern);
	*list++ = ++text;
	text = put(put(text, "HEAPCORE_RECORD_FIRST="), rec.path);
	*list++ = ++text;
	text = put(put(text, "HEAPCORE_RECORD_OPTIONS="), options);
	*list++ = ++text;
	text = put_number(put(text, "HEAPCORE_RECORD_PID="),
			  (uint64_t)rec.pid);
	*list++ = ++text;
	text = put_number(put(text, "HEAPCORE_RECORD_IMAGE="), image + 1);
	*list = NULL;
	return text + 1;
}

/* envp and ours, in *ret_size bytes of rec_map(); NULL: no memory. */
static char **make_environment(char *const *envp, size_t *ret_size)
{
	const char *old = variable(envp, "LD_PRELOAD");
	size_t n = 0, text = strlen(preload) + (old ? strlen(old) : 0) +
		strlen(rec.pattern) + strlen(rec.path) + strlen(options) +
		OURS * NUMBERS;
	char **ret, **to;

	while (envp && envp[n])
		n++;
	*ret_size = (n + OURS + 1) * sizeof(*ret) + text;
	to = ret = rec_map(*ret_size);
	if (!ret)
		return NULL;
	for (size_t i = 0; i < n; i++)
		if (strncmp(envp[i], "LD_PRELOAD=", 11))
			*to++ = envp[i];
	put_ours(to, (char *)(ret + n + OURS + 1), old);
	return ret;
}

static int call(const struct target *t, char *const argv[],
		char *const envp[])
{
	if (!real.execve)
		return (int)syscall(SYS_execve, t->path, argv, envp);
	if (t->search)
		return real.execvpe(t->path, argv, envp);
	return t->by_fd ? real.fexecve(t->fd, argv, envp)
			: real.execve(t->path, argv, envp);
}

/* What it says it becomes; "" that it did not after all. */
static void note(const char *path)
{
	int saved = errno;

	if (!rec_enter())
		return;
	rec_lock();
	rec_log_meta("executes", path, strlen(path));
	rec_unlock();
	rec_leave();
	errno = saved;
}

/* Is this the process that is recorded, and not a child of vfork? */
static bool follows(void)
{
	return *rec_live && rec.pid == (int)syscall(SYS_getpid) &&
	       (rec.children || image < IMAGES_MAX);
}

/* seen: the page that was asked about last; of none of ours at first. */
static bool can_read(uintptr_t *seen, uintptr_t at)
{
	/* EFAULT comes first; and what knows sigprocmask lets us ask. */
	if (at / PAGE != *seen &&
	    (syscall(SYS_rt_sigprocmask, -1, at - at % 8, NULL, 8) != -1 ||
	     errno != EINVAL))
		return false;
	*seen = at / PAGE;
	return true;
}

static bool is_text(uintptr_t *seen, const char *p)
{
	while (can_read(seen, (uintptr_t)p))
		if (!*p++)
			return true;
	return false;
}

static bool is_environment(char *const *envp)
{
	uintptr_t list = UINTPTR_MAX, text = UINTPTR_MAX;

	for (; envp; envp++) {
		uintptr_t at = (uintptr_t)envp;

		if (!can_read(&list, at) ||
		    !can_read(&list, at + sizeof(*envp) - 1) ||
		    (*envp && !is_text(&text, *envp)))
			return false;
		if (!*envp)
			break;
	}
	return true;
}

/* Else the kernel, or libc, says what is wrong with it. */
static bool is_readable(const struct target *t, char *const *envp)
{
	uintptr_t seen = UINTPTR_MAX;

	return (t->by_fd || is_text(&seen, t->path)) &&
	       (rec.children || is_environment(envp));
}

static int run(const struct target *t, char *const argv[],
	       char *const envp[])
{
	char **ours = NULL;
	size_t size = 0;
	int ret;

	if (!follows() || !is_readable(t, envp))
		return call(t, argv, envp);
	note(t->by_fd ? "a file that is open" : t->path);
	if (!rec.children)
		ours = make_environment(envp, &size);
	ret = call(t, argv, ours ? ours : envp);
	/* It is we who made it too long? */
	if (ours && errno == E2BIG)
		ret = call(t, argv, envp);
	note("");
	if (ours) {
		int saved = errno;

		rec_unmap(ours, size);
		errno = saved;
	}
	return ret;
}

int execve(const char *path, char *const argv[], char *const envp[])
{
	return run(&(struct target){ .path = path }, argv, envp);
}

int execv(const char *path, char *const argv[])
{
	return run(&(struct target){ .path = path }, argv, environ);
}

int execvp(const char *file, char *const argv[])
{
	return run(&(struct target){ .path = file, .search = true }, argv,
		   environ);
}

int execvpe(const char *file, char *const argv[], char *const envp[])
{
	return run(&(struct target){ .path = file, .search = true }, argv,
		   envp);
}

int fexecve(int fd, char *const argv[], char *const envp[])
{
	return run(&(struct target){ .by_fd = true, .fd = fd }, argv, envp);
}

/*
 * Arguments up to NULL as an array, and behind it an environment if there is
 * one.  Memory of our own only for many: a child of vfork would leave it to
 * its parent.
 */
static int run_list(const struct target *t, const char *first, va_list ap,
		    bool has_environment)
{
	char *few[ARGS_ON_STACK], **argv = few;
	size_t n = 1, size;
	va_list again;
	int ret, saved;

	va_copy(again, ap);
	for (const char *arg = first; arg; n++)
		arg = va_arg(again, const char *);
	va_end(again);
	size = n * sizeof(*argv);
	if (n > ARGS_ON_STACK)
		argv = rec_map(size);
	if (!argv) {
		errno = ENOMEM;
		return -1;
	}
	argv[0] = (char *)first;
	for (size_t i = 1; i < n; i++)
		argv[i] = va_arg(ap, char *);
	ret = run(t, argv, has_environment ? va_arg(ap, char *const *)
					   : environ);
	saved = errno;
	if (argv != few)
		rec_unmap(argv, size);
	errno = saved;
	return ret;
}

int execl(const char *path, const char *arg, ...)
{
	va_list ap;
	int ret;

	va_start(ap, arg);
	ret = run_list(&(struct target){ .path = path }, arg, ap, false);
	va_end(ap);
	return ret;
}

int execlp(const char *file, const char *arg, ...)
{
	va_list ap;
	int ret;

	va_start(ap, arg);
	ret = run_list(&(struct target){ .path = file, .search = true }, arg,
		       ap, false);
	va_end(ap);
	return ret;
}

int execle(const char *path, const char *arg, ...)
{
	va_list ap;
	int ret;

	va_start(ap, arg);
	ret = run_list(&(struct target){ .path = path }, arg, ap, true);
	va_end(ap);
	return ret;
}
