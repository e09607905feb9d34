/* SPDX-License-Identifier: MIT */
#include "base/temp.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"

const char *temp_dir(const char *dir)
{
	if (!dir || !dir[0])
		dir = getenv("TMPDIR");
	return dir && dir[0] ? dir : "/tmp";
}

int temp_file(const char *dir)
{
	int fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	AUTO_FREE char *path = NULL;

	if (fd >= 0)
		return fd;
	/* Not every file system can make one. */
	path = mem_printf("%s/heapcore.XXXXXX", dir);
	fd = mkostemp(path, O_CLOEXEC);
	if (fd >= 0)
		unlink(path);
	return fd;
}
