/* SPDX-License-Identifier: MIT */
#include "base/file.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

const char *file_base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

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

/* Bytes of address space: the file's pages, and one of zeros. */
static size_t room_of(uint64_t size)
{
	enum { PAGE = 4096 };

	return round_up(size, PAGE) + PAGE;
}

bool file_map(const char *path, struct file_bytes *ret)
{
	uint64_t size;
	int fd = file_open_plain(path, &size);
	void *room, *data = MAP_FAILED;

	if (fd < 0)
		return false;
	room = size < SIZE_MAX / 2 ?
	       mmap(NULL, room_of(size), PROT_READ,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) : MAP_FAILED;
	if (room != MAP_FAILED)
		data = mmap(room, size, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_FIXED, fd, 0);
	close(fd);
	if (data == MAP_FAILED) {
		if (room != MAP_FAILED)
			munmap(room, room_of(size));
		return false;
	}
	*ret = (struct file_bytes){ data, size };
	return true;
}

bool file_extend(struct file_bytes *bytes, uint64_t size)
{
	uint64_t old = room_of(bytes->size);
	uint8_t *room = size < SIZE_MAX / 2 ?
		mmap(NULL, room_of(size), PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) : MAP_FAILED;

	if (room == MAP_FAILED)
		return false;
	/* Only the file's own pages: zeros are there already. */
	if (mremap(bytes->data, bytes->size, bytes->size,
		   MREMAP_MAYMOVE | MREMAP_FIXED, room) == MAP_FAILED) {
		munmap(room, room_of(size));
		return false;
	}
	munmap(bytes->data, old);
	madvise(room, room_of(size), MADV_HUGEPAGE);
	*bytes = (struct file_bytes){ room, size };
	return true;
}

void file_unmap(struct file_bytes *bytes)
{
	if (bytes->data)
		munmap(bytes->data, room_of(bytes->size));
	*bytes = (struct file_bytes){ 0 };
}
