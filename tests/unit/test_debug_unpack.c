/* SPDX-License-Identifier: MIT */
#include "corewalk/debug_unpack.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "check.h"
#include "corewalk/debug.h"

enum { SECTIONS = 4, TEXT = 5000 };

struct image {
	Elf64_Ehdr head;
	Elf64_Shdr sections[SECTIONS];
	Elf64_Chdr packed;
	uint8_t bytes[TEXT];
};

/* All sections are the same bytes, which say to be of so many when unpacked. */
static bool make(struct image *f, uint64_t size, struct file_bytes *ret)
{
	char path[] = "/tmp/heapcore-test.XXXXXX";
	int fd = mkstemp(path);
	static uint8_t text[TEXT];
	uLongf n = sizeof(f->bytes);
	bool ok;

	memset(text, 'x', sizeof(text));
	*f = (struct image){
		.head = {
			.e_ident = ELFMAG "\2\1\1", .e_type = ET_DYN,
			.e_machine = EM_X86_64, .e_version = 1,
			.e_ehsize = sizeof(Elf64_Ehdr),
			.e_shoff = offsetof(struct image, sections),
			.e_shentsize = sizeof(Elf64_Shdr),
			.e_shnum = SECTIONS,
		},
		.packed = { .ch_type = ELFCOMPRESS_ZLIB, .ch_size = size },
	};
	compress(f->bytes, &n, text, sizeof(text));
	for (unsigned i = 0; i < SECTIONS; i++)
		f->sections[i] = (Elf64_Shdr){
			.sh_name = UINT32_MAX, .sh_type = SHT_PROGBITS,
			.sh_flags = SHF_COMPRESSED,
			.sh_offset = offsetof(struct image, packed),
			.sh_size = sizeof(f->packed) + n,
		};
	ok = fd >= 0 && write(fd, f, sizeof(*f)) == sizeof(*f) &&
	     file_map(path, ret);
	close(fd);
	unlink(path);
	return ok;
}

static uint64_t flags_of(const struct file_bytes *b, unsigned i)
{
	struct image f;

	memcpy(&f, b->data, sizeof(f));
	return f.sections[i].sh_flags;
}

TEST(sections_are_unpacked)
{
	struct file_bytes b;
	struct image f;

	if (!CHECK(make(&f, TEXT, &b)))
		return;
	CHECK(debug_unpack(&b));
	for (unsigned i = 0; i < SECTIONS; i++) {
		memcpy(&f, b.data, sizeof(f));
		CHECK_U64(flags_of(&b, i), 0);
		CHECK_U64(f.sections[i].sh_size, TEXT);
		CHECK_U64(b.data[f.sections[i].sh_offset + TEXT - 1], 'x');
	}
	file_unmap(&b);
}

/* Each may be as large, but all together not; names say nothing of it. */
TEST(no_more_than_the_limit)
{
	struct file_bytes b;
	struct image f;

	if (!CHECK(make(&f, DEBUG_MAX_BYTES / 2 - 1, &b)))
		return;
	debug_unpack(&b);
	CHECK(b.size < sizeof(f) + DEBUG_MAX_BYTES + SECTIONS * 64);
	file_unmap(&b);
}
