/* SPDX-License-Identifier: MIT */
#include "base/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit/check.h"

static bool may_exec(void)
{
	static char *const argv[] = { (char *)"true", NULL };
	int status;
	pid_t pid = fork();

	if (!pid) {
		execv("/bin/true", argv);
		_exit(errno == EPERM ? 1 : 2);
	}
	return waitpid(pid, &status, 0) == pid && !status;
}

static bool may_connect(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	bool refused = fd < 0 && errno == EPERM;

	close(fd);
	return !refused;
}

static void *in_thread(void *arg)
{
	*(bool *)arg = may_exec() || may_connect();
	return NULL;
}

/* Bits: what worked that should not, or the other way round. */
static int after(void)
{
	pthread_t thread;
	bool thread_may = true;
	int fd;

	confine();
	if (!pthread_create(&thread, NULL, in_thread, &thread_may))
		pthread_join(thread, NULL);
	fd = open("/proc/self/maps", O_RDONLY);
	return may_exec() << 0 | may_connect() << 1 | thread_may << 2 |
	       (fd < 0) << 3;
}

TEST(no_program_no_socket)
{
	int status;
	pid_t pid;

#ifdef __SANITIZE_ADDRESS__
	SKIP("not under sanitizers");
#endif
	if (!may_exec() || !may_connect())
		SKIP("not before either");
	pid = fork();
	if (!pid) {
		int bits = after();

		/* Nothing was asked for where the kernel forbids it. */
		_exit(prctl(PR_GET_SECCOMP) == 2 ? bits : 77);
	}
	if (!CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status)))
		return;
	if (WEXITSTATUS(status) == 77)
		SKIP("no seccomp here");
	CHECK_U64(WEXITSTATUS(status), 0);
}
