/* SPDX-License-Identifier: MIT */
/*
 * peak COMMAND...: runs it without its output and prints the most memory that
 * it had, in KiB: small itself, since what it has before exec counts.
 */
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	struct rusage usage;
	int status;
	pid_t pid = argc > 1 ? fork() : -1;

	if (!pid) {
		dup2(open("/dev/null", O_WRONLY), 1);
		execvp(argv[1], argv + 1);
		_exit(127);
	}
	if (pid < 0 || wait4(pid, &status, 0, &usage) != pid || status)
		return 1;
	printf("%ld\n", usage.ru_maxrss);
	return 0;
}
