/* SPDX-License-Identifier: MIT */
/*
 * peak FILE COMMAND...: runs a command and writes to FILE the most private
 * memory that it had, in bytes: resident pages that are not of a file.  The
 * command's own core, mapped from the page cache, does not count; FILE.resident
 * is what it was with that.
 *
 * The kernel keeps the peak of all resident pages only.  So the process is
 * looked at every 200 microseconds, and once more when it is about to end
 * and still has its memory (PTRACE_O_TRACEEXIT).
 */
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static uint64_t peak;

/* proc_pid_statm(5): the second number less the third. */
static void look(pid_t pid)
{
	unsigned long long resident, shared;
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/statm", (int)pid);
	f = fopen(path, "r");
	if (!f)
		return;
	if (fscanf(f, "%*u %llu %llu", &resident, &shared) == 2 &&
	    (resident - shared) * sysconf(_SC_PAGESIZE) > peak)
		peak = (resident - shared) * sysconf(_SC_PAGESIZE);
	fclose(f);
}

/* True if it goes on; *status is how it ended if not. */
static bool watch(pid_t pid, int *status)
{
	struct timespec pause = { 0, 200000 };
	pid_t got = waitpid(pid, status, WNOHANG);

	if (!got) {
		look(pid);
		nanosleep(&pause, NULL);
		return true;
	}
	if (got < 0 || !WIFSTOPPED(*status))
		return false;
	look(pid);
	ptrace(PTRACE_CONT, pid, 0, *status >> 16 ? 0 : WSTOPSIG(*status));
	return true;
}

int main(int argc, char **argv)
{
	struct rusage usage;
	char path[4096];
	int status = 0;
	pid_t pid;
	FILE *f, *all;

	if (argc < 3 || !(f = fopen(argv[1], "w")))
		return 2;
	pid = fork();
	if (!pid) {
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		raise(SIGSTOP);
		execvp(argv[2], argv + 2);
		_exit(127);
	}
	waitpid(pid, &status, 0);
	ptrace(PTRACE_SETOPTIONS, pid, 0, PTRACE_O_TRACEEXIT |
	       PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL);
	ptrace(PTRACE_CONT, pid, 0, 0);
	while (watch(pid, &status))
		;
	fprintf(f, "%llu\n", (unsigned long long)peak);
	getrusage(RUSAGE_CHILDREN, &usage);
	snprintf(path, sizeof(path), "%s.resident", argv[1]);
	all = fopen(path, "w");
	if (all) {
		fprintf(all, "%ld\n", usage.ru_maxrss * 1024);
		fclose(all);
	}
	return fclose(f) || WIFSIGNALED(status) ? 2 : WEXITSTATUS(status);
}
