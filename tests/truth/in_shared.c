/* SPDX-License-Identifier: MIT */
/*
 * Holds a block of 5000 bytes by a pointer in a file that is mapped shared,
 * which cores leave out as a rule, and dies.  Usage: in_shared FILE
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static __attribute__((noinline)) void scrub(void)
{
	volatile char junk[16384];

	for (size_t i = 0; i < sizeof(junk); i++)
		junk[i] = 0;
}

static __attribute__((noinline)) int hold(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT, 0600);
	void **shared;

	if (fd < 0 || ftruncate(fd, 4096))
		return 0;
	shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (shared == MAP_FAILED)
		return 0;
	shared[10] = malloc(5000);
	memset(shared[10], 1, 5000);
	return 1;
}

int main(int argc, char **argv)
{
	if (argc != 2 || !hold(argv[1]))
		return 2;
	scrub();
	abort();
}
