/* SPDX-License-Identifier: MIT */
/*
 * May we read it, and if not, why not?
 *
 * The kernel says EPERM or EACCES for all of its reasons (Linux,
 * kernel/ptrace.c, __ptrace_may_access and ptrace_attach).  Which one it is
 * can be found out from files of /proc that everybody may read.
 */
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "corewalk/live.h"

/* Linux, include/linux/sched.h and include/uapi/linux/capability.h. */
static const unsigned long PF_EXITING = 0x00000004;
static const unsigned long PF_KTHREAD = 0x00200000;
enum { CAP_SYS_PTRACE_BIT = 19 };
enum { MAX_LISTS = 100 };	/* of threads that are gone when looked at */

static const char *who(const struct live *lv)
{
	return lv->core.name;
}

bool live_lost(struct live *lv, struct err *err)
{
	struct live_status status;
	struct live_stat stat;

	lv->lost = true;
	/* Its memory goes before it becomes a zombie. */
	if (live_read_stat(lv->proc_fd, &stat) && stat.state != 'Z' &&
	    stat.state != 'X' && !(stat.flags & PF_EXITING) &&
	    live_read_status(lv->proc_fd, &status)) {
		err_set(err, ERR_SYSTEM, "%s: executed another program (%s) "
			"while it was being read", who(lv), status.name);
		return err_hint(err, "Try again.");
	}
	return err_set(err, ERR_SYSTEM, "%s: ended while it was being read",
		       who(lv));
}

/* ---- reasons ---- */

static bool may_trace_all(const struct live_case *c)
{
	return c->own_caps >> CAP_SYS_PTRACE_BIT & 1;
}

static bool traced(const struct live_case *c, struct err *err)
{
	if (!c->tracer)
		return false;
	err_set(err, ERR_SYSTEM, "%s: is traced by process %d (%s)", c->who,
		(int)c->tracer, c->tracer_name);
	err_hint(err, "Detach that first, or read it as it is, with "
		 "--no-stop.");
	return true;
}

/*
 * Says which user, if /etc/passwd knows.  Not by getpwuid(3): that loads the
 * libraries which nsswitch.conf names, in a static program too.
 */
static void say_user(const struct live_case *c, struct err *err)
{
	FILE *f = fopen("/etc/passwd", "re");
	const struct passwd *pw = NULL;

	while (f && (pw = fgetpwent(f)) && pw->pw_uid != c->euid)
		;
	err_set(err, ERR_SYSTEM, "%s: belongs to user %s (uid %u)", c->who,
		pw ? pw->pw_name : "?", c->euid);
	if (f)
		fclose(f);
}

static bool other_user(const struct live_case *c, struct err *err)
{
	if (may_trace_all(c) ||
	    (c->uid == c->own_uid && c->euid == c->own_uid))
		return false;
	say_user(c, err);
	err_hint(err, "Run heapcore as that user, or as root "
		 "(CAP_SYS_PTRACE).");
	return true;
}

/* The kernel shows its files as root's then. */
static bool not_dumpable(const struct live_case *c, struct err *err)
{
	if (may_trace_all(c) || c->mem_owner == c->euid)
		return false;
	err_set(err, ERR_SYSTEM, "%s: is marked not dumpable: a set-user-ID "
		"program, or it asked for it with prctl(2)", c->who);
	err_hint(err, "Run heapcore as root (CAP_SYS_PTRACE).");
	return true;
}

static bool other_namespace(const struct live_case *c, struct err *err)
{
	/* Refused in spite of all rights: those are of our namespace only. */
	if (c->ns == LIVE_NS_SAME ||
	    (c->ns == LIVE_NS_HIDDEN && !may_trace_all(c)))
		return false;
	err_set(err, ERR_SYSTEM, "%s: is in a user namespace over which "
		"heapcore has no rights", c->who);
	err_hint(err, "Run heapcore in the same namespace, or from outside "
		 "as root.");
	return true;
}

static bool yama(const struct live_case *c, struct err *err)
{
	if (c->yama <= 0 || (c->yama < 3 && may_trace_all(c)))
		return false;
	err_set(err, ERR_SYSTEM, "%s: kernel.yama.ptrace_scope is %d: %s",
		c->who, c->yama, c->yama == 1 ?
		"only parents may trace their children" : c->yama == 2 ?
		"only root may trace" : "nobody may trace");
	if (c->yama < 3)
		err_hint(err, "Run heapcore as root, or set "
			 "kernel.yama.ptrace_scope=0 with sysctl(8).");
	else
		err_hint(err, "It stays so until the next boot.");
	return true;
}

static bool no_capability(const struct live_case *c, struct err *err)
{
	if (c->own_euid != 0 || may_trace_all(c))
		return false;
	err_set(err, ERR_SYSTEM, "%s: heapcore is root without the "
		"capability CAP_SYS_PTRACE", c->who);
	err_hint(err, "In a container: add SYS_PTRACE (--cap-add=SYS_PTRACE), "
		 "or run it from the host.");
	return true;
}

static bool some_reason(const struct live_case *c, struct err *err)
{
	/* With CAP_SYS_PTRACE, of Yama's only 3 is left: ask it first. */
	return c->known &&
	       (traced(c, err) || (c->yama >= 3 && yama(c, err)) ||
		other_namespace(c, err) || no_capability(c, err) ||
		other_user(c, err) || not_dumpable(c, err) || yama(c, err));
}

static bool forbidden(int number)
{
	return number == EPERM || number == EACCES;
}

bool live_say_why(const struct live_case *c, const char *what, int number,
		  struct err *err)
{
	if (forbidden(number) && some_reason(c, err))
		return false;
	errno = number;
	err_system(err, "%s: %s", c->who, what);
	return err_hint(err, "It needs your user id and ptrace permission; "
			"see ptrace(2), ptrace_scope.");
}

/* ---- what can be known ---- */

static void look_at_own(struct live_case *c)
{
	int fd = open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct live_status self;
	bool ok = fd >= 0 && live_read_status(fd, &self);

	if (fd >= 0)
		close(fd);
	/* What is not known does not make a difference. */
	c->own_caps = ok ? self.caps : c->own_euid ? 0 : UINT64_MAX;
}

/* The tracer; 0 if it has ended, which lets go of all. */
static pid_t if_alive(pid_t tracer)
{
	return tracer && kill(tracer, 0) && errno == ESRCH ? 0 : tracer;
}

static void look_at_tracer(struct live_case *c)
{
	AUTO_FREE char *path = mem_printf("/proc/%d", (int)c->tracer);
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct live_status tracer;
	bool ok = fd >= 0 && live_read_status(fd, &tracer);

	if (fd >= 0)
		close(fd);
	snprintf(c->tracer_name, sizeof(c->tracer_name), "%s",
		 ok ? tracer.name : "?");
}

/* Another of us looks at it: that is soon over. */
static bool traced_by_us(const struct live_case *c)
{
	char own[16];

	return c->tracer && !prctl(PR_GET_NAME, own) &&
	       !strcmp(own, c->tracer_name);
}

static enum live_ns look_at_namespace(const struct live *lv)
{
	char ours[64], theirs[64];
	ssize_t n = readlink("/proc/self/ns/user", ours, sizeof(ours));
	ssize_t m = readlinkat(lv->proc_fd, "ns/user", theirs,
			       sizeof(theirs));

	if (n <= 0 || (m == n && !memcmp(ours, theirs, (size_t)n)))
		return LIVE_NS_SAME;
	return m < 0 ? LIVE_NS_HIDDEN : LIVE_NS_OTHER;
}

static int look_at_yama(void)
{
	struct str text;
	int scope = 0;

	str_init(&text);
	if (live_read(AT_FDCWD, "/proc/sys/kernel/yama/ptrace_scope", &text))
		scope = atoi(text.text);
	str_fini(&text);
	return scope;
}

bool live_refused(struct live *lv, const char *what, int number,
		  struct err *err)
{
	struct live_case c = {
		.who = who(lv),
		.own_uid = getuid(),
		.own_euid = geteuid(),
		.ns = look_at_namespace(lv),
		.yama = look_at_yama(),
	};
	struct live_status status;
	struct stat st;

	if (number == ESRCH || number == ENOENT)
		return live_lost(lv, err);
	c.known = live_read_status(lv->proc_fd, &status);
	if (c.known) {
		c.uid = status.uid;
		c.euid = status.euid;
		c.tracer = if_alive(status.tracer);
		c.mem_owner = fstatat(lv->proc_fd, "mem", &st, 0) ?
			c.euid : st.st_uid;
	}
	look_at_own(&c);
	look_at_tracer(&c);
	lv->busy = traced_by_us(&c);
	lv->over = forbidden(number) && !some_reason(&c, err);
	return live_say_why(&c, what, number, err);
}

/* ---- opening ---- */

/* The folder of a thread that still has memory; -1. */
static int open_one(const struct live *lv, pid_t tid)
{
	AUTO_FREE char *name = mem_printf("task/%d", (int)tid);
	int fd = openat(lv->proc_fd, name,
			O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct live_stat stat;

	if (fd >= 0 && (!live_read_stat(fd, &stat) || stat.state == 'Z' ||
			stat.state == 'X')) {
		close(fd);
		fd = -1;
	}
	return fd;
}

static int open_any(const struct live *lv)
{
	pid_t *tids;
	size_t i, n;
	int fd = -1;

	if (!live_list_threads(lv->proc_fd, &tids, &n))
		return -1;
	for (i = 0; i < n && fd < 0; i++)
		fd = open_one(lv, tids[i]);
	free(tids);
	return fd;
}

/* A zombie still counts itself. */
static bool has_other_threads(const struct live *lv)
{
	struct live_status status;

	return live_read_status(lv->proc_fd, &status) && status.threads > 1;
}

bool live_open_thread(struct live *lv)
{
	int fd = open_one(lv, lv->pid);
	unsigned tries = 0;

	/* All that were in the list can have ended since. */
	while (fd < 0 && has_other_threads(lv) && tries++ < MAX_LISTS)
		fd = open_any(lv);
	if (lv->mm_fd >= 0)
		close(lv->mm_fd);
	lv->mm_fd = fd;
	return fd >= 0;
}

static bool is_process(const struct live *lv, struct err *err)
{
	struct live_status status;
	struct live_stat stat;

	if (!live_read_status(lv->proc_fd, &status) ||
	    !live_read_stat(lv->proc_fd, &stat))
		return err_set(err, ERR_SYSTEM, "%s: no such process",
			       who(lv));
	if (stat.flags & PF_KTHREAD)
		return err_set(err, ERR_SYSTEM, "%s: is a thread of the "
			       "kernel (%s), without memory of its own",
			       who(lv), status.name);
	if (status.tgid != lv->pid) {
		err_set(err, ERR_SYSTEM, "%s: is a thread of process %d",
			who(lv), (int)status.tgid);
		return err_hint(err, "Give -p %d.", (int)status.tgid);
	}
	return true;
}

static bool not_there(const struct live *lv, struct err *err)
{
	err_set(err, ERR_SYSTEM, "%s: no such process", who(lv));
	if (kill(lv->pid, 0) == 0 || errno == EPERM)
		err_hint(err, "It exists, but /proc does not show it to you: "
			 "see hidepid in proc(5).");
	return false;
}

/*
 * /proc can be that of another pid namespace than ours: its numbers would be
 * those of other processes, or of none, to ptrace(2).
 */
static bool foreign_proc(const struct live *lv, struct err *err)
{
	AUTO_FREE char *own = mem_printf("%d", (int)getpid());
	char self[32] = "";

	if (readlink("/proc/self", self, sizeof(self) - 1) < 0 ||
	    !strcmp(self, own))
		return false;
	err_set(err, ERR_SYSTEM, "%s: heapcore is in a pid namespace of its "
		"own, and /proc is that of another one", who(lv));
	err_hint(err, "Mount its own there (unshare --mount-proc), or run "
		 "heapcore outside.");
	return true;
}

bool live_open(struct live *lv, struct err *err)
{
	AUTO_FREE char *path = mem_printf("/proc/%d", (int)lv->pid);
	unsigned tries = 0;

	if (!lv->options.no_stop && foreign_proc(lv, err))
		return false;
	if (lv->pid == getpid())
		return err_set(err, ERR_USAGE, "%s: is heapcore itself",
			       who(lv));
	lv->proc_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (lv->proc_fd < 0 && errno == ENOENT && access("/proc/self", F_OK))
		return err_set(err, ERR_SYSTEM, "%s: /proc is not mounted",
			       who(lv));
	if (lv->proc_fd < 0)
		return not_there(lv, err);
	if (!is_process(lv, err))
		return false;
	do {
		if (!live_open_thread(lv))
			return err_set(err, ERR_SYSTEM, "%s: has ended and "
				       "waits for its parent to notice (a "
				       "zombie)", who(lv));
		lv->mem_fd = openat(lv->mm_fd, "mem", O_RDONLY | O_CLOEXEC);
	} while (lv->mem_fd < 0 && (errno == ESRCH || errno == ENOENT) &&
		 has_other_threads(lv) && tries++ < MAX_LISTS);
	if (lv->mem_fd < 0)
		return live_refused(lv, "cannot read memory", errno, err);
	return true;
}
