/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/confine.h"
#include "cmd.h"
#include "replay/trace.h"
#include "report/out.h"

static const struct command *const commands[] = {
	&command_analyze,
	&command_tui,
	&command_record,
	&command_replay,
	&command_trace,
	&command_snapshot,
	&command_diff,
	&command_watch,
};

static void write_help(struct out *o)
{
	out_adds(o,
"Usage: heapcore COMMAND [OPTION]... [TARGET]\n"
"Explain the heap of a core file or a running process, without symbols.\n"
"\n"
"  heapcore analyze core.1234                    where did the memory go?\n"
"  heapcore analyze -p 1234                      the same of what runs\n"
"  heapcore tui core.1234                        browse it\n"
"\n"
"Commands:\n");
	for (size_t i = 0; i < countof(commands); i++)
		out_printf(o, "  %-9s %s\n", commands[i]->name,
			   commands[i]->summary);
	out_adds(o,
"\n"
"Options that every command has, but where it says not:\n"
"  -o, --output=FILE      write the report to FILE\n"
"      --json             JSON instead of text; not tui, record, snapshot\n"
"      --color=auto|always|never  not record, snapshot, trace\n"
"  -q, --quiet            no progress and no warnings\n"
"  -h, --help             this text; after a command, that command's options\n"
"  -V, --version          version and licence\n"
"Exit status: 0 report complete, 1 a --fail-if condition holds, 2 no report,\n"
"3 report incomplete.  Manual: man heapcore.\n");
}

/* On stdout if it was asked for, else on stderr. */
static int help(int fd)
{
	struct out out;
	struct err err;

	out_open_fd(&out, fd);
	write_help(&out);
	if (!out_close(&out, &err))
		return cmd_fail(&err);
	return fd == STDOUT_FILENO ? STATUS_COMPLETE : STATUS_FAILED;
}

static bool is_trace(const char *path)
{
	char magic[TRACE_MAGIC_SIZE];
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	bool ret = fd >= 0 && read(fd, magic, sizeof(magic)) ==
		   (ssize_t)sizeof(magic) &&
		   !memcmp(magic, TRACE_MAGIC, sizeof(magic));

	if (fd >= 0)
		close(fd);
	return ret;
}

/* A core, a trace or a process, and not what to do with it. */
static bool forgot_command(char **argv, struct err *err)
{
	const char *name = argv[0], *pid = "", *command = "analyze";
	struct stat st;

	if (!strncmp(name, "-p", 2) || !strncmp(name, "--pid", 5)) {
		err_set(err, ERR_USAGE, "no command before '%.60s'", name);
		if (!strpbrk(name, "=0123456789"))
			pid = argv[1] ? argv[1] : "PID";
	} else if (name[0] != '-' && !stat(name, &st) &&
		   S_ISREG(st.st_mode)) {
		err_set(err, ERR_USAGE, "no command before the file '%.160s'",
			name);
		if (is_trace(name))
			command = "replay";
	} else {
		return false;
	}
	err_hint(err, "Try heapcore %s %.500s%s%.60s", command, name,
		 *pid ? " " : "", pid);
	return true;
}

static int unknown_command(char **argv)
{
	const char *name = argv[0];
	struct words_near near;
	struct err err;

	near_init(&near, name);
	for (size_t i = 0; i < countof(commands); i++)
		near_try(&near, commands[i]->name);
	if (forgot_command(argv, &err))
		return cmd_fail(&err);
	if (name[0] == '-')
		err_set(&err, ERR_USAGE, "unknown option '%.60s'", name);
	else if (near.best)
		err_set(&err, ERR_USAGE, "unknown command '%.60s'; did you "
			"mean '%s'?", name, near.best);
	else
		err_set(&err, ERR_USAGE, "unknown command '%.60s'", name);
	err_hint(&err, "Try heapcore --help.");
	return cmd_fail(&err);
}

/*
 * A stream that was closed must not be given to the next file that is opened:
 * the report would be written into it.  Reading fails, and so does writing.
 */
static void keep_streams(void)
{
	for (int fd = 0; fd <= 2; fd++)
		if (fcntl(fd, F_GETFD) < 0)
			(void)!open("/dev/null", fd ? O_RDONLY : O_WRONLY);
}

/* Only record starts a program; the others read what nobody vouches for. */
static int run(const struct command *c, int argc, char **argv)
{
	if (c != &command_record)
		confine();
	return c->run(c, argc, argv);
}

int main(int argc, char **argv)
{
	keep_streams();
	if (argc < 2)
		return help(STDERR_FILENO);
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))
		return help(STDOUT_FILENO);
	if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V"))
		return cmd_version();
	for (size_t i = 0; i < countof(commands); i++)
		if (!strcmp(argv[1], commands[i]->name))
			return run(commands[i], argc - 1, argv + 1);
	return unknown_command(argv + 1);
}
