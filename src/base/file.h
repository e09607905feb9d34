/* SPDX-License-Identifier: MIT */
/*
 * Files whose names come from strangers: only regular ones are opened, since
 * a FIFO would block and a device does what it likes.
 */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include "base/types.h"

/* The part of a name behind its last slash. */
const char *file_base_name(const char *path);

struct file_bytes {
	uint8_t *data;		/* owned; NULL: none */
	uint64_t size;
};

/*
 * A descriptor to read the regular file at path, and its size, which is not
 * 0; -1 if it is no such file or cannot be opened.
 */
int file_open_plain(const char *path, uint64_t *ret_size);

/*
 * All its bytes, mapped privately: what is written to them stays here.  A page
 * of zeros follows: libdw reads strings and numbers that a section's end cuts
 * off to where they end.  False if file_open_plain() or the kernel refuses.
 */
bool file_map(const char *path, struct file_bytes *ret);
/*
 * Makes them size bytes, which is more, by bytes that are zeros if they are
 * behind the file's last page.  They move.  False if that cannot be had.
 */
bool file_extend(struct file_bytes *bytes, uint64_t size);
void file_unmap(struct file_bytes *bytes);

#endif
