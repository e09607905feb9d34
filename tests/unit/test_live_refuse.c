/* SPDX-License-Identifier: MIT */
/*
 * Processes that cannot be read, and those that change while they are.
 */
#include <linux/capability.h>
#include <pthread.h>
#include <sched.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "corewalk/live.h"
#include "corewalk/target.h"
#include "unit/check.h"
#include "unit/live_child.h"

enum { NOBODY = 65534, SAID = 1000 };

static const struct target_options no_options;

static void idle(volatile uint64_t *words)
{
	words[1] = 1;
}

/* What opening says; "" if it works. */
static void say(pid_t pid, char ret[SAID])
{
	struct err err = { .kind = ERR_NONE };
	struct space *sp = target_open_live((uint32_t)pid, &no_options, &err);

	snprintf(ret, SAID, "%s|%s", sp ? "" : err.msg, sp ? "" : err.hint);
	space_close(sp);
}

/* The same from a process that first becomes somebody else. */
static void say_as(pid_t pid, bool (*become)(void), char ret[SAID])
{
	int fds[2], status = 0;
	pid_t child;
	ssize_t n;

	ret[0] = '\0';
	fflush(stdout);
	if (pipe(fds))
		return;
	child = fork();
	if (!child) {
		char text[SAID] = "cannot become that";

		if (become())
			say(pid, text);
		_exit(write(fds[1], text, strlen(text)) < 0);
	}
	close(fds[1]);
	n = read(fds[0], ret, SAID - 1);
	ret[n > 0 ? n : 0] = '\0';
	close(fds[0]);
	waitpid(child, &status, 0);
	CHECK(status == 0);
}

static void want(const char *got, const char *word1, const char *word2)
{
	if (!CHECK(strstr(got, word1) && strstr(got, word2)))
		printf("# got: %s\n# without: %s, %s\n", got, word1, word2);
}

static void want_pid(const char *got, pid_t pid, const char *rest)
{
	char start[100];

	snprintf(start, sizeof(start), "process %d: %s", (int)pid, rest);
	if (!CHECK(!strncmp(got, start, strlen(start))))
		printf("# got: %s\n", got);
}

/* ---- no process ---- */

TEST(no_such_process)
{
	char got[SAID];
	pid_t pid = fork();

	if (!pid)
		_exit(0);
	waitpid(pid, NULL, 0);
	say(pid, got);
	want_pid(got, pid, "no such process|");
	say(getpid(), got);
	want_pid(got, getpid(), "is heapcore itself|");
}

TEST(zombie)
{
	char got[SAID];
	pid_t pid = fork();

	if (!pid)
		_exit(0);
	waitid(P_PID, (id_t)pid, NULL, WEXITED | WNOWAIT);
	say(pid, got);
	want_pid(got, pid, "has ended and waits for its parent");
	waitpid(pid, NULL, 0);
}

TEST(kernel_thread)
{
	char got[SAID], name[64] = "";
	FILE *f = fopen("/proc/2/comm", "r");

	if (f && !fgets(name, sizeof(name), f))
		name[0] = '\0';
	if (f)
		fclose(f);
	if (strcmp(name, "kthreadd\n") != 0)
		SKIP("no kernel threads to be seen");
	say(2, got);
	want_pid(got, 2, "is a thread of the kernel (kthreadd)");
}

static void *tell_tid(void *arg)
{
	volatile uint64_t *words = arg;

	words[2] = (uint64_t)syscall(SYS_gettid);
	for (;;)
		pause();
	return arg;
}

static void with_thread(volatile uint64_t *words)
{
	pthread_t thread;

	pthread_create(&thread, NULL, tell_tid, (void *)words);
	while (!words[2])
		usleep(1000);
}

TEST(a_thread_is_no_process)
{
	char got[SAID], hint[32];
	struct child c;

	child_start(&c, with_thread);
	say((pid_t)c.words[2], got);
	want_pid(got, (pid_t)c.words[2], "is a thread of process");
	snprintf(hint, sizeof(hint), "Give -p %d.", (int)c.pid);
	want(got, hint, "");
	child_end(&c);
}

/* ---- not permitted ---- */

static bool nobody(void)
{
	return setresgid(NOBODY, NOBODY, NOBODY) == 0 &&
	       setresuid(NOBODY, NOBODY, NOBODY) == 0 &&
	       prctl(PR_SET_DUMPABLE, 1) == 0;
}

static void idle_nobody(volatile uint64_t *words)
{
	words[1] = nobody();
}

TEST(of_another_user)
{
	char got[SAID];
	struct child c;

	if (geteuid() != 0)
		SKIP("not root");
	child_start(&c, idle);
	say_as(c.pid, nobody, got);
	want_pid(got, c.pid, "belongs to user root (uid 0)");
	want(got, "CAP_SYS_PTRACE", "as that user");
	child_end(&c);
}

static void undumpable(volatile uint64_t *words)
{
	words[1] = nobody();
	prctl(PR_SET_DUMPABLE, 0);
}

static bool yama_in_force(void)
{
	FILE *f = fopen("/proc/sys/kernel/yama/ptrace_scope", "r");
	int scope = 0;

	if (f && fscanf(f, "%d", &scope) != 1)
		scope = 0;
	if (f)
		fclose(f);
	return scope > 0;
}

TEST(not_dumpable)
{
	char got[SAID];
	struct child c;

	if (geteuid() != 0)
		SKIP("not root");
	child_start(&c, undumpable);
	say_as(c.pid, nobody, got);
	want_pid(got, c.pid, "is marked not dumpable");
	/* Root may. */
	say(c.pid, got);
	CHECK_STR(got, "|");
	child_end(&c);
}

TEST(of_the_same_user)
{
	char got[SAID];
	struct child c;

	if (geteuid() != 0)
		SKIP("not root");
	child_start(&c, idle_nobody);
	say_as(c.pid, nobody, got);
	if (yama_in_force())
		want(got, "kernel.yama.ptrace_scope is ", "sysctl");
	else
		CHECK_STR(got, "|");
	child_end(&c);
}

static bool without_capability(void)
{
	struct __user_cap_header_struct head = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &head, data))
		return false;
	data[0].effective &= ~(1u << CAP_SYS_PTRACE);
	data[0].permitted &= ~(1u << CAP_SYS_PTRACE);
	data[0].inheritable &= ~(1u << CAP_SYS_PTRACE);
	return syscall(SYS_capset, &head, data) == 0;
}

TEST(root_of_a_container)
{
	char got[SAID];
	struct child c;

	if (geteuid() != 0)
		SKIP("not root");
	child_start(&c, idle);
	say_as(c.pid, without_capability, got);
	want(got, "root without the capability CAP_SYS_PTRACE",
	     "--cap-add=SYS_PTRACE");
	child_end(&c);
}

static bool own_namespace(void)
{
	return nobody() && unshare(CLONE_NEWUSER) == 0;
}

TEST(in_another_user_namespace)
{
	char got[SAID];
	struct child c;

	if (geteuid() != 0)
		SKIP("not root");
	child_start(&c, idle_nobody);
	say_as(c.pid, own_namespace, got);
	if (!strcmp(got, "cannot become that")) {
		child_end(&c);
		SKIP("no user namespaces");
	}
	want_pid(got, c.pid, "is in a user namespace over which heapcore has");
	child_end(&c);
}

static void namespaced(volatile uint64_t *words)
{
	words[1] = !unshare(CLONE_NEWUSER | CLONE_NEWNS);
}

TEST(from_outside_of_namespaces)
{
	char got[SAID];
	struct child c;

	child_start(&c, namespaced);
	if (!c.words[1]) {
		child_end(&c);
		SKIP("no user namespaces");
	}
	if (geteuid() == 0) {
		say(c.pid, got);
		CHECK_STR(got, "|");
	}
	child_end(&c);
}

/* Goes on as the first process of a namespace, without a /proc of its own. */
static bool own_pids(void)
{
	pid_t pid;

	if (unshare(CLONE_NEWPID))
		return false;
	pid = fork();
	if (pid) {
		waitpid(pid, NULL, 0);
		_exit(0);
	}
	return true;
}

TEST(numbers_of_another_namespace)
{
	char got[SAID];
	struct child c;

	child_start(&c, idle);
	say_as(c.pid, own_pids, got);
	if (strcmp(got, "cannot become that") != 0) {
		want_pid(got, c.pid, "heapcore is in a pid namespace of its");
		want(got, "--mount-proc", "outside");
	}
	child_end(&c);
}

/* ---- any combination, also those that this machine does not have ---- */

enum { PTRACE_BIT = 19, USER = 1000 };

/* A process of our user that nothing is the matter with. */
static const struct live_case plain = {
	.who = "process 7", .known = true, .uid = USER, .euid = USER,
	.mem_owner = USER, .own_uid = USER, .own_euid = USER,
};

static void words(struct live_case c, int number, const char *word1,
		  const char *word2)
{
	struct err err = { .kind = ERR_NONE };
	char got[SAID];

	CHECK(!live_say_why(&c, "cannot be stopped", number, &err));
	snprintf(got, sizeof(got), "%s|%s", err.msg, err.hint);
	want(got, word1, word2);
}

static void check_yama(struct live_case c)
{
	c.yama = 1;
	words(c, EPERM, "process 7: kernel.yama.ptrace_scope is 1: only "
	      "parents may trace their children", "ptrace_scope=0 with sysctl");
	c.yama = 2;
	words(c, EPERM, "ptrace_scope is 2: only root may trace", "as root");
	c.yama = 3;
	words(c, EPERM, "ptrace_scope is 3: nobody may trace",
	      "until the next boot");
}

TEST(the_words_for_each_reason)
{
	struct live_case c = plain, root = plain;

	words(c, EPERM, "process 7: cannot be stopped: Operation not",
	      "see ptrace(2)");
	words(c, EIO, "process 7: cannot be stopped: Input/output", "");
	check_yama(c);
	/* A reason that holds without Yama is told first. */
	c.yama = 1;
	c.mem_owner = 0;
	words(c, EACCES, "is marked not dumpable", "as root");
	c.euid = c.mem_owner = USER + 1;
	words(c, EACCES, "belongs to user ", "(uid 1001)");
	c.tracer = 9;
	strcpy(c.tracer_name, "gdb");
	words(c, EPERM, "is traced by process 9 (gdb)", "--no-stop");
	c.known = false;
	words(c, EPERM, "cannot be stopped: Operation not permitted", "");
	/* Root, in a container and outside. */
	root.own_uid = root.own_euid = 0;
	words(root, EPERM, "root without the capability CAP_SYS_PTRACE",
	      "--cap-add=SYS_PTRACE");
	root.own_caps = UINT64_C(1) << PTRACE_BIT;
	words(root, EPERM, "cannot be stopped: Operation not permitted", "");
	root.yama = 2;
	words(root, EPERM, "cannot be stopped: Operation not permitted", "");
	root.yama = 3;
	words(root, EPERM, "ptrace_scope is 3: nobody may trace", "boot");
	root.yama = 0;
	root.ns = LIVE_NS_HIDDEN;
	words(root, EACCES, "is in a user namespace", "from outside");
	/* Of others the link cannot be read: that alone says nothing. */
	c = plain;
	c.ns = LIVE_NS_HIDDEN;
	c.euid = USER + 1;
	words(c, EACCES, "belongs to user ", "(uid 1001)");
	c.ns = LIVE_NS_OTHER;
	words(c, EACCES, "is in a user namespace", "same namespace");
}

/* ---- traced ---- */

static void tracer(volatile uint64_t *words)
{
	pid_t pid = fork();

	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	words[1] = (uint64_t)pid;
	words[2] = !ptrace(PTRACE_SEIZE, pid, NULL, NULL);
}

TEST(already_traced)
{
	struct target_options no_stop = { .no_stop = true };
	char got[SAID], by[64];
	struct space *sp;
	struct err err;
	struct child c;

	child_start(&c, tracer);
	CHECK(c.words[2]);
	say((pid_t)c.words[1], got);
	snprintf(by, sizeof(by), "is traced by process %d (test_live_refus)|",
		 (int)c.pid);
	want_pid(got, (pid_t)c.words[1], by);
	want(got, "--no-stop", "Detach");
	/* What the hint says works. */
	sp = target_open_live((uint32_t)c.words[1], &no_stop, &err);
	CHECK(sp);
	space_close(sp);
	kill((pid_t)c.words[1], SIGKILL);
	child_end(&c);
}

/* ---- what is no 64-bit program ---- */

/* pause() for ever: mov eax, 29; int 0x80; jmp back. */
static const uint8_t program_32[] = {
	0x7f, 'E', 'L', 'F', 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0,
	2, 0, 3, 0, 1, 0, 0, 0, 0x54, 0x80, 0x04, 0x08, 52, 0, 0, 0,
	0, 0, 0, 0, 0, 0, 0, 0, 52, 0, 32, 0, 1, 0, 40, 0, 0, 0, 0, 0,
	1, 0, 0, 0, 0, 0, 0, 0, 0, 0x80, 0x04, 0x08, 0, 0x80, 0x04, 0x08,
	93, 0, 0, 0, 93, 0, 0, 0, 5, 0, 0, 0, 0, 0x10, 0, 0,
	0xb8, 29, 0, 0, 0, 0xcd, 0x80, 0xeb, 0xf7,
};

static void run_32(volatile uint64_t *words)
{
	char path[] = "/tmp/heapcore-test.XXXXXX";
	int fd = mkstemp(path), program;

	if (write(fd, program_32, sizeof(program_32)) !=
	    (ssize_t)sizeof(program_32))
		_exit(1);
	fchmod(fd, 0700);
	program = open(path, O_RDONLY | O_CLOEXEC);
	close(fd);
	unlink(path);
	words[0] = 1;
	fexecve(program, (char *[]){ path, NULL }, (char *[]){ NULL });
	_exit(1);
}

TEST(of_32_bits)
{
	char got[SAID];
	struct child c;

	child_start(&c, run_32);
	if (!child_wait_exec(c.pid))
		SKIP("this machine does not run 32-bit programs");
	say(c.pid, got);
	want_pid(got, c.pid, "a 32-bit program");
	child_end(&c);
}

/* ---- too slow, gone, another ---- */

static void large(volatile uint64_t *words)
{
	size_t size = 64 << 20;
	uint8_t *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	memset(p, 1, size);
	words[1] = 1;
}

TEST(pause_is_bounded)
{
	struct target_options options = { .max_pause_s = 0.0001 };
	struct space *sp;
	struct err err;
	struct child c;

	child_start(&c, large);
	sp = target_open_live((uint32_t)c.pid, &options, &err);
	if (CHECK(!sp)) {
		want(err.msg, "not read within 0.0001 s, given up", "runs on");
		want(err.hint, "--max-pause", "--no-stop");
	}
	space_close(sp);
	CHECK_U64((uint64_t)child_held_in_the_end(c.pid, 0), 0);
	child_end(&c);
}

/*
 * Killed at every moment from before the stop to after the copy: each attempt
 * ends in one of a few ways, and the interesting one is among them.
 */
TEST(it_ends_on_the_way)
{
	int i, n_lost = 0, n_other = 0;
	char got[SAID], lost[100];

	/* On a busy machine the moments may all be missed. */
	for (i = 0; i < 40 || (!n_lost && i < 1000); i++) {
		struct child c;
		pid_t killer;

		child_start(&c, large);
		fflush(stdout);
		killer = fork();
		if (!killer) {
			usleep((unsigned)(i % 20) * 2500);
			kill(c.pid, SIGKILL);
			_exit(0);
		}
		say(c.pid, got);
		snprintf(lost, sizeof(lost), "process %d: ended while it was "
			 "being read|", (int)c.pid);
		n_lost += !strcmp(got, lost);
		if (strcmp(got, lost) && strcmp(got, "|") &&
		    !strstr(got, "no such process") &&
		    !strstr(got, "has ended")) {
			printf("# %s\n", got);
			n_other++;
		}
		waitpid(killer, NULL, 0);
		child_end(&c);
	}
	CHECK(n_lost > 0);
	CHECK_U64((uint64_t)n_other, 0);
}

/* Executes itself again and again. */
static void restless(volatile uint64_t *words)
{
	words[0] = 1;
	execl("/bin/sh", "sh", "-c", "exec sh -c \"$0\" \"$0\"",
	      "exec sh -c \"$0\" \"$0\"", NULL);
	_exit(1);
}

TEST(it_becomes_another_program)
{
	int i, n_exec = 0, n_other = 0;
	struct child c;
	char got[SAID];

	child_start(&c, restless);
	for (i = 0; i < 2000 && n_exec < 3; i++) {
		say(c.pid, got);
		if (strstr(got, "executed another program (sh) while it was "
			   "being read|Try again.")) {
			n_exec++;
		} else if (strcmp(got, "|")) {
			printf("# %s\n", got);
			n_other++;
		}
	}
	CHECK(n_exec > 0);
	CHECK_U64((uint64_t)n_other, 0);
	CHECK(waitpid(c.pid, NULL, WNOHANG) == 0);
	child_end(&c);
}
