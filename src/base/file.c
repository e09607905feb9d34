/* SPDX-License-Identifier: MIT */
#include "base/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int file_open_plain(const char *path, uint64_t *ret_size)
{
	struct stat st;
	int fd;

	if (stat(path, &st) || !S_ISREG(st.st_mode) || st.st_size <= 0)
		return -1;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return -1;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_size <= 0) {
		close(fd);
		return -1;
	}
	*ret_size = (uint64_t)st.st_size;
	return fd;
}

bool file_map(const char *path, struct file_bytes *ret)
{
	uint64_t size;
	int fd = file_open_plain(path, &size);
	void *data;

	if (fd < 0)
		return false;
	data = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	close(fd);
	if (data == MAP_FAILED)
		return false;
	*ret = (struct file_bytes){ data, size };
	return true;
}

void file_unmap(struct file_bytes *bytes)
{
	if (bytes->data)
		munmap(bytes->data, bytes->size);
	*bytes = (struct file_bytes){ 0 };
}
