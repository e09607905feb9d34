/* SPDX-License-Identifier: MIT */
/*
 * become HOW: allocates a block of 11111 bytes and becomes itself by one
 * function of the exec family; then there is one of 22222, and the environment
 * is printed.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { MANY = 400 };

static void end(char **argv)
{
	int n = 0;

	while (argv[n])
		n++;
	printf("%d arguments\n", n);
	for (char **e = environ; *e; e++)
		puts(*e);
	fflush(stdout);
	_exit(malloc(22222) ? 7 : 1);
}

static void fail(int got)
{
	if (got != -1 || errno != EFAULT)
		_exit(2);
	errno = 0;
}

/* By an address of nothing, and by what has its end behind a page. */
static void fail_unreadable(const char *path, char **argv)
{
	static char *none[] = { NULL };
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *end = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *nothing = (char *)8, *half, **list;
	char *bad[] = { "A=1", nothing, NULL };

	end += page;
	mprotect(end, page, PROT_NONE);
	half = memcpy(end - 4, "LD_P", 4);
	list = (char **)(end - 2 * sizeof(*list));
	fail(execve(path, argv, (char **)nothing));
	fail(execve(path, argv, bad));
	fail(execv(nothing, argv));
	fail(execv(end, argv));
	fail(execv(half, argv));
	fail(execl(half, "become", NULL));
	bad[1] = half;
	fail(execve(path, argv, bad));
	list[0] = list[1] = "A=1";
	fail(execve(path, argv, list));
	fail(fexecve(open(path, O_RDONLY), argv, list));
	environ = list;
	fail(execv(path, argv));
	environ = none;
}

static void become(const char *how, char **argv)
{
	char *again[] = { "become", "end", NULL };
	char *few[] = { "A=1", "PATH=/none", NULL };
	char *many[MANY + 1] = { "become", "end" };

	if (!strcmp(how, "execv"))
		execv(argv[0], again);
	if (!strcmp(how, "execve"))
		execve(argv[0], again, few);
	if (!strcmp(how, "execvp"))
		execvp("become", again);
	if (!strcmp(how, "execvpe"))
		execvpe("become", again, few);
	if (!strcmp(how, "execl"))
		execl(argv[0], "become", "end", NULL);
	if (!strcmp(how, "execlp"))
		execlp("become", "become", "end", NULL);
	if (!strcmp(how, "execle"))
		execle(argv[0], "become", "end", NULL, few);
	if (!strcmp(how, "fexecve"))
		fexecve(open(argv[0], O_RDONLY), again, few);
	if (!strcmp(how, "many")) {
		for (int i = 2; i < MANY; i++)
			many[i] = "x";
		execv(argv[0], many);
	}
	/* Fails, goes on, and is no other program. */
	if (!strcmp(how, "fails")) {
		execl("/nowhere/at/all", "x", NULL);
		end(again);
	}
	/* No path, where another program is what descriptor 0 leads to. */
	if (!strcmp(how, "null")) {
		dup2(open(argv[0], O_RDONLY), 0);
		if (execve(NULL, again, few) == -1 && errno == EFAULT)
			end(again);
		_exit(1);
	}
	if (!strcmp(how, "unreadable")) {
		fail_unreadable(argv[0], again);
		end(again);
	}
	/* A child becomes it, not this process. */
	if (!strcmp(how, "vfork")) {
		if (!vfork()) {
			execl(argv[0], "become", "end", NULL);
			_exit(1);
		}
		wait(NULL);
		end(again);
	}
	/* Over and over. */
	if (!strcmp(how, "loop")) {
		int n = argv[2] ? atoi(argv[2]) : 60;
		char left[16];

		snprintf(left, sizeof(left), "%d", n - 1);
		if (n)
			execl(argv[0], argv[0], "loop", left, NULL);
		end(again);
	}
}

int main(int argc, char **argv)
{
	void *volatile kept;

	if (argc > 1 && !strcmp(argv[1], "end"))
		end(argv);
	kept = malloc(11111);
	become(argc > 1 ? argv[1] : "", argv);
	return kept ? 1 : 2;
}
